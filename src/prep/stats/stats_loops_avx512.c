/* stats_loops_avx512.c: the statistics loops for AVX-512. */
#include "vector_avx512.h"

#define STKI_VECTORS

static inline vi vi_count_zeros(vi counts, vf x)
{
    const __mmask16 zero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_EQ_OQ);

    return _mm512_mask_add_epi32(counts, zero, counts, _mm512_set1_epi32(1));
}

static inline int vd_zeros(vd x)
{
    return __builtin_popcount(_mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ));
}

#include "stats_loops_body.h"

const stki_stats_loops stki_stats_loops_avx512 = STKI_STATS_BODY;
