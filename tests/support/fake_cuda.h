/* fake_cuda.h: a fake CUDA runtime and driver (cuda_calls.h, cuda_launches.h). Its GPUs are ordinary memory, and a
 * stream is a queue that runs when the program queries or waits. It logs every call with the current GPU, requires a
 * context, keeps the last error as the runtime does, and can be made to fail. */
#ifndef STKT_FAKE_CUDA_H
#define STKT_FAKE_CUDA_H

#include "cuda_calls.h"
#include "cuda_launches.h"
#include "kernel_twin.h"
#include "stk_test.h"
#include <stdbool.h>

enum { FAKE_GPUS = 3, FAKE_OPS = 64, FAKE_LOG = 256, FAKE_MARK = 0x7e57, FAKE_GREATEST_PRIORITY = -5 };

typedef struct fake_event {
    int recorded, done; /* marks that were queued and that have passed */
    unsigned flags;
    float at_ms;
} fake_event;

typedef struct fake_op {
    enum { FAKE_COPY, FAKE_SET, FAKE_PATTERN, FAKE_SPIN, FAKE_KERNEL, FAKE_RECORD, FAKE_WAIT } what;
    void *dst;
    const void *src;
    size_t bytes;
    int value, mark;
    unsigned char pattern[16];
    fake_event *event;
    stki_launch launch;
} fake_op;

typedef struct fake_stream {
    int ordinal;
    unsigned flags;
    int priority;
    fake_op ops[FAKE_OPS];
    int first, count;
} fake_stream;

static struct {
    /* The simulated machine. */
    int driver_version, gpus;
    cudaError_t count_error;
    int major, minor;
    bool no_library;
    int pools; /* 1: stream-ordered allocation is supported */
    size_t free_bytes, total_bytes;

    /* The call that fails, and its error. */
    const char *fail;
    cudaError_t error;
    CUresult driver_error;
    bool held; /* streams do not run */

    /* A log of the calls. */
    struct {
        const char *name;
        int ordinal;
        cudaStream_t stream;
        long long number;
    } log[FAKE_LOG];
    int calls;
    int contexts[FAKE_GPUS]; /* number of times each was retained */
    int blocks, pinned_blocks, streams, events;
    cudaError_t last;
    float clock_ms;
    fake_stream per_thread, legacy;
} fake;

static _Thread_local CUcontext fake_stack[8];
static _Thread_local int fake_depth;
static _Thread_local enum cudaStreamCaptureMode fake_mode = cudaStreamCaptureModeGlobal;

static CUcontext fake_context(int ordinal)
{
    return (CUcontext)(uintptr_t)(FAKE_MARK + ordinal);
}

static int fake_current(void)
{
    return fake_depth && fake_stack[fake_depth - 1] ? (int)((uintptr_t)fake_stack[fake_depth - 1] - FAKE_MARK) : -1;
}

static void fake_note(const char *name, cudaStream_t stream, long long number)
{
    assert_true(fake.calls < FAKE_LOG);
    fake.log[fake.calls].name = name;
    fake.log[fake.calls].ordinal = fake_current();
    fake.log[fake.calls].stream = stream;
    fake.log[fake.calls++].number = number;
}

static cudaError_t fake_fail(cudaError_t error)
{
    if (error)
        fake.last = error;
    return error;
}

/* Begins a call that needs a context. */
static cudaError_t fake_called(const char *name, cudaStream_t stream, long long number)
{
    fake_note(name, stream, number);
    if (fake_current() < 0 || !fake.contexts[fake_current()])
        fail_msg("%s without a context", name);
    if (fake_mode != cudaStreamCaptureModeRelaxed)
        fail_msg("%s would break a capture", name);
    return fake_fail(fake.fail && !strcmp(fake.fail, name) ? fake.error : cudaSuccess);
}

static const char *fake_last_call(int back)
{
    return fake.calls > back ? fake.log[fake.calls - 1 - back].name : "";
}

