/* loadbench_study.h: what is made of results: one measured now or kept earlier, checked, compared, judged by what it
 * must reach, and reported; and the searches that take many runs. */
#ifndef LOADBENCH_STUDY_H
#define LOADBENCH_STUDY_H

#include "loadbench_args.h"

/* Runs what the command line asks for. The exit status: 0 fine, 1 the run failed or a requirement does not hold, 2 the
 * command or the config is wrong. */
int lb_study(const struct lb_args *args);
/* Is the file a result, and no config? One that was cut is a result too. */
bool lb_is_kept_result(const char *path);
/* Checks the texts of --sweep, --require and --budget without running anything. */
stk_status lb_study_check(const struct lb_args *args, stk_error *err);

#endif
