/* loadbench_output.h: files that are written beside the result. What speaks against one is said before the time is
 * spent. */
#ifndef LOADBENCH_OUTPUT_H
#define LOADBENCH_OUTPUT_H

#include "loadbench_cache.h"

/* Do both names lead to one file that is there? */
bool lb_is_same_file(const char *a, const char *b);
/* `option`: "--report". STK_E_CONFIG: the file is one of the data, which it would write over. */
stk_status lb_output_check(const char *option, const char *path, const struct lb_files *data, stk_error *err);

#endif
