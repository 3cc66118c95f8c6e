/* hdf5_chunks.c: see hdf5_chunks.h. */
#include "hdf5_chunks.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "read_clock.h"
#include "source_common.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

enum { ALIGNMENT = 64 };

bool stki_hdf5_chunks_can(const stki_hdf5_dataset *d)
{
    return d->layout == STKI_HDF5_CHUNKED && d->type.raw && !d->live && !d->odd_edges &&
           stki_hdf5_pipeline_known(&d->pipeline);
}

/* ---- opening ---- */

static stk_status check_sizes(const stki_hdf5_dataset *d, const stki_reader_opts *opts, stk_error *err)
{
    int64_t limit = stki_memory_limit(opts);

    if (d->grid.chunk_bytes <= limit)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){d->path, -1, -1, STKI_TEXT("%" PRId64 " bytes", d->grid.chunk_bytes),
                                     STKI_TEXT("at most %" PRId64 " (memory_limit)", limit)},
                        "%s: the chunks are too large", d->name);
}

/* Returns the size of the largest stored chunk that is inside the file. */
static int64_t longest(const stki_hdf5_chunks *c)
{
    int64_t most = 0;

    for (int64_t i = 0; i < c->table.count; i++) {
        const stki_hdf5_chunk *chunk = &c->table.chunks[i];
        if (chunk->bytes > most && stki_inside(chunk->address, chunk->bytes, c->file->size))
            most = chunk->bytes;
    }
    return most;
}

static stk_status open_parts(stki_hdf5_chunks *c, stki_hdf5_dataset *d, const stki_reader_opts *opts, stk_error *err)
{
    stk_status status = STK_OK;

    c->path = stki_strdup(d->path);
    c->name = stki_strdup(d->name);
    c->fill = stki_zalloc(d->type.bytes);
    if (!c->path || !c->name || !c->fill)
        return stki_fail_memory(err, d->type.bytes + (int64_t)strlen(d->path) + (int64_t)strlen(d->name) + 2, d->name);
    memcpy(c->fill, d->fill, (size_t)d->type.bytes);
    if (!c->file)
        status = stki_file_open(d->path, opts->access, opts->pattern, &c->file, err);
    if (status == STK_OK)
        status = stki_hdf5_index_read(c->file, d->header, &c->grid, &c->table, err);
    if (status == STK_OK) {
        c->stored_room = c->file->map ? 0 : longest(c);
        status = stki_chunk_user_create(opts->cache_bytes, c->grid.chunk_bytes, &c->cache, err);
    }
    return status;
}

stk_status stki_hdf5_chunks_open(stki_hdf5_dataset *d, stki_file *file, const stki_reader_opts *opts,
                                 stki_hdf5_chunks **out, stk_error *err)
{
    stki_hdf5_chunks *c;
    int64_t stride = d->type.bytes;
    stk_status status = check_sizes(d, opts, err);

    if (status != STK_OK)
        return status;
    c = stki_zalloc(sizeof *c);
    if (!c)
        return stki_fail_memory(err, sizeof *c, d->name);
    c->file = file ? stki_file_retain(file) : NULL;
    c->grid = d->grid;
    c->pipeline = d->pipeline;
    for (int i = c->grid.ndim - 1; i >= 0; i--) {
        c->strides[i] = stride;
        stride *= c->grid.chunk[i]; /* cannot overflow, because the whole product was checked */
    }
    status = open_parts(c, d, opts, err);
    if (status != STK_OK) {
        stki_hdf5_chunks_destroy(c);
        return status;
    }
    *out = c;
    return STK_OK;
}

void stki_hdf5_chunks_destroy(stki_hdf5_chunks *c)
{
    if (!c)
        return;
    stki_chunk_user_destroy(c->cache);
    stki_hdf5_table_fini(&c->table);
    stki_file_close(c->file);
    stki_free(c->path);
    stki_free(c->name);
    stki_free(c->fill);
    stki_free(c);
}

/* ---- one chunk ---- */

