/* loadbench_example.h: a made-up result of a config, for the names of its numbers: what a result will hold is known
 * before anything runs. */
#ifndef LOADBENCH_EXAMPLE_H
#define LOADBENCH_EXAMPLE_H

#include "loadbench_run.h"
#include <jansson.h>

/* The caller's. `facts`: as lb_prepare_facts gives them. It holds every number that such a run can have; the figures
 * themselves mean nothing. `all`: also those that another consumer, a device or the limits would bring. NULL: no
 * memory. */
json_t *lb_example_tree(const struct lb_config *config, const struct lb_facts *facts, bool all, stk_error *err);

#endif
