/* loadbench_write.h: writes one file of a specification. */
#ifndef LOADBENCH_WRITE_H
#define LOADBENCH_WRITE_H

#include "loadbench_spec.h"

/* Replaces an existing file, but not a folder of images. STK_E_CLOSED: stopped by a signal, without a partial file. */
stk_status lb_write(const struct lb_made_file *file, stk_error *err);

#endif
