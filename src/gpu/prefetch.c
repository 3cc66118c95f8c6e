/* prefetch.c: see prefetch.h.
 *
 * There are two threads. The copying thread takes a free slot and the upstream's next batch and queues its copies. It
 * never waits for a copy, so that the next one is queued before the previous one ends. The watching thread waits in the
 * driver for the copies, oldest first: it releases host memory as soon as its copy is complete, and reports errors. */
#include "allocate.h"
#include "checked.h"
#include "clock.h"
#include "device_memory.h"
#include "error.h"
#include "log.h"
#include "prefetch_internal.h"
#include "stream.h"
#include "trace.h"
#include <string.h>

#define CLOSE_NS STKI_SECOND /* how long destroy waits for close */
enum {
    IDLE_POLL_NS = 20000000, /* longest wait for the upstream between checks of `stopping` and errors */
    GAP_BYTES = 512          /* maximum gap between two parts that are copied together */
};

static void push(stki_prefetch_queue *queue, int slot)
{
    queue->slot[(queue->first + queue->count++) % STKI_PREFETCH_MAX_DEPTH] = slot;
}

static int pop(stki_prefetch_queue *queue)
{
    int slot = queue->slot[queue->first];

    queue->first = (queue->first + 1) % STKI_PREFETCH_MAX_DEPTH;
    queue->count--;
    return slot;
}

/* Sets the outcome: no more batches follow, and queued batches from `flight` on are discarded (NULL: none). The first
 * outcome is kept. Thread-safe; call without the lock held. */
static void finish(stki_prefetch *prefetch, stk_status status, const stk_error *error,
                   const stki_prefetch_flight *flight);
static void unref(stki_prefetch *prefetch);

/* ---- copies in flight ---- */

static int64_t elapsed(const stk_event *from, const stk_event *to)
{
    int64_t ns;

    return stk_event_elapsed(from, to, &ns, NULL) == STK_OK && ns > 0 ? ns : 0;
}

/* Counts the time that a batch took to copy and convert, and the part of it for which the consumer's stream waited. */
static void account(stki_prefetch *prefetch, stki_prefetch_flight *flight)
{
    int64_t copy_ns = elapsed(flight->begin, flight->copied), convert_ns = 0, exposed;
    stk_event *reached;

    if (flight->ready != flight->copied)
        convert_ns = elapsed(flight->copied, flight->ready);
    stki_count(&prefetch->batches, 1);
    stki_count(&prefetch->bytes, flight->bytes);
    stki_count(&prefetch->copy_ns, copy_ns);
    stki_count(&prefetch->convert_ns, convert_ns);
    stki_lock(&prefetch->lock);
    reached = flight->was_reached ? flight->reached : NULL;
    stki_unlock(&prefetch->lock);
    /* If the stream has not reached the event, it has not waited. */
    if (!reached || stk_event_query(reached, NULL) != STK_OK)
        return;
    exposed = elapsed(reached, flight->ready);
    stki_count(&prefetch->exposed_ns, exposed < copy_ns + convert_ns ? exposed : copy_ns + convert_ns);
}

static void release_host(stki_prefetch *prefetch, stki_prefetch_flight *flight)
{
    prefetch->upstream.release(prefetch->upstream.context, flight->held);
    flight->held = NULL;
}

/* Waits until no stream reads host memory or writes to a slot, or until the device has failed. Synchronizes streams
 * instead of events, because conversions that were queued before a failed one have no event. */
static void wait_for_streams(stki_prefetch *prefetch)
{
    while (stk_stream_synchronize(prefetch->copy_stream, STKI_SECOND, NULL) == STK_E_TIMEOUT)
        ;
    while (prefetch->convert_stream &&
           stk_stream_synchronize(prefetch->convert_stream, STKI_SECOND, NULL) == STK_E_TIMEOUT)
        ;
}

/* Waits for the oldest flight. NULL: all flights have been processed, and no more will be queued. */
static stki_prefetch_flight *oldest_flight(stki_prefetch *prefetch)
{
    stki_prefetch_flight *flight = NULL;

    stki_lock(&prefetch->lock);
    while (prefetch->in_flight.count == 0 && !prefetch->all_queued)
        (void)stki_wait(&prefetch->flight_cond, &prefetch->lock, INT64_MAX);
    if (prefetch->in_flight.count > 0)
        flight = prefetch->in_flight.flight[prefetch->in_flight.first];
    stki_unlock(&prefetch->lock);
    return flight;
}

