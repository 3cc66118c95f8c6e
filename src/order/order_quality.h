/* order_quality.h: measures how well an order mixes.
 *
 * Assume that the samples are sorted by class, with STKI_QUALITY_CLASSES classes of equal size (or one class per
 * sample, if there are fewer samples). The quality is the mean number of distinct classes in a global batch, divided by
 * that number for a full shuffle. An order with quality 1 mixes as well as `random`; with quality 1/32, a batch has one
 * class for every 32 in a batch of a full shuffle. The mean is over whole batches spread evenly over epoch 0. The value
 * for the full shuffle is exact: C (1 - prod (n - n/C - i) / (n - i)) for i < B, the probability that at least one of B
 * draws without replacement hits a class, summed over C classes. */
#ifndef STKI_ORDER_QUALITY_H
#define STKI_ORDER_QUALITY_H

#include "order.h"

enum { STKI_QUALITY_CLASSES = 1000 };

typedef struct stki_order_quality {
    double classes, shuffled; /* distinct classes per batch; the same for a full shuffle */
    double quality;           /* classes / shuffled */
    int64_t batch;            /* rows per measured batch: the global batch, at most 4096 */
} stki_order_quality;

/* Returns false if there is nothing to measure. */
bool stki_order_measure(const stki_order *order, int64_t samples, int64_t batch, stki_order_quality *out);

#endif
