/* loadbench_statistics.h: summary statistics over repeats. */
#ifndef LOADBENCH_STATISTICS_H
#define LOADBENCH_STATISTICS_H

#include <stdbool.h>

struct lb_summary {
    double median, low, high;
    double spread_percent; /* (high - low) / median; 0 if the median is 0 */
};

/* Summarizes the values, which it sorts. All zero if count is 0. */
struct lb_summary lb_summarize(double *values, int count);
/* part / whole, or 0 if whole is 0. */
double lb_ratio(double part, double whole);

enum { LB_BOOTSTRAP_VALUES = 1000 };

struct lb_ratio_interval {
    double ratio;     /* median of `now` to median of `before` */
    double low, high; /* 95 % confidence interval */
    bool known;       /* both sides have several values and nonzero medians */
};

/* Percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13): both sides are resampled
 * with replacement ten thousand times, and the interval cuts 2.5 % of the ratios of medians at each end. The seed is
 * fixed. */
struct lb_ratio_interval lb_bootstrap(const double *before, int before_count, const double *now, int now_count);

#endif
