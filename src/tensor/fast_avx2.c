/* fast_avx2.c: copies and casts for AVX2 with F16C. */
#include "fast.h"
#include "vector_avx2.h"

typedef vi vlanes;

INLINE vlanes lanes_of(uint64_t own)
{
    const vi bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)own), bit), bit);
}

/* Only for elements of 4 bytes: AVX2 has no other permute across the whole vector. */
INLINE vi permute(int size, vi pick, vi x)
{
    (void)size;
    return _mm256_permutevar8x32_epi32(x, pick);
}

INLINE vi merge(int size, vi y, vlanes own, vi pick, vi x)
{
    return _mm256_blendv_epi8(y, permute(size, pick, x), own);
}

INLINE vi unpack_low(int size, vi a, vi b)
{
    return size == 1   ? _mm256_unpacklo_epi8(a, b)
           : size == 2 ? _mm256_unpacklo_epi16(a, b)
           : size == 4 ? _mm256_unpacklo_epi32(a, b)
                       : _mm256_unpacklo_epi64(a, b);
}

INLINE vi unpack_high(int size, vi a, vi b)
{
    return size == 1   ? _mm256_unpackhi_epi8(a, b)
           : size == 2 ? _mm256_unpackhi_epi16(a, b)
           : size == 4 ? _mm256_unpackhi_epi32(a, b)
                       : _mm256_unpackhi_epi64(a, b);
}

INLINE vi load_pieces(const char *src, int64_t apart)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(bytes_16(src)), bytes_16(src + apart), 1);
}

#include "fast_body.h"

SHUFFLE(4)

/* ---- patterns of other sizes: byte shuffles of 16 bytes ---- */

enum { SMALL = 16 };

/* The shuffle for the bytes of output k that come from input j; -1 makes the others zero. */
static void byte_masks(const stki_shuffle *shuffle, __m128i mask[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX])
{
    for (int k = 0; k < shuffle->outputs; k++)
        for (int j = 0; j < shuffle->inputs; j++) {
            char bytes[SMALL];
            for (int i = 0; i < SMALL; i++) {
                int lane = i / shuffle->size,
                    place = shuffle->pick[k][lane * shuffle->size]; /* the other bytes are 0 */
                bool own = shuffle->own[k][j] >> lane & 1;
                bytes[i] = (char)(own ? place * shuffle->size + i % shuffle->size : -1);
            }
            mask[k][j] = bytes_16(bytes);
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
            x[j] = bytes_16(from + j * shuffle->in_stride);
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

const stki_fast *stki_fast_avx2(void)
{
    static const stki_fast fast = {
        STKI_FAST_BODY,
        .shuffle_bytes = {SMALL, SMALL, UNIT, SMALL},
        .shuffle = {shuffle_bytes, shuffle_bytes, shuffle_4, shuffle_bytes},
    };
    return &fast;
}
