/* prep_inputs.h: the files that a job reads, as they were when it was begun. If one of them changes before the job is
 * complete, its rows would be mixed from both versions. */
#ifndef STKI_PREP_INPUTS_H
#define STKI_PREP_INPUTS_H

#include "prep_run.h"

/* Writes size and modification time of all files to the work folder. */
stk_status stki_prep_inputs_write(const stki_prep_run *run, stk_error *err);
/* STK_E_MISMATCH names the first file whose size or modification time differs. Succeeds if nothing was written. */
stk_status stki_prep_inputs_check(const stki_prep_run *run, stk_error *err);
/* Are the inputs of a complete output, as `made` lists them (stki_prep_describe_inputs), those that are there now, and
 * none of them newer than the file `output`? STK_E_MISMATCH names the first that is not. */
stk_status stki_prep_inputs_same(const stki_prep_run *run, const json_t *made, const char *output, stk_error *err);
/* Adds size and modification time of all files. */
void stki_prep_inputs_fingerprint(const stki_prep_run *run, stki_u128 *print);

#endif
