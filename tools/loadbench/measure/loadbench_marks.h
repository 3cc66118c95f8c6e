/* loadbench_marks.h: what had come by certain moments of a repeat, taken at a steady beat while it runs: what happened
 * between two of them is an interval. Throughput over time, the clocks of each worker and the depth of the queue are
 * read from them. Bounded: when there is no room left, every second moment goes and the beat becomes half as fast. One
 * thread. */
#ifndef LOADBENCH_MARKS_H
#define LOADBENCH_MARKS_H

#include "loadbench_figure.h"
#include "loadbench_machine.h"
#include <stdio.h>
#include <stoker/loader.h>

/* A moment of a repeat, and what had come by then since the opening. */
struct lb_mark {
    int64_t at_ns;
    int64_t batches, samples, epochs;
    int64_t next_ns;                /* inside stk_loader_next */
    int64_t consume_ns, release_ns; /* in the consumer; in giving batches back */
    int64_t record_ns;              /* in taking such marks */
    struct lb_usage usage;
    stk_loader_stats stats;
};

enum { LB_MARKS = 128 };

struct lb_marks {
    int count, worker_count; /* without workers 1: the consumer's own thread */
    int first;               /* the mark at which the measurement begins; -1: none */
    int64_t period_ns, due_ns;
    struct lb_mark *marks;
    stk_worker_stats *workers; /* of mark i: workers[i * worker_count …] */
};

/* The first mark, of the opening, is added by the caller too. */
stk_status lb_marks_create(int worker_count, int64_t period_ns, struct lb_marks **out, stk_error *err);
void lb_marks_destroy(struct lb_marks *marks); /* NULL is fine */
/* `workers`: worker_count of them. `begins`: the measurement begins here. The next one is due a period later. */
void lb_marks_add(struct lb_marks *marks, const struct lb_mark *mark, const stk_worker_stats *workers, bool begins);
/* Asks all workers of the loader. */
void lb_marks_ask(const stk_loader *loader, int worker_count, stk_worker_stats *out);

/* The figures of an interval, from the two marks (LB_INTERVAL_WORKER: from a worker's statistics at the two) that it
 * lies between: the records of --intervals have all of them, the result those that are not log_only, as lists. */
enum lb_interval_group { LB_INTERVAL_COUNTS, LB_INTERVAL_FLOW, LB_INTERVAL_DEVICE, LB_INTERVAL_WORKER };
extern const struct lb_figure lb_interval_figures[];
extern const int lb_interval_figure_count;
/* What was added, or with `level` the value at the end; -1: unknown. */
int64_t lb_interval_value(const struct lb_figure *figure, const void *from, const void *until);

/* A file of interval records. What cannot be written ends the records, not the run. */
struct lb_log {
    const char *path; /* the caller's */
    FILE *to;         /* NULL: closed, or given up */
    stk_error failed; /* its status is STK_OK as long as all has been written */
};
/* Makes the file. STK_E_IO: it cannot be. */
stk_status lb_log_open(struct lb_log *log, const char *path, stk_error *err);
/* STK_OK, or the status of `failed`. All zero is fine. */
stk_status lb_log_close(struct lb_log *log);

/* One line of JSON for what happened between two moments: see docs/reference/loadbench.md. Nothing where the file was
 * given up.
 */
void lb_marks_log(struct lb_log *log, int repeat, bool ramp, int64_t open_ns, const struct lb_mark *from,
                  const struct lb_mark *until, int worker_count, const stk_worker_stats *workers_from,
                  const stk_worker_stats *workers_until);

#endif
