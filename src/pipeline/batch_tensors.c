/* batch_tensors.c: see batch_tensors.h. */
#include "batch_tensors.h"
#include "error.h"
#include "feed.h"
#include <stdio.h>
#include <string.h>

static int count_viewed(const stki_field_plan *plan)
{
    int count = 0;

    for (int i = 0; i < plan->tensor_count; i++)
        count += plan->tensors[i].viewed;
    return count;
}

int stki_batch_tensor_count(const stki_core *core)
{
    int total = 0;

    for (int i = 0; i < core->plan_count; i++)
        total += core->plans[i].tensor_count;
    for (int i = 0; i < core->view_count; i++)
        total += count_viewed(&core->plans[core->views[i].plan]);
    return total;
}

static const stki_row_tensor *viewed(const stki_field_plan *plan, int number)
{
    const stki_row_tensor *tensor = plan->tensors;

    for (; !tensor->viewed || number > 0; tensor++)
        number -= tensor->viewed;
    return tensor;
}

/* Tensor number `number`, and its name in three pieces. */
static void at(const stki_core *core, int number, stki_batch_tensor *out, const char *pieces[3])
{
    for (int i = 0; i < core->plan_count; number -= core->plans[i++].tensor_count) {
        const stki_field_plan *plan = &core->plans[i];

        if (number < plan->tensor_count) {
            const stki_row_tensor *tensor = &plan->tensors[number];

            *out = (stki_batch_tensor){.plan = plan, .tensor = tensor};
            pieces[0] = tensor->name ? tensor->name : plan->name;
            pieces[2] = tensor->ending;
            return;
        }
    }
    for (int i = 0; i < core->view_count; i++) {
        const stki_view *view = &core->views[i];
        const stki_field_plan *plan = &core->plans[view->plan];
        const int count = count_viewed(plan);

        if (number < count) {
            *out = (stki_batch_tensor){plan, viewed(plan, number), view};
            pieces[0] = view->name;
            pieces[1] = view->ending;
            pieces[2] = out->tensor->ending;
            return;
        }
        number -= count;
    }
}

void stki_batch_tensor_at(const stki_core *core, int number, stki_batch_tensor *out, char *name, int size)
{
    const char *pieces[3] = {"", "", ""};

    at(core, number, out, pieces);
    snprintf(name, (size_t)size, "%s%s%s", pieces[0], pieces[1], pieces[2]);
}

/* Asked for every tensor of every batch: nothing is written out. */
bool stki_batch_tensor_find(const stki_core *core, const char *name, stki_batch_tensor *out)
{
    int count = stki_batch_tensor_count(core);

    for (int i = 0; i < count; i++) {
        const char *pieces[3] = {"", "", ""}, *rest = name;
        bool same = true;

        at(core, i, out, pieces);
        for (int k = 0; same && k < 3; k++) {
            size_t length = strlen(pieces[k]);

            same = strncmp(rest, pieces[k], length) == 0;
            rest += same ? length : 0;
        }
        if (same && *rest == '\0')
            return true;
    }
    return false;
}

stk_status stki_batch_tensor_missing(const stki_core *core, const char *name, stk_error *err)
{
    char names[320] = "", one[256];
    size_t used = 0;
    stki_batch_tensor which;

    for (int i = 0; i < stki_batch_tensor_count(core) && used < sizeof names; i++) {
        int n;

        stki_batch_tensor_at(core, i, &which, one, sizeof one);
        n = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", one);
        used += n > 0 ? (size_t)n : 0;
    }
    return stki_fail(err, STK_E_NOT_FOUND, "the batch has no tensor %s: it has %s", name, names);
}

static void add_axis(stk_tensor *out, int64_t length, int64_t stride)
{
    out->shape[out->ndim] = length;
    out->strides[out->ndim++] = stride;
}

void stki_batch_tensor_get(const stk_batch *batch, const stki_batch_tensor *which, stk_tensor *out)
{
    const stki_field_plan *plan = which->plan;
    const stki_row_tensor *tensor = which->tensor;
    const int64_t units = stki_tensor_units(plan, tensor, batch->memory, batch->rows);

    *out = (stk_tensor){.device = batch->device_slot >= 0 ? batch->core->device : stk_device_cpu(),
                        .dtype = tensor->dtype};
    if (batch->device_slot < 0 && batch->pinned)
        out->flags = STK_TENSOR_PINNED;
    out->data = batch->device_slot >= 0 ? stki_feed_place(batch, plan, tensor) : batch->memory + tensor->offset;
    if (tensor->extent == STKI_LENGTHS)
        out->data = (int64_t *)out->data + 1;
    if (tensor->extent == STKI_PER_PADDED_ENTRY) {
        const int64_t length = stki_row_counts(plan, batch->memory)[0];

        add_axis(out, batch->rows, length * tensor->out_bytes);
        add_axis(out, length, tensor->out_bytes);
    } else {
        add_axis(out, units, tensor->out_bytes);
    }
    for (int i = 0; i < tensor->ndim; i++)
        add_axis(out, tensor->shape[i], tensor->strides[i]);
    if (which->view)
        stki_view_apply(which->view, out);
}

int64_t stki_plan_bytes(const stk_batch *batch, const stki_field_plan *plan)
{
    int64_t bytes = 0;

    for (int i = 0; i < plan->tensor_count; i++)
        bytes += stki_tensor_units(plan, &plan->tensors[i], batch->memory, batch->rows) * plan->tensors[i].out_bytes;
    return bytes;
}
