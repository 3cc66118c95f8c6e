/* prefetch_thread.c: the prefetcher's thread: takes a free slot and the upstream's next batch, queues its copies, and
 * looks between two waits at what has been copied. It never waits for a copy itself, so that the next one is queued
 * behind it before it ends; while copies are on their way its other waits are short, so that host memory goes back
 * soon.
 */
#include "clock.h"
#include "error.h"
#include "prefetch_internal.h"
#include "thread.h"
#include <string.h>

enum {
    FIRST_LOOK_NS = 20000, /* while copies are on their way, growing to … */
    LONGEST_LOOK_NS = 200000,
    SLACK_LOOK_NS = 500000,  /* … where a consumer in no hurry has all slots */
    IDLE_LOOK_NS = 20000000, /* nothing is: how late the wish to close may be noticed in the upstream's wait */
    GAP_BYTES = 512          /* between two parts that are copied together */
};

/* ---- copies on their way -------------------------------------------------------------------------------------------
 */

static int64_t elapsed(const stk_event *from, const stk_event *to)
{
    int64_t ns;

    return stk_event_elapsed(from, to, &ns, NULL) == STK_OK && ns > 0 ? ns : 0;
}

/* The batch is on the device: how long that took, and how much of it the consumer's stream had to wait for. */
static void account(stki_prefetch *prefetch, stki_prefetch_slot *slot)
{
    int64_t copy_ns = elapsed(slot->begin, slot->copied), convert_ns = 0, exposed;
    stk_event *reached;

    if (slot->ready != slot->copied)
        convert_ns = elapsed(slot->copied, slot->ready);
    stki_count(&prefetch->batches, 1);
    stki_count(&prefetch->bytes, slot->bytes);
    stki_count(&prefetch->copy_ns, copy_ns);
    stki_count(&prefetch->convert_ns, convert_ns);
    stki_lock(&prefetch->lock);
    reached = slot->was_reached ? slot->reached : NULL;
    stki_unlock(&prefetch->lock);
    /* A stream that has not come so far yet did not wait. */
    if (!reached || stk_event_query(reached, NULL) != STK_OK)
        return;
    exposed = elapsed(reached, slot->ready);
    stki_count(&prefetch->exposed_ns, exposed < copy_ns + convert_ns ? exposed : copy_ns + convert_ns);
}

static void give_back(stki_prefetch *prefetch, stki_prefetch_slot *slot)
{
    if (!slot->has_copied)
        prefetch->upstream.release(prefetch->upstream.context, slot->held);
    slot->has_copied = true;
    slot->held = NULL;
}

/* Nothing reads the host's memory or writes to a slot any more when this returns: the device says so, or that it has
 * failed. Conversions of a batch that were queued before one failed have no event that stands for them. */
static void settle(stki_prefetch *prefetch)
{
    while (stk_stream_synchronize(prefetch->copy_stream, STKI_SECOND, NULL) == STK_E_TIMEOUT)
        ;
    while (prefetch->convert_stream &&
           stk_stream_synchronize(prefetch->convert_stream, STKI_SECOND, NULL) == STK_E_TIMEOUT)
        ;
}

static void seen_done(stki_prefetch *prefetch)
{
    bool last;

    stki_lock(&prefetch->lock);
    last = --prefetch->copying == 0;
    stki_unlock(&prefetch->lock);
    if (last)
        stki_wake_all(&prefetch->ready_cond); /* somebody may wait for just that */
}

/* What has been done since the last look, the oldest first. */
static void look(stki_prefetch *prefetch)
{
    while (prefetch->in_flight.count > 0) {
        int number = prefetch->in_flight.slot[prefetch->in_flight.first];
        stki_prefetch_slot *slot = &prefetch->slots[number];
        stk_error error = {0};
        stk_status status = slot->has_copied ? STK_OK : stk_event_query(slot->copied, &error);

        if (status == STK_AGAIN)
            return;
        if (status != STK_OK)
            settle(prefetch);
        give_back(prefetch, slot);
        if (status == STK_OK && slot->ready != slot->copied)
            status = stk_event_query(slot->ready, &error);
        if (status == STK_AGAIN)
            return;
        if (status == STK_OK)
            account(prefetch, slot);
        else
            stki_prefetch_finish(prefetch, status, &error, number);
        slot->in_flight = false;
        (void)stki_prefetch_pop(&prefetch->in_flight);
        seen_done(prefetch);
    }
}

