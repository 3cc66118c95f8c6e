/* stats_loops_avx2.c: the statistics loops for AVX2. */
#include "vector_avx2.h"

#define STKI_VECTORS

static inline vi vi_count_zeros(vi counts, vf x)
{
    return _mm256_sub_epi32(counts, _mm256_castps_si256(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_EQ_OQ)));
}

static inline int vd_zeros(vd x)
{
    return __builtin_popcount((unsigned)_mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ)));
}

#include "stats_loops_body.h"

const stki_stats_loops stki_stats_loops_avx2 = STKI_STATS_BODY;
