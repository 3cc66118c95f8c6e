/* pad.h: `pad` of a field of varying length: the rows of a batch have one length, a mask says which of their elements
 * are a sample's own. The common length is that of the batch's longest row, or a number. */
#ifndef STKI_PAD_H
#define STKI_PAD_H

#include "option.h"
#include "slot.h"

/* `pad: batch`, `pad: 128`, or {to, value, truncate}. */
stk_status stki_pad_read(const stki_node *node, stki_pad *out, stk_error *err);
extern const stki_option_table stki_pad_table;
/* Of a plan whose `ragged` and dtype are known: checks that it can be padded, and sets the length of its longest row.
 */
stk_status stki_pad_resolve(stki_field_plan *plan, stk_error *err);
/* The rows' lengths are known: decides on the common one. */
void stki_pad_batch(stk_batch *batch, const stki_field_plan *plan);
/* Where a row's `length` elements go. */
static inline char *stki_padded_row(const stk_batch *batch, const stki_field_plan *plan, int64_t row)
{
    return stki_slot_values(batch, plan) + row * stki_padded_length(batch, plan) * plan->item_bytes;
}
/* Fills what lies behind them, and the row of the mask. */
void stki_pad_row(const stk_batch *batch, const stki_field_plan *plan, int64_t row);

#endif
