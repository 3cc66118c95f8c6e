/* row_feed.h: delivers the rows of a job, in the order of their positions, from the loader's batches. It can start at
 * any position, and the caller determines where each run of rows ends. Not thread-safe. */
#ifndef STKI_ROW_FEED_H
#define STKI_ROW_FEED_H

#include "core.h"
#include "finish.h"

/* A sample that is skipped in the output. */
typedef struct stki_skipped {
    int64_t position, sample;
    stk_error error;
} stki_skipped;

typedef struct stki_skipped_list {
    stki_skipped *items;
    int64_t count, room;
    bool failed; /* memory was exhausted: a sample is missing */
} stki_skipped_list;

void stki_skipped_fini(stki_skipped_list *list);

/* A batch and the number of runs of rows that use it. */
typedef struct stki_held {
    stk_batch *batch;
    int uses;
} stki_held;

typedef struct stki_row_feed {
    stk_loader *loader;
    stki_core *core;
    int64_t batch_rows, positions;
    int64_t at;                 /* the next position */
    bool started;               /* the loader's workers have been started */
    bool seeks;                 /* the loader must seek first */
    stki_held *current;         /* the batch that contains `at`, or NULL */
    int64_t row;                /* its next row */
    stki_skipped_list left_out; /* skipped samples of delivered batches, not yet returned */
    stki_held *held;            /* batches in use and free ones */
    int held_count;
    int64_t wait_ns;
    const volatile _Atomic bool *cancelled;
    void (*tick)(void *context); /* called at intervals while waiting */
    void *tick_context;
} stki_row_feed;

/* `most`: maximum number of batches held. The loader is borrowed; its workers are started when the first row is
 * requested. */
stk_status stki_row_feed_init(stki_row_feed *rows, stk_loader *loader, int most, stk_error *err);
void stki_row_feed_fini(stki_row_feed *rows);
/* The callback for the loader's config; `context` is the stki_row_feed. */
void stki_row_feed_left_out(void *context, int64_t position, int64_t sample, const stk_error *error);

void stki_row_feed_seek(stki_row_feed *rows, int64_t position);

/* Rows [first, first + count) of a batch, valid until stki_row_feed_done; may be empty. */
typedef struct stki_run_of_rows {
    stki_held *held;
    int64_t first, count;
    int64_t from, end; /* covered positions, including skipped samples */
} stki_run_of_rows;

/* Returns the next rows before position `end` > at, and appends the skipped samples among them to `left_out`.
 * STK_E_CANCELLED. */
stk_status stki_row_feed_next(stki_row_feed *rows, int64_t end, stki_run_of_rows *out, stki_skipped_list *left_out,
                              stk_error *err);
/* Returns the number of batches held. */
int stki_row_feed_held(const stki_row_feed *rows);
void stki_row_feed_done(stki_row_feed *rows, stki_held *held);

#endif
