/* plan.c: see plan.h. */
#include "plan.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "plan_made.h"
#include "plan_window.h"
#include "rows_images.h"
#include "rows_padded.h"
#include "tensor_internal.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message about a field: with its place in the config where there is one. */
static stk_status STK_PRINTF(4, 5)
    fail(stk_error *err, const stki_field_config *config, stk_status status, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (config->node && status == STK_E_CONFIG)
        return stki_fail_node(err, config->node, "%s", text);
    return stki_fail(err, status, "dataset.fields.%s: %s", config->name, text);
}

static stk_status read_layout(const stki_field_config *config, const char *name, bool of_source, enum stki_layout *out,
                              stk_error *err)
{
    static const char *const spellings[][2] = {
        {"", ""}, {"nchw", "chw"}, {"nhwc", "hwc"}, {"channels_last", "channels_last"}};

    *out = STKI_LAYOUT_NONE;
    if (!name)
        return STK_OK;
    for (int i = STKI_LAYOUT_NCHW; i <= (of_source ? STKI_LAYOUT_NHWC : STKI_LAYOUT_CHANNELS_LAST); i++)
        if (strcmp(name, spellings[i][0]) == 0 || strcmp(name, spellings[i][1]) == 0) {
            *out = (enum stki_layout)i;
            return STK_OK;
        }
    return fail(err, config, STK_E_CONFIG, "%slayout: found %s, expected nchw%s", of_source ? "source." : "",
                *name ? name : "\"\"", of_source ? " or nhwc" : ", nhwc or channels_last");
}

/* What the config says of the source, or what the format does. */
static stk_status source_layout(const stki_field_config *config, const stki_field *field, enum stki_layout *out,
                                stk_error *err)
{
    stk_status status = read_layout(config, config->source_layout, true, out, err);
    bool images = true;

    for (int i = 0; i < field->shard_count; i++)
        images = images && field->shards[i]->image;
    if (status != STK_OK || !images)
        return status;
    if (*out == STKI_LAYOUT_NCHW)
        return fail(err, config, STK_E_CONFIG, "source.layout: found %s, but images of %s are nhwc",
                    config->source_layout, field->shards[0]->ops->format);
    *out = STKI_LAYOUT_NHWC;
    return STK_OK;
}

/* Which axis of the sample stands at each axis of a row, and how many channels the sample has (0: none declared). */
static stk_status resolve_axes(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                               int64_t *channels, stk_error *err)
{
    static const int to_chw[] = {2, 0, 1}, to_hwc[] = {1, 2, 0};
    enum stki_layout source;
    stk_status status;
    bool row_is_chw;

    if ((status = source_layout(config, field, &source, err)) != STK_OK ||
        (status = read_layout(config, config->layout, false, &plan->layout, err)) != STK_OK)
        return status;
    plan->source_layout = source;
    for (int i = 0; i < field->ndim; i++)
        plan->source_axis[i] = i;
    if (source == STKI_LAYOUT_NONE) {
        if (plan->layout != STKI_LAYOUT_NONE)
            return fail(
                err, config, STK_E_CONFIG,
                "layout: %s needs to know how the file holds the samples: add source: {layout: nhwc} or {layout: nchw}",
                config->layout);
        *channels = field->ndim == 1 && !field->variable ? field->shape[0] : 0;
        return STK_OK;
    }
    if (field->ndim != 3)
        return fail(err, config, STK_E_CONFIG,
                    "source.layout: found %s for samples of %d ax%s, expected samples of 3 axes", config->source_layout,
                    field->ndim, field->ndim == 1 ? "is" : "es");
    if (plan->layout == STKI_LAYOUT_NONE)
        plan->layout = source;
    *channels = field->shape[source == STKI_LAYOUT_NHWC ? 2 : 0];
    row_is_chw = plan->layout != STKI_LAYOUT_NHWC;
    if (row_is_chw && source == STKI_LAYOUT_NHWC)
        memcpy(plan->source_axis, to_chw, sizeof to_chw);
    else if (!row_is_chw && source == STKI_LAYOUT_NCHW)
        memcpy(plan->source_axis, to_hwc, sizeof to_hwc);
    return STK_OK;
}

static stk_status resolve_dtype(const stki_field_config *config, stki_field_plan *plan, stk_error *err)
{
    const stki_fold *fold = plan->fold;

    plan->dtype = config->dtype ? config->dtype : fold->dtype;
    if (config->dtype && config->dtype != fold->dtype && (fold->quantized || (fold->cast && fold->dtype != STK_F32)))
        return fail(err, config, STK_E_CONFIG, "dtype: found %s, but the transforms end in %s: say it in one place",
                    stk_dtype_name(config->dtype), stk_dtype_name(fold->dtype));
    return STK_OK;
}

