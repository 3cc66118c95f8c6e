/* loadbench_example.h: an example result of a config with placeholder values, used to look up the names of a
 * result's numbers before a run. */
#ifndef LOADBENCH_EXAMPLE_H
#define LOADBENCH_EXAMPLE_H

#include "loadbench_run.h"
#include <jansson.h>

/* Owned by the caller; NULL: out of memory. `facts` comes from lb_prepare_facts. Has every number that a run of the
 * config can have, with meaningless values. `all`: also the numbers that require another consumer, a device or the
 * limits. */
json_t *lb_example_tree(const struct lb_config *config, const struct lb_facts *facts, bool all, stk_error *err);

#endif
