/* loadbench_place.h: storage and GPU: the file system of the data, the GPU and its link. Unknown facts are "" or -1. */
#ifndef LOADBENCH_PLACE_H
#define LOADBENCH_PLACE_H

#include <stdint.h>

struct lb_place {
    char type[32], source[128], mount[256]; /* of the file system: "ext4", "/dev/nvme0n1p2", "/data" */
};

/* `mountinfo`: "/proc/self/mountinfo"; another one in tests. */
void lb_place_read(const char *path, const char *mountinfo, struct lb_place *out);

struct lb_gpu {
    char model[128], bus[32];
    char link_speed[48]; /* "16.0 GT/s PCIe", the current speed; an idle GPU may have reduced it */
    int link_width;      /* lanes; -1: unknown */
    int64_t memory_bytes;
    int driver_version, runtime_version; /* 13000 is 13.0; 0: none */
};

/* `device`: "cuda:0"; `sys`: "/sys". A device of the host has an empty bus. */
void lb_gpu_read(const char *device, const char *sys, struct lb_gpu *out);

#endif
