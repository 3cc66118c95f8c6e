/* plan_image.c: see plan_image.h. */
#include "plan_image.h"
#include "allocate.h"
#include "error.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

static stk_status first_shape(const stki_field *field, int64_t *shape, stk_error *err)
{
    int64_t within;
    const stki_reader *shard;

    if (stki_field_count(field) == 0)
        return STK_OK;
    shard = stki_field_locate(field, 0, &within);
    return stki_reader_shape(shard, within, shape, err);
}

/* If no step gives images of different shapes the same shape, all of them must have the shape of the first one. A
 * sample that differs is an error. */
static stk_status take_first_shape(stki_field_plan *plan, stk_error *err)
{
    plan->image.uniform = plan->field->variable;
    return plan->image.uniform ? first_shape(plan->field, plan->image.sample_shape, err) : STK_OK;
}

/* Rejects a step that computes new values from pixels that are class numbers. `step`: name of such a step; NULL:
 * none. */
static stk_status check_colors_allowed(const stki_field_plan *plan, const char *step, const char *unless,
                                       stk_error *err)
{
    const stki_field *field = plan->field;

    if (!step || field->shard_count == 0 || !field->shards[0]->indices)
        return STK_OK;
    return stki_fail_field(
        err, plan->config, STK_E_CONFIG,
        "%s changes pixel values, which are class numbers with source.color: index; remove this step%s", step, unless);
}

static stk_status check_resizable(const stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;
    const bool nearest = plan->image.geometry->filter == STKI_FILTER_NEAREST;
    stk_status status = check_colors_allowed(plan, nearest ? NULL : "resize", " or use interpolation: nearest", err);

    if (status != STK_OK)
        return status;
    if (field->dtype == STK_U16 && nearest && field->shape[2] <= STKI_RESIZE_MAX_CHANNELS / 2 &&
        plan->image.height_axis == 0)
        return STK_OK; /* treated as uint8 with twice as many channels, because bytes are only copied */
    if (field->dtype != STK_U8)
        return stki_fail_field(err, plan->config, STK_E_UNSUPPORTED,
                               "resize: found samples of %s, expected uint8, or uint16 of 1 or 2 channels with "
                               "interpolation: nearest",
                               stk_dtype_name(field->dtype));
    if (plan->image.height_axis != 0 || field->shape[2] > STKI_RESIZE_MAX_CHANNELS)
        return stki_fail_field(err, plan->config, STK_E_UNSUPPORTED,
                               "resize: found samples of %s, expected source: {layout: nhwc} with 1 to %d channels",
                               STKI_SHAPE(field->ndim, field->shape), STKI_RESIZE_MAX_CHANNELS);
    return STK_OK;
}

/* Computes the placement for samples of one shape, so that a step that does not fit is reported now instead of with the
 * first batch. */
static stk_status place_first(stki_field_plan *plan, stk_error *err)
{
    const int64_t *shape = plan->image.sample_shape;
    stki_placement *placement = &plan->image.placement;
    char where[256];
    stk_status status = stki_geometry_apply(plan->image.geometry, shape[plan->image.height_axis],
                                            shape[plan->image.width_axis], NULL, NULL, placement, err);

    placement->job.channels = 1;
    if (status == STK_OK)
        status = stki_resize_check(&placement->job, err);
    if (status != STK_OK)
        return stki_fail_place(err, status, NULL, -1,
                               stki_text(where, sizeof where, "dataset.fields.%s", plan->config->name));
    plan->image.resample = plan->image.resample || (placement->padded && !plan->image.geometry->random);
    return STK_OK;
}

/* Fails because shapes differ after step `why`. */
static stk_status fail_shapes(const stki_field_plan *plan, const stki_geometry_step *why, int64_t height, int64_t width,
                              stk_error *err)
{
    stki_geometry before = *plan->image.geometry;
    const stki_geometry_step *none;

    if (why->kind != STKI_ROTATE)
        return stki_fail_node(err, why->node,
                              "images still have different shapes; add center_crop, crop or resize: [height, width] "
                              "after it, or set ragged: true");
    before.count = (int)(why - plan->image.geometry->steps);
    (void)stki_geometry_size(&before, height, width, &height, &width, &none);
    return stki_fail_node(
        err, why->node,
        "found images of %lld x %lld (height x width), expected a square: some of the angles swap "
        "height and width, others do not; crop or resize to a square before, or use only the angles 0 and 180",
        (long long)height, (long long)width);
}

