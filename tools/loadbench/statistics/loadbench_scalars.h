/* loadbench_scalars.h: lookup of a result's numbers in its JSON by name, for --require, --compare, sweeps and the
 * report. A number over several repeats is an object; its value is the median. */
#ifndef LOADBENCH_SCALARS_H
#define LOADBENCH_SCALARS_H

#include <jansson.h>
#include <stdbool.h>
#include <stoker/status.h>

/* "wait.p99_us", "result.samples_per_s", "config.effective.loader.num_workers". NULL: not found. */
const json_t *lb_tree_at(const json_t *tree, const char *path);
/* The number at `path`, or its median. */
bool lb_scalar_at(const json_t *tree, const char *path, double *out);
/* The string at `path`, or "". */
const char *lb_text_at(const json_t *tree, const char *path);
/* The string, or "" for other types. */
const char *lb_text_of(const json_t *json);

enum { LB_SCALAR_NAME = 160 };

struct lb_scalar {
    char path[LB_SCALAR_NAME]; /* the whole name in the result */
    double value;
};

/* Finds a number by its full name, by the last component (samples_per_s), or by either without the unit suffix (p99 of
 * wait, wait.p99); the words of the last component may be swapped with its section (p99_wait for wait.p99_us).
 * Summaries take precedence over single runs. STK_E_CONFIG: not found, `err` names the nearest; or ambiguous, `err`
 * lists the candidates. */
stk_status lb_scalar_find(const json_t *tree, const char *name, struct lb_scalar *out, stk_error *err);

/* The unit suffix of a name: "_us" is 1e-6 (kind 't'), "_mb" 1e6 ('b'), "_percent" 0.01 ('p'). False: no unit. */
bool lb_scalar_unit(const char *path, double *factor, char *kind);

#endif
