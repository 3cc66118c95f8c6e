/* loadbench_others.h: measures the CPU usage of other programs during a repeat: the busy time reported by the system
 * minus that of this process. Only counts processors on which this process may run, so that activity elsewhere on a
 * large machine is ignored. On a busy machine, rates, verdict and predictions are less reliable, which the figures
 * themselves do not show. */
#ifndef LOADBENCH_OTHERS_H
#define LOADBENCH_OTHERS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Clocks of the system since boot, summed over the processors that this process may use. */
struct lb_load {
    bool known;
    char why[128];              /* reason if not `known` */
    int processors;             /* number of processors that this process may use */
    int64_t busy_ns;            /* time of all programs, interrupts, and time stolen by the hypervisor */
    int64_t idle_ns;            /* idle time, including that spent waiting for a disk */
    int64_t step_ns;            /* resolution of the clocks */
    int64_t own_ns;             /* CPU time of this process */
    int64_t queued_ns;          /* total time that its threads waited for a processor; -1: unknown */
    int64_t at_ns;              /* time of the reading */
    int64_t periods, throttled; /* periods of the control group's quota; those in which it was throttled */
};

/* `stat`: /proc/stat; `set`: the processors that this process may use. Sets all members except own_ns, queued_ns and
 * at_ns. */
void lb_load_parse(FILE *stat, const cpu_set_t *set, int64_t step_ns, struct lb_load *out);
void lb_load_read(struct lb_load *out);

struct lb_others {
    bool known;
    char why[128];  /* reason if not `known` */
    int processors; /* number of processors that this process may use */
    double used;    /* average number of processors used by others, not counting those beyond the quota */
    double queued;  /* average number of threads of this process that were waiting for a processor; < 0: unknown */
    int64_t span_ns;
    double throttled; /* fraction of the quota's periods in which the control group was throttled */
};

/* `quota`: processors that the control group allows; 0: no limit. */
void lb_others_between(const struct lb_load *from, const struct lb_load *to, double quota, struct lb_others *out);

#define LB_QUIET 0.15 /* a run is quiet if others use no more processors than this */

/* Several repeats combined. */
struct lb_quiet {
    bool known;        /* false: unknown for at least one repeat */
    char why[128];     /* reason if not `known` */
    int repeats, loud; /* number of repeats; number of repeats above LB_QUIET */
    int processors;    /* number of processors that this process may use */
    double used;       /* mean of all repeats, weighted by time */
    double most;       /* `used` of the repeat where it was highest */
};
void lb_quiet_of(const struct lb_others *each, int count, struct lb_quiet *out);

#endif
