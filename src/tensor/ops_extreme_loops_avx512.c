/* ops_extreme_loops_avx512.c: the loops of minimum and maximum for AVX-512. */
#include "ops_extreme_body.h"

const stki_extreme_loops stki_extreme_loops_avx512[2][STK_DTYPE_END] = STKI_EXTREME_BODY;