static void remove_flight(stki_prefetch *prefetch, stki_prefetch_flight *flight)
{
    stki_lock(&prefetch->lock);
    flight->in_flight = false;
    prefetch->in_flight.first = (prefetch->in_flight.first + 1) % (2 * STKI_PREFETCH_MAX_DEPTH);
    prefetch->in_flight.count--;
    stki_unlock(&prefetch->lock);
    stki_wake_all(&prefetch->ready_cond);
    stki_wake_all(&prefetch->slot_cond);
}

static void run_watcher(void *context)
{
    stki_prefetch *prefetch = context;
    stki_prefetch_flight *flight;

    while ((flight = oldest_flight(prefetch)) != NULL) {
        stk_error error = {0};
        stk_status status = stk_event_synchronize(flight->copied, STK_WAIT_FOREVER, &error);

        if (status != STK_OK)
            wait_for_streams(prefetch);
        release_host(prefetch, flight);
        if (status == STK_OK && flight->ready != flight->copied)
            status = stk_event_synchronize(flight->ready, STK_WAIT_FOREVER, &error);
        if (status == STK_OK)
            account(prefetch, flight);
        else
            finish(prefetch, status, &error, flight);
        remove_flight(prefetch, flight);
    }
}

/* Waits until the watching thread has processed all flights. */
static void drain(stki_prefetch *prefetch)
{
    stki_lock(&prefetch->lock);
    prefetch->all_queued = true;
    stki_unlock(&prefetch->lock);
    stki_wake_all(&prefetch->flight_cond);
    (void)stki_thread_join(prefetch->watcher, INT64_MAX);
}

/* ---- one batch ---- */

static bool are_both_in_flight(const stki_prefetch_slot *slot)
{
    return slot->flights[0].in_flight && slot->flights[1].in_flight;
}

/* Takes the slot that was released first, once at most one of its flights is unfinished. -1: stopping, or an error. */
static int wait_for_slot(stki_prefetch *prefetch)
{
    int64_t before = 0;
    int slot = -1;

    stki_lock(&prefetch->lock);
    while (!prefetch->stopping && prefetch->outcome == STK_OK) {
        if (prefetch->free.count > 0 &&
            !are_both_in_flight(&prefetch->slots[prefetch->free.slot[prefetch->free.first]])) {
            slot = pop(&prefetch->free);
            prefetch->slots[slot].state = STKI_PREFETCH_FILLING;
            break;
        }
        before = before ? before : stki_now_ns();
        (void)stki_wait(&prefetch->slot_cond, &prefetch->lock, INT64_MAX);
    }
    stki_unlock(&prefetch->lock);
    if (before)
        stki_count(&prefetch->wait_slot_ns, stki_now_ns() - before);
    return slot;
}

static bool is_over(stki_prefetch *prefetch)
{
    bool over;

    stki_lock(&prefetch->lock);
    over = prefetch->stopping || prefetch->outcome != STK_OK;
    stki_unlock(&prefetch->lock);
    return over;
}

/* Gets the next batch from the upstream, with timeouts after which `stopping` is checked. STK_E_CLOSED: stopping, or an
 * error. */
static stk_status fetch(stki_prefetch *prefetch, int slot, void **held, stk_error *err)
{
    int64_t before = stki_now_ns();
    stk_status status;

    do {
        memset(prefetch->loads, 0, (size_t)prefetch->part_count * sizeof *prefetch->loads);
        status = prefetch->upstream.next(prefetch->upstream.context, slot, stki_now_ns() + IDLE_POLL_NS,
                                         prefetch->loads, held, err);
        if (status == STK_E_TIMEOUT && is_over(prefetch))
            status = STK_E_CLOSED;
    } while (status == STK_E_TIMEOUT);
    stki_count(&prefetch->wait_upstream_ns, stki_now_ns() - before);
    return status;
}

static char *target(const stki_prefetch *prefetch, int slot, int part)
{
    const stki_prefetch_part *p = &prefetch->parts[part];

    return p->buffers && !p->convert ? p->buffers[slot] : prefetch->slots[slot].block + p->copy_offset;
}

