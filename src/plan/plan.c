/* plan.c: see plan.h. */
#include "plan.h"
#include "allocate.h"
#include "checked.h"
#include "convert_internal.h"
#include "error.h"
#include "late_rows.h"
#include "plan_image.h"
#include "rows_images.h"
#include "rows_padded.h"
#include "tensor_internal.h"
#include <string.h>

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
    return stki_fail_field(err, config, STK_E_CONFIG, "%slayout: found %s, expected nchw%s", of_source ? "source." : "",
                           *name ? name : "\"\"", of_source ? " or nhwc" : ", nhwc or channels_last");
}

/* Determines the source layout: NHWC for image formats, otherwise the layout in the config. */
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
        return stki_fail_field(err, config, STK_E_CONFIG, "source.layout: found %s, but images of %s are nhwc",
                               config->source_layout, field->shards[0]->ops->format);
    *out = STKI_LAYOUT_NHWC;
    return STK_OK;
}

/* Determines to which axis of the sample each axis of a row corresponds, and how many channels the sample has (0: none
 * declared). */
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
            return stki_fail_field(
                err, config, STK_E_CONFIG,
                "layout: %s requires the layout of the stored samples: add source: {layout: nhwc} or {layout: nchw}",
                config->layout);
        *channels = field->ndim == 1 && !field->variable ? field->shape[0] : 0;
        return STK_OK;
    }
    if (field->ndim != 3)
        return stki_fail_field(err, config, STK_E_CONFIG,
                               "source.layout: found %s for samples of %d ax%s, expected samples of 3 axes",
                               config->source_layout, field->ndim, field->ndim == 1 ? "is" : "es");
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
        return stki_fail_field(err, config, STK_E_CONFIG,
                               "dtype: found %s, but the transforms end in %s: specify it only once",
                               stk_dtype_name(config->dtype), stk_dtype_name(fold->dtype));
    if (fold->arithmetic && stki_convert_dst_of(plan->dtype) == STKI_DST_KINDS) {
        static const char expected[] = "f32, f16, bf16, i32, u8 or i8 after arithmetic or colors: choose one of these, "
                                       "and convert the batch afterwards";
        const stki_node *node = config->dtype ? stki_node_get(config->node, "dtype") : config->transforms;
        if (node)
            return stki_fail_node(err, node, "found %s, expected %s", stk_dtype_name(plan->dtype), expected);
        return stki_fail_field(err, config, STK_E_CONFIG, "dtype: found %s, expected %s", stk_dtype_name(plan->dtype),
                               expected);
    }
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

/* ---- rows ---- */

/* Computes strides for rows that are row-major in the order of memory. For channels_last that order is H, W, C,
 * although the shape is C, H, W. */
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

/* Returns the number of entries along axis 0 that fit in `max_bytes`, even if no sample in the files is that long. */
static int64_t longest_of(const stki_field *field, int64_t max_bytes)
{
    int64_t bytes = stk_dtype_size(field->dtype);

    for (int i = 1; i < field->ndim; i++)
        /* cannot overflow, because it is part of the readers' max_bytes */
        bytes *= field->shape[i] > 0 ? field->shape[i] : 1;
    return max_bytes / bytes > 0 ? max_bytes / bytes : 1;
}

/* Resolves samples whose first axis varies. */
static stk_status resolve_varying(stki_field_plan *plan, stk_error *err)
{
    const int64_t max_bytes = plan->config->source.max_bytes;

    if (plan->fold->arithmetic)
        return stki_fail_field(err, plan->config, STK_E_UNSUPPORTED,
                               "scale, normalize and quantize require samples of one shape");
    plan->rows = &stki_ragged_rows;
    plan->varies = true;
    plan->too_long = "source.max_bytes of the field allows longer rows";
    if (max_bytes > 0)
        plan->shape[0] = longest_of(plan->field, max_bytes);
    return STK_OK;
}

static stk_status resolve(const stki_field_config *config, const stki_field *field, bool unrounded,
                          stki_field_plan *plan, stk_error *err);

/* Makes the plan of the same rows in f32, before rounding. */
static stk_status make_unrounded(stki_field_plan *plan, stk_error *err)
{
    plan->inner = stki_zalloc(sizeof *plan->inner);
    return plan->inner ? resolve(plan->config, plan->field, true, plan->inner, err)
                       : stki_fail_memory(err, sizeof *plan->inner, "a plan");
}

