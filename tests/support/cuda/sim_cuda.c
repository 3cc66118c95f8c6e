/* sim_cuda.c: see sim_cuda.h. One lock guards all data; operations on memory run without it. An event is a position in
 * a stream: waiting for it means waiting until the stream has finished that many operations. Handles are never reused,
 * so a destroyed one is always detected. */
#include "sim_cuda.h"
#include "cuda_calls.h"
#include "cuda_launches.h"
#include "kernel_twin.h"
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TOTAL_BYTES ((int64_t)1 << 32)
enum { CONTEXT_MARK = 0x7e57, STACK = 16, ASKED_OFTEN = 3 };

typedef struct sim_op {
    enum { OP_NOTHING, OP_COPY, OP_SET, OP_PATTERN, OP_KERNEL, OP_SPIN, OP_HOLD, OP_STAMP, OP_WAIT } what;
    void *dst;
    const void *src;
    size_t bytes;
    bool to_device, from_device;
    int64_t ns;
    const int *flag;
    unsigned char pattern[16];
    size_t pattern_bytes;
    struct CUstream_st *other; /* OP_WAIT: until this stream has done `position` operations */
    int64_t position;
    struct CUevent_st *event;
    stki_launch launch;
    struct sim_op *next;
} sim_op;

struct CUstream_st {
    int gpu;
    bool alive, blocking, implicit, running, threaded, capturing;
    sim_op *first, **last;
    int64_t queued, done, asked, captured;
    struct CUstream_st *next;
};

struct CUevent_st {
    int gpu;
    bool alive, timing, captured;
    struct CUstream_st *stream; /* NULL: never recorded */
    int64_t position, asked, at_ns;
    struct CUevent_st *next;
};

