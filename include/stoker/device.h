/* device.h: where memory lives, and who moves it. A stk_device is a handle to one memory space and the code that moves
 * bytes in and out of it; a stk_stream is a queue of work on a device, done in the order it was put in; a stk_event is
 * a mark in a stream that others can ask and wait for. No header of CUDA is needed to use any of it.
 *
 *     cpu      ordinary memory. Always there; everything is done at once, in the calling thread.
 *
 *     host     a device made of ordinary memory and threads: streams are real queues that run beside the caller, so
 *              that programs for a GPU run, and are tested, where there is none. Always there; host:1 to host:7 are
 *              further ones.
 *
 *     cuda:N   a GPU. stk_device_find says what is missing where there is none.
 *
 * Devices are never destroyed; a pointer to one stays valid for good. Nothing of CUDA is called before a cuda device is
 * asked for. Any thread may call any function here, for any device: what belongs to a device is made on that device,
 * whatever device the calling thread had set before, and that setting is left as it was.
 *
 * Memory and streams follow torch's rules. Work in a stream may still run when the call that queued it returns: its
 * memory stays valid, and host memory unchanged, until the stream has passed. A NULL stream means "done when the call
 * returns" (and after everything that the legacy default stream of CUDA holds).
 */
#ifndef STOKER_DEVICE_H
#define STOKER_DEVICE_H

#include <stdbool.h>
#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_device stk_device;
typedef struct stk_stream stk_stream;
typedef struct stk_event stk_event;

typedef enum stk_device_kind {
    STK_DEVICE_CPU = 1, /* ordinary memory; numbered as in DLPack */
    STK_DEVICE_CUDA = 2,
    STK_DEVICE_HOST = 11, /* ordinary memory behind streams */
    STK_DEVICE_TEST = 12  /* a second memory space that is not the CPU's, for tests */
} stk_device_kind;

#define STK_WAIT_FOREVER (-1)

/* ---- devices -------------------------------------------------------------------------------------------------------
 */

/* The plain CPU device. Never NULL. */
STK_API stk_device *stk_device_cpu(void);
/* By name: "cpu", "host", "host:1", "cuda" (the first), "cuda:1", … STK_E_DEVICE: no such device here; the message says
 * what is missing (built without CUDA, no driver, driver too old, no GPU, only so many of them) and which devices there
 * are. */
STK_API stk_status stk_device_find(const char *name, stk_device **out, stk_error *err);
STK_API const char *stk_device_name(const stk_device *device);
STK_API stk_device_kind stk_device_get_kind(const stk_device *device);
STK_API int stk_device_index(const stk_device *device);
/* How many cuda devices there are; 0 with the reason in `err` (which may be NULL) where there is none. */
STK_API int stk_cuda_device_count(stk_error *err);

typedef struct stk_device_properties {
    uint32_t struct_size;            /* set by the caller */
    char model[128];                 /* "NVIDIA H100 80GB HBM3"; of the host device the processor's */
    char bus[32];                    /* "0000:41:00.0"; "" where there is none */
    int64_t total_bytes, free_bytes; /* of its memory, now */
    int compute_major, compute_minor, processors, copy_engines; /* 0 where it has none */
    int driver_version, runtime_version;                        /* of CUDA, 13000 is 13.0; 0 where it has none */
    bool pins; /* host memory can be locked for faster, asynchronous copies */
} stk_device_properties;

STK_API stk_status stk_device_get_properties(stk_device *device, stk_device_properties *out, stk_error *err);
/* Waits for all streams of the device. */
STK_API stk_status stk_device_synchronize(stk_device *device, stk_error *err);

/* ---- streams -------------------------------------------------------------------------------------------------------
 */

/* A fresh queue that waits for no other (in CUDA's words: non-blocking). */
STK_API stk_status stk_stream_create(stk_device *device, stk_stream **out, stk_error *err);
/* A cudaStream_t of the caller's, which must outlive the handle; destroying the handle leaves the stream alone. The
 * host device has none: STK_E_UNSUPPORTED. */
