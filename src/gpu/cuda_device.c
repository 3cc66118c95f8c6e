/* cuda_device.c: the device table (device_table.h) of a GPU, implemented with the CUDA runtime.
 *
 * Threads: a device is immutable after its creation, so no function takes a lock; the runtime may be called from any
 * thread. Each function makes the device's context current and restores the previous one (cuda_device.h).
 *
 * Streams: those created here are non-blocking, so they do not synchronize with the legacy default stream. Work without
 * a stream is queued in cudaStreamPerThread, which is ordered after the legacy stream, and the call waits for it. The
 * legacy stream itself is used only if the caller wraps it (it is PyTorch's default stream).
 *
 * Copies use cudaMemcpyAsync in a stream, never cudaMemcpy. From pageable memory this is still correct (the driver
 * stages the data in stream order), but slow, and the call blocks. */
#include "cuda_device.h"
#include "allocate.h"
#include "cuda_launches.h"
#include "cuda_provider.h"
#include "error.h"
#include "kernel_ops.h"
#include "numa.h"
#include "thread.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct cuda_stream {
    stk_stream stream;
    cudaStream_t handle; /* like stream.native, but cudaStreamLegacy instead of NULL */
    pthread_t owner;     /* for a wrapped cudaStreamPerThread, which is a different stream in every thread */
} cuda_stream;

typedef struct cuda_event {
    stk_event event;
    cudaEvent_t handle;
} cuda_event;

static stki_cuda_device *cuda_of(stk_device *device)
{
    return (void *)device; /* the first member of stki_cuda_device */
}

static cudaStream_t stream_of(const stk_stream *stream)
{
    return stream ? ((const cuda_stream *)(const void *)stream)->handle : cudaStreamPerThread;
}

/* Whether this is the per-thread stream of another thread, for which this thread has no handle. Events are then
 * recorded in the legacy stream, which is ordered after all work queued earlier in per-thread streams. */
static bool is_elsewhere(const stk_stream *stream)
{
    return stream && stream->wrapped && stream_of(stream) == cudaStreamPerThread &&
           !pthread_equal(((const cuda_stream *)(const void *)stream)->owner, pthread_self());
}

static cudaEvent_t event_of(const stk_event *event)
{
    return ((const cuda_event *)(const void *)event)->handle;
}

/* ---- context and errors ---- */

/* While any thread captures a graph in the default (global) mode, allocations and event queries by other threads fail
 * and invalidate the capture. No call here belongs in a graph, so between enter and leave the thread uses the relaxed
 * mode, which does not affect captures. */
static _Thread_local struct capture {
    int depth;
    bool changed;
    enum cudaStreamCaptureMode before;
} capture;

static void set_relaxed_capture_mode(void)
{
    if (capture.depth++ > 0)
        return;
    capture.before = cudaStreamCaptureModeRelaxed; /* the call replaces it with the previous mode */
    capture.changed = stki_cuda->ThreadExchangeStreamCaptureMode(&capture.before) == cudaSuccess;
    if (!capture.changed)
        (void)stki_cuda->GetLastError();
}

static void restore_capture_mode(void)
{
    if (--capture.depth == 0 && capture.changed)
        (void)stki_cuda->ThreadExchangeStreamCaptureMode(&capture.before);
}

stk_status stki_cuda_enter(stki_cuda_device *cuda, const char *doing, stk_error *err)
{
    CUresult result;

    if (cuda->fork_generation != stki_fork_generation())
        return stki_fail(err, STK_E_FORKED,
                         "%s: %s: this process was forked from one that used CUDA, which CUDA does not support: use "
                         "the device in the parent, or open it only after the fork",
                         cuda->name, doing);
    result = stki_cuda->push_context(cuda->context);
    if (result)
        return stki_fail(err, STK_E_DEVICE, "%s: %s: cannot make the device's context current: %s", cuda->name, doing,
                         stki_cuda->driver_error_name(result));
    set_relaxed_capture_mode();
    return STK_OK;
}

void stki_cuda_leave(void)
{
    CUcontext ours;

    restore_capture_mode();
    (void)stki_cuda->pop_context(&ours);
}

/* Sticky errors: the context is unusable, and every later call returns the same error. */
static bool is_fatal(cudaError_t error)
{
    switch ((int)error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
        return true;
    default:
        return false;
    }
}

