/* order_print.h: computes the fingerprint of an order for order.c; order.h defines it. */
#ifndef STKI_ORDER_PRINT_H
#define STKI_ORDER_PRINT_H

#include "order.h"

/* `opts` must have been checked. `length`: positions per epoch. */
void stki_order_print_make(const stki_order_opts *opts, int64_t length, stki_order_print *out);

/* XXH3-64 with a seed. */
uint64_t stki_order_hash(uint64_t seed, const void *bytes, int64_t count);

#endif