struct block {
    char *at;
    size_t bytes;
    int gpu; /* -1: pinned */
    struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum sim_pace pace;
static struct CUstream_st *streams, *legacy[SIM_GPUS];
static struct CUevent_st *events;
static struct block *blocks;
static int64_t device_limit = TOTAL_BYTES, pinned_limit = TOTAL_BYTES; /* of each GPU; of all pinned memory */
static cudaError_t dead[SIM_GPUS];
static bool kernel_fails[SIM_GPUS], loaded[SIM_GPUS], capture_broken;
static int capturing, visible = SIM_GPUS;
static sim_counts counts;
static _Thread_local struct CUstream_st *per_thread[SIM_GPUS];
static _Thread_local CUcontext stack[STACK];
static _Thread_local int depth;
static _Thread_local enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
static _Thread_local cudaError_t last_error;
static _Thread_local unsigned dice = 1;

__attribute__((format(printf, 1, 2), noreturn)) static void broken(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("sim_cuda: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};

    while (nanosleep(&t, &t))
        ;
}

/* ---- contexts ---- */

static int gpu_of(CUcontext context)
{
    return (int)((uintptr_t)context - CONTEXT_MARK);
}

static cudaError_t answer(cudaError_t error)
{
    if (error)
        last_error = error;
    return error;
}

/* Begins every call on a GPU. Called with the lock held. `breaks`: the call is illegal while a stream is captured in
 * global mode. */
static cudaError_t called(const char *name, bool breaks, int *gpu)
{
    if (!depth)
        broken("%s without a context", name);
    *gpu = gpu_of(stack[depth - 1]);
    if (breaks && capturing && mode != cudaStreamCaptureModeRelaxed) {
        capture_broken = true;
        return answer(cudaErrorStreamCaptureUnsupported);
    }
    return answer(dead[*gpu]);
}

static CUresult retain_context(CUcontext *out, int ordinal)
{
    pthread_mutex_lock(&lock);
    counts.contexts[ordinal]++;
    pthread_mutex_unlock(&lock);
    *out = (CUcontext)(uintptr_t)(CONTEXT_MARK + ordinal);
    return CUDA_SUCCESS;
}

static CUresult push_context(CUcontext context)
{
    if (depth == STACK)
        broken("a context was pushed but not popped");
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult pop_context(CUcontext *out)
{
    if (depth == 0)
        broken("a context was popped but not pushed");
    *out = stack[--depth];
    return CUDA_SUCCESS;
}

static CUresult context_state(int ordinal, int *active)
{
    pthread_mutex_lock(&lock);
    *active = counts.contexts[ordinal] > 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static struct block **block_of(const void *at)
{
    struct block **b = &blocks;

    while (*b && ((const char *)at < (*b)->at || (const char *)at >= (*b)->at + (*b)->bytes))
        b = &(*b)->next;
    return b;
}

/* Checks one side of a copy or kernel. Called with the lock held. */
static void check_side(const char *name, const void *at, size_t bytes, bool on_device)
{
    const struct block *b = *block_of(at);

    if (on_device && (!b || b->gpu < 0 || (const char *)at + bytes > b->at + b->bytes))
        broken("%s: %zu bytes at %p are not memory of a GPU", name, bytes, at);
    if (!on_device && b && b->gpu >= 0)
        broken("%s: %p is memory of a GPU, expected host memory", name, at);
}

static bool lies_in(const struct block *b, const void *at)
{
    return (const char *)at >= b->at && (const char *)at < b->at + b->bytes;
}

static cudaError_t take_block(void **out, size_t bytes, int gpu)
{
    int64_t *used = gpu < 0 ? &counts.pinned_bytes : &counts.device_bytes;
    int64_t limit = gpu < 0 ? pinned_limit : device_limit, here = 0;
    struct block *made;

    for (const struct block *b = blocks; b; b = b->next)
        here += b->gpu == gpu ? (int64_t)b->bytes : 0;
    if ((int64_t)bytes > limit - here)
        return answer(cudaErrorMemoryAllocation);
    made = calloc(1, sizeof *made);
    made->at = aligned_alloc(512, (bytes + 511) / 512 * 512);
    made->bytes = bytes;
    made->gpu = gpu;
    made->next = blocks;
    memset(made->at, 0x5A, bytes);
    blocks = made;
    *used += (int64_t)bytes;
    *(gpu < 0 ? &counts.pinned_blocks : &counts.device_blocks) += 1;
    *out = made->at;
    return cudaSuccess;
}

static void give_block(const char *name, void *at, bool pinned)
{
    struct block **place = block_of(at), *b = *place;

    if (!b || b->at != at || (b->gpu < 0) != pinned)
        broken("%s: %p was not allocated, or was already freed", name, at);
    *place = b->next;
    *(pinned ? &counts.pinned_bytes : &counts.device_bytes) -= (int64_t)b->bytes;
    *(pinned ? &counts.pinned_blocks : &counts.device_blocks) -= 1;
    free(b->at);
    free(b);
}

/* ---- streams ---- */

static void *stream_main(void *context);

static struct CUstream_st *make_stream(int gpu, bool blocking, bool implicit)
{
    struct CUstream_st *made = calloc(1, sizeof *made);

    made->gpu = gpu;
    made->alive = true;
    made->blocking = blocking;
    made->implicit = implicit;
    made->last = &made->first;
    made->next = streams;
    streams = made;
    counts.streams += !implicit;
    return made;
}

/* Called with the lock held. */
static struct CUstream_st *stream_of(const char *name, cudaStream_t handle, int gpu)
{
    struct CUstream_st *s = streams;

    if (!handle)
        broken("%s: NULL as a stream: its meaning depends on how the caller was compiled", name);
    if (handle == cudaStreamLegacy) {
        if (!legacy[gpu])
            legacy[gpu] = make_stream(gpu, false, true);
        return legacy[gpu];
    }
    if (handle == cudaStreamPerThread) {
        if (!per_thread[gpu])
            per_thread[gpu] = make_stream(gpu, true, true);
        return per_thread[gpu];
    }
    while (s && s != handle)
        s = s->next;
    if (!s)
        broken("%s: %p is not a stream", name, (void *)handle);
    if (!s->alive)
        broken("%s: the stream was destroyed", name);
    if (s->gpu != gpu)
        broken("%s: a stream of GPU %d in the context of GPU %d", name, s->gpu, gpu);
    return s;
}

static void append(struct CUstream_st *s, const sim_op *op)
{
    sim_op *made = malloc(sizeof *made);
    pthread_t thread;

    *made = *op;
    made->next = NULL;
    *s->last = made;
    s->last = &made->next;
    s->queued++;
    if (pace == SIM_THREADS && !s->threaded) {
        s->threaded = true;
        pthread_create(&thread, NULL, stream_main, s);
        pthread_detach(thread);
    }
    pthread_cond_broadcast(&changed);
}

/* Called with the lock held. Work in the legacy stream runs after the work already queued in all blocking streams, and
 * their later work runs after it. */
static cudaError_t enqueue(struct CUstream_st *s, const sim_op *op)
{
    if (s->capturing) {
        s->captured++;
        return cudaSuccess;
    }
    if (s == legacy[s->gpu]) {
        for (struct CUstream_st *x = streams; x; x = x->next)
            if (x->gpu == s->gpu && x->blocking && x->done < x->queued)
                append(s, &(sim_op){.what = OP_WAIT, .other = x, .position = x->queued});
    } else if (s->blocking && legacy[s->gpu] && legacy[s->gpu]->done < legacy[s->gpu]->queued) {
        append(s, &(sim_op){.what = OP_WAIT, .other = legacy[s->gpu], .position = legacy[s->gpu]->queued});
    }
    append(s, op);
    return cudaSuccess;
}

static void run_memory(const sim_op *op)
{
    switch (op->what) {
    case OP_COPY:
        memmove(op->dst, op->src, op->bytes);
        break;
    case OP_SET:
        memset(op->dst, op->pattern[0], op->bytes);
        break;
    case OP_PATTERN:
        for (size_t i = 0; i < op->bytes; i++)
            ((unsigned char *)op->dst)[i] = op->pattern[i % op->pattern_bytes];
        break;
    case OP_KERNEL:
        stki_kernel_twin_run(&op->launch);
        break;
    case OP_SPIN:
        sleep_ns(op->ns);
        break;
    case OP_HOLD:
        for (int64_t end = now_ns() + op->ns; !__atomic_load_n(op->flag, __ATOMIC_ACQUIRE) && now_ns() < end;)
            sleep_ns(100000);
        break;
    default:
        break;
    }
}

/* Makes each call on the GPU fail. Called with the lock held; releases it while waiting. First waits for running
 * operations, so that none touches memory once the error is reported. */
static void die(int gpu, const struct CUstream_st *but, cudaError_t error)
{
    const struct CUstream_st *s;

    do {
        for (s = streams; s && (s->gpu != gpu || !s->running || s == but); s = s->next)
            ;
        if (s)
            pthread_cond_wait(&changed, &lock);
    } while (s);
    dead[gpu] = error;
}

/* Runs the first operation, which must be ready to run. Called with the lock held; releases it while the operation
 * runs. */
static void run_one(struct CUstream_st *s)
{
    sim_op *op = s->first;

    s->first = op->next;
    if (!s->first)
        s->last = &s->first;
    s->running = true;
    if (op->what == OP_KERNEL && kernel_fails[s->gpu] && !dead[s->gpu]) {
        kernel_fails[s->gpu] = false;
        die(s->gpu, s, cudaErrorIllegalAddress);
    }
    if (!dead[s->gpu]) {
        if (op->to_device)
            check_side("an operation that runs, destination", op->dst, op->bytes, true);
        if (op->from_device)
            check_side("an operation that runs, source", op->src, op->bytes, true);
        counts.copies += op->what == OP_COPY;
        counts.kernels += op->what == OP_KERNEL;
        pthread_mutex_unlock(&lock);
        if (pace == SIM_THREADS && (dice = dice * 1103515245U + 12345U) >> 30 == 0)
            sleep_ns((dice >> 16) % 200 * 1000);
        run_memory(op);
        pthread_mutex_lock(&lock);
    }
    if (op->what == OP_STAMP)
        op->event->at_ns = now_ns();
    s->running = false;
    s->done++;
    free(op);
    pthread_cond_broadcast(&changed);
}

static bool has_come(const struct CUstream_st *s, int64_t position)
{
    return s->done >= position || dead[s->gpu];
}

/* Blocks until the stream has finished `position` operations. Called with the lock held. */
static void run_until(struct CUstream_st *s, int64_t position)
{
    while (!has_come(s, position)) {
        if (pace == SIM_THREADS || s->running) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        if (s->first->what == OP_WAIT && !has_come(s->first->other, s->first->position))
            run_until(s->first->other, s->first->position);
        else
            run_one(s);
    }
}

static void *stream_main(void *context)
{
    struct CUstream_st *s = context;

    dice = (unsigned)(uintptr_t)s;
    pthread_mutex_lock(&lock);
    for (;;) {
        if (s->first && (s->first->what != OP_WAIT || has_come(s->first->other, s->first->position)))
            run_one(s);
        else if ((pace != SIM_THREADS || !s->alive) && !s->first)
            break;
        else
            pthread_cond_wait(&changed, &lock);
    }
    s->threaded = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void run_all(int gpu)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->gpu == gpu && !s->capturing)
            run_until(s, s->queued);
}

/* Returns whether the stream has reached the position. With SIM_LATE, enough queries make the stream catch up. */
static bool asked(struct CUstream_st *s, int64_t position, int64_t *times)
{
    if (!has_come(s, position) && pace == SIM_LATE && ++*times >= ASKED_OFTEN)
        run_until(s, position);
    if (!has_come(s, position))
        return false;
    *times = 0;
    return true;
}

/* ---- calls ---- */

/* Begins a call on a GPU: declares `gpu` and `error` and takes the lock. */
#define CALL(name, breaks)     \
    int gpu;                   \
    cudaError_t error;         \
    pthread_mutex_lock(&lock); \
    error = called(name, breaks, &gpu)
#define END                      \
    pthread_mutex_unlock(&lock); \
    return answer(error)
#define END_LAUNCH               \
    pthread_mutex_unlock(&lock); \
    return (int)answer(error)

static cudaError_t DriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

static cudaError_t GetDeviceCount(int *count)
{
    *count = visible;
    return cudaSuccess;
}

static stk_status load_driver(stk_error *err)
{
    (void)err;
    return STK_OK;
}

static const char *driver_error_name(CUresult error)
{
    (void)error;
    return "CUDA_ERROR_UNKNOWN";
}

static cudaError_t GetDeviceProperties(struct cudaDeviceProp *out, int ordinal)
{
    CALL("GetDeviceProperties", false);
    *out = (struct cudaDeviceProp){.major = 9, .multiProcessorCount = 1, .asyncEngineCount = 3};
    snprintf(out->name, sizeof out->name, "Simulated GPU %d", ordinal);
    END;
}

static cudaError_t DeviceGetPCIBusId(char *out, int size, int ordinal)
{
    CALL("DeviceGetPCIBusId", false);
    snprintf(out, (size_t)size, "0000:4%d:00.0", ordinal);
    END;
}

static cudaError_t DeviceSynchronize(void)
{
    CALL("DeviceSynchronize", true);
    counts.synchronized_calls++;
    if (!error) {
        run_all(gpu);
        error = dead[gpu];
    }
    END;
}

static cudaError_t MemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    CALL("MemGetInfo", false);
    *total_bytes = TOTAL_BYTES;
    *free_bytes = *total_bytes - (size_t)counts.device_bytes / 2;
    END;
}

static cudaError_t Malloc(void **out, size_t bytes)
{
    CALL("Malloc", true);
    if (!error)
        error = take_block(out, bytes, gpu);
    END;
}

static cudaError_t DeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int ordinal)
{
    CALL("DeviceGetAttribute", false);
    (void)ordinal;
    if (attribute != cudaDevAttrMemoryPoolsSupported)
        broken("DeviceGetAttribute: unknown attribute %d", attribute);
    *out = 1;
    END;
}

/* The block exists as soon as the call returns, not only when its stream reaches this point. */
static cudaError_t MallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
    CALL("MallocAsync", false);
    if (stream_of("MallocAsync", stream, gpu)->capturing)
        broken("MallocAsync: the stream is captured");
    if (!error)
        error = take_block(out, bytes, gpu);
    END;
}

