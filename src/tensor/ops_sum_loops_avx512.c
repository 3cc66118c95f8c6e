/* ops_sum_loops_avx512.c: the loops of sums for AVX-512. */
#include "ops_sum_body.h"

const stki_sum_loops stki_sum_loops_avx512 = STKI_SUM_BODY;
