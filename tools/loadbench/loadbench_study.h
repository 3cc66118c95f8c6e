/* loadbench_study.h: what is made of results: one measured now or kept earlier, checked, compared, judged by what it
 * must reach, and reported; and the searches that take many runs. */
#ifndef LOADBENCH_STUDY_H
#define LOADBENCH_STUDY_H

#include "loadbench_args.h"
#include "loadbench_require.h"
#include "loadbench_tune.h"
#include <jansson.h>

/* What the command line asks for, read once. */
struct lb_study {
    const struct lb_args *args;
    struct lb_require *requirements; /* of --require, args->require_count */
    struct lb_budget budget;         /* of --budget; zeros: none */
    bool is_kept;                    /* the file is a result, and no config */
    json_t *kept;                    /* … all of it; NULL: it is not whole */
};

/* Reads the texts of --sweep, --require and --budget, and checks what goes together, without running anything.
 * lb_study_fini in every case. */
stk_status lb_study_open(const struct lb_args *args, struct lb_study *out, stk_error *err);
/* The exit status: 0 fine, 1 the run failed or a requirement does not hold, 2 the command or the config is wrong. */
int lb_study_run(const struct lb_study *study);
void lb_study_fini(struct lb_study *study);
/* Is the file a result, and no config? One that was cut is a result too. */
bool lb_is_kept_result(const char *path);

#endif
