/* loadbench_scalars.h: the numbers of a result's JSON by their names: what --require, --compare, sweeps and the report
 * look things up with. A number of several repeats is an object with a median, and stands for it. */
#ifndef LOADBENCH_SCALARS_H
#define LOADBENCH_SCALARS_H

#include <jansson.h>
#include <stdbool.h>
#include <stoker/status.h>

/* "wait.p99_us", "result.samples_per_s", "config.effective.loader.num_workers". NULL: it isn't there. */
const json_t *lb_tree_at(const json_t *tree, const char *path);
/* A number there, or the median of one. */
bool lb_scalar_at(const json_t *tree, const char *path, double *out);
/* "" if there is no text there. */
const char *lb_text_at(const json_t *tree, const char *path);
/* "" for what is no text. */
const char *lb_text_of(const json_t *json);

enum { LB_SCALAR_NAME = 160 };

struct lb_scalar {
    char path[LB_SCALAR_NAME]; /* the whole name in the result */
    double value;
};

/* By the whole name, by its last part (samples_per_s), or by either without the unit at its end (p99 of wait,
 * wait.p99); the words of a last part may stand in another order with that of its section (p99_wait for wait.p99_us).
 * Sections that sum up go before those of single runs. STK_E_CONFIG: there is none, `err` names the nearest; or
 * several, and they are named. */
stk_status lb_scalar_find(const json_t *tree, const char *name, struct lb_scalar *out, stk_error *err);

/* What the unit at the end of a name counts in: "_us" 1e-6 (kind 't'), "_mb" 1e6 ('b'), "_percent" 0.01 ('p'). False:
 * a plain number. */
bool lb_scalar_unit(const char *path, double *factor, char *kind);

#endif
