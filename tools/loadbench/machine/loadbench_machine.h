/* loadbench_machine.h: properties of the machine on which a result was measured. */
#ifndef LOADBENCH_MACHINE_H
#define LOADBENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

struct lb_machine {
    char cpu[96], kernel[128], architecture[32];
    char huge_pages[16]; /* transparent huge pages: "always", "madvise", "never" or "unknown" */
    int64_t cores_allowed, cores_online;
    double cpu_quota;     /* processors allowed by the control group; 0: no limit */
    int64_t memory_limit; /* bytes allowed by the control group; -1: no limit, or unknown */
    int64_t memory_bytes, memory_available_bytes;
    int64_t cache_bytes; /* size of the last-level cache; 0: unknown */
};

void lb_machine_read(struct lb_machine *out);

/* The cost of reading the clock, and its resolution. */
struct lb_timer {
    double overhead_ns;
    int64_t resolution_ns;
};
struct lb_timer lb_timer_measure(void);

/* Resources used by the process so far. */
struct lb_usage {
    int64_t user_ns, system_ns;
    int64_t voluntary_switches, involuntary_switches; /* context switches of blocked threads; of preempted threads */
    int64_t minor_faults, major_faults;               /* page faults served from memory; from a device */
    int64_t disk_bytes;                               /* bytes read from devices for this process; -1: unknown */
    int64_t allocations;                              /* allocations by the library and this program */
};

/* If `on`, lb_usage_read and lb_load_read also count the CPU time of this process's descendants, including those that
 * have ended. Used for sources with worker processes. Global; off by default. */
void lb_count_children(bool on);
int64_t lb_children_ns(void); /* 0 if off */
void lb_usage_read(struct lb_usage *out);
int64_t lb_timeval_ns(struct timeval value);
/* Returns the usage since `before`. */
struct lb_usage lb_usage_since(const struct lb_usage *now, const struct lb_usage *before);

struct lb_memory {
    int64_t peak_bytes;      /* resident, mapped file pages included (VmHWM); -1: unknown */
    int64_t anonymous_bytes; /* resident now, without file pages; -1: unknown */
    int64_t file_bytes;      /* resident pages of mapped files, shared with the page cache; -1: unknown */
};

/* Resets the peak, if the kernel allows it. */
void lb_memory_reset_peak(void);
void lb_memory_read(struct lb_memory *out);
/* Size of the last-level cache; 0: unknown. */
int64_t lb_cache_bytes(void);
/* Memory that can be allocated now without swapping, within the limits of the control groups. */
int64_t lb_memory_available(void);

#endif
