/* ops_loops_body.h: the loops that compilers vectorize; each variant's file includes this once and is compiled for its
 * instruction set. Plain arithmetic, one operation per element, so that all variants produce bit-identical results. */
#include "ops_loops.h"
#include "ops_unaligned.h"

#define LOOP_BOTH(name, result, type, expression)                               \
    static void name##_both(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                           \
        result *to = dst;                                                       \
        const type *left = a, *right = b;                                       \
        STKI_NO_OVERLAP                                                         \
        for (int64_t i = 0; i < n; i++) {                                       \
            type p = left[i], q = right[i];                                     \
            to[i] = (result)(expression);                                       \
        }                                                                       \
    }
#define LOOP_WITH_ONE(name, result, type, expression)                               \
    static void name##_with_one(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                               \
        result *to = dst;                                                           \
        const type *left = a;                                                       \
        type q = *(const type *)b;                                                  \
        STKI_NO_OVERLAP                                                             \
        for (int64_t i = 0; i < n; i++) {                                           \
            type p = left[i];                                                       \
            to[i] = (result)(expression);                                           \
        }                                                                           \
    }
#define LOOP_ONE_WITH(name, result, type, expression)                               \
    static void name##_one_with(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                               \
        result *to = dst;                                                           \
        const type *right = b;                                                      \
        type p = *(const type *)a;                                                  \
        STKI_NO_OVERLAP                                                             \
        for (int64_t i = 0; i < n; i++) {                                           \
            type q = right[i];                                                      \
            to[i] = (result)(expression);                                           \
        }                                                                           \
    }
#define LOOPS(name, result, type, expression)     \
    LOOP_BOTH(name, result, type, expression)     \
    LOOP_WITH_ONE(name, result, type, expression) \
    LOOP_ONE_WITH(name, result, type, expression)

/* Integers wrap: in two's complement, these operations are the same for signed and unsigned integers, and results
 * promoted to int are truncated again. `wide` avoids the promotion of u16 to int, whose product could overflow. */
#define WRAPPING(bits, wide)                                         \
    LOOPS(add_##bits, stki_u##bits, stki_u##bits, (wide)p + (wide)q) \
    LOOPS(sub_##bits, stki_u##bits, stki_u##bits, (wide)p - (wide)q) \
    LOOPS(mul_##bits, stki_u##bits, stki_u##bits, (wide)p *(wide)q)
WRAPPING(8, uint32_t)
WRAPPING(16, uint32_t)
WRAPPING(32, uint32_t)
WRAPPING(64, uint64_t)

LOOPS(or, stki_u8, stki_u8, p | q)
LOOPS(and, stki_u8, stki_u8, p &q)

#define REAL(name)                                     \
    LOOPS(add_##name, stki_##name, stki_##name, p + q) \
    LOOPS(sub_##name, stki_##name, stki_##name, p - q) \
    LOOPS(mul_##name, stki_##name, stki_##name, p *q)  \
    LOOPS(div_##name, stki_##name, stki_##name, p / q)
REAL(f32)
REAL(f64)

#define EQUALITY(name)                             \
    LOOPS(eq_##name, stki_u8, stki_##name, p == q) \
    LOOPS(ne_##name, stki_u8, stki_##name, p != q)
EQUALITY(u8)
EQUALITY(u16)
EQUALITY(u32)
EQUALITY(u64)
EQUALITY(f32)
EQUALITY(f64)

#define ORDER(name)                                \
    LOOPS(lt_##name, stki_u8, stki_##name, p < q)  \
    LOOPS(le_##name, stki_u8, stki_##name, p <= q) \
    CLAMP(name)
/* A NaN element fails both comparisons and is kept; a NaN bound becomes the result. */
#define CLAMP(name)                                                              \
    static void clamp_##name(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                            \
        stki_##name *to = dst;                                                   \
        const stki_##name *from = a, *bounds = b;                                \
        stki_##name low = bounds[0], high = bounds[1];                           \
        STKI_NO_OVERLAP                                                          \
        for (int64_t i = 0; i < n; i++) {                                        \
            stki_##name x = from[i];                                             \
            x = x < low || low != low ? low : x;                                 \
            to[i] = x > high || high != high ? high : x;                         \
        }                                                                        \
    }
ORDER(u8)
ORDER(i8)
ORDER(u16)
ORDER(i16)
ORDER(u32)
ORDER(i32)
ORDER(u64)
ORDER(i64)
ORDER(f32)
ORDER(f64)

#define ROW(name)                                     \
    {                                                 \
        name##_both, name##_with_one, name##_one_with \
    }
#define ROWS_BY_WIDTH(op)                                                                                   \
    [STK_U8] = ROW(op##_8), [STK_I8] = ROW(op##_8), [STK_U16] = ROW(op##_16), [STK_I16] = ROW(op##_16),     \
    [STK_U32] = ROW(op##_32), [STK_I32] = ROW(op##_32), [STK_U64] = ROW(op##_64), [STK_I64] = ROW(op##_64), \
    [STK_F32] = ROW(op##_f32), [STK_F64] = ROW(op##_f64)
#define ROWS_EQUALITY(op)                                                                                       \
    [STK_BOOL] = ROW(op##_u8), [STK_U8] = ROW(op##_u8), [STK_I8] = ROW(op##_u8), [STK_U16] = ROW(op##_u16),     \
    [STK_I16] = ROW(op##_u16), [STK_U32] = ROW(op##_u32), [STK_I32] = ROW(op##_u32), [STK_U64] = ROW(op##_u64), \
    [STK_I64] = ROW(op##_u64), [STK_F32] = ROW(op##_f32), [STK_F64] = ROW(op##_f64)
#define ROWS_ORDER(op, row)                                                                                     \
    [STK_BOOL] = row(op##_u8), [STK_U8] = row(op##_u8), [STK_I8] = row(op##_i8), [STK_U16] = row(op##_u16),     \
    [STK_I16] = row(op##_i16), [STK_U32] = row(op##_u32), [STK_I32] = row(op##_i32), [STK_U64] = row(op##_u64), \
    [STK_I64] = row(op##_i64), [STK_F32] = row(op##_f32), [STK_F64] = row(op##_f64)
#define ROW_CLAMP(name)  \
    {                    \
        .with_one = name \
    }

#define STKI_LOOPS_BODY                                                                                               \
    {                                                                                                                 \
        [STKI_LOOP_ADD] = {[STK_BOOL] = ROW(or), ROWS_BY_WIDTH(add)}, [STKI_LOOP_SUB] = {ROWS_BY_WIDTH(sub)},         \
        [STKI_LOOP_MUL] = {[STK_BOOL] = ROW(and), ROWS_BY_WIDTH(mul)},                                                \
        [STKI_LOOP_DIV] = {[STK_F32] = ROW(div_f32), [STK_F64] = ROW(div_f64)}, [STKI_LOOP_EQ] = {ROWS_EQUALITY(eq)}, \
        [STKI_LOOP_NE] = {ROWS_EQUALITY(ne)}, [STKI_LOOP_LT] = {ROWS_ORDER(lt, ROW)},                                 \
        [STKI_LOOP_LE] = {ROWS_ORDER(le, ROW)}, [STKI_LOOP_CLAMP] = {ROWS_ORDER(clamp, ROW_CLAMP)},                   \
    }
