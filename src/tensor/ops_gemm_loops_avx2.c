/* ops_gemm_loops_avx2.c: the loops of matrix products for AVX2. */
#define VECTOR_BYTES 32
#define TILE_ROWS 6
#include "ops_gemm_body.h"

const stki_gemm_loops stki_gemm_loops_avx2[STKI_GEMM_KINDS] = STKI_GEMM_BODY;
