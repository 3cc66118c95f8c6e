/* kernel_launch.h: one kernel launch as a value: the kernel, the number of blocks, and the arguments. kernel_plan.c
 * plans it; kernels_*.cu run it on a GPU and kernel_twin.c on the CPU. Except for the data and tables that its
 * arguments point to, it is self-contained, so it can be copied into a queue. */
#ifndef STKI_KERNEL_LAUNCH_H
#define STKI_KERNEL_LAUNCH_H

#include "kernel_binary.h"
#include "kernel_map.h"
#include "kernel_pixels.h"
#include "kernel_runs.h"
#include "kernel_sum.h"

enum stki_kernel {
    STKI_KERNEL_MAP_LINEAR,
    STKI_KERNEL_MAP_TILED,
    STKI_KERNEL_RUNS,
    STKI_KERNEL_PIXELS,
    STKI_KERNEL_BINARY_LINEAR,
    STKI_KERNEL_BINARY_RUNS,
    STKI_KERNEL_SUM_ROWS,
    STKI_KERNEL_SUM_CELLS,
    STKI_KERNEL_SUM_FINISH,
    STKI_KERNELS
};

typedef struct stki_launch {
    enum stki_kernel kernel;
    int64_t moved_bytes; /* bytes read and written, approximately */
    uint32_t blocks;     /* number of blocks, of STKI_BLOCK_THREADS threads each; 0: nothing to do */
    /* the template arguments of the kernel */
    int32_t map_kind;             /* maps: enum stki_map_kind */
    int32_t dst_dtype, src_dtype; /* runs, pixels; binary runs: dst_dtype */
    int32_t pattern;              /* runs: pairs repeat along the row */
    int32_t raw, step, mirrored;  /* pixels */
    union {
        stki_map_args map;
        stki_runs_args runs;
        stki_pixels_args pixels;
        stki_binary_args binary;
        stki_sum_args sum;
    } args;
} stki_launch;

#endif
