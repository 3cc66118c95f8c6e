/* loadbench_limit_read.h: what plain reads of the same files give, with as many threads as the loader has workers: out
 * of the page cache, and from the device. */
#ifndef LOADBENCH_LIMIT_READ_H
#define LOADBENCH_LIMIT_READ_H

#include "loadbench_cache.h"

struct lb_read_limit {
    double cached_bytes_per_s, cold_bytes_per_s; /* 0: not measured */
    int64_t cold_bytes;                          /* that were read for it */
    int threads;
    char cached_missing[256], cold_missing[320]; /* why not */
};

/* The page cache for time_ns, the device for five times that. Blocks of LB_READ_BLOCK, in the order of the files; a
 * smaller file is opened and read whole, as a loader of many files has to. Neither changes what is in the page cache.
 */
enum { LB_READ_BLOCK = 1 << 20 };
stk_status lb_read_limit_measure(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                                 stk_error *err);

#endif
