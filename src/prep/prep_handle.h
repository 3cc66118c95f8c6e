/* prep_handle.h: what the public calls of preparation jobs share: prep.c, which runs one, and prep_ask.c, which answers
 * questions about it; the functions are in prep_begin.c. One thread at a time but for `cancelled`. */
#ifndef STKI_PREP_HANDLE_H
#define STKI_PREP_HANDLE_H

#include "prep_run.h"

struct stk_prep {
    stki_job job;
    stk_prep_opts opts;
    stki_name_lock name; /* while it runs */
    _Atomic bool cancelled;
    stk_prep_result result;
    char *manifest_path, *skipped_path, *stats_path;
    stki_notes notes;
};

/* Opens everything but the work folder; stki_prep_close in every case. */
stk_status stki_prep_run_open(stk_prep *prep, stki_prep_run *run, stk_error *err);
/* What every run of the job begins with. */
stki_prep_run stki_prep_begin(stk_prep *prep);

/* A job whose steps wait for a pass is looked at with parameters that stand for them: in a job of its own, which takes
 * the place of the real one until stki_prep_end_look. What an earlier run has made is then not looked at. */
stk_status stki_prep_begin_look(stk_prep *prep, stki_job *real, stk_error *err);
void stki_prep_end_look(stk_prep *prep, stki_job *real);

#endif
