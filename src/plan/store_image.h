/* store_image.h: makes rows that have the shape that the geometry steps give each image (rows_images.h): computes the
 * shape and stores the pixels without conversion. */
#ifndef STKI_STORE_IMAGE_H
#define STKI_STORE_IMAGE_H

#include "resample.h"
#include "rows_images.h"

/* Computes the shape of the row that this placement produces from a sample of this shape. */
void stki_image_placed_shape(const stki_field_plan *plan, const int64_t *shape, const stki_placement *placement,
                             int64_t out[STKI_IMAGE_AXES]);
/* Computes the shape of the row that a sample of this shape becomes. The sample is not read. Errors as for
 * stki_geometry_apply. */
stk_status stki_image_shape_after(const stki_field_plan *plan, const int64_t *shape, const double *box,
                                  const stki_occasion *occasion, int64_t out[STKI_IMAGE_AXES], stk_error *err);

/* Writes the row. `view` is the result of stki_resample_view. The row's shape is resampler->row_shape. */
stk_status stki_image_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                            stk_error *err);

#endif
