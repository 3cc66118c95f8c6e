/* convert_oracle.h: a reference for conversions that works differently from src/tensor: sums are computed in double
 * with rounding to odd, small floats by their spacing instead of their bits, and the axes of the description are
 * iterated element by element. The header also provides memory that ends at a page boundary, so that any access beyond
 * it faults. */
#ifndef STKT_CONVERT_ORACLE_H
#define STKT_CONVERT_ORACLE_H

#include "convert.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- random ---- */

static inline uint64_t oracle_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int64_t oracle_below(uint64_t *state, int64_t bound)
{
    return (int64_t)(oracle_random(state) % (uint64_t)bound);
}

/* ---- values ---- */

static inline double oracle_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
}

static inline double oracle_bf16(uint16_t bits)
{
    int exponent = bits >> 7 & 255, fraction = bits & 127;
    double value = exponent == 255 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent      ? ldexp(128 + fraction, exponent - 134)
                                   : ldexp(fraction, -133);
    return bits & 0x8000 ? -value : value;
}

static inline float oracle_load(stk_dtype dtype, const uint8_t *src, bool swapped)
{
    uint8_t bytes[8] = {0};
    int size = (int)stk_dtype_size(dtype);
    uint16_t u16;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;

    for (int i = 0; i < size; i++)
        bytes[i] = src[swapped ? size - 1 - i : i];
    memcpy(&u16, bytes, 2);
    memcpy(&i16, bytes, 2);
    memcpy(&i32, bytes, 4);
    memcpy(&i64, bytes, 8);
    memcpy(&f32, bytes, 4);
    memcpy(&f64, bytes, 8);
    switch (dtype) {
    case STK_U8:
        return bytes[0];
    case STK_I8:
        return bytes[0] < 128 ? bytes[0] : (float)(bytes[0] - 256);
    case STK_U16:
        return u16;
    case STK_I16:
        return i16;
    case STK_I32:
        return (float)i32;
    case STK_I64:
        return (float)i64;
    case STK_F16:
        return (float)oracle_f16(u16);
    case STK_BF16:
        return (float)oracle_bf16(u16);
    case STK_F64:
        return (float)f64;
    default:
        return f32;
    }
}

/* x * a + b with one rounding: the product of two f32 is exact in double, and the sum is rounded to odd there, so that
 * rounding it again to f32 gives the right result. */
static inline float oracle_fma(float x, float a, float b)
{
    double p = (double)x * a, s = p + b;
    if (!isfinite(s))
        return (float)s;
    double t = s - p, error = (p - (s - t)) + (b - t);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (error != 0 && !(bits & 1)) {
        if ((error > 0) == (s > 0))
            bits++;
        else
            bits--;
        memcpy(&s, &bits, sizeof bits);
    }
    return (float)s;
}

/* Rounds `y` to nearest even on a grid of `digits` fraction bits, with `least` the smallest exponent. */
static inline double oracle_grid(double y, int digits, int least)
{
    int exponent = y == 0 ? least : ilogb(y);
    double spacing = ldexp(1.0, (exponent < least ? least : exponent) - digits);
    return nearbyint(y / spacing) * spacing;
}

static inline uint16_t oracle_to_f16(float y)
{
    uint16_t sign = signbit(y) ? 0x8000 : 0;
    if (isnan(y))
        return sign | 0x7e00;
    double r = isinf(y) ? (double)INFINITY : fabs(oracle_grid((double)y, 10, -14));
    if (r >= 65520)
        return sign | 0x7c00;
    if (r < 0x1p-14)
        return (uint16_t)(sign | (int)(r * 0x1p24));
    int exponent = ilogb(r);
    return (uint16_t)(sign | ((exponent + 15) << 10) | ((int)ldexp(r, 10 - exponent) - 1024));
}

static inline uint16_t oracle_to_bf16(float y)
{
    float r = isfinite(y) ? (float)oracle_grid((double)y, 7, -126) : y;
    uint32_t bits;
    memcpy(&bits, &r, sizeof bits);
    return isnan(y) ? (uint16_t)(bits >> 16 | 0x40) : (uint16_t)(bits >> 16);
}

static inline int64_t oracle_level(const stki_convert_desc *desc, float y)
{
    int64_t low = desc->dst_dtype == STK_U8 ? 0 : desc->dst_dtype == STK_I8 ? -128 : INT32_MIN;
    int64_t high = desc->dst_dtype == STK_U8 ? 255 : desc->dst_dtype == STK_I8 ? 127 : INT32_MAX;
    int64_t zero_point = 0;

    if (desc->quantized) {
        low = desc->qmin;
        high = desc->qmax;
        zero_point = desc->zero_point;
    }
    double q = (float)((isnan(y) ? 0.0 : nearbyint((double)y)) + (float)zero_point);
    return q <= (double)low ? low : q >= (double)high ? high : (int64_t)q;
}

