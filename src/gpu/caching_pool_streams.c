/* caching_pool_streams.c: which streams use a block beside its owner, and when they are done with it.
 *
 * A use is a struct with an event. It hangs on the block while that is in use; freed, the event is recorded and the use
 * moves to the queue of its stream, where events pass in order, so that one look at the first of each queue tells. Uses
 * stay with their queue together with their events and are taken again from there.
 */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "error.h"
#include "log.h"
#include <stdio.h>

void stki_pool_note_error(stki_caching_pool *pool, const char *what, stk_status status, const stk_error *err)
{
    pool->errors++;
    snprintf(pool->last_error, sizeof pool->last_error, "%s: %s: %.180s", what, stk_status_name(status), err->message);
    stki_log(STKI_LOG_memory, "%s: %s", pool->base.device->name, pool->last_error);
}

/* ---- queues and spare uses ---- */

static stki_pool_queue *find_queue(const stki_caching_pool *pool, const stk_stream *stream)
{
    stki_pool_queue *queue = pool->queues;

    while (queue && queue->stream != stream)
        queue = queue->next;
    return queue;
}

static stki_pool_queue *queue_of(stki_caching_pool *pool, stk_stream *stream)
{
    stki_pool_queue *queue = find_queue(pool, stream);

    if (queue)
        return queue;
    queue = stki_zalloc(sizeof *queue);
    if (!queue)
        return NULL;
    queue->stream = stream;
    queue->next = pool->queues;
    pool->queues = queue;
    return queue;
}

static stki_pool_use *new_use(stki_pool_queue *queue)
{
    stki_pool_use *use = stki_zalloc(sizeof *use);

    if (!use)
        return NULL;
    use->queue = queue;
    if (stk_event_create(queue->stream->device, false, &use->event, NULL) != STK_OK) {
        stki_free(use);
        return NULL;
    }
    return use;
}

static void put_back(stki_pool_use *use)
{
    stki_pool_queue *queue = use->queue;

    use->block = NULL;
    use->recorded = false;
    use->next = queue->spare;
    queue->spare = use;
    queue->busy--;
}

static stki_pool_use *take_use(stki_pool_queue *queue)
{
    stki_pool_use *use = queue->spare;

    if (use)
        queue->spare = use->next;
    else
        use = new_use(queue);
    queue->busy += use != NULL;
    return use;
}

bool stki_pool_events_reserve(stki_caching_pool *pool, stk_stream *stream, int64_t count)
{
    stki_pool_queue *queue = queue_of(pool, stream);

    if (!queue)
        return false;
    for (const stki_pool_use *use = queue->spare; use && count > 0; use = use->next)
        count--;
    for (; count > 0; count--) {
        stki_pool_use *use = new_use(queue);
        if (!use)
            return false;
        use->next = queue->spare;
        queue->spare = use;
    }
    return true;
}

static void end_uses(stki_pool_use *use)
{
    while (use) {
        stki_pool_use *next = use->next;
        stk_event_destroy(use->event);
        stki_free(use);
        use = next;
    }
}

void stki_pool_uses_drop(stki_pool_block *block)
{
    end_uses(block->uses);
    block->uses = NULL;
}

static void end_queue(stki_pool_queue *queue)
{
    end_uses(queue->first);
    end_uses(queue->spare);
    stki_free(queue);
}

void stki_pool_queues_fini(stki_caching_pool *pool)
{
    while (pool->queues) {
        stki_pool_queue *next = pool->queues->next;
        end_queue(pool->queues);
        pool->queues = next;
    }
}

/* ---- a block's uses ---- */

bool stki_pool_use_add(stki_caching_pool *pool, stki_pool_block *block, stk_stream *stream)
{
    stki_pool_queue *queue;
    stki_pool_use *use;

    for (use = block->uses; use; use = use->next)
        if (use->queue->stream == stream)
            return true;
    queue = queue_of(pool, stream);
    use = queue ? take_use(queue) : NULL;
    if (!use)
        return false;
    use->block = block;
    use->next = block->uses;
    block->uses = use;
    return true;
}

static stk_status record(stki_caching_pool *pool, stki_pool_use *use)
{
    stk_error err = {0};
    stk_status status = STK_OK;

    if (use->recorded)
        return STK_OK;
    status = stk_event_record(use->event, use->queue->stream, &err);
    if (status != STK_OK)
        stki_pool_note_error(pool, "an event behind freed memory", status, &err);
    use->recorded = status == STK_OK;
    return status;
}

static void enqueue(stki_pool_use *use)
{
    stki_pool_queue *queue = use->queue;

    use->next = NULL;
    *(queue->first ? &queue->last->next : &queue->first) = use;
    queue->last = use;
    use->block->waits++;
}

