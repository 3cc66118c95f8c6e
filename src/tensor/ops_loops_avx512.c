/* ops_loops_avx512.c: the element-wise loops for AVX-512. */
#include "ops_loops_body.h"

const stki_loops stki_loops_avx512[STKI_LOOPS][STK_DTYPE_END] = STKI_LOOPS_BODY;
