/* fake_device.h: a device for tests of code that works with any device: heap memory up to a limit, streams that advance
 * only on request, and failures on request. A stream is two counters, of work items queued and done; an event stores
 * the number queued when it was recorded. As with real drivers, the handle of a destroyed stream may be reused while
 * its work is still running. All functions are thread-safe. */
#ifndef STKT_FAKE_DEVICE_H
#define STKT_FAKE_DEVICE_H

#include "allocate.h"
#include "device_table.h"
#include "error.h"
#include "thread.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct fake_engine {
    struct fake_engine *next;
    stki_counter queued, done;
    bool broken; /* every query fails */
} fake_engine;

typedef struct fake_stream {
    stk_stream base;
    fake_engine *engine;
    struct fake_stream *next, *next_free;
} fake_stream;

typedef struct fake_event {
    stk_event base;
    fake_engine *engine; /* NULL: never recorded */
    int64_t ticket;
} fake_event;

typedef struct fake_device {
    stk_device base;
    stki_counter limit_bytes, reserved_bytes, allocs, frees;
    stki_counter events, synchronizes; /* events: those that exist */
    stki_counter fail_events;          /* number of event creations that will fail */
    stki_counter fail_records;
    stki_counter broken; /* allocations fail, but not for lack of memory */
    void (*freed)(void *context, void *memory, int64_t bytes);
    void *context;
    stki_mutex lock;
    fake_engine *engines;                /* guarded by lock */
    fake_stream *streams, *free_streams; /* guarded by lock */
} fake_device;

static fake_device *fake_of(stk_device *device)
{
    return (fake_device *)(void *)device;
}

static bool fake_take_one(stki_counter *counter)
{
    return stki_counted(counter) > 0 && atomic_fetch_sub(counter, 1) > 0;
}

static stk_status fake_alloc(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    fake_device *fake = fake_of(device);
    int64_t now = atomic_fetch_add(&fake->reserved_bytes, bytes) + bytes;

    if (stki_counted(&fake->broken)) {
        stki_count(&fake->reserved_bytes, -bytes);
        return stki_fail(err, STK_E_DEVICE, "the fake device is broken");
    }
    if (now > stki_counted(&fake->limit_bytes) || posix_memalign(out, 512, (size_t)bytes)) {
        stki_count(&fake->reserved_bytes, -bytes);
        return stki_fail(err, STK_E_MEMORY, "fakeMalloc: no more");
    }
    stki_count(&fake->allocs, 1);
    return STK_OK;
}

static void fake_free(stk_device *device, void *memory, int64_t bytes)
{
    fake_device *fake = fake_of(device);

    if (fake->freed)
        fake->freed(fake->context, memory, bytes);
    stki_count(&fake->reserved_bytes, -bytes);
    stki_count(&fake->frees, 1);
    free(memory);
}

static stk_status fake_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err)
{
    fake_device *fake = fake_of(device);
    fake_engine *engine = calloc(1, sizeof *engine);
    fake_stream *stream;

    (void)urgent, (void)err;
    stki_lock(&fake->lock);
    engine->next = fake->engines;
    fake->engines = engine;
    stream = fake->free_streams;
    if (stream)
        fake->free_streams = stream->next_free;
    if (!stream) {
        stream = calloc(1, sizeof *stream);
        stream->next = fake->streams;
        fake->streams = stream;
    }
    stream->base = (stk_stream){.device = device};
    stream->engine = engine;
    stki_unlock(&fake->lock);
    *out = &stream->base;
    return STK_OK;
}

static stk_status fake_stream_wrap(stk_device *device, void *native, stk_stream **out, stk_error *err)
{
    (void)native;
    fake_stream_create(device, false, out, err);
    (*out)->wrapped = true;
    return STK_OK;
}

static fake_engine *fake_engine_of(stk_stream *stream)
{
    return ((fake_stream *)(void *)stream)->engine;
}

static void fake_stream_destroy(stk_device *device, stk_stream *stream)
{
    fake_device *fake = fake_of(device);
    fake_stream *gone = (fake_stream *)(void *)stream;

    stki_lock(&fake->lock);
    gone->engine = NULL;
    gone->next_free = fake->free_streams;
    fake->free_streams = gone;
    stki_unlock(&fake->lock);
}

