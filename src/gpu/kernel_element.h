/* kernel_element.h: operations on single elements, given as their bits, with the same results as on the CPU: casts
 * (cast.c), the loads and stores of conversions (convert_ref.c), quantization (quant_ref.c) and element-wise operations
 * (ops_loops_body.h, ops_division.c). dtypes are ints with the values of stk_dtype; if a kernel is instantiated for one
 * dtype, the value is a compile-time constant and the switches are removed.
 *
 * Nothing is contracted or approximated: nvcc is called with --fmad=false and without fast-math; the only fused
 * operation is explicit. */
#ifndef STKI_KERNEL_ELEMENT_H
#define STKI_KERNEL_ELEMENT_H

#include "kernel_source.h"
#include "small_float.h"
#include <stoker/tensor.h>

/* ---- arithmetic that compilers may transform ---- */

STKI_KERNEL_FN float stki_kernel_fma(float x, float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmaf_rn(x, a, b);
#else
    return fmaf(x, a, b);
#endif
}

STKI_KERNEL_FN uint64_t stki_f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

STKI_KERNEL_FN double stki_f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- dtypes ---- */

STKI_KERNEL_FN int stki_kernel_size(int dtype)
{
    switch (dtype) {
    case STK_BOOL:
    case STK_U8:
    case STK_I8:
    case STK_F8_E4M3FN:
    case STK_F8_E5M2:
        return 1;
    case STK_U16:
    case STK_I16:
    case STK_F16:
    case STK_BF16:
        return 2;
    case STK_U32:
    case STK_I32:
    case STK_F32:
        return 4;
    case STK_C128:
        return 16;
    default:
        return 8;
    }
}

/* Returns the wide dtype (i64, u64, f32 or f64) that holds every value of the given dtype. */
STKI_KERNEL_FN int stki_kernel_form(int dtype)
{
    switch (dtype) {
    case STK_U64:
        return STK_U64;
    case STK_F64:
        return STK_F64;
    case STK_F32:
    case STK_F16:
    case STK_BF16:
    case STK_F8_E4M3FN:
    case STK_F8_E5M2:
        return STK_F32;
    default:
        return STK_I64;
    }
}

STKI_KERNEL_FN uint64_t stki_kernel_widen(int dtype, uint64_t bits)
{
    switch (dtype) {
    case STK_BOOL:
        return (uint8_t)bits != 0;
    case STK_U8:
        return (uint8_t)bits;
    case STK_U16:
        return (uint16_t)bits;
    case STK_U32:
        return (uint32_t)bits;
    case STK_I8:
        return (uint64_t)(int64_t)(int8_t)bits;
    case STK_I16:
        return (uint64_t)(int64_t)(int16_t)bits;
    case STK_I32:
        return (uint64_t)(int64_t)(int32_t)bits;
    case STK_F16:
        return stki_f32_bits(stki_f16_decode((uint16_t)bits));
    case STK_BF16:
        return stki_f32_bits(stki_bf16_decode((uint16_t)bits));
    case STK_F8_E4M3FN:
        return stki_f32_bits(stki_f8_e4m3fn_decode((uint8_t)bits));
    case STK_F8_E5M2:
        return stki_f32_bits(stki_f8_e5m2_decode((uint8_t)bits));
    default:
        return bits;
    }
}

/* Float to integer: truncates, saturates, NaN becomes 0. The limits are exact in f32 and in f64. */
#define STKI_REAL_TO_WHOLE(real)                                                                \
    STKI_KERNEL_FN int64_t stki_##real##_to_whole(real x, real low, real high, int64_t at_high) \
    {                                                                                           \
        return x != x ? 0 : x >= high ? at_high : x < low ? (int64_t)low : (int64_t)x;          \
    }                                                                                           \
    STKI_KERNEL_FN uint64_t stki_##real##_to_u64(real x)                                        \
    {                                                                                           \
        return x >= (real)0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;                        \
    }                                                                                           \
    STKI_KERNEL_FN uint64_t stki_##real##_narrow(int dtype, real x)                             \
    {                                                                                           \
        switch (dtype) {                                                                        \
        case STK_BOOL:                                                                          \
            return x != 0;                                                                      \
        case STK_U8:                                                                            \
            return (uint64_t)stki_##real##_to_whole(x, 0, (real)0x1p8, UINT8_MAX);              \
        case STK_I8:                                                                            \
            return (uint64_t)stki_##real##_to_whole(x, (real)-0x1p7, (real)0x1p7, INT8_MAX);    \
        case STK_U16:                                                                           \
            return (uint64_t)stki_##real##_to_whole(x, 0, (real)0x1p16, UINT16_MAX);            \
        case STK_I16:                                                                           \
            return (uint64_t)stki_##real##_to_whole(x, (real)-0x1p15, (real)0x1p15, INT16_MAX); \
        case STK_U32:                                                                           \
            return (uint64_t)stki_##real##_to_whole(x, 0, (real)0x1p32, UINT32_MAX);            \
        case STK_I32:                                                                           \
            return (uint64_t)stki_##real##_to_whole(x, (real)-0x1p31, (real)0x1p31, INT32_MAX); \
        case STK_U64:                                                                           \
            return stki_##real##_to_u64(x);                                                     \
        default:                                                                                \
            return (uint64_t)stki_##real##_to_whole(x, (real)-0x1p63, (real)0x1p63, INT64_MAX); \
        }                                                                                       \
    }
