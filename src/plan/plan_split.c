/* plan_split.c: divides a plan between workers and a device. The workers decode, crop, resize, pad and reorient, and
 * make rows of the stored dtype, which is u8 for images. The device converts these to the delivered rows: arithmetic,
 * cast, quantization and layout. See plan.h. */
#include "allocate.h"
#include "error.h"
#include "late_rows.h"
#include "tensor_internal.h"
#include <stdio.h>
#include <string.h>

/* Returns the name of a step that runs on converted rows; NULL: there is none. */
static const char *late_step(const stki_field_plan *plan)
{
    const stki_node *step = stki_late_step(plan);

    return stki_plan_is_window(plan) ? "a window of samples" : step ? step->key : NULL;
}

bool stki_plan_only_copies(const stki_field_plan *plan)
{
    int64_t strides[STK_MAX_DIMS], bytes;

    if (late_step(plan) || plan->fold->arithmetic || plan->image.colors || plan->dtype != plan->field->dtype ||
        stki_row_major(plan->dtype, plan->ndim, plan->shape, strides, &bytes, NULL) != STK_OK)
        return false;
    for (int i = 0; i < plan->ndim; i++)
        if (plan->source_axis[i] != i || plan->strides[i] != strides[i])
            return false;
    return true;
}

const char *stki_plan_device_obstacle(const stki_field_plan *plan)
{
    if (plan->rows->measured)
        return "rows of different lengths";
    return plan->image.colors ? plan->image.colors->steps[0].node->key : late_step(plan);
}

/* Describes the rows that the workers make, which are row-major in the order of the sample's axes. */
static stk_status stored_form(const stki_field_plan *plan, stki_row_form *out, stk_error *err)
{
    *out = (stki_row_form){.dtype = plan->field->dtype, .layout = plan->source_layout};
    for (int i = 0; i < plan->ndim; i++)
        out->shape[plan->source_axis[i]] = plan->shape[i];
    return stki_row_major(out->dtype, plan->ndim, out->shape, out->strides, &out->row_bytes, err);
}

stk_status stki_plan_second_part(const stki_field_plan *plan, stki_row_form *stored, stki_convert **out, stk_error *err)
{
    stki_convert_desc desc;
    stk_status status = stored_form(plan, stored, err);
    float *a;

    if (status != STK_OK || (status = stki_plan_coefficients(plan, &a, err)) != STK_OK)
        return status;
    stki_plan_describe(plan, a, &desc);
    desc.src_dtype = stored->dtype;
    desc.src_swapped = false;
    desc.stores = STKI_STORES_CACHED;
    for (int i = 0; i < plan->ndim; i++)
        desc.src_strides[i] = stored->strides[plan->source_axis[i]];
    status = stki_convert_create(&desc, out, err);
    stki_free(a);
    return stki_fail_place(err, status, NULL, -1, plan->name);
}

void stki_plan_split(stki_field_plan *plan, const stki_row_form *stored, stki_convert *convert, const char *device)
{
    stki_plan_form(plan, &plan->device.form);
    plan->device.convert = convert;
    snprintf(plan->device.kernel, sizeof plan->device.kernel, "%s %s>%s", device, stk_dtype_name(stored->dtype),
             stk_dtype_name(plan->dtype));
    plan->dtype = stored->dtype;
    plan->layout = stored->layout;
    plan->row_bytes = stored->row_bytes;
    memcpy(plan->shape, stored->shape, sizeof plan->shape);
    memcpy(plan->strides, stored->strides, sizeof plan->strides);
    for (int i = 0; i < plan->ndim; i++)
        plan->source_axis[i] = i;
    stki_plan_list_tensors(plan);
}
