/* caching_pool.c: see caching_pool.h. Implements the functions of the pool's table. The driver allocates and frees
 * outside the lock, so that a slow driver does not block threads whose memory is in the cache. */
#include "caching_pool.h"
#include "allocate.h"
#include "caching_pool_internal.h"
#include "clock.h"
#include "error.h"
#include <inttypes.h>

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)

enum { FIRST_SLEEP_NS = 20000, LONGEST_SLEEP_NS = 1000000 };
#define PATIENCE_NS (10 * STKI_SECOND)

static const stki_pool_rules device_rules = {
    .small_limit = MIB,
    .small_segment = 2 * MIB,
    .medium_limit = 10 * MIB,
    .medium_segment = 20 * MIB,
    .large_step = 2 * MIB,
};

static const stki_pool_rules pinned_rules = {.small_limit = MIB, .small_segment = 2 * MIB, .large_step = 4 * KIB};

/* ---- the driver ---- */

static void driver_free(stki_caching_pool *pool, void *memory, int64_t bytes)
{
    stk_device *device = pool->base.device;

    (pool->base.kind == STK_MEMORY_PINNED ? device->ops->free_pinned : device->ops->free)(device, memory, bytes);
}

/* Releases the lock and returns to the driver the segments that were removed from the pool while it was held. */
static void unlock(stki_caching_pool *pool)
{
    stki_pool_segment *leaving = pool->leaving;

    pool->leaving = NULL;
    stki_unlock(&pool->lock);
    while (leaving) {
        stki_pool_segment *next = leaving->next;
        driver_free(pool, leaving->address, leaving->bytes);
        stki_free(leaving);
        leaving = next;
    }
}

/* Allocates a new segment from the driver and takes the request's block from it. */
static stk_status grow_by_segment(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                                  stki_pool_block **out, stk_error *reason)
{
    stk_device *device = pool->base.device;
    bool pinned = pool->base.kind == STK_MEMORY_PINNED;
    void *memory = NULL;
    stk_status status =
        (pinned ? device->ops->alloc_pinned : device->ops->alloc)(device, request->segment_bytes, &memory, reason);

    if (status != STK_OK)
        return status;
    stki_lock(&pool->lock);
    *out = stki_pool_adopt(pool, request, segment, memory);
    unlock(pool);
    return STK_OK;
}

/* ---- out of memory ---- */

/* Whether the owner's stream may still use freed memory. Not every driver waits for such use to end when memory is
 * returned to it. */
static bool is_busy(stki_caching_pool *pool, const void *owner)
{
    stk_error err = {0};
    stk_status status;

    if (!owner || owner == &stki_pool_unowned)
        return false;
    for (const stki_pool_queue *queue = pool->queues; queue; queue = queue->next)
        if (owner == queue)
            return true;
    status = stk_stream_query((stk_stream *)(uintptr_t)owner, &err);
    stki_pool_note_error(pool, "querying a stream whose memory is being returned to the driver", status, &err);
    return status == STK_AGAIN;
}

/* Removes all segments that are entirely free. *pending is set if a stream may still use one. Returns their number. */
static int64_t drop_cache(stki_caching_pool *pool, bool *pending)
{
    int64_t left = 0;

    for (stki_pool_segment *segment = pool->segments, *next; segment; segment = next) {
        next = segment->next;
        if (!stki_pool_whole(segment))
            continue;
        if (is_busy(pool, segment->owner)) {
            *pending = true;
            continue;
        }
        stki_pool_detach(pool, segment);
        left++;
    }
    return left;
}

/* Called if the driver is out of memory: uses blocks that have become free in the meantime, or returns free segments to
 * the driver and tries again, waiting for streams if necessary. STK_E_MEMORY: there is still no memory. */
