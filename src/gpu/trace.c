/* trace.c: see trace.h. NVTX initializes itself on its first call, without synchronizing with other threads, so that
 * call is made here, once for all files. Whether a profiler is attached is also determined once, because workers begin
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
