/* own_shapes.h: `ragged` of a field of images: each keeps a shape of its own, also behind steps that give images of
 * different shapes. Its rows are flat: a row's elements one behind the other in the layout of the sample, the rows
 * behind each other, and height, width and channels (in the order of the sample's axes) beside them. To everything that
 * lays out, copies and closes gaps such a field is one of single elements of varying number.
 */
#ifndef STKI_OWN_SHAPES_H
#define STKI_OWN_SHAPES_H

#include "option.h"
#include "resample.h"

enum { STKI_OWN_AXES = 3 /* of such an image */, STKI_OWN_SHAPE_BYTES = STKI_OWN_AXES * 8 };

/* `ragged: true`, or {max_bytes}. */
stk_status stki_ragged_read(const stki_node *node, stki_ragged *out, stk_error *err);
extern const stki_option_table stki_ragged_table;

/* Of a plan whose layouts, transforms and dtype are known: refuses by name what such rows cannot be. */
stk_status stki_own_check(const stki_field_plan *plan, stk_error *err);
/* Makes the row flat, as long as the largest image's: what the transforms come to, `max_bytes` as the config says, or
 * what looking at the header of every sample finds. */
stk_status stki_own_resolve(stki_field_plan *plan, stk_error *err);

/* The shape of the row that this placing makes of a sample of this shape. */
void stki_own_placed(const stki_field_plan *plan, const int64_t *shape, const stki_placing *placing,
                     int64_t out[STKI_OWN_AXES]);
/* The shape of the row that a sample becomes, without reading it. `shape`: of the sample. Errors as of
 * stki_geometry_apply. */
stk_status stki_own_shape(const stki_field_plan *plan, const int64_t *shape, const double *box,
                          const stki_occasion *occasion, int64_t out[STKI_OWN_AXES], stk_error *err);

/* `view`: the pixels that the resampler's placing needs. The row has the shape resampler->row_shape. */
stk_status stki_own_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                          stk_error *err);

/* Row-major elements of the view, in native byte order; a copy in `to` where they are not. */
stk_status stki_bring_together(const stk_tensor *view, stki_scratch *to, const void **out, stk_error *err);

#endif