static int fake_count_of(const char *name)
{
    int count = 0;

    for (int i = 0; i < fake.calls; i++)
        count += !strcmp(fake.log[i].name, name);
    return count;
}

/* ---- driver and GPUs ---- */

static cudaError_t fake_DriverGetVersion(int *version)
{
    fake_note("DriverGetVersion", NULL, 0);
    *version = fake.driver_version;
    return cudaSuccess;
}

static cudaError_t fake_RuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

static cudaError_t fake_GetDeviceCount(int *count)
{
    fake_note("GetDeviceCount", NULL, 0);
    *count = fake.gpus;
    return fake_fail(fake.count_error);
}

static stk_status fake_load_driver(stk_error *err)
{
    if (!fake.no_library)
        return STK_OK;
    if (err)
        snprintf(err->message, sizeof err->message, "cuda: no library");
    return STK_E_DEVICE;
}

static CUresult fake_retain_context(CUcontext *out, int ordinal)
{
    if (fake.fail && !strcmp(fake.fail, "retain_context"))
        return fake.driver_error;
    fake.contexts[ordinal]++;
    *out = fake_context(ordinal);
    return CUDA_SUCCESS;
}

static CUresult fake_push_context(CUcontext context)
{
    if (fake.fail && !strcmp(fake.fail, "push_context"))
        return fake.driver_error;
    assert_true(fake_depth < 8);
    fake_stack[fake_depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult fake_pop_context(CUcontext *out)
{
    assert_true(fake_depth > 0);
    *out = fake_stack[--fake_depth];
    return CUDA_SUCCESS;
}

static CUresult fake_context_state(int ordinal, int *active)
{
    *active = fake.contexts[ordinal] > 0;
    return CUDA_SUCCESS;
}

static const char *fake_driver_error_name(CUresult error)
{
    return error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
}

/* ---- memory ---- */

static cudaError_t fake_GetDeviceProperties(struct cudaDeviceProp *out, int ordinal)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "Fake GPU %d", ordinal);
    out->major = fake.major;
    out->minor = fake.minor;
    out->multiProcessorCount = 132;
    out->asyncEngineCount = 3;
    return fake_called("GetDeviceProperties", NULL, ordinal);
}

static cudaError_t fake_DeviceGetPCIBusId(char *out, int size, int ordinal)
{
    snprintf(out, (size_t)size, "0000:4%d:00.0", ordinal);
    return fake_called("DeviceGetPCIBusId", NULL, ordinal);
}

static cudaError_t fake_MemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = fake.free_bytes;
    *total_bytes = fake.total_bytes;
    return fake_called("MemGetInfo", NULL, 0);
}

static cudaError_t fake_Malloc(void **out, size_t bytes)
{
    cudaError_t error = fake_called("Malloc", NULL, (long long)bytes);

    if (!error && bytes > fake.free_bytes)
        error = fake_fail(cudaErrorMemoryAllocation);
    if (error)
        return error;
    *out = malloc(bytes);
    fake.blocks++;
    return cudaSuccess;
}

static cudaError_t fake_Free(void *block)
{
    cudaError_t error = fake_called("Free", NULL, 0);

    free(block);
    fake.blocks--;
    return error;
}

static cudaError_t fake_DeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int ordinal)
{
    (void)attribute;
    *out = fake.pools;
    return fake_called("DeviceGetAttribute", NULL, ordinal);
}

static cudaError_t fake_MallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = fake_called("MallocAsync", stream, (long long)bytes);

    if (!error && bytes > fake.free_bytes)
        error = fake_fail(cudaErrorMemoryAllocation);
    if (error)
        return error;
    *out = malloc(bytes);
    fake.blocks++;
    return cudaSuccess;
}

static cudaError_t fake_FreeAsync(void *block, cudaStream_t stream)
{
    cudaError_t error = fake_called("FreeAsync", stream, 0);

    free(block);
    fake.blocks--;
    return error;
}

