/* ops_gemm_loops_avx512.c: the loops of matrix products for AVX-512. */
#define VECTOR_BYTES 64
#define TILE_ROWS 12
#include "ops_gemm_body.h"

const stki_gemm_loops stki_gemm_loops_avx512[STKI_GEMM_KINDS] = STKI_GEMM_BODY;
