/* trace.c: see trace.h. NVTX initializes itself at its first call, without ordering that write before the reads of
 * other threads, so it is done once here for all files. Whether a profiler listens is asked once, because workers begin
 * a range for every sample. */
#include "trace.h"

#ifdef NVTX_VERSION
_Atomic int stki_trace_state;

static void start(void)
{
    int level;

    nvtxInitialize(NULL);
    level = nvtxRangePushA("stoker");
    (void)nvtxRangePop();
    atomic_store_explicit(&stki_trace_state, level == NVTX_NO_PUSH_POP_TRACKING ? 1 : 2, memory_order_release);
}

void stki_trace_start(void)
{
    static stki_once once = STKI_ONCE;

    stki_run_once(&once, start);
}
#endif