/* Whether one copy that starts with part `first` and now reaches to `end` in host memory can be extended to include
 * part `next`: the gap is small, and the offset from `first` is the same in host memory and in the slot. */
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
    const stki_prefetch_flight *flight = stki_prefetch_newest(&prefetch->slots[slot]);
    stk_status status = stk_stream_wait(prefetch->convert_stream, flight->copied, err);

    for (int i = 0; i < prefetch->part_count && status == STK_OK; i++) {
        const stki_prefetch_part *part = &prefetch->parts[i];

        if (part->convert && prefetch->loads[i].rows > 0)
            status = device->ops->convert(device, part->convert, stki_prefetch_place(prefetch, slot, i),
                                          part->dst_stride, target(prefetch, slot, i), part->src_stride,
                                          prefetch->loads[i].rows, prefetch->convert_stream, err);
    }
    return status == STK_OK ? stk_event_record(flight->ready, prefetch->convert_stream, err) : status;
}

/* Queues the copies and conversions of a batch, after all work that still uses the slot: its previous consumers, and
 * the conversion of its previous batch, for which no stream may have waited. */
static stk_status queue_batch(stki_prefetch *prefetch, int number, const stki_prefetch_flight *last, stk_error *err)
{
    stki_prefetch_slot *slot = &prefetch->slots[number];
    const stki_prefetch_flight *flight = stki_prefetch_newest(slot);
    stk_status status = STK_OK;

    status = stki_guards_wait_in(&slot->guards, prefetch->copy_stream, err);
    if (status == STK_OK && prefetch->convert_stream)
        status = stk_stream_wait(prefetch->copy_stream, last->ready, err);
    if (status == STK_OK && (status = stk_event_record(flight->begin, prefetch->copy_stream, err)) == STK_OK &&
        (status = queue_copies(prefetch, number, err)) == STK_OK)
        status = stk_event_record(flight->copied, prefetch->copy_stream, err);
    return status == STK_OK && prefetch->convert_stream ? queue_converts(prefetch, number, err) : status;
}

static stk_status prefetch_batch(stki_prefetch *prefetch, int number, stk_error *err)
{
    stki_prefetch_slot *slot = &prefetch->slots[number];
    const stki_prefetch_flight *last = stki_prefetch_newest(slot);
    stki_prefetch_flight *flight;
    void *held = NULL;
    stk_status status;

    stki_trace_begin("stoker: wait for a batch");
    status = fetch(prefetch, number, &held, err);
    stki_trace_end();
    if (status != STK_OK)
        return status;
    slot->turn = !slot->turn;
    flight = stki_prefetch_newest(slot);
    flight->held = held;
    flight->bytes = 0;
    for (int i = 0; i < prefetch->part_count; i++)
        flight->bytes += prefetch->loads[i].bytes;
    stki_trace_begin("stoker: queue copies");
    status = queue_batch(prefetch, number, last, err);
    stki_trace_end();
    if (status != STK_OK) {
        wait_for_streams(prefetch);
        release_host(prefetch, flight);
        return status;
    }
    stki_guards_clear(&slot->guards);
    stki_lock(&prefetch->lock);
    flight->in_flight = true;
    prefetch->in_flight
        .flight[(prefetch->in_flight.first + prefetch->in_flight.count++) % (2 * STKI_PREFETCH_MAX_DEPTH)] = flight;
    flight->was_reached = false;
    slot->state = STKI_PREFETCH_QUEUED;
    if (prefetch->outcome ==
        STK_OK) /* otherwise the batch is discarded, because an earlier one may have been lost in the meantime */
        push(&prefetch->queued, number);
    stki_unlock(&prefetch->lock);
    stki_wake_all(&prefetch->flight_cond);
    stki_wake_all(&prefetch->ready_cond);
    return STK_OK;
}

static void run_thread(void *context)
{
    stki_prefetch *prefetch = context;
    stk_error error = {0};
    stk_status status = STK_OK;
    int slot;

    while (status == STK_OK && (slot = wait_for_slot(prefetch)) >= 0)
        status = prefetch_batch(prefetch, slot, &error);
    drain(prefetch); /* before the outcome is set: a failed copy has precedence over STK_END */
    if (status != STK_OK)
        finish(prefetch, status, &error, NULL);
    if (prefetch->upstream.ended)
        prefetch->upstream.ended(prefetch->upstream.context);
    unref(prefetch);
}

