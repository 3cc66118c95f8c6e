/* limit_kernels.c: see limit_kernels.h. Images are converted in blocks that stay in the L1 cache, in two steps: the
 * bytes are split into planes, then each plane is widened.
 */
#include "limit_kernels.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BLOCK = 1024 };

const float limit_a[3] = {0.017124754f, 0.017507004f, 0.017429194f};
const float limit_b[3] = {-2.1179039f, -2.0357143f, -1.8044444f};

#if defined(__AVX512F__)
enum { VECTOR = 64 };
static inline void stream(uint8_t *dst, const uint8_t *src)
{
    _mm512_stream_si512((void *)dst, _mm512_loadu_si512(src));
}
static inline void plain(uint8_t *dst, const uint8_t *src)
{
    _mm512_store_si512(dst, _mm512_load_si512(src));
}
static inline void fence(void)
{
    _mm_sfence();
}
#elif defined(__AVX2__)
enum { VECTOR = 32 };
static inline void stream(uint8_t *dst, const uint8_t *src)
{
    _mm256_stream_si256((void *)dst, _mm256_loadu_si256((const void *)src));
}
static inline void plain(uint8_t *dst, const uint8_t *src)
{
    _mm256_store_si256((void *)dst, _mm256_load_si256((const void *)src));
}
static inline void fence(void)
{
    _mm_sfence();
}
#else
enum { VECTOR = 16 };
static inline void stream(uint8_t *dst, const uint8_t *src)
{
    memcpy(dst, src, VECTOR);
}
static inline void plain(uint8_t *dst, const uint8_t *src)
{
    memcpy(dst, src, VECTOR);
}
static inline void fence(void)
{
}
#endif

void limit_copy_streaming(void *dst, const void *src, size_t bytes)
{
    size_t i = 0;

    for (; i + VECTOR <= bytes; i += VECTOR)
        stream((uint8_t *)dst + i, (const uint8_t *)src + i);
    memcpy((uint8_t *)dst + i, (const uint8_t *)src + i, bytes - i);
    fence();
}

void limit_copy_plain(void *dst, const void *src, size_t bytes)
{
    for (size_t i = 0; i + VECTOR <= bytes; i += VECTOR)
        plain((uint8_t *)dst + i, (const uint8_t *)src + i);
}

void limit_fetch(const void *src, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const uint8_t *)src + i, 0, 3);
}

uint64_t limit_read(const void *src, size_t bytes)
{
    const uint64_t *from = src;
    uint64_t sum[8] = {0};

    for (size_t i = 0; i + 8 <= bytes / 8; i += 8)
        for (size_t k = 0; k < 8; k++)
            sum[k] += from[i + k];
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

void limit_write_plain(void *dst, size_t bytes, int value)
{
    uint8_t pattern[64] __attribute__((aligned(64)));

    memset(pattern, value, sizeof pattern);
    for (size_t i = 0; i + VECTOR <= bytes; i += VECTOR)
        plain((uint8_t *)dst + i, pattern);
}

void limit_write_streaming(void *dst, size_t bytes, int value)
{
    uint8_t pattern[64] __attribute__((aligned(64)));

    memset(pattern, value, sizeof pattern);
    for (size_t i = 0; i + VECTOR <= bytes; i += VECTOR)
        stream((uint8_t *)dst + i, pattern);
    fence();
}

void limit_norm_simple(float *restrict dst, const uint8_t *restrict src, size_t pixels)
{
    float *restrict red = dst, *restrict green = dst + pixels, *restrict blue = dst + 2 * pixels;

    for (size_t i = 0; i < pixels; i++) {
        red[i] = src[3 * i] * limit_a[0] + limit_b[0];
        green[i] = src[3 * i + 1] * limit_a[1] + limit_b[1];
        blue[i] = src[3 * i + 2] * limit_a[2] + limit_b[2];
    }
}

struct planes {
    uint8_t of[3][BLOCK] __attribute__((aligned(64)));
};

static inline void split(struct planes *restrict planes, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        planes->of[0][i] = src[3 * i];
        planes->of[1][i] = src[3 * i + 1];
        planes->of[2][i] = src[3 * i + 2];
    }
}

