/* scalar.h: a number with its kind, used for elements of tensors and for scalar operands. */
#ifndef STOKER_SCALAR_H
#define STOKER_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_scalar_kind {
    STK_SCALAR_BOOL = 0,   /* a bool, in `b` */
    STK_SCALAR_INT = 1,    /* an integer, in `i` */
    STK_SCALAR_UINT = 2,   /* an integer, in `u`: for u64 values above INT64_MAX */
    STK_SCALAR_REAL = 3,   /* a real number, in `f` */
    STK_SCALAR_COMPLEX = 4 /* a complex number, in `c`: the real part, then the imaginary part */
} stk_scalar_kind;

typedef struct stk_scalar {
    stk_scalar_kind kind;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        double c[2];
    } as;
} stk_scalar;

static inline stk_scalar stk_bool(bool value)
{
    stk_scalar scalar;
    scalar.kind = STK_SCALAR_BOOL;
    scalar.as.b = value;
    return scalar;
}

static inline stk_scalar stk_int(int64_t value)
{
    stk_scalar scalar;
    scalar.kind = STK_SCALAR_INT;
    scalar.as.i = value;
    return scalar;
}

static inline stk_scalar stk_uint(uint64_t value)
{
    stk_scalar scalar;
    scalar.kind = STK_SCALAR_UINT;
    scalar.as.u = value;
    return scalar;
}

static inline stk_scalar stk_real(double value)
{
    stk_scalar scalar;
    scalar.kind = STK_SCALAR_REAL;
    scalar.as.f = value;
    return scalar;
}

static inline stk_scalar stk_complex(double real, double imaginary)
{
    stk_scalar scalar;
    scalar.kind = STK_SCALAR_COMPLEX;
    scalar.as.c[0] = real;
    scalar.as.c[1] = imaginary;
    return scalar;
}

#ifdef __cplusplus
}
#endif
#endif
