/* hdf5_chunked.c: samples of a chunked data set. There are two cases.
 *
 * Samples in one chunk: chunks span all axes except that of the samples, so no sample crosses a chunk boundary. A
 * sample is a view of the mapping if the chunk is stored unfiltered, otherwise of the decoded chunk in the cache, which
 * it keeps alive. A chunk that contains a single sample is decoded into the worker's memory, because no other sample
 * needs it.
 *
 * Samples in several chunks: a sample is gathered from its chunks into the worker's memory.
 *
 * All samples of a reader have the same strides: those of a chunk or those of a packed sample. */
#include "allocate.h"
#include "checked.h"
#include "clock.h"
#include "error.h"
#include "hdf5_chunks.h"
#include "hdf5_reader.h"
#include "read_clock.h"
#include <inttypes.h>
#include <string.h>

enum { ALIGNMENT = 64, MOST_PINNED = 1 << 20 /* larger chunks are not pinned */ };

struct chunked {
    stki_reader base; /* first member */
    stki_hdf5_chunks *chunks;
    stki_hdf5_samples samples;
    stki_hdf5_written written;
    stk_tensor sample; /* describes every sample, except for its address */
    int64_t span;      /* in one chunk: bytes spanned by a sample */
    int64_t uses;      /* samples per chunk */
    bool cached;       /* chunks are decoded into the cache */
    char *fill;        /* in one chunk: `span` bytes of fill values, for samples that were never written */
    char *note;
    const void **unit_base; /* in one chunk, if all chunks are mapped: address of each chunk */
};

static const struct chunked *chunked_of(const stki_reader *base)
{
    return (const struct chunked *)(const void *)base;
}

static void count_wanted(const struct chunked *r)
{
    if (r->chunks->pipeline.count > 0)
        stki_read_wanted(r->base.max_bytes);
}

/* ---- in one chunk ---- */

/* Reads only the sample's bytes of an unfiltered chunk, with pread. */
static stk_status read_plain(const struct chunked *r, const stki_hdf5_chunk *chunk, int64_t within,
                             stki_scratch *scratch, const char **data, stk_error *err)
{
    stk_status status = stki_scratch_reserve(scratch, r->span, err);

    if (status == STK_OK)
        status = stki_file_read(r->chunks->file, chunk->address + within, scratch->data, r->span, err);
    *data = scratch->data;
    return status;
}

static stk_status read_decoded(const struct chunked *r, int64_t number, int64_t within, stki_scratch *scratch,
                               const char **data, stk_storage **kept, stk_error *err)
{
    const stki_hdf5_chunks *c = r->chunks;
    int64_t room = stki_round_up(c->grid.chunk_bytes, ALIGNMENT);
    stk_status status = stki_scratch_reserve(scratch, room + stki_hdf5_chunks_room(c), err);

    if (status != STK_OK)
        return status;
    count_wanted(r);
    if (r->cached) {
        status = stki_hdf5_chunks_get(c, number, r->uses, (char *)scratch->data + room, kept, err);
        if (status == STK_OK)
            *data = (const char *)stk_storage_data(*kept) + within;
        if (status != STK_AGAIN)
            return status;
    }
    status = stki_hdf5_chunks_load(c, number, scratch->data, (char *)scratch->data + room, err);
    stki_count((stki_counter *)(uintptr_t)&c->direct, 1);
    *data = (const char *)scratch->data + within;
    return status;
}

static stk_status read_in_one(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct chunked *r = chunked_of(base);
    const stki_hdf5_chunks *c = r->chunks;
    int64_t chunk_length = c->grid.chunk[r->samples.axis], first, number, within;
    const stki_hdf5_chunk *chunk = NULL;
    const char *data;
    stk_storage *kept = NULL;
    bool missing;
    stk_status status = STK_OK;

    (void)want;
    if (index < 0 || index >= base->count)
        return stki_reader_check_index(base, index, err);
    first = index * r->samples.step;
    number = first / chunk_length;
    within = first % chunk_length * c->strides[r->samples.axis];
    data = stki_hdf5_chunks_mapped(c, number, &missing);
    if (data) {
        data += within;
    } else if (missing) {
        data = r->fill;
    } else {
        status = stki_hdf5_chunks_entry(c, number, &chunk, err);
        if (status == STK_OK && chunk && stki_hdf5_pipeline_plain(&c->pipeline, chunk->mask) &&
            chunk->bytes == c->grid.chunk_bytes)
            status = read_plain(r, chunk, within, scratch, &data, err);
        else if (status == STK_OK)
            status = read_decoded(r, number, within, scratch, &data, &kept, err);
    }
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    *out = r->sample;
    out->data = (void *)(uintptr_t)data;
    out->storage = kept;
    return STK_OK;
}

