/* advise.h: tells readers which samples a batch needs, before they are asked for them. */
#ifndef STKI_ADVISE_H
#define STKI_ADVISE_H

#include "row_maker.h"

enum { STKI_ADVISED_TOGETHER = 128 };

void stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker);
/* STKI_ADVISED_TOGETHER samples at most. */
void stki_advise_samples(const stki_field *field, const int64_t *indices, int count, stki_worker *worker);

#endif
