/* partners.h: determines which rows of a batch are mixed with each other, and how.
 *
 * The partner of row p of the global batch is row p xor 1; an odd last row has none and is not mixed. A rank whose rows
 * end inside a pair also reads the partner's sample. If the draw decides that a row is not mixed, only its own sample
 * is read. The contents of a row therefore depend only on its samples and the draw, not on the rank or worker that
 * makes it. */
#ifndef STKI_PARTNERS_H
#define STKI_PARTNERS_H

#include "core.h"

/* STK_E_CONFIG: mixing is combined with windows. Adds a note if batches have a single row, so that nothing is mixed. */
stk_status stki_partners_check(stki_core *core, stk_error *err);
/* Computes the partners of all rows. */
stk_status stki_partners_begin(stki_core *core, stk_batch *batch, stk_error *err);
/* Maps row `row` of this rank to its number in the global batch (*own) and returns its partner's number, which is *own
 * if it has none. */
int64_t stki_partner_of(const stk_batch *batch, int64_t row, int64_t *own);
/* Returns the mixing parameters for a row of images, or of labels that belong to images. */
stki_mixing stki_mixing_of(const stki_worker *worker, const stki_field_plan *plan, int64_t row);
/* Whether the row of this field (or its unrounded f32 row) contains a part of its partner. */
bool stki_row_is_mixed(const stki_worker *worker, const stki_field_plan *plan, int64_t row);

#endif