STK_API stk_status stk_stream_wrap(stk_device *device, void *native, stk_stream **out, stk_error *err);
/* What is queued is still done. NULL is fine. */
STK_API void stk_stream_destroy(stk_stream *stream);
STK_API stk_device *stk_stream_device(const stk_stream *stream);
STK_API void *stk_stream_native(const stk_stream *stream); /* the cudaStream_t; NULL where there is none */
/* STK_OK: all done. STK_AGAIN: not yet. An error of work in the stream is reported here and by whoever waits. */
STK_API stk_status stk_stream_query(stk_stream *stream, stk_error *err);
/* STK_E_TIMEOUT: not done in that many ns. STK_WAIT_FOREVER waits; the wait looks and sleeps, so that no call into a
 * driver can hang it. */
STK_API stk_status stk_stream_synchronize(stk_stream *stream, int64_t timeout_ns, stk_error *err);
/* What is queued in `stream` from now on waits for the event; the caller does not. The event may be of another device;
 * if that is of another kind, whose streams know nothing of each other, the caller waits. */
STK_API stk_status stk_stream_wait(stk_stream *stream, stk_event *event, stk_error *err);
/* Keeps the stream busy for that long and touches nothing: a training step without a model, for measurements. */
STK_API stk_status stk_stream_spin(stk_stream *stream, int64_t ns, stk_error *err);
/* The stream that tensor operations of this thread on this device use; NULL: the default. Returns the one before. */
STK_API stk_stream *stk_stream_set_current(stk_device *device, stk_stream *stream);
STK_API stk_stream *stk_stream_current(stk_device *device);

/* ---- events --------------------------------------------------------------------------------------------------------
 */

/* `timing`: stk_event_elapsed can be asked. A fresh event is done. */
STK_API stk_status stk_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err);
STK_API void stk_event_destroy(stk_event *event); /* NULL is fine; who waits for it still gets it */
/* Stands for everything queued in `stream` so far. May be used again. */
STK_API stk_status stk_event_record(stk_event *event, stk_stream *stream, stk_error *err);
STK_API stk_status stk_event_query(stk_event *event, stk_error *err); /* as stk_stream_query */
STK_API stk_status stk_event_synchronize(stk_event *event, int64_t timeout_ns, stk_error *err);
/* From one done event to a later one of the same device, ns. */
STK_API stk_status stk_event_elapsed(const stk_event *from, const stk_event *to, int64_t *out_ns, stk_error *err);

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

/* Tensors on a device take their memory from a cache that keeps what is freed for the next one (PyTorch's terms). The
 * pinned host memory of a device has a cache of its own. */
typedef enum stk_device_memory { STK_MEMORY_DEVICE = 0, STK_MEMORY_PINNED = 1 } stk_device_memory;

typedef struct stk_device_memory_stats {
    uint32_t struct_size;                    /* set by the caller */
    int64_t allocated_bytes, allocated_peak; /* in use, as asked for */
    int64_t active_bytes, active_peak;       /* in use, or freed but waiting for a stream */
    int64_t reserved_bytes, reserved_peak;   /* taken from the driver */
    int64_t split_bytes;      /* free parts of blocks that are in use elsewhere: they cannot be given back */
    int64_t largest_free;     /* the largest block that needs no driver */
    int64_t largest_bytes;    /* asked for at once, ever */
    int64_t blocks, segments; /* in use; taken from the driver */
    int64_t allocations, driver_allocations, driver_frees, retries, out_of_memory; /* ever */
    double fragmentation; /* share of the free reserved bytes that is not in the largest free block */
} stk_device_memory_stats;

STK_API stk_status stk_device_get_memory_stats(stk_device *device, stk_device_memory kind, stk_device_memory_stats *out,
                                               stk_error *err);
STK_API void stk_device_reset_memory_peaks(stk_device *device);
/* Gives whole free blocks back to the driver, of both kinds. Waits for nothing that is still in use. */
STK_API stk_status stk_device_empty_cache(stk_device *device, stk_error *err);
/* Every segment and block of both kinds with its state, stream, bytes and the tag (profile.h) under which it was made,
 * as JSON (docs/gpu.md describes it); and a table for people. Free with stk_text_free. */
STK_API stk_status stk_device_memory_snapshot(stk_device *device, char **out, stk_error *err);
STK_API stk_status stk_device_memory_summary(stk_device *device, char **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