static stk_status make_room(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                            stki_pool_block **out, stk_error *reason)
{
    int64_t deadline = stki_deadline_ns(stki_counted(&pool->patience_ns)), sleep_ns = FIRST_SLEEP_NS;

    for (bool first = true;; first = false) {
        int64_t dropped = 0;
        bool pending;

        stki_lock(&pool->lock);
        pool->stats.retries += first;
        pending = stki_pool_process(pool);
        *out = request->class == STKI_POOL_EXACT ? NULL : stki_pool_take(pool, request, stki_pool_use_add);
        if (!*out)
            dropped = drop_cache(pool, &pending);
        unlock(pool);
        if (*out)
            return STK_OK;
        if (dropped > 0) {
            stk_status status = grow_by_segment(pool, request, segment, out, reason);
            if (status != STK_E_MEMORY)
                return status;
        } else {
            if (!pending || stki_now_ns() >= deadline)
                return STK_E_MEMORY;
            stki_sleep_ns(sleep_ns);
            sleep_ns = sleep_ns * 2 < LONGEST_SLEEP_NS ? sleep_ns * 2 : LONGEST_SLEEP_NS;
        }
    }
}

/* Allocates a block from the driver, because the cache has none. */
static stk_status grow(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_block **out, stk_error *err)
{
    stki_pool_segment *segment = stki_zalloc(sizeof *segment);
    stk_error reason = {0};
    stk_status status;

    if (!segment)
        return stki_fail_memory(err, sizeof *segment, "the bookkeeping of a memory pool");
    status = grow_by_segment(pool, request, segment, out, &reason);
    if (status == STK_E_MEMORY)
        status = make_room(pool, request, segment, out, &reason);
    if (status != STK_OK || (*out)->segment != segment)
        stki_free(segment);
    if (status == STK_E_MEMORY)
        return stki_pool_fail_memory(pool, request, reason.message, err);
    if (status != STK_OK && err)
        *err = reason;
    return status;
}

/* ---- the table ---- */

static stk_status pool_alloc(stki_pool *base, int64_t bytes, stk_stream *stream, void **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_pool_request request;
    stki_pool_block *block;
    stk_status status = STK_OK;

    if (!stki_pool_request_init(pool, bytes, stream, &request))
        return bytes < 0 ? stki_fail(err, STK_E_BAD_ARG, "invalid block size: %" PRId64 " bytes", bytes)
                         : stki_pool_fail_memory(pool, &request, "no device has that much memory", err);
    stki_lock(&pool->lock);
    (void)stki_pool_process(pool);
    block = stki_pool_take(pool, &request, stki_pool_use_add);
    unlock(pool);
    if (!block)
        status = grow(pool, &request, &block, err);
    if (status == STK_OK)
        *out = block->address;
    return status;
}

static stk_status pool_alloc_exact(stki_pool *base, int64_t bytes, void **out, stk_error *err)
{
    int64_t size = bytes ? bytes : 1;
    stki_pool_request request = {
        .asked_bytes = bytes, .block_bytes = size, .segment_bytes = size, .class = STKI_POOL_EXACT};
    stki_pool_block *block;
    stk_status status;

    if (bytes < 0)
        return stki_fail(err, STK_E_BAD_ARG, "invalid block size: %" PRId64 " bytes", bytes);
    status = grow(stki_caching_pool_of(base), &request, &block, err);
    if (status == STK_OK)
        *out = block->address;
    return status;
}

static void synchronize(void *context, stk_device *device)
{
    stki_caching_pool *pool = context;
    stk_error err = {0};
    stk_status status = device->ops->synchronize(device, &err);

    stki_lock(&pool->lock);
    stki_pool_note_error(pool, "waiting for work on freed memory", status, &err);
    stki_unlock(&pool->lock);
}

static void pool_free(stki_pool *base, void *address, int64_t bytes)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_pool_block *block;

    if (!address)
        return;
    stki_lock(&pool->lock);
    block = stki_pool_find(pool, address);
    if (!block) {
        stk_error err;
        (void)stki_fail(&err, STK_E_BAD_ARG, "%p of %" PRId64 " bytes", address, bytes);
        stki_pool_note_error(pool, "freed a pointer that does not belong to this pool", STK_E_BAD_ARG, &err);
    } else {
        stki_pool_free(pool, block);
        if (!stki_pool_uses_record(pool, block) ||
            block->lost_use) { /* a stream that could not be recorded may use it */
            unlock(pool);
            stki_device_each(synchronize, pool);
            stki_lock(&pool->lock);
        }
        stki_pool_unwait(pool, block);
        (void)stki_pool_process(pool);
    }
    unlock(pool);
}

