/* host_device.h: the host device: host memory with streams that are threads. It does what a GPU does, in the same
 * order, so that device code can be run, and checked with ThreadSanitizer, without a GPU. "host" is the first of eight;
 * "host:1" to "host:7" allow testing programs that use several devices. Its kernels are the GPU's, run on the CPU
 * (kernel_twin.h). Conversions and copies use them only with STOKER_HOST_KERNELS=twin; otherwise they use the library's
 * CPU code, which is much faster and produces bit-identical results. */
#ifndef STKI_HOST_DEVICE_H
#define STKI_HOST_DEVICE_H

#include "device_table.h"

extern const stki_device_provider stki_host_provider;

enum { STKI_HOST_DEVICES = 8 };

#endif
