/* loadbench_transfer.h: --transfer=DEVICE: the time of copies to a device by size, from pinned and pageable memory,
 * compared with a pass of the device over the same number of bytes, and the largest batch whose copy is hidden by a
 * step of a given duration. */
#ifndef LOADBENCH_TRANSFER_H
#define LOADBENCH_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/device.h>

/* STK_E_CONFIG, STK_E_DEVICE: no such device, or one to which nothing is copied. STK_E_CLOSED: interrupted before there
 * was anything to print; later, available results are printed. */
stk_status lb_transfer(const char *device, bool json, FILE *to, stk_error *err);

/* A copy of n bytes takes about fixed_ns + n * ns_per_byte: a line through the smallest and the largest size. */
struct lb_transfer_line {
    double fixed_ns, ns_per_byte;
};

#endif
