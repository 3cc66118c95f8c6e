/* rows_ragged.c: rows of different lengths, stored consecutively, with the offsets of their first entries. See
 * row_layout.h. */
#include "plan.h"
#include <string.h>

static void list(stki_field_plan *plan)
{
    stki_plan_add_values(plan, ".values", STKI_PER_ENTRY);
    stki_plan_add_tensor(plan, ".offsets", STKI_OFFSETS, STK_I64)->late = true;
}

void stki_ragged_settle(const stki_field_plan *plan, char *memory, int64_t rows)
{
    int64_t *offsets = stki_row_counts(plan, memory);

    offsets[0] = 0;
    for (int64_t r = 0; r < rows; r++)
        offsets[r + 1] += offsets[r];
}

/* Moves the following rows. They always fit, because a slot has room for `rows` rows of maximum length. */
bool stki_ragged_fit(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length)
{
    const stki_row_tensor *tensor = &plan->tensors[0];
    int64_t *offsets = stki_row_counts(plan, memory);
    const int64_t unit = tensor->unit_bytes, old = offsets[row + 1], end = offsets[rows];
    const int64_t grown = length - (old - offsets[row]);
    char *values = memory + tensor->offset;

    memmove(values + (old + grown) * unit, values + old * unit, (size_t)((end - old) * unit));
    for (int64_t r = row + 1; r <= rows; r++)
        offsets[r] += grown;
    return true;
}

void stki_ragged_row(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out)
{
    const int64_t *offsets = stki_row_counts(plan, memory);

    *out = (stki_batch_row){.entries = offsets[row + 1] - offsets[row]};
    out->data = stki_tensor_row(plan, &plan->tensors[0], memory, row, &out->bytes);
}

const stki_row_layout stki_ragged_rows = {.word = "varying",
                                          .measured = true,
                                          .list = list,
                                          .settle = stki_ragged_settle,
                                          .fit = stki_ragged_fit,
                                          .clear = stki_zero_row,
                                          .row = stki_ragged_row};
