/* rows_ragged.h: what other layouts share with that of ragged rows (rows_ragged.c). */
#ifndef STKI_ROWS_RAGGED_H
#define STKI_ROWS_RAGGED_H

#include "plan.h"

void stki_ragged_settle(const stki_field_plan *plan, char *memory, int64_t rows);
bool stki_ragged_fit(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length);
void stki_ragged_row(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out);

#endif
