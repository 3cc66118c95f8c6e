/* cgroup.h: how much of the processors the control group leaves to this process. */
#ifndef STKI_CGROUP_H
#define STKI_CGROUP_H

/* The smallest CPU quota, in processors, of the group that `membership` ("/proc/self/cgroup") names and of all groups
 * above it, under `mount` ("/sys/fs/cgroup"), versions 1 and 2; 0 if none is set or it can't be found out. */
double stki_cgroup_cpu_quota(const char *membership, const char *mount);

#endif
