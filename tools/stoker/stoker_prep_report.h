/* stoker_prep_report.h: what a job is going to do, and what it came to, in words and in JSON. */
#ifndef STOKER_PREP_REPORT_H
#define STOKER_PREP_REPORT_H

#include "stoker_prep_show.h"

/* Opens the data, works the plan out and prints it: --dry-run. */
stk_status st_prep_report_plan(stk_prep *job, const char *name, const stki_task *task, stk_error *err);
/* After a run that did not fail. */
void st_prep_report_text(const stk_prep *job, const struct st_prep_show *show);
/* The last line of --json-progress, however the run ended. */
void st_prep_report_json(const stk_prep *job, stk_status status, int code, const stk_error *err);
/* On stderr: a signal stopped it, and how it goes on. */
void st_prep_report_stopped(const stk_prep *job, int signal_number);

#endif