/* ---- create and destroy ---- */

static stk_status make_flight(stki_prefetch *prefetch, stki_prefetch_flight *flight, stk_error *err)
{
    stk_device *device = prefetch->device;
    stk_status status = stk_event_create(device, true, &flight->begin, err);

    if (status == STK_OK)
        status = stk_event_create(device, true, &flight->copied, err);
    flight->ready = flight->copied;
    return status == STK_OK && prefetch->convert_stream ? stk_event_create(device, true, &flight->ready, err) : status;
}

static stk_status make_slot(stki_prefetch *prefetch, stki_prefetch_slot *slot, stk_error *err)
{
    stk_device *device = prefetch->device;
    stk_status status = STK_OK;
    void *block = NULL;

    if (prefetch->slot_bytes > 0)
        status = stki_device_alloc_exact(device, STK_MEMORY_DEVICE, prefetch->slot_bytes, "device slots", &block, err);
    slot->block = block;
    for (int k = 0; k < 2 && status == STK_OK; k++)
        status = make_flight(prefetch, &slot->flights[k], err);
    return status;
}

static stk_status make_slots(stki_prefetch *prefetch, stk_error *err)
{
    stk_status status = STK_OK;

    prefetch->slots = stki_zalloc_array(prefetch->depth, sizeof *prefetch->slots);
    prefetch->spares = stki_zalloc_array(2 * prefetch->depth + 1, sizeof *prefetch->spares);
    if (!prefetch->slots || !prefetch->spares)
        return stki_fail_memory(err, prefetch->depth * (int64_t)sizeof *prefetch->slots, "device slots");
    for (int i = 0; i <= 2 * prefetch->depth && status == STK_OK; i++)
        status = stk_event_create(prefetch->device, true, &prefetch->spares[i], err);
    for (int i = 0; i < prefetch->depth; i++)
        stki_guards_init(&prefetch->slots[i].guards);
    for (int i = 0; i < prefetch->depth && status == STK_OK; i++) {
        status = make_slot(prefetch, &prefetch->slots[i], err);
        for (int k = 0; k < 2; k++) {
            prefetch->slots[i].flights[k].slot = i;
            prefetch->slots[i].flights[k].reached = prefetch->spares[2 * i + k];
        }
        push(&prefetch->free, i);
    }
    prefetch->spare = prefetch->spares[2 * prefetch->depth];
    return status;
}

static stk_status copy_parts(stki_prefetch *prefetch, const stki_prefetch_opts *opts, stk_error *err)
{
    bool converts = false;

    prefetch->parts = stki_zalloc_array(opts->part_count, sizeof *prefetch->parts);
    prefetch->loads = stki_zalloc_array(opts->part_count, sizeof *prefetch->loads);
    if (!prefetch->parts || !prefetch->loads)
        return stki_fail_memory(err, opts->part_count * (int64_t)sizeof *prefetch->parts, "the parts of a slot");
    for (int i = 0; i < opts->part_count; i++) {
        const stki_prefetch_part *part = &opts->parts[i];
        bool copied_inside = !part->convert && part->buffers;

        if ((!copied_inside && !stki_inside(part->copy_offset, part->copy_bytes, opts->slot_bytes)) ||
            (part->convert && !part->buffers && !stki_inside(part->offset, part->bytes, opts->slot_bytes)))
            return stki_fail(err, STK_E_BAD_ARG, "part %d of a device slot is outside its %lld bytes", i,
                             (long long)opts->slot_bytes);
        prefetch->parts[i] = *part;
        converts = converts || part->convert;
    }
    if (!converts)
        return STK_OK;
    return stki_stream_create_urgent(prefetch->device, &prefetch->convert_stream, err);
}

static stk_status check_opts(const stki_prefetch_opts *opts, stk_error *err)
{
    if (opts->depth < 1 || opts->depth > STKI_PREFETCH_MAX_DEPTH)
        return stki_fail(err, STK_E_BAD_ARG, "device slots: found %d, expected 1 to %d", opts->depth,
                         STKI_PREFETCH_MAX_DEPTH);
    if (opts->part_count < 1 || opts->part_count > STKI_PREFETCH_MAX_PARTS)
        return stki_fail(err, STK_E_BAD_ARG, "parts of a device slot: found %d, expected 1 to %d", opts->part_count,
                         STKI_PREFETCH_MAX_PARTS);
    return STK_OK;
}

