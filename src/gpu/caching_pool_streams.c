/* caching_pool_streams.c: tracks which streams use a block besides its owner, and when their work on it has completed.
 *
 * A use is a struct with an event. While the block is in use, its uses are in a list of the block. When the block is
 * freed, the event is recorded and the use moves to the queue of its stream. Events of a queue complete in order, so it
 * suffices to query the first one of each queue. Uses and their events remain with their queue and are reused.
 *
 * When a stream is destroyed, one event is recorded after its last work. From then on, uses that have not been recorded
 * refer to that event. The stream's segments are owned by its queue until the event completes, and are unowned
 * afterwards. */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "error.h"
#include "log.h"
#include <stdio.h>

void stki_pool_note_error(stki_caching_pool *pool, const char *what, stk_status status, const stk_error *err)
{
    if (status >= 0)
        return;
    pool->errors++;
    snprintf(pool->last_error, sizeof pool->last_error, "%s: %s: %.180s", what, stk_status_name(status), err->message);
    stki_log(STKI_LOG_memory, "%s: %s", pool->base.device->name, pool->last_error);
}

/* ---- queues and uses ---- */

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

    if (queue || !(queue = stki_zalloc(sizeof *queue)))
        return queue;
    queue->stream = stream;
    queue->next = pool->queues;
    pool->queues = queue;
    return queue;
}

static stki_pool_use *take_use(stki_pool_queue *queue)
{
    stki_pool_use *use = queue->spare;

    if (use) {
        queue->spare = use->next;
    } else {
        use = stki_zalloc(sizeof *use);
        if (!use || stk_event_create(queue->stream->device, false, &use->event, NULL) != STK_OK) {
            stki_free(use);
            return NULL;
        }
        use->queue = queue;
    }
    queue->busy++;
    return use;
}

static void put_back(stki_pool_use *use)
{
    stki_pool_queue *queue = use->queue;

    use->recorded = false;
    use->next = queue->spare;
    queue->spare = use;
    queue->busy--;
}

static void free_uses(stki_pool_use *use)
{
    while (use) {
        stki_pool_use *next = use->next;
        stk_event_destroy(use->event);
        stki_free(use);
        use = next;
    }
}

static void free_queue(stki_pool_queue *queue)
{
    free_uses(queue->first);
    free_uses(queue->spare);
    stk_event_destroy(queue->end);
    stki_free(queue);
}

void stki_pool_uses_drop(stki_pool_block *block)
{
    free_uses(block->uses);
    block->uses = NULL;
}

void stki_pool_queues_fini(stki_caching_pool *pool)
{
    while (pool->queues) {
        stki_pool_queue *next = pool->queues->next;
        free_queue(pool->queues);
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

static bool record(stki_caching_pool *pool, stk_event *event, stk_stream *stream)
{
    stk_error err = {0};
    stk_status status = stk_event_record(event, stream, &err);

    stki_pool_note_error(pool, "recording an event for freed memory", status, &err);
    return status == STK_OK;
}

bool stki_pool_uses_record(stki_caching_pool *pool, stki_pool_block *block)
{
    bool all = true;

    while (block->uses) {
        stki_pool_use *use = block->uses;
        stki_pool_queue *queue = use->queue;

        block->uses = use->next;
        use->recorded = queue->stream && record(pool, use->event, queue->stream);
        if (queue->stream && !use->recorded) {
            all = false;
            put_back(use);
            continue;
        }
        use->next = NULL;
        *(queue->first ? &queue->last->next : &queue->first) = use;
        queue->last = use;
        block->waits++;
    }
    return all;
}

/* ---- completion ---- */

/* An error counts as completed: the device no longer uses the memory, and waiting for the stream reports the error. */
static bool is_complete(stki_caching_pool *pool, stk_event *event)
{
    stk_error err = {0};
    stk_status status = event ? stk_event_query(event, &err) : STK_OK;

    stki_pool_note_error(pool, "querying work on freed memory", status, &err);
    return status != STK_AGAIN;
}

/* Processes completed events of the queue. Returns whether any of its work is still running. */
static bool advance(stki_caching_pool *pool, stki_pool_queue *queue)
{
    while (queue->first) {
        stki_pool_use *use = queue->first;
        stki_pool_block *block = use->block;

        if (!is_complete(pool, use->recorded ? use->event : queue->end))
            return true;
        queue->first = use->next;
        put_back(use);
        stki_pool_unwait(pool, block);
    }
    if (!queue->end)
        return false;
    if (!is_complete(pool, queue->end))
        return true;
    stki_pool_reown(pool, queue, &stki_pool_unowned);
    stk_event_destroy(queue->end);
    queue->end = NULL;
    return false;
}

bool stki_pool_process(stki_caching_pool *pool)
{
    stki_pool_queue **at = &pool->queues, *queue;
    bool pending = false;

    while ((queue = *at)) {
        pending |= advance(pool, queue);
        if (queue->stream || queue->end || queue->busy > 0) {
            at = &queue->next;
        } else {
            *at = queue->next;
            free_queue(queue);
        }
    }
    return pending;
}

/* ---- destroyed streams ---- */

static bool owns_segments(const stki_caching_pool *pool, const stk_stream *stream)
{
    const stki_pool_segment *segment = pool->segments;

    while (segment && segment->owner != stream)
        segment = segment->next;
    return segment != NULL;
}

bool stki_pool_forget(stki_caching_pool *pool, stk_stream *stream, bool done)
{
    bool owns = owns_segments(pool, stream);
    stki_pool_queue *queue = owns && !done ? queue_of(pool, stream) : find_queue(pool, stream);

    if (!done && (owns || queue)) {
        if (!queue)
            return false;
        if (stk_event_create(stream->device, false, &queue->end, NULL) != STK_OK)
            return false;
        if (!record(pool, queue->end, stream)) {
            stk_event_destroy(queue->end);
            queue->end = NULL;
            return false;
        }
    }
    if (queue)
        queue->stream = NULL;
    stki_pool_reown(pool, stream, queue && queue->end ? (const void *)queue : &stki_pool_unowned);
    (void)stki_pool_process(pool);
    return true;
}
