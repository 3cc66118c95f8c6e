/* loadbench_accelerators.h: --accelerators measures how many accelerators this machine can feed. N emulated
 * accelerators run at once, each with its own loader as rank r of N. A search finds the largest N whose mean
 * utilization passes. */
#ifndef LOADBENCH_ACCELERATORS_H
#define LOADBENCH_ACCELERATORS_H

#include "loadbench_config.h"
#include "loadbench_require.h"
#include <stdio.h>

enum { LB_ACCELERATORS_MOST = 1024, LB_ACCELERATORS_SEARCH = 0 };

/* The measurement of one number of accelerators. */
struct lb_feed {
    int accelerators;
    double mean, least; /* mean and minimum utilization over the accelerators, 0 to 1 */
    double samples_per_s;
    int64_t workers;         /* workers of one loader; 0: inline */
    int64_t steps;           /* sum over the accelerators */
    double rows, batch_size; /* mean rows per batch; configured batch size, 0: unknown */
    bool passed;
    bool cut; /* stopped by a signal; the figures are partial */
};

/* Measures one number of accelerators for the search, which ignores an interrupted measurement. STK_E_EMPTY: the data
 * has too few batches for that many accelerators. */
typedef stk_status (*lb_feed_try)(void *context, int accelerators, struct lb_feed *out, stk_error *err);

struct lb_feed_search {
    struct lb_feed tries[64]; /* in order of execution */
    int count;
    int passed, failed; /* largest that passed and smallest that failed; 0: none */
    bool searches;      /* false: a fixed number was requested */
    bool data_end;      /* the data is too small for more accelerators */
};

/* Doubles the number until one fails, then bisects. Assumes that utilization does not rise with more accelerators.
 * `most` is the upper limit. */
stk_status lb_feed_search(lb_feed_try try_one, void *context, int most, struct lb_feed_search *out, stk_error *err);

/* Measures `count` accelerators, or searches if `count` is LB_ACCELERATORS_SEARCH, and prints the result. Sets *passed
 * if that number passes (search: if any number does) and all requirements hold. STK_E_CONFIG: an option does not apply,
 * no step time is set, or the result will not have a required figure. */
stk_status lb_accelerators(const struct lb_config *config, int count, const struct lb_require *each, int require_count,
                           bool json, FILE *to, bool *passed, stk_error *err);

#endif
