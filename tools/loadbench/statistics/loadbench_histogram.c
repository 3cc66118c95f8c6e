/* loadbench_histogram.c: see loadbench_histogram.h. stki_histogram only provides quantiles, so the bins are computed
 * from its buckets, whose bounds are those of histogram.h. */
#include "loadbench_histogram.h"
#include <math.h>

enum { MOST_BINS = 14 * LB_BINS_PER_DECADE };

/* The smallest value of a bucket: 128 linear steps per power of two from 128; below that, one bucket per value. */
static double bucket_start(int bucket)
{
    const int power = bucket / STKI_HISTOGRAM_STEPS, step = bucket % STKI_HISTOGRAM_STEPS;
    return power == 0 ? step : ldexp(STKI_HISTOGRAM_STEPS + step, power - 1);
}

static int bin_of(double ns)
{
    const int bin = ns < 1 ? 0 : (int)ceil(LB_BINS_PER_DECADE * log10(ns) - 1e-9);
    return bin < MOST_BINS ? bin : MOST_BINS - 1;
}

json_t *lb_histogram_json(const stki_histogram *histogram)
{
    int64_t counts[MOST_BINS] = {0};
    int first = MOST_BINS, last = -1;
    json_t *ends = json_array(), *calls = json_array();

    for (int i = 0; i < STKI_HISTOGRAM_BUCKETS; i++)
        counts[bin_of(bucket_start(i))] += stki_counted(&histogram->buckets[i]);
    for (int i = 0; i < MOST_BINS; i++)
        if (counts[i] > 0) {
            first = i < first ? i : first;
            last = i;
        }
    for (int i = first; i <= last; i++) {
        json_array_append_new(ends, json_real(pow(10, (double)i / LB_BINS_PER_DECADE) / 1e3));
        json_array_append_new(calls, json_integer(counts[i]));
    }
    return json_pack("{s:o, s:o}", "up_to_us", ends, "call_count", calls);
}