/* Pins the cached chunk of a row. Returns only an address, which is cheaper than a tensor per row. */
static stk_status pin_in_one(const stki_reader *base, int64_t index, stki_scratch *scratch, const char **address,
                             stk_storage **kept, stk_error *err)
{
    const struct chunked *r = chunked_of(base);
    const stki_hdf5_chunks *c = r->chunks;
    int64_t chunk_length = c->grid.chunk[r->samples.axis], first, number, within;
    const stki_hdf5_chunk *chunk;
    bool missing;
    stk_status status;

    if (index < 0 || index >= base->count)
        return stki_reader_check_index(base, index, err);
    first = index * r->samples.step;
    number = first / chunk_length;
    within = first % chunk_length * c->strides[r->samples.axis];
    if (stki_hdf5_chunks_mapped(c, number, &missing) || missing)
        return STK_AGAIN;
    status = stki_hdf5_chunks_entry(c, number, &chunk, err);
    if (status == STK_OK && chunk && stki_hdf5_pipeline_plain(&c->pipeline, chunk->mask))
        return STK_AGAIN;
    if (status == STK_OK)
        status = stki_scratch_reserve(scratch, stki_hdf5_chunks_room(c), err);
    if (status == STK_OK)
        status = stki_hdf5_chunks_get(c, number, r->uses, scratch->data, kept, err);
    if (status == STK_OK) {
        count_wanted(r);
        *address = (const char *)stk_storage_data(*kept) + within;
    }
    return stki_fail_record(err, status, index);
}

/* ---- in several chunks ---- */

static stk_status read_gathered(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                stk_tensor *out, stk_error *err)
{
    const struct chunked *r = chunked_of(base);
    int64_t start[STK_MAX_DIMS] = {0}, room = stki_round_up(base->max_bytes, ALIGNMENT);
    stk_status status;

    (void)want;
    if (index < 0 || index >= base->count)
        return stki_reader_check_index(base, index, err);
    start[r->samples.axis] = index * r->samples.step;
    status = stki_scratch_reserve(scratch, room + stki_hdf5_chunks_read_room(r->chunks), err);
    if (status == STK_OK)
        status = stki_hdf5_chunks_read(r->chunks, start, r->samples.length, r->cached, scratch->data,
                                       (char *)scratch->data + room, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    count_wanted(r);
    *out = r->sample;
    out->data = scratch->data;
    return STK_OK;
}

/* ---- prefetching ---- */

static const stki_hdf5_chunk *band_of(const struct chunked *r, int64_t index, int64_t *band)
{
    const stki_hdf5_grid *grid = &r->chunks->grid;
    int64_t number;

    *band = index * r->samples.step / grid->chunk[r->samples.axis];
    number = *band;
    for (int i = r->samples.axis + 1; i < grid->ndim; i++)
        number *= grid->per[i];
    return stki_hdf5_table_find(&r->chunks->table, number);
}

/* Of the chunks that a sample spans, only the first one is prefetched. */
static void chunked_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct chunked *r = chunked_of(base);
    stki_file *file = r->chunks->file;
    int64_t now = stki_now_ns(), band, last = -1;
    const stki_hdf5_chunk *chunk;

    if (count <= 0 || !stki_residency_due(&file->residency, now))
        return;
    chunk = band_of(r, indices[now % count], &band);
    if (!stki_residency_found(&file->residency, !chunk || stki_file_resident(file, chunk->address, chunk->bytes), now))
        return;
    for (int64_t i = 0; i < count; i++) {
        chunk = band_of(r, indices[i], &band);
        if (chunk && band != last)
            stki_file_advise(file, chunk->address, chunk->bytes);
        last = band;
    }
}

/* Returns no ranges for samples along an axis other than 0, unless there is only one chunk. */
static int chunked_place(const stki_reader *base, int64_t index, stki_range *out)
{
    const struct chunked *r = chunked_of(base);
    const stki_hdf5_grid *grid = &r->chunks->grid;
    const int64_t first = index * r->samples.step, last = first + r->samples.length[r->samples.axis] - 1;
    int64_t side = 1;
    int count = 0;

    for (int i = 1; i < grid->ndim; i++)
        side *= grid->per[i];
    if (r->samples.axis != 0 && side * grid->per[0] > 1)
        return 0;
    for (int64_t number = first / grid->chunk[0] * side; number < (last / grid->chunk[0] + 1) * side; number++) {
        const stki_hdf5_chunk *chunk = stki_hdf5_table_find(&r->chunks->table, number);

        if (count == STKI_PLACES)
            return 0;
        out[count++] = chunk ? (stki_range){chunk->address, chunk->bytes} : (stki_range){0, 0};
    }
    return count;
}

/* ---- chunks that were never written, or cannot be decoded ---- */

static int64_t chunked_filled_until(const stki_reader *base, int64_t index)
{
    const struct chunked *r = chunked_of(base);

    return stki_hdf5_filled_until(&r->samples, &r->written, index);
}

