/* loadbench_accelerators.h: how many accelerators can this machine feed? N emulated ones run side by side, each with a
 * loader of its own that is rank r of N, and the largest N whose mean utilisation passes is searched for. */
#ifndef LOADBENCH_ACCELERATORS_H
#define LOADBENCH_ACCELERATORS_H

#include "loadbench_config.h"
#include "loadbench_require.h"
#include <stdio.h>

enum { LB_ACCELERATORS_MOST = 1024, LB_ACCELERATORS_SEARCH = 0 };

/* One number of accelerators, measured. */
struct lb_feed {
    int accelerators;
    double mean, least; /* utilisation over the accelerators, 0 to 1 */
    double samples_per_s;
    int64_t workers;         /* of one loader; 0: inline */
    int64_t steps;           /* of all accelerators together */
    double rows, batch_size; /* rows of a batch, on average; as asked for, 0: unknown */
    bool passed;
    bool cut; /* a signal ended it before its time was over; it counts what there is */
};

/* What is asked for a number of accelerators by the search, which leaves out one that was cut. STK_E_EMPTY: the data
 * give each of so many no batch. */
typedef stk_status (*lb_feed_try)(void *context, int accelerators, struct lb_feed *out, stk_error *err);

struct lb_feed_search {
    struct lb_feed tries[64]; /* in the order they were made */
    int count;
    int passed, failed; /* the largest that passed, 0: none; the smallest that did not, 0: none did */
    bool searches;      /* for the largest; false: a number was given */
    bool data_end;      /* the data allow no more than were tried */
};

/* Doubles until one does not pass, then halves the distance; it takes for granted that more accelerators are never
 * easier to feed. `most`: no more than that. */
stk_status lb_feed_search(lb_feed_try try_one, void *context, int most, struct lb_feed_search *out, stk_error *err);

/* `count` accelerators, or LB_ACCELERATORS_SEARCH. *passed: that number (of a search: one at least) passes, and all
 * that is required holds. STK_E_CONFIG: no step is given, or the result will not have what is required. */
stk_status lb_accelerators(const struct lb_config *config, int count, const struct lb_require *each, int require_count,
                           bool json, FILE *to, bool *passed, stk_error *err);

#endif
