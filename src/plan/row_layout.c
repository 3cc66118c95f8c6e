/* row_layout.c: functions shared by all layouts; see row_layout.h. */
#include "plan.h"
#include <string.h>

stki_row_tensor *stki_plan_add_tensor(stki_field_plan *plan, const char *ending, enum stki_extent extent,
                                      stk_dtype dtype)
{
    stki_row_tensor *tensor = &plan->tensors[plan->tensor_count++];
    const int64_t bytes = stk_dtype_size(dtype);

    if (extent == STKI_OFFSETS || extent == STKI_LENGTHS)
        plan->counts = plan->tensor_count - 1;
    *tensor = (stki_row_tensor){.ending = ending,
                                .extent = extent,
                                .dtype = dtype,
                                .out_bytes = bytes,
                                .unit_bytes = bytes,
                                .row_bytes = extent == STKI_PER_PADDED_ENTRY ? bytes * plan->shape[0] : bytes};
    return tensor;
}

void stki_plan_add_values(stki_field_plan *plan, const char *ending, enum stki_extent extent)
{
    const int skip = extent == STKI_PER_ROW ? 0 : 1;
    stki_row_tensor *tensor = stki_plan_add_tensor(plan, ending, extent, plan->dtype);
    stki_row_form form;

    stki_plan_form(plan, &form);
    tensor->dtype = form.dtype;
    tensor->ndim = plan->ndim - skip;
    memcpy(tensor->shape, form.shape + skip, (size_t)tensor->ndim * sizeof form.shape[0]);
    memcpy(tensor->strides, form.strides + skip, (size_t)tensor->ndim * sizeof form.strides[0]);
    tensor->row_bytes = plan->row_bytes;
    tensor->unit_bytes = skip ? plan->strides[0] : plan->row_bytes;
    tensor->out_bytes = skip ? tensor->unit_bytes : form.row_bytes;
    tensor->viewed = extent != STKI_PER_ENTRY;
}

void stki_zero_row(const stki_field_plan *plan, char *memory, int64_t row)
{
    for (int i = 0; i < plan->tensor_count; i++) {
        int64_t bytes;
        char *data = stki_tensor_row(plan, &plan->tensors[i], memory, row, &bytes);

        if (!plan->tensors[i].late)
            memset(data, 0, (size_t)bytes);
    }
}
