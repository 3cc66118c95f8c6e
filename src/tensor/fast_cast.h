/* fast_cast.h: casts of contiguous elements as loops that the compiler vectorizes; included once per instruction set by
 * a file that defines
 *     static void half_from_f32(char *dst, const char *src, int64_t count);
 *     static void f32_from_half(char *dst, const char *src, int64_t count);
 * f16 is converted through f32 in blocks. All other pairs of dtypes use the wide forms of cast.c. */
#include "dtype.h"
#include "small_float.h"
#include <string.h>

#define FAST_CAST(name, from_type, to_type, expression)         \
    static void name(char *dst, const char *src, int64_t count) \
    {                                                           \
        for (int64_t i = 0; i < count; i++) {                   \
            from_type x;                                        \
            to_type y;                                          \
            memcpy(&x, src + i * (int64_t)sizeof x, sizeof x);  \
            y = (to_type)(expression);                          \
            memcpy(dst + i * (int64_t)sizeof y, &y, sizeof y);  \
        }                                                       \
    }

/* Integers: widening extends by sign or zero, narrowing keeps the low bits. */
FAST_CAST(u8_to_16, uint8_t, uint16_t, x)
FAST_CAST(u8_to_32, uint8_t, uint32_t, x)
FAST_CAST(u8_to_64, uint8_t, uint64_t, x)
FAST_CAST(i8_to_16, int8_t, int16_t, x)
FAST_CAST(i8_to_32, int8_t, int32_t, x)
FAST_CAST(i8_to_64, int8_t, int64_t, x)
FAST_CAST(u16_to_32, uint16_t, uint32_t, x)
FAST_CAST(u16_to_64, uint16_t, uint64_t, x)
FAST_CAST(i16_to_32, int16_t, int32_t, x)
FAST_CAST(i16_to_64, int16_t, int64_t, x)
FAST_CAST(u32_to_64, uint32_t, uint64_t, x)
FAST_CAST(i32_to_64, int32_t, int64_t, x)
FAST_CAST(narrow_16_8, uint16_t, uint8_t, x)
FAST_CAST(narrow_32_8, uint32_t, uint8_t, x)
FAST_CAST(narrow_32_16, uint32_t, uint16_t, x)
FAST_CAST(narrow_64_8, uint64_t, uint8_t, x)
FAST_CAST(narrow_64_16, uint64_t, uint16_t, x)
FAST_CAST(narrow_64_32, uint64_t, uint32_t, x)

FAST_CAST(bool_to_bool, uint8_t, uint8_t, x != 0)

