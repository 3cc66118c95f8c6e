/* loadbench_histogram.h: waiting times in bins that a plot can show. */
#ifndef LOADBENCH_HISTOGRAM_H
#define LOADBENCH_HISTOGRAM_H

#include "histogram.h"
#include <jansson.h>

enum { LB_BINS_PER_DECADE = 10 };

/* {"up_to_us": [...], "call_count": [...]}: how many values lie above the end before and not above this one. Ten bins
 * in every power of ten, from the first that holds a value to the last. NULL: no memory. */
json_t *lb_histogram_json(const stki_histogram *histogram);

#endif