/* The call does not wait, so no work that is queued in any stream may use the block. */
static cudaError_t FreeAsync(void *at, cudaStream_t stream)
{
    const struct block *b;
    CALL("FreeAsync", false);

    (void)stream_of("FreeAsync", stream, gpu);
    b = *block_of(at);
    for (const struct CUstream_st *s = streams; s && b && !dead[gpu]; s = s->next)
        for (const sim_op *op = s->first; op; op = op->next)
            if (lies_in(b, op->dst) || lies_in(b, op->src))
                broken("FreeAsync: work on the block is still queued");
    give_block("FreeAsync", at, false);
    END;
}

static cudaError_t HostAlloc(void **out, size_t bytes, unsigned flags)
{
    unsigned long nodes[16];
    CALL("HostAlloc", true);
    if (flags != cudaHostAllocPortable)
        broken("HostAlloc: the memory would be pinned for only one context");
    if (syscall(SYS_get_mempolicy, &counts.pinned_policy, nodes, sizeof nodes * CHAR_BIT, NULL, 0) == 0)
        counts.pinned_nodes = nodes[0];
    if (!error)
        error = take_block(out, bytes, -1);
    END;
}

/* Like the driver, waits for the GPU before it frees. */
static cudaError_t Free(void *at)
{
    CALL("Free", true);
    counts.waiting_frees++;
    run_all(gpu);
    give_block("Free", at, false);
    END;
}