static stk_status out_of_memory(stki_cuda_device *cuda, const char *doing, int64_t bytes, stk_error *err)
{
    size_t free_bytes = 0, total_bytes = 0;
    char size[48] = "";

    if (bytes >= 0)
        snprintf(size, sizeof size, ": %" PRId64 " bytes", bytes);
    if (stki_cuda->MemGetInfo(&free_bytes, &total_bytes)) {
        (void)stki_cuda->GetLastError();
        return stki_fail(err, STK_E_MEMORY, "%s: out of memory: %s%s", cuda->name, doing, size);
    }
    return stki_fail(err, STK_E_MEMORY, "%s: out of memory: %s%s; %zu bytes in total, %zu free", cuda->name, doing,
                     size, total_bytes, free_bytes);
}

stk_status stki_cuda_check(stki_cuda_device *cuda, cudaError_t error, const char *doing, int64_t bytes, stk_error *err)
{
    char size[48] = "";

    if (error == cudaSuccess)
        return STK_OK;
    (void)stki_cuda->GetLastError();
    if (error == cudaErrorMemoryAllocation)
        return out_of_memory(cuda, doing, bytes, err);
    if (bytes >= 0)
        snprintf(size, sizeof size, " (%" PRId64 " bytes)", bytes);
    return stki_fail(
        err, STK_E_DEVICE, "%s: %s%s: %s: %s%s", cuda->name, doing, size, stki_cuda->GetErrorName(error),
        stki_cuda->GetErrorString(error),
        is_fatal(error) ? " (possibly caused by work queued earlier; CUDA can no longer be used in this process)" : "");
}

/* Checks the error and restores the context that was current before stki_cuda_enter. */
static stk_status leave_with(stki_cuda_device *cuda, cudaError_t error, const char *doing, int64_t bytes,
                             stk_error *err)
{
    stk_status status = stki_cuda_check(cuda, error, doing, bytes, err);

    stki_cuda_leave();
    return status;
}

/* Waits for work that was queued without a stream. */
static cudaError_t wait_if_default(const stk_stream *stream, cudaError_t error)
{
    return error || stream ? error : stki_cuda->StreamSynchronize(cudaStreamPerThread);
}

static cudaError_t create_stream(bool urgent, cudaStream_t *out)
{
    int least, greatest = 0;
    cudaError_t error = urgent ? stki_cuda->DeviceGetStreamPriorityRange(&least, &greatest) : cudaSuccess;

    return error ? error : stki_cuda->StreamCreateWithPriority(out, cudaStreamNonBlocking, greatest);
}

/* ---- memory ---- */

/* Memory comes from the driver's pool, because returning it does not block. cudaFree would wait for the whole device,
 * so closing a loader would stall the training. The stream has no other purpose. Allocations are complete when the call
 * returns, and freed blocks are no longer in use, so no other ordering is needed. The pool caches nothing: freed memory
 * is returned to the system at the next synchronization of the device. */
stk_status stki_cuda_use_pool(stki_cuda_device *cuda, stk_error *err)
{
    static const char doing[] = "querying its memory pool";
    int has_pool = 0;
    cudaError_t error;
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    error = stki_cuda->DeviceGetAttribute(&has_pool, cudaDevAttrMemoryPoolsSupported, cuda->device.index);
    if (!error && has_pool)
        error = create_stream(false, &cuda->memory);
    return leave_with(cuda, error, doing, -1, err);
}

static cudaError_t take_memory(const stki_cuda_device *cuda, void **out, size_t bytes)
{
    cudaError_t error;

    if (!cuda->memory)
        return stki_cuda->Malloc(out, bytes);
    error = stki_cuda->MallocAsync(out, bytes, cuda->memory);
    return error ? error : stki_cuda->StreamSynchronize(cuda->memory);
}

static stk_status cuda_alloc(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "allocating";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    status = leave_with(cuda, take_memory(cuda, out, (size_t)(bytes ? bytes : 1)), doing, bytes, err);
    if (status == STK_OK)
        stki_device_note(device, bytes, 1);
    return status;
}

static void cuda_free(stk_device *device, void *block, int64_t bytes)
{
    stki_cuda_device *cuda = cuda_of(device);

    if (!block || stki_cuda_enter(cuda, "freeing", NULL) != STK_OK) /* after a fork, the parent owns the memory */
        return;
    (void)leave_with(cuda, cuda->memory ? stki_cuda->FreeAsync(block, cuda->memory) : stki_cuda->Free(block), "freeing",
                     bytes, NULL);
    stki_device_note(device, -bytes, -1);
}