stk_status stki_prefetch_create(const stki_prefetch_opts *opts, stki_prefetch **out, stk_error *err)
{
    stki_prefetch *prefetch;
    stk_status status = check_opts(opts, err);

    if (status != STK_OK)
        return status;
    prefetch = stki_zalloc(sizeof *prefetch);
    if (!prefetch)
        return stki_fail_memory(err, sizeof *prefetch, "a prefetcher");
    prefetch->refs = 1;
    prefetch->device = opts->device;
    prefetch->depth = opts->depth;
    prefetch->part_count = opts->part_count;
    prefetch->slot_bytes = opts->slot_bytes;
    prefetch->upstream = opts->upstream;
    stki_mutex_init(&prefetch->lock);
    stki_cond_init(&prefetch->slot_cond);
    stki_cond_init(&prefetch->ready_cond);
    stki_cond_init(&prefetch->flight_cond);
    if ((status = stk_stream_create(opts->device, &prefetch->copy_stream, err)) == STK_OK &&
        (status = copy_parts(prefetch, opts, err)) == STK_OK && (status = make_slots(prefetch, err)) == STK_OK &&
        (status = stki_thread_start(&prefetch->watcher, "stoker-copied", run_watcher, prefetch, err)) == STK_OK) {
        stki_trace_stream(prefetch->copy_stream, "stoker copies");
        stki_trace_stream(prefetch->convert_stream, "stoker conversions");
        stki_ref(&prefetch->refs); /* reference of the thread */
        status = stki_thread_start(&prefetch->thread, "stoker-copy", run_thread, prefetch, err);
        if (status == STK_OK) {
            *out = prefetch;
            return STK_OK;
        }
        drain(prefetch);
        prefetch->refs = 1;
    }
    unref(prefetch);
    return status;
}

/* Whether all streams have finished with the slot before the deadline. If not, its memory must not be freed. */
static bool has_passed(stki_prefetch_slot *slot, int64_t deadline)
{
    bool passed = stki_guards_wait(&slot->guards, stki_left_ns(deadline), NULL) != STK_E_TIMEOUT;

    for (int k = 0; k < 2 && passed; k++)
        passed = !slot->flights[k].ready ||
                 stk_event_synchronize(slot->flights[k].ready, stki_left_ns(deadline), NULL) != STK_E_TIMEOUT;
    return passed;
}

bool stki_prefetch_has_passed(stki_prefetch *prefetch, int64_t deadline_ns)
{
    bool passed = true;

    for (int i = 0; i < prefetch->depth; i++)
        passed = has_passed(&prefetch->slots[i], deadline_ns) && passed;
    return passed;
}

static void free_slot(stki_prefetch *prefetch, stki_prefetch_slot *slot)
{
    if (!has_passed(slot, 0))
        stki_log(STKI_LOG_memory, "%s: %lld bytes are leaked, because a stream that uses them has not finished",
                 prefetch->device->name, (long long)prefetch->slot_bytes);
    else if (slot->block)
        stki_device_free(prefetch->device, STK_MEMORY_DEVICE, slot->block, prefetch->slot_bytes);
    for (int k = 0; k < 2; k++) {
        stki_prefetch_flight *flight = &slot->flights[k];

        if (flight->ready != flight->copied)
            stk_event_destroy(flight->ready);
        stk_event_destroy(flight->begin);
        stk_event_destroy(flight->copied);
    }
    stki_guards_fini(&slot->guards);
}

static void unref(stki_prefetch *prefetch)
{
    if (!stki_unref(&prefetch->refs))
        return;
    for (int i = 0; prefetch->slots && i < prefetch->depth; i++)
        free_slot(prefetch, &prefetch->slots[i]);
    for (int i = 0; prefetch->spares && i <= 2 * prefetch->depth; i++)
        stk_event_destroy(prefetch->spares[i]);
    stk_stream_destroy(prefetch->convert_stream);
    stk_stream_destroy(prefetch->copy_stream);
    stki_cond_fini(&prefetch->flight_cond);
    stki_cond_fini(&prefetch->ready_cond);
    stki_cond_fini(&prefetch->slot_cond);
    stki_mutex_fini(&prefetch->lock);
    stki_free(prefetch->slots);
    stki_free(prefetch->spares);
    stki_free(prefetch->parts);
    stki_free(prefetch->loads);
    stki_free(prefetch);
}

