/* loadbench_feed.h: runs N emulated accelerators at once. */
#ifndef LOADBENCH_FEED_H
#define LOADBENCH_FEED_H

#include "loadbench_accelerators.h"

/* An lb_feed_try; the context is the struct lb_config. STK_END: stopped by a signal before anything was measured. */
stk_status lb_feed_run(void *config, int accelerators, struct lb_feed *out, stk_error *err);

#endif
