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
 * its tensor was exported for, whenever it runs. A stream of the library's lives until the last one lets go. Of a
 * wrapped one nothing is used after its handle was destroyed: the last work is marked then, and stki_stream_mark waits
 * for that. Any thread. */
void stki_stream_retain(stk_stream *stream); /* NULL is fine */
void stki_stream_release(stk_stream *stream);
/* Records the event behind all that the stream holds. */
stk_status stki_stream_mark(stk_stream *stream, stk_event *event, stk_error *err);

#endif
