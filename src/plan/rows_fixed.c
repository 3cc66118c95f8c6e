/* rows_fixed.c: rows of one shape, stored consecutively. See row_layout.h. */
#include "plan.h"

static void list(stki_field_plan *plan)
{
    stki_plan_add_values(plan, "", STKI_PER_ROW);
}

static void row_at(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out)
{
    *out = (stki_batch_row){0};
    out->data = stki_tensor_row(plan, &plan->tensors[0], memory, row, &out->bytes);
}

const stki_row_layout stki_fixed_rows = {.word = "", .list = list, .clear = stki_zero_row, .row = row_at};
