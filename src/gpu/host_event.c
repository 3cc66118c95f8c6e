/* host_event.c: events of the host device: the position in a stream at which they were recorded. Lock order: an event's
 * lock before a stream's. */
#include "clock.h"
#include "error.h"
#include "host_stream.h"

typedef struct host_event {
    stk_event event;    /* must be first */
    int64_t generation; /* fork generation */
    stki_counter refs;  /* references: the handle, and every queued job that will set the time */
    stki_mutex lock;    /* guards everything below */
    stki_host_mark mark;
    int64_t records; /* number of times the event was recorded */
    int64_t at_ns;   /* time at which the stream reached the event; 0: not yet */
} host_event;

static host_event *own(const stk_event *event)
{
    return (host_event *)(uintptr_t)event; /* event is the first member; not const, because queries lock it */
}

static void release(host_event *event)
{
    if (!stki_unref(&event->refs))
        return;
    stki_host_mark_release(&event->mark);
    stki_mutex_fini(&event->lock);
    stki_free(event);
}

static stk_status check_fork(const host_event *event, stk_error *err)
{
    if (event->generation == stki_fork_generation())
        return STK_OK;
    return stki_fail(err, STK_E_FORKED, "the event of %s was created before the fork and cannot be used in the child",
                     event->event.device->name);
}

stk_status stki_host_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err)
{
    host_event *event = stki_zalloc(sizeof *event);

    if (!event)
        return stki_fail_memory(err, sizeof *event, "an event");
    event->event = (stk_event){.device = device, .timing = timing};
    event->generation = stki_fork_generation();
    stki_count_set(&event->refs, 1);
    stki_mutex_init(&event->lock);
    *out = &event->event;
    return STK_OK;
}

void stki_host_event_destroy(stk_device *device, stk_event *handle)
{
    (void)device;
    if (own(handle)->generation == stki_fork_generation())
        release(own(handle));
}

/* ---- recording ---- */

typedef struct stamp {
    host_event *event;
    int64_t record;
} stamp;

static void drop_stamp(void *job)
{
    release(((stamp *)job)->event);
}

/* Has no effect if the event has been recorded again in the meantime. */
static stk_status run_stamp(void *job, stk_error *err)
{
    host_event *event = ((stamp *)job)->event;

    (void)err;
    stki_lock(&event->lock);
    if (event->records == ((stamp *)job)->record)
        event->at_ns = stki_now_ns();
    stki_unlock(&event->lock);
    release(event);
    return STK_OK;
}

static stk_status nothing(void *job, stk_error *err)
{
    (void)job, (void)err;
    return STK_OK;
}

/* Events without timing queue an empty job, so that recording in a stream that has failed returns its error. */
static stk_status queue_record(host_event *event, stk_stream *stream, int64_t *out_position, stk_error *err)
{
    static const stki_host_work mark = {.run = nothing}, timed = {.run = run_stamp, .drop = drop_stamp};
    stamp job = {event, event->records + 1};
    stk_status status;

    if (!event->event.timing)
        return stki_host_submit(stream->device, stream, &mark, &job, 0, out_position, err);
    stki_ref(&event->refs);
    status = stki_host_submit(stream->device, stream, &timed, &job, sizeof job, out_position, err);
    if (status != STK_OK)
        release(event);
    return status;
}

stk_status stki_host_event_record(stk_device *device, stk_event *handle, stk_stream *stream, stk_error *err)
{
    host_event *event = own(handle);
    stki_host_mark mark = {.stream = stki_host_stream_of(stream)};
    stk_status status = check_fork(event, err);

    (void)device;
    if (status != STK_OK)
        return status;
    stki_lock(&event->lock);
    status = stream ? queue_record(event, stream, &mark.position, err) : STK_OK;
    if (status == STK_OK) {
        stki_host_mark before = event->mark;
        stki_host_mark_retain(&mark);
        event->mark = mark;
        event->records++;
        event->at_ns = stream ? 0 : stki_now_ns();
        stki_host_mark_release(&before);
    }
    stki_unlock(&event->lock);
    return status;
}

/* ---- queries ---- */

stk_status stki_host_event_query(stk_device *device, stk_event *handle, stk_error *err)
{
    host_event *event = own(handle);
    stk_status status = check_fork(event, err);

    (void)device;
    if (status != STK_OK)
        return status;
    stki_lock(&event->lock);
    status = stki_host_mark_query(&event->mark, err);
    stki_unlock(&event->lock);
    return status;
}

stk_status stki_host_event_wait(stk_device *device, stk_event *handle, stk_error *err)
{
    host_event *event = own(handle);
    stk_status status = check_fork(event, err);
    stki_host_mark mark;

    (void)device;
    if (status != STK_OK)
        return status;
    stki_lock(&event->lock);
    mark = event->mark;
    stki_host_mark_retain(&mark);
    stki_unlock(&event->lock);
    status = stki_host_mark_wait(&mark, err);
    stki_host_mark_release(&mark);
    return status;
}

stk_status stki_host_stream_wait(stk_device *device, stk_stream *stream, stk_event *handle, stk_error *err)
{
    host_event *event = own(handle);
    stk_status status;

    (void)device;
    if (stk_device_get_kind(handle->device) != STK_DEVICE_HOST) /* host streams can wait only for host events */
        return stk_event_synchronize(handle, STK_WAIT_FOREVER, err);
    status = check_fork(event, err);
    if (status != STK_OK)
        return status;
    stki_lock(&event->lock);
    status = stki_host_stream_wait_mark(stream, &event->mark, err);
    stki_unlock(&event->lock);
    return status;
}

static stk_status time_of(host_event *event, int64_t *out_ns, stk_error *err)
{
    stk_status status = check_fork(event, err);

    if (status != STK_OK)
        return status;
    stki_lock(&event->lock);
    status = stki_host_mark_query(&event->mark, err);
    if (status == STK_OK && event->records == 0)
        status = stki_fail(err, STK_E_BAD_ARG, "an event of %s that was never recorded has no time",
                           event->event.device->name);
    *out_ns = event->at_ns;
    stki_unlock(&event->lock);
    return status;
}

stk_status stki_host_event_elapsed(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                   stk_error *err)
{
    int64_t start = 0, end = 0;
    stk_status status = time_of(own(from), &start, err);

    (void)device;
    status = status != STK_OK ? status : time_of(own(to), &end, err);
    if (status == STK_OK)
        *out_ns = end - start;
    return status;
}