/* Portable: pinned for all GPUs, not only for the context of this one. Allocated on the GPU's NUMA node, since
 * transfers from another node also use the link between the processors. */
static stk_status cuda_alloc_pinned(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "pinning host memory";
    stk_status status = stki_cuda_enter(cuda, doing, err);
    stki_numa_policy policy;
    cudaError_t error;

    if (status != STK_OK)
        return status;
    stki_numa_prefer(cuda->numa_node, &policy);
    error = stki_cuda->HostAlloc(out, (size_t)(bytes ? bytes : 1), cudaHostAllocPortable);
    stki_numa_restore(&policy);
    if (error == cudaErrorMemoryAllocation) {
        (void)stki_cuda->GetLastError();
        status = stki_fail(err, STK_E_MEMORY, "%s: out of memory: %s: the system cannot lock another %" PRId64 " bytes",
                           cuda->name, doing, bytes);
    } else {
        status = stki_cuda_check(cuda, error, doing, bytes, err);
    }
    stki_cuda_leave();
    if (status == STK_OK)
        stki_memory_note(STKI_MEM_PINNED, bytes, 1);
    return status;
}

static void cuda_free_pinned(stk_device *device, void *block, int64_t bytes)
{
    stki_cuda_device *cuda = cuda_of(device);

    if (!block || stki_cuda_enter(cuda, "freeing pinned memory", NULL) != STK_OK)
        return;
    (void)leave_with(cuda, stki_cuda->FreeHost(block), "freeing pinned memory", bytes, NULL);
    stki_memory_note(STKI_MEM_PINNED, -bytes, -1);
}

static stk_status cuda_copy(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                            int64_t bytes, stk_stream *stream, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const struct {
        enum cudaMemcpyKind kind;
        const char *doing;
    } direction[2][2] = {
        {{cudaMemcpyHostToHost, "copying host memory"}, {cudaMemcpyDeviceToHost, "copying to the host"}},
        {{cudaMemcpyHostToDevice, "copying to the device"}, {cudaMemcpyDeviceToDevice, "copying on the device"}},
    };
    const char *doing = direction[dst_on_device][src_on_device].doing;
    stk_status status;
    cudaError_t error;

    if (bytes == 0)
        return STK_OK;
    status = stki_cuda_enter(cuda, doing, err);
    if (status != STK_OK)
        return status;
    error = stki_cuda->MemcpyAsync(dst, src, (size_t)bytes, direction[dst_on_device][src_on_device].kind,
                                   stream_of(stream));
    return leave_with(cuda, wait_if_default(stream, error), doing, bytes, err);
}

/* ---- kernels ---- */

static bool one_byte(const unsigned char *pattern, int64_t bytes)
{
    for (int64_t i = 1; i < bytes; i++)
        if (pattern[i] != pattern[0])
            return false;
    return true;
}

static stk_status cuda_fill(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                            stk_stream *stream, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "filling";
    int64_t bytes = pattern_bytes * count;
    stk_status status;
    cudaError_t error;

    if (bytes == 0)
        return STK_OK;
    status = stki_cuda_enter(cuda, doing, err);
    if (status != STK_OK)
        return status;
    if (one_byte(pattern, pattern_bytes))
        error = stki_cuda->MemsetAsync(dst, *(const unsigned char *)pattern, (size_t)bytes, stream_of(stream));
    else
        error =
            (cudaError_t)stki_cuda_launcher->fill(device->index, stream_of(stream), dst, pattern, pattern_bytes, count);
    return leave_with(cuda, wait_if_default(stream, error), doing, bytes, err);
}

static stk_status cuda_launch(stk_device *device, const stki_launch *launch, stk_stream *stream, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "running a kernel";
    stk_status status = stki_cuda_enter(cuda, doing, err);
    cudaError_t error;

    if (status != STK_OK)
        return status;
    error = (cudaError_t)stki_cuda_launcher->launch(device->index, stream_of(stream), launch);
    return leave_with(cuda, wait_if_default(stream, error), doing, launch->moved_bytes, err);
}

STKI_KERNEL_ENTRIES(cuda_launch)

/* ---- streams ---- */

static stk_status stream_alloc(stk_device *device, cuda_stream **out, stk_error *err)
{
    *out = stki_zalloc(sizeof **out);
    if (!*out)
        return stki_fail_memory(err, sizeof **out, "a stream");
    (*out)->stream.device = device;
    return STK_OK;
}