static inline void oracle_store(const stki_convert_desc *desc, uint8_t *dst, float y)
{
    uint16_t half;
    int32_t whole;

    switch (desc->dst_dtype) {
    case STK_U8:
    case STK_I8:
        *dst = (uint8_t)oracle_level(desc, y);
        break;
    case STK_I32:
        whole = (int32_t)oracle_level(desc, y);
        memcpy(dst, &whole, 4);
        break;
    case STK_F16:
        half = oracle_to_f16(y);
        memcpy(dst, &half, 2);
        break;
    case STK_BF16:
        half = oracle_to_bf16(y);
        memcpy(dst, &half, 2);
        break;
    default:
        memcpy(dst, &y, 4);
        break;
    }
}

/* ---- samples ---- */

/* Called for every index, with the addresses of its elements. */
typedef void (*oracle_each)(const stki_convert_desc *desc, uint8_t *dst, const uint8_t *src, const int64_t *index);

static inline void oracle_walk(const stki_convert_desc *desc, uint8_t *dst, const uint8_t *src, oracle_each each)
{
    int64_t index[STK_MAX_DIMS] = {0};

    for (int k = 0; k < desc->ndim; k++)
        if (desc->shape[k] == 0)
            return;
    for (;;) {
        int64_t from = 0, to = 0;
        int k = desc->ndim - 1;
        for (int i = 0; i < desc->ndim; i++) {
            from += index[i] * desc->src_strides[i];
            to += index[i] * desc->dst_strides[i];
        }
        each(desc, dst + to, src ? src + from : NULL, index);
        for (; k >= 0 && ++index[k] == desc->shape[k]; k--)
            index[k] = 0;
        if (k < 0)
            return;
    }
}

static inline void oracle_element(const stki_convert_desc *desc, uint8_t *dst, const uint8_t *src, const int64_t *index)
{
    int64_t channel = desc->channels > 1 ? index[desc->channel_axis] : 0;

    if (!desc->affine && desc->src_dtype == desc->dst_dtype) {
        int size = (int)stk_dtype_size(desc->src_dtype);
        for (int i = 0; i < size; i++)
            dst[i] = src[desc->src_swapped ? size - 1 - i : i];
        if (desc->src_dtype == STK_BOOL)
            *dst = *src != 0;
        return;
    }
    float x = oracle_load(desc->src_dtype, src, desc->src_swapped);
    oracle_store(desc, dst, !desc->affine ? x : oracle_fma(x, desc->a[channel], desc->b[channel]));
}

/* Makes all NaNs equal, because their payloads are not defined. */
static inline void oracle_canon(const stki_convert_desc *desc, uint8_t *dst, const uint8_t *src, const int64_t *index)
{
    uint16_t half;
    float single;

    (void)src, (void)index;
    memcpy(&half, dst, 2);
    if (desc->dst_dtype == STK_F16 && isnan(oracle_f16(half)))
        memcpy(dst, &(uint16_t){0x7e00}, 2);
    else if (desc->dst_dtype == STK_BF16 && isnan(oracle_bf16(half)))
        memcpy(dst, &(uint16_t){0x7fc0}, 2);
    else if (desc->dst_dtype == STK_F32) {
        memcpy(&single, dst, 4);
        if (isnan(single))
            memcpy(dst, &(uint32_t){0x7fc00000}, 4);
    }
}

/* The number of bytes that one side of the sample spans below and above the address of the element at index 0. */
static inline void oracle_extent(const stki_convert_desc *desc, const int64_t *strides, int64_t size, int64_t *below,
                                 int64_t *above)
{
    *below = 0;
    *above = size;
    for (int k = 0; k < desc->ndim; k++) {
        int64_t reach = desc->shape[k] > 0 ? strides[k] * (desc->shape[k] - 1) : 0;
        if (reach < 0)
            *below -= reach;
        else
            *above += reach;
    }
}

/* ---- memory between pages that fault ---- */

struct oracle_pages {
    uint8_t *low, *high; /* the first byte, and one past the last */
};

static inline struct oracle_pages oracle_pages_create(int64_t bytes)
{
    const int64_t page = 4096, whole = (bytes + page - 1) / page * page;
    uint8_t *base = mmap(NULL, (size_t)(whole + 2 * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + page, (size_t)whole, PROT_READ | PROT_WRITE))
        abort();
    return (struct oracle_pages){base + page, base + page + whole};
}

static inline void oracle_pages_destroy(struct oracle_pages *pages)
{
    munmap(pages->low - 4096, (size_t)(pages->high - pages->low) + 8192);
}

#endif
