/* trace.h: names for Nsight Systems: ranges of a thread's work, and streams. (Threads already have system names, which
 * it shows.) Uses header-only NVTX from the CUDA toolkit: without a profiler a range takes a few nanoseconds, and in a
 * build without CUDA, or without NVTX's headers, nothing. */
#ifndef STKI_TRACE_H
#define STKI_TRACE_H

#include "device_table.h"
#include "thread.h"

#if defined(STKI_CUDA_ARCHITECTURES) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

/* NVTX initializes itself at its first call, without ordering that write before the reads of other threads. */
static inline void stki_trace_start(void)
{
    nvtxInitialize(NULL);
}

static inline void stki_trace_once(void)
{
    static stki_once once = STKI_ONCE;

    stki_run_once(&once, stki_trace_start);
}

static inline void stki_trace_begin(const char *name)
{
    stki_trace_once();
    (void)nvtxRangePushA(name);
}

static inline void stki_trace_end(void)
{
    stki_trace_once();
    (void)nvtxRangePop();
}

static inline void stki_trace_stream(const stk_stream *stream, const char *name)
{
    stki_trace_once();
    if (stream && stream->device->kind == STK_DEVICE_CUDA)
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
