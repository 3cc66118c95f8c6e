/* store_image.c: see store_image.h. */
#include "store_image.h"
#include "pad_lines.h"
#include "rows_images.h"
#include "tensor_internal.h"
#include <string.h>

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

void stki_own_placed(const stki_field_plan *plan, const int64_t *shape, const stki_placing *placing,
                     int64_t out[STKI_OWN_AXES])
{
    const bool transpose = placing->orientation.transpose;
    const int64_t height = placing->padded ? placing->pad_y.length : placing->job.window_height;
    const int64_t width = placing->padded ? placing->pad_x.length : placing->job.window_width;

    out[plan->image.channel_axis] = shape[plan->image.channel_axis];
    out[plan->image.height_axis] = transpose ? width : height;
    out[plan->image.width_axis] = transpose ? height : width;
}

stk_status stki_own_shape(const stki_field_plan *plan, const int64_t *shape, const double *box,
                          const stki_occasion *occasion, int64_t out[STKI_OWN_AXES], stk_error *err)
{
    stki_placing placing;
    stk_status status;

    if (!plan->image.geometry) {
        memcpy(out, shape, STKI_OWN_AXES * sizeof *out);
        return STK_OK;
    }
    status = stki_geometry_apply(plan->image.geometry, shape[plan->image.height_axis], shape[plan->image.width_axis],
                                 box, occasion, &placing, err);
    if (status == STK_OK)
        stki_own_placed(plan, shape, &placing, out);
    return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void tight_strides(stk_dtype dtype, const int64_t *shape, int64_t strides[STKI_OWN_AXES])
{
    int64_t bytes = stk_dtype_size(dtype);

    for (int i = STKI_OWN_AXES - 1; i >= 0; i--) {
        strides[i] = bytes;
        bytes *= shape[i];
    }
}

/* The whole window, as `from` shows it before it is turned, becomes the row. */
static void store_turned(const stki_field_plan *plan, const stki_resampler *resampler, const stk_tensor *from,
                         void *row)
{
    const stki_orientation o = resampler->placing.orientation;
    const int y = plan->image.height_axis, x = plan->image.width_axis;
    const char *first = from->data;
    int64_t strides[STKI_OWN_AXES], to[STKI_OWN_AXES];

    memcpy(strides, from->strides, sizeof strides);
    strides[o.transpose ? x : y] = o.flip_u ? -from->strides[y] : from->strides[y];
    strides[o.transpose ? y : x] = o.flip_v ? -from->strides[x] : from->strides[x];
    first += o.flip_u ? (from->shape[y] - 1) * from->strides[y] : 0;
    first += o.flip_v ? (from->shape[x] - 1) * from->strides[x] : 0;
    tight_strides(from->dtype, resampler->row_shape, to);
    stki_copy_strided(row, from->dtype, to, first, from->dtype, strides, (from->flags & STK_TENSOR_SWAPPED) != 0,
                      STKI_OWN_AXES, resampler->row_shape);
}

/* Where the window is put together: in the row itself where it is not turned, else in the worker's block. */
static stk_status window_place(const stki_field_plan *plan, stki_resampler *resampler, void *row, stk_tensor *out,
                               stk_error *err)
{
    const stki_placing *placing = &resampler->placing;
    const bool turned = stki_orientation_number(placing->orientation) != 0;
    int64_t bytes = 1;
    stk_status status = STK_OK;

    *out = (stk_tensor){.data = row, .dtype = plan->field->dtype, .ndim = STKI_OWN_AXES};
    memcpy(out->shape, resampler->row_shape, sizeof resampler->row_shape);
    if (placing->orientation.transpose) {
        out->shape[plan->image.height_axis] = resampler->row_shape[plan->image.width_axis];
        out->shape[plan->image.width_axis] = resampler->row_shape[plan->image.height_axis];
    }
    tight_strides(out->dtype, out->shape, out->strides);
    for (int i = 0; i < STKI_OWN_AXES; i++)
        bytes *= out->shape[i];
    if (turned) {
        status = stki_scratch_reserve(&resampler->block, bytes, err);
        out->data = resampler->block.data;
    }
    return status;
}

stk_status stki_bring_together(const stk_tensor *view, stki_scratch *to, const void **out, stk_error *err)
{
    const bool swapped = (view->flags & STK_TENSOR_SWAPPED) != 0;
    int64_t strides[STK_MAX_DIMS], bytes;
    bool adjacent = !swapped;
    stk_status status = stki_row_major(view->dtype, view->ndim, view->shape, strides, &bytes, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < view->ndim; i++)
        adjacent = adjacent && (view->strides[i] == strides[i] || view->shape[i] == 1);
    *out = view->data;
    if (adjacent || (status = stki_scratch_reserve(to, bytes, err)) != STK_OK)
        return status;
    stki_copy_strided(to->data, view->dtype, strides, view->data, view->dtype, view->strides, swapped, view->ndim,
                      view->shape);
    *out = to->data;
    return STK_OK;
}

/* The resized pixels that the window needs, from a view of what the resizer looks at: in `to`, lines of `line` bytes.
 */
static stk_status resize_into(stki_resampler *resampler, const stk_tensor *view, void *to, int64_t line, stk_error *err)
{
    const stki_resize_job *job = &resampler->placing.job;
    const void *pixels = view->data;
    int64_t from_line = view->strides[0];
    stk_status status = STK_OK;

    if ((view->strides[2] != 1 && job->channels > 1) || view->strides[1] != job->channels) {
        status = stki_bring_together(view, &resampler->tight, &pixels, err);
        from_line = view->shape[1] * job->channels;
    }
    if (status != STK_OK)
        return status;
    stki_resizer_begin(resampler->resizer, pixels, from_line);
    stki_resizer_next(resampler->resizer, to, line, job->window_height);
    return STK_OK;
}

static stk_status resize_to_canvas(stki_resampler *resampler, const stk_tensor *view, stk_tensor *out, stk_error *err)
{
    const stki_resize_job *job = &resampler->placing.job;
    stk_status status;

    *out = (stk_tensor){.dtype = STK_U8, .ndim = 3, .shape = {job->window_height, job->window_width, job->channels}};
    tight_strides(STK_U8, out->shape, out->strides);
    status = stki_scratch_reserve(&resampler->canvas, out->shape[0] * out->strides[0], err);
    out->data = resampler->canvas.data;
    return status == STK_OK ? resize_into(resampler, view, out->data, out->strides[0], err) : status;
}

stk_status stki_own_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                          stk_error *err)
{
    const stki_placing *placing = &resampler->placing;
    const bool resizes = plan->image.geometry && plan->image.geometry->resizes,
               padded = plan->image.geometry && placing->padded;
    stk_tensor window, canvas;
    stk_status status;

    if (!resizes && !padded) {
        store_turned(plan, resampler, view, row);
        return STK_OK;
    }
    if ((status = window_place(plan, resampler, row, &window, err)) != STK_OK)
        return status;
    if (resizes && !padded)
        status = resize_into(resampler, view, window.data, window.strides[0], err);
    if (resizes && padded) {
        status = resize_to_canvas(resampler, view, &canvas, err);
        view = &canvas;
    }
    if (status == STK_OK && padded) {
        const stki_block block = {window.strides, window.shape[0] * window.strides[0]};

        stki_pad_lines(plan, &block, placing, view, 0, window.shape[plan->image.height_axis], window.data);
    }
    if (status == STK_OK && window.data != row)
        store_turned(plan, resampler, &window, row);
    return status;
}
