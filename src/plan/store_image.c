/* store_image.c: see store_image.h. */
#include "store_image.h"
#include "pad_lines.h"
#include "rows_images.h"
#include "tensor_internal.h"
#include <string.h>

/* ---- shapes ---- */

void stki_image_placed_shape(const stki_field_plan *plan, const int64_t *shape, const stki_placement *placement,
                             int64_t out[STKI_IMAGE_AXES])
{
    const bool transpose = placement->orientation.transpose;
    const int64_t height = placement->padded ? placement->pad_y.length : placement->job.window_height;
    const int64_t width = placement->padded ? placement->pad_x.length : placement->job.window_width;

    out[plan->image.channel_axis] = shape[plan->image.channel_axis];
    out[plan->image.height_axis] = transpose ? width : height;
    out[plan->image.width_axis] = transpose ? height : width;
}

stk_status stki_image_shape_after(const stki_field_plan *plan, const int64_t *shape, const double *box,
                                  const stki_occasion *occasion, int64_t out[STKI_IMAGE_AXES], stk_error *err)
{
    stki_placement placement;
    stk_status status;

    if (!plan->image.geometry) {
        memcpy(out, shape, STKI_IMAGE_AXES * sizeof *out);
        return STK_OK;
    }
    status = stki_geometry_apply(plan->image.geometry, shape[plan->image.height_axis], shape[plan->image.width_axis],
                                 box, occasion, &placement, err);
    if (status == STK_OK)
        stki_image_placed_shape(plan, shape, &placement, out);
    return status;
}

/* ---- rows ---- */

/* Writes the whole window, which `from` views, to the row in the row's orientation. */
static void store_turned(const stki_field_plan *plan, const stki_resampler *resampler, const stk_tensor *from,
                         void *row)
{
    const stki_orientation o = resampler->placement.orientation;
    const int y = plan->image.height_axis, x = plan->image.width_axis;
    const char *first = from->data;
    int64_t strides[STKI_IMAGE_AXES], to[STKI_IMAGE_AXES], bytes;

    memcpy(strides, from->strides, sizeof strides);
    strides[o.transpose ? x : y] = o.flip_u ? -from->strides[y] : from->strides[y];
    strides[o.transpose ? y : x] = o.flip_v ? -from->strides[x] : from->strides[x];
    first += o.flip_u ? (from->shape[y] - 1) * from->strides[y] : 0;
    first += o.flip_v ? (from->shape[x] - 1) * from->strides[x] : 0;
    (void)stki_row_major(from->dtype, STKI_IMAGE_AXES, resampler->row_shape, to, &bytes, NULL);
    stki_copy_strided(row, from->dtype, to, first, from->dtype, strides, (from->flags & STK_TENSOR_SWAPPED) != 0,
                      STKI_IMAGE_AXES, resampler->row_shape);
}

/* Returns where the window is assembled: in the row itself if it is not reoriented, otherwise in the worker's block. */
static stk_status window_place(const stki_field_plan *plan, stki_resampler *resampler, void *row, stk_tensor *out,
                               stk_error *err)
{
    const stki_placement *placement = &resampler->placement;
    const bool turned = stki_orientation_number(placement->orientation) != 0;
    int64_t bytes;
    stk_status status;

    *out = (stk_tensor){.data = row, .dtype = plan->field->dtype, .ndim = STKI_IMAGE_AXES};
    memcpy(out->shape, resampler->row_shape, sizeof resampler->row_shape);
    if (placement->orientation.transpose) {
        out->shape[plan->image.height_axis] = resampler->row_shape[plan->image.width_axis];
        out->shape[plan->image.width_axis] = resampler->row_shape[plan->image.height_axis];
    }
    status = stki_row_major(out->dtype, STKI_IMAGE_AXES, out->shape, out->strides, &bytes, err);
    if (status == STK_OK && turned) {
        status = stki_scratch_reserve(&resampler->block, bytes, err);
        out->data = resampler->block.data;
    }
    return status;
}

stk_status stki_image_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                            stk_error *err)
{
    const stki_placement *placement = &resampler->placement;
    stk_tensor window;
    stk_status status;

    if (view && !placement->padded) {
        store_turned(plan, resampler, view, row);
        return STK_OK;
    }
    if ((status = window_place(plan, resampler, row, &window, err)) != STK_OK)
        return status;
    if (placement->padded)
        stki_pad_lines(plan, &(stki_block){window.strides, window.shape[0] * window.strides[0]}, placement, view, 0,
                       window.shape[plan->image.height_axis], window.data);
    else
        stki_resizer_next(resampler->resizer, window.data, window.strides[0], placement->job.window_height);
    if (window.data != row)
        store_turned(plan, resampler, &window, row);
    return STK_OK;
}
