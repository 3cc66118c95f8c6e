/* late_mix.c: mixup and cutmix, and the labels that are mixed with the images; see late_rows.h. Mixed rows are made in
 * f32 by a separate plan and then rounded. */
#include "convert_internal.h"
#include "error.h"
#include "late_rows.h"
#include "tensor_internal.h"
#include <string.h>

static const stki_node *step(const stki_field_plan *plan)
{
    const stki_field_plan *image = plan->mix.image ? plan->mix.image : plan;

    return image->mix.step ? image->mix.step->node : NULL;
}

bool stki_mix_wants_unrounded(const stki_field_plan *plan)
{
    return plan->mix.step || (plan->mix.image && plan->one_hot.step);
}

static stk_status check_mixable(const stki_field_plan *plan, const stki_node *node, stk_error *err)
{
    if (plan->rows->measured)
        return stki_fail_node(err, node, "found field %s, whose rows have different lengths", plan->name);
    if (stki_convert_dst_of(plan->dtype) == STKI_DST_KINDS)
        return stki_fail_node(err, node, "found rows of %s in field %s, expected f16, bf16, f32, u8, i8 or i32",
                              stk_dtype_name(plan->dtype), plan->name);
    return STK_OK;
}

static stk_status resolve(stki_field_plan *plan, stk_error *err)
{
    const stki_mix *mix = &plan->fold->mix;
    stk_status status = STK_OK;

    if (!mix->node || plan->is_unrounded)
        return STK_OK;
    if (mix->mixup > 0 && !plan->one_hot.step && plan->field->shard_count > 0 && plan->field->shards[0]->indices)
        return stki_fail_node(
            err, mix->node,
            "mixup would average the values of field %s, but with source.color: index they are class numbers; use "
            "cutmix, which copies them unchanged",
            plan->name);
    if ((status = check_mixable(plan, mix->node, err)) != STK_OK)
        return status;
    if (mix->cutmix > 0 && plan->source_layout == STKI_LAYOUT_NONE)
        return stki_fail_node(
            err, mix->node,
            "the axes of height and width are unknown; specify the layout of the samples: source: {layout: "
            "nhwc} or {layout: nchw}");
    plan->mix.step = mix;
    return STK_OK;
}

static stk_status link_labels(stki_field_plan *plan, stki_field_plan *labels, bool *alone, stk_error *err)
{
    const stki_node *node = plan->mix.step->node;

    if (labels == plan || labels->mix.step || labels->mix.image)
        return stki_fail_node(err, node, "labels: field %s is already mixed", labels->name);
    if (stki_plan_is_window(labels))
        return stki_fail_node(err, node, "labels: the rows of field %s are windows, which cannot be mixed",
                              labels->name);
    labels->mix.image = plan;
    if (labels->one_hot.step)
        return check_mixable(labels, node, err);
    if (labels->rows->measured)
        return stki_fail_node(err, node, "labels: field %s has rows of different lengths", labels->name);
    if (*alone)
        return stki_fail_node(err, node,
                              "labels: found a second field whose labels are not one_hot, expected at most one");
    *alone = labels->mix.paired = true;
    return STK_OK;
}

stk_status stki_mix_link(stki_field_plan *plans, int count, stk_error *err)
{
    bool alone = false;

    for (int i = 0; i < count; i++) {
        const char *name = plans[i].mix.step ? plans[i].mix.step->labels : NULL;
        stki_field_plan *labels = NULL;
        stk_status status;

        for (int k = 0; name && k < count; k++)
            if (strcmp(plans[k].name, name) == 0)
                labels = &plans[k];
        if (!name)
            continue;
        if (!labels)
            return stki_fail_node(err, plans[i].mix.step->node, "labels: there is no field %s", name);
        if ((status = link_labels(&plans[i], labels, &alone, err)) != STK_OK)
            return status;
    }
    return STK_OK;
}

/* Compiles the conversion that rounds `n` contiguous f32 values as the plan requires. */
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

static stk_status compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err)
{
    const int64_t elements = plan->row_bytes / stk_dtype_size(plan->dtype), rest = elements % STKI_MIX_BLOCK;
    stk_status status = STK_OK;

    if (!stki_mix_wants_unrounded(plan))
        return STK_OK;
    if (elements >= STKI_MIX_BLOCK)
        status = make_rounding(plan, STKI_MIX_BLOCK, stores, &plan->mix.round, err);
    if (status == STK_OK && rest > 0)
        status = make_rounding(plan, rest, stores, &plan->mix.round_rest, err);
    return status;
}

static void fini(stki_field_plan *plan)
{
    stki_convert_destroy(plan->mix.round);
    stki_convert_destroy(plan->mix.round_rest);
}

const stki_late_ops stki_late_mix = {step, resolve, compile, fini};

void stki_mix_list_tensors(stki_field_plan *plan)
{
    if (!plan->mix.paired) /* adds the partners' labels, and the share of each row's own label */
        return;
    plan->tensors[plan->tensor_count] = plan->tensors[0];
    plan->tensors[plan->tensor_count].ending = "_mix";
    plan->tensors[plan->tensor_count++].viewed = false;
    stki_plan_add_tensor(plan, "", STKI_PER_ROW, STK_F32)->name = "mix_lambda";
}
