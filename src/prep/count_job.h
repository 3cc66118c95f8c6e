/* count_job.h: finds the steps of a job's transforms that require a pass over the data, and resolves them: the job is
 * read again with the resulting parameters, as if the user had written them. */
#ifndef STKI_COUNT_JOB_H
#define STKI_COUNT_JOB_H

#include "count_pass.h"

/* Returns whether the job has a step that requires a pass. */
bool stki_count_needed(const stki_job *job);
/* Makes passes until all steps are resolved; job->counted receives the results. */
stk_status stki_count_job(stki_job *job, stki_prep_run *run, stk_error *err);
/* For inspecting a job without a pass: sets placeholder parameters, which do not affect sizes. */
stk_status stki_count_pretend(stki_job *job, stk_error *err);

/* Runs a job without output: gathers the statistics that `stats` requests and writes them to job->path. *rows: number
 * of rows counted. */
stk_status stki_count_alone(stki_job *job, stki_prep_run *run, int64_t *rows, stk_error *err);
/* Checks that the inputs listed in the file `stats` have not changed (stki_prep_inputs_same). The job must have no
 * unresolved steps. */
stk_status stki_count_same(const stki_job *job, stki_prep_run *run, const json_t *stats, stk_error *err);

#endif
