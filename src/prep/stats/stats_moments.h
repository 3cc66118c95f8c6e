/* stats_moments.h: count, minimum, maximum, sum and sum of squares of a channel's elements, run by run. Runs depend
 * only on positions, the result of each is computed in a fixed order, and totals are exact sums (exact_sum.h), so
 * merging in any order gives the same bits.
 *
 * A run of n floats adds n p + Σ d to the sum and n p^2 + 2 p Σ d + Σ d^2 to the sum of squares, where d = x - p and p
 * is the mean of the run's first elements (shifted data: Chan, Golub and LeVeque, Algorithms for computing the sample
 * variance, The American Statistician 37, 1983, section 3). Only the two sums of small d are rounded; large numbers are
 * subtracted only in the exact totals, from which the variance is computed. An outlier among the first elements is
 * harmless, because it dominates the variance anyway. Integers are added unchanged. */
#ifndef STKI_STATS_MOMENTS_H
#define STKI_STATS_MOMENTS_H

#include "exact_sum.h"
#include "stats_loops.h"

typedef struct stki_moments {
    int64_t count; /* finite elements */
    int64_t nan, infinite[2] /* negative, positive */, zeros;
    double min, max;       /* floats; undefined while count is 0 */
    stki_i128 least, most; /* integers */
    stki_exact sum, squares;
} stki_moments;

/* The results. */
typedef struct stki_numbers {
    int64_t count, nan, infinite[2], zeros;
    bool whole;      /* least and most are exact; min and max are rounded */
    double min, max; /* these and the following members are only valid if count > 0 */
    stki_i128 least, most;
    double mean, std; /* of the population: divided by count */
} stki_numbers;

/* Buffer for a run's finite elements. */
typedef struct stki_run_room {
    double value[STKI_RUN];
} stki_run_room;

/* Adds at most STKI_RUN contiguous elements: f32, f64, or 32-bit or 64-bit integers. *finite and *finite_count: the
 * counted elements, in `x` or (only for floats, if some are not finite) in `room`, with the same dtype. */
void stki_moments_add(stki_moments *moments, const stki_stats_loops *loops, stk_dtype dtype, const void *x, int64_t n,
                      stki_run_room *room, const void **finite, int64_t *finite_count);
void stki_moments_merge(stki_moments *into, const stki_moments *from);
/* Adds `count` elements of this finite value. */
void stki_moments_add_value(stki_moments *moments, double value, int64_t count);
void stki_moments_numbers(const stki_moments *moments, bool whole, stki_numbers *out);

#endif
