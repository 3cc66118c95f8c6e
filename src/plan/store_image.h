/* store_image.h: a row that keeps the shape that geometry gives its image (rows_images.h): which shape that is, and its
 * pixels, unconverted. */
#ifndef STKI_STORE_IMAGE_H
#define STKI_STORE_IMAGE_H

#include "resample.h"
#include "rows_images.h"

/* The shape of the row that this placing makes of a sample of this shape. */
void stki_image_placed_shape(const stki_field_plan *plan, const int64_t *shape, const stki_placing *placing,
                             int64_t out[STKI_IMAGE_AXES]);
/* The shape of the row that a sample becomes, without reading it. `shape`: of the sample. Errors as of
 * stki_geometry_apply. */
stk_status stki_image_shape_after(const stki_field_plan *plan, const int64_t *shape, const double *box,
                                  const stki_occasion *occasion, int64_t out[STKI_IMAGE_AXES], stk_error *err);

/* `view`: as of stki_resample_view. The row has the shape resampler->row_shape. */
stk_status stki_image_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                            stk_error *err);

#endif
