/* rows_padded.c: see rows_padded.h and row_layout.h. */
#include "rows_padded.h"
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

static const stki_option options[] = {
    STKI_INT_WORDS(pad_options, to, batch, 1, MOST, batch_words, 0, "",
                   "Length of every row: batch (that of the longest row in its batch) or a number"),
    STKI_DOUBLE(pad_options, value, 0, -1e300, 1e300, "", "Value of the padding"),
    STKI_BOOL(pad_options, truncate, false,
              "Truncate rows longer than `to`; false: report them as errors in their samples", .need = &needs_length),
};
const stki_option_table stki_pad_table = STKI_OPTION_TABLE_WITH("dataset.fields.NAME.pad", options, .shorthand = "to");

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

    if (!plan->config->pad.padded)
        return STK_OK;
    if (!plan->rows->measured)
        return stki_fail(err, STK_E_CONFIG,
                         "dataset.fields.%s.pad: the field's rows have equal length, expected ragged samples",
                         plan->name);
    plan->pad = plan->config->pad;
    plan->rows = &stki_padded_rows;
    plan->truncates = plan->pad.truncate;
    if (plan->pad.to > 0) {
        plan->shape[0] = plan->pad.to;
        plan->varies = false;
        plan->too_long = "pad: {truncate: true} truncates longer rows";
    }
    stki_copy_strided(plan->pad.element, plan->dtype, none, &plan->pad.value, STK_F64, none, false, 0, none);
    stki_copy_strided(&back, STK_F64, none, plan->pad.element, plan->dtype, none, false, 0, none);
    if (plan->dtype >= STK_F16 || /* all float and complex dtypes */
        back == plan->pad.value)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "dataset.fields.%s.pad.value: found %g, which %s cannot represent", plan->name,
                     plan->pad.value, stk_dtype_name(plan->dtype));
}

/* ---- in a batch ---- */

enum { VALUES, MASK };

static void list(stki_field_plan *plan)
{
    stki_plan_add_values(plan, "", STKI_PER_PADDED_ENTRY);
    stki_plan_add_tensor(plan, ".mask", STKI_PER_PADDED_ENTRY, STK_BOOL)->viewed = true;
    stki_plan_add_tensor(plan, ".lengths", STKI_LENGTHS, STK_I64)->late = true;
}

static void settle(const stki_field_plan *plan, char *memory, int64_t rows)
{
    int64_t *counts = stki_row_counts(plan, memory), longest = 0;

    for (int64_t r = 0; r < rows; r++)
        longest = counts[r + 1] > longest ? counts[r + 1] : longest;
    counts[0] = plan->pad.to ? plan->pad.to : longest;
}

static bool fit(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length)
{
    int64_t *counts = stki_row_counts(plan, memory);

    (void)rows;
    if (length > counts[0])
        return false;
    counts[row + 1] = length;
    return true;
}

/* Fills `count` bytes with copies of an element of `size` bytes, doubling the filled part. */
static void repeat(char *to, int64_t count, const char *element, int64_t size)
{
    int64_t done = size;

    if (count == 0)
        return;
    memcpy(to, element, (size_t)size);
    for (; done < count; done *= 2)
        memcpy(to + done, to, (size_t)(done < count - done ? done : count - done));
}

static void complete(const stki_field_plan *plan, char *memory, int64_t row)
{
    const int64_t *counts = stki_row_counts(plan, memory), length = counts[row + 1];
    int64_t bytes, own = length * plan->tensors[VALUES].unit_bytes;
    char *values = stki_tensor_row(plan, &plan->tensors[VALUES], memory, row, &bytes);

    repeat(values + own, bytes - own, plan->pad.element, stk_dtype_size(plan->dtype));
    values = stki_tensor_row(plan, &plan->tensors[MASK], memory, row, &bytes);
    memset(values, 1, (size_t)length);
    memset(values + length, 0, (size_t)(bytes - length));
}

/* Pads the whole row. */
static void clear(const stki_field_plan *plan, char *memory, int64_t row)
{
    stki_row_counts(plan, memory)[row + 1] = 0;
    complete(plan, memory, row);
}

static void row_at(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out)
{
    const int64_t length = stki_row_counts(plan, memory)[row + 1];

    *out = (stki_batch_row){.entries = length};
    out->data = stki_tensor_row(plan, &plan->tensors[VALUES], memory, row, &out->bytes);
    out->bytes = length * plan->tensors[VALUES].unit_bytes;
}

const stki_row_layout stki_padded_rows = {.word = "varying",
                                          .measured = true,
                                          .no_job =
                                              "pad: rows of a job keep their own length; use pad in the loader that "
                                              "reads the output",
                                          .list = list,
                                          .settle = settle,
                                          .fit = fit,
                                          .complete = complete,
                                          .clear = clear,
                                          .row = row_at};
