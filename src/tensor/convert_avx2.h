/* convert_avx2.h: what the AVX2 files share. Only they may include it: it needs their compiler flags. */
#ifndef STKI_CONVERT_AVX2_H
#define STKI_CONVERT_AVX2_H

#include "convert_internal.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { UNIT = 32, LINE = 64 };

INLINE __m128i load_128(const void *from)
{
    return _mm_loadu_si128(from);
}

void stki_avx2_split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel);
void stki_avx2_copy_streaming(uint8_t *dst, const uint8_t *src, int64_t n);

#endif