stk_status stki_plan_check(const stki_field_config *config, stk_error *err)
{
    enum stki_layout layout;
    stki_field_plan plan = {0};
    stk_status status;

    if ((status = read_layout(config, config->source_layout, true, &layout, err)) != STK_OK ||
        (status = read_layout(config, config->layout, false, &layout, err)) != STK_OK ||
        (status = stki_fold_create(config, STK_DTYPE_NONE, -1, &plan.fold, err)) != STK_OK)
        return status;
    status = plan.fold->dtype ? resolve_dtype(config, &plan, err) : STK_OK;
    stki_fold_destroy(plan.fold);
    return status;
}

/* ---- images ------------------------------------------------------------------------------------------------------
 */

static stk_status first_shape(const stki_field *field, int64_t *shape, stk_error *err)
{
    int64_t within;
    const stki_reader *shard;

    if (stki_field_count(field) == 0)
        return STK_OK;
    shard = stki_field_locate(field, 0, &within);
    return stki_reader_shape(shard, within, shape, err);
}

/* Images of different shapes that nothing makes alike but that are said to be: told when one is not. */
static stk_status take_first_shape(stki_field_plan *plan, stk_error *err)
{
    plan->alike = plan->field->variable;
    return plan->alike ? first_shape(plan->field, plan->sample_shape, err) : STK_OK;
}

static stk_status check_resizable(const stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;

    if (field->dtype != STK_U8)
        return fail(err, plan->config, STK_E_UNSUPPORTED, "resize: found samples of %s, expected uint8",
                    stk_dtype_name(field->dtype));
    if (plan->height_axis != 0 || field->shape[2] > STKI_RESIZE_MAX_CHANNELS)
        return fail(err, plan->config, STK_E_UNSUPPORTED,
                    "resize: found samples of %s, expected source: {layout: nhwc} with 1 to %d channels",
                    STKI_SHAPE(field->ndim, field->shape), STKI_RESIZE_MAX_CHANNELS);
    return STK_OK;
}

/* Samples of one shape: what does not fit fails now and not with the first batch. */
static stk_status place_first(stki_field_plan *plan, stk_error *err)
{
    const int64_t *shape = plan->sample_shape;
    stki_placing *placing = &plan->placing;
    char where[256];
    stk_status status = stki_geometry_apply(plan->geometry, shape[plan->height_axis], shape[plan->width_axis], NULL,
                                            NULL, placing, err);

    placing->job.channels = 1;
    if (status == STK_OK)
        status = stki_resize_check(&placing->job, err);
    if (status != STK_OK)
        return stki_fail_place(err, status, NULL, -1,
                               stki_text(where, sizeof where, "dataset.fields.%s", plan->config->name));
    plan->resample = plan->resample || (placing->padded && !plan->geometry->random);
    return STK_OK;
}

/* `why` is the step behind which shapes differ. */
static stk_status fail_shapes(const stki_field_plan *plan, const stki_geometry_step *why, int64_t height, int64_t width,
                              stk_error *err)
{
    stki_geometry before = *plan->geometry;
    const stki_geometry_step *none;

    if (why->kind != STKI_ROTATE)
        return stki_fail_node(err, why->node,
                              "images of different shapes have different shapes still; center_crop, crop or resize: "
                              "[height, width] behind it would make them alike, or ragged: true keeps "
                              "them as they are");
    before.count = (int)(why - plan->geometry->steps);
    (void)stki_geometry_size(&before, height, width, &height, &width, &none);
    return stki_fail_node(
        err, why->node,
        "found images of %lld x %lld (height x width), expected a square: some of the angles swap "
        "height and width, others do not; crop or resize to a square before, or choose among 0 and 180",
        (long long)height, (long long)width);
}

