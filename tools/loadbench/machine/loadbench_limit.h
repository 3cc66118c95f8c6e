/* loadbench_limit.h: measures the memory bandwidth of plain copies, with as many threads as the loader has workers.
 * `memcpy` copies large consecutive blocks, `gather` copies rows of the loader's sample size to a target as large as
 * the loader's slots, and `write` only writes a large block. The first two count bytes read plus bytes written, so each
 * copied byte counts twice. */
#ifndef LOADBENCH_LIMIT_H
#define LOADBENCH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

struct lb_limit_ask {
    int threads;
    int64_t row_bytes;   /* size of a sample in its file */
    int64_t row_count;   /* number of samples */
    int64_t slot_bytes;  /* total size of all slots */
    bool random;         /* rows at random positions; false: sequential */
    const char *path;    /* file of the rows, whose mapping is used if half of it is resident; NULL: none */
    int64_t time_ns;     /* duration in ns of one measurement; there are up to eight */
    int64_t block_bytes; /* bytes for memcpy, and for rows not from a file; 0: much larger than the caches */
};

struct lb_limit_rate {
    double bytes_per_s; /* read + written; for `write`, written */
    const char *way;    /* the best method: "plain", "streaming", "plain, prefetched", … */
};

struct lb_limit {
    struct lb_limit_rate memcpy, gather, write;
    int threads;
    int64_t row_bytes, source_bytes, target_bytes; /* for `gather` */
    bool random, from_file;
};

/* STK_E_MEMORY: not enough memory for the blocks. STK_END: interrupted (loadbench_stop.h). */
stk_status lb_limit_measure(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *err);

#endif
