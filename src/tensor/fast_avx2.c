/* fast_avx2.c: copies and casts for AVX2 with F16C. */
#include "fast.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { VECTOR = 32 };

INLINE __m256i load(const char *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE void store(char *to, __m256i x)
{
    _mm256_storeu_si256((__m256i *)(void *)to, x);
}

static void stream(void *dst, const void *src, int64_t bytes)
{
    char *to = dst;
    const char *from = src;
    int64_t head = (int64_t)(-(uintptr_t)dst % VECTOR), i;

    if (head > bytes)
        head = bytes;
    memcpy(to, from, (size_t)head);
    for (i = head; i + VECTOR <= bytes; i += VECTOR)
        _mm256_stream_si256((__m256i *)(void *)(to + i), load(from + i));
    memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

/* The last few elements go through a block of their own, so that nothing beyond them is touched. */
static void half_from_f32(char *dst, const char *src, int64_t count)
{
    int64_t i;

    for (i = 0; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(dst + i * 2),
                         _mm256_cvtps_ph(_mm256_castsi256_ps(load(src + i * 4)), _MM_FROUND_TO_NEAREST_INT));
    if (i < count) {
        char in[32] = {0}, out[16];
        memcpy(in, src + i * 4, (size_t)(count - i) * 4);
        _mm_storeu_si128((__m128i *)(void *)out,
                         _mm256_cvtps_ph(_mm256_castsi256_ps(load(in)), _MM_FROUND_TO_NEAREST_INT));
        memcpy(dst + i * 2, out, (size_t)(count - i) * 2);
    }
}

static void f32_from_half(char *dst, const char *src, int64_t count)
{
    int64_t i;

    for (i = 0; i + 8 <= count; i += 8)
        store(dst + i * 4,
              _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + i * 2)))));
    if (i < count) {
        char in[16] = {0}, out[32];
        memcpy(in, src + i * 2, (size_t)(count - i) * 2);
        store(out, _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)in))));
        memcpy(dst + i * 4, out, (size_t)(count - i) * 4);
    }
}

#include "fast_cast.h"

/* ---- patterns: 4-byte elements, for which there is a permute across the whole vector
 * ----------------------- */

INLINE __m256i lanes_of(uint64_t own)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)own), bit), bit);
}

INLINE void put(char *to, __m256i x, bool streaming)
{
    if (streaming)
        _mm256_stream_si256((__m256i *)(void *)to, x);
    else
        store(to, x);
}

INLINE void run_shuffle(int inputs, int outputs, const stki_shuffle *shuffle, char *dst, const char *src,
                        int64_t groups, bool streaming)
{
    const char *from = src + shuffle->in_start;
    __m256i pick[STKI_SHUFFLE_MAX], own[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX];

    for (int k = 0; k < outputs; k++) {
        pick[k] = load((const char *)shuffle->pick[k]);
        for (int j = 0; j < inputs; j++)
            own[k][j] = lanes_of(shuffle->own[k][j]);
    }
    for (int64_t g = 0; g < groups; g++) {
        __m256i x[STKI_SHUFFLE_MAX];
        for (int j = 0; j < inputs; j++)
            x[j] = load(from + j * shuffle->in_stride);
        for (int k = 0; k < outputs; k++) {
            __m256i y = _mm256_permutevar8x32_epi32(x[0], pick[k]);
            for (int j = 1; j < inputs; j++)
                y = _mm256_blendv_epi8(y, _mm256_permutevar8x32_epi32(x[j], pick[k]), own[k][j]);
            put(dst + k * shuffle->out_stride, y, streaming);
        }
        from += shuffle->in_step;
        dst += shuffle->out_step;
    }
}

static void shuffle_4(const stki_shuffle *pattern, char *dst, const char *src, int64_t groups, bool streaming)
{
    int inputs = pattern->inputs, outputs = pattern->outputs;

#define CASE(in, out)                                               \
    if (inputs == (in) && outputs == (out)) {                       \
        if (streaming)                                              \
            run_shuffle(in, out, pattern, dst, src, groups, true);  \
        else                                                        \
            run_shuffle(in, out, pattern, dst, src, groups, false); \
        return;                                                     \
    }
    CASE(1, 1)
    CASE(2, 1)
    CASE(2, 2)
    CASE(3, 3)
#undef CASE
    run_shuffle(inputs, outputs, pattern, dst, src, groups, streaming);
}

/* ---- patterns of other sizes: byte permutes inside vectors of 16 bytes
 * ----------------------------------------------- */

enum { SMALL = 16 };

/* Bytes of output k that come from input j; the others get the mark that makes a byte zero. */
static void byte_masks(const stki_shuffle *shuffle, __m128i mask[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX])
{
    for (int k = 0; k < shuffle->outputs; k++)
        for (int j = 0; j < shuffle->inputs; j++) {
            char bytes[SMALL];
            for (int i = 0; i < SMALL; i++) {
                int lane = i / shuffle->size, place = shuffle->pick[k][lane * shuffle->size]; /* the low byte is all */
                bool own = shuffle->own[k][j] >> lane & 1;
                bytes[i] = (char)(own ? place * shuffle->size + i % shuffle->size : -1);
            }
            mask[k][j] = _mm_loadu_si128((const __m128i *)(const void *)bytes);
        }
}

