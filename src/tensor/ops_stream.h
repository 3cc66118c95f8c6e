/* ops_stream.h: element-wise loops whose stores go past the caches, for outputs larger than those. Measured on Zen 4
 * over 150 MB: 41 GB/s read and written by an addition whose loop stores 32 bytes past the caches, 34 by one that
 * computes a block in the cache and then copies it past, 27 with ordinary stores, for which every line is read before
 * it is written.
 */
#ifndef STKI_OPS_STREAM_H
#define STKI_OPS_STREAM_H

#include "ops_loops.h"

enum { STKI_STREAM_ALIGNMENT = 64 };

/* Loops for outputs aligned to STKI_STREAM_ALIGNMENT whose size is a multiple of it. NULL: none for this operation;
 * add, sub, mul and div have one. The caller must call stki_store_fence() before it publishes the results to other
 * threads. */
extern const stki_loops stki_stream_loops_avx2[STKI_LOOPS][STK_DTYPE_END];

#endif
