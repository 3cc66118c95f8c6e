/* loadbench_make.h: --make, data of a stated shape from a small specification, so that a run can be repeated elsewhere.
 */
#ifndef LOADBENCH_MAKE_H
#define LOADBENCH_MAKE_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Makes the files of the specification that are not there with the right dtype, shape and count; all of them if
 * `force`. One line a file on `to`. Nothing was written: STK_E_CONFIG, the specification is wrong; STK_E_MISMATCH, a
 * file holds something else and there is no `force`. */
stk_status lb_make(const char *spec_path, const char *const *sets, int set_count, bool force, FILE *to, stk_error *err);

#endif
