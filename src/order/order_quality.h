/* order_quality.h: how well an order mixes, as a number.
 *
 * Let the samples be sorted by class, STKI_QUALITY_CLASSES classes of equal size (as many as there are samples, where
 * there are fewer). The quality is the mean number of different classes in a global batch, over that under a full
 * shuffle: 1 mixes as well as `random`, 1/32 gives batches of one class where a shuffle would give 32. The mean is
 * taken over whole batches spread evenly over epoch 0. The full shuffle's is exact: C (1 - prod (n - n/C - i) / (n -
 * i)) for i < B, the chance that none of B draws without replacement hits a class, summed over C classes. */
#ifndef STKI_ORDER_QUALITY_H
#define STKI_ORDER_QUALITY_H

#include "order.h"

enum { STKI_QUALITY_CLASSES = 1000 };

typedef struct stki_order_quality {
    double classes, shuffled; /* in a batch; under a full shuffle */
    double quality;           /* classes / shuffled */
    int64_t batch;            /* rows looked at: the global batch, at most 4096 */
} stki_order_quality;

/* False: there is nothing to measure. */
bool stki_order_measure(const stki_order *order, int64_t samples, int64_t batch, stki_order_quality *out);

#endif