static int64_t work_room(const stki_hdf5_chunks *c)
{
    return stki_round_up(stki_hdf5_pipeline_room(&c->pipeline), ALIGNMENT);
}

int64_t stki_hdf5_chunks_room(const stki_hdf5_chunks *c)
{
    return work_room(c) + c->stored_room;
}

stk_status stki_hdf5_chunks_entry(const stki_hdf5_chunks *c, int64_t number, const stki_hdf5_chunk **out,
                                  stk_error *err)
{
    const stki_hdf5_chunk *chunk = stki_hdf5_table_find(&c->table, number);

    *out = chunk;
    if (!chunk)
        return STK_OK;
    if (!stki_inside(chunk->address, chunk->bytes, c->file->size))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){c->path, -1, chunk->address, STKI_TEXT("%" PRIu32 " bytes", chunk->bytes),
                                         STKI_TEXT("a range inside the file of %" PRId64 " bytes", c->file->size)},
                            "%s: chunk %" PRId64 " is not inside the file", c->name, number);
    if (c->pipeline.count == 0 && chunk->bytes != c->grid.chunk_bytes)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){c->path, -1, chunk->address, STKI_TEXT("%" PRIu32, chunk->bytes),
                                         STKI_TEXT("%" PRId64 " bytes", c->grid.chunk_bytes)},
                            "%s: chunk %" PRId64 " has the wrong size", c->name, number);
    return STK_OK;
}

const char *stki_hdf5_chunks_mapped_entry(const stki_hdf5_chunks *c, const stki_hdf5_chunk *chunk)
{
    if (!c->file->map || chunk->bytes != c->grid.chunk_bytes ||
        !stki_inside(chunk->address, chunk->bytes, c->file->size) ||
        (c->pipeline.count > 0 && !stki_hdf5_pipeline_plain(&c->pipeline, chunk->mask)))
        return NULL;
    return (const char *)c->file->map + chunk->address;
}

const char *stki_hdf5_chunks_mapped(const stki_hdf5_chunks *c, int64_t number, bool *missing)
{
    const stki_hdf5_chunk *chunk = stki_hdf5_table_find(&c->table, number);

    *missing = !chunk;
    return chunk ? stki_hdf5_chunks_mapped_entry(c, chunk) : NULL;
}

static void fill_with(char *to, const void *item, int64_t item_bytes, int64_t count)
{
    int64_t bytes = count * item_bytes, done = item_bytes;

    if (count == 0)
        return;
    memcpy(to, item, (size_t)item_bytes);
    for (; done < bytes; done *= 2) /* doubles the filled part */
        memcpy(to + done, to, (size_t)(done < bytes - done ? done : bytes - done));
}

static void first_element(const stki_hdf5_grid *grid, int64_t number, int64_t *element)
{
    for (int i = grid->ndim - 1; i >= 0; i--) {
        element[i] = number % grid->per[i] * grid->chunk[i];
        number /= grid->per[i];
    }
}

/* Returns the size of those elements of the chunk that are inside the data set. */
static int64_t bytes_inside(const stki_hdf5_grid *grid, int64_t number)
{
    int64_t bytes = grid->item_bytes, first[STK_MAX_DIMS];

    first_element(grid, number, first);
    for (int i = 0; i < grid->ndim; i++) {
        const int64_t rest = grid->shape[i] - first[i];
        bytes *= rest < grid->chunk[i] ? rest : grid->chunk[i];
    }
    return bytes;
}

