/* fill_made.h: rows that are more than a conversion of their sample: parts are erased, two rows are mixed, a label
 * becomes a row of its own. fill.c hands them over. */
#ifndef STKI_FILL_MADE_H
#define STKI_FILL_MADE_H

#include "core.h"

/* Whose sample, and where its row goes. */
typedef struct stki_making_of {
    int64_t index;
    stki_occasion occasion;
    void *to;
    int64_t row; /* of the batch */
} stki_making_of;

/* Makes one row that is not mixed; errors name file and record. fill.c has it. */
typedef stk_status stki_make_row_fn(stki_core *core, stk_batch *batch, const stki_field_plan *plan,
                                    const stki_making_of *of, stki_worker *worker, stk_error *err);

/* Works out the partners of all rows (mixing). */
stk_status stki_made_begin(stki_core *core, stk_batch *batch, stk_error *err);
/* Does the row of this field (or of its rows in f32) hold a part of its partner? */
bool stki_made_mixes(const stki_core *core, const stk_batch *batch, const stki_field_plan *plan, int64_t row);
/* Makes the row, or it and the next one; rows that fail are failed. Returns how many were made. */
int64_t stki_made_fill(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t last,
                       stki_make_row_fn *make, stki_worker *worker);
/* Erases the boxes that the plan draws for the row. */
void stki_made_erase(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row);

#endif
