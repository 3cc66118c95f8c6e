/* hdf5_pack.c: see hdf5_pack.h. Chunks are kept in a circular buffer: the caller fills them in order, a thread pool
 * compresses them, and the caller retrieves them in order. */
#include "hdf5_pack.h"
#include "allocate.h"
#include "error.h"
#include "hdf5_filter.h"
#include "thread_pool.h"
#include <libdeflate.h>

enum { MAX_THREADS = 64 };

struct place {
    char *raw, *shuffled, *deflated;
    int64_t count; /* deflated size; 0: deflate does not make the chunk smaller, so it is stored without deflate */
};

struct stki_hdf5_packer {
    int64_t chunk_bytes, item_bytes;
    int level;
    struct place *places;
    int place_count, worker_count;
    int64_t submitted;                          /* number of chunks submitted so far; chunk n is at n % place_count */
    struct libdeflate_compressor **compressors; /* one per worker, created at its first chunk */
    stki_thread_pool *pool;
};

static stk_status pack(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    stki_hdf5_packer *p = context;
    struct place *place = task;
    const char *from = place->raw;

    (void)part;
    if (!p->compressors[worker])
        p->compressors[worker] = libdeflate_alloc_compressor(p->level);
    if (!p->compressors[worker])
        return stki_fail_memory(err, 1 << 20, "a compressor");
    if (p->item_bytes > 1) {
        stki_hdf5_shuffle(place->shuffled, place->raw, p->chunk_bytes / p->item_bytes, p->item_bytes);
        from = place->shuffled;
    }
    place->count = (int64_t)libdeflate_zlib_compress(p->compressors[worker], from, (size_t)p->chunk_bytes,
                                                     place->deflated, (size_t)p->chunk_bytes - 1);
    return STK_OK;
}

/* ---- create and destroy ---- */

static stk_status make_places(stki_hdf5_packer *p, int count, stk_error *err)
{
    p->places = stki_zalloc_array(count, sizeof *p->places);
    if (!p->places)
        return stki_fail_memory(err, count * (int64_t)sizeof *p->places, "chunks to pack");
    p->place_count = count;
    for (int i = 0; i < count; i++) {
        p->places[i].raw = stki_block_alloc(NULL, p->chunk_bytes, 64);
        p->places[i].shuffled = stki_block_alloc(NULL, p->chunk_bytes, 64);
        p->places[i].deflated = stki_block_alloc(NULL, p->chunk_bytes, 64);
        if (!p->places[i].raw || !p->places[i].shuffled || !p->places[i].deflated)
            return stki_fail_memory(err, 3 * p->chunk_bytes, "a chunk to pack");
    }
    return STK_OK;
}

stk_status stki_hdf5_packer_create(int64_t chunk_bytes, int64_t item_bytes, int level, int threads,
                                   stki_hdf5_packer **out, stk_error *err)
{
    stki_hdf5_packer *p = stki_zalloc(sizeof *p);
    stki_thread_pool_opts opts = {.name = "stoker-pack", .run = pack, .context = p};
    stk_status status;

    if (!p)
        return stki_fail_memory(err, sizeof *p, "packing chunks");
    opts.threads = threads == 1 ? 0 : threads > MAX_THREADS ? MAX_THREADS : threads;
    opts.depth = threads == 1 ? 1 : 2 * opts.threads;
    p->chunk_bytes = chunk_bytes;
    p->item_bytes = item_bytes;
    p->level = level;
    p->worker_count = opts.threads + 1;
    p->compressors = stki_zalloc_array(p->worker_count, sizeof *p->compressors);
    status = p->compressors ? make_places(p, opts.depth, err) : stki_fail_memory(err, 1024, "packing chunks");
    if (status == STK_OK)
        status = stki_thread_pool_create(&opts, &p->pool, err);
    if (status == STK_OK)
        *out = p;
    else
        stki_hdf5_packer_destroy(p);
    return status;
}

void stki_hdf5_packer_destroy(stki_hdf5_packer *p)
{
    if (!p)
        return;
    stki_thread_pool_destroy(p->pool);
    for (int i = 0; i < p->place_count; i++) {
        stki_block_free(NULL, p->places[i].raw, p->chunk_bytes, 64);
        stki_block_free(NULL, p->places[i].shuffled, p->chunk_bytes, 64);
        stki_block_free(NULL, p->places[i].deflated, p->chunk_bytes, 64);
    }
    for (int i = 0; p->compressors && i < p->worker_count; i++)
        libdeflate_free_compressor(p->compressors[i]);
    stki_free(p->compressors);
    stki_free(p->places);
    stki_free(p);
}

/* ---- the caller's side ---- */

void *stki_hdf5_packer_room(stki_hdf5_packer *p)
{
    return stki_thread_pool_has_room(p->pool) ? p->places[p->submitted % p->place_count].raw : NULL;
}

stk_status stki_hdf5_packer_submit(stki_hdf5_packer *p, stk_error *err)
{
    return stki_thread_pool_submit(p->pool, &p->places[p->submitted++ % p->place_count], 1, err);
}

stk_status stki_hdf5_packer_take(stki_hdf5_packer *p, stki_hdf5_packed *out, stk_error *err)
{
    void *task;
    const struct place *place;
    stk_status status = stki_thread_pool_next(p->pool, INT64_MAX, &task, err);

    if (status != STK_OK)
        return status;
    place = task;
    *out = place->count > 0
               ? (stki_hdf5_packed){place->deflated, place->count, true}
               : (stki_hdf5_packed){p->item_bytes > 1 ? place->shuffled : place->raw, p->chunk_bytes, false};
    return STK_OK;
}
