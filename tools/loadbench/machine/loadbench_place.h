/* loadbench_place.h: the file system of the data, and the GPU and its PCIe link. Unknown properties are "" or -1. */
#ifndef LOADBENCH_PLACE_H
#define LOADBENCH_PLACE_H

#include <stdint.h>

struct lb_place {
    char type[32], source[128], mount[256]; /* such as "ext4", "/dev/nvme0n1p2", "/data" */
};

/* `mountinfo` is "/proc/self/mountinfo", except in tests. */
void lb_place_read(const char *path, const char *mountinfo, struct lb_place *out);

struct lb_gpu {
    char model[128], bus[32];
    char link_speed[48]; /* "16.0 GT/s PCIe", the current speed; an idle GPU may have reduced it */
    int link_width;      /* lanes; -1: unknown */
    int64_t memory_bytes;
    int driver_version, runtime_version; /* 13000 is 13.0; 0: none */
};

/* `device`: a device name such as "cuda:0". `sys` is "/sys", except in tests. `bus` is empty for a device that is not a
 * GPU. */
void lb_gpu_read(const char *device, const char *sys, struct lb_gpu *out);

#endif