/* What geometry makes of the samples; its result must have one shape. */
static stk_status resolve_geometry(stki_field_plan *plan, int64_t *image, stk_error *err)
{
    const stki_field *field = plan->field;
    const int y = plan->height_axis, x = plan->width_axis;
    const bool variable = field->variable;
    const stki_geometry_step *why;
    int64_t height, width;
    stk_status status = plan->geometry->resizes ? check_resizable(plan, err) : STK_OK;

    if (status != STK_OK)
        return status;
    plan->random = plan->geometry->random;
    plan->orientations = stki_geometry_orientations(plan->geometry);
    if (!stki_geometry_size(plan->geometry, variable ? 0 : field->shape[y], variable ? 0 : field->shape[x], &height,
                            &width, &why)) {
        if (why)
            return fail_shapes(plan, why, variable ? 0 : field->shape[y], variable ? 0 : field->shape[x], err);
        if ((status = take_first_shape(plan, err)) != STK_OK)
            return status;
        if (!stki_geometry_size(plan->geometry, plan->sample_shape[y], plan->sample_shape[x], &height, &width, &why) &&
            why)
            return fail_shapes(plan, why, plan->sample_shape[y], plan->sample_shape[x], err);
    }
    if ((!variable || plan->alike) && !plan->geometry->box_field && (status = place_first(plan, err)) != STK_OK)
        return status;
    image[y] = height;
    image[x] = width;
    return STK_OK;
}

/* The block holds a window as it is before it is turned. */
static stk_status resolve_block(stki_field_plan *plan, const int64_t *image, stk_error *err)
{
    const bool transposes = plan->orientations > 0xf;
    int64_t shape[STK_MAX_DIMS];

    memcpy(shape, image, sizeof shape);
    if (transposes) {
        shape[plan->height_axis] = image[plan->width_axis];
        shape[plan->width_axis] = image[plan->height_axis];
    }
    return stki_row_major(plan->field->dtype, plan->field->ndim, shape, plan->block_strides, &plan->block_bytes, err);
}

static stk_status resolve_colors(stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;
    const char *step = plan->colors->steps[0].node->key;
    const int64_t channels = field->shape[plan->channel_axis];

    if (field->dtype != STK_U8)
        return fail(err, plan->config, STK_E_UNSUPPORTED, "%s: found samples of %s, expected uint8", step,
                    stk_dtype_name(field->dtype));
    if (channels != 3 && channels != 1)
        return fail(err, plan->config, STK_E_UNSUPPORTED, "%s: found samples of %lld channels, expected 3 or 1", step,
                    (long long)channels);
    plan->resample = true;
    return STK_OK;
}

/* Rows in shapes of their own: geometry whose results differ is as good as any. */
static stk_status resolve_own_geometry(stki_field_plan *plan, stk_error *err)
{
    plan->resample = true;
    if (!plan->geometry)
        return STK_OK;
    plan->random = plan->geometry->random;
    plan->orientations = stki_geometry_orientations(plan->geometry);
    return plan->geometry->resizes ? check_resizable(plan, err) : STK_OK;
}

/* The shape of what a row is made of, in the order of the sample's axes. */
static stk_status resolve_image(stki_field_plan *plan, int64_t *image, stk_error *err)
{
    const stki_field *field = plan->field;
    const bool planar = plan->source_layout == STKI_LAYOUT_NCHW;
    stk_status status = STK_OK;

    memcpy(image, field->shape, sizeof field->shape);
    memcpy(plan->sample_shape, field->shape, sizeof field->shape);
    plan->orientations = 1;
    plan->colors = plan->fold->colors.count > 0 ? &plan->fold->colors : NULL;
    plan->geometry = plan->fold->geometry.count > 0 ? &plan->fold->geometry : NULL;
    if (plan->source_layout == STKI_LAYOUT_NONE)
        return plan->geometry || plan->colors
                   ? stki_fail_node(err, plan->geometry ? plan->geometry->steps[0].node : plan->colors->steps[0].node,
                                    "which axes are height, width and channels? Say how the file holds the samples: "
                                    "source: {layout: nhwc} or {layout: nchw}")
                   : STK_OK;
    plan->height_axis = planar ? 1 : 0;
    plan->width_axis = planar ? 2 : 1;
    plan->channel_axis = planar ? 0 : 2;
    if (plan->config->ragged.asked)
        return resolve_own_geometry(plan, err);
    plan->resample = field->variable;
    if (plan->geometry) {
        plan->resample = field->variable || plan->geometry->resizes;
        status = resolve_geometry(plan, image, err);
    } else {
        plan->alike = true;
        status = field->variable ? first_shape(field, plan->sample_shape, err) : STK_OK;
        memcpy(image, plan->sample_shape, sizeof plan->sample_shape);
    }
    if (status == STK_OK && plan->colors)
        status = resolve_colors(plan, err);
    if (status == STK_OK && (plan->resample || (plan->geometry && plan->geometry->pads)))
        status = resolve_block(plan, image, err);
    return status;
}

