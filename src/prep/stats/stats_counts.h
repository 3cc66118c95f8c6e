/* stats_counts.h: how often values occur, in bins that need no range beforehand and merge exactly: the upper bits of
 * the value's own bits are its bin.
 *
 *     8 and 16 bits     every value has a bin of its own
 *     f32               sign, exponent and the first `bits` bits of the fraction
 *     f64               the same; whole numbers of 32 and 64 bits are counted as the f64 next to them
 *
 * With 10 bits a bin is at most 1/1024 of its values wide (f32), and whole numbers below 2048 are told apart. Bins lie
 * in pages that are made when a value falls into them: of f32, f64 and wide whole numbers a page is one sign and
 * exponent.
 */
#ifndef STKI_STATS_COUNTS_H
#define STKI_STATS_COUNTS_H

#include "stats_loops.h"

typedef struct stki_counts {
    stk_dtype dtype;
    bool exact;     /* every value has a bin of its own */
    int bits;       /* 2^bits bins in a page */
    int page_count; /* that there can be, of a channel */
    int64_t channels;
    int32_t *page_of; /* [channels][page_count]: where it lies in `bins`, plus 1; 0: not there yet */
    uint64_t *bins;
    int64_t pages, room, most_pages;
    int64_t hurry_in; /* elements until `flat` is made, plus 1; 0: it is not */
    uint64_t
        *flat; /* NULL, or between stki_counts_hurry and _settle: all bins there can be, [channels], not in pages */
} stki_counts;

/* A bin that holds something. */
typedef struct stki_bin {
    double low, high, middle; /* exact: all three are the value */
    uint64_t count;
} stki_bin;

/* Finite ones by rising value. */
typedef struct stki_bins {
    stki_bin *bin;
    int64_t count, total;
    int64_t nan, infinite[2]; /* negative, positive; floats of 8 and 16 bits alone: others are not counted if strange */
} stki_bins;

/* `most_bytes`: more are STK_E_LIMIT. */
stk_status stki_counts_init(stki_counts *counts, stk_dtype dtype, int64_t channels, int64_t most_bytes, stk_error *err);
void stki_counts_fini(stki_counts *counts);
/* At most STKI_COUNT_RUN adjacent elements. f32, f64: finite ones. */
stk_status stki_counts_add(stki_counts *counts, const stki_stats_loops *loops, int64_t channel, const void *x,
                           int64_t n, stk_error *err);
/* f32 of few channels: counts on in a table of all bins, which is nearly twice as quick, once `after` elements have
 * come, until _settle puts it into the pages; between the two nothing but _add may be called. Does nothing for others,
 * or where there is no memory. */
void stki_counts_hurry(stki_counts *counts, int64_t after);
stk_status stki_counts_settle(stki_counts *counts, stk_error *err);
stk_status stki_counts_merge(stki_counts *into, const stki_counts *from, stk_error *err);
/* A page's bins; made if they are not there yet. / NULL where they are not. */
stk_status stki_counts_page(stki_counts *counts, int64_t channel, int page, uint64_t **out, stk_error *err);
const uint64_t *stki_counts_look(const stki_counts *counts, int64_t channel, int page);

/* Of a channel, or (-1) of all together; stki_bins_fini. */
stk_status stki_counts_bins(const stki_counts *counts, int64_t channel, stki_bins *out, stk_error *err);
void stki_bins_fini(stki_bins *bins);

/* Is a value of this dtype its own bin? */
bool stki_counts_are_exact(stk_dtype dtype);

#endif
