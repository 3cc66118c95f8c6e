/* ops_stream.h: element-wise loops with streaming stores, for outputs larger than the caches. Measured on Zen 4 with an
 * addition over 150 MB (read and written): 41 GB/s with streaming stores of 32 bytes in the loop, 34 GB/s when a block
 * is computed in the cache and then copied with streaming stores, 27 GB/s with ordinary stores, which read every line
 * before they write it. */
#ifndef STKI_OPS_STREAM_H
#define STKI_OPS_STREAM_H

#include "ops_loops.h"

enum { STKI_STREAM_ALIGNMENT = 64 };

/* Loops for outputs aligned to STKI_STREAM_ALIGNMENT whose size is a multiple of it. NULL: there is none for this
 * operation; add, sub, mul and div have one. The caller must call stki_store_fence() before it publishes the results to
 * other threads. */
extern const stki_loops stki_stream_loops_avx2[STKI_LOOPS][STK_DTYPE_END];

#endif
