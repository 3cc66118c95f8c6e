/* prep_inputs.h: were the files that a job reads of another size when it was begun? A resume would mix rows of both. */
#ifndef STKI_PREP_INPUTS_H
#define STKI_PREP_INPUTS_H

#include "prep_run.h"

/* Remembers the sizes of all files in the work folder. */
stk_status stki_prep_inputs_write(const stki_prep_run *run, stk_error *err);
/* STK_E_MISMATCH names the first file whose size differs. Fine where nothing is remembered. */
stk_status stki_prep_inputs_check(const stki_prep_run *run, stk_error *err);

#endif