stk_status stki_pool_uses_record(stki_caching_pool *pool, stki_pool_block *block)
{
    stk_status worst = STK_OK;

    while (block->uses) {
        stki_pool_use *use = block->uses;
        stk_status status = record(pool, use);
        block->uses = use->next;
        if (status != STK_OK) {
            worst = status;
            put_back(use);
        } else {
            enqueue(use);
        }
    }
    return worst;
}

/* ---- passing ---- */

/* An error counts as passed: the device has stopped working on it, and whoever waits for the stream is told. */
static bool passed(stki_caching_pool *pool, const stki_pool_use *use)
{
    stk_error err = {0};
    stk_status status = stk_event_query(use->event, &err);

    if (status < 0)
        stki_pool_note_error(pool, "work on freed memory", status, &err);
    return status != STK_AGAIN;
}

static void advance(stki_caching_pool *pool, stki_pool_queue *queue)
{
    while (queue->first && passed(pool, queue->first)) {
        stki_pool_use *use = queue->first;
        stki_pool_block *block = use->block;

        queue->first = use->next;
        put_back(use);
        if (--block->waits == 0)
            stki_pool_give(pool, block);
    }
}

void stki_pool_process(stki_caching_pool *pool)
{
    stki_pool_queue **at = &pool->queues;

    while (*at && pool->waiting_blocks > 0) {
        advance(pool, *at);
        at = &(*at)->next;
    }
}

/* Queues of streams that are gone, once nobody needs them. */
static void sweep(stki_caching_pool *pool)
{
    stki_pool_queue **at = &pool->queues;

    while (*at) {
        stki_pool_queue *queue = *at;
        if (queue->stream || queue->busy > 0) {
            at = &queue->next;
            continue;
        }
        *at = queue->next;
        end_queue(queue);
    }
}

/* ---- streams that go ---- */

int64_t stki_pool_stream_stake(const stki_caching_pool *pool, const stk_stream *stream)
{
    int64_t blocks = 0;

    for (const stki_pool_segment *segment = pool->first; segment; segment = segment->next)
        for (const stki_pool_block *block = segment->first; block && segment->owner == stream; block = block->after)
            blocks++;
    return blocks;
}

/* For good, now that nothing can be queued any more. A stream in which nothing can be recorded is waited for here and
 * now, lock or no lock: that is a device in trouble. False: it has passed. */
static bool record_last(stki_caching_pool *pool, stki_pool_use *use)
{
    stk_error err = {0};
    stk_status status;

    if (record(pool, use) == STK_OK)
        return true;
    status = stk_stream_synchronize(use->queue->stream, STK_WAIT_FOREVER, &err);
    if (status != STK_OK)
        stki_pool_note_error(pool, "a stream that is destroyed", status, &err);
    return false;
}

/* The stream that owns a block becomes one that uses it. */
static void use_instead(stki_caching_pool *pool, stki_pool_queue *queue, stki_pool_block *block)
{
    stki_pool_use *use = take_use(queue); /* there is one: it was reserved */

    use->block = block;
    if (!record_last(pool, use)) {
        put_back(use);
    } else if (block->state == STKI_POOL_USED) {
        use->next = block->uses;
        block->uses = use;
    } else {
        if (block->state == STKI_POOL_FREE)
            stki_pool_wait(pool, block);
        enqueue(use);
    }
}

static void disown(stki_caching_pool *pool, stki_pool_segment *segment, stki_pool_queue *queue, bool passed)
{
    stki_pool_block **tree = stki_pool_tree_of(pool, segment);

    for (stki_pool_block *block = segment->first; block; block = block->after)
        if (block->state == STKI_POOL_FREE)
            stki_pool_tree_remove(tree, block);
    segment->owner = &stki_pool_nobody;
    for (stki_pool_block *block = segment->first; block; block = block->after) {
        if (!passed)
            use_instead(pool, queue, block);
        if (block->state == STKI_POOL_FREE)
            stki_pool_tree_insert(tree, block);
    }
}

static void settle_uses(stki_caching_pool *pool, const stki_pool_queue *queue, stki_pool_block *block, bool passed)
{
    for (stki_pool_use **at = &block->uses; *at;) {
        stki_pool_use *use = *at;
        if (use->queue == queue && (passed || !record_last(pool, use))) {
            *at = use->next;
            put_back(use);
        } else {
            at = &use->next;
        }
    }
}

void stki_pool_forget(stki_caching_pool *pool, stk_stream *stream, bool passed)
{
    stki_pool_queue *queue = find_queue(pool, stream);

    for (stki_pool_segment *segment = pool->first; segment; segment = segment->next) {
        for (stki_pool_block *block = segment->first; block && queue; block = block->after)
            settle_uses(pool, queue, block, passed);
        if (segment->owner == stream)
            disown(pool, segment, queue, passed);
    }
    if (queue)
        queue->stream = NULL;
    stki_pool_process(pool);
    sweep(pool);
}
