/* loadbench_make.h: --make generates data from a small specification, so that a run can be reproduced elsewhere. */
#ifndef LOADBENCH_MAKE_H
#define LOADBENCH_MAKE_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Creates the files that the specification describes, except those that already exist with the right dtype, shape and
 * count. With `force`, creates all of them. Prints one line per file. STK_E_CONFIG: the specification is invalid.
 * STK_E_MISMATCH: a file exists with other contents, and `force` is not set. In both cases nothing is written. */
stk_status lb_make(const char *spec_path, const char *const *sets, int set_count, bool force, FILE *to, stk_error *err);

#endif