static cudaError_t FreeHost(void *at)
{
    CALL("FreeHost", true);
    for (int i = 0; i < SIM_GPUS; i++)
        run_all(i);
    give_block("FreeHost", at, true);
    END;
}

static cudaError_t MemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    CALL("MemcpyAsync", false);

    check_side("MemcpyAsync, destination", dst, bytes, to_device);
    check_side("MemcpyAsync, source", src, bytes, from_device);
    if (!error)
        error = enqueue(stream_of("MemcpyAsync", stream, gpu), &(sim_op){.what = OP_COPY,
                                                                         .dst = dst,
                                                                         .src = src,
                                                                         .bytes = bytes,
                                                                         .to_device = to_device,
                                                                         .from_device = from_device});
    END;
}

static cudaError_t MemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    CALL("MemsetAsync", false);
    check_side("MemsetAsync", dst, bytes, true);
    if (!error)
        error = enqueue(
            stream_of("MemsetAsync", stream, gpu),
            &(sim_op){
                .what = OP_SET, .dst = dst, .pattern = {(unsigned char)value}, .bytes = bytes, .to_device = true});
    END;
}

static cudaError_t DeviceGetStreamPriorityRange(int *least, int *greatest)
{
    CALL("DeviceGetStreamPriorityRange", false);
    *least = 0;
    *greatest = -5;
    END;
}