static void pool_record_stream(stki_pool *base, void *address, stk_stream *stream)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_pool_block *block;

    stki_lock(&pool->lock);
    block = stki_pool_find(pool, address);
    if (block && stream && block->segment->owner != stream && !stki_pool_use_add(pool, block, stream))
        block->lost_use = true;
    unlock(pool);
}

static void pool_forget_stream(stki_pool *base, stk_stream *stream)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    bool forgotten;

    stki_lock(&pool->lock);
    forgotten = stki_pool_forget(pool, stream, false);
    unlock(pool);
    if (!forgotten) { /* no event could be recorded: wait for the stream here */
        stk_error err = {0};
        stk_status status = stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err);
        stki_lock(&pool->lock);
        stki_pool_note_error(pool, "waiting for a stream being destroyed", status, &err);
        (void)stki_pool_forget(pool, stream, true);
        unlock(pool);
    }
}

static stk_status pool_empty(stki_pool *base, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    bool pending;

    (void)err;
    stki_lock(&pool->lock);
    pending = stki_pool_process(pool);
    (void)drop_cache(pool, &pending);
    unlock(pool);
    return STK_OK;
}

static void pool_reset_peaks(stki_pool *base)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);

    stki_lock(&pool->lock);
    pool->stats.allocated_peak = pool->stats.allocated_bytes;
    pool->stats.active_peak = pool->stats.active_bytes;
    pool->stats.reserved_peak = pool->stats.reserved_bytes;
    unlock(pool);
}

static const stki_pool_ops ops = {
    .alloc = pool_alloc,
    .alloc_exact = pool_alloc_exact,
    .free = pool_free,
    .record_stream = pool_record_stream,
    .forget_stream = pool_forget_stream,
    .empty = pool_empty,
    .stats = stki_pool_stats_read,
    .reset_peaks = pool_reset_peaks,
    .snapshot = stki_pool_snapshot,
    .summary = stki_pool_summary,
};

/* ---- create and destroy ---- */

stk_status stki_caching_pool_create(stk_device *device, stk_device_memory kind, stki_pool **out, stk_error *err)
{
    stki_caching_pool *pool = stki_zalloc(sizeof *pool);

    if (!pool)
        return stki_fail_memory(err, sizeof *pool, "a memory pool");
    pool->base = (stki_pool){.ops = &ops, .device = device, .kind = kind};
    pool->rules = kind == STK_MEMORY_PINNED ? &pinned_rules : &device_rules;
    stki_count_set(&pool->patience_ns, PATIENCE_NS);
    stki_mutex_init(&pool->lock);
    stki_fork_hold_add(&pool->fork_hold, &pool->lock);
    *out = &pool->base;
    return STK_OK;
}

static void free_blocks(stki_pool_block *block)
{
    while (block) {
        stki_pool_block *after = block->after;
        stki_pool_uses_drop(block);
        stki_free(block);
        block = after;
    }
}

void stki_caching_pool_destroy(stki_pool *base)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);

    if (!pool)
        return;
    stki_fork_hold_remove(&pool->fork_hold);
    for (stki_pool_segment *segment = pool->segments, *next; segment; segment = next) {
        next = segment->next;
        stki_pool_uses_drop(&segment->first);
        free_blocks(segment->first.after);
        driver_free(pool, segment->address, segment->bytes);
        stki_free(segment);
    }
    free_blocks(pool->spare);
    stki_pool_queues_fini(pool);
    stki_pool_tags_fini(pool);
    stki_mutex_fini(&pool->lock);
    stki_free(pool);
}

stk_status stki_caching_pools_attach(stk_device *device, stk_error *err)
{
    stki_pool *pool = NULL;
    stk_status status = stki_caching_pool_create(device, STK_MEMORY_DEVICE, &pool, err);

    if (status == STK_OK)
        status = stki_caching_pool_create(device, STK_MEMORY_PINNED, &device->pinned_pool, err);
    if (status != STK_OK) {
        stki_caching_pool_destroy(pool);
        return status;
    }
    device->pool = pool;
    return STK_OK;
}

void stki_caching_pools_detach(stk_device *device)
{
    stki_caching_pool_destroy(device->pool);
    stki_caching_pool_destroy(device->pinned_pool);
    device->pool = device->pinned_pool = NULL;
}
