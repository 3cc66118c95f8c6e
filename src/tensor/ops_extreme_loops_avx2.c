/* ops_extreme_loops_avx2.c: the loops of minimum and maximum for AVX2. */
#include "ops_extreme_body.h"

const stki_extreme_loops stki_extreme_loops_avx2[2][STK_DTYPE_END] = STKI_EXTREME_BODY;
