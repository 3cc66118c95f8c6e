/* ops_sum_loops_avx2.c: the loops of sums for AVX2. */
#include "ops_sum_body.h"

const stki_sum_loops stki_sum_loops_avx2 = STKI_SUM_BODY;
