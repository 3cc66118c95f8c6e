/* caching_pool.c: see caching_pool.h. The calls of the pool's table. The driver allocates and frees outside the lock,
 * so that a slow driver holds up nobody whose block is in the cache; what another thread did meanwhile is found when
 * the lock is taken again.
 */
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

/* Opens the lock and gives the driver what left the pool under it. */
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

/* A new segment with the request's block in it. `said` gets the reason where there is none. */
static stk_status ask_driver(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                             stki_pool_block **out, stk_error *said)
{
    stk_device *device = pool->base.device;
    bool pinned = pool->base.kind == STK_MEMORY_PINNED, ready;
    void *memory = NULL;
    stk_status status =
        (pinned ? device->ops->alloc_pinned : device->ops->alloc)(device, request->segment_bytes, &memory, said);

    if (status != STK_OK)
        return status;
    stki_lock(&pool->lock);
    ready = stki_pool_reserve(pool, 2);
    if (ready)
        *out = stki_pool_adopt(pool, request, segment, memory);
    unlock(pool);
    if (ready)
        return STK_OK;
    driver_free(pool, memory, request->segment_bytes);
    return stki_fail_memory(said, sizeof(stki_pool_block), "the bookkeeping of a memory pool");
}

/* ---- no memory ---- */

/* Work of the stream may still touch what it freed, and not every driver waits for that. */
static bool has_passed(stki_caching_pool *pool, const void *owner)
{
    stk_error err = {0};
    stk_status status;

    if (!owner || owner == &stki_pool_nobody)
        return true;
    status = stk_stream_query((stk_stream *)(uintptr_t)owner, &err);
    if (status < 0)
        stki_pool_note_error(pool, "a stream whose memory is given back", status, &err);
    return status != STK_AGAIN;
}

/* Whole free segments leave. `kept` counts those that a stream may still work on. Returns how many left. */
static int64_t drop_cache(stki_caching_pool *pool, int64_t *kept)
{
    int64_t left = 0;

    *kept = 0;
    for (stki_pool_segment *segment = pool->first, *next; segment; segment = next) {
        next = segment->next;
        if (!stki_pool_whole(segment))
            continue;
        if (!has_passed(pool, segment->owner)) {
            ++*kept;
            continue;
        }
        stki_pool_detach(pool, segment);
        left++;
    }
    return left;
}

/* The driver has no more: whatever is free, or will be soon, is used or given back. STK_E_MEMORY: it did not help. */
static stk_status make_room(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                            stki_pool_block **out, stk_error *said)
{
    int64_t deadline = stki_deadline_ns(stki_counted(&pool->patience_ns)), sleep_ns = FIRST_SLEEP_NS;

    for (bool first = true;; first = false) {
        int64_t dropped = 0, kept = 0;
        stk_status status = STK_AGAIN;
        bool hope;

        stki_lock(&pool->lock);
        pool->stats.retries += first;
        stki_pool_process(pool);
        if (request->class != STKI_POOL_EXACT)
            status = stki_pool_take(pool, request, stki_pool_use_add, out);
        if (status != STK_OK)
            dropped = drop_cache(pool, &kept);
        hope = kept > 0 || pool->waiting_blocks > 0;
        unlock(pool);
        if (status == STK_OK)
            return STK_OK;
        if (dropped > 0) {
            status = ask_driver(pool, request, segment, out, said);
            if (status != STK_E_MEMORY)
                return status;
        } else {
            if (!hope || stki_now_ns() >= deadline)
                return STK_E_MEMORY;
            stki_sleep_ns(sleep_ns);
            sleep_ns = sleep_ns * 2 < LONGEST_SLEEP_NS ? sleep_ns * 2 : LONGEST_SLEEP_NS;
        }
    }
}

/* ---- the table ---- */

