/* hdf5_shuffle.c: HDF5's shuffle filter and its inverse. The filter is a transposition of bytes: it stores the first
 * bytes of all elements, then all second bytes, and so on. Elements of 2, 4 and 8 bytes are processed 16 at a time with
 * byte unpack instructions, which every x86-64 processor has, or elsewhere with the compiler's vector types. */
#include "hdf5_filter.h"
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

void stki_hdf5_shuffle(void *to, const void *from, int64_t count, int64_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;

    for (int64_t k = 0; k < size; k++)
        for (int64_t j = 0; j < count; j++)
            out[k * count + j] = in[j * size + k];
}

#if defined(__x86_64__)

static inline __m128i load(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

static inline void store(unsigned char *at, __m128i x)
{
    _mm_storeu_si128((__m128i *)(void *)at, x);
}

static int64_t pairs(unsigned char *out, const unsigned char *in, int64_t count)
{
    int64_t j = 0;

    for (; j + 16 <= count; j += 16) {
        __m128i a = load(in + j), b = load(in + count + j);

        store(out + 2 * j, _mm_unpacklo_epi8(a, b));
        store(out + 2 * j + 16, _mm_unpackhi_epi8(a, b));
    }
    return j;
}

static int64_t fours(unsigned char *out, const unsigned char *in, int64_t count)
{
    int64_t j = 0;

    for (; j + 16 <= count; j += 16) {
        __m128i a = load(in + j), b = load(in + count + j), c = load(in + 2 * count + j), d = load(in + 3 * count + j);
        __m128i ab0 = _mm_unpacklo_epi8(a, b), ab1 = _mm_unpackhi_epi8(a, b);
        __m128i cd0 = _mm_unpacklo_epi8(c, d), cd1 = _mm_unpackhi_epi8(c, d);

        store(out + 4 * j, _mm_unpacklo_epi16(ab0, cd0));
        store(out + 4 * j + 16, _mm_unpackhi_epi16(ab0, cd0));
        store(out + 4 * j + 32, _mm_unpacklo_epi16(ab1, cd1));
        store(out + 4 * j + 48, _mm_unpackhi_epi16(ab1, cd1));
    }
    return j;
}

static int64_t eights(unsigned char *out, const unsigned char *in, int64_t count)
{
    int64_t j = 0;

    for (; j + 16 <= count; j += 16)
        for (int half = 0; half < 2; half++) { /* each half is 8 elements: 8 loads of 8 bytes */
            __m128i x[8], ab, cd, ef, gh, low, high;

            for (int k = 0; k < 8; k++)
                x[k] = _mm_loadl_epi64((const __m128i *)(const void *)(in + k * count + j + 8 * half));
            ab = _mm_unpacklo_epi8(x[0], x[1]);
            cd = _mm_unpacklo_epi8(x[2], x[3]);
            ef = _mm_unpacklo_epi8(x[4], x[5]);
            gh = _mm_unpacklo_epi8(x[6], x[7]);
            low = _mm_unpacklo_epi16(ab, cd);
            high = _mm_unpacklo_epi16(ef, gh);
            store(out + 8 * j + 64 * half, _mm_unpacklo_epi32(low, high));
            store(out + 8 * j + 64 * half + 16, _mm_unpackhi_epi32(low, high));
            low = _mm_unpackhi_epi16(ab, cd);
            high = _mm_unpackhi_epi16(ef, gh);
            store(out + 8 * j + 64 * half + 32, _mm_unpacklo_epi32(low, high));
            store(out + 8 * j + 64 * half + 48, _mm_unpackhi_epi32(low, high));
        }
    return j;
}

static int64_t vectors(unsigned char *out, const unsigned char *in, int64_t count, int64_t size)
{
    return size == 2   ? pairs(out, in, count)
           : size == 4 ? fours(out, in, count)
           : size == 8 ? eights(out, in, count)
                       : 0;
}

#else

static int64_t vectors(unsigned char *out, const unsigned char *in, int64_t count, int64_t size)
{
    (void)out, (void)in, (void)count, (void)size;
    return 0;
}

#endif

void stki_hdf5_unshuffle(void *to, const void *from, int64_t count, int64_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;

    for (int64_t j = vectors(out, in, count, size); j < count; j++)
        for (int64_t k = 0; k < size; k++)
            out[j * size + k] = in[k * count + j];
}