/* To f32, f64 and bf16 (through f32). */
#define TO_REALS(name, type)                  \
    FAST_CAST(name##_to_f32, type, float, x)  \
    FAST_CAST(name##_to_f64, type, double, x) \
    FAST_CAST(name##_to_bf16, type, uint16_t, stki_bf16_encode((float)x))

TO_REALS(u8, uint8_t)
TO_REALS(i8, int8_t)
TO_REALS(u16, uint16_t)
TO_REALS(i16, int16_t)
TO_REALS(u32, uint32_t)
TO_REALS(i32, int32_t)
TO_REALS(u64, uint64_t)
TO_REALS(i64, int64_t)

/* Float to integer: the limits of small types are exact in f32. */
static inline float fast_clamp(float x, float low, float high)
{
    return x != x ? 0.0f : x < low ? low : x > high ? high : x;
}

FAST_CAST(f32_to_u8, float, uint8_t, fast_clamp(x, 0, 255))
FAST_CAST(f32_to_i8, float, int8_t, fast_clamp(x, -128, 127))
FAST_CAST(f32_to_u16, float, uint16_t, fast_clamp(x, 0, 65535))
FAST_CAST(f32_to_i16, float, int16_t, fast_clamp(x, -32768, 32767))
FAST_CAST(f32_to_i32, float, int32_t, x >= 0x1p31f ? INT32_MAX : (int32_t)fast_clamp(x, -0x1p31f, 0x1.fffffep30f))
FAST_CAST(f32_to_i64, float, int64_t, x >= 0x1p63f ? INT64_MAX : (int64_t)fast_clamp(x, -0x1p63f, 0x1.fffffep62f))
FAST_CAST(f32_to_f64, float, double, x)
FAST_CAST(f32_to_bf16, float, uint16_t, stki_bf16_encode(x))
FAST_CAST(f64_to_f32, double, float, x)
FAST_CAST(f64_to_bf16, double, uint16_t, stki_bf16_encode((float)x))
FAST_CAST(bf16_to_f32, uint16_t, float, stki_bf16_decode(x))
FAST_CAST(bf16_to_f64, uint16_t, double, stki_bf16_decode(x))

enum { FAST_BLOCK = 512 };

/* To and from f16 through f32, in a block that stays in the L1 cache. */
#define HALF_FROM(name, size)                                                  \
    static void name##_to_f16(char *dst, const char *src, int64_t count)       \
    {                                                                          \
        float block[FAST_BLOCK];                                               \
        for (int64_t done = 0; done < count; done += FAST_BLOCK) {             \
            int64_t n = count - done < FAST_BLOCK ? count - done : FAST_BLOCK; \
            name##_to_f32((char *)block, src + done * size, n);                \
            half_from_f32(dst + done * 2, (const char *)block, n);             \
        }                                                                      \
    }
#define HALF_TO(name, size)                                                    \
    static void f16_to_##name(char *dst, const char *src, int64_t count)       \
    {                                                                          \
        float block[FAST_BLOCK];                                               \
        for (int64_t done = 0; done < count; done += FAST_BLOCK) {             \
            int64_t n = count - done < FAST_BLOCK ? count - done : FAST_BLOCK; \
            f32_from_half((char *)block, src + done * 2, n);                   \
            f32_to_##name(dst + done * size, (const char *)block, n);          \
        }                                                                      \
    }

HALF_FROM(u8, 1)
HALF_FROM(i8, 1)
HALF_FROM(u16, 2)
HALF_FROM(i16, 2)
HALF_FROM(u32, 4)
HALF_FROM(i32, 4)
HALF_FROM(u64, 8)
HALF_FROM(i64, 8)
HALF_FROM(f64, 8)
HALF_FROM(bf16, 2)
HALF_TO(f64, 8)
HALF_TO(bf16, 2)

#define FAST_CAST_TABLE                                                                                             \
    {                                                                                                               \
        [STK_BOOL] = {[STK_BOOL] = bool_to_bool},                                                                   \
        [STK_U16] = {[STK_U8] = u8_to_16, [STK_I8] = i8_to_16, FROM_NARROWED(16), [STK_F32] = f32_to_u16},          \
        [STK_I16] = {[STK_U8] = u8_to_16, [STK_I8] = i8_to_16, FROM_NARROWED(16), [STK_F32] = f32_to_i16},          \
        [STK_U8] = {FROM_NARROWED_BYTE, [STK_F32] = f32_to_u8},                                                     \
        [STK_I8] = {FROM_NARROWED_BYTE, [STK_F32] = f32_to_i8}, [STK_U32] = {FROM_WHOLE_32},                        \
        [STK_I32] = {FROM_WHOLE_32, [STK_F32] = f32_to_i32}, [STK_U64] = {FROM_WHOLE_64},                           \
        [STK_I64] = {FROM_WHOLE_64, [STK_F32] = f32_to_i64},                                                        \
        [STK_F32] = {FROM_WHOLE(f32), [STK_F64] = f64_to_f32, [STK_BF16] = bf16_to_f32, [STK_F16] = f32_from_half}, \
        [STK_F64] = {FROM_WHOLE(f64), [STK_F32] = f32_to_f64, [STK_BF16] = bf16_to_f64, [STK_F16] = f16_to_f64},    \
        [STK_BF16] = {FROM_WHOLE(bf16), [STK_F32] = f32_to_bf16, [STK_F64] = f64_to_bf16, [STK_F16] = f16_to_bf16}, \
        [STK_F16] = {FROM_WHOLE(f16), [STK_F32] = half_from_f32, [STK_F64] = f64_to_f16, [STK_BF16] = bf16_to_f16}, \
    }
#define FROM_WHOLE(to)                                                                              \
    [STK_U8] = u8_to_##to, [STK_I8] = i8_to_##to, [STK_U16] = u16_to_##to, [STK_I16] = i16_to_##to, \
    [STK_U32] = u32_to_##to, [STK_I32] = i32_to_##to, [STK_U64] = u64_to_##to, [STK_I64] = i64_to_##to
#define FROM_NARROWED(bits)                                                                   \
    [STK_U32] = narrow_32_##bits, [STK_I32] = narrow_32_##bits, [STK_U64] = narrow_64_##bits, \
    [STK_I64] = narrow_64_##bits
#define FROM_NARROWED_BYTE [STK_U16] = narrow_16_8, [STK_I16] = narrow_16_8, FROM_NARROWED(8)
#define FROM_WHOLE_32                                                                                                 \
    [STK_U8] = u8_to_32, [STK_I8] = i8_to_32, [STK_U16] = u16_to_32, [STK_I16] = i16_to_32, [STK_U64] = narrow_64_32, \
    [STK_I64] = narrow_64_32
#define FROM_WHOLE_64                                                                                              \
    [STK_U8] = u8_to_64, [STK_I8] = i8_to_64, [STK_U16] = u16_to_64, [STK_I16] = i16_to_64, [STK_U32] = u32_to_64, \
    [STK_I32] = i32_to_64
