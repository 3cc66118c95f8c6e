/* kernel_twin.h: the kernels of a GPU on the processor: the same source, with loops over blocks and threads in place of
 * the hardware. The tests compare it with the library's own code, and the host device runs it as its kernels, so that
 * all but the launch itself is proven where there is no GPU. All addresses are ordinary memory.
 */
#ifndef STKI_KERNEL_TWIN_H
#define STKI_KERNEL_TWIN_H

#include "kernel_launch.h"

/* Done when it returns; on the calling thread, under the default floating-point control. */
void stki_kernel_twin_run(const stki_launch *launch);

#endif
