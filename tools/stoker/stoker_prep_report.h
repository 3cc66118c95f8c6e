/* stoker_prep_report.h: plan and result of a job as text and JSON. */
#ifndef STOKER_PREP_REPORT_H
#define STOKER_PREP_REPORT_H

#include "stoker_prep_show.h"

/* --dry-run: opens the data, computes the plan and prints it. */
stk_status st_prep_report_plan(stk_prep *job, const char *name, const stki_task *task, stk_error *err);
/* Prints the result of a successful run. */
void st_prep_report_text(const stk_prep *job, const struct st_prep_show *show);
/* Prints the last line of --json-progress, for any outcome. */
void st_prep_report_json(const stk_prep *job, stk_status status, int code, const stk_error *err);
/* Prints to stderr that a signal stopped the job, and how to resume it. */
void st_prep_report_stopped(const stk_prep *job, int signal_number);

#endif
