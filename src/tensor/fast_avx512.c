/* fast_avx512.c: copies and casts for AVX-512 with byte permutes. */
#include "fast.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { VECTOR = 64 };

INLINE __mmask64 low_bits(int64_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

static void stream(void *dst, const void *src, int64_t bytes)
{
    char *to = dst;
    const char *from = src;
    int64_t head = (int64_t)(-(uintptr_t)dst % VECTOR), i;

    if (head > bytes)
        head = bytes;
    _mm512_mask_storeu_epi8(to, low_bits(head), _mm512_maskz_loadu_epi8(low_bits(head), from));
    for (i = head; i + VECTOR <= bytes; i += VECTOR)
        _mm512_stream_si512((__m512i *)(void *)(to + i), _mm512_loadu_si512(from + i));
    _mm512_mask_storeu_epi8(to + i, low_bits(bytes - i), _mm512_maskz_loadu_epi8(low_bits(bytes - i), from + i));
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

static void half_from_f32(char *dst, const char *src, int64_t count)
{
    for (int64_t i = 0; i < count; i += 16) {
        __mmask16 lanes = (__mmask16)low_bits(count - i < 16 ? count - i : 16);
        __m512 x = _mm512_maskz_loadu_ps(lanes, src + i * 4);
        _mm256_mask_storeu_epi16(dst + i * 2, lanes, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}

static void f32_from_half(char *dst, const char *src, int64_t count)
{
    for (int64_t i = 0; i < count; i += 16) {
        __mmask16 lanes = (__mmask16)low_bits(count - i < 16 ? count - i : 16);
        _mm512_mask_storeu_ps(dst + i * 4, lanes, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, src + i * 2)));
    }
}

#include "fast_cast.h"

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

INLINE __m512i permute(int size, __m512i pick, __m512i x)
{
    return size == 1   ? _mm512_permutexvar_epi8(pick, x)
           : size == 2 ? _mm512_permutexvar_epi16(pick, x)
           : size == 4 ? _mm512_permutexvar_epi32(pick, x)
                       : _mm512_permutexvar_epi64(pick, x);
}

/* The lanes of `own` replaced by those picked out of x. */
INLINE __m512i merge(int size, __m512i y, uint64_t own, __m512i pick, __m512i x)
{
    return size == 1   ? _mm512_mask_permutexvar_epi8(y, (__mmask64)own, pick, x)
           : size == 2 ? _mm512_mask_permutexvar_epi16(y, (__mmask32)own, pick, x)
           : size == 4 ? _mm512_mask_permutexvar_epi32(y, (__mmask16)own, pick, x)
                       : _mm512_mask_permutexvar_epi64(y, (__mmask8)own, pick, x);
}

INLINE void put(char *to, __m512i x, bool streaming)
{
    if (streaming)
        _mm512_stream_si512((__m512i *)(void *)to, x);
    else
        _mm512_storeu_si512(to, x);
}

INLINE void run_shuffle(int size, int inputs, int outputs, const stki_shuffle *shuffle, char *dst, const char *src,
                        int64_t groups, bool streaming)
{
    const char *from = src + shuffle->in_start;
    __m512i pick[STKI_SHUFFLE_MAX];

    for (int k = 0; k < outputs; k++)
        pick[k] = _mm512_loadu_si512(shuffle->pick[k]);
    for (int64_t g = 0; g < groups; g++) {
        __m512i x[STKI_SHUFFLE_MAX];
        for (int j = 0; j < inputs; j++)
            x[j] = _mm512_loadu_si512(from + j * shuffle->in_stride);
        for (int k = 0; k < outputs; k++) {
            __m512i y = permute(size, pick[k], x[0]);
            for (int j = 1; j < inputs; j++)
                y = merge(size, y, shuffle->own[k][j], pick[k], x[j]);
            put(dst + k * shuffle->out_stride, y, streaming);
        }
        from += shuffle->in_step;
        dst += shuffle->out_step;
    }
}

/* The usual numbers of channels and steps as constants, so that everything stays in registers. */
INLINE void shuffle(int size, const stki_shuffle *pattern, char *dst, const char *src, int64_t groups, bool streaming)
{
    int inputs = pattern->inputs, outputs = pattern->outputs;

#define CASE(in, out)                                                     \
    if (inputs == (in) && outputs == (out)) {                             \
        if (streaming)                                                    \
            run_shuffle(size, in, out, pattern, dst, src, groups, true);  \
        else                                                              \
            run_shuffle(size, in, out, pattern, dst, src, groups, false); \
        return;                                                           \
    }
    CASE(1, 1)
    CASE(2, 1)
    CASE(2, 2)
    CASE(3, 3)
    CASE(4, 4)
#undef CASE
    run_shuffle(size, inputs, outputs, pattern, dst, src, groups, streaming);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* A quarter of a vector is a row of n = 16 / size elements; n of them one below the other are a square. Interleaving
 * rows i and i + n / 2 element by element, log2 n times, turns the square. Four squares side by side fill the vectors:
 * the result's rows are whole cache lines. */
INLINE __m512i unpack_low(int size, __m512i a, __m512i b)
{
    return size == 1   ? _mm512_unpacklo_epi8(a, b)
           : size == 2 ? _mm512_unpacklo_epi16(a, b)
           : size == 4 ? _mm512_unpacklo_epi32(a, b)
                       : _mm512_unpacklo_epi64(a, b);
}

INLINE __m512i unpack_high(int size, __m512i a, __m512i b)
{
    return size == 1   ? _mm512_unpackhi_epi8(a, b)
           : size == 2 ? _mm512_unpackhi_epi16(a, b)
           : size == 4 ? _mm512_unpackhi_epi32(a, b)
                       : _mm512_unpackhi_epi64(a, b);
}

/* 16 bytes each from rows that are `apart` bytes apart. */
INLINE __m512i load_quarters(const char *src, int64_t apart)
{
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)src));

    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(src + apart)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(src + 2 * apart)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(src + 3 * apart)), 3);
}

