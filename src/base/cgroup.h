/* cgroup.h: the CPU and memory limits that control groups (versions 1 and 2) impose on this process: those of its own
 * group and of all ancestors. `membership` is /proc/self/cgroup and `mount` is /sys/fs/cgroup, except in tests. Values
 * that cannot be read impose no limit. */
#ifndef STKI_CGROUP_H
#define STKI_CGROUP_H

#include <stdint.h>

#define STKI_CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define STKI_CGROUP_MOUNT "/sys/fs/cgroup"

typedef struct stki_cgroup_cpu {
    double quota; /* in processors, the minimum over all groups; 0: unlimited */
    /* Of the group with that quota, since its creation: periods in which its processes ran, periods in which they
     * exhausted the quota, and the total time for which they were throttled. */
    int64_t periods, throttled, throttled_ns;
} stki_cgroup_cpu;

void stki_cgroup_cpu_read(const char *membership, const char *mount, stki_cgroup_cpu *out);
double stki_cgroup_cpu_quota(const char *membership, const char *mount);

typedef struct stki_cgroup_memory {
    int64_t limit; /* the minimum over all groups; -1: none */
    /* The minimum over all groups of limit minus usage. The group with this minimum need not be the one with the
     * smallest limit. Clean page cache counts as free, because the kernel drops it under memory pressure. -1: no
     * limit. */
    int64_t free;
} stki_cgroup_memory;

void stki_cgroup_memory_read(const char *membership, const char *mount, stki_cgroup_memory *out);

#endif
