/* rows_images.h: `ragged` of a field of images: each row has the shape of its image, or the shape that the transforms
 * give it. The rows are flat: the elements of each row are contiguous in the sample's layout, the rows are stored
 * consecutively, and height, width and channels (in the order of the sample's axes) are in a separate tensor. For code
 * that lays out, copies or compacts rows, such a field is a ragged field of single elements. */
#ifndef STKI_ROWS_IMAGES_H
#define STKI_ROWS_IMAGES_H

#include "option.h"
#include "plan.h"

enum { STKI_IMAGE_AXES = 3, STKI_IMAGE_SHAPE_BYTES = STKI_IMAGE_AXES * 8 };

/* `ragged: true`, or {max_bytes}. */
stk_status stki_ragged_read(const stki_node *node, stki_ragged *out, stk_error *err);
extern const stki_option_table stki_ragged_table;

/* Rejects options and steps that such rows do not support. Call when the plan's layouts, transforms and dtype are
 * known. */
stk_status stki_image_rows_check(const stki_field_plan *plan, stk_error *err);
/* Makes rows flat. The maximum size of a row is `max_bytes` in the config, or what the transforms determine, or is
 * found by reading the header of every sample. */
stk_status stki_image_rows_resolve(stki_field_plan *plan, stk_error *err);

/* Returns the address of a row's shape, which is written when the row is measured. */
int64_t *stki_image_row_shape(const stki_field_plan *plan, char *memory, int64_t row);

#endif