/* What the cache does not have. */
static stk_status grow(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_block **out, stk_error *err)
{
    stki_pool_segment *segment = stki_zalloc(sizeof *segment);
    stk_error said = {0};
    stk_status status;

    if (!segment)
        return stki_fail_memory(err, sizeof *segment, "the bookkeeping of a memory pool");
    status = ask_driver(pool, request, segment, out, &said);
    if (status == STK_E_MEMORY)
        status = make_room(pool, request, segment, out, &said);
    if (status != STK_OK || (*out)->segment != segment)
        stki_free(segment);
    if (status == STK_E_MEMORY)
        return stki_pool_fail_memory(pool, request, said.message, err);
    if (status != STK_OK && err)
        *err = said;
    return status;
}

static stk_status pool_alloc(stki_pool *base, int64_t bytes, stk_stream *stream, void **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_pool_request request;
    stki_pool_block *block = NULL;
    stk_status status;

    if (!stki_pool_request_init(pool, bytes, stream, &request))
        return bytes < 0 ? stki_fail(err, STK_E_BAD_ARG, "a block of %" PRId64 " bytes", bytes)
                         : stki_pool_fail_memory(pool, &request, "no device has that much", err);
    stki_lock(&pool->lock);
    stki_pool_process(pool);
    status = stki_pool_take(pool, &request, stki_pool_use_add, &block);
    unlock(pool);
    if (status == STK_AGAIN)
        status = grow(pool, &request, &block, err);
    else if (status != STK_OK)
        return stki_fail_memory(err, sizeof *block, "the bookkeeping of a memory pool");
    if (status == STK_OK)
        *out = block->address;
    return status;
}

static stk_status pool_alloc_exact(stki_pool *base, int64_t bytes, void **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    int64_t size = bytes ? bytes : 1;
    stki_pool_request request = {
        .asked_bytes = bytes, .block_bytes = size, .segment_bytes = size, .class = STKI_POOL_EXACT};
    stki_pool_block *block = NULL;
    stk_status status;

    if (bytes < 0)
        return stki_fail(err, STK_E_BAD_ARG, "a block of %" PRId64 " bytes", bytes);
    status = grow(pool, &request, &block, err);
    if (status == STK_OK)
        *out = block->address;
    return status;
}

struct trouble {
    stk_status status;
    stk_error err;
};

static void synchronize(void *context, stk_device *device)
{
    struct trouble *trouble = context;
    stk_error err = {0};
    stk_status status = device->ops->synchronize(device, &err);

    if (status != STK_OK)
        *trouble = (struct trouble){status, err};
}

/* Streams use the block that could not be remembered or asked: all of them are waited for, with the lock open. */
static void wait_for_all(stki_caching_pool *pool)
{
    struct trouble trouble = {.status = STK_OK};

    unlock(pool);
    stki_device_each(synchronize, &trouble);
    stki_lock(&pool->lock);
    if (trouble.status != STK_OK)
        stki_pool_note_error(pool, "work on freed memory", trouble.status, &trouble.err);
}

static void pool_free(stki_pool *base, void *address, int64_t bytes)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_pool_block *block;

    if (!address)
        return;
    stki_lock(&pool->lock);
    block = stki_pool_table_find(&pool->used, address);
    if (!block) {
        stk_error err;
        (void)stki_fail(&err, STK_E_BAD_ARG, "%p of %" PRId64 " bytes", address, bytes);
        stki_pool_note_error(pool, "freed what is not of this pool", STK_E_BAD_ARG, &err);
        unlock(pool);
        return;
    }
    stki_pool_wait(pool, block);
    block->waits++; /* for us: nobody else gives it back */
    if (stki_pool_uses_record(pool, block) != STK_OK || block->lost_use)
        wait_for_all(pool);
    if (--block->waits == 0)
        stki_pool_give(pool, block);
    else
        stki_pool_process(pool);
    unlock(pool);
}

static void pool_record_stream(stki_pool *base, void *address, stk_stream *stream)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_pool_block *block;

    stki_lock(&pool->lock);
    block = stki_pool_table_find(&pool->used, address);
    if (block && stream && block->segment->owner != stream && !stki_pool_use_add(pool, block, stream))
        block->lost_use = true;
    unlock(pool);
}