static stk_status cuda_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "creating a stream";
    cuda_stream *made;
    stk_status status = stream_alloc(device, &made, err);

    if (status != STK_OK)
        return status;
    status = stki_cuda_enter(cuda, doing, err);
    if (status == STK_OK) {
        status = leave_with(cuda, create_stream(urgent, &made->handle), doing, -1, err);
    }
    if (status != STK_OK) {
        stki_free(made);
        return status;
    }
    made->stream.native = made->handle;
    *out = &made->stream;
    return STK_OK;
}

static stk_status cuda_stream_wrap(stk_device *device, void *native, stk_stream **out, stk_error *err)
{
    cuda_stream *made;
    stk_status status = stream_alloc(device, &made, err);

    if (status != STK_OK)
        return status;
    made->handle = native ? native : cudaStreamLegacy;
    made->owner = pthread_self();
    made->stream.native = native;
    made->stream.wrapped = true;
    *out = &made->stream;
    return STK_OK;
}

static void cuda_stream_destroy(stk_device *device, stk_stream *stream)
{
    stki_cuda_device *cuda = cuda_of(device);

    /* The driver frees the stream only after the work queued in it has completed. */
    if (!stream->wrapped && stki_cuda_enter(cuda, "destroying a stream", NULL) == STK_OK) {
        (void)leave_with(cuda, stki_cuda->StreamDestroy(stream_of(stream)), "destroying a stream", -1, NULL);
    }
    stki_free(stream);
}

/* Like leave_with, for queries. cudaErrorNotReady becomes STK_AGAIN and is cleared from the runtime's last error. */
static stk_status leave_with_query(stki_cuda_device *cuda, cudaError_t error, const char *doing, stk_error *err)
{
    if (error != cudaErrorNotReady)
        return leave_with(cuda, error, doing, -1, err);
    (void)stki_cuda->GetLastError();
    stki_cuda_leave();
    return STK_AGAIN;
}

/* Queries the per-thread stream of another thread through an event in the legacy stream, which is ordered after it. */
static cudaError_t query_elsewhere(void)
{
    cudaEvent_t event;
    cudaError_t error = stki_cuda->EventCreateWithFlags(&event, cudaEventDisableTiming);

    if (error)
        return error;
    error = stki_cuda->EventRecord(event, cudaStreamLegacy);
    if (!error)
        error = stki_cuda->EventQuery(event);
    (void)stki_cuda->EventDestroy(event);
    return error;
}

static stk_status cuda_stream_query(stk_device *device, stk_stream *stream, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "querying a stream";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    if (is_elsewhere(stream))
        return leave_with_query(cuda, query_elsewhere(), doing, err);
    return leave_with_query(cuda, stki_cuda->StreamQuery(stream_of(stream)), doing, err);
}

static stk_status cuda_stream_wait(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "making a stream wait for an event";
    stk_status status;

    /* The driver cannot wait for events of other kinds of devices. */
    if (event->device->kind != STK_DEVICE_CUDA)
        return stk_event_synchronize(event, STK_WAIT_FOREVER, err);
    status = stki_cuda_enter(cuda, doing, err);
    if (status != STK_OK)
        return status;
    return leave_with(cuda, stki_cuda->StreamWaitEvent(stream_of(stream), event_of(event), 0), doing, -1, err);
}

/* ---- events ---- */

static stk_status cuda_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "creating an event";
    cuda_event *made = stki_zalloc(sizeof *made);
    stk_status status;

    if (!made)
        return stki_fail_memory(err, sizeof *made, "an event");
    made->event = (stk_event){.device = device, .timing = timing};
    status = stki_cuda_enter(cuda, doing, err);
    if (status == STK_OK) {
        unsigned flags =
            cudaEventBlockingSync | (timing ? 0 : cudaEventDisableTiming); /* a wait sleeps instead of spinning */
        status = leave_with(cuda, stki_cuda->EventCreateWithFlags(&made->handle, flags), doing, -1, err);
    }
    if (status != STK_OK) {
        stki_free(made);
        return status;
    }
    *out = &made->event;
    return STK_OK;
}

static void cuda_event_destroy(stk_device *device, stk_event *event)
{
    stki_cuda_device *cuda = cuda_of(device);

    /* The driver frees the event only after the work that waits for it has completed. */
    if (stki_cuda_enter(cuda, "destroying an event", NULL) == STK_OK) {
        (void)leave_with(cuda, stki_cuda->EventDestroy(event_of(event)), "destroying an event", -1, NULL);
    }
    stki_free(event);
}

