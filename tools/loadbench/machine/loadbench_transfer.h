/* loadbench_transfer.h: --transfer=DEVICE: what copies to a device cost by size, from pinned and from pageable memory,
 * beside one pass of the device over as many bytes; and the largest batch that a step of a given time hides. */
#ifndef LOADBENCH_TRANSFER_H
#define LOADBENCH_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/device.h>

/* STK_E_RESOURCE: the measuring process was killed. STK_E_CONFIG, STK_E_DEVICE: there is no such device, or it is one
 * that nothing is copied to. STK_E_CLOSED: a signal came before there was anything to print; later, what there is is
 * printed. */
stk_status lb_transfer(const char *device, bool json, FILE *to, stk_error *err);

/* A copy of n bytes takes about fixed_ns + n * ns_per_byte: a line through the smallest and the largest size. */
struct lb_transfer_line {
    double fixed_ns, ns_per_byte;
};

#endif
