/* loadbench_write.h: one file of a specification, written. */
#ifndef LOADBENCH_WRITE_H
#define LOADBENCH_WRITE_H

#include "loadbench_spec.h"

/* Both replace what is there under that name, but for a folder of images. STK_E_CLOSED: stopped by a signal, nothing of
 * it is left. */
stk_status lb_write_arrays(const struct lb_made_file *file, stk_error *err);  /* npy npz hdf5 pt safetensors raw */
stk_status lb_write_records(const struct lb_made_file *file, stk_error *err); /* beton tar images */

/* The row of a field in memory of the caller's, `largest_bytes` long; its lengths and bytes. */
stk_status lb_write_row(const struct lb_made_field *field, int64_t row, void *scratch, void *to, int64_t *lengths,
                        int64_t *bytes, stk_error *err);
/* STK_E_CLOSED: a signal asked to stop. */
stk_status lb_write_goes_on(const struct lb_made_file *file, stk_error *err);

#endif
