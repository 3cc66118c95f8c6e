/* loadbench_steady.h: had the rate settled while it was measured? A line is fitted through the rates of the intervals;
 * what it rises or falls by from the first to the last of them, as a share of their mean, is the trend. */
#ifndef LOADBENCH_STEADY_H
#define LOADBENCH_STEADY_H

#include "loadbench_marks.h"

enum lb_steadiness {
    LB_STEADY_UNKNOWN, /* fewer than LB_STEADY_LEAST intervals */
    LB_STEADY_SETTLED, /* the trend is within LB_STEADY_TREND, and known that well */
    LB_STEADY_DRIFTS,  /* it is larger than that, and larger than chance makes it */
    LB_STEADY_NOISY    /* the rates scatter so much that it cannot be told */
};

enum { LB_STEADY_LEAST = 8 };
#define LB_STEADY_TREND 5.0 /* percent */

struct lb_steady {
    enum lb_steadiness kind;
    int intervals;
    double trend_percent;
    double error_percent;   /* of the trend: two standard errors */
    double scatter_percent; /* standard deviation of the rates, of their mean */
    double settled_after_s; /* drifts: leaving out so much of the beginning, the rest has settled; -1: it never did */
};

/* Rates at `count` moments, in seconds, in order. */
struct lb_steady lb_steady_judge(const double *at_s, const double *rates, int count);
/* Of the intervals of a repeat from mark `first` on; < 0: of none. */
struct lb_steady lb_steady_of(const struct lb_marks *marks, int first);
/* How the rate changed, in words: "from its beginning to its end the rate changed by -3.1 % of its mean (+- 2.0),
 * intervals scatter by 4.0 %". A fall by more than the mean is one from far above it to next to nothing. */
void lb_steady_text(const struct lb_steady *steady, char *out, int size);
/* "settled", "drifts", "noisy", "unknown" */
extern const char *const lb_steady_words[];

#endif