static bool holds_boxes(const stki_field *field)
{
    switch (field->dtype) {
    case STK_I8:
    case STK_U8:
    case STK_I16:
    case STK_U16:
    case STK_I32:
    case STK_U32:
    case STK_I64:
    case STK_U64:
    case STK_F16:
    case STK_BF16:
    case STK_F32:
    case STK_F64:
        return field->ndim == 1 && field->shape[0] == 4 && !field->variable;
    default:
        return false;
    }
}

static stk_status resolve(const stki_field_config *config, const stki_field *field, stk_dtype dtype,
                          stki_field_plan *plan, stk_error *err);

/* The same rows in f32, before they are rounded. */
static stk_status make_unrounded(stki_field_plan *plan, stk_error *err)
{
    stki_field_plan *inner = stki_zalloc(sizeof *inner);

    if (!inner)
        return stki_fail_memory(err, sizeof *inner, "a plan");
    plan->unrounded = inner;
    return resolve(plan->config, plan->field, STK_F32, inner, err);
}

stk_status stki_plans_link(stki_field_plan *plans, int count, stk_error *err)
{
    stk_status status;

    for (int i = 0; i < count; i++) {
        stki_field_plan *plan = plans[i].each ? plans[i].each : &plans[i];
        const char *name = plan->geometry ? plan->geometry->box_field : NULL;

        for (int k = 0; name && k < count; k++)
            if (strcmp(plans[k].field->name, name) == 0)
                plan->box_field = plans[k].field;
        if (!name)
            continue;
        if (!plan->box_field)
            return stki_fail_node(err, plan->geometry->steps[0].node, "there is no field %s", name);
        if (!holds_boxes(plan->box_field))
            return stki_fail_node(
                err, plan->geometry->steps[0].node,
                "found field %s with samples of %s %s, expected four numbers each: top, left, height, width", name,
                stk_dtype_name(plan->box_field->dtype), STKI_SHAPE(plan->box_field->ndim, plan->box_field->shape));
    }
    status = stki_made_link(plans, count, err);
    for (int i = 0; i < count && status == STK_OK; i++)
        if (plans[i].mixed_by && plans[i].one_hot)
            status = make_unrounded(&plans[i], err);
    for (int i = 0; i < count; i++) {
        plans[i].number = i;
        if (plans[i].unrounded)
            plans[i].unrounded->number = i;
        if (plans[i].each)
            plans[i].each->number = i;
        if (status == STK_OK)
            stki_plan_list_tensors(&plans[i]);
    }
    return status;
}

/* ---- rows --------------------------------------------------------------------------------------------------------
 */

/* Row-major strides in the order of the memory: for channels_last that is H, W, C behind a C, H, W shape. */
static stk_status resolve_strides(stki_field_plan *plan, stk_error *err)
{
    static const int hwc_of_chw[] = {1, 2, 0};
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
    bool permuted = plan->layout == STKI_LAYOUT_CHANNELS_LAST;
    stk_status status;

    for (int i = 0; i < plan->ndim; i++)
        shape[i] = plan->shape[permuted ? hwc_of_chw[i] : i];
    status = stki_row_major(plan->dtype, plan->ndim, shape, strides, &plan->row_bytes, err);
    if (status != STK_OK)
        return status;
    for (int i = 0; i < plan->ndim; i++)
        plan->strides[permuted ? hwc_of_chw[i] : i] = strides[i];
    return STK_OK;
}

/* Entries along axis 0 that `max_bytes` of the source's samples hold, whatever the longest in the files is. */
static int64_t longest_of(const stki_field *field, int64_t max_bytes)
{
    int64_t bytes = stk_dtype_size(field->dtype);

    for (int i = 1; i < field->ndim; i++)
        bytes *= field->shape[i] > 0 ? field->shape[i] : 1; /* a part of max_bytes of the readers */
    return max_bytes / bytes > 0 ? max_bytes / bytes : 1;
}

/* Samples whose first axis varies. */
static stk_status resolve_varying(stki_field_plan *plan, stk_error *err)
{
    const int64_t max_bytes = plan->config->source.max_bytes;

    if (plan->fold->arithmetic)
        return fail(err, plan->config, STK_E_UNSUPPORTED,
                    "samples of different shapes allow no scale, normalize or quantize");
    plan->rows = &stki_ragged_rows;
    plan->varies = true;
    plan->too_long = "source.max_bytes of the field makes room for longer ones";
    if (max_bytes > 0)
        plan->shape[0] = longest_of(plan->field, max_bytes);
    return STK_OK;
}

