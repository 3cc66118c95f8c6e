/* loadbench_report.h: --report, a result as one HTML page that needs nothing else: no other files, no network. */
#ifndef LOADBENCH_REPORT_H
#define LOADBENCH_REPORT_H

#include <jansson.h>
#include <stoker/status.h>

/* Whether the report can be written there, asked before the time is spent. */
stk_status lb_report_try(const char *path, stk_error *err);
/* Of a result or a sweep. The file appears complete or not at all. */
stk_status lb_report_write(const char *path, const json_t *tree, stk_error *err);

#endif
