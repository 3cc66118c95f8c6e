/* hdf5_samples.c: the geometry of samples, and the reader that reads each of them through the library. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_parts.h"
#include "hdf5_reader.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

static stk_status check_axis(const stki_hdf5_dataset *d, const stki_reader_opts *opts, stk_error *err)
{
    if (d->rank == 0)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){d->path, -1, -1, "a scalar", "at least one axis, along which samples are counted"},
            "%s cannot be divided into samples", d->name);
    if (opts->axis < 0 || opts->axis >= d->ndim)
        return stki_fail_at(err, STK_E_CONFIG,
                            (stki_place){d->path, -1, -1, STKI_TEXT("axis %d", opts->axis),
                                         STKI_TEXT("0 to %d, because %s has %d %s", d->ndim - 1, d->name, d->ndim,
                                                   d->ndim == 1 ? "axis" : "axes")},
                            "source.axis: no such axis");
    if (opts->axis >= d->rank)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){d->path, -1, -1, STKI_TEXT("axis %d", opts->axis), STKI_TEXT("0 to %d", d->rank - 1)},
            "%s: source.axis is an axis of the array type, along which samples cannot be read", d->name);
    return STK_OK;
}

stk_status stki_hdf5_samples_of(const stki_hdf5_dataset *d, const stki_reader_opts *opts, stki_hdf5_samples *out,
                                stki_reader *base, stk_error *err)
{
    stk_status status = check_axis(d, opts, err);
    int64_t along;

    if (status != STK_OK)
        return status;
    *out = (stki_hdf5_samples){
        .axis = opts->axis, .window = opts->window_length > 0 && opts->window_dilation <= 1, .step = 1};
    along = d->shape[out->axis];
    base->count = along;
    base->dtype = d->type.dtype;
    base->swapped = d->type.swapped;
    base->ndim = 0;
    if (out->window) {
        base->windows = true;
        base->longest_group = along;
        out->step = opts->window_stride > 0 ? opts->window_stride : opts->window_length;
        base->count = along < opts->window_length ? 0 : (along - opts->window_length) / out->step + 1;
    }
    out->count = base->count;
    for (int i = 0; i < d->ndim; i++) {
        int64_t length = i == out->axis ? (out->window ? opts->window_length : 1) : d->shape[i];

        if (i < d->rank)
            out->length[i] = length;
        if (i != out->axis || out->window)
            base->shape[base->ndim++] = length;
    }
    status = stki_row_major(base->dtype, base->ndim, base->shape, base->strides, &base->max_bytes, err);
    for (int i = 0; i < base->ndim; i++)
        base->max_bytes = base->shape[i] == 0 ? 0 : base->max_bytes;
    return status;
}

int64_t stki_hdf5_filled_until(const stki_hdf5_samples *s, const stki_hdf5_written *written, int64_t index)
{
    const int64_t length = s->length[s->axis], first = index * s->step;
    int64_t from, end;

    if (index >= s->count)
        return index;
    from = stki_hdf5_written_from(written, first);
    if (from < INT64_MAX && from - first < length)
        return index;
    end = from == INT64_MAX ? s->count : (from - length) / s->step + 1; /* the first sample that reaches `from` */
    return end < s->count ? end : s->count;
}

int64_t stki_hdf5_band_end(const stki_hdf5_samples *s, const stki_hdf5_grid *grid, int64_t index)
{
    const int64_t chunk = grid->chunk[s->axis], left = s->count - index, rest = chunk - index % chunk;

    return s->window ? index + 1 : index + (rest < left ? rest : left);
}

/* ---- written elements ---- */

static stk_status written_chunks(const stki_hdf5_dataset *d, int axis, stki_hdf5_written *out, stki_hdf5_table *table,
                                 stk_error *err)
{
    stki_hdf5_grid grid = d->grid;
    stki_file *file = d->home->bytes ? stki_file_retain(d->home->bytes) : NULL;
    stk_status status = STK_OK;

    grid.item_bytes = 0; /* read from the index; type.bytes may differ for strings and for single fields */
    if (!file)
        status = stki_file_open(d->path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, err);
    if (status == STK_OK)
        status = stki_hdf5_index_read(file, d->header, &grid, table, err);
    stki_file_close(file);
    if (status == STK_E_UNSUPPORTED)
        return STK_OK;
    return status == STK_OK ? stki_hdf5_written_of(table, &grid, axis, out, err) : status;
}

/* If this process writes to the file, its data may not be on disk yet, so nothing is known. A SWMR writer in another
 * process may be changing the index, or may not have extended the file for all of it. If the index cannot be read, all
 * elements count as written. */
static stk_status written_live(const stki_hdf5_dataset *d, int axis, stki_hdf5_written *out, stk_error *err)
{
    const bool in_process = d->home->live && !d->home->ours;
    stki_hdf5_table table = {0};
    stk_status status = in_process ? STK_OK : written_chunks(d, axis, out, &table, err);

    stki_hdf5_table_fini(&table);
    if (!d->home->live || (status != STK_E_CORRUPT && status != STK_E_TRUNCATED))
        return status;
    *out = (stki_hdf5_written){.all = true};
    return STK_OK;
}

