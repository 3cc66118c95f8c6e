/* loadbench_shares.h: the clocks of repeats as shares of the time. */
#ifndef LOADBENCH_SHARES_H
#define LOADBENCH_SHARES_H

#include "loadbench_run.h"
#include "loadbench_verdict.h"

/* Of runs[0 … count) together. `step_of_device`: the consumer is the device one, whose host thread is ahead of its
 * stream, so that it has waited when the stream was in no step of step_ns. */
struct lb_shares lb_shares_of(const struct lb_run *runs, int count, bool step_of_device, int64_t step_ns);
/* Of the slots: ready when looked at while it was measured, on average; < 0: never looked at. */
double lb_ready_share(const struct lb_marks *marks);
/* Of the elapsed time: inside emulated steps. They are never shorter than asked for. */
double lb_step_share(const struct lb_run *run, int64_t step_ns);

#endif