stk_status stki_prefetch_close(stki_prefetch *prefetch, int64_t timeout_ns, stk_error *err)
{
    stki_thread *thread = prefetch->thread;
    int copying;

    stki_lock(&prefetch->lock);
    prefetch->stopping = true;
    stki_unlock(&prefetch->lock);
    stki_wake_all(&prefetch->slot_cond);
    stki_wake_all(&prefetch->ready_cond);
    prefetch->thread = NULL;
    if (thread && !stki_thread_join(thread, stki_deadline_ns(timeout_ns))) {
        stki_thread_abandon(thread);
        prefetch->stuck = true;
    }
    if (!prefetch->stuck)
        return STK_OK;
    stki_lock(&prefetch->lock);
    copying = prefetch->in_flight.count;
    stki_unlock(&prefetch->lock);
    if (copying > 0)
        return stki_fail(
            err, STK_E_TIMEOUT,
            "%d cop%s to %s %s unfinished and %s abandoned: the device, or a stream that used %s before, hangs",
            copying, copying == 1 ? "y" : "ies", prefetch->device->name, copying == 1 ? "is" : "are",
            copying == 1 ? "was" : "were", copying == 1 ? "its slot" : "their slots");
    return stki_fail(err, STK_E_TIMEOUT, "the thread that copies to %s did not stop in time and was abandoned",
                     prefetch->device->name);
}

void stki_prefetch_destroy(stki_prefetch *prefetch)
{
    if (!prefetch)
        return;
    if (prefetch->thread)
        (void)stki_prefetch_close(prefetch, CLOSE_NS, NULL);
    unref(prefetch);
}

/* ---- next ---- */

static void finish(stki_prefetch *prefetch, stk_status status, const stk_error *error,
                   const stki_prefetch_flight *flight)
{
    const stki_prefetch_slot *slot = flight ? &prefetch->slots[flight->slot] : NULL;
    int kept = 0;

    stki_lock(&prefetch->lock);
    if (prefetch->outcome == STK_OK || prefetch->outcome == STK_END || (flight && !prefetch->copy_failed)) {
        prefetch->outcome = status;
        prefetch->copy_failed = flight != NULL;
        prefetch->error = *error;
        prefetch->error.status = status;
    }
    /* If the flight is no longer queued, its batch has been delivered; all queued batches are then discarded. */
    while (flight && kept < prefetch->queued.count && slot->state == STKI_PREFETCH_QUEUED &&
           flight == &slot->flights[slot->turn] &&
           prefetch->queued.slot[(prefetch->queued.first + kept) % STKI_PREFETCH_MAX_DEPTH] != flight->slot)
        kept++;
    if (flight)
        prefetch->queued.count = kept;
    stki_unlock(&prefetch->lock);
    stki_wake_all(&prefetch->ready_cond);
    stki_wake_all(&prefetch->slot_cond);
}

/* Returns the error of a timeout, which says why there is no batch. The caller adds the time. */
static stk_status timed_out(stki_prefetch *prefetch, stk_error *err)
{
    stki_prefetch_stats now;
    const char *name = prefetch->device->name;
    int copying;

    stki_prefetch_read_stats(prefetch, &now);
    stki_lock(&prefetch->lock);
    copying = prefetch->in_flight.count;
    stki_unlock(&prefetch->lock);
    if (now.held == now.slots && now.slots == 1)
        return stki_fail(err, STK_E_TIMEOUT, "the only slot on %s is held by a batch that has not been released", name);
    if (now.held == now.slots)
        return stki_fail(err, STK_E_TIMEOUT, "all %d slots on %s are held by batches that have not been released",
                         prefetch->depth, name);
    if (copying > 0)
        return stki_fail(err, STK_E_TIMEOUT,
                         "%d cop%s to %s of delivered batches %s unfinished: the device's streams are slow or hang",
                         copying, copying == 1 ? "y" : "ies", name, copying == 1 ? "is" : "are");
    return stki_fail(err, STK_E_TIMEOUT, "no batch has arrived for %s (slots held: %lld)", name, (long long)now.held);
}

