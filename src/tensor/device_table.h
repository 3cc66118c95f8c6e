/* device_table.h: the functions that a device implements. The CPU device (cpu_device.c) executes everything
 * synchronously in the calling thread; asynchronous devices are in src/gpu. All functions may be called from any
 * thread. With a NULL stream the work is done when the call returns. */
#ifndef STKI_DEVICE_TABLE_H
#define STKI_DEVICE_TABLE_H

#include "allocate.h"
#include "counter.h"
#include <stdbool.h>
#include <stoker/device.h>
#include <stoker/tensor.h>

struct stki_convert;
struct stki_elementwise_job;
struct stki_sum_job;
struct stki_quantize_job;

/* Each device defines its own structs that begin with these. */
struct stk_stream {
    stk_device *device;
    void *native; /* if wrapped, the caller's handle */
    bool wrapped;

    /* owned by stream.c, see stream.h */
    int64_t number; /* unique in the process */
    stki_counter refs;
    enum {
        STKI_STREAM_LIVE,
        STKI_STREAM_ENDED, /* wrapped: the handle was destroyed and the caller's stream may no longer exist */
        STKI_STREAM_LOST   /* like ENDED, but its last work could be neither marked by an event nor waited for */
    } ended;
    stk_event *end; /* recorded after its last work; NULL: LIVE, LOST, or that work has completed */
};

struct stk_event {
    stk_device *device;
    bool timing;
};

typedef struct stki_device_ops {
    /* Device memory, and host memory that the device can copy from directly (page-locked for a GPU). Allocates exactly
     * `bytes` bytes from the driver; tensors use the pools below. A block must not be in use when it is freed. */
    stk_status (*alloc)(stk_device *device, int64_t bytes, void **out, stk_error *err);
    void (*free)(stk_device *device, void *block, int64_t bytes);
    stk_status (*alloc_pinned)(stk_device *device, int64_t bytes, void **out, stk_error *err);
    void (*free_pinned)(stk_device *device, void *block, int64_t bytes);

    /* Copies bytes. Each side is in device memory (of this device or another of its kind) or host memory. Source and
     * destination must stay valid until the stream has executed the copy. */
    stk_status (*copy)(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                       int64_t bytes, stk_stream *stream, stk_error *err);
    stk_status (*fill)(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                       stk_stream *stream, stk_error *err);
    /* Runs a compiled plan over `count` samples. Both sides are in device memory; strides are the bytes from one sample
     * to the next. The plan must stay valid until the stream has executed the work. STK_E_UNSUPPORTED names a step that
     * the device does not implement. */
    stk_status (*convert)(stk_device *device, const struct stki_convert *convert, void *dst, int64_t dst_stride,
                          const void *src, int64_t src_stride, int64_t count, stk_stream *stream, stk_error *err);

    /* `urgent`: its kernels take priority over those of other streams, if the device supports that. */
    stk_status (*stream_create)(stk_device *device, bool urgent, stk_stream **out, stk_error *err);
    stk_status (*stream_wrap)(stk_device *device, void *native, stk_stream **out,
                              stk_error *err); /* NULL: not supported */
    void (*stream_destroy)(stk_device *device, stk_stream *stream);
    stk_status (*stream_query)(stk_device *device, stk_stream *stream, stk_error *err); /* STK_AGAIN: not yet */
    stk_status (*stream_wait)(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err);
    stk_status (*event_create)(stk_device *device, bool timing, stk_event **out, stk_error *err);
    void (*event_destroy)(stk_device *device, stk_event *event);
    stk_status (*event_record)(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err);
    stk_status (*event_query)(stk_device *device, stk_event *event, stk_error *err); /* STK_AGAIN: not yet */
    /* Blocks until the event has completed, without a timeout. NULL: the event is polled. */
    stk_status (*event_wait)(stk_device *device, stk_event *event, stk_error *err);
    stk_status (*event_elapsed)(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                stk_error *err);
    /* Keeps the stream busy for `ns` nanoseconds without accessing memory. */
    stk_status (*spin)(stk_device *device, int64_t ns, stk_stream *stream, stk_error *err);
    stk_status (*synchronize)(stk_device *device, stk_error *err);
    stk_status (*properties)(stk_device *device, stk_device_properties *out, stk_error *err);

    /* Kernels of the tensor core; all operands are in this device's memory. If NULL, or on STK_E_UNSUPPORTED before
     * anything has been queued, the core copies the operands to ordinary memory, computes there and copies back. */
    /* dst[i] = cast(src[i]) for every index of the shape; strides in bytes, any sign, 0 in the source. */
    stk_status (*copy_strided)(stk_device *device, const stk_tensor *dst, const stk_tensor *src, stk_stream *stream,
                               stk_error *err);
    /* The struct is in device_kernels.h. */
    stk_status (*elementwise)(stk_device *device, const struct stki_elementwise_job *job, stk_stream *stream,
                              stk_error *err);
    stk_status (*sum)(stk_device *device, const struct stki_sum_job *job, stk_stream *stream, stk_error *err);
    stk_status (*quantize)(stk_device *device, const struct stki_quantize_job *job, stk_stream *stream, stk_error *err);
} stki_device_ops;

