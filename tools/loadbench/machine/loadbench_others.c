/* loadbench_others.c: see loadbench_others.h. Even in most containers, /proc/stat covers the whole machine. This is
 * necessary here, because programs outside the container use the same processors. The file has one line per processor.
 * Some containers and sandboxes emulate it with zeros or with only their own processes, so it is used only if its
 * clocks have advanced as fast as ours and include the time used by this process. */
#include "loadbench_others.h"
#include "cgroup.h"
#include "clock.h"
#include "loadbench_machine.h"
#include "thread.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A span is too short if the expected error of the clocks, whose resolution is usually 10 ms, exceeds this share of
 * it. */
#define LEAST_SHARE_OF_STEPS 0.1

#define UNKNOWN(out, ...) snprintf((out)->why, sizeof(out)->why, __VA_ARGS__)

/* Parses "cpu3 user nice system idle iowait irq softirq steal guest guest_nice" (guests are included in user and nice;
 * old systems have fewer columns). Returns the processor's number; -1: not such a line. */
static int parse_line(const char *line, int64_t step_ns, struct lb_load *sum)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };
    long long ticks[COLUMNS] = {0};
    int processor, used = 0;

    if (sscanf(line, "cpu%d%n", &processor, &used) != 1 || processor < 0)
        return -1;
    if (sscanf(line + used, "%lld %lld %lld %lld %lld %lld %lld %lld", &ticks[USER], &ticks[NICE], &ticks[SYSTEM],
               &ticks[IDLE], &ticks[IOWAIT], &ticks[IRQ], &ticks[SOFTIRQ], &ticks[STEAL]) < IDLE + 1)
        return -1;
    sum->busy_ns = (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ] + ticks[STEAL]) * step_ns;
    sum->idle_ns = (ticks[IDLE] + ticks[IOWAIT]) * step_ns;
    return processor;
}

/* Reads only the lines of processors, which come first; the rest can be long. */
void lb_load_parse(FILE *stat, const cpu_set_t *set, int64_t step_ns, struct lb_load *out)
{
    size_t room = 0;
    char *line = NULL;
    int found = 0;

    *out = (struct lb_load){.processors = CPU_COUNT(set), .step_ns = step_ns};
    while (getline(&line, &room, stat) > 0 && strncmp(line, "cpu", 3) == 0) {
        struct lb_load one;
        const int processor = parse_line(line, step_ns, &one);
        if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET((size_t)processor, set))
            continue;
        found++;
        out->busy_ns += one.busy_ns;
        out->idle_ns += one.idle_ns;
    }
    free(line);
    out->known = found == out->processors;
    UNKNOWN(out, "/proc/stat lists only %d of the %d processors that this process may use", found, out->processors);
}

static int64_t own_ns(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return lb_timeval_ns(usage.ru_utime) + lb_timeval_ns(usage.ru_stime) + lb_children_ns();
}

/* Returns the time that all threads together have spent waiting for a processor: the second number in schedstat. */
static int64_t queued_ns(void)
{
    DIR *const tasks = opendir("/proc/self/task");
    const struct dirent *task;
    int64_t sum = 0;
    bool known = tasks != NULL;

    while (tasks && (task = readdir(tasks)) != NULL) {
        char path[300];
        long long ran, queued;
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        FILE *const file = fopen(path, "re");
        if (file && fscanf(file, "%lld %lld", &ran, &queued) == 2)
            sum += queued;
        else if (file || errno != ENOENT) /* threads that have just ended are ignored */
            known = false;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return known ? sum : -1;
}

void lb_load_read(struct lb_load *out)
{
    const long steps = sysconf(_SC_CLK_TCK);
    FILE *const stat = fopen("/proc/stat", "re");
    stki_cgroup_cpu cpu;
    cpu_set_t set;

    CPU_ZERO(&set);
    if (!stat || steps < 1) {
        *out = (struct lb_load){.why = "/proc/stat cannot be read"};
    } else if (sched_getaffinity(0, sizeof set, &set) != 0) {
        *out = (struct lb_load){.why = "the processors that this process may use cannot be determined"};
    } else {
        lb_load_parse(stat, &set, STKI_SECOND / steps, out);
        out->own_ns = own_ns();
        out->queued_ns = queued_ns();
        out->at_ns = stki_now_ns();
    }
    stki_cgroup_cpu_read(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT, &cpu);
    out->periods = cpu.periods;
    out->throttled = cpu.throttled;
    if (stat)
        fclose(stat);
}

void lb_others_between(const struct lb_load *from, const struct lb_load *to, double quota, struct lb_others *out)
{
    const double span = (double)(to->at_ns - from->at_ns), all = span * to->processors;
    const double busy = (double)(to->busy_ns - from->busy_ns);
    const double clocks = busy + (double)(to->idle_ns - from->idle_ns);
    const double own = (double)(to->own_ns - from->own_ns), steps = (double)to->step_ns * to->processors;

    *out = (struct lb_others){.processors = to->processors, .span_ns = to->at_ns - from->at_ns};
    if (to->periods > from->periods && to->throttled > from->throttled)
        out->throttled = fmin(1, (double)(to->throttled - from->throttled) / (double)(to->periods - from->periods));
    if (!from->known || !to->known) {
        UNKNOWN(out, "%s", from->known ? to->why : from->why);
        return;
    }
    if (from->processors != to->processors) {
        UNKNOWN(out, "the set of processors that this process may use has changed");
        return;
    }
    /* each processor's clock has an independent error of at most one step */
    if (span <= 0 || sqrt((double)to->processors) * (double)to->step_ns > LEAST_SHARE_OF_STEPS * span) {
        UNKNOWN(out, "%.3g s is too short for clocks with a resolution of %.3g ms", span / 1e9,
                (double)to->step_ns / 1e6);
        return;
    }
    if (fabs(clocks - all) > 0.2 * all + 2 * steps) {
        UNKNOWN(out, "/proc/stat is not reliable: its clocks advanced by %.3g s per processor in %.3g s",
                clocks / 1e9 / to->processors, span / 1e9);
        return;
    }
    if (busy < 0.85 * own - 2 * steps) {
        UNKNOWN(out, "this process used %.3g s of CPU time, but /proc/stat counts only %.3g s in total", own / 1e9,
                busy / 1e9);
        return;
    }
    out->known = true;
    out->used = fmin(to->processors, fmax(0, busy - own) / span);
    if (quota > 0 && quota < to->processors)
        out->used = fmax(0, out->used - (to->processors - quota));
    /* the sum does not include threads that have ended, so it may decrease */
    out->queued =
        from->queued_ns < 0 || to->queued_ns < from->queued_ns ? -1 : (double)(to->queued_ns - from->queued_ns) / span;
}

void lb_quiet_of(const struct lb_others *each, int count, struct lb_quiet *out)
{
    double span = 0;

    *out = (struct lb_quiet){.known = count > 0, .repeats = count, .why = "nothing was measured"};
    for (int i = 0; i < count; i++) {
        const struct lb_others *one = &each[i];
        out->processors = one->processors;
        if (!one->known) {
            out->known = false;
            memcpy(out->why, one->why, sizeof out->why);
            continue;
        }
        span += (double)one->span_ns;
        out->used += one->used * (double)one->span_ns;
        out->loud += one->used > LB_QUIET;
        out->most = fmax(out->most, one->used);
    }
    out->used = span > 0 ? out->used / span : 0;
}