static stk_status resolve(const stki_field_config *config, const stki_field *field, stk_dtype dtype,
                          stki_field_plan *plan, stk_error *err)
{
    int64_t channels = 0, image[STK_MAX_DIMS];
    stk_status status;

    *plan = (stki_field_plan){.field = field,
                              .name = field->name,
                              .config = config,
                              .ndim = field->ndim,
                              .rows = &stki_fixed_rows,
                              .is_unrounded = dtype != STK_DTYPE_NONE};
    if (field->ndim + 1 > STK_MAX_DIMS)
        return fail(err, config, STK_E_UNSUPPORTED, "samples of %d axes: a batch would have more than %d", field->ndim,
                    STK_MAX_DIMS);
    if ((status = resolve_axes(config, field, plan, &channels, err)) != STK_OK ||
        (status = stki_fold_create(config, field->dtype, channels, &plan->fold, err)) != STK_OK ||
        (status = resolve_dtype(config, plan, err)) != STK_OK ||
        (config->ragged.asked && (status = stki_own_check(plan, err)) != STK_OK) ||
        (status = resolve_image(plan, image, err)) != STK_OK)
        return status;
    if (config->ragged.asked)
        return (status = stki_own_resolve(plan, err)) != STK_OK ? status : resolve_strides(plan, err);
    if (dtype != STK_DTYPE_NONE) {
        plan->dtype = dtype;
        plan->fold->quantized = false;
    }
    for (int i = 0; i < plan->ndim; i++)
        plan->shape[i] = image[plan->source_axis[i]];
    if (field->variable && !plan->resample && (status = resolve_varying(plan, err)) != STK_OK)
        return status;
    if ((status = stki_pad_resolve(plan, err)) != STK_OK || (status = resolve_strides(plan, err)) != STK_OK)
        return status;
    status = stki_made_resolve(plan, err);
    if (status == STK_OK && plan->mix)
        status = make_unrounded(plan, err);
    if (dtype != STK_DTYPE_NONE && plan->one_hot) {
        plan->dtype = dtype;
        return stki_row_major(dtype, 1, plan->shape, plan->strides, &plan->row_bytes, err);
    }
    return status;
}

static stk_status resolve_sample(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                                 stk_error *err)
{
    return resolve(config, field, STK_DTYPE_NONE, plan, err);
}

stk_status stki_plan_resolve(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                             stk_error *err)
{
    return config->row_samples > 0 ? stki_window_resolve(config, field, resolve_sample, plan, err)
                                   : resolve(config, field, STK_DTYPE_NONE, plan, err);
}

/* What all conversions of a plan have in common. */
typedef struct making {
    const float *a, *b;
    enum stki_stores stores;
    int64_t bytes_in_flight;
} making;

/* Strides of the sample (along its axes) as a row sees them that comes in this orientation. */
static void turn_strides(const stki_field_plan *plan, stki_orientation o, const int64_t *from, int64_t *to)
{
    const int y = plan->height_axis, x = plan->width_axis;

    for (int i = 0; i < plan->ndim; i++)
        to[i] = from[i];
    if (y == x) /* no image */
        return;
    to[o.transpose ? x : y] = o.flip_u ? -from[y] : from[y];
    to[o.transpose ? y : x] = o.flip_v ? -from[x] : from[x];
}

/* Rows from samples of this shard, or (NULL) from the block. */
static void describe(const stki_field_plan *plan, const stki_reader *shard, const making *m, stki_orientation o,
                     stki_convert_desc *desc)
{
    const stki_fold *fold = plan->fold;
    int64_t strides[STK_MAX_DIMS];

    *desc = (stki_convert_desc){
        .src_dtype = plan->field->dtype,
        .dst_dtype = plan->dtype,
        .src_swapped = shard && shard->swapped,
        .ndim = plan->ndim,
        .affine = fold->arithmetic,
        .channel_axis = fold->channels > 1 ? (plan->layout == STKI_LAYOUT_NHWC ? 2 : 0) : -1,
        .channels = fold->channels,
        .a = m->a,
        .b = m->b,
        .quantized = fold->quantized,
        .zero_point = fold->zero_point,
        .stores = m->stores,
        .bytes_in_flight = m->bytes_in_flight,
    };
    if (plan->device_convert) { /* the samples as they are: the arithmetic is the device's */
        desc->affine = false;
        desc->channel_axis = -1;
        desc->channels = 1;
        desc->quantized = false;
        desc->zero_point = 0;
    }
    if (desc->quantized) {
        desc->qmin = plan->dtype == STK_I8 ? INT8_MIN : plan->dtype == STK_U8 ? 0 : INT32_MIN;
        desc->qmax = plan->dtype == STK_I8 ? INT8_MAX : plan->dtype == STK_U8 ? UINT8_MAX : INT32_MAX;
    }
    turn_strides(plan, o, shard ? shard->strides : plan->block_strides, strides);
    for (int i = 0; i < plan->ndim; i++) {
        desc->shape[i] = plan->shape[i];
        desc->src_strides[i] = strides[plan->source_axis[i]];
        desc->dst_strides[i] = plan->strides[i];
    }
}