STKI_REAL_TO_WHOLE(float)
STKI_REAL_TO_WHOLE(double)

/* f32 to a floating-point dtype other than f64. */
STKI_KERNEL_FN uint64_t stki_kernel_encode(int dtype, float x)
{
    switch (dtype) {
    case STK_F16:
        return stki_f16_encode(x);
    case STK_BF16:
        return stki_bf16_encode(x);
    case STK_F8_E4M3FN:
        return stki_f8_e4m3fn_encode(x);
    case STK_F8_E5M2:
        return stki_f8_e5m2_encode(x);
    default:
        return stki_f32_bits(x);
    }
}

STKI_KERNEL_FN int stki_kernel_is_real(int dtype)
{
    return dtype == STK_F32 || dtype == STK_F64 || dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F8_E4M3FN ||
           dtype == STK_F8_E5M2;
}

/* Converts a wide form to a dtype: floats other than f64 are converted through f32, integers wrap. */
STKI_KERNEL_FN uint64_t stki_kernel_narrow(int dtype, int form, uint64_t wide)
{
    if (form == STK_F32) {
        float x = stki_f32_of_bits((uint32_t)wide);
        if (dtype == STK_F64)
            return stki_f64_bits((double)x);
        return stki_kernel_is_real(dtype) ? stki_kernel_encode(dtype, x) : stki_float_narrow(dtype, x);
    }
    if (form == STK_F64) {
        double x = stki_f64_of_bits(wide);
        if (dtype == STK_F64)
            return wide;
        return stki_kernel_is_real(dtype) ? stki_kernel_encode(dtype, (float)x) : stki_double_narrow(dtype, x);
    }
    if (dtype == STK_F64)
        return stki_f64_bits(form == STK_U64 ? (double)wide : (double)(int64_t)wide);
    if (stki_kernel_is_real(dtype))
        return stki_kernel_encode(dtype, form == STK_U64 ? (float)wide : (float)(int64_t)wide);
    return dtype == STK_BOOL ? wide != 0 : wide;
}

/* Casts one element (or one part of a complex one) as cast.c does. Bits beyond the size of the dtype are ignored, and
 * undefined in the result. */
STKI_KERNEL_FN uint64_t stki_kernel_cast(int to, int from, uint64_t bits)
{
    if (to == from && to != STK_BOOL)
        return bits;
    return stki_kernel_narrow(to, stki_kernel_form(from), stki_kernel_widen(from, bits));
}

STKI_KERNEL_FN uint64_t stki_kernel_swap(uint64_t bits, int size)
{
    uint64_t swapped = 0;

    for (int i = 0; i < size; i++)
        swapped |= (bits >> 8 * i & 0xff) << 8 * (size - 1 - i);
    return swapped;
}

/* ---- conversions ---- */

typedef struct stki_levels {
    float zero_point, low, high;
} stki_levels;

/* f16 to f32 is exact, so the device's instruction can be used; only NaN payloads are lost. */
STKI_KERNEL_FN float stki_kernel_f16(uint16_t half)
{
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(half));
#else
    return stki_f16_decode(half);
#endif
}

/* Converts a source element to f32, with one rounding. */
STKI_KERNEL_FN float stki_kernel_load(int dtype, uint64_t bits)
{
    switch (dtype) {
    case STK_U8:
        return (float)(uint8_t)bits;
    case STK_I8:
        return (float)(int8_t)bits;
    case STK_U16:
        return (float)(uint16_t)bits;
    case STK_I16:
        return (float)(int16_t)bits;
    case STK_I32:
        return (float)(int32_t)bits;
    case STK_I64:
        return (float)(int64_t)bits;
    case STK_F16:
        return stki_kernel_f16((uint16_t)bits);
    case STK_BF16:
        return stki_bf16_decode((uint16_t)bits);
    case STK_F64:
        return (float)stki_f64_of_bits(bits);
    default:
        return stki_f32_of_bits((uint32_t)bits);
    }
}

