/* rows_images.h: `ragged` of a field of images: each keeps a shape of its own, also behind steps that give images of
 * different shapes. Its rows are flat: a row's elements one behind the other in the layout of the sample, the rows
 * behind each other, and height, width and channels (in the order of the sample's axes) beside them. To whatever lays
 * out, copies and closes gaps such a field is one of single elements of varying number.
 */
#ifndef STKI_ROWS_IMAGES_H
#define STKI_ROWS_IMAGES_H

#include "option.h"
#include "plan.h"

enum { STKI_IMAGE_AXES = 3 /* of such an image */, STKI_IMAGE_SHAPE_BYTES = STKI_IMAGE_AXES * 8 };

/* `ragged: true`, or {max_bytes}. */
stk_status stki_ragged_read(const stki_node *node, stki_ragged *out, stk_error *err);
extern const stki_option_table stki_ragged_table;

/* Of a plan whose layouts, transforms and dtype are known: refuses by name what such rows cannot be. */
stk_status stki_image_rows_check(const stki_field_plan *plan, stk_error *err);
/* Makes the row flat, as long as the largest image's: what the transforms come to, `max_bytes` as the config says, or
 * what looking at the header of every sample finds. */
stk_status stki_image_rows_resolve(stki_field_plan *plan, stk_error *err);

/* Where the shape of a row is kept; written when the row is measured. */
int64_t *stki_image_row_shape(const stki_field_plan *plan, char *memory, int64_t row);

#endif
