/* device_table.h: what a device must be able to do. The CPU device (cpu_device.c) does it all at once and in the
 * calling thread; src/gpu registers asynchronous ones. Streams and events are opaque to everybody but their device. All
 * functions may be called from any thread. A NULL stream is the device's synchronous default.
 */
#ifndef STKI_DEVICE_TABLE_H
#define STKI_DEVICE_TABLE_H

#include "allocate.h"
#include <stdbool.h>
#include <stoker/device.h>

struct stki_convert;

typedef struct stki_stream stki_stream;
typedef struct stki_event stki_event;

typedef struct stki_device_ops {
    /* Memory of the device itself, and host memory that it can copy from without a detour (page-locked for a GPU). */
    stk_status (*alloc)(stk_device *device, int64_t bytes, void **out, stk_error *err);
    void (*free)(stk_device *device, void *block, int64_t bytes);
    stk_status (*alloc_pinned)(stk_device *device, int64_t bytes, void **out, stk_error *err);
    void (*free_pinned)(stk_device *device, void *block, int64_t bytes);

    /* Plain bytes. Direction: a side is in device memory or host memory. Source and destination stay valid until the
     * stream has passed. */
    stk_status (*copy)(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                       int64_t bytes, stki_stream *stream, stk_error *err);
    stk_status (*fill)(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                       stki_stream *stream, stk_error *err);
    /* Runs a compiled plan over `count` samples, both sides in device memory, strides in bytes from sample to sample.
     */
    stk_status (*convert)(stk_device *device, const struct stki_convert *convert, void *dst, int64_t dst_stride,
                          const void *src, int64_t src_stride, int64_t count, stki_stream *stream, stk_error *err);

    stk_status (*stream_create)(stk_device *device, stki_stream **out, stk_error *err);
    void (*stream_destroy)(stk_device *device, stki_stream *stream);
    stk_status (*stream_synchronize)(stk_device *device, stki_stream *stream, stk_error *err);
    stk_status (*event_create)(stk_device *device, stki_event **out, stk_error *err);
    void (*event_destroy)(stk_device *device, stki_event *event);
    stk_status (*event_record)(stk_device *device, stki_event *event, stki_stream *stream, stk_error *err);
    stk_status (*event_query)(stk_device *device, stki_event *event, stk_error *err); /* STK_AGAIN: not yet */
    stk_status (*stream_wait)(stk_device *device, stki_stream *stream, stki_event *event, stk_error *err);
    stk_status (*synchronize)(stk_device *device, stk_error *err);
} stki_device_ops;

struct stk_device {
    const stki_device_ops *ops;
    stk_device_kind kind;
    int index;
    const char *name; /* "cpu", "cuda:0" */
    bool host_memory; /* ordinary loads and stores reach its memory */
    void *context;
    stki_memory_counters memory; /* of an accelerator, kept by its alloc and free through stki_device_note */
};

/* Memory of an accelerator came or went: counted for the device and for all of them. */
void stki_device_note(stk_device *device, int64_t bytes, int64_t blocks);
/* Calls `visit` for every device, the CPU first. */
void stki_device_each(void (*visit)(void *context, stk_device *device), void *context);

/* Adds a device for good; at most 64. Called before the device is first looked for. */
stk_status stki_device_register(stk_device *device, stk_error *err);
/* A second memory space for tests, registered on first call: memory of its own, copies through the table only. */
stk_device *stki_device_test(void);

#endif
