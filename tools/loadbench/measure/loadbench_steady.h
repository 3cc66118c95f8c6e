/* loadbench_steady.h: whether the rate was steady while it was measured. A line is fitted to the rates of the
 * intervals; the trend is its change from the first to the last interval, as a percentage of the mean rate. */
#ifndef LOADBENCH_STEADY_H
#define LOADBENCH_STEADY_H

#include "loadbench_marks.h"

enum lb_steadiness {
    LB_STEADY_UNKNOWN, /* fewer than LB_STEADY_LEAST intervals */
    LB_STEADY_SETTLED, /* trend and its error are within LB_STEADY_TREND */
    LB_STEADY_DRIFTS,  /* the trend exceeds LB_STEADY_TREND and its error */
    LB_STEADY_NOISY    /* the error of the trend is too large to decide */
};

enum { LB_STEADY_LEAST = 8 };
#define LB_STEADY_TREND 5.0 /* percent */

struct lb_steady {
    enum lb_steadiness kind;
    int intervals;
    double trend_percent;
    double error_percent;   /* error of the trend: two standard errors */
    double scatter_percent; /* standard deviation of the rates, relative to their mean */
    double settled_after_s; /* LB_STEADY_DRIFTS: if this many seconds are excluded at the start, the rest is settled;
                               -1: never */
};

/* `count` rates and their times in seconds, ascending. */
struct lb_steady lb_steady_judge(const double *at_s, const double *rates, int count);
/* Judges the intervals of a repeat, starting at mark `first`; first < 0: no intervals. */
struct lb_steady lb_steady_of(const struct lb_marks *marks, int first);
/* Text such as "from start to end, the rate changed by -3.1 % of its mean (+- 2.0); intervals vary by 4.0 %". The
 * change can exceed -100 %: it is relative to the mean, not to the start. */
void lb_steady_text(const struct lb_steady *steady, char *out, int size);
/* "settled", "drifts", "noisy", "unknown" */
extern const char *const lb_steady_words[];

#endif
