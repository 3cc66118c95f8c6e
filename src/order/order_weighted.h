/* order_weighted.h: `order: weighted`. Samples are drawn with replacement, each in proportion to its weight: position p
 * of an epoch takes 64 bits of Philox, keyed by seed and epoch, with p as the counter. Their product with n says in its
 * upper half a column of an alias table (Vose's method), and in its lower half whether the column's own sample or its
 * alias is meant. 8 bytes a sample, random access, O(1). A sample of weight 0 is never drawn; a probability is met
 * within 2^-32 of a column. Any thread. */
#ifndef STKI_ORDER_WEIGHTED_H
#define STKI_ORDER_WEIGHTED_H

#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_weighted stki_weighted;

/* `indices` (NULL: all, in order): the samples that may be drawn, `n` of them; weights[sample] of each. STK_E_RANGE: a
 * weight that is negative or not finite, or nothing but zeros, naming the sample. */
stk_status stki_weighted_create(const double *weights, const int64_t *indices, int64_t n, uint64_t seed,
                                stki_weighted **out, stk_error *err);
void stki_weighted_destroy(stki_weighted *weighted); /* NULL is fine */
/* out[i]: the place in [0, n) that is drawn at position first + i. */
void stki_weighted_run(const stki_weighted *weighted, int64_t epoch, int64_t first, int64_t count, uint64_t *out);

#endif
