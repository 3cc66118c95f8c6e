/* row_feed.h: the rows of a job in the order of their positions, out of the loader's batches: from any position on, in
 * blocks that end where the caller says. One thread. */
#ifndef STKI_ROW_FEED_H
#define STKI_ROW_FEED_H

#include "core.h"
#include "finish.h"

/* A sample that is left out of the output. */
typedef struct stki_skipped {
    int64_t position, sample;
    stk_error error;
} stki_skipped;

typedef struct stki_skipped_list {
    stki_skipped *items;
    int64_t count, room;
    bool failed; /* one could not be remembered */
} stki_skipped_list;

void stki_skipped_fini(stki_skipped_list *list);

/* A batch that blocks hold. */
typedef struct stki_held {
    stk_batch *batch;
    int uses;
} stki_held;

typedef struct stki_row_feed {
    stk_loader *loader;
    stki_core *core;
    int64_t batch_rows, positions;
    int64_t at;                 /* the next position */
    bool seeks;                 /* the loader stands elsewhere */
    stki_held *current;         /* the batch that `at` is in, or NULL */
    int64_t row;                /* of it, the next one */
    stki_skipped_list left_out; /* of delivered batches, not yet handed out */
    stki_held *held;            /* a pool of them */
    int held_count;
    int64_t wait_ns;
    const volatile _Atomic bool *cancelled;
    void (*tick)(void *context); /* called now and then while waiting */
    void *tick_context;
} stki_row_feed;

/* `most` batches may be held at once. The loader is borrowed. */
stk_status stki_row_feed_init(stki_row_feed *rows, stk_loader *loader, int most, stk_error *err);
void stki_row_feed_fini(stki_row_feed *rows);
/* The hook of the loader's config; its context is the rows. */
void stki_row_feed_left_out(void *context, int64_t position, int64_t sample, const stk_error *error);

void stki_row_feed_seek(stki_row_feed *rows, int64_t position);

/* Rows [first, first + count) of a batch, which stays until stki_row_feed_done; perhaps none. */
typedef struct stki_run_of_rows {
    stki_held *held;
    int64_t first, count;
    int64_t from, end; /* positions that it covers, those of left out samples too */
} stki_run_of_rows;

/* The next rows below position `end` > at. What was left out among them is appended to `left_out`. STK_E_CANCELLED. */
stk_status stki_row_feed_next(stki_row_feed *rows, int64_t end, stki_run_of_rows *out, stki_skipped_list *left_out,
                              stk_error *err);
/* Batches that are held now. */
int stki_row_feed_held(const stki_row_feed *rows);
void stki_row_feed_done(stki_row_feed *rows, stki_held *held);

#endif
