/* stats_tally.h: the statistics of one field: what its rows come to, in parts that merge. The same bits come out
 * however rows are shared among threads, tasks and runs, as long as blocks stay whole: a block is `block_rows` rows
 * that follow each other by position from a multiple of it (fewer at the end, and where rows were left out), seen by
 * one call of stki_tally_block. Everything else about it is order-free: counts, and sums without rounding
 * (exact_sum.h).
 *
 * Inside a block the elements of a channel stand in a row, row after row in C order, and are cut into runs of STKI_RUN.
 * Floats of 8 and 16 bits, and whole numbers of as many, are counted by value; their moments follow from the counts at
 * the end. A tally is for one thread at a time; a form never changes.
 */
#ifndef STKI_STATS_TALLY_H
#define STKI_STATS_TALLY_H

#include "stats_counts.h"
#include "stats_moments.h"
#include "stats_values.h"
#include <jansson.h>

/* What the rows of a field are, and what is wanted of them. */
typedef struct stki_tally_form {
    stk_dtype dtype;
    /* A row is [outer, channels, inner]; `outer` of rows that differ in length is each row's own. One channel: they are
     * taken together. */
    int64_t outer, channels, inner;
    bool ragged;        /* rows differ along outer; lengths are counted too */
    bool opaque;        /* files: only their lengths are counted */
    bool counts;        /* values are counted in bins (those of 8 and 16 bits always are) */
    bool classes;       /* each value is counted */
    int64_t most_bytes; /* of all bins of a tally */
    int64_t block_rows;
} stki_tally_form;

typedef struct stki_tally {
    int64_t rows;
    stki_moments *moments; /* one a channel; NULL where all follows from counts */
    stki_counts counts;
    stki_values values;
    stki_moments lengths; /* of rows: whole numbers */
    stki_counts length_counts;
    /* kept from call to call */
    const stki_stats_loops *loops;
    stki_run_room *room;
    char *gathered; /* a run of one channel */
} stki_tally;

/* Fills in block_rows from the rest: so many rows that a run is full, where rows are small. `largest`: elements of the
 * longest row, where they differ; 0: not known. */
void stki_tally_form_blocks(stki_tally_form *form, int64_t largest);
/* STK_E_UNSUPPORTED: complex numbers; classes of what are no whole numbers. */
stk_status stki_tally_form_check(const stki_tally_form *form, const char *field, stk_error *err);

stk_status stki_tally_create(const stki_tally_form *form, enum stki_isa isa, stki_tally **out, stk_error *err);
void stki_tally_destroy(stki_tally *tally); /* NULL is fine */
/* A block, or a part of one that begins and ends with runs; its rows one behind the other at `data`, `elements` in all.
 * Rows that differ: `lengths` has the length of each along outer. */
stk_status stki_tally_block(stki_tally *tally, const stki_tally_form *form, const void *data, int64_t rows,
                            int64_t elements, stk_error *err);
stk_status stki_tally_length(stki_tally *tally, int64_t length, stk_error *err);
stk_status stki_tally_merge(stki_tally *into, const stki_tally_form *form, const stki_tally *from, stk_error *err);

/* A channel, or (-1) all together. */
stk_status stki_tally_numbers(const stki_tally *tally, const stki_tally_form *form, int64_t channel, stki_numbers *out,
                              stk_error *err);

/* stats_save.c: a tally as bytes (stki_free), and back. Equal tallies give equal bytes. STK_E_CORRUPT: not such bytes,
 * or of another form. */
stk_status stki_tally_save(stki_tally *tally, const stki_tally_form *form, char **out, int64_t *size, stk_error *err);
stk_status stki_tally_load(const stki_tally_form *form, const void *bytes, int64_t size, stki_tally **out,
                           stk_error *err);

#endif
