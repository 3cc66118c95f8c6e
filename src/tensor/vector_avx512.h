/* vector_avx512.h: vectors of AVX-512 (F, BW, DQ, VL, VBMI), under the names that the *_body.h files use. Only files
 * that are compiled for these instruction sets may include it.
 *
 * A unit is one vector of 64 bytes, a cache line: 64, 32 or 16 elements of 1, 2 or 4 bytes.
 */
#ifndef STKI_VECTOR_AVX512_H
#define STKI_VECTOR_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define STKI_MASKED 1 /* partial vectors are loaded and stored with masks */

enum { WIDTH = 16, UNIT = 64, LINE = 64 };
#define PER_UNIT(size) (UNIT / (size))

typedef __m512 vf;  /* WIDTH f32 */
typedef __m512i vi; /* WIDTH i32, or bytes */
typedef __m512d vd; /* WIDTH / 2 f64 */
typedef vi vunit;

/* ---- memory; only streaming stores need aligned addresses ---- */

INLINE __mmask64 low_bits(int64_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

INLINE __m128i bytes_16(const void *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

#define vi_load _mm512_loadu_si512
#define vf_load _mm512_loadu_ps
#define vd_load _mm512_loadu_pd
#define vf_store _mm512_storeu_ps

/* Loads the first `count` lanes, at most WIDTH, and sets the others to 0. Reads no byte after them. */
INLINE vf vf_load_some(const void *at, int64_t count)
{
    return _mm512_maskz_loadu_ps((__mmask16)low_bits(count), at);
}

INLINE void vf_store_some(void *to, vf x, int64_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)low_bits(count), x);
}

/* Loads `count` f16, at most WIDTH, and sets the other lanes to 0. */
INLINE vf vf_load_f16(const void *at, int64_t count)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)low_bits(count), at));
}

INLINE void vf_store_f16(void *to, vf x, int64_t count)
{
    _mm256_mask_storeu_epi16(to, (__mmask16)low_bits(count),
                             _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Stores less than a line. A store with an empty mask would still load the line into the cache. */
INLINE void copy_some(void *to, const void *from, int64_t bytes)
{
    if (bytes > 0)
        _mm512_mask_storeu_epi8(to, low_bits(bytes), _mm512_maskz_loadu_epi8(low_bits(bytes), from));
}

/* Stores a whole line; if streaming, `to` must be at a line boundary. */
INLINE void copy_line(void *to, const void *from, bool streaming)
{
    if (streaming)
        _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(from));
    else
        _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}

INLINE void vf_stream(void *to, vf x)
{
    _mm512_stream_ps((float *)to, x);
}

INLINE void store_unit(void *to, vunit x, int64_t bytes, bool streaming)
{
    (void)bytes;
    if (streaming)
        _mm512_stream_si512((__m512i *)to, x);
    else
        _mm512_storeu_si512(to, x);
}

/* Stores the first `bytes` of a unit. */
INLINE void store_some(void *to, vunit x, int64_t bytes)
{
    _mm512_mask_storeu_epi8(to, low_bits(bytes), x);
}

/* ---- arithmetic ---- */

#define vf_all _mm512_set1_ps
#define vf_add _mm512_add_ps
#define vf_sub _mm512_sub_ps
#define vf_mul _mm512_mul_ps
#define vf_fma _mm512_fmadd_ps /* a * b + c */
#define vf_min _mm512_min_ps
#define vf_max _mm512_max_ps
#define vf_of_i32 _mm512_cvtepi32_ps
#define vi_of_f32 _mm512_cvtps_epi32 /* INT32_MIN for values out of range */
#define vi_bits_of _mm512_castps_si512
#define vi_zero _mm512_setzero_si512
#define vd_all _mm512_set1_pd
#define vd_add _mm512_add_pd
#define vd_sub _mm512_sub_pd
#define vd_mul _mm512_mul_pd
#define vd_min _mm512_min_pd
#define vd_max _mm512_max_pd
#define vd_of_lower_f32(x) _mm512_cvtps_pd(_mm512_castps512_ps256(x))
#define vd_of_upper_f32(x) _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))
#define vd_of_lower_i32(x) _mm512_cvtepi32_pd(_mm512_castsi512_si256(x))
#define vd_of_upper_i32(x) _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(x, 1))
#define vf_of_f64(low, high) vf_join(_mm512_cvtpd_ps(low), _mm512_cvtpd_ps(high))
#define vf_of_bits _mm512_castsi512_ps

INLINE vf vf_join(__m256 low, __m256 high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* Rounds to nearest even; NaN becomes 0. */
INLINE vf vf_rint(vf x)
{
    return _mm512_maskz_roundscale_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x,
                                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The conversion returns INT32_MIN for values out of range, which is right for those that are too small. */
INLINE vi vi_of_f32_saturated(vf x)
{
    __mmask16 above = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);

    return _mm512_mask_mov_epi32(_mm512_cvtps_epi32(x), above, _mm512_set1_epi32(INT32_MAX));
}

/* ---- packing ---- */

/* The upper halves, rounded to nearest even by integer addition, in the low 16 bits of each lane; NaN made quiet. */
INLINE vi vi_round_bf16(vf x)
{
    vi bits = _mm512_castps_si512(x), upper = _mm512_srli_epi32(bits, 16);
    vi odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    vi sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);

    return _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), upper,
                                _mm512_set1_epi32(0x40));
}

/* `native`: the processor has an instruction for this. The instruction treats subnormals as zero, so vectors with
 * subnormals are rounded by vi_round_bf16 instead. `tame`: there are no subnormals. The instruction is written as
 * inline assembly, because these files are not compiled for AVX512_BF16. */
INLINE vunit pack_bf16(const vf *x, bool native, bool tame)
{
    enum { SUBNORMAL = 0x20 };

    if (native && (tame || !(_mm512_fpclass_ps_mask(x[0], SUBNORMAL) | _mm512_fpclass_ps_mask(x[1], SUBNORMAL)))) {
        vi both;
        __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(x[1]), "v"(x[0]));
        return both;
    }
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                    _mm512_packus_epi32(vi_round_bf16(x[0]), vi_round_bf16(x[1])));
}

INLINE vunit pack_f16(const vf *x)
{
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm512_cvtps_ph(x[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)),
        _mm512_cvtps_ph(x[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 1);
}

/* Packs four vectors of i32 into bytes, with saturation. Packing works within the quarters of a vector; the permute
 * restores the order. */
INLINE vunit pack_bytes(bool is_signed, const vi *x)
{
    vi low = _mm512_packs_epi32(x[0], x[1]), high = _mm512_packs_epi32(x[2], x[3]);

    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                    is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high));
}

INLINE vunit pack_i32(const vi *x)
{
    return x[0];
}

#endif