static stk_status load(const stki_hdf5_chunks *c, int64_t number, void *to, void *room, stk_error *err)
{
    const stki_hdf5_chunk *chunk;
    const char *stored;
    stk_status status, changed;

    status = stki_hdf5_chunks_entry(c, number, &chunk, err);
    if (status != STK_OK)
        return status;
    if (!chunk) {
        fill_with(to, c->fill, c->grid.item_bytes, c->grid.chunk_bytes / c->grid.item_bytes);
        return STK_OK;
    }
    if (c->pipeline.count == 0)
        return stki_file_read(c->file, chunk->address, to, chunk->bytes, err);
    if (c->file->map) {
        stored = (const char *)c->file->map + chunk->address;
    } else {
        stored = (char *)room + work_room(c);
        status = stki_file_read(c->file, chunk->address, (char *)room + work_room(c), chunk->bytes, err);
    }
    if (status != STK_OK)
        return status;
    status = stki_hdf5_decode(&c->pipeline, chunk->mask, stored, chunk->bytes, to, room, c->path, chunk->address, err);
    if (status == STK_OK && !stki_file_known_changed(c->file))
        return STK_OK;
    changed = stki_file_intact_in(c->file, &(stki_range){chunk->address, chunk->bytes}, 1, -1, err);
    return changed != STK_OK ? changed : status; /* a change of the file is an error, even if decoding succeeded */
}

stk_status stki_hdf5_chunks_load(const stki_hdf5_chunks *c, int64_t number, void *to, void *room, stk_error *err)
{
    const stk_status status = load(c, number, to, room, err);

    if (status == STK_OK && c->pipeline.count > 0)
        stki_read_unpacked(bytes_inside(&c->grid, number));
    return status;
}

struct filling {
    const stki_hdf5_chunks *chunks;
    void *room;
};

static stk_status fill_cache(const void *context, int64_t number, void *to, stk_error *err)
{
    const struct filling *filling = context;

    return stki_hdf5_chunks_load(filling->chunks, number, to, filling->room, err);
}

stk_status stki_hdf5_chunks_get(const stki_hdf5_chunks *c, int64_t number, int64_t uses, void *room, stk_storage **out,
                                stk_error *err)
{
    struct filling filling = {c, room};

    return stki_chunk_get(c->cache, number, uses, fill_cache, &filling, c->path, out, err);
}

/* ---- boxes that span several chunks ---- */

int64_t stki_hdf5_chunks_read_room(const stki_hdf5_chunks *c)
{
    return stki_round_up(c->grid.chunk_bytes, ALIGNMENT) + stki_hdf5_chunks_room(c);
}

struct box {
    const stki_hdf5_chunks *chunks;
    const int64_t *start, *length;
    int64_t strides[STK_MAX_DIMS];                                     /* strides of the result */
    int64_t first[STK_MAX_DIMS], last[STK_MAX_DIMS], at[STK_MAX_DIMS]; /* chunks along each axis; current chunk */
    char *to;
};

/* Copies the intersection of the box with one chunk. Items whose size is not that of a dtype are copied as bytes along
 * an additional axis. `strides` are those of `from`; they are 0 for a fill value. */
static void copy_part(const struct box *b, const char *from, const int64_t *strides)
{
    const stki_hdf5_grid *grid = &b->chunks->grid;
    int64_t shape[STK_MAX_DIMS], to_strides[STK_MAX_DIMS], from_strides[STK_MAX_DIMS], to = 0, item = grid->item_bytes;
    stk_dtype dtype = item == 2 ? STK_U16 : item == 4 ? STK_U32 : item == 8 ? STK_U64 : item == 16 ? STK_C128 : STK_U8;
    int ndim = grid->ndim;

    for (int i = 0; i < ndim; i++) {
        int64_t chunk_start = b->at[i] * grid->chunk[i], chunk_end = chunk_start + grid->chunk[i];
        int64_t begin = b->start[i] > chunk_start ? b->start[i] : chunk_start;
        int64_t end = b->start[i] + b->length[i];

        end = end < chunk_end ? end : chunk_end;
        shape[i] = end - begin;
        from += (begin - chunk_start) * strides[i];
        to += (begin - b->start[i]) * b->strides[i];
        to_strides[i] = b->strides[i];
        from_strides[i] = strides[i];
    }
    if (item > 1 && dtype == STK_U8) {
        shape[ndim] = item;
        to_strides[ndim] = from_strides[ndim] = 1;
        ndim++;
    }
    stki_copy_strided(b->to + to, dtype, to_strides, from, dtype, from_strides, false, ndim, shape);
}

