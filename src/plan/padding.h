/* padding.h: `pad` of a field of varying length, as the config says it: the rows of a batch have one length, that of
 * the batch's longest row or a number. */
#ifndef STKI_PADDING_H
#define STKI_PADDING_H

#include "option.h"
#include "plan.h"

/* `pad: batch`, `pad: 128`, or {to, value, truncate}. */
stk_status stki_pad_read(const stki_node *node, stki_pad *out, stk_error *err);
extern const stki_option_table stki_pad_table;
/* Of a plan whose `ragged` and dtype are known: checks that it can be padded, and sets the length of its longest row.
 */
stk_status stki_pad_resolve(stki_field_plan *plan, stk_error *err);

#endif
