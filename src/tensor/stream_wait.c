/* stream_wait.c: waits for streams and events: by polling if there is a timeout, so that the timeout works even if a
 * driver call would hang. This is a separate file because devices also use it. */
#include "clock.h"
#include "error.h"
#include "stream.h"
#include "thread.h"

enum { FIRST_SLEEP_NS = 2000, LONGEST_SLEEP_NS = 200000 };

stk_status stki_poll(stki_query_fn *query, void *what, const char *noun, int64_t timeout_ns, stk_error *err)
{
    int64_t start = stki_now_ns(), deadline = stki_deadline_ns(timeout_ns), sleep_ns = FIRST_SLEEP_NS;
    stk_status status;

    while ((status = query(what, err)) == STK_AGAIN) {
        int64_t left = deadline - stki_now_ns();
        if (left <= 0)
            return stki_fail(err, STK_E_TIMEOUT, "%s has not finished after %.3f s", noun,
                             (double)(stki_now_ns() - start) / 1e9);
        stki_sleep_ns(sleep_ns < left ? sleep_ns : left);
        sleep_ns = sleep_ns * 2 < LONGEST_SLEEP_NS ? sleep_ns * 2 : LONGEST_SLEEP_NS;
    }
    return status;
}

static stk_status query_stream(void *what, stk_error *err)
{
    stk_stream *stream = what;

    return stream ? stream->device->ops->stream_query(stream->device, stream, err) : STK_OK;
}

stk_status stk_stream_synchronize(stk_stream *stream, int64_t timeout_ns, stk_error *err)
{
    return stki_poll(query_stream, stream, "the stream", timeout_ns, err);
}

static stk_status query_event(void *what, stk_error *err)
{
    stk_event *event = what;

    return event->device->ops->event_query(event->device, event, err);
}

stk_status stk_event_synchronize(stk_event *event, int64_t timeout_ns, stk_error *err)
{
    if (timeout_ns == STK_WAIT_FOREVER && event->device->ops->event_wait)
        return event->device->ops->event_wait(event->device, event, err);
    return stki_poll(query_event, event, "the event", timeout_ns, err);
}
