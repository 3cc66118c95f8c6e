/* resample.c: see resample.h. */
#include "resample.h"
#include "allocate.h"
#include "color_rows.h"
#include "error.h"
#include "pad_lines.h"
#include "store_image.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

void stki_resampler_fini(stki_resampler *resampler)
{
    stki_resizer_destroy(resampler->resizer);
    stki_scratch_fini(&resampler->block);
    stki_scratch_fini(&resampler->tight);
    stki_scratch_fini(&resampler->canvas);
    stki_scratch_fini(&resampler->planes);
    stki_scratch_fini(&resampler->box);
}

/* Inserts field, file and record before the message. */
static stk_status place(const stki_field_plan *plan, const stki_reader *shard, int64_t within, stk_status status,
                        stk_error *err)
{
    char path[STKI_RECORD_PATH];

    return stki_fail_place(err, status, stki_reader_path(shard, within, path), within, plan->name);
}

/* ---- shapes ---- */

/* Without crops or resizes, all samples of a field must have the shape of the first one. */
static stk_status other_shape(const stki_field_plan *plan, const stki_reader *shard, int64_t within,
                              const int64_t *shape, stk_error *err)
{
    const int ndim = plan->field->ndim;
    char path[STKI_RECORD_PATH], first[STKI_RECORD_PATH];

    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){stki_reader_path(shard, within, path), within, -1, STKI_SHAPE(ndim, shape),
                                     STKI_SHAPE(ndim, plan->image.sample_shape)},
                        "%s: the sample's shape differs from that of record 0 of %s; add a resize or crop to "
                        "its transforms",
                        plan->name, stki_reader_path(plan->field->shards[0], 0, first));
}

static stk_status shape_of(const stki_field_plan *plan, const stki_reader *shard, int64_t within, int64_t *shape,
                           stk_error *err)
{
    const int64_t channels = plan->image.sample_shape[plan->image.channel_axis];
    char path[STKI_RECORD_PATH];
    stk_status status = stki_reader_shape(shard, within, shape, err);

    if (status != STK_OK)
        return status;
    if (plan->image.uniform) {
        bool same = memcmp(shape, plan->image.sample_shape, (size_t)plan->field->ndim * sizeof shape[0]) == 0;

        return same ? STK_OK : other_shape(plan, shard, within, shape, err);
    }
    if (shape[plan->image.channel_axis] != channels)
        return stki_fail_at(err, STK_E_MISMATCH,
                            (stki_place){stki_reader_path(shard, within, path), within, -1,
                                         STKI_TEXT("%" PRId64, shape[plan->image.channel_axis]),
                                         STKI_TEXT("%" PRId64, channels)},
                            "%s: channels of the sample", plan->name);
    return STK_OK;
}

/* Reads the sample's own box: four numbers of any dtype in another field. */
static stk_status read_box(const stki_field_plan *plan, stki_resampler *resampler, int64_t index, double *box,
                           stk_error *err)
{
    static const int64_t tight[] = {sizeof(double)};
    int64_t within;
    const stki_reader *shard = stki_field_locate(plan->image.box_field, index, &within);
    stk_tensor sample;
    stk_status status = shard->ops->read(shard, within, NULL, &resampler->box, &sample, err);

    if (status != STK_OK)
        return status;
    stki_copy_strided(box, STK_F64, tight, sample.data, sample.dtype, sample.strides,
                      (sample.flags & STK_TENSOR_SWAPPED) != 0, 1, sample.shape);
    stki_reader_done(shard, &sample);
    return STK_OK;
}

/* ---- before reading ---- */

/* Sets the smallest size to which the reader may scale down the part, because a JPEG can be decoded at a smaller size.
 * At that size, the box has as many pixels as the result. */
static void ask_for_less(const stki_field_plan *plan, stki_resampler *resampler)
{
    const stki_resize_job *job = &resampler->placement.job;
    stki_want *want = &resampler->want;
    const double height = (double)want->length[plan->image.height_axis],
                 width = (double)want->length[plan->image.width_axis];

    want->enough_height = (int64_t)ceil((double)job->out_height * height / (job->box[3] - job->box[1]));
    want->enough_width = (int64_t)ceil((double)job->out_width * width / (job->box[2] - job->box[0]));
}

