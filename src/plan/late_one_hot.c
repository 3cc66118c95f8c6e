/* late_one_hot.c: rows of one_hot and label_smoothing; see late_rows.h. */
#include "allocate.h"
#include "error.h"
#include "late_rows.h"
#include "tensor_internal.h"

static const stki_node *step(const stki_field_plan *plan)
{
    return plan->one_hot.step ? plan->one_hot.step->node : NULL;
}

static stk_status resolve(stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;
    const bool single = field->ndim == 0 || (field->ndim == 1 && field->shape[0] == 1 && !field->variable);
    const stki_one_hot *one_hot = &plan->fold->one_hot;

    if (!one_hot->node)
        return STK_OK;
    if (!single || !stki_is_whole(field->dtype))
        return stki_fail_node(err, one_hot->node, "found samples of %s %s, expected one integer each",
                              stk_dtype_name(field->dtype), STKI_SHAPE(field->ndim, field->shape));
    plan->one_hot.step = one_hot;
    plan->dtype = plan->config->dtype ? plan->config->dtype : STK_F32;
    if (!stki_is_real(plan->dtype) && (!stki_is_whole(plan->dtype) || one_hot->smoothing > 0))
        return stki_fail_node(err, one_hot->node, "found dtype: %s, expected f16, bf16, f32 or f64%s",
                              stk_dtype_name(plan->dtype), one_hot->smoothing > 0 ? " because of label_smoothing" : "");
    plan->dtype = plan->is_unrounded ? STK_F32 : plan->dtype;
    plan->converts = false;
    plan->ndim = 1;
    plan->shape[0] = one_hot->classes;
    plan->layout = STKI_LAYOUT_NONE;
    return stki_row_major(plan->dtype, 1, plan->shape, plan->strides, &plan->row_bytes, err);
}

static stk_status compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err)
{
    const double e = plan->one_hot.step->smoothing, off = e / (double)plan->one_hot.step->classes;
    const double values[] = {off, 1 - e + off};
    const int64_t size = stk_dtype_size(plan->dtype), from = sizeof(double), two = 2;

    (void)stores;
    plan->one_hot.on_off = stki_zalloc(2 * size);
    if (!plan->one_hot.on_off)
        return stki_fail_memory(err, 2 * size, "the values of a one-hot row");
    stki_copy_strided(plan->one_hot.on_off, plan->dtype, &size, values, STK_F64, &from, false, 1, &two);
    return STK_OK;
}

static void fini(stki_field_plan *plan)
{
    stki_free(plan->one_hot.on_off);
}

const stki_late_ops stki_late_one_hot = {step, resolve, compile, fini};
