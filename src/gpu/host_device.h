/* host_device.h: the host device: ordinary memory behind streams that are threads. It does what a GPU does, in the
 * order a GPU does it, so that code for devices runs, and is raced under ThreadSanitizer, where there is none. "host"
 * is the first of eight, "host:1" to "host:7" the others: programs for several devices can be tested too.
 *
 * Its kernels are the twins of a GPU's (kernel_twin.h), those of conversions and copies where STOKER_HOST_KERNELS=twin
 * asks for them; without it these run by the library's own code, which is much faster and gives the same bits.
 */
#ifndef STKI_HOST_DEVICE_H
#define STKI_HOST_DEVICE_H

#include "device_table.h"

extern const stki_device_provider stki_host_provider;

enum { STKI_HOST_DEVICES = 8 };

#endif
