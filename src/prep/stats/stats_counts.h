/* stats_counts.h: counts of values in bins that need no range in advance and merge exactly: a value's bin is given by
 * its upper bits.
 *
 *     8 and 16 bits     one bin per value
 *     f32               sign, exponent and the first `bits` bits of the fraction
 *     f64               the same; 32-bit and 64-bit integers are counted as the nearest f64
 *
 * With 10 bits the width of a bin is at most 1/1024 of its values (f32), and integers below 2048 have separate bins.
 * Bins are in pages, which are allocated on demand: for f32, f64 and wide integers a page is one sign and exponent.
 */
#ifndef STKI_STATS_COUNTS_H
#define STKI_STATS_COUNTS_H

#include "stats_loops.h"

typedef struct stki_counts {
    stk_dtype dtype;
    bool exact;     /* one bin per value */
    int bits;       /* 2^bits bins per page */
    int page_count; /* maximum number of pages per channel */
    int64_t channels;
    int32_t *page_of; /* [channels][page_count]: index in `bins` plus 1; 0: not allocated */
    uint64_t *bins;
    int64_t pages, room, most_pages;
    int64_t hurry_in; /* number of elements until `flat` is allocated, plus 1; 0: never */
    uint64_t *flat;   /* NULL, or between stki_counts_hurry and _settle: all possible bins, [channels], without pages */
} stki_counts;

/* A non-empty bin. */
typedef struct stki_bin {
    double low, high, middle; /* if exact, all three are the value */
    uint64_t count;
} stki_bin;

/* Bins of finite values in ascending order. */
typedef struct stki_bins {
    stki_bin *bin;
    int64_t count, total;
    int64_t nan,
        infinite[2]; /* negative, positive; only for 8-bit and 16-bit floats: others count only finite values */
} stki_bins;

/* STK_E_LIMIT: more than `most_bytes` are needed. */
stk_status stki_counts_init(stki_counts *counts, stk_dtype dtype, int64_t channels, int64_t most_bytes, stk_error *err);
void stki_counts_fini(stki_counts *counts);
/* Adds at most STKI_COUNT_RUN contiguous elements. f32, f64: must be finite. */
stk_status stki_counts_add(stki_counts *counts, const stki_stats_loops *loops, int64_t channel, const void *x,
                           int64_t n, stk_error *err);
/* For f32 with few channels: after `after` elements, counts in a table of all bins, which is nearly twice as fast,
 * until _settle moves the counts to pages; in between only _add may be called. Has no effect otherwise, or if memory is
 * exhausted. */
void stki_counts_hurry(stki_counts *counts, int64_t after);
stk_status stki_counts_settle(stki_counts *counts, stk_error *err);
stk_status stki_counts_merge(stki_counts *into, const stki_counts *from, stk_error *err);
/* Return the bins of a page. If they do not exist, the first function allocates them and the second returns NULL. */
stk_status stki_counts_page(stki_counts *counts, int64_t channel, int page, uint64_t **out, stk_error *err);
const uint64_t *stki_counts_look(const stki_counts *counts, int64_t channel, int page);

/* Returns the bins of a channel, or of all channels together (-1); free with stki_bins_fini. */
stk_status stki_counts_bins(const stki_counts *counts, int64_t channel, stki_bins *out, stk_error *err);
void stki_bins_fini(stki_bins *bins);

/* Returns whether this dtype has one bin per value. */
bool stki_counts_are_exact(stk_dtype dtype);

#endif
