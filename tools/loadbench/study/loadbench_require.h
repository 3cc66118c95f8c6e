/* loadbench_require.h: --require, conditions on a result: "samples_per_s>=10000", "wait.p99<=5ms", "au>=0.9". */
#ifndef LOADBENCH_REQUIRE_H
#define LOADBENCH_REQUIRE_H

#include "loadbench_run.h"
#include "loadbench_scalars.h"
#include <stdio.h>

enum lb_relation { LB_AT_LEAST, LB_AT_MOST, LB_ABOVE, LB_BELOW, LB_EQUAL };

struct lb_require {
    const char *text; /* the condition as given; not owned */
    char name[LB_SCALAR_NAME];
    enum lb_relation relation;
    double value; /* the given number times the factor of its unit */
    char kind;    /* kind of unit: 't' seconds, 'b' bytes, 'p' fraction, ' ' none: the unit of the figure */
};

/* STK_E_CONFIG: the text is invalid; the message says why. */
stk_status lb_require_read(const char *text, struct lb_require *out, stk_error *err);
/* Parses `count` conditions into a new array, to be freed with stki_free() even after an error. */
stk_status lb_require_read_all(const char *const *texts, int count, struct lb_require **out, stk_error *err);
/* STK_E_CONFIG: the result has no such figure, or the units differ. */
stk_status lb_require_check(const struct lb_require *require, const json_t *tree, struct lb_scalar *found, bool *holds,
                            stk_error *err);
/* Checks before the run that a result of this config will have these figures in these units. STK_E_CONFIG: it will not;
 * other failures are those of opening the data. */
stk_status lb_require_foresee(const struct lb_require *each, int count, const struct lb_config *config, stk_error *err);
/* Checks all conditions, prints one line for each, and adds them to `tree` as member "required". Sets *failed to the
 * number of conditions that do not hold. */
stk_status lb_require_all(const struct lb_require *each, int count, json_t *tree, FILE *to, int *failed,
                          stk_error *err);

#endif
