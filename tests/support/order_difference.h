/* order_difference.h: the name of the first part in which the fingerprints of two orders differ; NULL if they are
 * equal. */
#ifndef STKT_ORDER_DIFFERENCE_H
#define STKT_ORDER_DIFFERENCE_H

#include "order.h"

static inline const char *stkt_order_difference(const stki_order_print *a, const stki_order_print *b)
{
    return a->version != b->version   ? "version of the order"
           : a->kind != b->kind       ? "order"
           : a->seed != b->seed       ? "seed"
           : a->samples != b->samples ? "number of samples"
           : a->subset != b->subset   ? "subset"
           : a->weights != b->weights ? "weights"
           : a->blocks != b->blocks   ? "blocks of samples"
           : a->buckets != b->buckets ? "buckets"
           : a->data != b->data       ? "windows of tokens"
           : a->length != b->length   ? "length of an epoch"
           : a->whole != b->whole     ? "order"
                                      : NULL;
}

#endif
