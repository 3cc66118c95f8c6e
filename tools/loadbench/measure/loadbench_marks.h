/* loadbench_marks.h: records totals (marks) at regular times of a repeat. An interval is the difference between two
 * marks. Throughput over time, the times of each worker and the depth of the queue are computed from intervals. Memory
 * is bounded: when all LB_MARKS marks are in use, every second one is removed and the period is doubled. Not
 * thread-safe. */
#ifndef LOADBENCH_MARKS_H
#define LOADBENCH_MARKS_H

#include "loadbench_figure.h"
#include "loadbench_machine.h"
#include <stdio.h>
#include <stoker/loader.h>

/* A time in a repeat, and the totals from the opening of the loader to that time. */
struct lb_mark {
    int64_t at_ns;
    int64_t batches, samples, epochs;
    int64_t next_ns;                /* time in stk_loader_next */
    int64_t consume_ns, release_ns; /* time in the consumer; in releasing batches */
    int64_t record_ns;              /* time in recording marks */
    struct lb_usage usage;
    stk_loader_stats stats;
};

enum { LB_MARKS = 128 };

struct lb_marks {
    int count, worker_count; /* worker_count is 1 without workers, for the consumer's thread */
    int first;               /* the mark at the start of the measurement; -1: none */
    int64_t period_ns, due_ns;
    struct lb_mark *marks;
    stk_worker_stats *workers; /* the workers of mark i start at workers[i * worker_count] */
};

/* The caller must add every mark, including the first one after the loader is opened. */
stk_status lb_marks_create(int worker_count, int64_t period_ns, struct lb_marks **out, stk_error *err);
void lb_marks_destroy(struct lb_marks *marks); /* NULL is allowed */
/* Adds a mark and sets due_ns to one period later. `workers` has worker_count entries. `begins`: the measurement starts
 * at this mark. */
void lb_marks_add(struct lb_marks *marks, const struct lb_mark *mark, const stk_worker_stats *workers, bool begins);
/* Reads the statistics of all workers; zeros for those that cannot be read. */
void lb_marks_ask(const stk_loader *loader, int worker_count, stk_worker_stats *out);

/* The figures of an interval, computed from the marks at its ends (for LB_INTERVAL_WORKER, from a worker's statistics).
 * Records of --intervals have all of them. The result has lists of those that are not log_only. */
enum lb_interval_group { LB_INTERVAL_COUNTS, LB_INTERVAL_FLOW, LB_INTERVAL_DEVICE, LB_INTERVAL_WORKER };
extern const struct lb_figure lb_interval_figures[];
extern const int lb_interval_figure_count;
/* Returns the difference or, for a figure with `level`, the value at the end; -1: unknown. */
int64_t lb_interval_value(const struct lb_figure *figure, const void *from, const void *until);

/* A file of interval records. After a write error no more records are written, but the run continues. */
struct lb_log {
    const char *path; /* borrowed */
    FILE *to;         /* NULL: closed or failed */
    stk_error failed; /* STK_OK while all records have been written */
};
/* Creates the file. */
stk_status lb_log_open(struct lb_log *log, const char *path, stk_error *err);
/* Returns STK_OK or the status of `failed`. The log may be zeroed. */
stk_status lb_log_close(struct lb_log *log);

/* Writes one line of JSON for an interval: see docs/reference/loadbench.md. Does nothing after a write error. */
void lb_marks_log(struct lb_log *log, int repeat, bool ramp, int64_t open_ns, const struct lb_mark *from,
                  const struct lb_mark *until, int worker_count, const stk_worker_stats *workers_from,
                  const stk_worker_stats *workers_until);

#endif
