/* ops_sum_loops.c: the choice among the variants of the loops of sums. */
#include "ops_sum_loops.h"

stki_sum_loops stki_sum_loops_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX2)
        return stki_sum_loops_avx2;
    if (isa == STKI_ISA_AVX512) { /* Zen 4 widens 64 bytes no faster than 32: rows in the cache 95 GB/s against 60 */
        stki_sum_loops loops = stki_sum_loops_avx512;
        loops.row_f32 = stki_sum_loops_avx2.row_f32;
        loops.row_f64 = stki_sum_loops_avx2.row_f64;
        return loops;
    }
#endif
    (void)isa;
    return stki_sum_loops_ref;
}
