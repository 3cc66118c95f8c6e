/* loadbench_write.h: one file of a specification, written. */
#ifndef LOADBENCH_WRITE_H
#define LOADBENCH_WRITE_H

#include "loadbench_spec.h"

/* Replaces what is there under that name, but for a folder of images. STK_E_CLOSED: stopped by a signal, nothing of it
 * is left. */
stk_status lb_write(const struct lb_made_file *file, stk_error *err);

#endif
