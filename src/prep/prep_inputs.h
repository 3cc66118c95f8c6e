/* prep_inputs.h: the state of a job's input files at its start. If one of them changes before the job is complete, the
 * output may contain rows of both versions. */
#ifndef STKI_PREP_INPUTS_H
#define STKI_PREP_INPUTS_H

#include "prep_run.h"

/* The state of the inputs that a process has read, in all loaders that it opens for one job: the passes for statistics
 * and the writing pass must have read the same files. A hash table keyed by path. */
typedef struct stki_input_seen {
    uint64_t name; /* XXH3 of the path; 0: free */
    int64_t size, mtime_ns;
} stki_input_seen;
struct stki_inputs_seen {
    stki_input_seen *places;
    int64_t count, room; /* room: 0 or a power of two */
};
void stki_inputs_seen_fini(stki_inputs_seen *seen);

/* Adds the files of the open loader to run->seen. STK_E_MISMATCH names one that was seen before and has changed.
 * `print` (may be NULL) receives size and modification time of all files. `opened`: uses the state in which the loader
 * opened the files, if known; otherwise the current one. */
stk_status stki_prep_inputs_see(const stki_prep_run *run, bool opened, stki_u128 *print, stk_error *err);
/* Writes size and modification time of all files to the work folder. */
stk_status stki_prep_inputs_write(const stki_prep_run *run, stk_error *err);
/* STK_E_MISMATCH names the first file whose size or modification time differs. Succeeds if nothing was written. */
stk_status stki_prep_inputs_check(const stki_prep_run *run, stk_error *err);
/* Checks that the inputs of a complete output, as listed in its manifest or statistics file, have not changed. If
 * only times differ and there are checksums, compares the contents. STK_E_MISMATCH names the first difference. */
stk_status stki_prep_inputs_same(const stki_prep_run *run, const json_t *manifest, const char *output, stk_error *err);

#endif
