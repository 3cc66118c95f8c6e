/* kernel_binary.h: element-wise operations with two operands, and clamp, with the same promotion as on the CPU: each
 * operand is cast to the common dtype, then to the compute dtype (f32 for halves); the result is cast back the same
 * way. Broadcast operands have strides of 0; a scalar is passed in the arguments.
 *
 *     linear  any dtypes, any strides
 *     runs    all operands of one dtype and contiguous (or scalars): 16 bytes at a time
 */
#ifndef STKI_KERNEL_BINARY_H
#define STKI_KERNEL_BINARY_H

#include "floor_division.h"
#include "kernel_runs.h"

/* The operations, numbered as enum stki_loop. */
enum stki_binary_kind {
    STKI_BINARY_ADD,
    STKI_BINARY_SUB,
    STKI_BINARY_MUL,
    STKI_BINARY_DIV,
    STKI_BINARY_FLOOR_DIV,
    STKI_BINARY_TRUNC_DIV,
    STKI_BINARY_EQ,
    STKI_BINARY_NE,
    STKI_BINARY_LT,
    STKI_BINARY_LE,
    STKI_BINARY_CLAMP,
    STKI_BINARY_KINDS
};

enum { STKI_BINARY_EACH = 2 };

typedef struct stki_binary_args {
    uint8_t *out;
    const uint8_t *in[2]; /* NULL: `constant`, in the compute dtype */
    uint64_t constant[2];
    uint64_t high; /* clamp: constant[1] is the lower bound */
    uint64_t count;
    int32_t loop;
    int32_t in_dtype[2], common, compute, writes, result, out_dtype;
    stki_nest nest; /* sides: out, in[0], in[1] */
} stki_binary_args;

/* ---- integers ---- */

/* Sums, differences and products have the same low bits for signed and unsigned operands. The smallest integer divided
 * by -1 wraps. */
STKI_KERNEL_FN int64_t stki_binary_divide(int64_t p, int64_t q, int floored)
{
    int64_t quotient;

    if (q == -1)
        return (int64_t)(0 - (uint64_t)p);
    if (q == 0) /* not reached: the caller checks divisors */
        return 0;
    quotient = p / q;
    return floored && p % q != 0 && (p < 0) != (q < 0) ? quotient - 1 : quotient;
}

STKI_KERNEL_FN uint64_t stki_binary_signed(int loop, int64_t p, int64_t q, int64_t high)
{
    int64_t x;

    switch (loop) {
    case STKI_BINARY_ADD:
        return (uint64_t)p + (uint64_t)q;
    case STKI_BINARY_SUB:
        return (uint64_t)p - (uint64_t)q;
    case STKI_BINARY_MUL:
        return (uint64_t)p * (uint64_t)q;
    case STKI_BINARY_FLOOR_DIV:
        return (uint64_t)stki_binary_divide(p, q, 1);
    case STKI_BINARY_TRUNC_DIV:
        return (uint64_t)stki_binary_divide(p, q, 0);
    case STKI_BINARY_EQ:
        return p == q;
    case STKI_BINARY_NE:
        return p != q;
    case STKI_BINARY_LT:
        return p < q;
    case STKI_BINARY_LE:
        return p <= q;
    default: /* clamp */
        x = p < q ? q : p;
        return (uint64_t)(x > high ? high : x);
    }
}

/* For u64, whose order and quotients differ from those of i64. */
STKI_KERNEL_FN uint64_t stki_binary_unsigned(int loop, uint64_t p, uint64_t q, uint64_t high)
{
    uint64_t x;

    switch (loop) {
    case STKI_BINARY_FLOOR_DIV:
    case STKI_BINARY_TRUNC_DIV:
        return q ? p / q : 0;
    case STKI_BINARY_LT:
        return p < q;
    case STKI_BINARY_LE:
        return p <= q;
    case STKI_BINARY_CLAMP:
        x = p < q ? q : p;
        return x > high ? high : x;
    default:
        return stki_binary_signed(loop, (int64_t)p, (int64_t)q, 0);
    }
}

/* ---- floats ---- */