/* Waits for the first slot in the queue, without removing it. One thread at a time. */
static stk_status wait_for_head(stki_prefetch *prefetch, int64_t deadline, int *slot, stk_error *err)
{
    stk_status status = STK_OK;
    bool timed = false;
    int64_t before = 0;

    stki_lock(&prefetch->lock);
    for (;;) {
        if (prefetch->stopping) {
            status = STK_E_CLOSED;
        } else if (prefetch->queued.count > 0) {
            *slot = prefetch->queued.slot[prefetch->queued.first];
        } else if (prefetch->outcome != STK_OK) {
            status = prefetch->outcome;
            if (err && status < 0)
                *err = prefetch->error;
        } else if (timed) {
            status = STK_E_TIMEOUT;
        } else {
            before = before ? before : stki_now_ns();
            timed = before >= deadline || !stki_wait(&prefetch->ready_cond, &prefetch->lock, deadline);
            continue;
        }
        break;
    }
    stki_unlock(&prefetch->lock);
    if (before)
        stki_count(&prefetch->wait_next_ns, stki_now_ns() - before);
    if (status == STK_E_TIMEOUT)
        return timed_out(prefetch, err);
    if (status == STK_E_CLOSED && prefetch->stopping)
        return stki_fail(err, STK_E_CLOSED, "the prefetcher of %s is closed", prefetch->device->name);
    return status;
}

/* Removes the first slot from the queue for the consumer. False: an error has discarded it. */
static bool take_head(stki_prefetch *prefetch, int slot, bool marked)
{
    stki_prefetch_slot *taken = &prefetch->slots[slot];
    bool there;

    stki_lock(&prefetch->lock);
    there = prefetch->queued.count > 0 && prefetch->queued.slot[prefetch->queued.first] == slot;
    if (there) {
        (void)pop(&prefetch->queued);
        taken->state = STKI_PREFETCH_HELD;
        if (marked) {
            stki_prefetch_flight *flight = stki_prefetch_newest(taken);
            stk_event *event = flight->reached;

            flight->reached = prefetch->spare;
            flight->was_reached = true;
            prefetch->spare = event;
        }
    }
    stki_unlock(&prefetch->lock);
    if (there)
        stki_ref(&prefetch->refs);
    return there;
}

/* Without a stream, the calling thread waits for the batch, and the whole wait is counted as exposed. After an error of
 * the copy, take_head no longer returns the batch. */
static stk_status wait_on_host(stki_prefetch *prefetch, int slot, int64_t deadline, stk_error *err)
{
    const stki_prefetch_flight *flight = stki_prefetch_newest(&prefetch->slots[slot]);
    int64_t before = 0;
    bool in_time = true, in_flight;

    stki_lock(&prefetch->lock);
    while (flight->in_flight && in_time) {
        before = before ? before : stki_now_ns();
        in_time = before < deadline && stki_wait(&prefetch->ready_cond, &prefetch->lock, deadline);
    }
    in_flight = flight->in_flight;
    stki_unlock(&prefetch->lock);
    if (before) {
        before = stki_now_ns() - before;
        stki_count(&prefetch->wait_next_ns, before);
        stki_count(&prefetch->exposed_ns, before);
    }
    if (in_flight)
        return stki_fail(err, STK_E_TIMEOUT, "the copy of the batch to %s is not finished", prefetch->device->name);
    return STK_OK;
}

stk_status stki_prefetch_next(stki_prefetch *prefetch, stk_stream *stream, int64_t timeout_ns, int *slot,
                              stk_error *err)
{
    int64_t deadline = timeout_ns == 0 ? 0 : stki_deadline_ns(timeout_ns);
    stk_error error = {0};
    stk_status status;

    if (stream && stk_stream_device(stream) != prefetch->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "a batch on %s cannot be used in a stream of %s",
                         prefetch->device->name, stk_device_name(stk_stream_device(stream)));
    if (stream && !prefetch->spare_marked) /* only for the statistics */
        prefetch->spare_marked = stk_event_record(prefetch->spare, stream, NULL) == STK_OK;
    stki_trace_begin("stoker: next");
    status = wait_for_head(prefetch, deadline, slot, err);
    stki_trace_end();
    if (status != STK_OK)
        return status;
    status =
        stream ? stki_prefetch_await(prefetch, *slot, stream, &error) : wait_on_host(prefetch, *slot, deadline, &error);
    if (status == STK_OK && !take_head(prefetch, *slot, stream && prefetch->spare_marked))
        return stki_prefetch_next(prefetch, stream, 0, slot,
                                  err); /* returns the error that caused the batch to be discarded */
    if (stream)
        prefetch->spare_marked = false;
    if (status != STK_OK && status != STK_E_TIMEOUT)
        finish(prefetch, status, &error, stki_prefetch_newest(&prefetch->slots[*slot]));
    if (status != STK_OK && err)
        *err = error;
    return status;
}

