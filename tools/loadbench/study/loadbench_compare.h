/* loadbench_compare.h: --compare, a result beside an earlier one. */
#ifndef LOADBENCH_COMPARE_H
#define LOADBENCH_COMPARE_H

#include <jansson.h>
#include <stdio.h>
#include <stoker/status.h>

/* A result that was kept with --format=json. STK_E_CONFIG: the file is none, of another schema, or of a sweep. */
stk_status lb_result_load(const char *path, json_t **out, stk_error *err);
/* Is the tree that was read from `path` one that it gives? */
stk_status lb_result_check(const char *path, const json_t *tree, stk_error *err);

/* Every figure of both: medians, their ratio and its interval, and what else differs between the two: machine, config,
 * data, versions. Into `now` as its member "compared", and for people. */
stk_status lb_compare(const json_t *before, const char *path, json_t *now, FILE *to, stk_error *err);

#endif
