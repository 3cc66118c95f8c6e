/* loadbench_histogram.h: wait times binned for plots. */
#ifndef LOADBENCH_HISTOGRAM_H
#define LOADBENCH_HISTOGRAM_H

#include "histogram.h"
#include <jansson.h>

enum { LB_BINS_PER_DECADE = 10 };

/* {"up_to_us": [...], "call_count": [...]}: number of values in (previous end, this end]. Ten bins per decade, from the
 * first nonempty to the last. NULL: out of memory. */
json_t *lb_histogram_json(const stki_histogram *histogram);

#endif
