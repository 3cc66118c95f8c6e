/* loadbench_limit_read.h: measures plain reads of the same files, with as many threads as the loader has workers: from
 * the page cache and from the device. */
#ifndef LOADBENCH_LIMIT_READ_H
#define LOADBENCH_LIMIT_READ_H

#include "loadbench_cache.h"

struct lb_read_limit {
    double cached_bytes_per_s, cold_bytes_per_s; /* 0: not measured */
    int64_t cold_bytes;                          /* bytes read to measure cold_bytes_per_s */
    int threads;
    char cached_missing[256], cold_missing[320]; /* reasons if not measured */
};

/* Reads from the page cache for time_ns, and from the device for five times as long, in blocks of LB_READ_BLOCK bytes
 * in the order of the files. Each smaller file is opened and read whole, as by a loader of many files. The page cache
 * is not changed. */
enum { LB_READ_BLOCK = 1 << 20 };
stk_status lb_read_limit_measure(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                                 stk_error *err);

#endif
