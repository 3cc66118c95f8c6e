/* loadbench_statistics.h: what several repeats of one measurement come to. */
#ifndef LOADBENCH_STATISTICS_H
#define LOADBENCH_STATISTICS_H

struct lb_summary {
    double median, low, high;
    double spread_percent; /* (high - low) / median; 0 where the median is 0 */
};

/* Sorts the values. count 0: all zero. */
struct lb_summary lb_summarise(double *values, int count);
/* part / whole, and 0 where there is no whole. */
double lb_ratio(double part, double whole);

#endif
