/* advise.h: tells readers which samples a batch needs, before they are asked for them. */
#ifndef STKI_ADVISE_H
#define STKI_ADVISE_H

#include "core.h"

void stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker);

#endif