/* Computes the shape that the geometry steps produce, which must be the same for all samples. */
static stk_status resolve_geometry(stki_field_plan *plan, int64_t *image, stk_error *err)
{
    const stki_field *field = plan->field;
    const int y = plan->image.height_axis, x = plan->image.width_axis;
    const bool variable = field->variable;
    const stki_geometry_step *why;
    int64_t height, width;
    stk_status status = plan->image.geometry->resizes ? check_resizable(plan, err) : STK_OK;

    if (status != STK_OK)
        return status;
    plan->image.random = plan->image.geometry->random;
    plan->image.orientations = stki_geometry_orientations(plan->image.geometry);
    if (!stki_geometry_size(plan->image.geometry, variable ? 0 : field->shape[y], variable ? 0 : field->shape[x],
                            &height, &width, &why)) {
        if (why)
            return fail_shapes(plan, why, variable ? 0 : field->shape[y], variable ? 0 : field->shape[x], err);
        if ((status = take_first_shape(plan, err)) != STK_OK)
            return status;
        if (!stki_geometry_size(plan->image.geometry, plan->image.sample_shape[y], plan->image.sample_shape[x], &height,
                                &width, &why) &&
            why)
            return fail_shapes(plan, why, plan->image.sample_shape[y], plan->image.sample_shape[x], err);
    }
    if ((!variable || plan->image.uniform) && !plan->image.geometry->box_field &&
        (status = place_first(plan, err)) != STK_OK)
        return status;
    image[y] = height;
    image[x] = width;
    return STK_OK;
}

/* Computes the layout of the block, which holds the window before it is reoriented. */
static stk_status resolve_block(stki_field_plan *plan, const int64_t *image, stk_error *err)
{
    const bool transposes = plan->image.orientations > 0xf;
    int64_t shape[STK_MAX_DIMS];

    memcpy(shape, image, sizeof shape);
    if (transposes) {
        shape[plan->image.height_axis] = image[plan->image.width_axis];
        shape[plan->image.width_axis] = image[plan->image.height_axis];
    }
    return stki_row_major(plan->field->dtype, plan->field->ndim, shape, plan->image.block_strides,
                          &plan->image.block_bytes, err);
}

static stk_status resolve_colors(stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;
    const char *step = plan->image.colors->steps[0].node->key;
    const int64_t channels = field->shape[plan->image.channel_axis];
    stk_status status = check_colors_allowed(plan, step, "", err);

    if (status != STK_OK)
        return status;
    if (field->dtype != STK_U8)
        return stki_fail_field(err, plan->config, STK_E_UNSUPPORTED, "%s: found samples of %s, expected uint8", step,
                               stk_dtype_name(field->dtype));
    if (channels != 3 && channels != 1)
        return stki_fail_field(err, plan->config, STK_E_UNSUPPORTED,
                               "%s: found samples with %lld channels, expected 3 or 1", step, (long long)channels);
    plan->image.resample = true;
    return STK_OK;
}

/* Resolves the geometry of rows with their own shapes, which need not be equal. */
static stk_status resolve_own_geometry(stki_field_plan *plan, stk_error *err)
{
    plan->image.resample = true;
    if (!plan->image.geometry)
        return STK_OK;
    plan->image.random = plan->image.geometry->random;
    plan->image.orientations = stki_geometry_orientations(plan->image.geometry);
    return plan->image.geometry->resizes ? check_resizable(plan, err) : STK_OK;
}

