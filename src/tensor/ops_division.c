/* ops_division.c: the loops of floor_div and trunc_div, for which no instruction set has vector instructions, and the
 * selection of all loops by instruction set. Integer divisors are not 0: ops_binary.c checks them first. */
#include "floor_division.h"
#include "ops_loops.h"
#include "ops_unaligned.h"
#include <math.h>

/* ---- whole numbers ---- */

/* The smallest integer divided by -1 wraps to itself. Hardware division would trap, so division by -1 is a negation. */
#define SIGNED(name, type, unsigned_type)                                                     \
    static type trunc_##name(type p, type q)                                                  \
    {                                                                                         \
        return (type)(q == -1 ? (type)(0u - (unsigned_type)p) : p / q);                       \
    }                                                                                         \
    static type floor_##name(type p, type q)                                                  \
    {                                                                                         \
        type quotient = trunc_##name(p, q);                                                   \
        return q != -1 && p % q != 0 && (p < 0) != (q < 0) ? (type)(quotient - 1) : quotient; \
    }
SIGNED(i8, int8_t, uint8_t)
SIGNED(i16, int16_t, uint16_t)
SIGNED(i32, int32_t, uint32_t)
SIGNED(i64, int64_t, uint64_t)

#define UNSIGNED(name, type)                 \
    static type floor_##name(type p, type q) \
    {                                        \
        return (type)(p / q);                \
    }
UNSIGNED(u8, uint8_t)
UNSIGNED(u16, uint16_t)
UNSIGNED(u32, uint32_t)
UNSIGNED(u64, uint64_t)

/* ---- reals ---- */

STKI_FLOOR_DIVISION(static, floor_f32, float, fmodf, floorf, copysignf)
STKI_FLOOR_DIVISION(static, floor_f64, double, fmod, floor, copysign)

static float trunc_f32(float p, float q)
{
    return truncf(p / q);
}

static double trunc_f64(double p, double q)
{
    return trunc(p / q);
}

/* ---- loops ---- */

#define LOOP(name, variant, function, left_index, right_index)                                  \
    static void loop_##function##_##variant(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                                           \
        stki_##name *to = dst;                                                                  \
        const stki_##name *left = a, *right = b;                                                \
        for (int64_t i = 0; i < n; i++)                                                         \
            to[i] = function(left[left_index], right[right_index]);                             \
    }
#define LOOPS(name, function)            \
    LOOP(name, both, function, i, i)     \
    LOOP(name, with_one, function, i, 0) \
    LOOP(name, one_with, function, 0, i)
LOOPS(u8, floor_u8)
LOOPS(i8, floor_i8)
LOOPS(i8, trunc_i8)
LOOPS(u16, floor_u16)
LOOPS(i16, floor_i16)
LOOPS(i16, trunc_i16)
LOOPS(u32, floor_u32)
LOOPS(i32, floor_i32)
LOOPS(i32, trunc_i32)
LOOPS(u64, floor_u64)
LOOPS(i64, floor_i64)
LOOPS(i64, trunc_i64)
LOOPS(f32, floor_f32)
LOOPS(f32, trunc_f32)
LOOPS(f64, floor_f64)
LOOPS(f64, trunc_f64)

#define ROW(function)                                                                  \
    {                                                                                  \
        loop_##function##_both, loop_##function##_with_one, loop_##function##_one_with \
    }

static const stki_loops floor_loops[STK_DTYPE_END] = {
    [STK_U8] = ROW(floor_u8),   [STK_I8] = ROW(floor_i8),   [STK_U16] = ROW(floor_u16), [STK_I16] = ROW(floor_i16),
    [STK_U32] = ROW(floor_u32), [STK_I32] = ROW(floor_i32), [STK_U64] = ROW(floor_u64), [STK_I64] = ROW(floor_i64),
    [STK_F32] = ROW(floor_f32), [STK_F64] = ROW(floor_f64),
};
static const stki_loops trunc_loops[STK_DTYPE_END] = {
    [STK_U8] = ROW(floor_u8),   [STK_I8] = ROW(trunc_i8),   [STK_U16] = ROW(floor_u16), [STK_I16] = ROW(trunc_i16),
    [STK_U32] = ROW(floor_u32), [STK_I32] = ROW(trunc_i32), [STK_U64] = ROW(floor_u64), [STK_I64] = ROW(trunc_i64),
    [STK_F32] = ROW(trunc_f32), [STK_F64] = ROW(trunc_f64),
};

static const stki_loops *row_of(enum stki_isa isa, enum stki_loop loop, stk_dtype dtype)
{
    if (loop == STKI_LOOP_FLOOR_DIV)
        return &floor_loops[dtype];
    if (loop == STKI_LOOP_TRUNC_DIV)
        return &trunc_loops[dtype];
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return &stki_loops_avx512[loop][dtype];
    if (isa == STKI_ISA_AVX2)
        return &stki_loops_avx2[loop][dtype];
#endif
    (void)isa;
    return &stki_loops_ref[loop][dtype];
}

const stki_loops *stki_loops_find(enum stki_isa isa, enum stki_loop loop, stk_dtype dtype)
{
    const stki_loops *row = row_of(isa, loop, dtype);

    return row->with_one ? row : NULL;
}