static int64_t longer(int64_t look_ns)
{
    return look_ns * 2 < LONGEST_LOOK_NS ? look_ns * 2 : LONGEST_LOOK_NS;
}

static void drain(stki_prefetch *prefetch)
{
    int64_t look_ns = FIRST_LOOK_NS;

    for (look(prefetch); prefetch->in_flight.count > 0; look(prefetch)) {
        stki_sleep_ns(look_ns);
        look_ns = longer(look_ns);
    }
}

/* ---- one batch -----------------------------------------------------------------------------------------------------
 */

/* When to look again after so long a wait for a slot: late by a quarter of it at most. */
static int64_t next_look(int64_t now, int64_t before)
{
    int64_t look_ns = (now - before) / 4;

    look_ns = look_ns < FIRST_LOOK_NS ? FIRST_LOOK_NS : look_ns < SLACK_LOOK_NS ? look_ns : SLACK_LOOK_NS;
    return now + look_ns;
}

/* The slot given back first, whose last copy was seen done. -1: it is over. */
static int wait_for_slot(stki_prefetch *prefetch)
{
    int64_t before = 0;
    int slot = -1;

    for (;;) {
        bool over;

        look(prefetch);
        stki_lock(&prefetch->lock);
        if (prefetch->free.count > 0 && prefetch->slots[prefetch->free.slot[prefetch->free.first]].in_flight)
            slot = -1;
        else if (prefetch->free.count > 0)
            slot = stki_prefetch_pop(&prefetch->free);
        over = prefetch->stopping || prefetch->outcome != STK_OK;
        if (slot >= 0)
            prefetch->slots[slot].state = STKI_PREFETCH_FILLING;
        if (slot < 0 && !over) {
            int64_t now = stki_now_ns();

            before = before ? before : now;
            (void)stki_wait(&prefetch->slot_cond, &prefetch->lock,
                            prefetch->in_flight.count > 0 ? next_look(now, before) : INT64_MAX);
        }
        stki_unlock(&prefetch->lock);
        if (over || slot >= 0) {
            if (before)
                stki_count(&prefetch->wait_slot_ns, stki_now_ns() - before);
            return over ? -1 : slot;
        }
    }
}

static bool is_over(stki_prefetch *prefetch)
{
    bool over;

    stki_lock(&prefetch->lock);
    over = prefetch->stopping || prefetch->outcome != STK_OK;
    stki_unlock(&prefetch->lock);
    return over;
}

/* Asks the upstream, in pieces, and looks after the copies meanwhile. STK_E_CLOSED: it is over. */
static stk_status fetch(stki_prefetch *prefetch, int slot, stk_error *err)
{
    int64_t before = stki_now_ns(), look_ns = FIRST_LOOK_NS;
    stk_status status;

    for (;;) {
        int64_t now = stki_now_ns();

        memset(prefetch->loads, 0, (size_t)prefetch->part_count * sizeof *prefetch->loads);
        status = prefetch->upstream.next(prefetch->upstream.context, slot,
                                         now + (prefetch->in_flight.count > 0 ? look_ns : IDLE_LOOK_NS),
                                         prefetch->loads, &prefetch->slots[slot].held, err);
        if (status != STK_E_TIMEOUT)
            break;
        look(prefetch);
        look_ns = longer(look_ns);
        if (is_over(prefetch)) {
            status = STK_E_CLOSED;
            break;
        }
    }
    stki_count(&prefetch->wait_upstream_ns, stki_now_ns() - before);
    return status;
}

static char *target(const stki_prefetch *prefetch, int slot, int part)
{
    const stki_prefetch_part *p = &prefetch->parts[part];

    return p->buffers && !p->convert ? p->buffers[slot] : prefetch->slots[slot].block + p->copy_offset;
}

/* Does part `next` lie behind the bytes from `from` to `end`, here as there, so that one copy takes both? */
static bool joins(const stki_prefetch *prefetch, int slot, int first, const char *end, int next)
{
    const char *from = prefetch->loads[first].host, *host = prefetch->loads[next].host;

    if (prefetch->loads[next].bytes == 0)
        return true;
    return !(prefetch->parts[first].buffers && !prefetch->parts[first].convert) &&
           !(prefetch->parts[next].buffers && !prefetch->parts[next].convert) && host >= end &&
           host - end <= GAP_BYTES && host - from == target(prefetch, slot, next) - target(prefetch, slot, first);
}