static cudaError_t fake_HostAlloc(void **out, size_t bytes, unsigned flags)
{
    cudaError_t error = fake_called("HostAlloc", NULL, (long long)bytes);

    if (error)
        return error;
    assert_int_equal(flags, cudaHostAllocPortable);
    *out = malloc(bytes);
    fake.pinned_blocks++;
    return cudaSuccess;
}

static cudaError_t fake_FreeHost(void *block)
{
    cudaError_t error = fake_called("FreeHost", NULL, 0);

    free(block);
    fake.pinned_blocks--;
    return error;
}

/* ---- streams ---- */

static fake_stream *fake_stream_of(cudaStream_t stream)
{
    if (!stream)
        fail_msg("NULL as a stream: its meaning depends on how the caller was compiled");
    if (stream == cudaStreamPerThread)
        return &fake.per_thread;
    if (stream == cudaStreamLegacy)
        return &fake.legacy;
    return (fake_stream *)(void *)stream;
}

static void fake_queue(cudaStream_t stream, fake_op op)
{
    fake_stream *queue = fake_stream_of(stream);

    assert_true(queue->count < FAKE_OPS);
    queue->ops[(queue->first + queue->count++) % FAKE_OPS] = op;
}

static bool fake_run_one(const fake_op *op)
{
    switch (op->what) {
    case FAKE_COPY:
        memmove(op->dst, op->src, op->bytes);
        return true;
    case FAKE_SET:
        memset(op->dst, op->value, op->bytes);
        return true;
    case FAKE_PATTERN:
        for (size_t i = 0; i < op->bytes; i++)
            ((unsigned char *)op->dst)[i] = op->pattern[i % (size_t)op->value];
        return true;
    case FAKE_SPIN:
        fake.clock_ms += (float)op->bytes * 1e-6F;
        return true;
    case FAKE_KERNEL:
        stki_kernel_twin_run(&op->launch);
        return true;
    case FAKE_RECORD:
        op->event->done = op->mark;
        op->event->at_ms = fake.clock_ms += 0.25F;
        return true;
    default:
        return op->event->done >= op->mark;
    }
}

/* Runs the queue. Returns whether it is empty. */
static bool fake_move(fake_stream *queue)
{
    while (!fake.held && queue->count && fake_run_one(&queue->ops[queue->first])) {
        queue->first = (queue->first + 1) % FAKE_OPS;
        queue->count--;
    }
    return queue->count == 0;
}

static cudaError_t fake_MemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                                    cudaStream_t stream)
{
    cudaError_t error = fake_called("MemcpyAsync", stream, (long long)kind);

    if (!error)
        fake_queue(stream, (fake_op){.what = FAKE_COPY, .dst = dst, .src = src, .bytes = bytes});
    return error;
}

static cudaError_t fake_MemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t error = fake_called("MemsetAsync", stream, (long long)bytes);

    if (!error)
        fake_queue(stream, (fake_op){.what = FAKE_SET, .dst = dst, .value = value, .bytes = bytes});
    return error;
}

static int fake_fill(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count)
{
    cudaError_t error = fake_called("fill", stream, ordinal);
    fake_op op = {
        .what = FAKE_PATTERN, .dst = dst, .value = (int)pattern_bytes, .bytes = (size_t)(pattern_bytes * count)};

    assert_int_equal(ordinal, fake_current());
    memcpy(op.pattern, pattern, (size_t)pattern_bytes);
    if (!error)
        fake_queue(stream, op);
    return (int)error;
}

/* A kernel is run by its twin. */
static int fake_launch(int ordinal, void *stream, const stki_launch *launch)
{
    cudaError_t error = fake_called("launch", stream, (long long)launch->kernel);

    assert_int_equal(ordinal, fake_current());
    if (!error)
        fake_queue(stream, (fake_op){.what = FAKE_KERNEL, .launch = *launch});
    return (int)error;
}

static int fake_load(int ordinal)
{
    assert_int_equal(ordinal, fake_current());
    return (int)fake_called("load", NULL, ordinal);
}

