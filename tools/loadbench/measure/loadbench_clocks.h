/* loadbench_clocks.h: the loader's counters over a measured span. */
#ifndef LOADBENCH_CLOCKS_H
#define LOADBENCH_CLOCKS_H

#include <stoker/loader.h>

/* Counters become what was added since `before`. */
void lb_stats_since(stk_loader_stats *stats, const stk_loader_stats *before);
/* The times of a span of elapsed_ns are cut to what fits: together the workers' time, the consumer's wait to its own.
 */
void lb_stats_fit(stk_loader_stats *stats, int64_t elapsed_ns);

#endif
