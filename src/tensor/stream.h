/* stream.h: what the core asks of streams: the one that its work on a device goes to. */
#ifndef STKI_STREAM_H
#define STKI_STREAM_H

#include "device_table.h"

/* `stream`, or the current one of this thread. NULL: done when the call returns. */
static inline stk_stream *stki_stream_for(stk_device *device, stk_stream *stream)
{
    return stream ? stream : stk_stream_current(device);
}

/* As stk_stream_create, for short work that others wait for: it need not wait until a large kernel of another stream
 * leaves the device. */
stk_status stki_stream_create_urgent(stk_device *device, stk_stream **out, stk_error *err);

/* The library holds streams of its callers beyond their handles: a DLPack deleter records an event in the stream that
 * its tensor was exported for, whenever it runs. A stream of the library's lives until the last reference is released.
 * Of a wrapped stream nothing is used after its handle was destroyed; then an event behind its last work stands for it.
 * Any thread. */
void stki_stream_retain(stk_stream *stream);  /* NULL is allowed */
void stki_stream_release(stk_stream *stream); /* NULL is allowed */
/* Records the event behind all that is queued in the stream. `marked` is false after an error, and for a wrapped stream
 * whose handle was destroyed: hold it and ask it instead. */
stk_status stki_stream_mark(stk_stream *stream, stk_event *event, bool *marked, stk_error *err);
/* Work queued later in `stream` runs after all that is queued in `held`. */
stk_status stki_stream_follow(stk_stream *stream, stk_stream *held, stk_error *err);
/* As stk_stream_synchronize, for any stream that is held. */
stk_status stki_stream_await(stk_stream *stream, int64_t timeout_ns, stk_error *err);

/* Calls `query` until it returns another status than STK_AGAIN, with growing pauses. STK_E_TIMEOUT names `noun`. */
typedef stk_status stki_query_fn(void *what, stk_error *err);
stk_status stki_poll(stki_query_fn *query, void *what, const char *noun, int64_t timeout_ns, stk_error *err);

#endif
