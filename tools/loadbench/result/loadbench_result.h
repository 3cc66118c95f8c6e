/* loadbench_result.h: the result of all repeats of a benchmark, printed as text or JSON. */
#ifndef LOADBENCH_RESULT_H
#define LOADBENCH_RESULT_H

#include "loadbench_bounds.h"
#include "loadbench_device.h"
#include "loadbench_figures.h"
#include "loadbench_limit.h"
#include "loadbench_place.h"
#include "loadbench_predict.h"
#include "loadbench_run.h"
#include "loadbench_statistics.h"
#include "loadbench_verdict.h"

struct lb_result {
    const struct lb_config *config;
    struct lb_machine machine;
    struct lb_facts facts;
    char started[32]; /* "2026-01-31T12:00:00Z" */
    struct lb_timer timer;
    struct lb_place place; /* storage of the first data file */
    struct lb_gpu gpu;     /* the GPU of a loader with a device */
    int run_count, limit_count;
    bool from_open;      /* all repeats are counted from the open call: one of them ended within its ramp, or is cold */
    struct lb_run *runs; /* counted from the open call or from the end of the ramp */
    struct lb_limit *limits;       /* measured right after the run with the same index */
    char limit_missing[256];       /* why there are no limits, or "" */
    struct lb_once once;           /* limits measured once, after all repeats */
    int transfer_count;            /* 0: there is no device, or transfers are not measured */
    struct lb_transfer *transfers; /* measured with the limits, for a loader with a device */
    stki_histogram waits;          /* wait times of all runs */
    stki_histogram gaps;           /* times from one batch to the next in all runs */
    struct lb_marks **marks;       /* marks of each run */
    struct lb_run *whole_runs;     /* the runs counted from the open call, used if from_open */
    stki_histogram whole_waits, whole_gaps;
    struct lb_repeat *repeat; /* the current repeat */
    struct lb_log intervals;  /* `failed`: the file is incomplete, but the measurement is not affected */
    struct lb_predictions predictions;
};

/* Runs all repeats. STK_END: stopped by a signal before anything was measured. If stopped later, the result covers the
 * part that was measured. */
stk_status lb_result_measure(const struct lb_config *config, struct lb_result *out, stk_error *err);
void lb_result_fini(struct lb_result *result);

/* A config with additional assignments, and its result: one point of a sweep or a search. */
struct lb_point {
    struct lb_config config;
    struct lb_result result;
};
/* Opens the config with additional assignments and measures it. The assignments, in increasing precedence, are
 * `defaults` (NULL-terminated), `sets`, and `own` (NULL-terminated). *out is NULL after a failure. */
stk_status lb_point_measure(const char *path, const char *const *defaults, const char *const *sets, int set_count,
                            const char *const *own, struct lb_point **out, stk_error *err);
void lb_point_destroy(struct lb_point *point); /* NULL is allowed */

/* A figure of struct lb_run, summarized over all repeats. */
struct lb_summary lb_result_figure(const struct lb_result *result, const struct lb_figure *figure);
double lb_result_samples_per_s(const struct lb_result *result); /* median over the repeats */

/* The measured memory limits, and the share of them that the loader reached. */
struct lb_limit_summary {
    struct lb_summary gather_bytes_per_s, memcpy_bytes_per_s;
    struct lb_summary share_of_gather_percent, share_of_memcpy_percent; /* each run relative to its limit */
    struct lb_limit first;                                              /* limits of the first repeat */
};
struct lb_limit_summary lb_result_limits(const struct lb_result *result);
/* Work of the loader's device; all zero without one. */
struct lb_device_summary {
    char name[32];
    double batch_bytes;                 /* bytes copied per batch */
    struct lb_summary copy_bytes_per_s; /* while copies were running */
    struct lb_summary hidden_percent;   /* share of copy and conversion time that overlapped with other work */
    struct lb_summary convert_percent;  /* share of elapsed time spent converting on the device */
    int64_t step_ns;                    /* step of the device consumer */
    struct lb_summary step_percent;     /* share of elapsed time that the device consumer's stream was in a step */
    struct lb_summary pinned_bytes_per_s, pageable_bytes_per_s; /* rates of plain copies of a batch */
    struct lb_summary share_of_pinned_percent;
};
struct lb_device_summary lb_result_device(const struct lb_result *result);
/* Returns the accelerator utilization of the step consumer, 0 to 1; all values are -1 with another consumer or without
 * a complete step. */
struct lb_summary lb_result_utilization(const struct lb_result *result);
/* Shares of time over all runs. */
struct lb_shares lb_result_shares(const struct lb_result *result);
void lb_result_verdict(const struct lb_result *result, struct lb_verdict *out);
/* CPU time used by other programs while measuring. */
void lb_result_quiet(const struct lb_result *result, struct lb_quiet *out);

/* The result as JSON, owned by the caller. NULL: out of memory. */
json_t *lb_result_tree(const struct lb_result *result, stk_error *err);

void lb_print_text(const struct lb_result *result, FILE *to);

#define LB_NO_LIMIT_TIME "bench.limit_time has no effect with bench.limit: false"
#define LB_NO_RAMP "bench.ramp is ignored with cache: cold, because data that it reads would no longer be cold"

enum { LB_SCHEMA = 3 }; /* version of the JSON; incremented if a key is removed or changes its meaning */

#endif