stk_status stki_prefetch_settle(stki_prefetch *prefetch, int64_t timeout_ns, stk_error *err)
{
    int64_t deadline = timeout_ns == 0 ? 0 : stki_deadline_ns(timeout_ns);
    bool in_time = true;
    stk_status status;

    stki_lock(&prefetch->lock);
    while (prefetch->in_flight.count > 0 && prefetch->outcome >= STK_OK && !prefetch->stopping && in_time)
        in_time = stki_wait(&prefetch->ready_cond, &prefetch->lock, deadline);
    status = prefetch->outcome < STK_OK ? prefetch->outcome : prefetch->in_flight.count > 0 ? STK_E_TIMEOUT : STK_OK;
    if (status == prefetch->outcome && status < STK_OK && err)
        *err = prefetch->error;
    stki_unlock(&prefetch->lock);
    if (status == STK_E_TIMEOUT)
        return stki_fail(err, status, "the last copy to %s is not finished", prefetch->device->name);
    return status;
}

void *stki_prefetch_place(const stki_prefetch *prefetch, int slot, int part)
{
    const stki_prefetch_part *p = &prefetch->parts[part];

    if (p->buffers)
        return p->buffers[slot];
    return prefetch->slots[slot].block + (p->convert ? p->offset : p->copy_offset);
}

/* ---- release ---- */

stk_status stki_prefetch_await(stki_prefetch *prefetch, int slot, stk_stream *stream, stk_error *err)
{
    return stk_stream_wait(stream, stki_prefetch_newest(&prefetch->slots[slot])->ready, err);
}

void stki_prefetch_guard(stki_prefetch *prefetch, int slot, stk_stream *stream)
{
    stk_error error = {0};
    stk_status status = stream ? stki_guards_add(&prefetch->slots[slot].guards, stream, &error) : STK_OK;

    if (status != STK_OK)
        finish(prefetch, status, &error, NULL);
}

void stki_prefetch_release(stki_prefetch *prefetch, int slot)
{
    stki_lock(&prefetch->lock);
    prefetch->slots[slot].state = STKI_PREFETCH_FREE;
    push(&prefetch->free, slot);
    stki_unlock(&prefetch->lock);
    stki_wake_one(&prefetch->slot_cond);
    unref(prefetch);
}

/* ---- statistics ---- */

void stki_prefetch_read_stats(stki_prefetch *prefetch, stki_prefetch_stats *out)
{
    int64_t moved;

    *out = (stki_prefetch_stats){
        .batches = stki_counted(&prefetch->batches),
        .bytes = stki_counted(&prefetch->bytes),
        .copy_ns = stki_counted(&prefetch->copy_ns),
        .convert_ns = stki_counted(&prefetch->convert_ns),
        .exposed_ns = stki_counted(&prefetch->exposed_ns),
        .wait_upstream_ns = stki_counted(&prefetch->wait_upstream_ns),
        .wait_slot_ns = stki_counted(&prefetch->wait_slot_ns),
        .wait_next_ns = stki_counted(&prefetch->wait_next_ns),
        .slots = prefetch->depth,
    };
    moved = out->copy_ns + out->convert_ns;
    out->exposed_ns = out->exposed_ns < moved ? out->exposed_ns : moved;
    stki_lock(&prefetch->lock);
    out->queued = prefetch->queued.count;
    for (int i = 0; i < prefetch->depth; i++)
        out->held += prefetch->slots[i].state == STKI_PREFETCH_HELD;
    stki_unlock(&prefetch->lock);
}