/* Requests the part of the sample that the resizer reads. */
static void ask(const stki_field_plan *plan, stki_resampler *resampler)
{
    const stki_resize_support *part = stki_resizer_support(resampler->resizer);
    stki_want *want = &resampler->want;

    *want = (stki_want){.ndim = plan->field->ndim, .given = &resampler->given};
    for (int i = 0; i < want->ndim; i++)
        want->length[i] = resampler->shape[i];
    want->start[plan->image.height_axis] = resampler->placement.top + part->top;
    want->length[plan->image.height_axis] = part->height;
    want->start[plan->image.width_axis] = resampler->placement.left + part->left;
    want->length[plan->image.width_axis] = part->width;
    if (plan->image.geometry->resizes)
        ask_for_less(plan, resampler);
}

stk_status stki_resample_measure(const stki_field_plan *plan, stki_resampler *resampler, int64_t index,
                                 const stki_occasion *occasion, const stki_reader *shard, int64_t within,
                                 int64_t out[3], stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    double box[4] = {0};
    stk_status status = shape_of(plan, shard, within, shape, err);

    if (status != STK_OK)
        return status;
    if (plan->image.box_field && (status = read_box(plan, resampler, index, box, err)) != STK_OK)
        return status;
    return place(plan, shard, within, stki_image_shape_after(plan, shape, box, occasion, out, err), err);
}

stk_status stki_resample_want(const stki_field_plan *plan, stki_resampler *resampler, int64_t index,
                              const stki_occasion *occasion, const stki_reader *shard, int64_t within,
                              const stki_want **out, stk_error *err)
{
    const stki_geometry *geometry = plan->image.geometry;
    stki_placement *placement = &resampler->placement;
    int64_t *shape = resampler->shape;
    double box[4] = {0};
    stk_status status;

    resampler->given = (stki_given){0};
    resampler->occasion = *occasion;
    *out = NULL;
    if ((status = shape_of(plan, shard, within, shape, err)) != STK_OK)
        return status;
    if (!geometry)
        memcpy(resampler->row_shape, shape, sizeof resampler->row_shape);
    if (!geometry)
        return STK_OK;
    if (geometry->box_field && (status = read_box(plan, resampler, index, box, err)) != STK_OK)
        return status;
    if (!resampler->resizer && (status = stki_resizer_create(&resampler->resizer, err)) != STK_OK)
        return status;
    status = stki_geometry_apply(geometry, shape[plan->image.height_axis], shape[plan->image.width_axis], box, occasion,
                                 placement, err);
    placement->job.channels =
        geometry->resizes ? (int)(shape[plan->image.channel_axis] * stk_dtype_size(plan->field->dtype)) : 1;
    if (!geometry->resizes)
        placement->job.filter = STKI_FILTER_NEAREST; /* pixels are only copied */
    if (status == STK_OK)
        stki_image_placed_shape(plan, shape, placement, resampler->row_shape);
    if (status == STK_OK)
        status = stki_resizer_set(resampler->resizer, &placement->job, err);
    if (status != STK_OK)
        return place(plan, shard, within, status, err);
    ask(plan, resampler);
    *out = &resampler->want;
    return STK_OK;
}

/* ---- after reading: the pixels that the row needs ---- */

/* Converts one axis of the job to an image that the reader has scaled down: which pixels the part touches, and the box
 * within them. */
static void scale_axis(int64_t scale, int64_t whole, int64_t *start, int64_t *size, double *low, double *high)
{
    const int64_t first = *start / scale, end = (*start + *size + scale - 1) / scale;
    const double offset = (double)*start / (double)scale - (double)first;

    *start = first;
    *size = (end < whole ? end : whole) - first;
    *low = *low / (double)scale + offset;
    *high = fmin(*high / (double)scale + offset, (double)*size);
}

static stk_status scale_job(stki_resampler *resampler, stk_error *err)
{
    const stki_given *given = &resampler->given;
    stki_placement *p = &resampler->placement;
    double *box = p->job.box;

    scale_axis(given->scale, given->whole_height, &p->top, &p->job.in_height, &box[1], &box[3]);
    scale_axis(given->scale, given->whole_width, &p->left, &p->job.in_width, &box[0], &box[2]);
    return stki_resizer_set(resampler->resizer, &p->job, err);
}