INLINE void squares(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, bool streaming)
{
    const int n = 16 / size;
    __m512i x[16], y[16];

    for (int i = 0; i < n; i++)
        x[i] = load_quarters(src + i * src_stride, n * src_stride);
    for (int width = 1; width < n; width *= 2) {
        for (int i = 0; i < n / 2; i++) {
            y[2 * i] = unpack_low(size, x[i], x[i + n / 2]);
            y[2 * i + 1] = unpack_high(size, x[i], x[i + n / 2]);
        }
        for (int i = 0; i < n; i++)
            x[i] = y[i];
    }
    for (int i = 0; i < n; i++)
        put(dst + i * dst_stride, x[i], streaming);
}

enum { SIDE = 64, AHEAD = 2 }; /* columns of a block; blocks fetched ahead */

/* One line each from `columns` rows of the source, packed (a stride that is a power of two would throw lines out of the
 * first-level cache before they are used up), becomes 64 / size rows of the destination. Meanwhile the lines of a later
 * block are fetched, into the second-level cache for the same reason. */
INLINE void block(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, const char *later,
                  int64_t columns, bool streaming)
{
    _Alignas(VECTOR) char packed[SIDE * VECTOR];
    const int64_t high = 16 / size, wide = VECTOR / size;

    for (int64_t c = 0; c < columns; c++) {
        _mm_prefetch(later + c * src_stride, _MM_HINT_T1);
        _mm512_store_si512(packed + c * VECTOR, _mm512_loadu_si512(src + c * src_stride));
    }
    for (int64_t r = 0; r < wide; r += high)
        for (int64_t c = 0; c < columns; c += wide)
            squares(size, dst + r * dst_stride + c * size, dst_stride, packed + c * VECTOR + r * size, VECTOR,
                    streaming);
}

INLINE void tile(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t rows,
                 int64_t columns, int64_t reach, bool streaming)
{
    const int64_t wide = VECTOR / size, down = rows / wide, ahead = reach / wide;
    const int64_t whole_rows = down * wide, whole_columns = columns - columns % wide;

    for (int64_t c = 0; c < whole_columns; c += SIDE) {
        int64_t n = whole_columns - c < SIDE ? whole_columns - c : SIDE;
        for (int64_t r = 0; r < down; r++) {
            int64_t later_r = r + AHEAD < ahead ? r + AHEAD : r + AHEAD - ahead;
            int64_t later_c = r + AHEAD < ahead ? c : c + SIDE;
            block(size, dst + r * wide * dst_stride + c * size, dst_stride, src + c * src_stride + r * VECTOR,
                  src_stride, src + later_c * src_stride + later_r * VECTOR, n, streaming);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            memcpy(dst + r * dst_stride + c * size, src + c * src_stride + r * size, (size_t)size);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define FOR_SIZE(size)                                                                                        \
    static void shuffle_##size(const stki_shuffle *pattern, char *dst, const char *src, int64_t groups,       \
                               bool streaming)                                                                \
    {                                                                                                         \
        shuffle(size, pattern, dst, src, groups, streaming);                                                  \
    }                                                                                                         \
    static void tile_##size(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t rows, \
                            int64_t columns, int64_t reach, bool streaming)                                   \
    {                                                                                                         \
        if (streaming)                                                                                        \
            tile(size, dst, dst_stride, src, src_stride, rows, columns, reach, true);                         \
        else                                                                                                  \
            tile(size, dst, dst_stride, src, src_stride, rows, columns, reach, false);                        \
    }
FOR_SIZE(1)
FOR_SIZE(2)
FOR_SIZE(4)
FOR_SIZE(8)

const stki_fast *stki_fast_avx512(void)
{
    static const stki_fast fast = {
        .shuffle_bytes = {VECTOR, VECTOR, VECTOR, VECTOR},
        .stream = stream,
        .cast = FAST_CAST_TABLE,
        .lines = &stki_fast_lines_avx512,
        .shuffle = {shuffle_1, shuffle_2, shuffle_4, shuffle_8},
        .tile = {tile_1, tile_2, tile_4, tile_8},
    };
    return &fast;
}