static cudaError_t StreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    CALL("StreamCreateWithPriority", false);
    if (priority > 0 || priority < -5)
        broken("StreamCreateWithPriority: unexpected priority %d", priority);
    if (!error)
        *out = make_stream(gpu, !(flags & cudaStreamNonBlocking), false);
    END;
}

static cudaError_t StreamDestroy(cudaStream_t stream)
{
    CALL("StreamDestroy", false);
    stream_of("StreamDestroy", stream, gpu)->alive = false;
    counts.streams--;
    pthread_cond_broadcast(&changed);
    END;
}

static cudaError_t StreamQuery(cudaStream_t stream)
{
    struct CUstream_st *s;
    CALL("StreamQuery", true);

    s = stream_of("StreamQuery", stream, gpu);
    if (!error && s->capturing)
        broken("StreamQuery: the stream is captured");
    if (!error)
        error = asked(s, s->queued, &s->asked) ? dead[gpu] : cudaErrorNotReady;
    END;
}

static cudaError_t StreamSynchronize(cudaStream_t stream)
{
    struct CUstream_st *s;
    CALL("StreamSynchronize", true);

    s = stream_of("StreamSynchronize", stream, gpu);
    if (!error) {
        run_until(s, s->queued);
        error = dead[gpu];
    }
    END;
}