static int64_t chunked_fails_until(const stki_reader *base, int64_t index)
{
    return stki_hdf5_band_end(&chunked_of(base)->samples, &chunked_of(base)->chunks->grid, index);
}

/* ---- opening ---- */

static void chunked_destroy(stki_reader *base)
{
    struct chunked *r = (struct chunked *)(void *)base;

    stki_hdf5_chunks_destroy(r->chunks);
    stki_hdf5_written_fini(&r->written);
    stki_free(r->fill);
    stki_free(r->unit_base);
    stki_free(r->note);
    stki_free(base->path);
    stki_free(r);
}

static const stki_reader_ops in_one_ops = {.format = "hdf5",
                                           .read = read_in_one,
                                           .will_need = chunked_will_need,
                                           .filled_until = chunked_filled_until,
                                           .fails_until = chunked_fails_until,
                                           .destroy = chunked_destroy};
static const stki_reader_ops pinned_ops = {.format = "hdf5",
                                           .read = read_in_one,
                                           .pin = pin_in_one,
                                           .will_need = chunked_will_need,
                                           .filled_until = chunked_filled_until,
                                           .fails_until = chunked_fails_until,
                                           .destroy = chunked_destroy};
static const stki_reader_ops gathered_ops = {.format = "hdf5",
                                             .read = read_gathered,
                                             .will_need = chunked_will_need,
                                             .filled_until = chunked_filled_until,
                                             .fails_until = chunked_fails_until,
                                             .destroy = chunked_destroy};

static bool fits_in_one(const struct chunked *r)
{
    const stki_hdf5_grid *grid = &r->chunks->grid;
    int axis = r->samples.axis;

    for (int i = 0; i < grid->ndim; i++)
        if (i != axis && grid->per[i] != 1)
            return false;
    if (!r->samples.window || grid->per[axis] <= 1)
        return true;
    return r->samples.length[axis] <= r->samples.step && grid->chunk[axis] % r->samples.step == 0;
}

/* Sets the strides to those of a chunk and creates a sample of fill values. */
static stk_status describe_in_one(struct chunked *r, const stki_hdf5_dataset *d, stk_error *err)
{
    const stki_hdf5_chunks *c = r->chunks;
    int64_t inner = d->type.bytes, item = c->grid.item_bytes;
    int axis = 0;

    r->span = item;
    for (int i = 0; i < d->rank; i++) {
        r->span += (r->samples.length[i] - 1) * c->strides[i];
        if (i != r->samples.axis || r->samples.window)
            r->base.strides[axis++] = c->strides[i];
    }
    for (int i = 0; i < d->type.inner_ndim; i++) {
        inner /= d->type.inner[i];
        r->base.strides[axis++] = inner;
    }
    r->fill = stki_zalloc(r->span);
    if (!r->fill)
        return stki_fail_memory(err, r->span, "a fill value");
    for (int64_t at = 0; at + item <= r->span; at += item)
        memcpy(r->fill + at, c->fill, (size_t)item);
    return STK_OK;
}

/* Checks whether all stored chunks are views of the mapping. If, in addition, no chunk is missing, sets the addresses
 * for the fast path. */
static stk_status find_addresses(struct chunked *r, bool one, bool *mapped, stk_error *err)
{
    const stki_hdf5_chunks *c = r->chunks;
    bool wanted = one && !r->samples.window && c->table.count == c->grid.count;

    *mapped = c->file->map;
    if (!*mapped || !wanted) {
        for (int64_t i = 0; *mapped && i < c->table.count; i++)
            *mapped = stki_hdf5_chunks_mapped_entry(c, &c->table.chunks[i]) != NULL;
        return STK_OK;
    }
    r->unit_base = stki_zalloc_array(c->grid.count, sizeof *r->unit_base);
    if (!r->unit_base)
        return stki_fail_memory(err, c->grid.count * (int64_t)sizeof *r->unit_base, "addresses of chunks");
    for (int64_t i = 0; *mapped && i < c->table.count; i++)
        *mapped = (r->unit_base[i] = stki_hdf5_chunks_mapped_entry(c, &c->table.chunks[i])) != NULL;
    if (*mapped) {
        r->base.unit_base = r->unit_base;
        r->base.sample_stride = c->strides[r->samples.axis];
    }
    return STK_OK;
}

static void describe_units(struct chunked *r)
{
    const stki_hdf5_grid *grid = &r->chunks->grid;
    int axis = r->samples.axis;

    if (r->base.count == 0 || grid->chunk[axis] % r->samples.step != 0)
        return;
    r->base.unit_length = grid->chunk[axis] / r->samples.step;
    r->base.unit_count = (r->base.count + r->base.unit_length - 1) / r->base.unit_length;
}

