/* rows_images.h: `ragged` of a field of images: each image keeps its own shape, even after steps that produce images of
 * different shapes. The rows are flat: the elements of each row are contiguous in the sample's layout, the rows are
 * stored consecutively, and height, width and channels (in the order of the sample's axes) are in a separate tensor.
 * Code that lays out, copies or compacts rows treats such a field as one with a varying number of single elements. */
#ifndef STKI_ROWS_IMAGES_H
#define STKI_ROWS_IMAGES_H

#include "option.h"
#include "plan.h"

enum { STKI_IMAGE_AXES = 3 /* axes of an image */, STKI_IMAGE_SHAPE_BYTES = STKI_IMAGE_AXES * 8 };

/* `ragged: true`, or {max_bytes}. */
stk_status stki_ragged_read(const stki_node *node, stki_ragged *out, stk_error *err);
extern const stki_option_table stki_ragged_table;

/* Rejects features that such rows do not support, with a message that names them. Call when the plan's layouts,
 * transforms and dtype are known. */
stk_status stki_image_rows_check(const stki_field_plan *plan, stk_error *err);
/* Makes the row flat with the size of the largest image: from the transforms, from `max_bytes` in the config, or by
 * reading the header of every sample. */
stk_status stki_image_rows_resolve(stki_field_plan *plan, stk_error *err);

/* The stored shape of a row; written when the row is measured. */
int64_t *stki_image_row_shape(const stki_field_plan *plan, char *memory, int64_t row);

#endif
