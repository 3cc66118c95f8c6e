/* histogram.h: a log-linear histogram of non-negative integers (nanoseconds): 128 linear steps in every power of two,
 * so a value is off by less than 1 %. Fixed size, no allocation, mergeable by adding. One writer at a time; a reader
 * may look on meanwhile and sees each counter whole. */
#ifndef STKI_HISTOGRAM_H
#define STKI_HISTOGRAM_H

#include "counter.h"

enum {
    STKI_HISTOGRAM_STEPS = 128,
    STKI_HISTOGRAM_BUCKETS = 128 * 41
}; /* up to 2^47 ns, 39 hours; above: the last bucket */

typedef struct stki_histogram {
    stki_counter buckets[STKI_HISTOGRAM_BUCKETS];
    stki_counter count, sum, min, max; /* min is INT64_MAX while empty: use stki_histogram_init */
} stki_histogram;

void stki_histogram_init(stki_histogram *histogram);
void stki_histogram_add(stki_histogram *histogram, int64_t value);
void stki_histogram_merge(stki_histogram *into, const stki_histogram *from);
/* The smallest recorded value that at least `fraction` (0 to 1) of all values do not exceed, within 1 %; 0 while empty.
 */
int64_t stki_histogram_quantile(const stki_histogram *histogram, double fraction);

#endif
