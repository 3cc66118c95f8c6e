/* sync_device.c: see sync_device.h. */
#include "sync_device.h"
#include <string.h>

/* Streams and events are only compared with NULL by their users, so one object stands for all of them. */
static char the_stream, the_event;

void stki_fill_bytes(void *dst, const void *pattern, int64_t pattern_bytes, int64_t count)
{
    char *to = dst;
    int64_t total = pattern_bytes * count, done = pattern_bytes;

    if (total <= 0)
        return;
    if (pattern_bytes == 1) {
        memset(dst, *(const unsigned char *)pattern, (size_t)total);
        return;
    }
    memcpy(to, pattern, (size_t)pattern_bytes);
    while (done < total) { /* what is there doubles, up to 64 KiB a step */
        int64_t step = done < 65536 ? done : 65536 - 65536 % pattern_bytes;
        step = step < total - done ? step : total - done;
        memcpy(to + done, to, (size_t)step);
        done += step;
    }
}

stk_status stki_sync_stream_create(stk_device *device, stki_stream **out, stk_error *err)
{
    (void)device, (void)err;
    *out = (stki_stream *)(void *)&the_stream;
    return STK_OK;
}

void stki_sync_stream_destroy(stk_device *device, stki_stream *stream)
{
    (void)device, (void)stream;
}

stk_status stki_sync_stream_synchronize(stk_device *device, stki_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    return STK_OK;
}

stk_status stki_sync_event_create(stk_device *device, stki_event **out, stk_error *err)
{
    (void)device, (void)err;
    *out = (stki_event *)(void *)&the_event;
    return STK_OK;
}

void stki_sync_event_destroy(stk_device *device, stki_event *event)
{
    (void)device, (void)event;
}

stk_status stki_sync_event_record(stk_device *device, stki_event *event, stki_stream *stream, stk_error *err)
{
    (void)device, (void)event, (void)stream, (void)err;
    return STK_OK;
}

stk_status stki_sync_event_query(stk_device *device, stki_event *event, stk_error *err)
{
    (void)device, (void)event, (void)err;
    return STK_OK;
}

stk_status stki_sync_stream_wait(stk_device *device, stki_stream *stream, stki_event *event, stk_error *err)
{
    (void)device, (void)stream, (void)event, (void)err;
    return STK_OK;
}

stk_status stki_sync_synchronize(stk_device *device, stk_error *err)
{
    (void)device, (void)err;
    return STK_OK;
}
