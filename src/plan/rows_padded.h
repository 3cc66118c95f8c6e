/* rows_padded.h: `pad` of a field of varying length: all rows of a batch have the same length, which is that of the
 * batch's longest row or a fixed number, and a mask distinguishes entries from padding. */
#ifndef STKI_ROWS_PADDED_H
#define STKI_ROWS_PADDED_H

#include "option.h"
#include "plan.h"

/* `pad: batch`, `pad: 128`, or {to, value, truncate}. */
stk_status stki_pad_read(const stki_node *node, stki_pad *out, stk_error *err);
extern const stki_option_table stki_pad_table;
/* Selects the padded layout if the config has `pad`. Call when the plan's layout and dtype are known. */
stk_status stki_pad_resolve(stki_field_plan *plan, stk_error *err);

#endif
