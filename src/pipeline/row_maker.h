/* row_maker.h: how rows are made of samples. Each plan has one of the makers that row_makers.c lists:
 *
 *     make_converted.c  views of samples that have one shape, in one call of a kernel for many rows
 *     make_images.c     images that go through a worker's memory: resized, or in shapes of their own
 *     make_copied.c     samples of varying length
 *     make_one_hot.c    labels
 *     make_mixed.c      two rows in one, and the labels that go with them
 *     make_window.c     several samples in one row
 *
 * The workers call makers by tile (fill.c), and for single rows that are made again for a substitute (fill_failed.c). A
 * maker that fails fails its row and goes on.
 */
#ifndef STKI_ROW_MAKER_H
#define STKI_ROW_MAKER_H

#include "core.h"

/* Whose sample, and where its row goes. */
typedef struct stki_making_of {
    int64_t index;
    stki_occasion occasion;
    void *to;
    int64_t row; /* of the batch */
} stki_making_of;

typedef struct stki_row_maker stki_row_maker;
struct stki_row_maker {
    bool (*takes)(const stki_field_plan *plan); /* the first in the list that does makes the plan's rows, */
    bool wraps;                                 /* this one of what the next one makes, plan->under */
    bool pairs;                                 /* each row may take a part of its partner */
    const char *no_job;                         /* why a preparation job cannot have such rows; NULL: it can */
    const char *pass;                           /* for explain: another pass over the bytes; NULL: none */
    void (*explain)(const stki_field_plan *plan, FILE *to); /* lines about it; NULL: none */
    /* The length of a row of varying length; -1: the row has failed. NULL where rows have none. */
    int64_t (*measure)(stki_worker *worker, const stki_field_plan *plan, int64_t row);
    /* Makes rows of [row, last) from `row` on and returns how many, at least one. NULL: one at a time, by `make`. */
    int64_t (*fill)(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last);
    /* One row; errors name file and record. */
    stk_status (*make)(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err);
    /* Part `part` of `parts` of one. NULL: a row is made in one go. */
    stk_status (*make_part)(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, int64_t part,
                            int64_t parts, stk_error *err);
    /* What a row shows of its sample; `own` is for one that is drawn. NULL: rows are no views of samples. */
    stk_status (*placing)(const stki_field_plan *plan, const stki_occasion *occasion, stki_placing *own,
                          const stki_placing **out, stk_error *err);
};

extern const stki_row_maker stki_make_plain, stki_make_placed, stki_make_erased; /* make_converted.c */
extern const stki_row_maker stki_make_resampled, stki_make_image;                /* make_images.c */
extern const stki_row_maker stki_make_copied, stki_make_one_hot, stki_make_window;
extern const stki_row_maker stki_make_mixed, stki_make_paired; /* make_mixed.c */

/* row_makers.c: sets the maker of a plan that is linked, and of the plans in it. */
void stki_row_makers_set(stki_field_plan *plan);

/* ---- row_maker.c: what they have in common ---- */

/* Rows [first, last) of the field. */
void stki_make_rows(stki_worker *worker, const stki_field_plan *plan, int64_t first, int64_t last);
/* Part `part` of `parts` of a row. */
void stki_make_part(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t part, int64_t parts);
/* One row by itself, for a sample that takes the place of another: all its fields; its length in one of them. */
void stki_make_again(stki_worker *worker, int64_t row);
int64_t stki_measure_again(stki_worker *worker, const stki_field_plan *plan, int64_t row);

static inline stki_occasion stki_occasion_of(const stk_batch *batch, int64_t row)
{
    return (stki_occasion){batch->draw_key, batch->positions[row].draw};
}

/* For reports of stalls. `now`: stki_now_ns() or stki_coarse_ns(). */
void stki_worker_does(stki_worker *worker, enum stki_stage stage, const char *path, int64_t record, int64_t now);

/* Converts mapped samples, from this one of the field on. */
void stki_worker_does_mapped(stki_worker *worker, const stki_field *field, int64_t index, int64_t now);

/* A sample while its row is made. */
typedef struct stki_reading {
    int shard_number;
    const stki_reader *shard;
    int64_t within, began;
    stki_paging paging;
    stk_tensor sample;
} stki_reading;

/* Finds the sample; the clock of reading starts. */
void stki_reading_begin(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stki_reading *r);
/* Reads it; the clock of converting starts if that went well. `status`: of what came between. */
stk_status stki_reading_read(stki_worker *worker, stki_reading *r, const stki_want *want, stk_status status,
                             stk_error *err);
/* The row is made. */
void stki_reading_end(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stki_reading *r);

/* A row has failed by reading: if the file has changed meanwhile, that is the error. */
void stki_read_fails(stki_worker *worker, const stki_reader *shard, int64_t within, int64_t row, stk_error *error);
/* A conversion began at `began` and has ended. What it waited for pages of mapped files counts as reading. */
void stki_count_convert(stki_worker *worker, const stki_paging *paging, int64_t began);

#endif
