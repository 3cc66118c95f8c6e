/* loadbench_sweep.h: --sweep, a run for every combination of the values of some keys. */
#ifndef LOADBENCH_SWEEP_H
#define LOADBENCH_SWEEP_H

#include "loadbench_range.h"
#include <jansson.h>
#include <stdio.h>

enum { LB_SWEEP_KEYS = 6, LB_SWEEP_POINTS = 10000 };

struct lb_sweep {
    struct lb_range ranges[LB_SWEEP_KEYS];
    int count;
    int64_t points; /* combinations */
    json_t *tree;   /* what has been measured */
    json_t *facts;  /* machine, versions, data and config of the first point that ran */
};

/* `texts` are those of the options, "KEY=VALUES". STK_E_CONFIG: wrong, or too many combinations. */
stk_status lb_sweep_init(const char *const *texts, int count, struct lb_sweep *out, stk_error *err);
void lb_sweep_fini(struct lb_sweep *sweep);

/* Runs them all, the last key fastest; a line on `progress` (may be NULL) after each. A point that fails is a row that
 * says why. STK_E_CONFIG: none of them is a config that can be run, `err` is that of the first. Any other error: all of
 * them failed. Ended by a signal: the tree holds what there is. */
stk_status lb_sweep_run(struct lb_sweep *sweep, const char *path, const char *const *sets, int set_count,
                        FILE *progress, stk_error *err);

/* The point with the most samples a second, "loader.num_workers=4 loader.prefetch=8 (1900)"; "": none. */
void lb_sweep_best(const struct lb_sweep *sweep, char *out, int size);
/* A table, and the best point. */
void lb_sweep_print(const struct lb_sweep *sweep, FILE *to);

#endif
