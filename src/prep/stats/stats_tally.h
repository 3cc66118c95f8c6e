/* stats_tally.h: the statistics of one field, computed in parts that can be merged. The result is bit-identical for any
 * division of rows among threads, tasks and runs, provided that blocks are not divided: a block is `block_rows`
 * consecutive rows starting at a multiple of it (fewer at the end, and if rows were skipped), processed by one call to
 * stki_tally_block. Everything else is independent of the order: counts, and sums without rounding (exact_sum.h).
 *
 * Inside a block the elements of a channel, row after row in C order, are divided into runs of STKI_RUN. 8-bit and
 * 16-bit floats and integers are counted by value; their moments are computed from the counts at the end. A tally may
 * be used by only one thread at a time; a form is immutable. */
#ifndef STKI_STATS_TALLY_H
#define STKI_STATS_TALLY_H

#include "stats_counts.h"
#include "stats_moments.h"
#include "stats_values.h"
#include <jansson.h>

/* Describes a field's rows and the requested statistics. */
typedef struct stki_tally_form {
    stk_dtype dtype;
    /* A row is [outer, channels, inner]; if lengths vary, `outer` differs per row. One channel: all channels are
     * combined. */
    int64_t outer, channels, inner;
    bool ragged;        /* rows vary along outer; lengths are counted too */
    bool opaque;        /* rows are files: only their lengths are counted */
    bool counts;        /* values are counted in bins (always for 8 and 16 bits) */
    bool classes;       /* each distinct value is counted */
    int64_t most_bytes; /* limit on all bins of a tally */
    int64_t block_rows;
} stki_tally_form;

typedef struct stki_tally {
    int64_t rows;
    stki_moments *moments; /* one per channel; NULL if computed from counts */
    stki_counts counts;
    stki_values values;
    stki_moments lengths; /* lengths of rows, as integers */
    stki_counts length_counts;
    /* reused between calls */
    const stki_stats_loops *loops;
    stki_run_room *room;
    char *gathered; /* buffer for a run of one channel */
} stki_tally;

/* Sets block_rows from the other members, so that small rows fill a run. `largest`: elements of the longest row if rows
 * vary; 0: unknown. */
void stki_tally_form_blocks(stki_tally_form *form, int64_t largest);
/* STK_E_UNSUPPORTED: complex numbers; classes of anything but integers. */
stk_status stki_tally_form_check(const stki_tally_form *form, const char *field, stk_error *err);

stk_status stki_tally_create(const stki_tally_form *form, enum stki_isa isa, stki_tally **out, stk_error *err);
void stki_tally_destroy(stki_tally *tally); /* NULL is allowed */
/* Adds a block, or a part of one that starts and ends at run boundaries; its rows are contiguous at `data`, with
 * `elements` in total. */
stk_status stki_tally_block(stki_tally *tally, const stki_tally_form *form, const void *data, int64_t rows,
                            int64_t elements, stk_error *err);
stk_status stki_tally_length(stki_tally *tally, int64_t length, stk_error *err);
stk_status stki_tally_merge(stki_tally *into, const stki_tally_form *form, const stki_tally *from, stk_error *err);

/* Computes the results of a channel, or of all channels together (-1). */
stk_status stki_tally_numbers(const stki_tally *tally, const stki_tally_form *form, int64_t channel, stki_numbers *out,
                              stk_error *err);

/* stats_save.c: converts a tally to bytes (freed with stki_free) and back. Equal tallies give equal bytes.
 * STK_E_CORRUPT: the bytes are invalid, or of another form. */
stk_status stki_tally_save(stki_tally *tally, const stki_tally_form *form, char **out, int64_t *size, stk_error *err);
stk_status stki_tally_load(const stki_tally_form *form, const void *bytes, int64_t size, stki_tally **out,
                           stk_error *err);

#endif
