/* loadbench_statistics.c: medians and spread. The median, because one disturbed repeat must not move the figure. */
#include "loadbench_statistics.h"
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lb_ratio(double part, double whole)
{
    return whole > 0 || whole < 0 ? part / whole : 0;
}

struct lb_summary lb_summarise(double *values, int count)
{
    struct lb_summary summary = {0};

    if (count < 1)
        return summary;
    qsort(values, (size_t)count, sizeof *values, compare);
    summary.low = values[0];
    summary.high = values[count - 1];
    summary.median = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    summary.spread_percent = 100 * lb_ratio(summary.high - summary.low, summary.median);
    return summary;
}