static stk_status queue_copies(stki_prefetch *prefetch, int slot, stk_error *err)
{
    stk_device *device = prefetch->device;
    stk_status status = STK_OK;

    for (int i = 0, next; i < prefetch->part_count && status == STK_OK; i = next) {
        const char *from = prefetch->loads[i].host, *end = from + prefetch->loads[i].bytes;

        next = i + 1;
        if (prefetch->loads[i].bytes == 0)
            continue;
        for (; next < prefetch->part_count && joins(prefetch, slot, i, end, next); next++)
            if (prefetch->loads[next].bytes > 0)
                end = (const char *)prefetch->loads[next].host + prefetch->loads[next].bytes;
        status = device->ops->copy(device, target(prefetch, slot, i), true, from, false, end - from,
                                   prefetch->copy_stream, err);
    }
    return status;
}

static stk_status queue_converts(stki_prefetch *prefetch, int slot, stk_error *err)
{
    stk_device *device = prefetch->device;
    stk_status status = stk_stream_wait(prefetch->convert_stream, prefetch->slots[slot].copied, err);

    for (int i = 0; i < prefetch->part_count && status == STK_OK; i++) {
        const stki_prefetch_part *part = &prefetch->parts[i];

        if (part->convert && prefetch->loads[i].rows > 0)
            status = device->ops->convert(device, part->convert, stki_prefetch_place(prefetch, slot, i),
                                          part->dst_stride, target(prefetch, slot, i), part->src_stride,
                                          prefetch->loads[i].rows, prefetch->convert_stream, err);
    }
    return status == STK_OK ? stk_event_record(prefetch->slots[slot].ready, prefetch->convert_stream, err) : status;
}

/* Everything of one batch, behind whatever still uses the slot. */
static stk_status queue_batch(stki_prefetch *prefetch, int number, stk_error *err)
{
    stki_prefetch_slot *slot = &prefetch->slots[number];
    stk_status status = STK_OK;

    for (int i = 0; i < STKI_GUARDS && status == STK_OK; i++)
        if (slot->guarded[i])
            status = stk_stream_wait(prefetch->copy_stream, slot->guard[i], err);
    if (status == STK_OK && (status = stk_event_record(slot->begin, prefetch->copy_stream, err)) == STK_OK &&
        (status = queue_copies(prefetch, number, err)) == STK_OK)
        status = stk_event_record(slot->copied, prefetch->copy_stream, err);
    return status == STK_OK && prefetch->convert_stream ? queue_converts(prefetch, number, err) : status;
}

static stk_status hand_on(stki_prefetch *prefetch, int number, stk_error *err)
{
    stki_prefetch_slot *slot = &prefetch->slots[number];
    stk_status status = fetch(prefetch, number, err);

    if (status != STK_OK)
        return status;
    slot->bytes = 0;
    for (int i = 0; i < prefetch->part_count; i++)
        slot->bytes += prefetch->loads[i].bytes;
    slot->has_copied = false;
    status = queue_batch(prefetch, number, err);
    if (status != STK_OK) {
        settle(prefetch);
        give_back(prefetch, slot);
        return status;
    }
    slot->in_flight = true;
    stki_prefetch_push(&prefetch->in_flight, number);
    stki_lock(&prefetch->lock);
    slot->guarded[STKI_GUARD_RELEASE] = slot->guarded[STKI_GUARD_OTHER] = false;
    slot->was_reached = false;
    slot->state = STKI_PREFETCH_QUEUED;
    prefetch->copying++;
    stki_prefetch_push(&prefetch->queued, number);
    stki_unlock(&prefetch->lock);
    stki_wake_one(&prefetch->ready_cond);
    return STK_OK;
}

void stki_prefetch_run(void *context)
{
    stki_prefetch *prefetch = context;
    stk_error error = {0};
    stk_status status = STK_OK;
    int slot;

    stki_thread_wake_promptly(); /* small batches: a look that comes late leaves the bus idle */
    while (status == STK_OK && (slot = wait_for_slot(prefetch)) >= 0)
        status = hand_on(prefetch, slot, &error);
    drain(prefetch); /* before the end is told: a copy that failed is no end */
    if (status != STK_OK)
        stki_prefetch_finish(prefetch, status, &error, -1);
    if (prefetch->upstream.ended)
        prefetch->upstream.ended(prefetch->upstream.context);
    stki_prefetch_unref(prefetch);
}