static int64_t chunk_number(const struct box *b)
{
    int64_t number = 0;

    for (int i = 0; i < b->chunks->grid.ndim; i++)
        number = number * b->chunks->grid.per[i] + b->at[i];
    return number;
}

/* Returns the number of times that one pass over the data set reads from a chunk. */
static int64_t uses_of(const struct box *b)
{
    int64_t uses = 1;

    for (int i = 0; i < b->chunks->grid.ndim; i++)
        if (b->length[i] < b->chunks->grid.chunk[i] && b->length[i] > 0) {
            int64_t parts = b->chunks->grid.chunk[i] / b->length[i];
            uses = parts < INT64_MAX / uses ? uses * parts : INT64_MAX;
        }
    return uses;
}

static stk_status read_part(const struct box *b, bool cached, char *scratch, stk_error *err)
{
    static const int64_t still[STK_MAX_DIMS] = {0};
    const stki_hdf5_chunks *c = b->chunks;
    int64_t number = chunk_number(b);
    char *room = scratch + stki_round_up(c->grid.chunk_bytes, ALIGNMENT);
    stk_storage *kept = NULL;
    bool missing;
    const char *from = stki_hdf5_chunks_mapped(c, number, &missing);
    stk_status status = STK_AGAIN;

    if (from || missing) {
        copy_part(b, missing ? c->fill : from, missing ? still : c->strides);
        return STK_OK;
    }
    if (cached)
        status = stki_hdf5_chunks_get(c, number, uses_of(b), room, &kept, err);
    if (status == STK_AGAIN) {
        status = stki_hdf5_chunks_load(c, number, scratch, room, err);
        stki_count((stki_counter *)(uintptr_t)&c->direct, 1);
    }
    if (status != STK_OK)
        return status;
    copy_part(b, kept ? stk_storage_data(kept) : scratch, c->strides);
    stk_storage_release(kept);
    return STK_OK;
}

/* Reads a box that spans more chunks than are stored: writes fill values everywhere, then reads the stored chunks
 * inside. */
static stk_status read_stored(struct box *b, int64_t items, bool cached, char *scratch, stk_error *err)
{
    const stki_hdf5_chunks *c = b->chunks;
    stk_status status = STK_OK;

    fill_with(b->to, c->fill, c->grid.item_bytes, items);
    for (int64_t i = 0; i < c->table.count && status == STK_OK; i++) {
        int64_t number = c->table.chunks[i].number;
        bool inside = true;

        for (int axis = c->grid.ndim - 1; axis >= 0; axis--) {
            b->at[axis] = number % c->grid.per[axis];
            number /= c->grid.per[axis];
            inside = inside && b->at[axis] >= b->first[axis] && b->at[axis] <= b->last[axis];
        }
        if (inside)
            status = read_part(b, cached, scratch, err);
    }
    return status;
}

stk_status stki_hdf5_chunks_read(const stki_hdf5_chunks *c, const int64_t *start, const int64_t *length, bool cached,
                                 void *to, void *scratch, stk_error *err)
{
    struct box b = {.chunks = c, .start = start, .length = length, .to = to};
    int64_t stride = c->grid.item_bytes, spanned = 1;
    int axis;

    for (int i = c->grid.ndim - 1; i >= 0; i--) {
        if (length[i] == 0)
            return STK_OK;
        b.strides[i] = stride;
        stride *= length[i];
        b.first[i] = b.at[i] = start[i] / c->grid.chunk[i];
        b.last[i] = (start[i] + length[i] - 1) / c->grid.chunk[i];
        spanned *= b.last[i] - b.first[i] + 1;
    }
    if (spanned > c->table.count)
        return read_stored(&b, stride / c->grid.item_bytes, cached, scratch, err);
    do {
        stk_status status = read_part(&b, cached, scratch, err);

        if (status != STK_OK)
            return status;
        for (axis = c->grid.ndim - 1; axis >= 0; axis--) {
            if (++b.at[axis] <= b.last[axis])
                break;
            b.at[axis] = b.first[axis];
        }
    } while (axis >= 0);
    return STK_OK;
}
