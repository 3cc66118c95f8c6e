/* ops_softmax.h: log-softmax of one row of scores, in f64, read block by block from any dtype and stride. */
#ifndef STKI_OPS_SOFTMAX_H
#define STKI_OPS_SOFTMAX_H

#include "cast.h"

enum { STKI_SOFTMAX_BLOCK = 256 };

typedef struct stki_scores {
    const char *data;
    int64_t step, count;
    int64_t size;
    stki_cast cast; /* to f64 */
    /* set by stki_scores_measure: log-softmax of x is (x - largest) - log_sum */
    double largest, log_sum;
} stki_scores;

void stki_scores_init(stki_scores *scores, stk_dtype dtype, int64_t count, int64_t step);
/* A NaN, a positive infinity, or a row of only -infinity makes all results NaN. */
void stki_scores_measure(stki_scores *scores, const void *data);
/* Computes `n` results starting at `first`; n <= STKI_SOFTMAX_BLOCK. */
void stki_scores_log_softmax(const stki_scores *scores, double *out, int64_t first, int64_t n);

#endif
