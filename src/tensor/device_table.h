/* device_table.h: what a device must be able to do. The CPU device (cpu_device.c) does it all at once and in the
 * calling thread; src/gpu brings the asynchronous ones. All functions may be called from any thread. A NULL stream:
 * done when the call returns.
 */
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

/* Each device has structs of its own that begin with these. */
struct stk_stream {
    stk_device *device;
    void *native; /* the caller's, where it was wrapped */
    bool wrapped;

    /* stream.c's, see stream.h */
    int64_t number; /* no other stream of the process has it */
    stki_counter refs;
    enum {
        STKI_STREAM_LIVE,
        STKI_STREAM_ENDED, /* wrapped: the handle was destroyed, the caller's stream may be gone */
        STKI_STREAM_LOST   /* and its last work could neither be marked nor waited for */
    } ended;
    stk_event *end; /* behind its last work; NULL: that was waited for */
};

struct stk_event {
    stk_device *device;
    bool timing;
};

typedef struct stki_device_ops {
    /* Memory of the device itself, and host memory that it can copy from without a detour (page-locked for a GPU).
     * Exactly that many bytes, straight from the driver; tensors take theirs from the pools below. Nothing uses a block
     * any more when it is freed. */
    stk_status (*alloc)(stk_device *device, int64_t bytes, void **out, stk_error *err);
    void (*free)(stk_device *device, void *block, int64_t bytes);
    stk_status (*alloc_pinned)(stk_device *device, int64_t bytes, void **out, stk_error *err);
    void (*free_pinned)(stk_device *device, void *block, int64_t bytes);

    /* Plain bytes. Direction: a side is in device memory (of this device, or of another of its kind) or host memory.
     * Source and destination stay valid until the stream has passed. */
    stk_status (*copy)(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                       int64_t bytes, stk_stream *stream, stk_error *err);
    stk_status (*fill)(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                       stk_stream *stream, stk_error *err);
    /* Runs a compiled plan over `count` samples, both sides in device memory, strides in bytes from sample to sample.
     * The plan stays valid until the stream has passed. STK_E_UNSUPPORTED names the step that has no form here. */
    stk_status (*convert)(stk_device *device, const struct stki_convert *convert, void *dst, int64_t dst_stride,
                          const void *src, int64_t src_stride, int64_t count, stk_stream *stream, stk_error *err);

    /* `urgent`: its kernels come before those of other streams, where the device can choose. */
    stk_status (*stream_create)(stk_device *device, bool urgent, stk_stream **out, stk_error *err);
    stk_status (*stream_wrap)(stk_device *device, void *native, stk_stream **out, stk_error *err); /* NULL: has none */
    void (*stream_destroy)(stk_device *device, stk_stream *stream);
    stk_status (*stream_query)(stk_device *device, stk_stream *stream, stk_error *err); /* STK_AGAIN: not yet */
    stk_status (*stream_wait)(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err);
    stk_status (*event_create)(stk_device *device, bool timing, stk_event **out, stk_error *err);
    void (*event_destroy)(stk_device *device, stk_event *event);
    stk_status (*event_record)(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err);
    stk_status (*event_query)(stk_device *device, stk_event *event, stk_error *err); /* STK_AGAIN: not yet */
    stk_status (*event_elapsed)(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                stk_error *err);
    /* Keeps the stream busy for that long and touches nothing. */
    stk_status (*spin)(stk_device *device, int64_t ns, stk_stream *stream, stk_error *err);
    stk_status (*synchronize)(stk_device *device, stk_error *err);
    stk_status (*properties)(stk_device *device, stk_device_properties *out, stk_error *err);

    /* Kernels of the tensor core, all operands in this device's memory. NULL, or STK_E_UNSUPPORTED before anything was
     * queued: the core copies the operands to ordinary memory, works there and copies back. */
    /* dst[i] = cast(src[i]) for every index of the shape; strides in bytes, any sign, 0 in the source. */
    stk_status (*copy_strided)(stk_device *device, const stk_tensor *dst, const stk_tensor *src, stk_stream *stream,
                               stk_error *err);
    /* The struct is in device_kernels.h. */
    stk_status (*elementwise)(stk_device *device, const struct stki_elementwise_job *job, stk_stream *stream,
                              stk_error *err);
    stk_status (*sum)(stk_device *device, const struct stki_sum_job *job, stk_stream *stream, stk_error *err);
    stk_status (*quantize)(stk_device *device, const struct stki_quantize_job *job, stk_stream *stream, stk_error *err);
} stki_device_ops;

/* Where tensors get their memory: a cache over ops->alloc or ops->alloc_pinned (src/gpu/caching_pool.h). The stream is
 * the one that uses the block; freed, it may go to the next user of that stream at once, and to another one only after
 * that stream, and those it was recorded with, have passed. */
typedef struct stki_pool stki_pool;
typedef struct stki_pool_ops {
    stk_status (*alloc)(stki_pool *pool, int64_t bytes, stk_stream *stream, void **out, stk_error *err);
    /* Past the cache, for what lives long: exactly that many bytes from the driver and back, but counted here. */
    stk_status (*alloc_exact)(stki_pool *pool, int64_t bytes, void **out, stk_error *err);
    void (*free)(stki_pool *pool, void *block, int64_t bytes);
    /* Another stream has work on the block, or will before it is freed: an event behind it is waited for then. */
    void (*record_stream)(stki_pool *pool, void *block, stk_stream *stream);
    /* The stream is about to be destroyed. */
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
    bool host_memory; /* ordinary loads and stores reach its memory at any time: the CPU's own, nobody else's */
    void *context;
    stki_memory_counters memory;   /* of an accelerator, kept by its alloc and free through stki_device_note */
    stki_pool *pool, *pinned_pool; /* NULL: tensors take exact blocks from ops */
};

/* Memory of an accelerator came or went: counted for the device and for all of them. */
void stki_device_note(stk_device *device, int64_t bytes, int64_t blocks);
/* Calls `visit` for every device, the CPU first. */
void stki_device_each(void (*visit)(void *context, stk_device *device), void *context);

/* Adds a device for good; at most 64. Called before the device is first looked for. */
stk_status stki_device_register(stk_device *device, stk_error *err);
/* NULL: no device of this name was added. */
stk_device *stki_device_registered(const char *name);

/* Makers of devices, asked by stk_device_find for names that begin with theirs; they register what they make. The list
 * is in src/gpu/providers.c. */
typedef struct stki_device_provider {
    const char *prefix; /* "cuda" finds "cuda" and "cuda:0" */
    stk_status (*find)(const char *name, stk_device **out, stk_error *err);
    int (*count)(stk_error *err);
} stki_device_provider;

#endif
