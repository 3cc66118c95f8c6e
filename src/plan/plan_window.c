/* plan_window.c: see plan_window.h. */
#include "plan_window.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include <string.h>

static stk_status check_sample(const stki_field_config *config, const stki_field_plan *each, stk_error *err)
{
    const stki_reader *first = each->field->shards[0];

    if (each->rows->measured)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED, (stki_place){first->path, -1, -1, NULL, NULL},
            "dataset.fields.%s: source.window: the samples differ in shape; windows need samples of one "
            "shape (images: resize or crop them)",
            config->name);
    if (each->mix)
        return stki_fail_node(err, each->mix->node, "rows that are windows cannot be mixed");
    if (each->ndim + 2 > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "dataset.fields.%s: source.window: samples of %d axes: a batch would have more than %d",
                         config->name, each->ndim, STK_MAX_DIMS);
    return STK_OK;
}

stk_status stki_window_resolve(const stki_field_config *config, const stki_field *field, stki_resolve_fn *resolve,
                               stki_field_plan *plan, stk_error *err)
{
    const int64_t samples = config->row_samples;
    stki_field_plan *each = stki_zalloc(sizeof *each);
    stk_status status;

    *plan = (stki_field_plan){
        .field = field, .name = field->name, .config = config, .rows = &stki_fixed_rows, .each = each};
    if (!each)
        return stki_fail_memory(err, sizeof *each, "a plan");
    if ((status = resolve(config, field, each, err)) != STK_OK || (status = check_sample(config, each, err)) != STK_OK)
        return status;
    plan->dtype = each->dtype;
    plan->ndim = each->ndim + 1;
    plan->shape[0] = samples;
    plan->strides[0] = each->row_bytes;
    memcpy(plan->shape + 1, each->shape, (size_t)each->ndim * sizeof each->shape[0]);
    memcpy(plan->strides + 1, each->strides, (size_t)each->ndim * sizeof each->strides[0]);
    if (!stki_mul(samples, each->row_bytes, &plan->row_bytes))
        return stki_fail(err, STK_E_LIMIT,
                         "dataset.fields.%s: source.window.length: rows of more than 63 bits of bytes", config->name);
    return STK_OK;
}
