/* sync_device.c: see sync_device.h. */
#include "sync_device.h"
#include "clock.h"
#include "error.h"
#include "thread.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Streams have no state. Events store the time at which they were recorded. */
typedef struct sync_event {
    stk_event event;
    _Atomic int64_t at_ns;
} sync_event;

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
    while (done < total) { /* each step doubles the filled part, by up to 64 KiB */
        int64_t step = done < 65536 ? done : 65536 - 65536 % pattern_bytes;
        step = step < total - done ? step : total - done;
        memcpy(to + done, to, (size_t)step);
        done += step;
    }
}

stk_status stki_sync_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err)
{
    stk_stream *stream = stki_zalloc(sizeof *stream);

    (void)urgent;
    if (!stream)
        return stki_fail_memory(err, sizeof *stream, "a stream");
    stream->device = device;
    *out = stream;
    return STK_OK;
}

void stki_sync_stream_destroy(stk_device *device, stk_stream *stream)
{
    (void)device;
    stki_free(stream);
}

stk_status stki_sync_stream_query(stk_device *device, stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    return STK_OK;
}

stk_status stki_sync_stream_wait(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err)
{
    (void)device, (void)stream;
    return stk_event_synchronize(event, STK_WAIT_FOREVER, err);
}

stk_status stki_sync_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err)
{
    sync_event *made = stki_zalloc(sizeof *made);

    if (!made)
        return stki_fail_memory(err, sizeof *made, "an event");
    made->event = (stk_event){.device = device, .timing = timing};
    *out = &made->event;
    return STK_OK;
}

void stki_sync_event_destroy(stk_device *device, stk_event *event)
{
    (void)device;
    stki_free(event);
}

stk_status stki_sync_event_record(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    atomic_store(&((sync_event *)(void *)event)->at_ns, stki_now_ns());
    return STK_OK;
}

stk_status stki_sync_event_query(stk_device *device, stk_event *event, stk_error *err)
{
    (void)device, (void)event, (void)err;
    return STK_OK;
}

stk_status stki_sync_event_elapsed(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                   stk_error *err)
{
    (void)device, (void)err;
    *out_ns = atomic_load(&((const sync_event *)(const void *)to)->at_ns) -
              atomic_load(&((const sync_event *)(const void *)from)->at_ns);
    return STK_OK;
}

stk_status stki_sync_spin(stk_device *device, int64_t ns, stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    stki_sleep_ns(ns);
    return STK_OK;
}

stk_status stki_sync_synchronize(stk_device *device, stk_error *err)
{
    (void)device, (void)err;
    return STK_OK;
}

static void processor_name(char *to, int size)
{
    FILE *info = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(to, (size_t)size, "processor");
    while (info && fgets(line, sizeof line, info)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(to, (size_t)size, "%s", colon + 2);
        break;
    }
    if (info)
        fclose(info);
}

stk_status stki_sync_properties(stk_device *device, stk_device_properties *out, stk_error *err)
{
    int64_t page = sysconf(_SC_PAGESIZE);

    (void)device, (void)err;
    processor_name(out->model, sizeof out->model);
    out->total_bytes = sysconf(_SC_PHYS_PAGES) * page;
    out->free_bytes = sysconf(_SC_AVPHYS_PAGES) * page;
    out->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return STK_OK;
}
