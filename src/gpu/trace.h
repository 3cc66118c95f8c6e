/* trace.h: named ranges of a thread's work and names of streams for Nsight Systems. (Nsight Systems shows the names of
 * threads without this file.) Uses NVTX, a header-only library of the CUDA toolkit. Without a profiler, a range takes a
 * few nanoseconds; in builds without CUDA or without NVTX's headers, these functions are empty. */
#ifndef STKI_TRACE_H
#define STKI_TRACE_H

#include "device_table.h"
#include "thread.h"

#if defined(STKI_TRACE) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

extern _Atomic int stki_trace_state; /* 0: unknown; 1: no profiler is attached; 2: one is */
void stki_trace_start(void);

static inline bool stki_traces(void)
{
    if (atomic_load_explicit(&stki_trace_state, memory_order_acquire) == 0)
        stki_trace_start();
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