/* The allocator of tensors: a cache over ops->alloc or ops->alloc_pinned (src/gpu/caching_pool.h). `stream` is the
 * stream that uses the block. A freed block may be reused immediately by the same stream, and by other streams only
 * after the stream and all recorded streams have passed the point at which it was freed. */
typedef struct stki_pool stki_pool;
typedef struct stki_pool_ops {
    stk_status (*alloc)(stki_pool *pool, int64_t bytes, stk_stream *stream, void **out, stk_error *err);
    /* For long-lived blocks: allocates exactly `bytes` bytes from the driver, bypassing the cache; the pool counts
     * them. */
    stk_status (*alloc_exact)(stki_pool *pool, int64_t bytes, void **out, stk_error *err);
    void (*free)(stki_pool *pool, void *block, int64_t bytes);
    /* Tells the pool that another stream has work on the block, or will have before the block is freed. When the block
     * is freed, an event is recorded in that stream, and the block is not reused until the event has completed. */
    void (*record_stream)(stki_pool *pool, void *block, stk_stream *stream);
    /* Call before the stream is destroyed. */
    void (*forget_stream)(stki_pool *pool, stk_stream *stream);
    stk_status (*empty)(stki_pool *pool, stk_error *err);
    void (*stats)(stki_pool *pool, stk_device_memory_stats *out);
    void (*reset_peaks)(stki_pool *pool);
    stk_status (*snapshot)(stki_pool *pool, char **out, stk_error *err);
    stk_status (*summary)(stki_pool *pool, char **out, stk_error *err);
} stki_pool_ops;

struct stki_pool {
    const stki_pool_ops *ops;
    stk_device *device;
    stk_device_memory kind;
};

struct stk_device {
    const stki_device_ops *ops;
    stk_device_kind kind;
    int index;
    const char *name; /* "cpu", "cuda:0" */
    bool host_memory; /* the CPU can access its memory at any time; true only for the CPU device */
    void *context;
    stki_memory_counters memory;   /* accelerators: updated by alloc and free through stki_device_note */
    stki_pool *pool, *pinned_pool; /* NULL: tensors allocate exact blocks through ops */
};

/* Counts accelerator memory that was allocated or freed, for the device and in total. */
void stki_device_note(stk_device *device, int64_t bytes, int64_t blocks);
/* Calls `visit` for every device, the CPU first. */
void stki_device_each(void (*visit)(void *context, stk_device *device), void *context);

/* Registers a device permanently; at most 64. Call before the device is first looked up. */
stk_status stki_device_register(stk_device *device, stk_error *err);
/* NULL: no device of this name is registered. */
stk_device *stki_device_registered(const char *name);

/* Device providers. stk_device_find calls them for names that begin with their prefix, and they register the devices
 * they create. The list is in src/gpu/providers.c. */
typedef struct stki_device_provider {
    const char *prefix; /* "cuda" matches "cuda" and "cuda:0" */
    stk_status (*find)(const char *name, stk_device **out, stk_error *err);
    int (*count)(stk_error *err);
} stki_device_provider;

#endif
