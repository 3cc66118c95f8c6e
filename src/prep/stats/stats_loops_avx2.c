/* stats_loops_avx2.c: the loops of statistics for AVX2. */
#include "ops_unaligned.h"
#include <immintrin.h>

#define STKI_VECTORS
enum { VD = 4, VF = 8 };
typedef __m256d vd;
typedef __m256 vf;
typedef __m256i vi;

static inline vd vd_all(double x)
{
    return _mm256_set1_pd(x);
}

static inline vf vf_all(float x)
{
    return _mm256_set1_ps(x);
}

static inline vi vi_none(void)
{
    return _mm256_setzero_si256();
}

static inline vd vd_load(const stki_f64 *at)
{
    return _mm256_loadu_pd((const double *)at);
}

static inline vf vf_load(const stki_f32 *at)
{
    return _mm256_loadu_ps((const float *)at);
}

static inline vd vf_lower(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

static inline vd vf_upper(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

static inline vi vi_count_zeros(vi counts, vf x)
{
    return _mm256_sub_epi32(counts, _mm256_castps_si256(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_EQ_OQ)));
}

static inline int vd_zeros(vd x)
{
    return __builtin_popcount((unsigned)_mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ)));
}
#define vf_min _mm256_min_ps
#define vf_max _mm256_max_ps
#define vd_min _mm256_min_pd
#define vd_max _mm256_max_pd
#define vd_add _mm256_add_pd
#define vd_sub _mm256_sub_pd
#define vd_mul _mm256_mul_pd

#include "stats_loops_body.h"

const stki_stats_loops stki_stats_loops_avx2 = STKI_STATS_BODY;
