/* loadbench_bootstrap.h: how sure a ratio of two medians is. */
#ifndef LOADBENCH_BOOTSTRAP_H
#define LOADBENCH_BOOTSTRAP_H

#include <stdbool.h>

enum { LB_BOOTSTRAP_VALUES = 1000 };

struct lb_ratio_interval {
    double ratio;     /* median of `now` to median of `before` */
    double low, high; /* of 95 % */
    bool known;       /* both sides have several values, and no median is 0 */
};

/* Percentile bootstrap: both sides are drawn again from their own values, with repetition, and the ratio of medians is
 * taken, ten thousand times; the interval holds all but the lowest and the highest 2.5 % of them (Efron and Tibshirani,
 * An Introduction to the Bootstrap, chapter 13). The draws are the same each time. */
struct lb_ratio_interval lb_bootstrap(const double *before, int before_count, const double *now, int now_count);

#endif
