/* loadbench_tune.h: --tune searches for the num_workers, prefetch, tile_bytes and access with the most samples/s within
 * a budget. */
#ifndef LOADBENCH_TUNE_H
#define LOADBENCH_TUNE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

/* Upper limits for a setting; 0 means all processors that the process may use, and half of the available memory. */
struct lb_budget {
    double cpus;
    int64_t memory_bytes;
};

/* Parses "cpus=2,memory=1GiB"; either may be omitted. STK_E_CONFIG: invalid. */
stk_status lb_budget_read(const char *text, struct lb_budget *out, stk_error *err);

/* Prints each trial, and at the end the changed lines of the config and their gain. *tree: the same as JSON, owned by
 * the caller. STK_E_CONFIG: the unchanged config does not run. After a signal, the best setting so far is printed. */
stk_status lb_tune(const char *path, const char *const *sets, int set_count, const struct lb_budget *budget, FILE *to,
                   json_t **tree, stk_error *err);

#endif
