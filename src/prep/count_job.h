/* count_job.h: which steps of a job's transforms wait for a pass over the data, and what they become: the job is read
 * again with the parameters that were found, as if they had been written there. */
#ifndef STKI_COUNT_JOB_H
#define STKI_COUNT_JOB_H

#include "count_pass.h"

/* Is there such a step? */
bool stki_count_needed(const stki_job *job);
/* Passes until no step waits; job->counted then has what was found. */
stk_status stki_count_job(stki_job *job, stki_prep_run *run, stk_error *err);
/* For looking at a job without a pass: the steps get parameters that change no size. */
stk_status stki_count_pretend(stki_job *job, stk_error *err);

/* A job without output: counts what `stats` says and writes job->path. *rows: that were counted. */
stk_status stki_count_alone(stki_job *job, stki_prep_run *run, int64_t *rows, stk_error *err);
/* Are the inputs, as the file `stats` lists them, those that are there now (stki_prep_inputs_same)? The job must not
 * wait. */
stk_status stki_count_same(const stki_job *job, stki_prep_run *run, const json_t *stats, stk_error *err);

#endif
