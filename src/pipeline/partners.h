/* partners.h: which rows of a batch are mixed with each other, and how.
 *
 * The partner of row p of the global batch is row p xor 1; an odd last row has none and stays as it is. A rank whose
 * rows end inside a pair reads the partner's sample too. A row that the draw does not mix knows nothing of its partner:
 * only its own sample is read. So what becomes of a row follows from its samples and the draw, and is the same
 * whichever rank or worker makes it. */
#ifndef STKI_PARTNERS_H
#define STKI_PARTNERS_H

#include "core.h"

/* STK_E_CONFIG: there are windows. Notes that batches of one row mix nothing. */
stk_status stki_partners_check(stki_core *core, stk_error *err);
/* Works out the partners of all rows. */
stk_status stki_partners_begin(stki_core *core, stk_batch *batch, stk_error *err);
/* Row `row` of this rank in the global batch (*own), and its partner there: itself, if it has none. */
int64_t stki_partner_of(const stk_batch *batch, int64_t row, int64_t *own);
/* Of an image, or of labels that go with one. */
stki_mixing stki_mixing_of(const stki_worker *worker, const stki_field_plan *plan, int64_t row);
/* Does the row of this field (or of its rows in f32) hold a part of its partner? */
bool stki_row_is_mixed(const stki_worker *worker, const stki_field_plan *plan, int64_t row);

#endif