INLINE void run_bytes(int inputs, int outputs, const stki_shuffle *shuffle, char *dst, const char *src, int64_t groups,
                      bool streaming)
{
    const char *from = src + shuffle->in_start;
    __m128i mask[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX];

    byte_masks(shuffle, mask);
    for (int64_t g = 0; g < groups; g++) {
        __m128i x[STKI_SHUFFLE_MAX];
        for (int j = 0; j < inputs; j++)
            x[j] = _mm_loadu_si128((const __m128i *)(const void *)(from + j * shuffle->in_stride));
        for (int k = 0; k < outputs; k++) {
            __m128i y = _mm_shuffle_epi8(x[0], mask[k][0]), *to = (__m128i *)(void *)(dst + k * shuffle->out_stride);
            for (int j = 1; j < inputs; j++)
                y = _mm_or_si128(y, _mm_shuffle_epi8(x[j], mask[k][j]));
            if (streaming)
                _mm_stream_si128(to, y);
            else
                _mm_storeu_si128(to, y);
        }
        from += shuffle->in_step;
        dst += shuffle->out_step;
    }
}

static void shuffle_bytes(const stki_shuffle *pattern, char *dst, const char *src, int64_t groups, bool streaming)
{
    if (groups == 0)
        return;
    if (pattern->inputs == 3 && pattern->outputs == 3)
        run_bytes(3, 3, pattern, dst, src, groups, streaming);
    else
        run_bytes(pattern->inputs, pattern->outputs, pattern, dst, src, groups, streaming);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* As in fast_avx512.c, with two squares side by side. */
INLINE __m256i unpack_low(int size, __m256i a, __m256i b)
{
    return size == 1   ? _mm256_unpacklo_epi8(a, b)
           : size == 2 ? _mm256_unpacklo_epi16(a, b)
           : size == 4 ? _mm256_unpacklo_epi32(a, b)
                       : _mm256_unpacklo_epi64(a, b);
}

INLINE __m256i unpack_high(int size, __m256i a, __m256i b)
{
    return size == 1   ? _mm256_unpackhi_epi8(a, b)
           : size == 2 ? _mm256_unpackhi_epi16(a, b)
           : size == 4 ? _mm256_unpackhi_epi32(a, b)
                       : _mm256_unpackhi_epi64(a, b);
}

INLINE void squares(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, bool streaming)
{
    const int n = 16 / size;
    __m256i x[16], y[16];

    for (int i = 0; i < n; i++) {
        const char *at = src + i * src_stride;
        x[i] = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)at));
        x[i] = _mm256_inserti128_si256(x[i], _mm_loadu_si128((const __m128i *)(const void *)(at + n * src_stride)), 1);
    }
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

enum { LINE = 64, SIDE = 64, AHEAD = 2 }; /* columns of a block; blocks fetched ahead */

INLINE void block(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, const char *later,
                  int64_t columns, bool streaming)
{
    _Alignas(LINE) char packed[SIDE * LINE];
    const int64_t high = 16 / size, wide = VECTOR / size;

    for (int64_t c = 0; c < columns; c++) {
        const char *at = src + c * src_stride;
        _mm_prefetch(later + c * src_stride, _MM_HINT_T1);
        store(packed + c * LINE, load(at));
        store(packed + c * LINE + VECTOR, load(at + VECTOR));
    }
    for (int64_t r = 0; r < LINE / size; r += high)
        for (int64_t c = 0; c < columns; c += wide)
            squares(size, dst + r * dst_stride + c * size, dst_stride, packed + c * LINE + r * size, LINE, streaming);
}

INLINE void tile(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t rows,
                 int64_t columns, int64_t reach, bool streaming)
{
    const int64_t high = LINE / size, wide = VECTOR / size, down = rows / high, ahead = reach / high;
    const int64_t whole_rows = down * high, whole_columns = columns - columns % wide;

    for (int64_t c = 0; c < whole_columns; c += SIDE) {
        int64_t n = whole_columns - c < SIDE ? whole_columns - c : SIDE;
        for (int64_t r = 0; r < down; r++) {
            int64_t later_r = r + AHEAD < ahead ? r + AHEAD : r + AHEAD - ahead;
            int64_t later_c = r + AHEAD < ahead ? c : c + SIDE;
            block(size, dst + r * high * dst_stride + c * size, dst_stride, src + c * src_stride + r * LINE, src_stride,
                  src + later_c * src_stride + later_r * LINE, n, streaming);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            memcpy(dst + r * dst_stride + c * size, src + c * src_stride + r * size, (size_t)size);
}

#define FOR_SIZE(size)                                                                                        \
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

const stki_fast *stki_fast_avx2(void)
{
    static const stki_fast fast = {
        .shuffle_bytes = {SMALL, SMALL, VECTOR, SMALL},
        .stream = stream,
        .cast = FAST_CAST_TABLE,
        .shuffle = {shuffle_bytes, shuffle_bytes, shuffle_4, shuffle_bytes},
        .tile = {tile_1, tile_2, tile_4, tile_8},
    };
    return &fast;
}