#define STKI_BINARY_REAL(real, fmod_fn, floor_fn, trunc_fn, copysign_fn)                                \
    STKI_FLOOR_DIVISION(STKI_KERNEL_FN, stki_binary_floor_##real, real, fmod_fn, floor_fn, copysign_fn) \
    /* A NaN element fails both comparisons and is kept; a NaN bound becomes the result. */             \
    STKI_KERNEL_FN real stki_binary_clamp_##real(real x, real low, real high)                           \
    {                                                                                                   \
        x = x < low || low != low ? low : x;                                                            \
        return x > high || high != high ? high : x;                                                     \
    }                                                                                                   \
    STKI_KERNEL_FN real stki_binary_##real(int loop, real p, real q, real high)                         \
    {                                                                                                   \
        switch (loop) {                                                                                 \
        case STKI_BINARY_ADD:                                                                           \
            return p + q;                                                                               \
        case STKI_BINARY_SUB:                                                                           \
            return p - q;                                                                               \
        case STKI_BINARY_MUL:                                                                           \
            return p * q;                                                                               \
        case STKI_BINARY_DIV:                                                                           \
            return p / q;                                                                               \
        case STKI_BINARY_FLOOR_DIV:                                                                     \
            return stki_binary_floor_##real(p, q);                                                      \
        case STKI_BINARY_TRUNC_DIV:                                                                     \
            return trunc_fn(p / q);                                                                     \
        default:                                                                                        \
            return stki_binary_clamp_##real(p, q, high);                                                \
        }                                                                                               \
    }                                                                                                   \
    STKI_KERNEL_FN uint64_t stki_binary_compare_##real(int loop, real p, real q)                        \
    {                                                                                                   \
        return loop == STKI_BINARY_EQ   ? p == q                                                        \
               : loop == STKI_BINARY_NE ? p != q                                                        \
               : loop == STKI_BINARY_LT ? p < q                                                         \
                                        : p <= q;                                                       \
    }
STKI_BINARY_REAL(float, fmodf, floorf, truncf, copysignf)
STKI_BINARY_REAL(double, fmod, floor, trunc, copysign)

STKI_KERNEL_FN int stki_binary_compares(int loop)
{
    return loop >= STKI_BINARY_EQ && loop <= STKI_BINARY_LE;
}

/* ---- one element ---- */

/* Operands and result are elements of the compute dtype; the result of a comparison is a bool. */
STKI_KERNEL_FN uint64_t stki_binary_element(int loop, int compute, uint64_t p, uint64_t q, uint64_t high)
{
    if (compute == STK_F32) {
        float x = stki_f32_of_bits((uint32_t)p), y = stki_f32_of_bits((uint32_t)q);
        if (stki_binary_compares(loop))
            return stki_binary_compare_float(loop, x, y);
        return stki_f32_bits(stki_binary_float(loop, x, y, stki_f32_of_bits((uint32_t)high)));
    }
    if (compute == STK_F64) {
        double x = stki_f64_of_bits(p), y = stki_f64_of_bits(q);
        if (stki_binary_compares(loop))
            return stki_binary_compare_double(loop, x, y);
        return stki_f64_bits(stki_binary_double(loop, x, y, stki_f64_of_bits(high)));
    }
    if (compute == STK_BOOL && loop == STKI_BINARY_ADD)
        return p | q;
    if (compute == STK_BOOL && loop == STKI_BINARY_MUL)
        return p & q;
    p = stki_kernel_widen(compute, p);
    q = stki_kernel_widen(compute, q);
    high = stki_kernel_widen(compute, high);
    if (compute == STK_U64)
        return stki_binary_unsigned(loop, p, q, high);
    return stki_binary_signed(loop, (int64_t)p, (int64_t)q, (int64_t)high);
}

/* ---- linear ---- */

STKI_KERNEL_FN uint64_t stki_binary_operand(const stki_binary_args *args, int k, uint64_t bits)
{
    if (!args->in[k])
        return args->constant[k];
    return stki_kernel_cast(args->compute, args->common, stki_kernel_cast(args->common, args->in_dtype[k], bits));
}

STKI_KERNEL_FN void stki_binary_linear(const stki_binary_args *args, stki_spot spot)
{
    const uint64_t first = (uint64_t)spot.block * (STKI_BLOCK_THREADS * STKI_BINARY_EACH) + spot.thread;
    stki_offsets at[STKI_BINARY_EACH];
    uint64_t bits[STKI_BINARY_EACH][2];

    STKI_UNROLL
    for (int i = 0; i < STKI_BINARY_EACH; i++) {
        uint64_t index = first + (uint64_t)i * STKI_BLOCK_THREADS;
        bits[i][0] = bits[i][1] = 0;
        if (index >= args->count)
            break;
        at[i] = stki_nest_at(&args->nest, 0, index, STKI_KERNEL_SIDES);
        for (int k = 0; k < 2; k++)
            if (args->in[k])
                bits[i][k] = stki_load_bits(args->in[k] + at[i].side[k + 1], stki_kernel_size(args->in_dtype[k]));
    }
    STKI_UNROLL
    for (int i = 0; i < STKI_BINARY_EACH; i++) {
        uint64_t result;
        if (first + (uint64_t)i * STKI_BLOCK_THREADS >= args->count)
            break;
        result = stki_binary_element(args->loop, args->compute, stki_binary_operand(args, 0, bits[i][0]),
                                     stki_binary_operand(args, 1, bits[i][1]), args->high);
        result = stki_kernel_cast(args->out_dtype, args->result, stki_kernel_cast(args->result, args->writes, result));
        stki_store_bits(args->out + at[i].side[0], result, stki_kernel_size(args->out_dtype));
    }
}

/* ---- runs ---- */

/* Loads element i of 16 bytes of f32, f16 or bf16 in the compute dtype. */
STKI_KERNEL_FN float stki_binary_get(int dtype, const stki_words *words, int i)
{
    return stki_kernel_load(dtype, stki_strip_get(words, stki_kernel_size(dtype), i));
}

/* `dtype` (f32, f16, bf16) is a compile-time constant. Whole strips are computed at once, the last elements one by one.
 */
STKI_KERNEL_FN void stki_binary_runs(const stki_binary_args *args, int dtype, stki_spot spot)
{
    const int size = stki_kernel_size(dtype), elements = 16 / size;
    const uint64_t first = ((uint64_t)spot.block * STKI_BLOCK_THREADS + spot.thread) * (uint64_t)elements;
    const float high = stki_f32_of_bits((uint32_t)args->high);
    const int loop = args->loop;
    stki_words in[2];
    stki_levels none;
    float y[8];

    none.zero_point = none.low = none.high = 0;
    if (first >= args->count)
        return;
    if (first + (uint64_t)elements > args->count) {
        for (uint64_t i = first; i < args->count; i++) {
            float p[2];
            for (int k = 0; k < 2; k++)
                p[k] = args->in[k] ? stki_kernel_load(dtype, stki_load_bits(args->in[k] + i * (uint64_t)size, size))
                                   : stki_f32_of_bits((uint32_t)args->constant[k]);
            stki_store_bits(args->out + i * (uint64_t)size,
                            stki_kernel_encode(dtype, stki_binary_float(loop, p[0], p[1], high)), size);
        }
        return;
    }
    for (int k = 0; k < 2; k++)
        if (args->in[k])
            in[k] = stki_load_words(args->in[k] + first * (uint64_t)size);
    STKI_UNROLL
    for (int i = 0; i < 8; i++) {
        if (i >= elements)
            break;
        const float p = args->in[0] ? stki_binary_get(dtype, &in[0], i) : stki_f32_of_bits((uint32_t)args->constant[0]);
        const float q = args->in[1] ? stki_binary_get(dtype, &in[1], i) : stki_f32_of_bits((uint32_t)args->constant[1]);
        y[i] = stki_binary_float(loop, p, q, high);
    }
    stki_store_words(args->out + first * (uint64_t)size, stki_strip_pack(dtype, none, 0, y, elements));
}

#endif
