/* ops_sum_loops.c: the choice among the variants of the loops of sums. */
#include "ops_sum_loops.h"

const stki_sum_loops *stki_sum_loops_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return &stki_sum_loops_avx512;
    if (isa == STKI_ISA_AVX2)
        return &stki_sum_loops_avx2;
#endif
    (void)isa;
    return &stki_sum_loops_ref;
}
