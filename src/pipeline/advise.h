/* advise.h: announces the samples of a batch to the readers before they are read, so that they can start I/O early. */
#ifndef STKI_ADVISE_H
#define STKI_ADVISE_H

#include "core.h"

void stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker);

#endif
