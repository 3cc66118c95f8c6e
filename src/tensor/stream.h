/* stream.h: the stream in which the core queues its work on a device, and references to streams. */
#ifndef STKI_STREAM_H
#define STKI_STREAM_H

#include "device_table.h"

/* Returns `stream`, or the thread's current stream if that is NULL. If the result is also NULL, work must be complete
 * when the call that does it returns. */
static inline stk_stream *stki_stream_for(stk_device *device, stk_stream *stream)
{
    return stream ? stream : stk_stream_current(device);
}

/* Like stk_stream_create, for short work that other work waits for: it does not have to wait until a large kernel in
 * another stream has finished. */
stk_status stki_stream_create_urgent(stk_device *device, stk_stream **out, stk_error *err);

/* References. The library may hold streams beyond the life of their handles: a DLPack deleter, for example, records an
 * event in the stream that its tensor was exported for. A stream created by the library lives until its last reference
 * is released. A wrapped stream is not used after its handle has been destroyed; an event after its last work then
 * represents it. Thread-safe. */
void stki_stream_retain(stk_stream *stream);  /* NULL is allowed */
void stki_stream_release(stk_stream *stream); /* NULL is allowed */
/* Records the event after all work queued in the stream. `marked` is false after an error, and for a wrapped stream
 * whose handle has been destroyed: hold the stream and query it instead. */
stk_status stki_stream_mark(stk_stream *stream, stk_event *event, bool *marked, stk_error *err);
/* Makes work queued later in `stream` wait for all work queued in `held`. */
stk_status stki_stream_follow(stk_stream *stream, stk_stream *held, stk_error *err);
/* Like stk_stream_synchronize, for any held stream. */
stk_status stki_stream_await(stk_stream *stream, int64_t timeout_ns, stk_error *err);

/* How long to wait for the end of a stream if there is no memory for an event that marks it. Tests shorten it. */
extern stki_counter stki_stream_patience_ns;

/* Calls `query` with increasing pauses until it returns a status other than STK_AGAIN. STK_E_TIMEOUT: the message names
 * `noun`. */
typedef stk_status stki_query_fn(void *what, stk_error *err);
stk_status stki_poll(stki_query_fn *query, void *what, const char *noun, int64_t timeout_ns, stk_error *err);

#endif
