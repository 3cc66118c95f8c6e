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

extern _Atomic int stki_trace_state; /* 0: not asked yet, 1: no profiler listens, 2: one does */
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
