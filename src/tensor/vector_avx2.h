/* vector_avx2.h: vectors of AVX2 with FMA and F16C, under the names that the *_body.h files use. Only files that are
 * compiled for these instruction sets may include it.
 *
 * A unit is one vector of 32 bytes, half a cache line: 32, 16 or 8 elements of 1, 2 or 4 bytes.
 */
#ifndef STKI_VECTOR_AVX2_H
#define STKI_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define STKI_MASKED 0 /* partial vectors go through a buffer */

enum { WIDTH = 8, UNIT = 32, LINE = 64 };
#define PER_UNIT(size) (UNIT / (size))

typedef __m256 vf;  /* WIDTH f32 */
typedef __m256i vi; /* WIDTH i32, or bytes */
typedef __m256d vd; /* WIDTH / 2 f64 */
typedef vi vunit;

/* ---- memory; only streaming stores need aligned addresses ---- */

INLINE __m128i bytes_8(const void *at)
{
    return _mm_loadl_epi64((const __m128i *)at);
}

INLINE __m128i bytes_16(const void *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

INLINE vi vi_load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

INLINE vf vf_load(const void *at)
{
    return _mm256_loadu_ps((const float *)at);
}

/* Loads the first `count` lanes and sets the others to 0. */
INLINE vf vf_load_some(const void *at, int64_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

    return _mm256_maskload_ps((const float *)at, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lanes));
}

INLINE vd vd_load(const void *at)
{
    return _mm256_loadu_pd((const double *)at);
}

INLINE void vf_store(void *to, vf x)
{
    _mm256_storeu_ps((float *)to, x);
}

/* Stores the first `count` lanes. */
INLINE void vf_store_some(void *to, vf x, int64_t count)
{
    float all[WIDTH];

    vf_store(all, x);
    memcpy(to, all, (size_t)count * sizeof(float));
}

/* Loads `count` f16, at most WIDTH, and sets the other lanes to 0. */
INLINE vf vf_load_f16(const void *at, int64_t count)
{
    uint16_t all[WIDTH] = {0};

    if (count == WIDTH)
        return _mm256_cvtph_ps(bytes_16(at));
    memcpy(all, at, (size_t)count * 2);
    return _mm256_cvtph_ps(bytes_16(all));
}

INLINE void vf_store_f16(void *to, vf x, int64_t count)
{
    const __m128i all = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);

    if (count == WIDTH)
        _mm_storeu_si128((__m128i *)to, all);
    else
        memcpy(to, &all, (size_t)count * 2);
}

/* Stores a whole line; if streaming, `to` must be at a line boundary. */
INLINE void copy_line(void *to, const void *from, bool streaming)
{
    const vi low = vi_load(from), high = vi_load((const char *)from + UNIT);
    __m256i *at = (__m256i *)to;

    if (streaming) {
        _mm256_stream_si256(at, low);
        _mm256_stream_si256(at + 1, high);
    } else {
        _mm256_storeu_si256(at, low);
        _mm256_storeu_si256(at + 1, high);
    }
}

/* Stores less than a line. */
INLINE void copy_some(void *to, const void *from, int64_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

INLINE void vf_stream(void *to, vf x)
{
    _mm256_stream_ps((float *)to, x);
}

INLINE void store_unit(void *to, vunit x, int64_t bytes, bool streaming)
{
    (void)bytes;
    if (streaming)
        _mm256_stream_si256((__m256i *)to, x);
    else
        _mm256_storeu_si256((__m256i *)to, x);
}

/* ---- arithmetic ---- */

#define vf_all _mm256_set1_ps
#define vf_add _mm256_add_ps
#define vf_sub _mm256_sub_ps
#define vf_mul _mm256_mul_ps
#define vf_fma _mm256_fmadd_ps /* a * b + c */
#define vf_min _mm256_min_ps
#define vf_max _mm256_max_ps
#define vf_of_i32 _mm256_cvtepi32_ps
#define vi_of_f32 _mm256_cvtps_epi32 /* INT32_MIN for values out of range */
#define vi_bits_of _mm256_castps_si256
#define vi_zero _mm256_setzero_si256
#define vd_all _mm256_set1_pd
#define vd_add _mm256_add_pd
#define vd_sub _mm256_sub_pd
#define vd_mul _mm256_mul_pd
#define vd_min _mm256_min_pd
#define vd_max _mm256_max_pd
#define vd_of_lower_f32(x) _mm256_cvtps_pd(_mm256_castps256_ps128(x))
#define vd_of_upper_f32(x) _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))
#define vd_of_lower_i32(x) _mm256_cvtepi32_pd(_mm256_castsi256_si128(x))
#define vd_of_upper_i32(x) _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1))
#define vf_of_f64(low, high) vf_join(_mm256_cvtpd_ps(low), _mm256_cvtpd_ps(high))
#define vf_of_bits _mm256_castsi256_ps

INLINE vf vf_join(__m128 low, __m128 high)
{
    return _mm256_set_m128(high, low);
}

/* Rounds to nearest even; NaN becomes 0. */
INLINE vf vf_rint(vf x)
{
    return _mm256_round_ps(_mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q)),
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The conversion returns INT32_MIN for all values out of range; values that are too large are corrected. */
INLINE vi vi_of_f32_saturated(vf x)
{
    vi above = _mm256_castps_si256(_mm256_cmp_ps(x, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ));

    return _mm256_blendv_epi8(_mm256_cvtps_epi32(x), _mm256_set1_epi32(INT32_MAX), above);
}

/* ---- packing ---- */

/* Rounds to the upper 16 bits (nearest, ties to even) by integer addition; the result is in the low 16 bits of each
 * lane. `numbers`: there is no NaN; otherwise NaN is made quiet. */
INLINE vi vi_round_bf16(vf x, bool numbers)
{
    vi bits = _mm256_castps_si256(x), upper = _mm256_srli_epi32(bits, 16);
    vi odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    vi sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    vi nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));

    if (numbers)
        return _mm256_srli_epi32(sum, 16);
    return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
}

INLINE vunit pack_bf16(const vf *x, bool numbers, bool tame)
{
    (void)tame;
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(vi_round_bf16(x[0], numbers), vi_round_bf16(x[1], numbers)),
                                    0xd8);
}

INLINE vunit pack_f16(const vf *x)
{
    return _mm256_setr_m128i(_mm256_cvtps_ph(x[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                             _mm256_cvtps_ph(x[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Packing works within the halves of a vector; this restores the order. */
INLINE vunit in_order(vi packed)
{
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Packs four vectors of i32 into bytes, with saturation. */
INLINE vunit pack_bytes(bool is_signed, const vi *x)
{
    vi low = _mm256_packs_epi32(x[0], x[1]), high = _mm256_packs_epi32(x[2], x[3]);

    return in_order(is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high));
}

INLINE vunit pack_i32(const vi *x)
{
    return x[0];
}

#endif
