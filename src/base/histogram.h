/* histogram.h: a log-linear histogram of non-negative integers (nanoseconds): 128 linear steps per power of two, so
 * values are accurate to 1 %. Fixed size, no allocation, merged by addition. One writer at a time; a concurrent reader
 * sees no torn counters, but counters may be from different moments. */
#ifndef STKI_HISTOGRAM_H
#define STKI_HISTOGRAM_H

#include "counter.h"

enum {
    STKI_HISTOGRAM_STEPS = 128,
    STKI_HISTOGRAM_BUCKETS = 128 * 41
}; /* values up to 2^47 ns, 39 hours; larger ones are counted in the last bucket */

typedef struct stki_histogram {
    stki_counter buckets[STKI_HISTOGRAM_BUCKETS];
    stki_counter count, sum, min, max; /* min is INT64_MAX while empty: call stki_histogram_init */
} stki_histogram;

void stki_histogram_init(stki_histogram *histogram);
void stki_histogram_add(stki_histogram *histogram, int64_t value);
void stki_histogram_merge(stki_histogram *into, const stki_histogram *from);
/* The smallest recorded value that at least `fraction` (0 to 1) of all values do not exceed, within 1 %; 0 if empty. */
int64_t stki_histogram_quantile(const stki_histogram *histogram, double fraction);

#endif
