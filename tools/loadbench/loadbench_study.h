/* loadbench_study.h: the actions on a result, new or saved (comparison, requirements, report), and the searches that
 * take many measurements. */
#ifndef LOADBENCH_STUDY_H
#define LOADBENCH_STUDY_H

#include "loadbench_args.h"
#include "loadbench_require.h"
#include "loadbench_tune.h"
#include <jansson.h>

/* The parsed options that use results. */
struct lb_study {
    const struct lb_args *args;
    struct lb_require *requirements; /* from --require; args->require_count of them */
    struct lb_budget budget;         /* from --budget; all zero: none */
    bool is_kept;                    /* the file is a saved result instead of a config */
    json_t *kept;                    /* the saved result; NULL: none, or it is truncated */
};

/* Parses --sweep, --require and --budget and checks combinations, without running anything. Call lb_study_fini even
 * after a failure. */
stk_status lb_study_open(const struct lb_args *args, struct lb_study *out, stk_error *err);
/* Returns the exit status: 0 success, 1 the run failed or a requirement is not met, 2 the command or the config is
 * wrong. */
int lb_study_run(const struct lb_study *study);
void lb_study_fini(struct lb_study *study);
/* Whether the file is a result (possibly truncated) instead of a config. */
bool lb_is_kept_result(const char *path);

#endif