static stk_status fake_engine_query(const fake_engine *engine, int64_t ticket, stk_error *err)
{
    if (engine->broken)
        return stki_fail(err, STK_E_DEVICE, "fake fault in a kernel");
    return stki_counted(&engine->done) >= ticket ? STK_OK : STK_AGAIN;
}

static stk_status fake_stream_query(stk_device *device, stk_stream *stream, stk_error *err)
{
    fake_engine *engine = fake_engine_of(stream);

    (void)device;
    return fake_engine_query(engine, stki_counted(&engine->queued), err);
}

static stk_status fake_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err)
{
    fake_device *fake = fake_of(device);
    fake_event *event = fake_take_one(&fake->fail_events) ? NULL : stki_zalloc(sizeof *event);

    if (!event)
        return stki_fail_memory(err, sizeof *event, "a fake event");
    event->base = (stk_event){.device = device, .timing = timing};
    stki_count(&fake->events, 1);
    *out = &event->base;
    return STK_OK;
}

static void fake_event_destroy(stk_device *device, stk_event *event)
{
    stki_count(&fake_of(device)->events, -1);
    stki_free(event);
}

static stk_status fake_event_record(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err)
{
    fake_event *recorded = (fake_event *)(void *)event;

    if (fake_take_one(&fake_of(device)->fail_records))
        return stki_fail(err, STK_E_DEVICE, "the fake event is not recorded");
    recorded->engine = fake_engine_of(stream);
    recorded->ticket = stki_counted(&recorded->engine->queued);
    return STK_OK;
}

static stk_status fake_event_query(stk_device *device, stk_event *event, stk_error *err)
{
    const fake_event *asked = (fake_event *)(void *)event;

    (void)device;
    return asked->engine ? fake_engine_query(asked->engine, asked->ticket, err) : STK_OK;
}

/* Returns whether all queued work is done. */
static stk_status fake_synchronize(stk_device *device, stk_error *err)
{
    fake_device *fake = fake_of(device);

    (void)err;
    stki_lock(&fake->lock);
    for (fake_engine *engine = fake->engines; engine; engine = engine->next)
        stki_count_set(&engine->done, stki_counted(&engine->queued));
    stki_unlock(&fake->lock);
    stki_count(&fake->synchronizes, 1);
    return STK_OK;
}

static const stki_device_ops fake_ops = {
    .alloc = fake_alloc,
    .free = fake_free,
    .alloc_pinned = fake_alloc,
    .free_pinned = fake_free,
    .stream_create = fake_stream_create,
    .stream_wrap = fake_stream_wrap,
    .stream_destroy = fake_stream_destroy,
    .stream_query = fake_stream_query,
    .event_create = fake_event_create,
    .event_destroy = fake_event_destroy,
    .event_record = fake_event_record,
    .event_query = fake_event_query,
    .synchronize = fake_synchronize,
};

/* Resets the device. The first call registers it under a name that it keeps. */
static void fake_init(fake_device *fake, const char *name)
{
    bool fresh = fake->base.name == NULL;

    *fake = (fake_device){.base = {.ops = &fake_ops, .kind = STK_DEVICE_TEST, .name = name},
                          .limit_bytes = INT64_MAX / 8,
                          .lock = {PTHREAD_MUTEX_INITIALIZER}};
    if (fresh && stki_device_register(&fake->base, NULL))
        abort();
}

/* Frees all streams and engines, including those that were not destroyed. */
static void fake_fini(fake_device *fake)
{
    while (fake->engines) {
        fake_engine *next = fake->engines->next;
        free(fake->engines);
        fake->engines = next;
    }
    while (fake->streams) {
        fake_stream *next = fake->streams->next;
        free(fake->streams);
        fake->streams = next;
    }
}

static inline void fake_queue(stk_stream *stream, int64_t work)
{
    stki_count(&fake_engine_of(stream)->queued, work);
}

static inline void fake_finish_engine(fake_engine *engine)
{
    stki_count_set(&engine->done, stki_counted(&engine->queued));
}

static inline void fake_finish(stk_stream *stream)
{
    fake_finish_engine(fake_engine_of(stream));
}

#endif
