/* histogram.c: see histogram.h. Bucket i < 128 holds the value i. Each power of two from 128 on has 128 buckets,
 * indexed by the seven bits after the leading one, so the width of a bucket is at most 1/128 of its values. */
#include "histogram.h"

/* There is only one writer, so a load and a store are enough; they are cheaper than an atomic addition. */
static void add(stki_counter *counter, int64_t by)
{
    stki_count_set(counter, stki_counted(counter) + by);
}

static int bucket_of(int64_t value)
{
    int exponent, bucket;

    if (value < STKI_HISTOGRAM_STEPS)
        return (int)value;
    exponent = 63 - __builtin_clzll((unsigned long long)value);
    bucket = (exponent - 6) * STKI_HISTOGRAM_STEPS + (int)((value >> (exponent - 7)) & (STKI_HISTOGRAM_STEPS - 1));
    return bucket < STKI_HISTOGRAM_BUCKETS ? bucket : STKI_HISTOGRAM_BUCKETS - 1;
}

/* The middle of a bucket's values. */
static int64_t value_of(int bucket)
{
    int run = bucket / STKI_HISTOGRAM_STEPS, step = bucket % STKI_HISTOGRAM_STEPS;

    if (run == 0)
        return step;
    return ((int64_t)(STKI_HISTOGRAM_STEPS + step) << (run - 1)) + (((int64_t)1 << (run - 1)) - 1) / 2;
}

void stki_histogram_init(stki_histogram *histogram)
{
    int i;

    for (i = 0; i < STKI_HISTOGRAM_BUCKETS; i++)
        stki_count_set(&histogram->buckets[i], 0);
    stki_count_set(&histogram->count, 0);
    stki_count_set(&histogram->sum, 0);
    stki_count_set(&histogram->min, INT64_MAX);
    stki_count_set(&histogram->max, 0);
}

void stki_histogram_add(stki_histogram *histogram, int64_t value)
{
    if (value < 0)
        value = 0;
    add(&histogram->buckets[bucket_of(value)], 1);
    add(&histogram->sum, value);
    if (value < stki_counted(&histogram->min))
        stki_count_set(&histogram->min, value);
    if (value > stki_counted(&histogram->max))
        stki_count_set(&histogram->max, value);
    add(&histogram->count, 1);
}

void stki_histogram_merge(stki_histogram *into, const stki_histogram *from)
{
    int64_t min = stki_counted(&from->min), max = stki_counted(&from->max);
    int i;

    for (i = 0; i < STKI_HISTOGRAM_BUCKETS; i++) {
        int64_t count = stki_counted(&from->buckets[i]);

        if (count)
            add(&into->buckets[i], count);
    }
    add(&into->sum, stki_counted(&from->sum));
    if (min < stki_counted(&into->min))
        stki_count_set(&into->min, min);
    if (max > stki_counted(&into->max))
        stki_count_set(&into->max, max);
    add(&into->count, stki_counted(&from->count));
}

/* The bucket that holds the `rank`-th smallest value, counted from 1. */
static int bucket_at(const stki_histogram *histogram, int64_t rank)
{
    int64_t below = 0;
    int i;

    for (i = 0; i < STKI_HISTOGRAM_BUCKETS - 1; i++) {
        below += stki_counted(&histogram->buckets[i]);
        if (below >= rank)
            break;
    }
    return i;
}

/* The smallest rank that covers `fraction` of `total` values. NaN and fractions outside [0, 1] are clamped. */
static int64_t rank_of(double fraction, int64_t total)
{
    int64_t rank;

    if (!(fraction > 0))
        return 1;
    if (fraction >= 1)
        return total;
    rank = (int64_t)(fraction * (double)total);
    rank += (double)rank < fraction * (double)total;
    return rank < 1 ? 1 : rank;
}

int64_t stki_histogram_quantile(const stki_histogram *histogram, double fraction)
{
    int64_t total = 0, value, min = stki_counted(&histogram->min), max = stki_counted(&histogram->max);
    int i;

    for (i = 0; i < STKI_HISTOGRAM_BUCKETS; i++) /* not `count`, which the writer updates after the bucket */
        total += stki_counted(&histogram->buckets[i]);
    if (total == 0)
        return 0;
    i = bucket_at(histogram, rank_of(fraction, total));
    value = i == STKI_HISTOGRAM_BUCKETS - 1 ? max : value_of(i);
    return value < min ? min : value > max ? max : value;
}
