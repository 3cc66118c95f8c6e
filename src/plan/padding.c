/* padding.c: see padding.h. */
#include "padding.h"
#include "error.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

#define MOST (INT64_C(1) << 40)

typedef struct pad_options {
    int64_t to;
    double value;
    bool truncate;
} pad_options;

static const char *const batch_words[] = {"batch", NULL};

static const stki_need needs_length = {.key = "to", .when = (const char *const[]){"true", NULL}};

static const stki_option rows[] = {
    STKI_INT_WORDS(pad_options, to, batch, 1, MOST, batch_words, 0, "",
                   "Length of every row: that of the longest in its batch, or a number"),
    STKI_DOUBLE(pad_options, value, 0, -1e300, 1e300, "", "What stands behind a sample's own elements"),
    STKI_BOOL(pad_options, truncate, false, "What is longer than `to` is cut; else it is an error of its sample",
              .need = &needs_length),
};
const stki_option_table stki_pad_table = STKI_OPTION_TABLE_WITH("dataset.fields.NAME.pad", rows, .shorthand = "to");

stk_status stki_pad_read(const stki_node *node, stki_pad *out, stk_error *err)
{
    pad_options o = {0};
    stk_status status;

    if (stki_node_is_null(node))
        return STK_OK;
    stki_options_defaults(&stki_pad_table, &o);
    if ((status = stki_options_read(&stki_pad_table, node, &o, NULL, err)) != STK_OK)
        return status;
    *out = (stki_pad){.padded = true, .truncate = o.truncate, .to = o.to, .value = o.value};
    return STK_OK;
}

stk_status stki_pad_resolve(stki_field_plan *plan, stk_error *err)
{
    static const int64_t none[1] = {0};
    double back = 0;

    plan->pad = plan->config->pad;
    if (!plan->pad.padded)
        return STK_OK;
    if (!plan->ragged)
        return stki_fail(err, STK_E_CONFIG,
                         "dataset.fields.%s.pad: the field's rows are all alike, expected samples of varying length",
                         plan->name);
    if (plan->pad.to > 0)
        plan->shape[0] = plan->pad.to;
    stki_copy_strided(plan->pad.element, plan->dtype, none, &plan->pad.value, STK_F64, none, false, 0, none);
    stki_copy_strided(&back, STK_F64, none, plan->pad.element, plan->dtype, none, false, 0, none);
    if (plan->dtype >= STK_F16 || /* all real and complex ones */
        back == plan->pad.value)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "dataset.fields.%s.pad.value: found %g, which %s does not hold", plan->name,
                     plan->pad.value, stk_dtype_name(plan->dtype));
}
