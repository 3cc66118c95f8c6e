/* small_float.h: converts f32 to and from the 16-bit and 8-bit floats, working on their bits, so that the results are
 * the same on every machine and for every vector width. Rounding is to nearest, ties to even. A NaN keeps its sign and
 * the upper bits of its payload and becomes quiet, as with the F16C instructions. Subnormal results are rounded by
 * adding a constant whose last place is the subnormal unit. */
#ifndef STKI_SMALL_FLOAT_H
#define STKI_SMALL_FLOAT_H

#include <stdint.h>
#include <string.h>

/* GPU kernels also include this file. */
#ifdef __CUDACC__
#define STKI_SMALL_FN static __device__ __forceinline__
#else
#define STKI_SMALL_FN static inline
#endif

STKI_SMALL_FN uint32_t stki_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

STKI_SMALL_FN float stki_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

STKI_SMALL_FN uint16_t stki_f16_encode(float x)
{
    uint32_t bits = stki_f32_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (UINT32_C(112) << 23)) >> 13;
    uint32_t subnormal = stki_f32_bits(stki_f32_of_bits(magnitude) + 0.5f) - stki_f32_bits(0.5f);
    uint32_t value = magnitude < 0x38800000 ? subnormal : normal; /* below 2^-14 */

    value = magnitude >= 0x47800000 ? 0x7c00 : value; /* 2^16; values from 65520 on round to it */
    value = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : value;
    return (uint16_t)(sign | value);
}

STKI_SMALL_FN float stki_f16_decode(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    uint32_t normal = rest + (UINT32_C(112) << 23);
    uint32_t special = (rest + (UINT32_C(224) << 23)) | (rest > (UINT32_C(31) << 23) ? UINT32_C(1) << 22 : 0);
    /* Appends the fraction to 2^-14 and subtracts 2^-14. This is exact, and the subtraction normalizes. */
    uint32_t subnormal =
        stki_f32_bits(stki_f32_of_bits(rest + (UINT32_C(113) << 23)) - stki_f32_of_bits(UINT32_C(113) << 23));
    uint32_t value = rest < (UINT32_C(1) << 23) ? subnormal : normal;

    value = rest >= (UINT32_C(31) << 23) ? special : value;
    return stki_f32_of_bits(sign | value);
}

STKI_SMALL_FN uint16_t stki_bf16_encode(float x)
{
    uint32_t bits = stki_f32_bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

STKI_SMALL_FN float stki_bf16_decode(uint16_t x)
{
    return stki_f32_of_bits((uint32_t)x << 16);
}

/* 4 bits of exponent, 3 of fraction, no infinity: values above 464, which would round to more than 448, become NaN, as
 * in torch. */
STKI_SMALL_FN uint8_t stki_f8_e4m3fn_encode(float x)
{
    uint32_t bits = stki_f32_bits(x), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
    uint32_t value;

    if (magnitude < 0x3c800000) /* below 2^-6 */
        value = stki_f32_bits(stki_f32_of_bits(magnitude) + 16384.0f) - stki_f32_bits(16384.0f);
    else if (magnitude >= 0x43f00000) /* 480, infinity, NaN */
        value = 0x7f;
    else
        value = (magnitude + 0x7ffff + (magnitude >> 20 & 1) - (UINT32_C(120) << 23)) >> 20;
    return (uint8_t)(sign | value);
}

STKI_SMALL_FN float stki_f8_e4m3fn_decode(uint8_t x)
{
    uint32_t sign = (uint32_t)(x & 0x80) << 24, rest = x & 0x7f;

    if (rest == 0x7f)
        return stki_f32_of_bits(sign | 0x7fc00000);
    if (rest < 8) /* units of 2^-9 */
        return stki_f32_of_bits(sign | stki_f32_bits((float)rest * 0x1p-9f));
    return stki_f32_of_bits(sign | ((rest << 20) + (UINT32_C(120) << 23)));
}

/* 5 bits of exponent, 2 of fraction: the upper byte of an f16. */
STKI_SMALL_FN uint8_t stki_f8_e5m2_encode(float x)
{
    uint32_t bits = stki_f32_bits(x), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
    uint32_t value;

    if (magnitude > 0x7f800000)
        value = 0x7f;
    else if (magnitude >= 0x47800000) /* 2^16; values from 61440 on round to it */
        value = 0x7c;
    else if (magnitude < 0x38800000) /* below 2^-14 */
        value = stki_f32_bits(stki_f32_of_bits(magnitude) + 128.0f) - stki_f32_bits(128.0f);
    else
        value = (magnitude + 0xfffff + (magnitude >> 21 & 1) - (UINT32_C(112) << 23)) >> 21;
    return (uint8_t)(sign | value);
}

STKI_SMALL_FN float stki_f8_e5m2_decode(uint8_t x)
{
    return stki_f16_decode((uint16_t)(x << 8));
}

#endif