/* clamp(rint(y) + zero_point, low, high), all in f32; NaN is treated as 0 before the zero point is added. */
STKI_KERNEL_FN float stki_kernel_level(stki_levels levels, float y)
{
    float q = (y != y ? 0.0f : rintf(y)) + levels.zero_point;

    return q < levels.low ? levels.low : q > levels.high ? levels.high : q;
}

/* x must not be NaN. */
STKI_KERNEL_FN float stki_kernel_clamp(float x, float low, float high)
{
#ifdef __CUDA_ARCH__
    return fmaxf(fminf(x, high), low);
#else
    return x < low ? low : x > high ? high : x;
#endif
}

/* Like stki_kernel_level, for 8-bit integers and without the slow instructions for rounding and conversion. The limits
 * are integers, so clamping can precede rounding, which is then an addition of 1.5 * 2^23: the low bits of the sum are
 * the rounded integer (ties to even). `tame`: y is not NaN. */
STKI_KERNEL_FN uint32_t stki_kernel_level_8(stki_levels levels, int tame, float y)
{
    const float low = levels.low - levels.zero_point, high = levels.high - levels.zero_point;

    y = tame || y == y ? y : 0.0f;
    y = stki_kernel_clamp(y, low, high);
    return (stki_f32_bits(y + 12582912.0f) + (uint32_t)(int32_t)levels.zero_point) & 0xff;
}

STKI_KERNEL_FN uint64_t stki_kernel_store(int dtype, stki_levels levels, float y)
{
    float q;

    switch (dtype) {
    case STK_U8:
    case STK_I8:
        return stki_kernel_level_8(levels, 0, y);
    case STK_I32:
        q = stki_kernel_level(levels, y);
        return (uint32_t)(q >= 0x1p31f ? INT32_MAX : (int32_t)q);
    case STK_F16:
        return stki_f16_encode(y);
    case STK_BF16:
        return stki_bf16_encode(y);
    default:
        return stki_f32_bits(y);
    }
}

/* Converts and packs two f16 or bf16. GPUs have an instruction for the pair, with the same rounding as small_float.h;
 * only NaN payloads are lost. */
STKI_KERNEL_FN uint32_t stki_kernel_pair_f16(float first, float second)
{
#ifdef __CUDA_ARCH__
    __half2 pair = __floats2half2_rn(first, second);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
#else
    return stki_f16_encode(first) | (uint32_t)stki_f16_encode(second) << 16;
#endif
}

STKI_KERNEL_FN uint32_t stki_kernel_pair_bf16(float first, float second)
{
#ifdef __CUDA_ARCH__
    __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
#else
    return stki_bf16_encode(first) | (uint32_t)stki_bf16_encode(second) << 16;
#endif
}

/* ---- quantization ---- */

/* x times the reciprocal of the scale, rounded, plus the zero point, saturated. */
STKI_KERNEL_FN uint64_t stki_kernel_to_level(int dtype, float x, float inverse, float zero_point)
{
    float y = x * inverse, q;
    stki_levels levels;

    levels.zero_point = zero_point;
    if (dtype != STK_I32) {
        levels.low = dtype == STK_U8 ? 0.0f : -128.0f;
        levels.high = dtype == STK_U8 ? 255.0f : 127.0f;
        return stki_kernel_level_8(levels, 0, y);
    }
    q = (y != y ? 0.0f : rintf(y)) + zero_point;
    return (uint32_t)(q >= 0x1p31f ? INT32_MAX : q < -0x1p31f ? INT32_MIN : (int32_t)q);
}

/* With one pair of parameters, the product is computed in f32; with one pair per channel, in f64 and rounded once. */
STKI_KERNEL_FN float stki_kernel_from_level(int dtype, uint64_t bits, int per_channel, double scale, double zero_point)
{
    double q = dtype == STK_U8 ? (double)(uint8_t)bits : dtype == STK_I8 ? (double)(int8_t)bits : (double)(int32_t)bits;
    double difference = q - zero_point;

    return per_channel ? (float)(difference * scale) : (float)difference * (float)scale;
}

#endif
