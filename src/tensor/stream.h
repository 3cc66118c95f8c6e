/* stream.h: what the core asks of streams: the one that its work on a device goes to. */
#ifndef STKI_STREAM_H
#define STKI_STREAM_H

#include "device_table.h"

/* `stream`, or the current one of this thread. NULL: done when the call returns. */
static inline stk_stream *stki_stream_for(stk_device *device, stk_stream *stream)
{
    return stream ? stream : stk_stream_current(device);
}

#endif
