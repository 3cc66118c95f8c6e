/* stats_moments.h: count, smallest, largest, sum and sum of squares of a channel's elements, run by run. Runs are cut
 * by position, what each comes to is worked out in one fixed way, and the totals are exact sums (exact_sum.h): so they
 * merge in any order to the same bits.
 *
 * A run of n floats adds n p + Σ d to the sum and n p^2 + 2 p Σ d + Σ d^2 to the sum of squares, d being x - p and p
 * the mean of the run's first elements (shifted data: Chan, Golub and LeVeque, Algorithms for computing the sample
 * variance, The American Statistician 37, 1983, section 3). Only the two sums of small d are rounded: nothing large is
 * ever taken from something large but in the exact totals, of which the variance is formed. An element far from the
 * others that is among the first does no harm, since the variance is then mostly its own. Whole numbers are added as
 * they are.
 */
#ifndef STKI_STATS_MOMENTS_H
#define STKI_STATS_MOMENTS_H

#include "exact_sum.h"
#include "stats_loops.h"

typedef struct stki_moments {
    int64_t count; /* finite elements */
    int64_t nan, infinite[2] /* negative, positive */, zeros;
    double min, max;       /* floats; meaningless while count is 0 */
    stki_i128 least, most; /* whole numbers */
    stki_exact sum, squares;
} stki_moments;

/* What they come to. */
typedef struct stki_numbers {
    int64_t count, nan, infinite[2], zeros;
    bool whole;      /* least and most say what min and max round */
    double min, max; /* these and the next two only where count > 0 */
    stki_i128 least, most;
    double mean, std; /* of the population: divided by count */
} stki_numbers;

/* Room for a run's finite elements as doubles. */
typedef struct stki_run_room {
    double value[STKI_RUN];
} stki_run_room;

/* At most STKI_RUN adjacent elements of f32, f64 or whole numbers of 32 or 64 bits. *finite and *finite_count: those
 * that were counted, in `x` or (only floats, and only where some were not finite) in `room`, of the same dtype. */
void stki_moments_add(stki_moments *moments, const stki_stats_loops *loops, stk_dtype dtype, const void *x, int64_t n,
                      stki_run_room *room, const void **finite, int64_t *finite_count);
void stki_moments_merge(stki_moments *into, const stki_moments *from);
/* `count` elements of this finite value. */
void stki_moments_add_value(stki_moments *moments, double value, int64_t count);
void stki_moments_numbers(const stki_moments *moments, bool whole, stki_numbers *out);

#endif