stk_status stki_hdf5_dataset_written(const stki_hdf5_dataset *d, int axis, stki_hdf5_written *out,
                                     stki_hdf5_table *table, stk_error *err)
{
    *out = (stki_hdf5_written){.all = true};
    *table = (stki_hdf5_table){0};
    if (d->live)
        return d->layout == STKI_HDF5_CHUNKED ? written_live(d, axis, out, err) : STK_OK;
    switch (d->layout) {
    case STKI_HDF5_CONTIGUOUS:
        out->all = d->offset >= 0;
        return STK_OK;
    case STKI_HDF5_CHUNKED:
        return written_chunks(d, axis, out, table, err);
    case STKI_HDF5_VIRTUAL:
        return stki_hdf5_parts_written(d, axis, out, err);
    default:
        return STK_OK;
    }
}

/* ---- through the library ---- */

struct library_reader {
    stki_reader base; /* first member */
    stki_hdf5_dataset *dataset;
    stki_hdf5_samples samples;
    stki_hdf5_written written;
    stki_hdf5_table table; /* the stored chunks, if a sample spans more chunks than are stored */
    char *fill;            /* set together with `table`: the value of elements in chunks that are not stored */
};

/* Reads the part of a sample that is in one chunk. `start`: first element of the sample along each axis. */
static stk_status read_part(const struct library_reader *r, const int64_t *start, int64_t number, char *to,
                            stk_error *err)
{
    const stki_hdf5_dataset *d = r->dataset;
    const stki_hdf5_grid *grid = &d->grid;
    int64_t first[STK_MAX_DIMS], length[STK_MAX_DIMS], step[STK_MAX_DIMS], index[STK_MAX_DIMS] = {0};
    int64_t bytes = d->type.bytes, at = 0, stride = d->type.bytes, row;
    int axis = grid->ndim - 1;
    char *part;
    stk_status status;

    for (int i = axis; i >= 0; i--) {
        const int64_t from = number % grid->per[i] * grid->chunk[i], end = start[i] + r->samples.length[i];

        number /= grid->per[i];
        first[i] = from > start[i] ? from : start[i];
        length[i] = (end < from + grid->chunk[i] ? end : from + grid->chunk[i]) - first[i];
        if (length[i] <= 0)
            return STK_OK;
        bytes *= length[i];
        step[i] = stride;
        at += (first[i] - start[i]) * stride;
        stride *= r->samples.length[i];
    }
    part = stki_zalloc(bytes);
    if (!part)
        return stki_fail_memory(err, bytes, "a part of a sample");
    status = stki_hdf5_dataset_read(d, first, length, part, bytes, err);
    row = length[axis] * d->type.bytes;
    for (int64_t done = 0; done < bytes && status == STK_OK; done += row) {
        memcpy(to + at, part + done, (size_t)row);
        for (int i = axis - 1; i >= 0; i--) {
            at += step[i];
            if (++index[i] < length[i])
                break;
            at -= length[i] * step[i];
            index[i] = 0;
        }
    }
    stki_free(part);
    return status;
}

/* Reads only the chunks that are stored, because the library takes microseconds for each chunk that is not. */
static stk_status read_stored(const struct library_reader *r, const int64_t *start, char *to, stk_error *err)
{
    const int64_t bytes = r->base.max_bytes;
    stk_status status = STK_OK;

    memcpy(to, r->fill, (size_t)r->dataset->type.bytes);
    for (int64_t done = r->dataset->type.bytes; done < bytes; done *= 2) /* doubles the filled part */
        memcpy(to + done, to, (size_t)(done < bytes - done ? done : bytes - done));
    for (int64_t i = 0; i < r->table.count && status == STK_OK; i++)
        status = read_part(r, start, r->table.chunks[i].number, to, err);
    return status;
}

static stk_status library_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                               stk_tensor *out, stk_error *err)
{
    const struct library_reader *r = (const struct library_reader *)(const void *)base;
    int64_t start[STK_MAX_DIMS] = {0};
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK)
        return status;
    start[r->samples.axis] = index * r->samples.step;
    status = stki_scratch_reserve(scratch, base->max_bytes > 0 ? base->max_bytes : 1, err);
    if (status == STK_OK)
        status =
            r->fill ? read_stored(r, start, scratch->data, err)
                    : stki_hdf5_dataset_read(r->dataset, start, r->samples.length, scratch->data, base->max_bytes, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    *out = (stk_tensor){.data = scratch->data,
                        .dtype = base->dtype,
                        .ndim = base->ndim,
                        .flags = STK_TENSOR_READONLY | (base->swapped ? STK_TENSOR_SWAPPED : 0)};
    memcpy(out->shape, base->shape, sizeof base->shape);
    memcpy(out->strides, base->strides, sizeof base->strides);
    return STK_OK;
}

