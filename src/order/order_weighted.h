/* order_weighted.h: `order: weighted`. Samples are drawn with replacement in proportion to their weights. Position p of
 * an epoch uses 64 bits of Philox, keyed by seed and epoch, with p as the counter. The upper half of their product with
 * n selects a column of an alias table (Vose's method), the lower half decides between the column's own sample and its
 * alias. 8 bytes per sample, random access, O(1). A sample with weight 0 is never drawn; probabilities are accurate to
 * 2^-32 of a column. Thread-safe. */
#ifndef STKI_ORDER_WEIGHTED_H
#define STKI_ORDER_WEIGHTED_H

#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_weighted stki_weighted;

/* `indices` (NULL: all, in order): the `n` samples that may be drawn; weights[sample] is the weight of each.
 * STK_E_RANGE: a weight is negative or not finite (the sample is named), or all are 0. */
stk_status stki_weighted_create(const double *weights, const int64_t *indices, int64_t n, uint64_t seed,
                                stki_weighted **out, stk_error *err);
void stki_weighted_destroy(stki_weighted *weighted); /* NULL is allowed. */
/* out[i]: the index in [0, n) drawn at position first + i. */
void stki_weighted_run(const stki_weighted *weighted, int64_t epoch, int64_t first, int64_t count, uint64_t *out);

#endif
