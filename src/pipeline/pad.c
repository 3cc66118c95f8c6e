/* pad.c: see pad.h. */
#include "pad.h"
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

static const stki_option rows[] = {
    STKI_INT_WORDS(pad_options, to, batch, 1, MOST, batch_words, 0, "",
                   "Length of every row: that of the longest in its batch, or a number"),
    STKI_DOUBLE(pad_options, value, 0, -1e300, 1e300, "", "What stands behind a sample's own elements"),
    STKI_BOOL(pad_options, truncate, false, "What is longer than `to` is cut; else it is an error of its sample"),
};
const stki_option_table stki_pad_table = STKI_OPTION_TABLE("dataset.fields.NAME.pad", rows);

stk_status stki_pad_read(const stki_node *node, stki_pad *out, stk_error *err)
{
    pad_options o = {0};
    stk_status status = STK_OK;

    if (stki_node_is_null(node))
        return STK_OK;
    stki_options_defaults(&stki_pad_table, &o);
    if (node->kind == STKI_NODE_MAP)
        status = stki_options_read(&stki_pad_table, node, &o, NULL, err);
    else if (node->kind == STKI_NODE_LIST || strcmp(node->text, "batch") != 0)
        status = stki_node_int(node, &o.to, err);
    if (status != STK_OK)
        return status;
    if (o.to < 0 || (o.to == 0 && node->kind == STKI_NODE_SCALAR && strcmp(node->text, "batch") != 0))
        return stki_fail_value(err, node, "batch, or a length from 1 on");
    if (o.truncate && o.to == 0)
        return stki_fail_node(err, node, "found truncate without a length `to` that it cuts at");
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

void stki_pad_batch(stk_batch *batch, const stki_field_plan *plan)
{
    int64_t *offsets = stki_slot_offsets(batch, plan), longest = 0;

    for (int64_t r = 0; r < batch->rows; r++)
        longest = offsets[r + 1] > longest ? offsets[r + 1] : longest;
    offsets[0] = plan->pad.to ? plan->pad.to : longest;
}

/* `count` bytes of repeated elements of `size` bytes, by doubling. */
static void repeat(char *to, int64_t count, const char *element, int64_t size)
{
    int64_t done = size;

    if (count == 0)
        return;
    memcpy(to, element, (size_t)size);
    for (; done < count; done *= 2)
        memcpy(to + done, to, (size_t)(done < count - done ? done : count - done));
}

void stki_pad_row(const stk_batch *batch, const stki_field_plan *plan, int64_t row)
{
    int64_t common = stki_padded_length(batch, plan), length = stki_slot_offsets(batch, plan)[row + 1];
    uint8_t *mask = stki_slot_pad_mask(batch, plan) + row * common;

    repeat(stki_padded_row(batch, plan, row) + length * plan->item_bytes, (common - length) * plan->item_bytes,
           plan->pad.element, stk_dtype_size(plan->dtype));
    memset(mask, 1, (size_t)length);
    memset(mask + length, 0, (size_t)(common - length));
}
