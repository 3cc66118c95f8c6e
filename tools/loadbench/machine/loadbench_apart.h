/* loadbench_apart.h: a measurement in a child process. What would end the program (a mapped file that is cut, memory
 * that the control group does not have) ends the child alone, and a result that was measured before is kept. */
#ifndef LOADBENCH_APART_H
#define LOADBENCH_APART_H

#include "loadbench_limit.h"
#include <stdint.h>
#include <stoker/status.h>

/* Fills `out`, which must hold no pointers to memory that the call allocates. */
typedef stk_status lb_apart_work(const void *ask, void *out, stk_error *err);

/* Runs work(ask, out, err) in a forked child and copies `out` and the error back. No other thread of the program may
 * be running. STK_E_RESOURCE: the child was killed; the message names the signal. A signal that asks to stop
 * (loadbench_stop.h) is passed on to the child. */
stk_status lb_apart(lb_apart_work *work, const void *ask, void *out, int64_t out_bytes, stk_error *err);
/* The same with lb_limit_measure. */
stk_status lb_apart_limit(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *err);

#endif