static struct CUevent_st *event_of(const char *name, cudaEvent_t handle)
{
    struct CUevent_st *e = events;

    while (e && e != handle)
        e = e->next;
    if (!e)
        broken("%s: %p is not an event", name, (void *)handle);
    if (!e->alive)
        broken("%s: the event was destroyed", name);
    return e;
}

static cudaError_t StreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    struct CUstream_st *s;
    struct CUevent_st *e;
    CALL("StreamWaitEvent", false);

    (void)flags;
    s = stream_of("StreamWaitEvent", stream, gpu);
    e = event_of("StreamWaitEvent", event);
    if (s->capturing != e->captured)
        broken("StreamWaitEvent: between captured and other work");
    if (!error && e->stream)
        error = enqueue(s, &(sim_op){.what = OP_WAIT, .other = e->stream, .position = e->position});
    END;
}

static cudaError_t EventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    struct CUevent_st *made;
    CALL("EventCreateWithFlags", false);

    if (!error) {
        made = calloc(1, sizeof *made);
        made->gpu = gpu;
        made->alive = true;
        made->timing = !(flags & cudaEventDisableTiming);
        made->next = events;
        events = made;
        counts.events++;
        *out = made;
    }
    END;
}

static cudaError_t EventDestroy(cudaEvent_t event)
{
    CALL("EventDestroy", false);
    event_of("EventDestroy", event)->alive = false;
    counts.events--;
    END;
}

static cudaError_t EventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct CUstream_st *s;
    struct CUevent_st *e;
    CALL("EventRecord", false);

    s = stream_of("EventRecord", stream, gpu);
    e = event_of("EventRecord", event);
    if (e->gpu != gpu)
        broken("EventRecord: an event of GPU %d in the context of GPU %d", e->gpu, gpu);
    e->captured = s->capturing;
    if (!error) {
        error = enqueue(s, &(sim_op){.what = OP_STAMP, .event = e});
        e->stream = s;
        e->position = s->queued;
        e->asked = 0;
    }
    END;
}

static cudaError_t EventQuery(cudaEvent_t event)
{
    struct CUevent_st *e;
    CALL("EventQuery", true);

    e = event_of("EventQuery", event);
    if (e->captured)
        broken("EventQuery: the event was captured");
    if (!error && e->stream)
        error = asked(e->stream, e->position, &e->asked) ? dead[gpu] : cudaErrorNotReady;
    END;
}

/* With SIM_LATE, this call also sleeps before it does the work. */
static cudaError_t EventSynchronize(cudaEvent_t event)
{
    struct CUevent_st *e;
    int64_t position;
    CALL("EventSynchronize", true);

    e = event_of("EventSynchronize", event);
    if (e->captured)
        broken("EventSynchronize: the event was captured");
    position = e->position;
    while (!error && e->stream && pace == SIM_LATE && !asked(e->stream, position, &e->asked)) {
        pthread_mutex_unlock(&lock);
        sleep_ns(100000);
        pthread_mutex_lock(&lock);
    }
    if (!error && e->stream) {
        run_until(e->stream, position);
        error = dead[gpu];
    }
    END;
}

