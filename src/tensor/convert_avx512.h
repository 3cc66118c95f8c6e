/* convert_avx512.h: what the AVX-512 files share. Only they may include it: it needs their compiler flags. */
#ifndef STKI_CONVERT_AVX512_H
#define STKI_CONVERT_AVX512_H

#include "convert_internal.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { LINE = 64 };

INLINE __mmask64 low_bits(int64_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

INLINE void store(uint8_t *dst, __m512i bytes, bool streaming)
{
    if (streaming)
        _mm512_stream_si512((__m512i *)(void *)dst, bytes);
    else
        _mm512_storeu_si512(dst, bytes);
}

void stki_avx512_table_u8(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel);
void stki_avx512_table_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                             int channel);
void stki_avx512_split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                             int channel);
void stki_avx512_copy_streaming(uint8_t *dst, const uint8_t *src, int64_t n);

#endif