static stk_status resolve(const stki_field_config *config, const stki_field *field, bool unrounded,
                          stki_field_plan *plan, stk_error *err)
{
    int64_t channels = 0, image[STK_MAX_DIMS];
    stk_status status;

    *plan = (stki_field_plan){.field = field,
                              .name = field->name,
                              .config = config,
                              .ndim = field->ndim,
                              .rows = &stki_fixed_rows,
                              .is_unrounded = unrounded};
    if (field->ndim + 1 > STK_MAX_DIMS)
        return stki_fail_field(err, config, STK_E_UNSUPPORTED, "samples of %d axes: a batch would have more than %d",
                               field->ndim, STK_MAX_DIMS);
    if ((status = resolve_axes(config, field, plan, &channels, err)) != STK_OK ||
        (status = stki_fold_create(config, field->dtype, channels, &plan->fold, err)) != STK_OK ||
        (status = resolve_dtype(config, plan, err)) != STK_OK ||
        (config->ragged.asked && (status = stki_image_rows_check(plan, err)) != STK_OK) ||
        (status = stki_plan_image_resolve(plan, image, err)) != STK_OK)
        return status;
    if (config->ragged.asked)
        return (status = stki_image_rows_resolve(plan, err)) != STK_OK ? status : resolve_strides(plan, err);
    if (unrounded) {
        plan->dtype = STK_F32;
        plan->fold->quantized = false;
    }
    for (int i = 0; i < plan->ndim; i++)
        plan->shape[i] = image[plan->source_axis[i]];
    if (field->variable && !plan->image.resample && (status = resolve_varying(plan, err)) != STK_OK)
        return status;
    if ((status = stki_pad_resolve(plan, err)) != STK_OK || (status = resolve_strides(plan, err)) != STK_OK)
        return status;
    plan->converts = !plan->rows->measured;
    if ((status = stki_late_resolve(plan, err)) != STK_OK)
        return status;
    return stki_mix_wants_unrounded(plan) ? make_unrounded(plan, err) : STK_OK;
}

/* ---- windows ---- */

static stk_status check_sample(const stki_field_config *config, const stki_field_plan *each, stk_error *err)
{
    const stki_reader *first = each->field->shards[0];
    const stki_node *mix = stki_late_mix.step(each);

    if (each->rows->measured)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){first->path, -1, -1, NULL, NULL},
                            "dataset.fields.%s: source.window: the samples differ in shape; windows require samples of "
                            "one shape (resize or crop images)",
                            config->name);
    if (mix)
        return stki_fail_node(err, mix, "rows that are windows cannot be mixed");
    if (each->ndim + 2 > STK_MAX_DIMS)
        return stki_fail_field(err, config, STK_E_UNSUPPORTED,
                               "source.window: samples of %d axes: a batch would have more than %d", each->ndim,
                               STK_MAX_DIMS);
    return STK_OK;
}

static stk_status resolve_window(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                                 stk_error *err)
{
    const int64_t samples = config->row_samples;
    stki_field_plan *each = stki_zalloc(sizeof *each);
    stk_status status;

    *plan = (stki_field_plan){
        .field = field, .name = field->name, .config = config, .rows = &stki_fixed_rows, .inner = each};
    if (!each)
        return stki_fail_memory(err, sizeof *each, "a plan");
    if ((status = resolve(config, field, false, each, err)) != STK_OK ||
        (status = check_sample(config, each, err)) != STK_OK)
        return status;
    plan->dtype = each->dtype;
    plan->ndim = each->ndim + 1;
    plan->shape[0] = samples;
    plan->strides[0] = each->row_bytes;
    memcpy(plan->shape + 1, each->shape, (size_t)each->ndim * sizeof each->shape[0]);
    memcpy(plan->strides + 1, each->strides, (size_t)each->ndim * sizeof each->strides[0]);
    if (!stki_mul(samples, each->row_bytes, &plan->row_bytes))
        return stki_fail_field(err, config, STK_E_LIMIT,
                               "source.window.length: the size of a row does not fit in 63 bits");
    return STK_OK;
}

/* ---- the whole plan ---- */

stk_status stki_plan_resolve(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                             stk_error *err)
{
    return config->row_samples > 0 ? resolve_window(config, field, plan, err)
                                   : resolve(config, field, false, plan, err);
}

stk_status stki_plans_link(stki_field_plan *plans, int count, stk_error *err)
{
    stk_status status = stki_mix_link(plans, count, err);

    for (int i = 0; i < count && status == STK_OK; i++) {
        stki_field_plan *plan = &plans[i];

        if (!plan->inner && stki_mix_wants_unrounded(plan))
            status = make_unrounded(plan, err);
        plan->number = i;
        if (status == STK_OK)
            status = stki_plan_image_link(plan, plans, count, err);
        if (status == STK_OK && plan->inner) {
            plan->inner->number = i;
            status = stki_plan_image_link(plan->inner, plans, count, err);
        }
        if (status == STK_OK)
            stki_plan_list_tensors(plan);
    }
    return status;
}

void stki_plan_list_tensors(stki_field_plan *plan)
{
    plan->tensor_count = 0;
    plan->rows->list(plan);
    stki_mix_list_tensors(plan);
}

stk_status stki_plan_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight, stk_error *err)
{
    /* the inner rows are in a worker's scratch memory, so they are written with ordinary stores */
    const bool mixed = plan->inner && !stki_plan_is_window(plan);
    stk_status status = plan->converts ? stki_conversions_compile(plan, stores, bytes_in_flight, err) : STK_OK;

    if (status == STK_OK)
        status = stki_plan_image_fill(plan, err);
    if (status == STK_OK && plan->inner)
        status = stki_plan_compile(plan->inner, mixed ? STKI_STORES_CACHED : stores, bytes_in_flight, err);
    return status == STK_OK ? stki_late_compile(plan, stores, err) : status;
}

void stki_plan_fini(stki_field_plan *plan)
{
    if (plan->inner)
        stki_plan_fini(plan->inner);
    stki_free(plan->inner);
    stki_late_fini(plan);
    stki_conversions_fini(plan);
    stki_convert_destroy(plan->device.convert);
    stki_free(plan->image.fill);
    stki_fold_destroy(plan->fold);
    *plan = (stki_field_plan){0};
}
