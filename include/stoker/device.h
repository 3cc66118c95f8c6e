/* device.h: devices, streams, events and device memory. A stk_device is a handle to a memory space and the functions
 * that access it. A stk_stream is a queue of work on a device, executed in order. A stk_event marks a point in a stream
 * that other streams and threads can query and wait for. None of this needs CUDA headers.
 *
 *     cpu      ordinary memory. Always available; work is done synchronously in the calling thread.
 *
 *     host     a device emulated with ordinary memory and threads. Its streams are real asynchronous queues, so that
 *              programs for a GPU can run and be tested without one. Always available; host:1 to host:7 are additional
 *              devices of this kind.
 *
 *     cuda:N   a GPU. If there is none, the error of stk_device_find says what is missing.
 *
 * Devices are never destroyed, so a pointer to one stays valid. Functions that take a device accept NULL for the CPU.
 * CUDA is not called before a cuda device is requested. Any thread may call any function here for any device; the
 * calling thread's current CUDA device is not changed.
 *
 * Memory and streams follow torch's rules. Work in a stream may still be running when the call that queued it returns:
 * until the stream has executed the work, the memory that it uses must stay valid, and host memory that it reads must
 * not change. A call with a NULL stream returns when its work is complete; on a CUDA device, this work runs after
 * everything that was queued before in CUDA's legacy default stream. Work in different streams is not ordered.
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

/* CPU and CUDA have the numbers that DLPack gives them. */
typedef enum stk_device_kind {
    STK_DEVICE_CPU = 1, /* ordinary memory */
    STK_DEVICE_CUDA = 2,
    STK_DEVICE_HOST = 11, /* ordinary memory with asynchronous streams */
    STK_DEVICE_TEST = 12  /* a separate memory space for tests */
} stk_device_kind;

#define STK_WAIT_FOREVER (-1)

/* ---- devices ---- */

/* The plain CPU device. Never NULL. */
STK_API stk_device *stk_device_cpu(void);
/* Finds a device by name: "cpu", "host", "host:1", "cuda" (the first), "cuda:1", … STK_E_DEVICE: there is no such
 * device; the message says what is missing (built without CUDA, no driver, driver too old, no GPU, too few GPUs) and
 * which devices exist. */
STK_API stk_status stk_device_find(const char *name, stk_device **out, stk_error *err);
STK_API const char *stk_device_name(const stk_device *device);
STK_API stk_device_kind stk_device_get_kind(const stk_device *device);
STK_API int stk_device_index(const stk_device *device);
/* Returns the number of CUDA devices. If it is 0, the reason is stored in `err` (may be NULL). */
STK_API int stk_cuda_device_count(stk_error *err);

typedef struct stk_device_properties {
    uint32_t struct_size;                /* set by the caller */
    char model[128];                     /* "NVIDIA H100 80GB HBM3"; for the host device, the name of the processor */
    char bus[32];                        /* PCI address, "0000:41:00.0"; "" if it has none */
    int64_t total_bytes, free_bytes;     /* memory of the device in total, and free at the time of the call */
    int compute_major, compute_minor;    /* CUDA: compute capability; 0 for other devices */
    int processors;                      /* number of multiprocessors of a GPU, or of processors of the machine */
    int copy_engines;                    /* CUDA: number of engines that copy asynchronously; 0 for other devices */
    int driver_version, runtime_version; /* CUDA: 13000 is version 13.0; 0 for other devices */
    bool pins;                           /* host memory can be pinned for faster, asynchronous copies */
} stk_device_properties;

STK_API stk_status stk_device_get_properties(stk_device *device, stk_device_properties *out, stk_error *err);
/* Blocks until all work in the device's streams is done. */
STK_API stk_status stk_device_synchronize(stk_device *device, stk_error *err);

/* ---- streams ---- */

/* Creates a stream that does not synchronize with others (a non-blocking stream in CUDA). */
STK_API stk_status stk_stream_create(stk_device *device, stk_stream **out, stk_error *err);
/* Wraps a cudaStream_t of the caller, which must outlive the handle; destroying the handle does not destroy the
 * cudaStream_t. STK_E_UNSUPPORTED: the host device has no native streams. */
STK_API stk_status stk_stream_wrap(stk_device *device, void *native, stk_stream **out, stk_error *err);
/* Destroys the stream; work already queued is still executed. NULL is allowed. */
STK_API void stk_stream_destroy(stk_stream *stream);
STK_API stk_device *stk_stream_device(const stk_stream *stream);
STK_API void *stk_stream_native(const stk_stream *stream); /* the cudaStream_t, or NULL */
/* Returns STK_OK if all work in the stream is done, STK_AGAIN if not. Errors in queued work are reported here and by
 * the functions that wait for the stream. */
