/* stream.c: the public functions of streams and events, implemented by the device's table. */
#include "stream.h"
#include "clock.h"
#include "device_table.h"
#include "error.h"
#include "thread.h"
#include <inttypes.h>

enum { MAX_CURRENT = 65 };

stki_counter stki_stream_patience_ns = 600 * STKI_SECOND;

/* The current streams of a thread, one per device (the CPU and at most 64 others). Entries are used from the front, so
 * a search ends at the first one without a device. */
static _Thread_local struct {
    stk_device *device;
    stk_stream *stream;
} current[MAX_CURRENT];

static stki_counter numbers;
/* Guards `ended` and `end` of all wrapped streams. Held while an event is recorded in such a stream, so that the stream
 * cannot be ended at that time. */
static stki_mutex end_lock = {PTHREAD_MUTEX_INITIALIZER};

/* ---- streams ---- */

static stk_status made(stk_stream *stream)
{
    stream->number = atomic_fetch_add(&numbers, 1) + 1;
    stki_count_set(&stream->refs, 1);
    return STK_OK;
}

static stk_status create(stk_device *device, bool urgent, stk_stream **out, stk_error *err)
{
    stk_status status;

    device = device ? device : stk_device_cpu();
    status = device->ops->stream_create(device, urgent, out, err);
    return status != STK_OK ? status : made(*out);
}

stk_status stk_stream_create(stk_device *device, stk_stream **out, stk_error *err)
{
    return create(device, false, out, err);
}

stk_status stki_stream_create_urgent(stk_device *device, stk_stream **out, stk_error *err)
{
    return create(device, true, out, err);
}

stk_status stk_stream_wrap(stk_device *device, void *native, stk_stream **out, stk_error *err)
{
    stk_status status;

    device = device ? device : stk_device_cpu();
    if (!device->ops->stream_wrap)
        return stki_fail(err, STK_E_UNSUPPORTED, "%s has no native streams to wrap", device->name);
    status = device->ops->stream_wrap(device, native, out, err);
    return status != STK_OK ? status : made(*out);
}

void stki_stream_retain(stk_stream *stream)
{
    if (stream)
        stki_ref(&stream->refs);
}

void stki_stream_release(stk_stream *stream)
{
    if (!stream || !stki_unref(&stream->refs))
        return;
    stk_event_destroy(stream->end);
    stream->device->ops->stream_destroy(stream->device, stream);
}

/* Stops using the caller's native stream: records an event after its last work or, if that fails, waits a limited time
 * for that work. */
static void end_wrapped(stk_stream *stream)
{
    stk_event *end = NULL;
    stk_status status = STK_OK;

    if (stk_event_create(stream->device, false, &end, NULL) != STK_OK ||
        stk_event_record(end, stream, NULL) != STK_OK) {
        stk_event_destroy(end);
        end = NULL;
        status = stk_stream_synchronize(stream, stki_counted(&stki_stream_patience_ns), NULL);
    }
    stki_lock(&end_lock);
    stream->end = end;
    stream->ended = status == STK_E_TIMEOUT ? STKI_STREAM_LOST : STKI_STREAM_ENDED;
    stki_unlock(&end_lock);
}

stk_status stki_stream_mark(stk_stream *stream, stk_event *event, bool *marked, stk_error *err)
{
    stk_status status = STK_OK;

    if (stream->wrapped)
        stki_lock(&end_lock);
    *marked = !stream->ended;
    if (*marked)
        status = stk_event_record(event, stream, err);
    if (stream->wrapped)
        stki_unlock(&end_lock);
    *marked = *marked && status == STK_OK;
    return status;
}

static stk_status query_held(void *what, stk_error *err)
{
    stk_stream *stream = what;
    stk_status status;

    if (!stream->wrapped)
        return stk_stream_query(stream, err);
    stki_lock(&end_lock);
    if (!stream->ended)
        status = stk_stream_query(stream, err);
    else if (stream->ended == STKI_STREAM_LOST)
        status = STK_AGAIN;
    else
        status = stream->end ? stk_event_query(stream->end, err) : STK_OK;
    stki_unlock(&end_lock);
    return status;
}

