/* plan_made.c: see plan_made.h. */
#include "plan_made.h"
#include "allocate.h"
#include "convert_internal.h"
#include "error.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

/* ---- resolve ------------------------------------------------------------------------------------------------------
 */

static bool is_whole(stk_dtype dtype)
{
    return dtype == STK_BOOL || dtype == STK_U8 || dtype == STK_I8 || dtype == STK_U16 || dtype == STK_I16 ||
           dtype == STK_U32 || dtype == STK_I32 || dtype == STK_U64 || dtype == STK_I64;
}

static bool is_real(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

static stk_status resolve_one_hot(stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;
    const bool single = field->ndim == 0 || (field->ndim == 1 && field->shape[0] == 1 && !field->variable);
    const stki_one_hot *one_hot = &plan->fold->one_hot;

    if (!single || !is_whole(field->dtype))
        return stki_fail_node(err, one_hot->node, "found samples of %s %s, expected one whole number each",
                              stk_dtype_name(field->dtype), STKI_SHAPE(field->ndim, field->shape));
    plan->one_hot = one_hot;
    plan->dtype = plan->config->dtype ? plan->config->dtype : STK_F32;
    if (!is_real(plan->dtype) && (!is_whole(plan->dtype) || one_hot->smoothing > 0))
        return stki_fail_node(err, one_hot->node, "found dtype: %s, expected f16, bf16, f32 or f64%s",
                              stk_dtype_name(plan->dtype), one_hot->smoothing > 0 ? " for parts of 1" : "");
    plan->ndim = 1;
    plan->shape[0] = one_hot->classes;
    plan->layout = STKI_LAYOUT_NONE;
    return stki_row_major(plan->dtype, 1, plan->shape, plan->strides, &plan->row_bytes, err);
}

/* A box that does not fit has no place. Rows without pixels have none to erase. */
static stk_status check_cutout(const stki_field_plan *plan, stk_error *err)
{
    const stki_erase *erase = plan->erase;
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t height = plan->shape[h], width = plan->shape[h + 1];

    if (!erase->inside || height == 0 || width == 0 || (erase->height <= height && erase->width <= width))
        return STK_OK;
    return stki_fail_node(err, erase->node,
                          "found a box of %lld x %lld (height x width) for images of %lld x %lld, expected one that "
                          "fits inside",
                          (long long)erase->height, (long long)erase->width, (long long)height, (long long)width);
}

static stk_status resolve_erase(stki_field_plan *plan, stk_error *err)
{
    const stki_erase *erase = &plan->fold->erase;
    const int64_t channels = plan->sample_shape[plan->channel_axis];

    if (plan->source_layout == STKI_LAYOUT_NONE)
        return stki_fail_node(err, erase->node,
                              "which axes are height and width? Say how the file holds the samples: source: {layout: "
                              "nhwc} or {layout: nchw}");
    if (channels > STKI_LATE_CHANNELS)
        return stki_fail_node(err, erase->node, "found samples of %lld channels, expected at most %d",
                              (long long)channels, STKI_LATE_CHANNELS);
    if (erase->value_count > 1 && erase->value_count != channels)
        return stki_fail_node(err, erase->node, "found %d values, expected 1 or %lld, one a channel",
                              erase->value_count, (long long)channels);
    if (erase->random && !is_real(plan->dtype))
        return stki_fail_node(err, erase->node, "found value: random for rows of %s, expected f16, bf16, f32 or f64",
                              stk_dtype_name(plan->dtype));
    plan->erase = erase;
    return check_cutout(plan, err);
}

static stk_status check_mixable(const stki_field_plan *plan, const stki_node *node, stk_error *err)
{
    if (plan->rows->measured)
        return stki_fail_node(err, node, "found field %s, whose rows have lengths of their own", plan->name);
    if (stki_convert_dst_of(plan->dtype) == STKI_DST_KINDS)
        return stki_fail_node(err, node, "found rows of %s in field %s, expected f16, bf16, f32, u8, i8 or i32",
                              stk_dtype_name(plan->dtype), plan->name);
    return STK_OK;
}

static stk_status resolve_mix(stki_field_plan *plan, stk_error *err)
{
    const stki_mix *mix = &plan->fold->mix;
    stk_status status = check_mixable(plan, mix->node, err);

    if (status != STK_OK)
        return status;
    if (mix->cutmix > 0 && plan->source_layout == STKI_LAYOUT_NONE)
        return stki_fail_node(err, mix->node,
                              "which axes are height and width? Say how the file holds the samples: source: {layout: "
                              "nhwc} or {layout: nchw}");
    plan->mix = mix;
    return STK_OK;
}

stk_status stki_made_resolve(stki_field_plan *plan, stk_error *err)
{
    const stki_fold *fold = plan->fold;
    stk_status status = STK_OK;

    if (fold->one_hot.node)
        status = resolve_one_hot(plan, err);
    if (status == STK_OK && fold->erase.node)
        status = resolve_erase(plan, err);
    if (status == STK_OK && fold->mix.node && !plan->is_unrounded)
        status = resolve_mix(plan, err);
    return status;
}

/* ---- link ---------------------------------------------------------------------------------------------------------
 */

static stk_status link_labels(stki_field_plan *plan, stki_field_plan *labels, bool *alone, stk_error *err)
{
    const stki_node *node = plan->mix->node;

    if (labels == plan || labels->mix || labels->mixed_by)
        return stki_fail_node(err, node, "labels: field %s is mixed already", labels->name);
    if (labels->each)
        return stki_fail_node(err, node, "labels: field %s has windows for rows, which cannot be mixed", labels->name);
    labels->mixed_by = plan;
    if (labels->one_hot)
        return check_mixable(labels, node, err);
    if (labels->rows->measured)
        return stki_fail_node(err, node, "labels: field %s has rows of lengths of their own", labels->name);
    if (*alone)
        return stki_fail_node(err, node, "labels: found a second field of labels that are not one_hot");
    *alone = labels->has_partners = true;
    return STK_OK;
}

stk_status stki_made_link(stki_field_plan *plans, int count, stk_error *err)
{
    bool alone = false;

    for (int i = 0; i < count; i++) {
        const char *name = plans[i].mix ? plans[i].mix->labels : NULL;
        stki_field_plan *labels = NULL;
        stk_status status;

        for (int k = 0; name && k < count; k++)
            if (strcmp(plans[k].name, name) == 0)
                labels = &plans[k];
        if (!name)
            continue;
        if (!labels)
            return stki_fail_node(err, plans[i].mix->node, "labels: there is no field %s", name);
        if ((status = link_labels(&plans[i], labels, &alone, err)) != STK_OK)
            return status;
    }
    return STK_OK;
}

/* ---- compile ------------------------------------------------------------------------------------------------------
 */

/* As a conversion stores it. */
static void store(const stki_field_plan *plan, float y, uint8_t *to)
{
    const stki_fold *fold = plan->fold;
    const int64_t none = 0, one = 1;
    stki_lane lane = {.zero_point = fold->quantized ? (float)fold->zero_point : 0};

    if (is_real(plan->dtype) || !fold->arithmetic || stki_convert_dst_of(plan->dtype) == STKI_DST_KINDS) {
        stki_copy_strided(to, plan->dtype, &none, &y, STK_F32, &none, false, 1, &one);
        return;
    }
    lane.low = plan->dtype == STK_U8 ? 0 : plan->dtype == STK_I8 ? INT8_MIN : -0x1p31f;
    lane.high = plan->dtype == STK_U8 ? UINT8_MAX : plan->dtype == STK_I8 ? INT8_MAX : 0x1p31f;
    stki_convert_store(stki_convert_dst_of(plan->dtype), &lane, to, y);
}

/* What a value of the erasing step is at the end of the list: the arithmetic behind it is what all of it came to,
 * without what came before. */
static void erased_affine(const stki_field_plan *plan, int64_t c, double *a, double *b)
{
    const stki_fold *fold = plan->fold;
    const stki_erase *erase = plan->erase;
    const int64_t at = fold->channels > 1 ? c : 0, before = erase->before_count > 1 ? c : 0;

    *a = erase->before_a[before] != 0 ? fold->a[at] / erase->before_a[before] : 0;
    *b = fold->b[at] - *a * erase->before_b[before];
}

/* Of a whole dtype. */
static double largest_of(stk_dtype dtype)
{
    const int bits = 8 * (int)stk_dtype_size(dtype);
    const bool is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;

    return dtype == STK_BOOL ? 1 : ldexp(1, bits - is_signed) - 1;
}

static double least_of(stk_dtype dtype)
{
    const bool is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;

    return is_signed ? -largest_of(dtype) - 1 : 0;
}

/* Where nothing saturates on purpose, a value that rows cannot hold is a mistake. */
static stk_status check_erased(const stki_field_plan *plan, double value, double y, stk_error *err)
{
    const double low = least_of(plan->dtype), high = largest_of(plan->dtype);

    if (plan->fold->quantized || !is_whole(plan->dtype) || (y >= low && y <= high))
        return STK_OK;
    return y == value ? stki_fail_node(err, plan->erase->node, "found the value %g, expected %g to %g: rows are %s",
                                       value, low, high, stk_dtype_long_name(plan->dtype))
                      : stki_fail_node(err, plan->erase->node,
                                       "found the value %g, which the steps behind make %g, expected that to be %g to "
                                       "%g: rows are %s",
                                       value, y, low, high, stk_dtype_long_name(plan->dtype));
}

static stk_status make_erased(stki_field_plan *plan, stk_error *err)
{
    const int64_t channels = plan->sample_shape[plan->channel_axis], size = stk_dtype_size(plan->dtype);

    plan->erased = stki_zalloc_array(channels, size);
    if (!plan->erased)
        return stki_fail_memory(err, channels * size, "an erased pixel");
    for (int64_t c = 0; c < channels; c++) {
        const double value = plan->erase->value[plan->erase->value_count > 1 ? c : 0];
        double a, b;
        stk_status status;

        erased_affine(plan, c, &a, &b);
        plan->erased_a[c] = a;
        plan->erased_b[c] = b;
        if ((status = check_erased(plan, value, a * value + b, err)) != STK_OK)
            return status;
        store(plan, (float)(a * value + b), plan->erased + c * size);
    }
    return STK_OK;
}

static stk_status make_on_off(stki_field_plan *plan, stk_error *err)
{
    const double e = plan->one_hot->smoothing, off = e / (double)plan->one_hot->classes;
    const double values[] = {off, 1 - e + off};
    const int64_t size = stk_dtype_size(plan->dtype), from = sizeof(double), two = 2;

    plan->on_off = stki_zalloc(2 * size);
    if (!plan->on_off)
        return stki_fail_memory(err, 2 * size, "two classes");
    stki_copy_strided(plan->on_off, plan->dtype, &size, values, STK_F64, &from, false, 1, &two);
    return STK_OK;
}

/* `n` contiguous f32, rounded as the plan says. */
static stk_status make_rounding(const stki_field_plan *plan, int64_t n, enum stki_stores stores, stki_convert **out,
                                stk_error *err)
{
    static const float one = 1, minus_zero = -0.0f;
    const stki_fold *fold = plan->fold;
    stki_convert_desc desc = {.src_dtype = STK_F32,
                              .dst_dtype = plan->dtype,
                              .ndim = 1,
                              .shape = {n},
                              .src_strides = {sizeof(float)},
                              .dst_strides = {stk_dtype_size(plan->dtype)},
                              .affine = true,
                              .channel_axis = -1,
                              .channels = 1,
                              .a = &one,
                              .b = &minus_zero,
                              .quantized = fold->quantized,
                              .zero_point = fold->zero_point,
                              .stores = stores};

    if (fold->quantized) {
        desc.qmin = plan->dtype == STK_I8 ? INT8_MIN : plan->dtype == STK_U8 ? 0 : INT32_MIN;
        desc.qmax = plan->dtype == STK_I8 ? INT8_MAX : plan->dtype == STK_U8 ? UINT8_MAX : INT32_MAX;
    }
    return stki_convert_create(&desc, out, err);
}

static stk_status make_roundings(stki_field_plan *plan, enum stki_stores stores, stk_error *err)
{
    const int64_t elements = plan->row_bytes / stk_dtype_size(plan->dtype), rest = elements % STKI_MADE_BLOCK;
    stk_status status = STK_OK;

    if (status == STK_OK && elements >= STKI_MADE_BLOCK)
        status = make_rounding(plan, STKI_MADE_BLOCK, stores, &plan->round, err);
    if (status == STK_OK && rest > 0)
        status = make_rounding(plan, rest, stores, &plan->round_rest, err);
    return status;
}

stk_status stki_made_compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err)
{
    stk_status status = STK_OK;

    if (plan->erase)
        status = make_erased(plan, err);
    if (status == STK_OK && plan->one_hot)
        status = make_on_off(plan, err);
    if (status == STK_OK && plan->unrounded)
        status = make_roundings(plan, stores, err);
    return status;
}

void stki_plan_list_tensors(stki_field_plan *plan)
{
    plan->tensor_count = 0;
    plan->rows->list(plan);
    if (!plan->has_partners) /* the partners' labels, and the share of the first */
        return;
    plan->tensors[plan->tensor_count] = plan->tensors[0];
    plan->tensors[plan->tensor_count].ending = "_mix";
    plan->tensors[plan->tensor_count++].viewed = false;
    stki_plan_add_tensor(plan, "", STKI_PER_ROW, STK_F32)->name = "mix_lambda";
}

void stki_made_fini(stki_field_plan *plan)
{
    stki_convert_destroy(plan->round);
    stki_convert_destroy(plan->round_rest);
    stki_free(plan->erased);
    stki_free(plan->on_off);
}
