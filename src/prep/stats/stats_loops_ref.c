/* stats_loops_ref.c: the statistics loops for any processor, and the choice of loops at run time. */
#include "stats_loops_body.h"

const stki_stats_loops stki_stats_loops_ref = STKI_STATS_BODY;

const stki_stats_loops *stki_stats_loops_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return &stki_stats_loops_avx512;
    if (isa == STKI_ISA_AVX2)
        return &stki_stats_loops_avx2;
#else
    (void)isa;
#endif
    return &stki_stats_loops_ref;
}
