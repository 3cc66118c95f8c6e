/* loadbench_apart.h: runs a measurement in a child process. Events that would kill the program (truncation of a mapped
 * file, exceeding the control group's memory limit) kill only the child, and earlier results are kept. */
#ifndef LOADBENCH_APART_H
#define LOADBENCH_APART_H

#include "loadbench_limit.h"
#include <stdint.h>
#include <stoker/status.h>

/* Sets `out`, which must not contain pointers to memory allocated by the call. */
typedef stk_status lb_apart_work(const void *ask, void *out, stk_error *err);

/* Runs work(ask, out, err) in a forked child and copies `out` and the error back. The program must not have other
 * threads. STK_E_RESOURCE: the child was killed; the message names the signal. A stop signal (loadbench_stop.h) is
 * forwarded to the child. */
stk_status lb_apart(lb_apart_work *work, const void *ask, void *out, int64_t out_bytes, stk_error *err);
/* Runs lb_limit_measure in a child process. */
stk_status lb_apart_limit(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *err);

#endif
