/* fast_lines_avx512.c: casts that produce one cache line of the destination per step, so that streaming stores can
 * write it directly from a register. Elements before the first and after the last whole line use the loops of
 * fast_cast.h. */
#include "fast.h"
#include "vector_avx512.h"

/* ---- loading 16 or 8 elements ---- */

INLINE __m256i bytes_32(const char *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

INLINE __m128i bytes_8(const char *at)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)at);
}

INLINE __m512i join(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE __m512i join_4(__m128i a, __m128i b, __m128i c, __m128i d)
{
    return join(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1),
                _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1));
}

/* 16 elements as f32, with one rounding. */
#define F32_OF_u8(at) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes_16(at)))
#define F32_OF_i8(at) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes_16(at)))
#define F32_OF_u16(at) _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(bytes_32(at)))
#define F32_OF_i16(at) _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(bytes_32(at)))
#define F32_OF_u32(at) _mm512_cvtepu32_ps(vi_load(at))
#define F32_OF_i32(at) _mm512_cvtepi32_ps(vi_load(at))
#define F32_OF_u64(at) vf_join(_mm512_cvtepu64_ps(vi_load(at)), _mm512_cvtepu64_ps(vi_load((at) + 64)))
#define F32_OF_i64(at) vf_join(_mm512_cvtepi64_ps(vi_load(at)), _mm512_cvtepi64_ps(vi_load((at) + 64)))
#define F32_OF_f16(at) _mm512_cvtph_ps(bytes_32(at))
#define F32_OF_bf16(at) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bytes_32(at)), 16))
#define F32_OF_f32(at) vf_load(at)
#define F32_OF_f64(at) vf_join(_mm512_cvtpd_ps(vd_load(at)), _mm512_cvtpd_ps(vd_load((at) + 64)))

/* 8 elements as f64. */
#define F64_OF_u8(at) _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(bytes_8(at)))
#define F64_OF_i8(at) _mm512_cvtepi32_pd(_mm256_cvtepi8_epi32(bytes_8(at)))
#define F64_OF_u16(at) _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(bytes_16(at)))
#define F64_OF_i16(at) _mm512_cvtepi32_pd(_mm256_cvtepi16_epi32(bytes_16(at)))
#define F64_OF_u32(at) _mm512_cvtepu32_pd(bytes_32(at))
#define F64_OF_i32(at) _mm512_cvtepi32_pd(bytes_32(at))
#define F64_OF_u64(at) _mm512_cvtepu64_pd(vi_load(at))
#define F64_OF_i64(at) _mm512_cvtepi64_pd(vi_load(at))
#define F64_OF_f16(at) _mm512_cvtps_pd(_mm256_cvtph_ps(bytes_16(at)))
#define F64_OF_bf16(at) _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bytes_16(at)), 16)))
#define F64_OF_f32(at) _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)(at)))

/* ---- one line ---- */

INLINE __m256i half(__m512 x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE __m256i bf16(__m512 x)
{
    return _mm512_cvtepi32_epi16(vi_round_bf16(x));
}

/* Truncates and saturates to [low, high], which are both exact in f32; NaN becomes 0. */
INLINE __m512i clamped(__m512 x, float low, float high)
{
    x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
    return _mm512_cvttps_epi32(_mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(low)), _mm512_set1_ps(high)));
}

/* The instruction returns INT32_MIN for all values out of range; values that are too large are corrected. */
INLINE __m512i to_i32(__m512 x)
{
    __m512i y = _mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);

    return _mm512_mask_mov_epi32(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ),
                                 _mm512_set1_epi32(INT32_MAX));
}

INLINE __m512i to_i64(__m256 x)
{
    __m512i y = _mm512_maskz_cvttps_epi64(_mm256_cmp_ps_mask(x, x, _CMP_ORD_Q), x);

    return _mm512_mask_mov_epi64(y, _mm256_cmp_ps_mask(x, _mm256_set1_ps(0x1p63f), _CMP_GE_OQ),
                                 _mm512_set1_epi64(INT64_MAX));
}

INLINE __m512i whole_8(const char *at, float low, float high)
{
    return join_4(_mm512_cvtepi32_epi8(clamped(vf_load(at), low, high)),
                  _mm512_cvtepi32_epi8(clamped(vf_load(at + 64), low, high)),
                  _mm512_cvtepi32_epi8(clamped(vf_load(at + 128), low, high)),
                  _mm512_cvtepi32_epi8(clamped(vf_load(at + 192), low, high)));
}

INLINE __m512i whole_16(const char *at, float low, float high)
{
    return join(_mm512_cvtepi32_epi16(clamped(vf_load(at), low, high)),
                _mm512_cvtepi32_epi16(clamped(vf_load(at + 64), low, high)));
}

/* ---- the loop ---- */

