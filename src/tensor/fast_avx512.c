/* fast_avx512.c: copies and casts for AVX-512 with byte permutes. */
#include "fast.h"
#include "vector_avx512.h"

typedef uint64_t vlanes;

INLINE vlanes lanes_of(uint64_t own)
{
    return own;
}

INLINE vi permute(int size, vi pick, vi x)
{
    return size == 1   ? _mm512_permutexvar_epi8(pick, x)
           : size == 2 ? _mm512_permutexvar_epi16(pick, x)
           : size == 4 ? _mm512_permutexvar_epi32(pick, x)
                       : _mm512_permutexvar_epi64(pick, x);
}

INLINE vi merge(int size, vi y, vlanes own, vi pick, vi x)
{
    return size == 1   ? _mm512_mask_permutexvar_epi8(y, (__mmask64)own, pick, x)
           : size == 2 ? _mm512_mask_permutexvar_epi16(y, (__mmask32)own, pick, x)
           : size == 4 ? _mm512_mask_permutexvar_epi32(y, (__mmask16)own, pick, x)
                       : _mm512_mask_permutexvar_epi64(y, (__mmask8)own, pick, x);
}

INLINE vi unpack_low(int size, vi a, vi b)
{
    return size == 1   ? _mm512_unpacklo_epi8(a, b)
           : size == 2 ? _mm512_unpacklo_epi16(a, b)
           : size == 4 ? _mm512_unpacklo_epi32(a, b)
                       : _mm512_unpacklo_epi64(a, b);
}

INLINE vi unpack_high(int size, vi a, vi b)
{
    return size == 1   ? _mm512_unpackhi_epi8(a, b)
           : size == 2 ? _mm512_unpackhi_epi16(a, b)
           : size == 4 ? _mm512_unpackhi_epi32(a, b)
                       : _mm512_unpackhi_epi64(a, b);
}

INLINE vi load_pieces(const char *src, int64_t apart)
{
    vi x = _mm512_castsi128_si512(bytes_16(src));

    x = _mm512_inserti32x4(x, bytes_16(src + apart), 1);
    x = _mm512_inserti32x4(x, bytes_16(src + 2 * apart), 2);
    return _mm512_inserti32x4(x, bytes_16(src + 3 * apart), 3);
}

#include "fast_body.h"

SHUFFLE(1)
SHUFFLE(2)
SHUFFLE(4)
SHUFFLE(8)

const stki_fast *stki_fast_avx512(void)
{
    static const stki_fast fast = {
        STKI_FAST_BODY,
        .shuffle_bytes = {UNIT, UNIT, UNIT, UNIT},
        .lines = &stki_fast_lines_avx512,
        .shuffle = {shuffle_1, shuffle_2, shuffle_4, shuffle_8},
    };
    return &fast;
}
