/* loadbench_statistics.h: what several repeats of one measurement come to. */
#ifndef LOADBENCH_STATISTICS_H
#define LOADBENCH_STATISTICS_H

#include <stdbool.h>

struct lb_summary {
    double median, low, high;
    double spread_percent; /* (high - low) / median; 0 where the median is 0 */
};

/* Sorts the values. count 0: all zero. */
struct lb_summary lb_summarise(double *values, int count);
/* part / whole, and 0 where there is no whole. */
double lb_ratio(double part, double whole);

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