/* `line` is an expression of `at`, the address of the line's first element in the source. */
#define LINES(name, from_size, to_size, line)                                                           \
    static void name(char *dst, const char *src, int64_t count, bool streaming, stki_fast_cast_fn edge) \
    {                                                                                                   \
        const int64_t each = LINE / (to_size), behind = (int64_t)((uintptr_t)dst % LINE);               \
        int64_t i = behind % (to_size) || !behind ? 0 : (LINE - behind) / (to_size);                    \
        if (i > count)                                                                                  \
            i = count;                                                                                  \
        edge(dst, src, i);                                                                              \
        if (streaming && behind % (to_size) == 0)                                                       \
            for (; i + each <= count; i += each) {                                                      \
                const char *at = src + i * (from_size);                                                 \
                _mm512_stream_si512((__m512i *)(void *)(dst + i * (to_size)), line);                    \
            }                                                                                           \
        for (; i + each <= count; i += each) {                                                          \
            const char *at = src + i * (from_size);                                                     \
            _mm512_storeu_si512(dst + i * (to_size), line);                                             \
        }                                                                                               \
        edge(dst + i * (to_size), src + i * (from_size), count - i);                                    \
    }

#define TO_REALS(from, size)                                                                         \
    LINES(from##_f32, size, 4, _mm512_castps_si512(F32_OF_##from(at)))                               \
    LINES(from##_f16, size, 2, join(half(F32_OF_##from(at)), half(F32_OF_##from(at + 16 * (size))))) \
    LINES(from##_bf16, size, 2, join(bf16(F32_OF_##from(at)), bf16(F32_OF_##from(at + 16 * (size)))))

TO_REALS(u8, 1)
TO_REALS(i8, 1)
TO_REALS(u16, 2)
TO_REALS(i16, 2)
TO_REALS(u32, 4)
TO_REALS(i32, 4)
TO_REALS(u64, 8)
TO_REALS(i64, 8)
TO_REALS(f64, 8)
LINES(f16_f32, 2, 4, _mm512_castps_si512(F32_OF_f16(at)))
LINES(bf16_f32, 2, 4, _mm512_castps_si512(F32_OF_bf16(at)))
LINES(f16_bf16, 2, 2, join(bf16(F32_OF_f16(at)), bf16(F32_OF_f16(at + 32))))
LINES(bf16_f16, 2, 2, join(half(F32_OF_bf16(at)), half(F32_OF_bf16(at + 32))))
LINES(f32_f16, 4, 2, join(half(F32_OF_f32(at)), half(F32_OF_f32(at + 64))))
LINES(f32_bf16, 4, 2, join(bf16(F32_OF_f32(at)), bf16(F32_OF_f32(at + 64))))

#define TO_F64(from, size) LINES(from##_f64, size, 8, _mm512_castpd_si512(F64_OF_##from(at)))
TO_F64(u8, 1)
TO_F64(i8, 1)
TO_F64(u16, 2)
TO_F64(i16, 2)
TO_F64(u32, 4)
TO_F64(i32, 4)
TO_F64(u64, 8)
TO_F64(i64, 8)
TO_F64(f16, 2)
TO_F64(bf16, 2)
TO_F64(f32, 4)

LINES(f32_u8, 4, 1, whole_8(at, 0, 255))
LINES(f32_i8, 4, 1, whole_8(at, -128, 127))
LINES(f32_u16, 4, 2, whole_16(at, 0, 65535))
LINES(f32_i16, 4, 2, whole_16(at, -32768, 32767))
LINES(f32_i32, 4, 4, to_i32(F32_OF_f32(at)))
LINES(f32_i64, 4, 8, to_i64(_mm256_loadu_ps((const float *)(const void *)at)))

/* As in whole_rows of convert_body.h, only the destination is written between two rows. */
#define LIST(name, from_size, to_size, line)                                           \
    static void name##_list(char *dst, const stki_list *list)                          \
    {                                                                                  \
        const int64_t bytes = list->n * (from_size);                                   \
        const uint8_t *const *row = list->rows, *const *const end = row + list->count; \
        stki_list_begin(list, bytes);                                                  \
        for (; row < end; row++) {                                                     \
            const char *at = (const char *)*row, *const stop = at + bytes;             \
            stki_fetch(end - row > list->ahead ? row[list->ahead] : *row, bytes);      \
            for (; at < stop; at += LINE / (to_size) * (from_size), dst += LINE)       \
                _mm512_storeu_si512(dst, line);                                        \
        }                                                                              \
    }
#define WIDER(name, from_size, to_size, line) \
    LINES(name, from_size, to_size, line)     \
    LIST(name, from_size, to_size, line)

LINES(u8_16, 1, 2, _mm512_cvtepu8_epi16(bytes_32(at)))
LINES(i8_16, 1, 2, _mm512_cvtepi8_epi16(bytes_32(at)))
WIDER(u8_32, 1, 4, _mm512_cvtepu8_epi32(bytes_16(at)))
WIDER(i8_32, 1, 4, _mm512_cvtepi8_epi32(bytes_16(at)))
WIDER(u16_32, 2, 4, _mm512_cvtepu16_epi32(bytes_32(at)))
WIDER(i16_32, 2, 4, _mm512_cvtepi16_epi32(bytes_32(at)))
WIDER(u8_64, 1, 8, _mm512_cvtepu8_epi64(bytes_8(at)))
WIDER(i8_64, 1, 8, _mm512_cvtepi8_epi64(bytes_8(at)))
WIDER(u16_64, 2, 8, _mm512_cvtepu16_epi64(bytes_16(at)))
WIDER(i16_64, 2, 8, _mm512_cvtepi16_epi64(bytes_16(at)))
WIDER(u32_64, 4, 8, _mm512_cvtepu32_epi64(bytes_32(at)))
WIDER(i32_64, 4, 8, _mm512_cvtepi32_epi64(bytes_32(at)))

#define NARROW(at, from, to, step) _mm512_cvtepi##from##_epi##to(vi_load((at) + 64 * (step)))
LINES(n16_8, 2, 1, join(NARROW(at, 16, 8, 0), NARROW(at, 16, 8, 1)))
LINES(n32_16, 4, 2, join(NARROW(at, 32, 16, 0), NARROW(at, 32, 16, 1)))
LINES(n64_32, 8, 4, join(NARROW(at, 64, 32, 0), NARROW(at, 64, 32, 1)))
LINES(n32_8, 4, 1, join_4(NARROW(at, 32, 8, 0), NARROW(at, 32, 8, 1), NARROW(at, 32, 8, 2), NARROW(at, 32, 8, 3)))
LINES(n64_16, 8, 2, join_4(NARROW(at, 64, 16, 0), NARROW(at, 64, 16, 1), NARROW(at, 64, 16, 2), NARROW(at, 64, 16, 3)))

/* ---- the table ---- */

#define FROM_WHOLE(to)                                                                                        \
    [STK_U8] = u8_##to, [STK_I8] = i8_##to, [STK_U16] = u16_##to, [STK_I16] = i16_##to, [STK_U32] = u32_##to, \
    [STK_I32] = i32_##to, [STK_U64] = u64_##to, [STK_I64] = i64_##to
#define FROM_16 \
    [STK_U8] = u8_16, [STK_I8] = i8_16, [STK_U32] = n32_16, [STK_I32] = n32_16, [STK_U64] = n64_16, [STK_I64] = n64_16
#define FROM_32 \
    [STK_U8] = u8_32, [STK_I8] = i8_32, [STK_U16] = u16_32, [STK_I16] = i16_32, [STK_U64] = n64_32, [STK_I64] = n64_32
#define FROM_64 \
    [STK_U8] = u8_64, [STK_I8] = i8_64, [STK_U16] = u16_64, [STK_I16] = i16_64, [STK_U32] = u32_64, [STK_I32] = i32_64
#define FROM_8 [STK_U16] = n16_8, [STK_I16] = n16_8, [STK_U32] = n32_8, [STK_I32] = n32_8

#define LIST_32 [STK_U8] = u8_32_list, [STK_I8] = i8_32_list, [STK_U16] = u16_32_list, [STK_I16] = i16_32_list
#define LIST_64                                                                                     \
    [STK_U8] = u8_64_list, [STK_I8] = i8_64_list, [STK_U16] = u16_64_list, [STK_I16] = i16_64_list, \
    [STK_U32] = u32_64_list, [STK_I32] = i32_64_list

const stki_fast_lines_table stki_fast_lines_avx512 = {
    .list = {[STK_U32] = {LIST_32}, [STK_I32] = {LIST_32}, [STK_U64] = {LIST_64}, [STK_I64] = {LIST_64}},
    .cast = {
        [STK_U8] = {FROM_8, [STK_F32] = f32_u8},
        [STK_I8] = {FROM_8, [STK_F32] = f32_i8},
        [STK_U16] = {FROM_16, [STK_F32] = f32_u16},
        [STK_I16] = {FROM_16, [STK_F32] = f32_i16},
        [STK_U32] = {FROM_32},
        [STK_I32] = {FROM_32, [STK_F32] = f32_i32},
        [STK_U64] = {FROM_64},
        [STK_I64] = {FROM_64, [STK_F32] = f32_i64},
        [STK_F32] = {FROM_WHOLE(f32), [STK_F16] = f16_f32, [STK_BF16] = bf16_f32, [STK_F64] = f64_f32},
        [STK_F64] = {FROM_WHOLE(f64), [STK_F16] = f16_f64, [STK_BF16] = bf16_f64, [STK_F32] = f32_f64},
        [STK_F16] = {FROM_WHOLE(f16), [STK_F32] = f32_f16, [STK_BF16] = bf16_f16, [STK_F64] = f64_f16},
        [STK_BF16] = {FROM_WHOLE(bf16), [STK_F32] = f32_bf16, [STK_F16] = f16_bf16, [STK_F64] = f64_bf16},
    }};