stk_status stki_stream_await(stk_stream *stream, int64_t timeout_ns, stk_error *err)
{
    return stki_poll(query_held, stream, "the stream", timeout_ns, err);
}

stk_status stki_stream_follow(stk_stream *stream, stk_stream *held, stk_error *err)
{
    stk_event *event;
    bool marked;
    stk_status status = stk_event_create(held->device, false, &event, err);

    if (status != STK_OK)
        return status;
    status = stki_stream_mark(held, event, &marked, err);
    if (marked)
        status = stk_stream_wait(stream, event, err);
    else if (status == STK_OK)
        status = stki_stream_await(held, stki_counted(&stki_stream_patience_ns), err);
    stk_event_destroy(event);
    return status;
}

static void forget_stream(void *context, stk_device *device)
{
    if (device->pool)
        device->pool->ops->forget_stream(device->pool, context);
    if (device->pinned_pool)
        device->pinned_pool->ops->forget_stream(device->pinned_pool, context);
}

void stk_stream_destroy(stk_stream *stream)
{
    if (!stream)
        return;
    for (int i = 0; i < MAX_CURRENT && current[i].device; i++)
        if (current[i].stream == stream)
            current[i].stream = NULL;
    stki_device_each(forget_stream, stream);
    if (stream->wrapped && stki_counted(&stream->refs) > 1)
        end_wrapped(stream);
    stki_stream_release(stream);
}

stk_device *stk_stream_device(const stk_stream *stream)
{
    return stream ? stream->device : stk_device_cpu();
}

void *stk_stream_native(const stk_stream *stream)
{
    return stream ? stream->native : NULL;
}

stk_status stk_stream_query(stk_stream *stream, stk_error *err)
{
    return stream ? stream->device->ops->stream_query(stream->device, stream, err) : STK_OK;
}

stk_status stk_stream_wait(stk_stream *stream, stk_event *event, stk_error *err)
{
    if (!stream || !event)
        return stki_fail(err, STK_E_BAD_ARG, "waiting in a stream requires a stream and an event");
    return stream->device->ops->stream_wait(stream->device, stream, event, err);
}

stk_status stk_stream_spin(stk_stream *stream, int64_t ns, stk_error *err)
{
    if (!stream || ns < 0)
        return stki_fail(err, STK_E_BAD_ARG, "spinning requires a stream and a time of at least 0 ns");
    return stream->device->ops->spin(stream->device, ns, stream, err);
}

stk_stream *stk_stream_set_current(stk_device *device, stk_stream *stream)
{
    stk_stream *before;
    int place = 0;

    device = device ? device : stk_device_cpu();
    while (place < MAX_CURRENT - 1 && current[place].device && current[place].device != device)
        place++;
    before = current[place].device == device ? current[place].stream : NULL;
    current[place].device = device;
    current[place].stream = stream;
    return before;
}

stk_stream *stk_stream_current(stk_device *device)
{
    device = device ? device : stk_device_cpu();
    for (int i = 0; i < MAX_CURRENT && current[i].device; i++)
        if (current[i].device == device)
            return current[i].stream;
    return NULL;
}

/* ---- events ---- */

stk_status stk_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err)
{
    device = device ? device : stk_device_cpu();
    return device->ops->event_create(device, timing, out, err);
}

void stk_event_destroy(stk_event *event)
{
    if (event)
        event->device->ops->event_destroy(event->device, event);
}

stk_status stk_event_record(stk_event *event, stk_stream *stream, stk_error *err)
{
    if (stream && stream->device != event->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "an event of %s cannot be recorded in a stream of %s",
                         event->device->name, stream->device->name);
    return event->device->ops->event_record(event->device, event, stream, err);
}

stk_status stk_event_query(stk_event *event, stk_error *err)
{
    return event->device->ops->event_query(event->device, event, err);
}

stk_status stk_event_elapsed(const stk_event *from, const stk_event *to, int64_t *out_ns, stk_error *err)
{
    if (from->device != to->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "the events belong to different devices: %s and %s", from->device->name,
                         to->device->name);
    if (!from->timing || !to->timing)
        return stki_fail(err, STK_E_BAD_ARG, "an event created without timing has no time");
    return from->device->ops->event_elapsed(from->device, from, to, out_ns, err);
}
