/* batch_tensors.c: see batch_tensors.h. */
#include "batch_tensors.h"
#include "allocate.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

static bool add(stki_core *core, const stki_field_plan *plan, const stki_row_tensor *tensor, const stki_view *view)
{
    stki_batch_tensor *out = &core->tensors[core->tensor_count++];

    *out = (stki_batch_tensor){.plan = plan, .tensor = tensor, .view = view};
    out->name = view ? stki_format("%s%s%s", view->name, view->ending, tensor->ending)
                     : stki_format("%s%s", tensor->name ? tensor->name : plan->name, tensor->ending);
    return out->name;
}

stk_status stki_batch_tensors_make(stki_core *core, stk_error *err)
{
    const int most = (core->plan_count + core->view_count) * STKI_ROW_TENSORS;
    bool added = true;

    core->tensors = stki_zalloc_array(most, sizeof *core->tensors);
    if (!core->tensors)
        return stki_fail_memory(err, most * (int64_t)sizeof *core->tensors, "tensors");
    for (int i = 0; i < core->plan_count; i++)
        for (int k = 0; k < core->plans[i].tensor_count && added; k++)
            added = add(core, &core->plans[i], &core->plans[i].tensors[k], NULL);
    for (int i = 0; i < core->view_count; i++) {
        const stki_field_plan *plan = &core->plans[core->views[i].plan];

        for (int k = 0; k < plan->tensor_count && added; k++)
            if (plan->tensors[k].viewed)
                added = add(core, plan, &plan->tensors[k], &core->views[i]);
    }
    return added ? STK_OK : stki_fail_memory(err, 64, "names of tensors");
}

void stki_batch_tensors_fini(stki_core *core)
{
    for (int i = 0; i < core->tensor_count; i++)
        stki_free(core->tensors[i].name);
    stki_free(core->tensors);
}

stk_status stki_batch_tensor_find(const stki_core *core, const char *name, const stki_batch_tensor **out,
                                  stk_error *err)
{
    char names[320] = "";

    for (int i = 0; i < core->tensor_count; i++)
        if (strcmp(core->tensors[i].name, name) == 0) {
            *out = &core->tensors[i];
            return STK_OK;
        }
    for (int i = 0; i < core->tensor_count && strlen(names) + 1 < sizeof names; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", core->tensors[i].name);
    return stki_fail(err, STK_E_NOT_FOUND, "the batch has no tensor %s: it has %s", name, names);
}

int64_t stki_plan_bytes(const stk_batch *batch, const stki_field_plan *plan)
{
    int64_t bytes = 0;

    for (int i = 0; i < plan->tensor_count; i++)
        bytes += stki_tensor_units(plan, &plan->tensors[i], batch->memory, batch->rows) * plan->tensors[i].out_bytes;
    return bytes;
}
