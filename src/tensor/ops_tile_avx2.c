/* ops_tile_avx2.c: transposes squares of 8 x 8 four-byte or 4 x 4 eight-byte elements in registers. */
#include "ops_tile.h"
#include <immintrin.h>

static inline __m256 load(const char *at)
{
    return _mm256_castsi256_ps(_mm256_loadu_si256((const void *)at));
}

static inline void store(char *at, __m256 low, __m256 high, int half)
{
    __m256 x = half ? _mm256_permute2f128_ps(low, high, 0x31) : _mm256_permute2f128_ps(low, high, 0x20);

    _mm256_storeu_si256((void *)at, _mm256_castps_si256(x));
}

/* Row k of the source square becomes column k of the destination. */
static inline void turn_32(char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    __m256 r[8], pair[8], four[8];

    for (int k = 0; k < 8; k++)
        r[k] = load(from + k * from_stride);
    for (int k = 0; k < 8; k += 2) {
        pair[k] = _mm256_unpacklo_ps(r[k], r[k + 1]);
        pair[k + 1] = _mm256_unpackhi_ps(r[k], r[k + 1]);
    }
    for (int k = 0; k < 8; k += 4) {
        four[k] = _mm256_shuffle_ps(pair[k], pair[k + 2], 0x44);
        four[k + 1] = _mm256_shuffle_ps(pair[k], pair[k + 2], 0xee);
        four[k + 2] = _mm256_shuffle_ps(pair[k + 1], pair[k + 3], 0x44);
        four[k + 3] = _mm256_shuffle_ps(pair[k + 1], pair[k + 3], 0xee);
    }
    for (int k = 0; k < 4; k++) {
        store(to + k * to_stride, four[k], four[k + 4], 0);
        store(to + (k + 4) * to_stride, four[k], four[k + 4], 1);
    }
}

static inline void turn_64(char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    __m256d r[4], pair[4];

    for (int k = 0; k < 4; k++)
        r[k] = _mm256_castps_pd(load(from + k * from_stride));
    for (int k = 0; k < 4; k += 2) {
        pair[k] = _mm256_unpacklo_pd(r[k], r[k + 1]);
        pair[k + 1] = _mm256_unpackhi_pd(r[k], r[k + 1]);
    }
    for (int k = 0; k < 2; k++) {
        __m256 low = _mm256_castpd_ps(pair[k]), high = _mm256_castpd_ps(pair[k + 2]);
        store(to + k * to_stride, low, high, 0);
        store(to + (k + 2) * to_stride, low, high, 1);
    }
}

void stki_tile_turn_avx2(stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns)
{
    int64_t side = STKI_TILE_SQUARE / size;
    const char *from = src.data;
    char *to = dst.data;

    for (int64_t j = 0; j + side <= columns; j += side)
        for (int64_t i = 0; i + side <= rows; i += side) {
            char *at = to + i * dst.row_stride + j * size;
            if (size == 4)
                turn_32(at, dst.row_stride, from + i * size + j * src.column_stride, src.column_stride);
            else
                turn_64(at, dst.row_stride, from + i * size + j * src.column_stride, src.column_stride);
        }
}
