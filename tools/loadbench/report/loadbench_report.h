/* loadbench_report.h: --report, a result as one self-contained HTML page (no other files, no network). */
#ifndef LOADBENCH_REPORT_H
#define LOADBENCH_REPORT_H

#include <jansson.h>
#include <stoker/status.h>

/* Checks before the run that the report can be written to `path`. */
stk_status lb_report_try(const char *path, stk_error *err);
/* Writes the report of a result or a sweep. The file is replaced atomically. */
stk_status lb_report_write(const char *path, const json_t *tree, stk_error *err);

#endif