static cudaError_t EventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    const struct CUevent_st *a, *b;
    CALL("EventElapsedTime", true);

    a = event_of("EventElapsedTime", from);
    b = event_of("EventElapsedTime", to);
    if (!error && (!a->stream || !b->stream || !a->timing || !b->timing))
        error = cudaErrorInvalidResourceHandle;
    else if (!error && (!has_come(a->stream, a->position) || !has_come(b->stream, b->position)))
        error = cudaErrorNotReady;
    else if (!error)
        *ms = (float)(b->at_ns - a->at_ns) * 1e-6F;
    END;
}

static cudaError_t ThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *other)
{
    enum cudaStreamCaptureMode before = mode;

    mode = *other;
    *other = before;
    return cudaSuccess;
}

/* An error that made the context useless is reported again. */
static cudaError_t GetLastError(void)
{
    cudaError_t last = last_error;

    last_error = cudaSuccess;
    return last;
}

static const char *GetErrorName(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "an error";
}

static const char *GetErrorString(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "of the simulated CUDA";
}

static const stki_cuda_calls calls = {
    .DriverGetVersion = DriverGetVersion,
    .RuntimeGetVersion = DriverGetVersion,
    .GetDeviceCount = GetDeviceCount,
    .load_driver = load_driver,
    .retain_context = retain_context,
    .push_context = push_context,
    .pop_context = pop_context,
    .context_state = context_state,
    .driver_error_name = driver_error_name,
    .GetDeviceProperties = GetDeviceProperties,
    .DeviceGetPCIBusId = DeviceGetPCIBusId,
    .DeviceSynchronize = DeviceSynchronize,
    .MemGetInfo = MemGetInfo,
    .DeviceGetAttribute = DeviceGetAttribute,
    .Malloc = Malloc,
    .Free = Free,
    .MallocAsync = MallocAsync,
    .FreeAsync = FreeAsync,
    .HostAlloc = HostAlloc,
    .FreeHost = FreeHost,
    .MemcpyAsync = MemcpyAsync,
    .MemsetAsync = MemsetAsync,
    .DeviceGetStreamPriorityRange = DeviceGetStreamPriorityRange,
    .StreamCreateWithPriority = StreamCreateWithPriority,
    .StreamDestroy = StreamDestroy,
    .StreamQuery = StreamQuery,
    .StreamSynchronize = StreamSynchronize,
    .StreamWaitEvent = StreamWaitEvent,
    .EventCreateWithFlags = EventCreateWithFlags,
    .EventDestroy = EventDestroy,
    .EventRecord = EventRecord,
    .EventQuery = EventQuery,
    .EventSynchronize = EventSynchronize,
    .EventElapsedTime = EventElapsedTime,
    .ThreadExchangeStreamCaptureMode = ThreadExchangeStreamCaptureMode,
    .GetLastError = GetLastError,
    .GetErrorName = GetErrorName,
    .GetErrorString = GetErrorString,
};

const stki_cuda_calls *stki_cuda = &calls;

/* ---- kernels ---- */

static int launch_op(const char *name, int ordinal, void *stream, const sim_op *op)
{
    CALL(name, false);

    if (gpu != ordinal)
        broken("%s for GPU %d in the context of GPU %d", name, ordinal, gpu);
    if (!loaded[gpu])
        broken("%s: the kernel is not loaded: CUDA would wait for the whole GPU", name);
    if (!error)
        error = enqueue(stream_of(name, stream, gpu), op);
    END_LAUNCH;
}

static int launch_load(int ordinal)
{
    CALL("load", true);
    if (gpu != ordinal)
        broken("load for GPU %d in the context of GPU %d", ordinal, gpu);
    loaded[gpu] = true;
    END_LAUNCH;
}

