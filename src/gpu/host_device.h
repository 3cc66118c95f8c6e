/* host_device.h: the host device: ordinary memory behind streams that are threads. It does what a GPU does, in the
 * order a GPU does it, so that code for devices runs, and is raced under ThreadSanitizer, where there is none. "host"
 * is the first of eight, "host:1" to "host:7" the others: programs for several devices can be tested too.
 *
 * Its kernels are the twins of a GPU's (kernel_twin.h), those of conversions and copies where STOKER_HOST_KERNELS=twin
 * asks for them; without it these run by the library's own code, which is much faster and gives the same bits.
 *
 * Tests slow it down and make it fail. Hold a stream where the order of things matters; a delay is for the look of a
 * slow bus.
 */
#ifndef STKI_HOST_DEVICE_H
#define STKI_HOST_DEVICE_H

#include "device_table.h"

extern const stki_device_provider stki_host_provider;

enum { STKI_HOST_DEVICES = 8 };
#define STKI_HOST_HOLD INT64_MAX

/* What is done to operations: copies, fills, conversions and kernels; waits for events and time stamps are none. */
typedef struct stki_host_faults {
    int64_t delay_ns;         /* before each operation; STKI_HOST_HOLD: until the faults are set again */
    int64_t delay_ns_per_mib; /* and for each MiB that it moves */
    int64_t fail_at;          /* the n-th operation from now fails, once (1 is the next); 0: none */
} stki_host_faults;

/* For one stream, or (`stream` NULL) for all streams of the device, those to come too, and the operations without a
 * stream, which ignore a hold; `fail_at` then counts the operations of all of them. NULL: no faults. A delay that runs
 * takes the new value at once. */
void stki_host_set_faults(stk_device *device, stk_stream *stream, const stki_host_faults *faults);

#endif