/* Without memory for the events that stand for its last work, the stream is waited for. */
static void pool_forget_stream(stki_pool *base, stk_stream *stream)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stk_status status = STK_OK;
    stk_error err = {0};
    int64_t stake;
    bool passed;

    stki_lock(&pool->lock);
    stake = stki_pool_stream_stake(pool, stream);
    passed = stake > 0 && !stki_pool_events_reserve(pool, stream, stake);
    if (passed) {
        unlock(pool);
        status = stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err);
        stki_lock(&pool->lock);
    }
    if (status != STK_OK)
        stki_pool_note_error(pool, "a stream that is destroyed", status, &err);
    stki_pool_forget(pool, stream, passed);
    unlock(pool);
}

static stk_status pool_empty(stki_pool *base, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    int64_t kept;

    (void)err;
    stki_lock(&pool->lock);
    stki_pool_process(pool);
    (void)drop_cache(pool, &kept);
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

/* ---- forks ---- */

/* A fork waits until nobody is inside a pool, so that a child finds them whole and can let go of what it inherited. */
static stki_mutex list_lock = {PTHREAD_MUTEX_INITIALIZER};
static stki_caching_pool *pools; /* guarded by list_lock */

static void before_fork(void)
{
    stki_lock(&list_lock);
    for (stki_caching_pool *pool = pools; pool; pool = pool->next_pool)
        stki_lock(&pool->lock);
}

static void after_fork(void)
{
    for (stki_caching_pool *pool = pools; pool; pool = pool->next_pool)
        stki_unlock(&pool->lock);
    stki_unlock(&list_lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

static void list_add(stki_caching_pool *pool)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    stki_lock(&list_lock);
    pool->next_pool = pools;
    pools = pool;
    stki_unlock(&list_lock);
}

static void list_remove(stki_caching_pool *pool)
{
    stki_caching_pool **at = &pools;

    stki_lock(&list_lock);
    while (*at && *at != pool)
        at = &(*at)->next_pool;
    if (*at)
        *at = pool->next_pool;
    stki_unlock(&list_lock);
}

/* ---- making one ---- */

stk_status stki_caching_pool_create(stk_device *device, stk_device_memory kind, stki_pool **out, stk_error *err)
{
    stki_caching_pool *pool = stki_zalloc(sizeof *pool);

    if (!pool)
        return stki_fail_memory(err, sizeof *pool, "a memory pool");
    pool->base = (stki_pool){.ops = &ops, .device = device, .kind = kind};
    pool->rules = kind == STK_MEMORY_PINNED ? &pinned_rules : &device_rules;
    stki_count_set(&pool->patience_ns, PATIENCE_NS);
    stki_mutex_init(&pool->lock);
    if (!stki_pool_table_init(&pool->used)) {
        stki_caching_pool_destroy(&pool->base);
        return stki_fail_memory(err, sizeof *pool, "a memory pool");
    }
    list_add(pool);
    *out = &pool->base;
    return STK_OK;
}

void stki_caching_pool_destroy(stki_pool *base)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);

    if (!pool)
        return;
    list_remove(pool);
    while (pool->first) {
        stki_pool_segment *segment = pool->first;
        for (stki_pool_block *block = segment->first, *after; block; block = after) {
            after = block->after;
            stki_pool_uses_drop(block);
            stki_free(block);
        }
        pool->first = segment->next;
        driver_free(pool, segment->address, segment->bytes);
        stki_free(segment);
    }
    for (stki_pool_block *block = pool->spare, *after; block; block = after) {
        after = block->after;
        stki_free(block);
    }
    stki_pool_queues_fini(pool);
    stki_pool_tags_fini(pool);
    stki_pool_table_fini(&pool->used);
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

void stki_caching_pool_set_patience(stki_pool *pool, int64_t patience_ns)
{
    stki_count_set(&stki_caching_pool_of(pool)->patience_ns, patience_ns);
}