#if defined(__AVX512F__)
static inline __m512 widen(const uint8_t *from, int c)
{
    __m512i whole = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(limit_a[c]), _mm512_set1_ps(limit_b[c]));
}
#endif

static inline void norm_blocked(float *restrict dst, const uint8_t *restrict src, size_t pixels, int streaming)
{
    struct planes planes;

    for (size_t first = 0; first < pixels; first += BLOCK) {
        size_t n = pixels - first < BLOCK ? pixels - first : BLOCK;
        split(&planes, src + 3 * first, n);
        for (int c = 0; c < 3; c++) {
            float *restrict to = dst + (size_t)c * pixels + first;
            size_t i = 0;
#if defined(__AVX512F__)
            for (; i + 16 <= n; i += 16)
                if (streaming)
                    _mm512_stream_ps(to + i, widen(planes.of[c] + i, c));
                else
                    _mm512_storeu_ps(to + i, widen(planes.of[c] + i, c));
#endif
            for (; i < n; i++)
                to[i] = planes.of[c][i] * limit_a[c] + limit_b[c];
        }
    }
    if (streaming)
        fence();
}

void limit_norm_blocked(float *dst, const uint8_t *src, size_t pixels)
{
    norm_blocked(dst, src, pixels, 0);
}

void limit_norm_blocked_streaming(float *dst, const uint8_t *src, size_t pixels)
{
    norm_blocked(dst, src, pixels, 1);
}

void limit_half_blocked(uint16_t *restrict dst, const uint8_t *restrict src, size_t pixels)
{
    struct planes planes;

    for (size_t first = 0; first < pixels; first += BLOCK) {
        size_t n = pixels - first < BLOCK ? pixels - first : BLOCK;
        split(&planes, src + 3 * first, n);
        for (int c = 0; c < 3; c++) {
            uint16_t *restrict to = dst + (size_t)c * pixels + first;
            size_t i = 0;
#if defined(__AVX512BF16__)
            for (; i + 16 <= n; i += 16)
                _mm256_storeu_si256((void *)(to + i), (__m256i)_mm512_cvtneps_pbh(widen(planes.of[c] + i, c)));
#endif
            for (; i < n; i++) {
                float y = planes.of[c][i] * limit_a[c] + limit_b[c];
                uint32_t bits;
                memcpy(&bits, &y, sizeof bits);
                to[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
            }
        }
    }
}

void limit_quant_blocked(int8_t *restrict dst, const uint8_t *restrict src, size_t pixels)
{
    struct planes planes;

    for (size_t first = 0; first < pixels; first += BLOCK) {
        size_t n = pixels - first < BLOCK ? pixels - first : BLOCK;
        split(&planes, src + 3 * first, n);
        for (int c = 0; c < 3; c++) {
            int8_t *restrict to = dst + (size_t)c * pixels + first;
            float a = limit_a[c] / 0.0187f, b = limit_b[c] / 0.0187f - 14.0f;
            size_t i = 0;
#if defined(__AVX512F__)
            for (; i + 16 <= n; i += 16) {
                __m512i whole = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(planes.of[c] + i)));
                __m512 y = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(a), _mm512_set1_ps(b));
                _mm_storeu_si128((void *)(to + i), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(y)));
            }
#endif
            for (; i < n; i++) {
                float y = planes.of[c][i] * a + b;
                to[i] = (int8_t)rintf(y < -128.0f ? -128.0f : y > 127.0f ? 127.0f : y);
            }
        }
    }
}

void limit_tokens(int64_t *restrict dst, const uint16_t *restrict src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = src[i];
}

#define LIMIT_ROW(name, type)                                                          \
    void limit_row_##name(float *restrict dst, const type *restrict src, size_t count) \
    {                                                                                  \
        for (size_t i = 0; i < count; i++)                                             \
            dst[i] = (float)src[i] * limit_a[0] + limit_b[0];                          \
    }
LIMIT_ROW(u16, uint16_t)
LIMIT_ROW(i32, int32_t)
LIMIT_ROW(i64, int64_t)
LIMIT_ROW(f32, float)
LIMIT_ROW(f64, double)
