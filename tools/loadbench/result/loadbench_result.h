/* loadbench_result.h: what all repeats of a benchmark come to, and its two printed forms. */
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
    struct lb_place place; /* of the first file of the data */
    struct lb_gpu gpu;     /* of a loader with a device */
    int run_count, limit_count;
    bool
        from_open; /* a repeat ended within its ramp, or is cold: all are counted from the call that opens the loader */
    struct lb_run *runs;           /* counted so, or from the end of the ramp */
    struct lb_limit *limits;       /* measured right after the run of the same index */
    char limit_missing[256];       /* why there are none; "" */
    struct lb_once once;           /* limits that are measured once, when all repeats are over */
    int transfer_count;            /* 0 where there is no device, or they are not measured */
    struct lb_transfer *transfers; /* beside the limits, for a loader with a device */
    stki_histogram waits;          /* of all runs */
    stki_histogram gaps;           /* of all runs: from one batch to the next */
    struct lb_marks **marks;       /* of each run */
    struct lb_run *whole_runs;     /* counted in the other way, until that is decided */
    stki_histogram whole_waits, whole_gaps;
    struct lb_repeat *repeat; /* the one that runs */
    struct lb_log intervals;  /* `failed`: what was measured is complete, the file is not */
    struct lb_predictions predictions;
};

/* Runs all repeats. STK_END: stopped by a signal before anything was measured; stopped later, what there is counts. */
stk_status lb_result_measure(const struct lb_config *config, struct lb_result *out, stk_error *err);
void lb_result_fini(struct lb_result *result);

/* A config with some more assignments, and its result: a point of a sweep or of a search. */
struct lb_point {
    struct lb_config config;
    struct lb_result result;
};
/* Reads and measures it. The assignments are `defaults` (NULL ends them), those of the user, which win over these, and
 * the point's own (NULL ends them), which win over all. *out: NULL after a failure, which may also be one of
 * lb_config_open. */
stk_status lb_point_measure(const char *path, const char *const *defaults, const char *const *sets, int set_count,
                            const char *const *own, struct lb_point **out, stk_error *err);
void lb_point_destroy(struct lb_point *point); /* NULL is fine */

/* A figure of struct lb_run over all repeats. */
struct lb_summary lb_result_figure(const struct lb_result *result, const struct lb_figure *figure);
double lb_result_samples_per_s(const struct lb_result *result); /* the median */

/* Bytes that the loader read and wrote, a second. */
struct lb_limit_summary {
    struct lb_summary gather_bytes_per_s, memcpy_bytes_per_s;
    struct lb_summary share_of_gather_percent, share_of_memcpy_percent; /* each run against the limit beside it */
    struct lb_limit first;                                              /* of the first repeat */
};
struct lb_limit_summary lb_result_limits(const struct lb_result *result);
/* What the loader's device did; all zero without one. Shares in percent. */
struct lb_device_summary {
    char name[32];
    double batch_bytes;                 /* copied for a batch */
    struct lb_summary copy_bytes_per_s; /* while copies ran */
    struct lb_summary hidden_percent;   /* of the time of copies and conversions: nobody waited for it */
    struct lb_summary convert_percent;  /* of the elapsed time: the device converted */
    int64_t step_ns;                    /* of the device consumer */
    struct lb_summary step_percent;     /* of the elapsed time: the device consumer's stream was in a step */
    struct lb_summary pinned_bytes_per_s, pageable_bytes_per_s; /* plain copies of that size */
    struct lb_summary share_of_pinned_percent;
};
struct lb_device_summary lb_result_device(const struct lb_result *result);
/* Accelerator utilisation of the step consumer, 0 to 1; all -1 with another consumer, and where no step was whole. */
struct lb_summary lb_result_utilisation(const struct lb_result *result);
/* Shares of time over all runs. */
struct lb_shares lb_result_shares(const struct lb_result *result);
void lb_result_verdict(const struct lb_result *result, struct lb_verdict *out);
/* What others used of the processors while it was measured. */
void lb_result_quiet(const struct lb_result *result, struct lb_quiet *out);

/* Everything as JSON, the caller's. NULL: no memory. */
json_t *lb_result_tree(const struct lb_result *result, stk_error *err);

void lb_print_text(const struct lb_result *result, FILE *to);

#define LB_NO_LIMIT_TIME "bench.limit_time has no effect with bench.limit: false"
#define LB_NO_RAMP "bench.ramp is left out with cache: cold: what it reads would be cold no more"

enum { LB_SCHEMA = 3 }; /* of the JSON; grows when a key changes its meaning or goes */

#endif
