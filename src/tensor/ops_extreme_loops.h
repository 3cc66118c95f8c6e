/* ops_extreme_loops.h: the inner loops of minimum and maximum. A NaN beats every number. */
#ifndef STKI_OPS_EXTREME_LOOPS_H
#define STKI_OPS_EXTREME_LOOPS_H

#include "convert.h"

typedef struct stki_extreme_loops {
    /* best[0] = the extreme of itself and `n` adjacent elements. */
    void (*row)(void *best, const void *x, int64_t n);
    /* best[j] = the extreme of itself and x[j]. */
    void (*columns)(void *best, const void *x, int64_t n);
    /* The first index of `value` (of any NaN if it is one) among contiguous elements; -1: not found. */
    int64_t (*find)(const void *value, const void *x, int64_t n);
    /* If x[j] beats best[j], replaces it and sets index[j] to `at`. */
    void (*columns_at)(void *best, int64_t *index, const void *x, int64_t n, int64_t at);
    bool (*beats)(const void *x, const void *best);
} stki_extreme_loops;

/* NULL for f16 and bf16. */
const stki_extreme_loops *stki_extreme_loops_of(enum stki_isa isa, stk_dtype dtype, bool largest);
/* Fills `count` elements with the value that every element beats or equals. */
void stki_extreme_fill(void *best, stk_dtype dtype, bool largest, int64_t count);

extern const stki_extreme_loops stki_extreme_loops_ref[2][STK_DTYPE_END];
extern const stki_extreme_loops stki_extreme_loops_avx2[2][STK_DTYPE_END];
extern const stki_extreme_loops stki_extreme_loops_avx512[2][STK_DTYPE_END];

#endif