static bool same_geometry(const stki_field_plan *plan, const stki_reader *x, const stki_reader *y)
{
    if (plan->resample)
        return true;
    return x->swapped == y->swapped && memcmp(x->strides, y->strides, (size_t)x->ndim * sizeof x->strides[0]) == 0;
}

/* A conversion of `lines` pixel rows of the block into as many of the row. */
static stk_status compile_strip(stki_field_plan *plan, stki_convert_desc desc, int64_t lines, stki_convert **out,
                                stk_error *err)
{
    desc.shape[plan->layout == STKI_LAYOUT_NHWC ? 0 : 1] = lines;
    return stki_convert_create(&desc, out, err);
}

/* Whoever writes past the caches waits for memory; resizing or padding meanwhile is for free. */
static stk_status compile_strips(stki_field_plan *plan, const making *m, stk_error *err)
{
    enum { STRIP_BYTES = 12 << 10, LINES = 4 };
    int64_t lines, strip;
    stk_status status = STK_OK;

    if (!plan->geometry || plan->height_axis != 0 || (!plan->geometry->resizes && !plan->geometry->pads))
        return STK_OK;
    lines = plan->shape[plan->layout == STKI_LAYOUT_NHWC ? 0 : 1];
    strip = STRIP_BYTES / plan->block_strides[0] / LINES * LINES;
    strip = strip < LINES ? LINES : strip;
    if (strip >= lines)
        return STK_OK;
    plan->strip_rows = strip;
    plan->strip_bytes = strip * plan->block_strides[0];
    for (int n = 0; n < 4 && status == STK_OK; n++) {
        stki_convert_desc desc;

        if (!(plan->orientations & 1u << n))
            continue;
        describe(plan, NULL, m, stki_orientation_of(n), &desc);
        status = compile_strip(plan, desc, strip, &plan->strips[n], err);
        if (status == STK_OK && lines % strip != 0)
            status = compile_strip(plan, desc, lines % strip, &plan->last_strips[n], err);
    }
    return status;
}

/* Rows, or `lines` lines of them, from f32 planes of as many lines as `high` says. */
static void describe_planes(const stki_field_plan *plan, const making *m, int64_t lines, int64_t high,
                            stki_convert_desc *desc)
{
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1, c = h == 0 ? 2 : 0;
    const int64_t width = plan->shape[h + 1], size = sizeof(float);

    describe(plan, NULL, m, (stki_orientation){0}, desc);
    desc->src_dtype = STK_F32;
    desc->shape[h] = lines;
    desc->src_strides[h] = width * size;
    desc->src_strides[h + 1] = size;
    desc->src_strides[c] = high * width * size;
}

/* Colours change in f32, between the bytes and the conversion. */
static stk_status compile_colors(stki_field_plan *plan, const making *m, stk_error *err)
{
    enum { STRIP_BYTES = 24 << 10 };
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t lines = plan->shape[h], line = plan->shape[h + 1] * plan->shape[h == 0 ? 2 : 0] * 4;
    int64_t strip = STRIP_BYTES / (line > 0 ? line : 1);
    stki_convert_desc desc;
    stk_status status;

    strip = strip < 1 ? 1 : strip > lines ? lines : strip;
    plan->strip_rows = strip;
    plan->strip_bytes = strip * line;
    describe_planes(plan, m, lines, lines, &desc);
    status = stki_convert_create(&desc, &plan->turned[0], err); /* what is said of the whole row */
    if (status != STK_OK)
        return status;
    plan->converts[0] = plan->turned[0];
    plan->convert_count = 1;
    describe_planes(plan, m, strip, strip, &desc);
    status = stki_convert_create(&desc, &plan->strips[0], err);
    if (status != STK_OK || lines == 0 || lines % strip == 0)
        return status;
    describe_planes(plan, m, lines % strip, strip, &desc);
    return stki_convert_create(&desc, &plan->last_strips[0], err);
}