/* Makes a view of `height` x `width` pixels of the data read, starting at (top, left). out->data is NULL if some of
 * them were not read. */
static void window_of(const stki_field_plan *plan, const stk_tensor *sample, int64_t top, int64_t left, int64_t height,
                      int64_t width, stk_tensor *out)
{
    const int y = plan->image.height_axis, x = plan->image.width_axis;

    *out = *sample;
    out->data = NULL;
    if (top < 0 || left < 0 || height > sample->shape[y] - top || width > sample->shape[x] - left)
        return;
    out->shape[y] = height;
    out->shape[x] = width;
    out->data = (char *)sample->data + top * sample->strides[y] + left * sample->strides[x];
}

/* Returns the elements of the view as contiguous, row-major memory in native byte order. Copies them to `to` if
 * necessary. */
static stk_status bring_together(const stk_tensor *view, stki_scratch *to, const void **out, stk_error *err)
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

/* Starts the resizer on the view. Each byte of a two-byte element is treated as a channel. If the result must be
 * padded, resizes it now, and the result becomes the view. */
static stk_status resize(stki_resampler *resampler, const stk_tensor **out, stk_error *err)
{
    const stki_resize_job *job = &resampler->placement.job;
    stk_tensor *view = &resampler->view;
    const stk_dtype dtype = view->dtype;
    const int64_t size = stk_dtype_size(dtype);
    const void *pixels = view->data;
    int64_t line = view->strides[0], bytes;
    stk_status status = STK_OK;

    if ((view->strides[2] != size && job->channels > size) || view->strides[1] != job->channels ||
        (view->flags & STK_TENSOR_SWAPPED)) {
        status = bring_together(view, &resampler->tight, &pixels, err);
        line = view->shape[1] * job->channels;
    }
    if (status != STK_OK)
        return status;
    stki_resizer_begin(resampler->resizer, pixels, line);
    *out = NULL;
    if (!resampler->placement.padded)
        return STK_OK;
    *view =
        (stk_tensor){.dtype = dtype, .ndim = 3, .shape = {job->window_height, job->window_width, job->channels / size}};
    status = stki_row_major(dtype, 3, view->shape, view->strides, &bytes, err);
    if (status != STK_OK || (status = stki_scratch_reserve(&resampler->canvas, bytes, err)) != STK_OK)
        return status;
    view->data = resampler->canvas.data;
    stki_resizer_next(resampler->resizer, view->data, view->strides[0], job->window_height);
    *out = view;
    return STK_OK;
}

/* If the whole sample was read, it must have the announced shape. */
static stk_status check_whole(const stki_field_plan *plan, const stki_resampler *resampler, const stki_reader *shard,
                              int64_t within, const stk_tensor *sample, stk_error *err)
{
    char path[STKI_RECORD_PATH];

    if (sample->ndim == plan->field->ndim &&
        memcmp(sample->shape, resampler->shape, (size_t)sample->ndim * sizeof sample->shape[0]) == 0)
        return STK_OK;
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){stki_reader_path(shard, within, path), within, -1,
                                     STKI_SHAPE(sample->ndim, sample->shape),
                                     STKI_SHAPE(plan->field->ndim, resampler->shape)},
                        "%s: shape of the sample", plan->name);
}

stk_status stki_resample_view(const stki_field_plan *plan, stki_resampler *resampler, const stki_reader *shard,
                              int64_t within, const stk_tensor *sample, const stk_tensor **out, stk_error *err)
{
    const stki_given *given = &resampler->given;
    stk_tensor *view = &resampler->view;
    stki_resize_support part;
    stk_status status = STK_OK;

    *view = *sample;
    *out = view;
    if (given->scale == 0 && (status = check_whole(plan, resampler, shard, within, sample, err)) != STK_OK)
        return status;
    if (!plan->image.geometry) {
        resampler->placement.orientation = (stki_orientation){0};
        resampler->placement.padded = false;
        return STK_OK;
    }
    if (given->scale > 1 && (status = scale_job(resampler, err)) != STK_OK)
        return place(plan, shard, within, status, err);
    part = *stki_resizer_support(resampler->resizer);
    window_of(plan, sample, resampler->placement.top + part.top - given->top,
              resampler->placement.left + part.left - given->left, part.height, part.width, view);
    if (!view->data)
        return place(plan, shard, within,
                     stki_fail(err, STK_E_CORRUPT, "the reader returned less than the requested part"), err);
    return plan->image.geometry->resizes ? resize(resampler, out, err) : STK_OK;
}

