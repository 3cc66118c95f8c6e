/* cgroup.h: how much of the machine the control groups leave to this process. A group limits it, and so do all groups
 * above that. `membership` is /proc/self/cgroup, `mount` is /sys/fs/cgroup, unless in tests; versions 1 and 2. What
 * cannot be found out sets no limit. */
#ifndef STKI_CGROUP_H
#define STKI_CGROUP_H

#include <stdint.h>

#define STKI_CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define STKI_CGROUP_MOUNT "/sys/fs/cgroup"

typedef struct stki_cgroup_cpu {
    double quota; /* processors, the smallest of all groups; 0: none */
    /* Of the group with that quota, since it was made: periods that its processes ran in, those in which they had used
     * their time before the end, and how long they then had to wait, all together. */
    int64_t periods, throttled, throttled_ns;
} stki_cgroup_cpu;

void stki_cgroup_cpu_read(const char *membership, const char *mount, stki_cgroup_cpu *out);
double stki_cgroup_cpu_quota(const char *membership, const char *mount);

typedef struct stki_cgroup_memory {
    int64_t limit; /* the smallest; -1: none */
    /* The least that a group leaves below its limit, which need not be the smallest one. Pages of files that need not
     * be written first are free: the system drops them when memory is wanted. -1: there is no limit. */
    int64_t free;
} stki_cgroup_memory;

void stki_cgroup_memory_read(const char *membership, const char *mount, stki_cgroup_memory *out);

#endif
