/* loadbench_output.h: files that are written beside the result. What speaks against one is said before the time is
 * spent. */
#ifndef LOADBENCH_OUTPUT_H
#define LOADBENCH_OUTPUT_H

#include "loadbench_cache.h"

/* Can `path` be written, by way of a file beside it? Nothing is left of the trial. `what`: "writing the report". */
stk_status lb_output_try(const char *path, const char *what, stk_error *err);
/* `option`: "--report". STK_E_CONFIG: the file is one of the data, which it would write over. */
stk_status lb_output_check(const char *option, const char *path, const struct lb_files *data, stk_error *err);

#endif
