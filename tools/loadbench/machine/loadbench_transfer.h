/* loadbench_transfer.h: --transfer=DEVICE measures how long copies to a device take by size, from pinned and from
 * pageable memory. It compares them with the time the device needs to read and write the same number of bytes in its
 * own memory, and computes the largest batch whose copy is hidden by a step of a given duration. */
#ifndef LOADBENCH_TRANSFER_H
#define LOADBENCH_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/device.h>

/* STK_E_CONFIG, STK_E_DEVICE: the device does not exist, or is the CPU, which needs no copies. STK_E_CLOSED:
 * interrupted before two sizes were measured; after that, an interruption ends the measurement and the sizes measured
 * so far are printed. */
stk_status lb_transfer(const char *device, bool json, FILE *to, stk_error *err);

/* A copy of n bytes takes about fixed_ns + n * ns_per_byte: a line through the smallest and the largest size. */
struct lb_transfer_line {
    double fixed_ns, ns_per_byte;
};

#endif
