/* pad.h: padded rows of a batch (padding.h): their common length, and what lies behind a sample's own elements, which a
 * mask tells apart. */
#ifndef STKI_PAD_H
#define STKI_PAD_H

#include "slot.h"

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