static int launch_fill(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count)
{
    sim_op op = {.what = OP_PATTERN, .dst = dst, .bytes = (size_t)(pattern_bytes * count), .to_device = true};

    op.pattern_bytes = (size_t)pattern_bytes;
    memcpy(op.pattern, pattern, op.pattern_bytes);
    return launch_op("fill", ordinal, stream, &op);
}

static int launch_spin(int ordinal, void *stream, int64_t ns)
{
    return launch_op("spin", ordinal, stream, &(sim_op){.what = OP_SPIN, .ns = ns});
}

static int launch_kernel(int ordinal, void *stream, const struct stki_launch *launch)
{
    return launch_op("launch", ordinal, stream, &(sim_op){.what = OP_KERNEL, .launch = *launch});
}

static const stki_cuda_launches launches = {
    .load = launch_load, .fill = launch_fill, .spin = launch_spin, .launch = launch_kernel};

const stki_cuda_launches *stki_cuda_launcher = &launches;

/* ---- for tests ---- */

void sim_set_pace(enum sim_pace to)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SIM_GPUS; i++)
        run_all(i);
    pace = to;
    pthread_cond_broadcast(&changed);
    for (const struct CUstream_st *s = streams; s; s = s->next)
        while (to != SIM_THREADS && s->threaded)
            pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void sim_set_visible(int gpus)
{
    visible = gpus;
}

void sim_set_limits(int64_t device_bytes, int64_t pinned_bytes)
{
    pthread_mutex_lock(&lock);
    device_limit = device_bytes ? device_bytes : TOTAL_BYTES;
    pinned_limit = pinned_bytes ? pinned_bytes : TOTAL_BYTES;
    pthread_mutex_unlock(&lock);
}

void sim_kill(int gpu, cudaError_t error)
{
    pthread_mutex_lock(&lock);
    die(gpu, NULL, error);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void sim_hold(int gpu, void *native_stream, const int *flag, int64_t at_most_ns)
{
    pthread_mutex_lock(&lock);
    (void)enqueue(stream_of("hold", native_stream, gpu), &(sim_op){.what = OP_HOLD, .flag = flag, .ns = at_most_ns});
    pthread_mutex_unlock(&lock);
}

void sim_fail_next_kernel(int gpu)
{
    pthread_mutex_lock(&lock);
    kernel_fails[gpu] = true;
    pthread_mutex_unlock(&lock);
}

/* Runs what is still queued, which has no effect on a dead GPU. */
void sim_revive(int gpu)
{
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *s = streams; s; s = s->next)
        while (s->gpu == gpu && s->done < s->queued) {
            if (pace == SIM_LATE && !s->running)
                run_one(s);
            else
                pthread_cond_wait(&changed, &lock);
        }
    dead[gpu] = cudaSuccess;
    kernel_fails[gpu] = false;
    pthread_mutex_unlock(&lock);
}

void sim_begin_capture(void *native)
{
    pthread_mutex_lock(&lock);
    ((struct CUstream_st *)native)->capturing = true;
    ((struct CUstream_st *)native)->captured = 0;
    capturing++;
    capture_broken = false;
    pthread_mutex_unlock(&lock);
}

bool sim_end_capture(void *native, int64_t *captured)
{
    bool whole;

    pthread_mutex_lock(&lock);
    ((struct CUstream_st *)native)->capturing = false;
    *captured = ((struct CUstream_st *)native)->captured;
    capturing--;
    whole = !capture_broken;
    pthread_mutex_unlock(&lock);
    return whole;
}

sim_counts sim_count(void)
{
    sim_counts now;

    pthread_mutex_lock(&lock);
    now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

void *sim_native_stream(int gpu, bool blocking)
{
    struct CUstream_st *made;

    pthread_mutex_lock(&lock);
    made = make_stream(gpu, blocking, false);
    pthread_mutex_unlock(&lock);
    return made;
}

void sim_destroy_native_stream(void *native)
{
    pthread_mutex_lock(&lock);
    ((struct CUstream_st *)native)->alive = false;
    counts.streams--;
    pthread_mutex_unlock(&lock);
}
