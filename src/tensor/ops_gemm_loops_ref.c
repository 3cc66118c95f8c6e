/* ops_gemm_loops_ref.c: the loops of matrix products for any processor. */
#define VECTOR_BYTES 16
#define TILE_ROWS 4
#include "ops_gemm_body.h"

const stki_gemm_loops stki_gemm_loops_ref[STKI_GEMM_KINDS] = STKI_GEMM_BODY;
