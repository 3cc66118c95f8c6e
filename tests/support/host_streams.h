/* host_streams.h: streams and events of the host device in tests: creating, blocking, releasing and waiting. */
#ifndef STKT_HOST_STREAMS_H
#define STKT_HOST_STREAMS_H

#include "clock.h"
#include "host_faults.h"
#include "stk_test.h"
#include <stoker/device.h>

#define MS (STKI_SECOND / 1000)

/* One of the first three host devices. */
static inline stk_device *host(int index)
{
    const char *names[] = {"host", "host:1", "host:2"};
    stk_device *device = NULL;
    stk_error err;

    assert_ok(stk_device_find(names[index], &device, &err));
    return device;
}

static inline stk_stream *stream_of(stk_device *device)
{
    stk_stream *stream = NULL;
    stk_error err;

    assert_ok(stk_stream_create(device, &stream, &err));
    return stream;
}

static inline stk_event *event_of(stk_device *device, bool timing)
{
    stk_event *event = NULL;
    stk_error err;

    assert_ok(stk_event_create(device, timing, &event, &err));
    return event;
}

static inline void hold(stk_stream *stream)
{
    stkt_host_set_faults(stk_stream_device(stream), stream, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
}

static inline void let_run(stk_stream *stream)
{
    stkt_host_set_faults(stk_stream_device(stream), stream, NULL);
}

/* The source must stay unchanged until the stream has copied it. */
static inline void copy(stk_stream *stream, void *dst, const void *src, int64_t bytes)
{
    stk_device *device = stk_stream_device(stream);
    stk_error err;

    assert_ok(device->ops->copy(device, dst, true, src, false, bytes, stream, &err));
}

static inline void finish(stk_stream *stream)
{
    stk_error err;

    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
}

#endif
