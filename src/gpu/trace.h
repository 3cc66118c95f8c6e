/* trace.h: names for Nsight Systems: ranges of a thread's work, and streams. (Threads already have system names, which
 * it shows.) Uses header-only NVTX from the CUDA toolkit: without a profiler a range takes a few nanoseconds, and in a
 * build without CUDA, or without NVTX's headers, nothing. */
#ifndef STKI_TRACE_H
#define STKI_TRACE_H

#include "device_table.h"
#include "thread.h"

#if defined(STKI_TRACE) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

static _Atomic int stki_trace_state; /* 0: not asked yet, 1: none listens, 2: one does */

/* NVTX initializes itself at its first call, without ordering that write before the reads of other threads. Whether a
 * profiler listens is asked once, because workers begin a range for every sample. */
static inline void stki_trace_start(void)
{
    nvtxInitialize(NULL);
    atomic_store_explicit(&stki_trace_state, nvtxRangePushA("stoker") == NVTX_NO_PUSH_POP_TRACKING ? 1 : 2,
                          memory_order_release);
    (void)nvtxRangePop();
}

static inline bool stki_traces(void)
{
    static stki_once once = STKI_ONCE;

    if (atomic_load_explicit(&stki_trace_state, memory_order_acquire) == 0)
        stki_run_once(&once, stki_trace_start);
    return atomic_load_explicit(&stki_trace_state, memory_order_relaxed) == 2;
}

static inline void stki_trace_begin(const char *name)
{
    if (stki_traces())
        (void)nvtxRangePushA(name);
}

static inline void stki_trace_end(void)
{
    if (stki_traces())
        (void)nvtxRangePop();
}

static inline void stki_trace_stream(const stk_stream *stream, const char *name)
{
    if (stki_traces() && stream && stream->device->kind == STK_DEVICE_CUDA)
        nvtxNameCudaStreamA((cudaStream_t)stream->native, name);
}
#else
static inline void stki_trace_begin(const char *name)
{
    (void)name;
}

static inline void stki_trace_end(void)
{
}

static inline void stki_trace_stream(const stk_stream *stream, const char *name)
{
    (void)stream, (void)name;
}
#endif

#endif