static stk_status cuda_event_record(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "recording an event";
    stk_status status;

    status = stki_cuda_enter(cuda, doing, err);
    if (status != STK_OK)
        return status;
    return leave_with(
        cuda, stki_cuda->EventRecord(event_of(event), is_elsewhere(stream) ? cudaStreamLegacy : stream_of(stream)),
        doing, -1, err);
}

static stk_status cuda_event_query(stk_device *device, stk_event *event, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "querying an event";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    return leave_with_query(cuda, stki_cuda->EventQuery(event_of(event)), doing, err);
}

static stk_status cuda_event_wait(stk_device *device, stk_event *event, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "waiting for an event";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    return leave_with(cuda, stki_cuda->EventSynchronize(event_of(event)), doing, -1, err);
}

static stk_status cuda_event_elapsed(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                     stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "computing the time between events";
    float ms = 0;
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    status = leave_with_query(cuda, stki_cuda->EventElapsedTime(&ms, event_of(from), event_of(to)), doing, err);
    if (status == STK_OK)
        *out_ns = (int64_t)((double)ms * 1e6);
    return status;
}

/* ---- the device ---- */

static stk_status cuda_spin(stk_device *device, int64_t ns, stk_stream *stream, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "spinning";
    stk_status status = stki_cuda_enter(cuda, doing, err);
    cudaError_t error;

    if (status != STK_OK)
        return status;
    error = (cudaError_t)stki_cuda_launcher->spin(device->index, stream_of(stream), ns);
    return leave_with(cuda, wait_if_default(stream, error), doing, -1, err);
}

static stk_status cuda_synchronize(stk_device *device, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "waiting for the device";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    return leave_with(cuda, stki_cuda->DeviceSynchronize(), doing, -1, err);
}

static cudaError_t get_properties(int index, stk_device_properties *out)
{
    struct cudaDeviceProp found;
    size_t free_bytes, total_bytes;
    cudaError_t error = stki_cuda->GetDeviceProperties(&found, index);

    if (!error)
        error = stki_cuda->MemGetInfo(&free_bytes, &total_bytes);
    if (!error)
        error = stki_cuda->DeviceGetPCIBusId(out->bus, (int)sizeof out->bus, index);
    if (!error)
        error = stki_cuda->DriverGetVersion(&out->driver_version);
    if (!error)
        error = stki_cuda->RuntimeGetVersion(&out->runtime_version);
    if (error)
        return error;
    snprintf(out->model, sizeof out->model, "%.*s", (int)sizeof out->model - 1, found.name);
    out->total_bytes = (int64_t)total_bytes;
    out->free_bytes = (int64_t)free_bytes;
    out->compute_major = found.major;
    out->compute_minor = found.minor;
    out->processors = found.multiProcessorCount;
    out->copy_engines = found.asyncEngineCount;
    out->pins = true;
    return cudaSuccess;
}

static stk_status cuda_properties(stk_device *device, stk_device_properties *out, stk_error *err)
{
    stki_cuda_device *cuda = cuda_of(device);
    static const char doing[] = "querying its properties";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    return leave_with(cuda, get_properties(device->index, out), doing, -1, err);
}

static const stki_device_ops cuda_ops = {
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_pinned = cuda_alloc_pinned,
    .free_pinned = cuda_free_pinned,
    .copy = cuda_copy,
    .fill = cuda_fill,
    STKI_KERNEL_OPS,
    .stream_create = cuda_stream_create,
    .stream_wrap = cuda_stream_wrap,
    .stream_destroy = cuda_stream_destroy,
    .stream_query = cuda_stream_query,
    .stream_wait = cuda_stream_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_wait = cuda_event_wait,
    .event_elapsed = cuda_event_elapsed,
    .spin = cuda_spin,
    .synchronize = cuda_synchronize,
    .properties = cuda_properties,
};

void stki_cuda_device_init(stki_cuda_device *cuda, int index)
{
    snprintf(cuda->name, sizeof cuda->name, "cuda:%d", index);
    cuda->fork_generation = stki_fork_generation();
    cuda->numa_node = -1;
    cuda->device = (stk_device){.ops = &cuda_ops,
                                .kind = STK_DEVICE_CUDA,
                                .index = index,
                                .name = cuda->name,
                                .host_memory = false,
                                .context = cuda};
}
