/* loadbench_others.h: how much of the processors others used while a repeat was measured: what the system says they
 * were busy, without what this process used itself. Of the processors that this process may run on, so that what goes
 * on elsewhere on a large machine does not count. Rates, verdict and predictions of a machine that does other things
 * are worth less, and cannot be told from others by looking at them. */
#ifndef LOADBENCH_OTHERS_H
#define LOADBENCH_OTHERS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Clocks of the system, since it was started, added up over the processors that this process may use. */
struct lb_load {
    bool known;
    char why[128];              /* known is false */
    int processors;             /* they are of so many */
    int64_t busy_ns;            /* of anybody, interrupts too, and the host of a virtual machine */
    int64_t idle_ns;            /* nobody, or all waited for a disk */
    int64_t step_ns;            /* the clocks go by such steps */
    int64_t own_ns;             /* processor time of this process */
    int64_t queued_ns;          /* its threads: ready to run, and no processor was free, all together; -1: unknown */
    int64_t at_ns;              /* when they were read */
    int64_t periods, throttled; /* of the control group's quota: those that it ran in, those that it was stopped in */
};

/* `stat`: /proc/stat; `set`: the processors that this process may use. Fills all but own_ns, queued_ns and at_ns. */
void lb_load_parse(FILE *stat, const cpu_set_t *set, int64_t step_ns, struct lb_load *out);
void lb_load_read(struct lb_load *out);

struct lb_others {
    bool known;
    char why[128];  /* known is false */
    int processors; /* that this process may use */
    double used;    /* of them by others, on average; without what was left over anyway where a quota allows less */
    double queued;  /* threads of this process that were ready and had no processor, on average; < 0: unknown */
    int64_t span_ns;
    double throttled; /* share of the quota's periods in which the control group had used it up, and was stopped */
};

/* `quota`: processors that the control group allows; 0: no limit. */
void lb_others_between(const struct lb_load *from, const struct lb_load *to, double quota, struct lb_others *out);

#define LB_QUIET 0.15 /* processors that others may use of a run that still counts as quiet */

/* Several repeats together. */
struct lb_quiet {
    bool known;        /* of all of them */
    char why[128];     /* known is false */
    int repeats, loud; /* repeats; of them above LB_QUIET */
    int processors;    /* that this process may use */
    double used;       /* the mean over the time */
    double most;       /* of the repeat that had the most */
};
void lb_quiet_of(const struct lb_others *each, int count, struct lb_quiet *out);

#endif
