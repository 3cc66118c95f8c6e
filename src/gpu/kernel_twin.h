/* kernel_twin.h: runs the GPU kernels on the CPU: the same source, with loops over blocks and threads instead of the
 * hardware. The tests compare the twin's results with the library's own code. The host device runs its kernels through
 * the twin, so everything but the launch itself is tested without a GPU. All addresses are in host memory. */
#ifndef STKI_KERNEL_TWIN_H
#define STKI_KERNEL_TWIN_H

#include "kernel_launch.h"

/* Runs on the calling thread, with the default floating-point control, and is complete when it returns. */
void stki_kernel_twin_run(const stki_launch *launch);

#endif
