/* ops_loops.h: the inner loops of element-wise operations, over contiguous elements of one dtype. No alignment is
 * required. The output may be one of the inputs. All variants of stki_isa produce bit-identical results. */
#ifndef STKI_OPS_LOOPS_H
#define STKI_OPS_LOOPS_H

#include "convert.h"

enum stki_loop {
    STKI_LOOP_ADD, /* bool: or */
    STKI_LOOP_SUB,
    STKI_LOOP_MUL, /* bool: and */
    STKI_LOOP_DIV, /* f32, f64 */
    STKI_LOOP_FLOOR_DIV,
    STKI_LOOP_TRUNC_DIV,
    STKI_LOOP_EQ, /* the comparisons write bool */
    STKI_LOOP_NE,
    STKI_LOOP_LT,
    STKI_LOOP_LE,
    STKI_LOOP_CLAMP, /* only with_one; b points to two values: low, high */
    STKI_LOOPS
};

/* `n` elements. */
typedef void (*stki_loop_fn)(void *dst, const void *a, const void *b, int64_t n);

typedef struct stki_loops {
    stki_loop_fn both;     /* a[i] op b[i] */
    stki_loop_fn with_one; /* a[i] op b[0] */
    stki_loop_fn one_with; /* a[0] op b[i] */
} stki_loops;

/* NULL: the operation does not exist for that dtype. f16 and bf16 have none, because they are computed in f32. */
const stki_loops *stki_loops_find(enum stki_isa isa, enum stki_loop loop, stk_dtype dtype);

/* The variants; for an entry without functions, another variant is used. */
extern const stki_loops stki_loops_ref[STKI_LOOPS][STK_DTYPE_END];
extern const stki_loops stki_loops_avx2[STKI_LOOPS][STK_DTYPE_END];
extern const stki_loops stki_loops_avx512[STKI_LOOPS][STK_DTYPE_END];

#endif
