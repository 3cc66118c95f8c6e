/* loadbench_output.h: checks output files other than the result, so that problems are reported before measuring. */
#ifndef LOADBENCH_OUTPUT_H
#define LOADBENCH_OUTPUT_H

#include "loadbench_cache.h"

/* Checks that `path` can be written, by creating and removing a file next to it. `what` is the operation named in
 * errors, such as "writing the report". */
stk_status lb_output_try(const char *path, const char *what, stk_error *err);
/* Checks that the file of an option, such as "--report", is not one of the data files. STK_E_CONFIG: it is. */
stk_status lb_output_check(const char *option, const char *path, const struct lb_files *data, stk_error *err);

#endif
