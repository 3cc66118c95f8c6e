/* loadbench_figures.h: every figure of a result. To add one, add a row to loadbench_figures.c: JSON, --require, sweeps
 * and the example result are generated from the table. */
#ifndef LOADBENCH_FIGURES_H
#define LOADBENCH_FIGURES_H

#include "loadbench_figure.h"

/* For each group, the struct of its rows and its place in the JSON. */
enum lb_figure_group {
    /* Of a repeat, `runs` */
    LB_OF_REPEAT,    /* struct lb_run; `result` has the median. Figures with a label are in the table of the text and of
                        the report, and --compare compares them */
    LB_OF_RUN,       /* struct lb_run */
    LB_OF_PROCESS,   /* struct lb_run */
    LB_OF_RUN_STEPS, /* struct lb_run; with the step consumer */
    LB_OF_RUN_CACHE, /* struct lb_run */
    LB_OF_RUN_DIGEST, /* struct lb_run; if a digest was requested */
    LB_OF_RUN_LIMIT,  /* struct lb_limit, measured after the repeat */
    LB_OF_MOVED,      /* struct lb_run; `result` has the median */
    LB_OF_USAGE,      /* struct lb_usage, `usage` */
    LB_OF_OTHERS,     /* struct lb_others, `others` */
    LB_OF_RESIDENCY,  /* struct lb_residency, `cache_before` and `cache_after` */
    LB_OF_STEADY,     /* struct lb_steady, `steady` */
    LB_OF_TREND,      /* the same, if the trend can be judged */
    LB_OF_RUN_STAGES, /* stk_loader_stats, `stages` */
    LB_OF_RUN_DEVICE, /* stk_loader_stats, `device` */
    /* Of all repeats */
    LB_OF_WAITS,       /* struct lb_waits, `wait` and `batch_interval` */
    LB_OF_QUIET,       /* struct lb_quiet, `others` */
    LB_OF_SHARES,      /* struct lb_shares, `stages` */
    LB_OF_QUEUE,       /* struct lb_shares, `queue` */
    LB_OF_LIMIT,       /* struct lb_limit_summary, `limit` */
    LB_OF_BOUND,       /* struct lb_bound, `limits.list` and `limits.binding` */
    LB_OF_ONCE,        /* struct lb_once, `limits` */
    LB_OF_DEVICE,      /* struct lb_device_summary, `device` */
    LB_OF_DEVICE_STEP, /* the same, with the device consumer */
    LB_OF_PLAIN_COPY,  /* the same, if plain copies were measured */
    LB_OF_UTILIZATION, /* struct lb_bench, `utilization` */
    LB_OF_VERDICT,     /* struct lb_verdict, `verdict` */
    /* Of the machine and the data */
    LB_OF_MACHINE, /* struct lb_machine, `machine` */
    LB_OF_STORAGE, /* struct lb_place, `storage` */
    LB_OF_GPU,     /* struct lb_gpu, `gpu` */
    LB_OF_TIMER,   /* struct lb_timer, `timer` */
    LB_OF_DATA,    /* struct lb_facts, `data` */
    LB_OF_CACHE,   /* struct lb_files, `cache` */
};

extern const struct lb_figure lb_figures[];
extern const int lb_figure_count;

#endif