static void library_destroy(stki_reader *base)
{
    struct library_reader *r = (struct library_reader *)(void *)base;

    stki_hdf5_written_fini(&r->written);
    stki_hdf5_table_fini(&r->table);
    stki_free(r->fill);
    stki_hdf5_dataset_release(r->dataset);
    stki_free(base->path);
    stki_free(r);
}

static int64_t library_filled_until(const stki_reader *base, int64_t index)
{
    const struct library_reader *r = (const struct library_reader *)(const void *)base;

    return stki_hdf5_filled_until(&r->samples, &r->written, index);
}

static int64_t library_fails_until(const stki_reader *base, int64_t index)
{
    const struct library_reader *r = (const struct library_reader *)(const void *)base;

    return r->dataset->layout == STKI_HDF5_CHUNKED ? stki_hdf5_band_end(&r->samples, &r->dataset->grid, index)
                                                   : index + 1;
}

static const stki_reader_ops library_ops = {.format = "hdf5",
                                            .read = library_read,
                                            .filled_until = library_filled_until,
                                            .fails_until = library_fails_until,
                                            .destroy = library_destroy};

/* Determines which elements are stored, and whether only the stored chunks of a sample are read. */
static stk_status find_stored(struct library_reader *r, stk_error *err)
{
    const stki_hdf5_dataset *d = r->dataset;
    int64_t spanned = 1;
    stk_status status = stki_hdf5_dataset_written(d, r->samples.axis, &r->written, &r->table, err);

    if (status != STK_OK || d->layout != STKI_HDF5_CHUNKED || r->written.all || d->live) {
        stki_hdf5_table_fini(&r->table);
        return status;
    }
    (void)stki_mul(r->table.count, d->grid.chunk_bytes, &r->base.stored_bytes);
    for (int i = 0; i < d->rank; i++)
        if (!stki_mul(spanned, r->samples.length[i] / d->grid.chunk[i] + 1, &spanned))
            spanned = INT64_MAX;
    if (spanned <= r->table.count) {
        stki_hdf5_table_fini(&r->table);
        return STK_OK;
    }
    r->fill = stki_zalloc(d->type.bytes);
    return r->fill ? stki_hdf5_dataset_fill(d, r->fill, err) : stki_fail_memory(err, d->type.bytes, "a fill value");
}

static const char *library_note(const stki_hdf5_dataset *d)
{
    return d->live        ? "read through libhdf5, under its lock: another process has the file open for writing"
           : d->field     ? "read through libhdf5, under its lock: a field of a compound type"
           : !d->type.raw ? "read through libhdf5, under its lock: its type has to be converted"
           : d->layout == STKI_HDF5_VIRTUAL  ? "read through libhdf5, under its lock: a virtual data set"
           : d->layout == STKI_HDF5_EXTERNAL ? "read through libhdf5, under its lock: external raw data"
           : d->odd_edges ? "read through libhdf5, under its lock: chunks at the edge are stored without filters"
                          : "read through libhdf5, under its lock: a filter that only libhdf5 supports";
}

stk_status stki_hdf5_library_reader(stki_hdf5_dataset *d, const stki_reader_opts *opts, stki_reader **out,
                                    stk_error *err)
{
    struct library_reader *r;
    stk_status status = stki_hdf5_dataset_check_sources(d, err);

    if (status == STK_OK && d->filter_missing[0]) /* fails now rather than at the first sample */
        status = stki_hdf5_dataset_read(d, NULL, NULL, NULL, 0, err);
    if (status == STK_OK)
        status = stki_hdf5_dataset_check_room(d, err);
    if (status != STK_OK)
        return status;
    r = stki_zalloc(sizeof *r);
    if (!r)
        return stki_fail_memory(err, sizeof *r, d->name);
    r->base.ops = &library_ops;
    r->dataset = stki_hdf5_dataset_retain(d);
    r->base.path = stki_strdup(d->path);
    status = r->base.path ? stki_hdf5_samples_of(d, opts, &r->samples, &r->base, err)
                          : stki_fail_memory(err, (int64_t)strlen(d->path) + 1, d->path);
    if (status == STK_OK)
        status = stki_hdf5_check_limit(d, opts, r->base.max_bytes, "one sample", err);
    if (status == STK_OK)
        status = find_stored(r, err);
    if (status != STK_OK) {
        library_destroy(&r->base);
        return status;
    }
    r->base.copies = true;
    r->base.access = "library";
    r->base.note = library_note(d);
    r->base.file_bytes = r->base.data_offset = -1;
    r->base.held_bytes = stki_hdf5_table_bytes(&r->table) + stki_hdf5_written_bytes(&r->written);
    if (d->layout == STKI_HDF5_CHUNKED && !r->samples.window && r->base.count > 0) {
        r->base.unit_length = d->grid.chunk[r->samples.axis];
        r->base.unit_count = d->grid.per[r->samples.axis];
    }
    *out = &r->base;
    return STK_OK;
}
