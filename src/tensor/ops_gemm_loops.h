/* ops_gemm_loops.h: the inner loops of matrix products. Products and sums are rounded separately (no fused
 * multiply-add), and every element's sum runs over k in the same order, so that all variants produce bit-identical
 * results. */
#ifndef STKI_OPS_GEMM_LOOPS_H
#define STKI_OPS_GEMM_LOOPS_H

#include "convert.h"

/* The compute types: f16 and bf16 use f32; integers use unsigned ones, which wrap. */
enum stki_gemm_kind { STKI_GEMM_F32, STKI_GEMM_F64, STKI_GEMM_U32, STKI_GEMM_U64, STKI_GEMM_KINDS };

typedef struct stki_gemm_loops {
    int tile_rows, tile_columns; /* size of the block that `tile` computes */
    /* c (rows `c_step` elements apart) += a * b; a is `depth` times tile_rows, b `depth` times tile_columns elements.
     */
    void (*tile)(void *c, int64_t c_step, const void *a, const void *b, int64_t depth);
    /* *c += the sum of x[i] * y[i]. */
    void (*dot)(void *c, const void *x, const void *y, int64_t n);
    /* c[i] += x[i] * factor[0]. */
    void (*scale_add)(void *c, const void *x, const void *factor, int64_t n);
} stki_gemm_loops;

const stki_gemm_loops *stki_gemm_loops_of(enum stki_isa isa, enum stki_gemm_kind kind);

extern const stki_gemm_loops stki_gemm_loops_ref[STKI_GEMM_KINDS];
extern const stki_gemm_loops stki_gemm_loops_avx2[STKI_GEMM_KINDS];
extern const stki_gemm_loops stki_gemm_loops_avx512[STKI_GEMM_KINDS];

#endif
