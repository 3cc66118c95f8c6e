/* loadbench_shares.h: the stage times of repeats as shares of the elapsed time. */
#ifndef LOADBENCH_SHARES_H
#define LOADBENCH_SHARES_H

#include "loadbench_run.h"
#include "loadbench_verdict.h"

/* Returns the shares over runs[0 … count). `step_of_device` is for the device consumer, whose host thread runs ahead of
 * its stream. That consumer counts as waiting whenever its stream is not in a step of step_ns. */
struct lb_shares lb_shares_of(const struct lb_run *runs, int count, bool step_of_device, int64_t step_ns);
/* Mean share of slots that were ready when sampled; < 0: never sampled. */
double lb_ready_share(const struct lb_marks *marks);
/* Share of the elapsed time spent in emulated steps, which never take less than the configured time. */
double lb_step_share(const struct lb_run *run, int64_t step_ns);

#endif
