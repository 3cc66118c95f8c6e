/* ops_loops_avx2.c: the element-wise loops for AVX2. */
#include "ops_loops_body.h"

const stki_loops stki_loops_avx2[STKI_LOOPS][STK_DTYPE_END] = STKI_LOOPS_BODY;
