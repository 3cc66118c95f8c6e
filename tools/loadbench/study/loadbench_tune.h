/* loadbench_tune.h: --tune, a search for the settings of a loader that give the most samples/s within what it
 * may use: num_workers, prefetch, tile_bytes and access. */
#ifndef LOADBENCH_TUNE_H
#define LOADBENCH_TUNE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

/* Most of what a setting may use; 0: the processors that the process may use; half of the memory that is available. */
struct lb_budget {
    double cpus;
    int64_t memory_bytes;
};

/* "cpus=2,memory=1GiB", either alone. STK_E_CONFIG: what is wrong with it. */
stk_status lb_budget_read(const char *text, struct lb_budget *out, stk_error *err);

/* Prints what was tried while it goes on, and at the end the lines of the config and what they gained. *tree: the same
 * as JSON; the caller's. STK_E_CONFIG: the config does not run as it is. Ended by a signal: the best so far. */
stk_status lb_tune(const char *path, const char *const *sets, int set_count, const struct lb_budget *budget, FILE *to,
                   json_t **tree, stk_error *err);

#endif