/* From samples of this shard, or (NULL) from the block, in every orientation that can come. */
static stk_status compile_turned(const stki_field_plan *plan, const stki_reader *shard, const making *m,
                                 stki_convert **out, stk_error *err)
{
    stk_status status = STK_OK;

    for (int n = 0; n < STKI_ORIENTATIONS && status == STK_OK; n++) {
        stki_convert_desc desc;

        if (!(plan->orientations & 1u << n))
            continue;
        describe(plan, shard, m, stki_orientation_of(n), &desc);
        status = stki_convert_create(&desc, &out[n], err);
    }
    return status;
}

static stk_status compile_all(stki_field_plan *plan, const making *m, stk_error *err)
{
    const stki_field *field = plan->field;
    stk_status status = STK_OK;

    if (plan->colors)
        return compile_colors(plan, m, err);
    for (int i = 0; i < field->shard_count && status == STK_OK; i++) {
        stki_convert **turned = &plan->turned[plan->convert_count * STKI_ORIENTATIONS];
        int same = 0, n = 0;

        while (same < i && !same_geometry(plan, field->shards[same], field->shards[i]))
            same++;
        if (same < i) {
            plan->convert_of_shard[i] = plan->convert_of_shard[same];
            continue;
        }
        plan->convert_of_shard[i] = plan->convert_count++;
        status = compile_turned(plan, plan->resample ? NULL : field->shards[i], m, turned, err);
        while (status == STK_OK && !turned[n])
            n++;
        plan->converts[plan->convert_of_shard[i]] = turned[n];
    }
    if (status == STK_OK)
        status = compile_strips(plan, m, err);
    if (status == STK_OK && plan->geometry && plan->geometry->pads && !plan->resample)
        status = compile_turned(plan, NULL, m, plan->padded, err);
    return status;
}

static stk_status compile_shards(stki_field_plan *plan, const making *m, stk_error *err)
{
    stk_error cause = {0};
    stk_status status = compile_all(plan, m, &cause);

    return status == STK_OK ? STK_OK : fail(err, plan->config, status, "%s", cause.message);
}

/* `fill` would be clamped. */
static stk_status check_fill(const stki_field_plan *plan, stk_error *err)
{
    const int64_t size = stk_dtype_size(plan->field->dtype), none = 0, one = 1;

    for (int i = 0; plan->field->dtype < STK_F16 && i < plan->geometry->fill_count; i++) {
        double back;

        stki_copy_strided(&back, STK_F64, &none, plan->fill + (plan->geometry->fill_count > 1 ? i * size : 0),
                          plan->field->dtype, &none, false, 1, &one);
        if (fabs(back - plan->geometry->fill[i]) >= 1)
            return fail(err, plan->config, STK_E_CONFIG, "fill: found %g, which %s does not hold",
                        plan->geometry->fill[i], stk_dtype_long_name(plan->field->dtype));
    }
    return STK_OK;
}

/* What is beside the image, in the samples' dtype. */
static stk_status make_fill(stki_field_plan *plan, stk_error *err)
{
    const stki_geometry *geometry = plan->geometry;
    const int64_t size = stk_dtype_size(plan->field->dtype), from = geometry ? geometry->fill_count > 1 ? 8 : 0 : 0;
    const int64_t channels = plan->sample_shape[plan->channel_axis];

    if (!geometry || !geometry->pads || geometry->padding != STKI_PAD_CONSTANT)
        return STK_OK;
    if (geometry->fill_count > 1 && geometry->fill_count != channels)
        return fail(err, plan->config, STK_E_CONFIG, "fill: found %d values, expected 1 or %lld, one a channel",
                    geometry->fill_count, (long long)channels);
    plan->fill = stki_zalloc_array(channels, size);
    if (!plan->fill)
        return stki_fail_memory(err, channels * size, "a fill value");
    stki_copy_strided(plan->fill, plan->field->dtype, &size, geometry->fill, STK_F64, &from, false, 1, &channels);
    plan->fill_is_bytes = true;
    for (int64_t i = 1; i < channels * size; i++)
        plan->fill_is_bytes = plan->fill_is_bytes && plan->fill[i] == plan->fill[0];
    return check_fill(plan, err);
}

