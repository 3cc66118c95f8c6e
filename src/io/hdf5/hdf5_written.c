/* hdf5_written.c: see hdf5_written.h. */
#include "hdf5_written.h"
#include "allocate.h"
#include "grow.h"
#include <stdlib.h>

stk_status stki_hdf5_written_add(stki_hdf5_written *w, int64_t first, int64_t last, stk_error *err)
{
    stki_hdf5_run *before = w->count > 0 ? &w->runs[w->count - 1] : NULL;
    stk_status status;

    if (before && first >= before->first && first <= before->last) {
        before->last = last > before->last ? last : before->last;
        return STK_OK;
    }
    status = stki_grow(&w->runs, &w->capacity, w->count + 1, sizeof *w->runs, "runs of written elements", err);
    if (status == STK_OK)
        w->runs[w->count++] = (stki_hdf5_run){first, last};
    return status;
}

static int by_first(const void *a, const void *b)
{
    const int64_t x = ((const stki_hdf5_run *)a)->first, y = ((const stki_hdf5_run *)b)->first;

    return (x > y) - (x < y);
}

void stki_hdf5_written_end(stki_hdf5_written *w)
{
    const int64_t count = w->count;

    if (count == 0)
        return;
    qsort(w->runs, (size_t)count, sizeof *w->runs, by_first);
    w->count = 1;
    for (int64_t i = 1; i < count; i++) /* merges runs in place, without allocating memory */
        (void)stki_hdf5_written_add(w, w->runs[i].first, w->runs[i].last, NULL);
}

void stki_hdf5_written_fini(stki_hdf5_written *w)
{
    stki_free(w->runs);
    *w = (stki_hdf5_written){0};
}

int64_t stki_hdf5_written_from(const stki_hdf5_written *w, int64_t from)
{
    int64_t low = 0, high = w->count;

    if (w->all)
        return from;
    while (low < high) { /* the first run that ends after `from` */
        const int64_t middle = low + (high - low) / 2;

        if (w->runs[middle].last <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low == w->count ? INT64_MAX : w->runs[low].first > from ? w->runs[low].first : from;
}

stk_status stki_hdf5_written_of(const stki_hdf5_table *table, const stki_hdf5_grid *grid, int axis,
                                stki_hdf5_written *out, stk_error *err)
{
    const int64_t chunk = grid->chunk[axis];
    int64_t side = 1;
    stk_status status = STK_OK;

    *out = (stki_hdf5_written){.all = table->count == grid->count};
    for (int i = axis + 1; i < grid->ndim; i++)
        side *= grid->per[i];
    for (int64_t i = 0; i < table->count && !out->all && status == STK_OK; i++) {
        const int64_t band = table->chunks[i].number / side % grid->per[axis], first = band * chunk;

        status = stki_hdf5_written_add(out, first,
                                       grid->shape[axis] - first < chunk ? grid->shape[axis] : first + chunk, err);
    }
    if (status == STK_OK)
        stki_hdf5_written_end(out);
    else
        stki_hdf5_written_fini(out);
    return status;
}