stk_status stki_plan_image_resolve(stki_field_plan *plan, int64_t *image, stk_error *err)
{
    const stki_field *field = plan->field;
    const bool planar = plan->source_layout == STKI_LAYOUT_NCHW;
    stk_status status = STK_OK;

    memcpy(image, field->shape, sizeof field->shape);
    memcpy(plan->image.sample_shape, field->shape, sizeof field->shape);
    plan->image.orientations = 1;
    plan->image.colors = plan->fold->colors.count > 0 ? &plan->fold->colors : NULL;
    plan->image.geometry = plan->fold->geometry.count > 0 ? &plan->fold->geometry : NULL;
    if (plan->source_layout == STKI_LAYOUT_NONE)
        return plan->image.geometry || plan->image.colors
                   ? stki_fail_node(err,
                                    plan->image.geometry ? plan->image.geometry->steps[0].node
                                                         : plan->image.colors->steps[0].node,
                                    "the axes of height, width and channels are unknown; specify the layout of the "
                                    "samples: source: {layout: nhwc} or {layout: nchw}")
                   : STK_OK;
    plan->image.height_axis = planar ? 1 : 0;
    plan->image.width_axis = planar ? 2 : 1;
    plan->image.channel_axis = planar ? 0 : 2;
    if (plan->config->ragged.asked)
        return resolve_own_geometry(plan, err);
    plan->image.resample = field->variable;
    if (plan->image.geometry) {
        plan->image.resample = field->variable || plan->image.geometry->resizes;
        status = resolve_geometry(plan, image, err);
    } else {
        plan->image.uniform = true;
        status = field->variable ? first_shape(field, plan->image.sample_shape, err) : STK_OK;
        memcpy(image, plan->image.sample_shape, sizeof plan->image.sample_shape);
    }
    if (status == STK_OK && plan->image.colors)
        status = resolve_colors(plan, err);
    if (status == STK_OK && (plan->image.resample || (plan->image.geometry && plan->image.geometry->pads)))
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

stk_status stki_plan_image_link(stki_field_plan *plan, const stki_field_plan *plans, int count, stk_error *err)
{
    stki_plan_image *image = &plan->image;
    const char *name = image->geometry ? image->geometry->box_field : NULL;

    for (int k = 0; name && k < count; k++)
        if (strcmp(plans[k].field->name, name) == 0)
            image->box_field = plans[k].field;
    if (!name)
        return STK_OK;
    if (!image->box_field)
        return stki_fail_node(err, image->geometry->steps[0].node, "there is no field %s", name);
    if (!holds_boxes(image->box_field))
        return stki_fail_node(
            err, image->geometry->steps[0].node,
            "found field %s with samples of %s %s, expected four numbers each: top, left, height, width", name,
            stk_dtype_name(image->box_field->dtype), STKI_SHAPE(image->box_field->ndim, image->box_field->shape));
    return STK_OK;
}

/* ---- fill ---- */

/* Rejects a `fill` outside the range of the samples' dtype. */
static stk_status check_fill(const stki_field_plan *plan, stk_error *err)
{
    const int64_t size = stk_dtype_size(plan->field->dtype), none = 0, one = 1;

    for (int i = 0; plan->field->dtype < STK_F16 && i < plan->image.geometry->fill_count; i++) {
        double back;

        stki_copy_strided(&back, STK_F64, &none,
                          plan->image.fill + (plan->image.geometry->fill_count > 1 ? i * size : 0), plan->field->dtype,
                          &none, false, 1, &one);
        if (fabs(back - plan->image.geometry->fill[i]) >= 1)
            return stki_fail_field(err, plan->config, STK_E_CONFIG, "fill: found %g, which %s cannot represent",
                                   plan->image.geometry->fill[i], stk_dtype_long_name(plan->field->dtype));
    }
    return STK_OK;
}

stk_status stki_plan_image_fill(stki_field_plan *plan, stk_error *err)
{
    const stki_geometry *geometry = plan->image.geometry;
    const int64_t size = stk_dtype_size(plan->field->dtype), from = geometry ? geometry->fill_count > 1 ? 8 : 0 : 0;
    const int64_t channels = plan->image.sample_shape[plan->image.channel_axis];

    if (!geometry || !geometry->pads || geometry->padding != STKI_PAD_CONSTANT)
        return STK_OK;
    if (geometry->fill_count > 1 && geometry->fill_count != channels)
        return stki_fail_field(err, plan->config, STK_E_CONFIG,
                               "fill: found %d values, expected 1 or %lld, one per channel", geometry->fill_count,
                               (long long)channels);
    plan->image.fill = stki_zalloc_array(channels, size);
    if (!plan->image.fill)
        return stki_fail_memory(err, channels * size, "a fill value");
    stki_copy_strided(plan->image.fill, plan->field->dtype, &size, geometry->fill, STK_F64, &from, false, 1, &channels);
    plan->image.fill_is_bytes = true;
    for (int64_t i = 1; i < channels * size; i++)
        plan->image.fill_is_bytes = plan->image.fill_is_bytes && plan->image.fill[i] == plan->image.fill[0];
    return check_fill(plan, err);
}
