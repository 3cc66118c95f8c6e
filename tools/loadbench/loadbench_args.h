/* loadbench_args.h: loadbench's command line. */
#ifndef LOADBENCH_ARGS_H
#define LOADBENCH_ARGS_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

enum lb_action {
    LB_RUN,
    LB_SHOW_CONFIG,
    LB_PARSE_ONLY,
    LB_EXPLAIN,
    LB_PREVIEW,
    LB_MAKE,
    LB_TRANSFER,
    LB_ACCELERATORS,
    LB_HELP,
    LB_HELP_OPTIONS,
    LB_VERSION
};

struct lb_source;

struct lb_args {
    int action;               /* an lb_action */
    const char *file;         /* the config, saved result or specification (--make); NULL if the action needs none */
    struct lb_source *source; /* measured instead of the config's loader, or NULL; set by the caller */
    const char **sets;        /* assignments in order; the array is freed by lb_args_fini, the strings belong to argv */
    int set_count;
    const char *debug;     /* topics of --debug, or NULL */
    const char *device;    /* device of --transfer */
    const char *picture;   /* image file of --preview */
    const char *intervals; /* file of --intervals, or NULL */
    int accelerators;      /* number given with --accelerators, or LB_ACCELERATORS_SEARCH */
    bool json, force, digest;
    bool cache; /* --cache was given; its value is also in `sets` */
    /* Options that use results (loadbench_study.h). lb_args_fini frees the arrays; the strings belong to argv. */
    bool check_prediction, tune;
    const char **sweeps, **required;
    int sweep_count, require_count;
    const char *budget, *compare, *report; /* or NULL */
};

/* STK_E_CONFIG: a usage error. */
stk_status lb_args_read(int argc, char **argv, struct lb_args *out, stk_error *err);
void lb_args_fini(struct lb_args *args);
void lb_args_help(FILE *to);

#endif
