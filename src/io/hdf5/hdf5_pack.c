/* hdf5_pack.c: see hdf5_pack.h. A ring of places, each for one chunk: the caller fills them in turn, threads pack
 * whichever is filled and not yet taken up, the caller takes them in turn. */
#include "hdf5_pack.h"
#include "allocate.h"
#include "error.h"
#include "hdf5_filter.h"
#include "thread.h"
#include <libdeflate.h>

enum { MAX_THREADS = 64 };

enum state { FREE, FILLED, PACKING, PACKED };

struct place {
    enum state state;
    char *raw, *shuffled, *deflated;
    int64_t count; /* of deflated; 0: it would not be smaller */
};

struct stki_hdf5_packer {
    int64_t chunk_bytes, item_bytes;
    int level;
    stki_mutex lock; /* guards states, next_to_pack and stop */
    stki_cond filled, packed;
    bool stop;
    struct place *places;
    int place_count;
    int64_t submitted, next_to_pack, taken;   /* chunks so far; place of chunk n: n % place_count */
    struct libdeflate_compressor *compressor; /* of the caller's thread, without others */
    int thread_count;
    stki_thread *threads[MAX_THREADS];
};

static void pack(const stki_hdf5_packer *p, struct place *place, struct libdeflate_compressor *compressor)
{
    const char *from = place->raw;

    if (p->item_bytes > 1) {
        stki_hdf5_shuffle(place->shuffled, place->raw, p->chunk_bytes / p->item_bytes, p->item_bytes);
        from = place->shuffled;
    }
    place->count = (int64_t)libdeflate_zlib_compress(compressor, from, (size_t)p->chunk_bytes, place->deflated,
                                                     (size_t)p->chunk_bytes - 1);
}

/* ---- threads -------------------------------------------------------------------------------------------------------
 */

static struct place *next_filled(stki_hdf5_packer *p)
{
    struct place *place = NULL;

    stki_lock(&p->lock);
    while (!p->stop && p->next_to_pack == p->submitted)
        (void)stki_wait(&p->filled, &p->lock, INT64_MAX); /* submit and destroy wake it */
    if (!p->stop) {
        place = &p->places[p->next_to_pack++ % p->place_count];
        place->state = PACKING;
    }
    stki_unlock(&p->lock);
    return place;
}

static void run(void *context)
{
    stki_hdf5_packer *p = context;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(p->level);
    struct place *place;

    while ((place = next_filled(p))) {
        if (compressor)
            pack(p, place, compressor);
        else
            place->count = -1;
        stki_lock(&p->lock);
        place->state = PACKED;
        stki_wake_all(&p->packed);
        stki_unlock(&p->lock);
    }
    libdeflate_free_compressor(compressor);
}

static stk_status start(stki_hdf5_packer *p, int threads, stk_error *err)
{
    if (threads == 1) {
        p->compressor = libdeflate_alloc_compressor(p->level);
        return p->compressor ? STK_OK : stki_fail_memory(err, 1 << 20, "a compressor");
    }
    for (int i = 0; i < threads; i++) {
        stk_status status = stki_thread_start(&p->threads[i], "stoker-pack", run, p, err);

        if (status)
            return status;
        p->thread_count++;
    }
    return STK_OK;
}

/* ---- making and ending ------------------------------------------------------------------------------------------ */

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
    stk_status status;

    if (!p)
        return stki_fail_memory(err, sizeof *p, "packing chunks");
    threads = threads > MAX_THREADS ? MAX_THREADS : threads;
    p->chunk_bytes = chunk_bytes;
    p->item_bytes = item_bytes;
    p->level = level;
    stki_mutex_init(&p->lock);
    stki_cond_init(&p->filled);
    stki_cond_init(&p->packed);
    status = make_places(p, threads == 1 ? 1 : 2 * threads, err);
    if (!status)
        status = start(p, threads, err);
    if (status) {
        stki_hdf5_packer_destroy(p);
        return status;
    }
    *out = p;
    return STK_OK;
}

void stki_hdf5_packer_destroy(stki_hdf5_packer *p)
{
    if (!p)
        return;
    stki_lock(&p->lock);
    p->stop = true;
    stki_wake_all(&p->filled);
    stki_unlock(&p->lock);
    for (int i = 0; i < p->thread_count; i++)
        (void)stki_thread_join(p->threads[i], INT64_MAX); /* each ends after the chunk it has */
    for (int i = 0; i < p->place_count; i++) {
        stki_block_free(NULL, p->places[i].raw, p->chunk_bytes, 64);
        stki_block_free(NULL, p->places[i].shuffled, p->chunk_bytes, 64);
        stki_block_free(NULL, p->places[i].deflated, p->chunk_bytes, 64);
    }
    libdeflate_free_compressor(p->compressor);
    stki_cond_fini(&p->filled);
    stki_cond_fini(&p->packed);
    stki_mutex_fini(&p->lock);
    stki_free(p->places);
    stki_free(p);
}

/* ---- the caller's side ------------------------------------------------------------------------------------------ */

void *stki_hdf5_packer_room(stki_hdf5_packer *p)
{
    return p->submitted - p->taken < p->place_count ? p->places[p->submitted % p->place_count].raw : NULL;
}

void stki_hdf5_packer_submit(stki_hdf5_packer *p)
{
    struct place *place = &p->places[p->submitted % p->place_count];

    if (p->thread_count == 0) {
        pack(p, place, p->compressor);
        place->state = PACKED;
        p->submitted++;
        return;
    }
    stki_lock(&p->lock);
    place->state = FILLED;
    p->submitted++;
    stki_wake_one(&p->filled);
    stki_unlock(&p->lock);
}

stk_status stki_hdf5_packer_take(stki_hdf5_packer *p, stki_hdf5_packed *out, stk_error *err)
{
    struct place *place = &p->places[p->taken % p->place_count];

    if (p->taken == p->submitted)
        return STK_END;
    stki_lock(&p->lock);
    while (place->state != PACKED)
        (void)stki_wait(&p->packed, &p->lock, INT64_MAX); /* packing is arithmetic alone: it ends */
    place->state = FREE;
    stki_unlock(&p->lock);
    p->taken++;
    if (place->count < 0)
        return stki_fail_memory(err, 1 << 20, "a compressor");
    *out = place->count > 0
               ? (stki_hdf5_packed){place->deflated, place->count, true}
               : (stki_hdf5_packed){p->item_bytes > 1 ? place->shuffled : place->raw, p->chunk_bytes, false};
    return STK_OK;
}
