/* loadbench_make.h: --make, which generates data from a small specification, so that a run can be repeated elsewhere.
 */
#ifndef LOADBENCH_MAKE_H
#define LOADBENCH_MAKE_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Creates the files of the specification that do not exist with the right dtype, shape and count, or all files if
 * `force` is set. Prints one line per file. STK_E_CONFIG: the specification is wrong; STK_E_MISMATCH: a file has other
 * contents and `force` is not set; in both cases nothing was written. */
stk_status lb_make(const char *spec_path, const char *const *sets, int set_count, bool force, FILE *to, stk_error *err);

#endif
