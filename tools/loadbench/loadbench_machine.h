/* loadbench_machine.h: the machine a result was measured on. */
#ifndef LOADBENCH_MACHINE_H
#define LOADBENCH_MACHINE_H

#include <stdint.h>

struct lb_machine {
    char cpu[96], kernel[128], architecture[32];
    char huge_pages[16]; /* transparent ones: "always", "madvise", "never" or "unknown" */
    int64_t cores_allowed, cores_online;
    int64_t memory_bytes, memory_available_bytes;
    int64_t cache_bytes; /* of the last level; 0: unknown */
};

void lb_machine_read(struct lb_machine *out);

/* What the process has used so far. */
struct lb_usage {
    int64_t user_ns, system_ns;
    int64_t disk_bytes; /* read from devices on behalf of this process; -1: unknown */
};

void lb_usage_read(struct lb_usage *out);

struct lb_memory {
    int64_t peak_bytes;      /* resident, mapped file pages included (VmHWM); -1: unknown */
    int64_t anonymous_bytes; /* resident now, without file pages; -1: unknown */
    int64_t file_bytes;      /* resident pages of mapped files, shared with the page cache; -1: unknown */
};

/* Starts the peak anew, where the kernel allows it. */
void lb_memory_reset_peak(void);
void lb_memory_read(struct lb_memory *out);
/* Of the last level of caches; 0: unknown. */
int64_t lb_cache_bytes(void);
/* What could be allocated now without swapping. */
int64_t lb_memory_available(void);

#endif
