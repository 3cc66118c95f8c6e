/* rows_padded.h: `pad` of a field of varying length: the rows of a batch have one length, that of the batch's longest
 * row or a number, and a mask tells their own entries from what is behind them. */
#ifndef STKI_ROWS_PADDED_H
#define STKI_ROWS_PADDED_H

#include "option.h"
#include "plan.h"

/* `pad: batch`, `pad: 128`, or {to, value, truncate}. */
stk_status stki_pad_read(const stki_node *node, stki_pad *out, stk_error *err);
extern const stki_option_table stki_pad_table;
/* Of a plan whose layout and dtype are known: where the config says so its rows become padded ones. */
stk_status stki_pad_resolve(stki_field_plan *plan, stk_error *err);

#endif