/* Advances the GPU's clock. */
static int fake_spin(int ordinal, void *stream, int64_t ns)
{
    cudaError_t error = fake_called("spin", stream, (long long)ns);

    assert_int_equal(ordinal, fake_current());
    if (!error)
        fake_queue(stream, (fake_op){.what = FAKE_SPIN, .bytes = (size_t)ns});
    return (int)error;
}

static cudaError_t fake_DeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = FAKE_GREATEST_PRIORITY;
    return fake_called("DeviceGetStreamPriorityRange", NULL, 0);
}

static cudaError_t fake_StreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    cudaError_t error = fake_called("StreamCreateWithPriority", NULL, (long long)flags);
    fake_stream *made;

    if (error)
        return error;
    made = calloc(1, sizeof *made);
    made->ordinal = fake_current();
    made->flags = flags;
    made->priority = priority;
    *out = (cudaStream_t)(void *)made;
    fake.streams++;
    return cudaSuccess;
}

static cudaError_t fake_StreamDestroy(cudaStream_t stream)
{
    cudaError_t error = fake_called("StreamDestroy", stream, 0);

    fake_move(fake_stream_of(stream));
    free(stream);
    fake.streams--;
    return error;
}

static cudaError_t fake_StreamQuery(cudaStream_t stream)
{
    cudaError_t error = fake_called("StreamQuery", stream, 0);

    if (!error && !fake_move(fake_stream_of(stream)))
        error = fake_fail(cudaErrorNotReady);
    return error;
}

static cudaError_t fake_StreamSynchronize(cudaStream_t stream)
{
    cudaError_t error = fake_called("StreamSynchronize", stream, 0);

    if (!error && !fake_move(fake_stream_of(stream)))
        fail_msg("waiting for a stream that does not run");
    return error;
}

static cudaError_t fake_StreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaError_t error = fake_called("StreamWaitEvent", stream, (long long)flags);
    fake_event *waited = (fake_event *)(void *)event;

    if (!error)
        fake_queue(stream, (fake_op){.what = FAKE_WAIT, .event = waited, .mark = waited->recorded});
    return error;
}

static cudaError_t fake_DeviceSynchronize(void)
{
    return fake_called("DeviceSynchronize", NULL, 0);
}

/* ---- events ---- */

static cudaError_t fake_EventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    cudaError_t error = fake_called("EventCreateWithFlags", NULL, (long long)flags);
    fake_event *made;

    if (error)
        return error;
    made = calloc(1, sizeof *made);
    made->flags = flags;
    *out = (cudaEvent_t)(void *)made;
    fake.events++;
    return cudaSuccess;
}

static cudaError_t fake_EventDestroy(cudaEvent_t event)
{
    cudaError_t error = fake_called("EventDestroy", NULL, 0);

    free(event);
    fake.events--;
    return error;
}

static cudaError_t fake_EventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = fake_called("EventRecord", stream, 0);
    fake_event *recorded = (fake_event *)(void *)event;

    if (!error)
        fake_queue(stream, (fake_op){.what = FAKE_RECORD, .event = recorded, .mark = ++recorded->recorded});
    return error;
}

/* Each query lets the stream run, because a real GPU also makes progress between queries. */
static cudaError_t fake_EventQuery(cudaEvent_t event)
{
    cudaError_t error = fake_called("EventQuery", NULL, 0);
    const fake_event *asked = (const fake_event *)(const void *)event;

    return error || asked->done >= asked->recorded ? error : fake_fail(cudaErrorNotReady);
}

static cudaError_t fake_EventSynchronize(cudaEvent_t event)
{
    const fake_event *asked = (const fake_event *)(const void *)event;
    cudaError_t error;

    do
        error = fake_called("EventSynchronize", NULL, 0);
    while (!error && asked->done < asked->recorded);
    return error;
}