stk_status stki_plan_coefficients(const stki_field_plan *plan, float **out, stk_error *err)
{
    const stki_fold *fold = plan->fold;
    float *a = stki_zalloc_array(2 * fold->channels, sizeof *a);
    stk_status status = STK_OK;

    if (!a)
        return stki_fail_memory(err, 2 * fold->channels * (int64_t)sizeof *a, "coefficients");
    for (int64_t c = 0; c < fold->channels && status == STK_OK; c++) { /* rounded to f32 once, here */
        a[c] = (float)fold->a[c];
        a[fold->channels + c] = (float)fold->b[c];
        if (!isfinite(a[c]) || !isfinite(a[fold->channels + c]))
            status =
                fail(err, plan->config, STK_E_CONFIG,
                     "the transforms come to x * %g + %g in channel %lld, found numbers beyond what float32 can hold",
                     fold->a[c], fold->b[c], (long long)c);
    }
    if (status == STK_OK)
        *out = a;
    else
        stki_free(a);
    return status;
}

void stki_plan_describe(const stki_field_plan *plan, const float *coefficients, stki_convert_desc *desc)
{
    const making m = {.a = coefficients, .b = coefficients + plan->fold->channels};

    describe(plan, plan->field->shards[0], &m, stki_orientation_of(0), desc);
}

static stk_status compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight, stk_error *err)
{
    float *a;
    stk_status status;

    if (plan->rows->has_shapes)
        return make_fill(plan, err);
    if (plan->rows->measured || plan->one_hot)
        return STK_OK;
    plan->converts = stki_zalloc_array(plan->field->shard_count, sizeof *plan->converts);
    plan->turned = stki_zalloc_array(plan->field->shard_count * (int64_t)STKI_ORIENTATIONS, sizeof *plan->turned);
    plan->convert_of_shard = stki_zalloc_array(plan->field->shard_count, sizeof *plan->convert_of_shard);
    if (!plan->converts || !plan->turned || !plan->convert_of_shard)
        return stki_fail_memory(err, plan->field->shard_count * (int64_t)sizeof *plan->converts, "a plan");
    status = stki_plan_coefficients(plan, &a, err);
    if (status != STK_OK)
        return status;
    status = compile_shards(
        plan, &(making){.a = a, .b = a + plan->fold->channels, .stores = stores, .bytes_in_flight = bytes_in_flight},
        err);
    stki_free(a);
    if (status == STK_OK)
        status = make_fill(plan, err);
    if (status != STK_OK)
        return status;
    plan->units = INT64_MAX;
    for (int i = 0; i < plan->convert_count * STKI_ORIENTATIONS; i++) {
        int64_t units = plan->turned[i] ? stki_convert_units(plan->turned[i]) : INT64_MAX;
        if (units < plan->units)
            plan->units = units;
    }
    return STK_OK;
}

stk_status stki_plan_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight, stk_error *err)
{
    stk_status status = plan->each ? stki_plan_compile(plan->each, stores, bytes_in_flight, err)
                                   : compile(plan, stores, bytes_in_flight, err);

    if (status == STK_OK && plan->unrounded)
        plan->unrounded->box_field = plan->box_field;
    if (status == STK_OK && plan->unrounded)
        status = stki_plan_compile(plan->unrounded, STKI_STORES_CACHED, bytes_in_flight, err);
    return status == STK_OK ? stki_made_compile(plan, stores, err) : status;
}

void stki_plan_fini(stki_field_plan *plan)
{
    stki_field_plan *const inner[] = {plan->each, plan->unrounded};

    for (int i = 0; i < 2; i++)
        if (inner[i]) {
            stki_plan_fini(inner[i]);
            stki_free(inner[i]);
        }
    stki_made_fini(plan);
    for (int i = 0; plan->turned && i < plan->convert_count * STKI_ORIENTATIONS; i++)
        stki_convert_destroy(plan->turned[i]);
    for (int n = 0; n < 4; n++) {
        stki_convert_destroy(plan->strips[n]);
        stki_convert_destroy(plan->last_strips[n]);
    }
    for (int n = 0; n < STKI_ORIENTATIONS; n++)
        stki_convert_destroy(plan->padded[n]);
    stki_convert_destroy(plan->device_convert);
    stki_free(plan->fill);
    stki_free(plan->turned);
    stki_free(plan->converts);
    stki_free(plan->convert_of_shard);
    stki_fold_destroy(plan->fold);
    *plan = (stki_field_plan){0};
}