STK_API stk_status stk_stream_query(stk_stream *stream, stk_error *err);
/* Blocks until all work in the stream is done. STK_E_TIMEOUT: this takes longer than `timeout_ns` nanoseconds;
 * STK_WAIT_FOREVER never times out. The function polls, so that a driver call that hangs cannot block it. */
STK_API stk_status stk_stream_synchronize(stk_stream *stream, int64_t timeout_ns, stk_error *err);
/* Makes work queued later in `stream` wait for the event, without blocking the caller. The event may belong to another
 * device. If that device is of another kind, the caller blocks until the event is complete, because devices of
 * different kinds cannot wait for each other. */
STK_API stk_status stk_stream_wait(stk_stream *stream, stk_event *event, stk_error *err);
/* Queues work that takes `ns` nanoseconds, to emulate a training step in measurements. */
STK_API stk_status stk_stream_spin(stk_stream *stream, int64_t ns, stk_error *err);
/* Sets the calling thread's current stream for `device`, in which its tensor operations on that device run, and returns
 * the previous one. NULL: no stream; operations are then complete when they return. */
STK_API stk_stream *stk_stream_set_current(stk_device *device, stk_stream *stream);
STK_API stk_stream *stk_stream_current(stk_device *device);

/* ---- events ---- */

/* Creates an event, which is complete until it is recorded. `timing`: it can be used with stk_event_elapsed. */
STK_API stk_status stk_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err);
STK_API void stk_event_destroy(stk_event *event); /* Waits that are already queued still complete. NULL is allowed. */
/* Records the event in `stream`: it is complete when all work queued there so far is done. An event may be recorded
 * again; the last recording counts. STK_E_BAD_DEVICE: the stream belongs to another device. */
STK_API stk_status stk_event_record(stk_event *event, stk_stream *stream, stk_error *err);
/* Returns STK_OK if the event is complete, STK_AGAIN if not. */
STK_API stk_status stk_event_query(stk_event *event, stk_error *err);
/* Blocks until the event is complete. STK_E_TIMEOUT and STK_WAIT_FOREVER are as in stk_stream_synchronize. */
STK_API stk_status stk_event_synchronize(stk_event *event, int64_t timeout_ns, stk_error *err);
/* Stores the time in ns between two complete events of the same device (STK_E_BAD_DEVICE), which must have been created
 * with `timing` (STK_E_BAD_ARG). */
STK_API stk_status stk_event_elapsed(const stk_event *from, const stk_event *to, int64_t *out_ns, stk_error *err);

/* ---- memory ---- */

/* Memory for tensors on a device comes from a caching allocator, which keeps freed blocks for reuse (the terms are
 * PyTorch's). Pinned host memory for the device comes from a second allocator. */
typedef enum stk_device_memory { STK_MEMORY_DEVICE = 0, STK_MEMORY_PINNED = 1 } stk_device_memory;

typedef struct stk_device_memory_stats {
    uint32_t struct_size;                    /* set by the caller */
    int64_t allocated_bytes, allocated_peak; /* requested bytes of the blocks in use */
    int64_t active_bytes, active_peak; /* size of the blocks in use, and of freed ones that a stream may still access */
    int64_t reserved_bytes, reserved_peak; /* size of the segments allocated from the driver */
    int64_t split_bytes;      /* free bytes in partly used segments, which cannot be returned to the driver */
    int64_t largest_free;     /* bytes of the largest free block */
    int64_t largest_bytes;    /* bytes of the largest request so far */
    int64_t blocks, segments; /* number of blocks in use, and of segments allocated from the driver */
    /* Counts since the process started. */
    int64_t allocations;
    int64_t driver_allocations, driver_frees; /* segments allocated from the driver, and returned to it */
    int64_t retries, out_of_memory; /* allocations for which the driver had no memory at first, and ones that failed */
    double fragmentation;           /* share of the free reserved bytes that is not in the largest free block, 0 to 1 */
} stk_device_memory_stats;

STK_API stk_status stk_device_get_memory_stats(stk_device *device, stk_device_memory kind, stk_device_memory_stats *out,
                                               stk_error *err);
STK_API void stk_device_reset_memory_peaks(stk_device *device);
/* Returns free segments of both kinds to the driver. Does not wait for memory that is still in use. */
STK_API stk_status stk_device_empty_cache(stk_device *device, stk_error *err);
/* Describe the device memory and the pinned memory of the device. The snapshot lists every segment and block with its
 * state, stream, bytes and tag (profile.h), as JSON (docs/reference/profile.md); the summary is text with totals, also
 * by segment class and tag. Free *out with stk_text_free. STK_E_UNSUPPORTED: the device has no caching allocator. */
STK_API stk_status stk_device_memory_snapshot(stk_device *device, char **out, stk_error *err);
STK_API stk_status stk_device_memory_summary(stk_device *device, char **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
