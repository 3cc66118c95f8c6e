/* loadbench_compare.h: --compare compares a result with an earlier one. */
#ifndef LOADBENCH_COMPARE_H
#define LOADBENCH_COMPARE_H

#include <jansson.h>
#include <stdio.h>
#include <stoker/status.h>

/* Loads a result written with --format=json. STK_E_CONFIG: the file is not a result, has a different schema version, or
 * is the result of a sweep. */
stk_status lb_result_load(const char *path, json_t **out, stk_error *err);
/* Checks that the tree read from `path` is a result of this schema. */
stk_status lb_result_check(const char *path, const json_t *tree, stk_error *err);

/* Compares every figure (medians, their ratio and its confidence interval), and lists differences in machine, config,
 * data and versions. Prints both, and adds them to `now` as member "compared". */
stk_status lb_compare(const json_t *before, const char *path, json_t *now, FILE *to, stk_error *err);

#endif