static cudaError_t fake_EventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    cudaError_t error = fake_called("EventElapsedTime", NULL, 0);
    const fake_event *first = (const fake_event *)(const void *)from, *last = (const fake_event *)(const void *)to;

    if (error)
        return error;
    if (!first->recorded || !last->recorded)
        return fake_fail(cudaErrorInvalidResourceHandle);
    if (first->done < first->recorded || last->done < last->recorded)
        return fake_fail(cudaErrorNotReady);
    *ms = last->at_ms - first->at_ms;
    return cudaSuccess;
}

static cudaError_t fake_GetLastError(void)
{
    cudaError_t last = fake.last;

    fake.last = cudaSuccess;
    return last;
}

static const char *fake_GetErrorName(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorOther";
}

static const char *fake_GetErrorString(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "something else";
}

static cudaError_t fake_ThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode before = fake_mode;

    if (fake_current() < 0)
        fail_msg("a capture mode without a context");
    fake_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

static const stki_cuda_calls fake_calls = {
    .DriverGetVersion = fake_DriverGetVersion,
    .RuntimeGetVersion = fake_RuntimeGetVersion,
    .GetDeviceCount = fake_GetDeviceCount,
    .load_driver = fake_load_driver,
    .retain_context = fake_retain_context,
    .push_context = fake_push_context,
    .pop_context = fake_pop_context,
    .context_state = fake_context_state,
    .driver_error_name = fake_driver_error_name,
    .GetDeviceProperties = fake_GetDeviceProperties,
    .DeviceGetPCIBusId = fake_DeviceGetPCIBusId,
    .DeviceSynchronize = fake_DeviceSynchronize,
    .MemGetInfo = fake_MemGetInfo,
    .DeviceGetAttribute = fake_DeviceGetAttribute,
    .Malloc = fake_Malloc,
    .Free = fake_Free,
    .MallocAsync = fake_MallocAsync,
    .FreeAsync = fake_FreeAsync,
    .HostAlloc = fake_HostAlloc,
    .FreeHost = fake_FreeHost,
    .MemcpyAsync = fake_MemcpyAsync,
    .MemsetAsync = fake_MemsetAsync,
    .DeviceGetStreamPriorityRange = fake_DeviceGetStreamPriorityRange,
    .StreamCreateWithPriority = fake_StreamCreateWithPriority,
    .StreamDestroy = fake_StreamDestroy,
    .StreamQuery = fake_StreamQuery,
    .StreamSynchronize = fake_StreamSynchronize,
    .StreamWaitEvent = fake_StreamWaitEvent,
    .EventCreateWithFlags = fake_EventCreateWithFlags,
    .EventDestroy = fake_EventDestroy,
    .EventRecord = fake_EventRecord,
    .EventQuery = fake_EventQuery,
    .EventSynchronize = fake_EventSynchronize,
    .EventElapsedTime = fake_EventElapsedTime,
    .ThreadExchangeStreamCaptureMode = fake_ThreadExchangeStreamCaptureMode,
    .GetLastError = fake_GetLastError,
    .GetErrorName = fake_GetErrorName,
    .GetErrorString = fake_GetErrorString,
};

static const stki_cuda_launches fake_launches = {
    .load = fake_load, .fill = fake_fill, .spin = fake_spin, .launch = fake_launch};

/* Sets up a machine with `gpus` GPUs, a matching driver and no faults. Existing streams and memory are kept. */
static void fake_reset(int gpus)
{
    fake.driver_version = 13000;
    fake.gpus = gpus;
    fake.count_error = cudaSuccess;
    fake.major = 9;
    fake.minor = 0;
    fake.no_library = fake.held = false;
    fake.free_bytes = 1 << 20;
    fake.total_bytes = 1 << 21;
    fake.fail = NULL;
    fake.error = cudaSuccess;
    fake.calls = 0;
    fake.per_thread.count = fake.legacy.count = 0; /* left over from a failed test */
    fake.last = cudaSuccess;
    stki_cuda = &fake_calls;
    stki_cuda_launcher = &fake_launches;
}

#endif
