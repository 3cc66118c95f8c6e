/* loadbench_limit.h: what this machine's memory gives a plain copy, with as many threads as the loader has workers.
 * Three measures: memcpy, a large block after another; gather, rows of the loader's own sample size into a target as
 * large as the loader's slots; and write, a large block that is only written. The first two count the bytes read and
 * the bytes written, so a copied byte counts twice. */
#ifndef LOADBENCH_LIMIT_H
#define LOADBENCH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

struct lb_limit_ask {
    int threads;
    int64_t row_bytes;  /* of a sample in its file */
    int64_t row_count;  /* samples there are */
    int64_t slot_bytes; /* of all slots together */
    bool random;        /* rows at random places; else one after the other */
    const char *path;   /* the rows' file: they come from its mapping if half of it is in memory; NULL: none */
    int64_t time_ns;    /* of one measurement; there are up to eight */
    int64_t
        block_bytes; /* of memory for memcpy, and for rows that don't come from a file; 0: four times the last cache */
};

struct lb_limit_rate {
    double bytes_per_s; /* read + written; of `write` written */
    const char *way;    /* the best one: "plain", "streaming", "plain, prefetched", … Static */
};

struct lb_limit {
    struct lb_limit_rate memcpy, gather, write;
    int threads;
    int64_t row_bytes, source_bytes, target_bytes; /* of the gather */
    bool random, from_file;
};

/* STK_E_MEMORY: no room for the blocks. STK_END: a signal asked to stop (loadbench_stop.h). */
stk_status lb_limit_measure(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *err);

#endif
