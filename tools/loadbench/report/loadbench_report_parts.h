/* loadbench_report_parts.h: the sections of the report. Each prints nothing where the result has nothing for it. */
#ifndef LOADBENCH_REPORT_PARTS_H
#define LOADBENCH_REPORT_PARTS_H

#include <jansson.h>
#include <stdio.h>

extern const char lb_report_style[];

/* loadbench_report_time.c: how the repeats went over their time. */
void lb_report_throughput(FILE *to, const json_t *tree);
void lb_report_workers(FILE *to, const json_t *tree);
void lb_report_queue(FILE *to, const json_t *tree);
void lb_report_latency(FILE *to, const json_t *tree);

/* loadbench_report_bars.c: shares and limits. */
void lb_report_predictions(FILE *to, const json_t *tree);
void lb_report_stages(FILE *to, const json_t *tree);
void lb_report_limits(FILE *to, const json_t *tree);

/* loadbench_report_tables.c */
void lb_report_required(FILE *to, const json_t *tree);
void lb_report_compared(FILE *to, const json_t *tree);
void lb_report_figures(FILE *to, const json_t *tree);
/* A member of the result as names and values, all levels of it. */
void lb_report_facts(FILE *to, const char *title, const json_t *member);

/* loadbench_report_sweep.c */
void lb_report_sweep(FILE *to, const json_t *tree);

/* A section's beginning; its end is "</section>". `lead` may be NULL. */
void lb_report_section(FILE *to, const char *title, const char *lead);

#endif