/* ---- the row ---- */

/* Converts the whole block to the row. */
static void store_block(const stki_field_plan *plan, const stki_resampler *resampler, const void *block, uint8_t *row)
{
    const stki_orientation o = resampler->placement.orientation;

    stki_convert_run(stki_plan_block_convert(plan, o), row,
                     (const uint8_t *)block + stki_plan_turn_offset(plan, o, plan->image.block_strides));
}

/* Writes lines of the window: from the view `padded` with padding around it, or, if that is NULL, from the resizer. */
static void make_lines(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *padded, int64_t first,
                       int64_t count, uint8_t *to)
{
    if (padded)
        stki_pad_lines(plan, &(stki_block){plan->image.block_strides, plan->image.block_bytes}, &resampler->placement,
                       padded, first, count, to);
    else
        stki_resizer_next(resampler->resizer, to, plan->image.block_strides[0], count);
}

/* Converts the window and writes the result to the row, one strip of lines at a time. If the row is flipped vertically,
 * its last lines are written first. */
static void store_strips(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *padded, uint8_t *row)
{
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t lines = plan->shape[h], width = plan->shape[h + 1], step = plan->image.strip_rows;
    const int64_t stride = stki_plan_line_stride(plan), line = plan->image.block_strides[plan->image.height_axis];
    const stki_orientation o = resampler->placement.orientation;
    const int n = stki_orientation_number(o);
    const int64_t last_pixel = o.flip_v ? (width - 1) * plan->image.block_strides[plan->image.width_axis] : 0;
    uint8_t *strip = resampler->block.data;

    for (int64_t y = 0; y < lines; y += step) {
        const int64_t count = step < lines - y ? step : lines - y;
        const int64_t to = o.flip_u ? lines - y - count : y;

        make_lines(plan, resampler, padded, y, count, strip);
        stki_convert_run(count == step ? plan->image.strips[n] : plan->image.last_strips[n], row + to * stride,
                         strip + (o.flip_u ? (count - 1) * line : 0) + last_pixel);
    }
}

/* Converts the window and writes the result to the row. */
static stk_status store_window(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *padded,
                               void *row, stk_error *err)
{
    const stki_orientation o = resampler->placement.orientation;
    const bool strips = plan->image.strip_rows > 0 && !o.transpose && !plan->image.colors;
    stk_status status =
        stki_scratch_reserve(&resampler->block, strips ? plan->image.strip_bytes : plan->image.block_bytes, err);

    if (status != STK_OK)
        return status;
    if (strips) {
        store_strips(plan, resampler, padded, row);
    } else {
        const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;

        make_lines(plan, resampler, padded, 0, plan->shape[o.transpose ? h + 1 : h], resampler->block.data);
        if (plan->image.colors)
            return stki_color_store(plan, resampler, resampler->block.data, plan->image.block_strides, row, err);
        store_block(plan, resampler, resampler->block.data, row);
    }
    return STK_OK;
}

/* Copies unchanged pixels. */
static stk_status copy(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                       stk_error *err)
{
    const void *block;
    stk_status status;

    if (plan->image.colors)
        return stki_color_store(plan, resampler, view->data, view->strides, row, err);
    status = bring_together(view, &resampler->block, &block, err);
    if (status == STK_OK)
        store_block(plan, resampler, block, row);
    return status;
}

stk_status stki_resample_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view,
                               void *row, stk_error *err)
{
    return !view || resampler->placement.padded ? store_window(plan, resampler, view, row, err)
                                                : copy(plan, resampler, view, row, err);
}
