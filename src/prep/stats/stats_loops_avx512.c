/* stats_loops_avx512.c: the loops of statistics for AVX-512. */
#include "ops_unaligned.h"
#include <immintrin.h>

#define STKI_VECTORS
enum { VD = 8, VF = 16 };
typedef __m512d vd;
typedef __m512 vf;
typedef __m512i vi;

static inline vd vd_all(double x)
{
    return _mm512_set1_pd(x);
}

static inline vf vf_all(float x)
{
    return _mm512_set1_ps(x);
}

static inline vi vi_none(void)
{
    return _mm512_setzero_si512();
}

static inline vd vd_load(const stki_f64 *at)
{
    return _mm512_loadu_pd(at);
}

static inline vf vf_load(const stki_f32 *at)
{
    return _mm512_loadu_ps(at);
}

static inline vd vf_lower(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

static inline vd vf_upper(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

static inline vi vi_count_zeros(vi counts, vf x)
{
    const __mmask16 zero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_EQ_OQ);

    return _mm512_mask_add_epi32(counts, zero, counts, _mm512_set1_epi32(1));
}

static inline int vd_zeros(vd x)
{
    return __builtin_popcount(_mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ));
}
#define vf_min _mm512_min_ps
#define vf_max _mm512_max_ps
#define vd_min _mm512_min_pd
#define vd_max _mm512_max_pd
#define vd_add _mm512_add_pd
#define vd_sub _mm512_sub_pd
#define vd_mul _mm512_mul_pd

#include "stats_loops_body.h"

const stki_stats_loops stki_stats_loops_avx512 = STKI_STATS_BODY;