/* Warns that random order decodes a whole chunk for each sample unless all chunks fit in the cache. */
static stk_status warn_of_amplification(struct chunked *r, const stki_reader_opts *opts, bool mapped, stk_error *err)
{
    const stki_hdf5_grid *grid = &r->chunks->grid;
    int64_t budget = opts->cache_bytes > 0 ? opts->cache_bytes : INT64_C(64) << 20, total;

    if (opts->pattern != STKI_PATTERN_RANDOM || opts->by_units || mapped || r->base.unit_length <= 1 ||
        (stki_mul(grid->count, grid->chunk_bytes, &total) && total <= budget))
        return STK_OK;
    r->note = stki_format("random order over chunks of %" PRId64 " samples decodes up to %" PRId64
                          " times the data it delivers, because the cache holds only %" PRId64
                          " bytes of chunks (cache_bytes); order: block decodes each chunk once",
                          r->base.unit_length, r->base.unit_length, budget);
    r->base.note = r->note;
    return r->note ? STK_OK : stki_fail_memory(err, 160, "a note");
}

static stk_status describe(struct chunked *r, const stki_hdf5_dataset *d, const stki_reader_opts *opts, stk_error *err)
{
    stki_reader *base = &r->base;
    const stki_hdf5_chunks *c = r->chunks;
    bool one, mapped;
    stk_status status;

    base->access = c->file->access;
    base->note = c->file->note;
    base->file_bytes = c->file->size;
    base->file = c->file;
    base->place = chunked_place;
    base->placer = base;
    base->data_offset = -1;
    one = base->max_bytes > 0 && base->count > 0 && fits_in_one(r);
    status = one ? STK_OK : stki_hdf5_check_limit(d, opts, base->max_bytes, "one sample", err);
    if (status == STK_OK)
        status = find_addresses(r, one, &mapped, err);
    if (status != STK_OK)
        return status;
    base->ops = one ? &in_one_ops : &gathered_ops;
    r->uses = c->grid.chunk[r->samples.axis] / r->samples.step;
    r->cached = !one || r->uses > 1;
    /* Pinned chunks are not limited by the budget, so large ones are not pinned. */
    if (one && r->cached && c->grid.chunk_bytes <= MOST_PINNED)
        base->ops = &pinned_ops;
    base->copies = !(one && mapped);
    if (one)
        status = describe_in_one(r, d, err);
    describe_units(r);
    if (status == STK_OK)
        status = warn_of_amplification(r, opts, mapped, err);
    r->sample = (stk_tensor){.dtype = base->dtype,
                             .ndim = base->ndim,
                             .flags = STK_TENSOR_READONLY | (base->swapped ? STK_TENSOR_SWAPPED : 0)};
    memcpy(r->sample.shape, base->shape, sizeof base->shape);
    memcpy(r->sample.strides, base->strides, sizeof base->strides);
    return status;
}

stk_status stki_hdf5_chunked_reader(stki_hdf5_dataset *d, const stki_reader_opts *opts, stki_reader **out,
                                    stk_error *err)
{
    struct chunked *r = stki_zalloc(sizeof *r);
    stk_status status;

    if (!r)
        return stki_fail_memory(err, sizeof *r, d->name);
    r->base.path = stki_strdup(d->path);
    status = r->base.path ? stki_hdf5_samples_of(d, opts, &r->samples, &r->base, err)
                          : stki_fail_memory(err, (int64_t)strlen(d->path) + 1, d->path);
    if (status == STK_OK)
        status = stki_hdf5_chunks_open(d, NULL, opts, &r->chunks, err);
    if (status == STK_OK)
        status = stki_hdf5_written_of(&r->chunks->table, &r->chunks->grid, r->samples.axis, &r->written, err);
    if (status == STK_OK && !r->written.all)
        (void)stki_mul(r->chunks->table.count, r->chunks->grid.chunk_bytes, &r->base.stored_bytes);
    if (status == STK_OK)
        status = describe(r, d, opts, err);
    if (status == STK_OK)
        r->base.held_bytes = stki_hdf5_table_bytes(&r->chunks->table) + stki_hdf5_written_bytes(&r->written) +
                             (r->unit_base ? r->chunks->grid.count * (int64_t)sizeof *r->unit_base : 0);
    if (status != STK_OK) {
        chunked_destroy(&r->base);
        return status;
    }
    *out = &r->base;
    return STK_OK;
}

bool stki_hdf5_reader_counts(const stki_reader *reader, stki_hdf5_counts *out)
{
    const stki_hdf5_chunks *c;

    if (reader->ops != &in_one_ops && reader->ops != &pinned_ops && reader->ops != &gathered_ops)
        return false;
    c = chunked_of(reader)->chunks;
    *out = (stki_hdf5_counts){.direct = stki_counted(&c->direct)};
    stki_chunk_read_counts(c->cache, &out->cache);
    return true;
}
