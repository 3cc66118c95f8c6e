/* count_pool.h: threads that count the rows of batches, one batch per thread, each with its own tallies. Rows that are
 * stored in a mapped file in their final form need no batch: they are counted in place, and the file is checked for
 * changes afterwards. Not thread-safe. */
#ifndef STKI_COUNT_POOL_H
#define STKI_COUNT_POOL_H

#include "slot.h"
#include "stats_options.h"

typedef struct stki_count_field {
    const char *name;
    stki_stats_opts opts;
    const stki_node *node; /* node of the options */
    const stki_field_plan *plan;
    stki_tally_form form;
} stki_count_field;

typedef struct stki_count_pool stki_count_pool;

/* threads 0: the calling thread counts; depth: number of batches queued in addition to those being counted. The fields
 * are borrowed. */
stk_status stki_count_pool_create(const stki_count_field *fields, int field_count, int threads, int depth,
                                  stki_count_pool **out, stk_error *err);
void stki_count_pool_destroy(stki_count_pool *pool); /* accepts NULL; pending batches are released */
/* Takes ownership of the batch, which is released when it has been counted. Blocks while the queue is full. */
stk_status stki_count_pool_push(stki_count_pool *pool, stk_batch *batch, stk_error *err);
/* Returns whether rows of the field can be counted in place, because the loader would not change them. */
bool stki_count_pool_may_map(const stki_count_field *field);
/* Counts samples [first, first + rows) in place, like a batch. All fields must allow it. */
stk_status stki_count_pool_push_rows(stki_count_pool *pool, int64_t first, int64_t rows, stk_error *err);
/* Waits for all batches, adds their tallies to `total`, one per field, and resets. */
stk_status stki_count_pool_take(stki_count_pool *pool, stki_tally *const *total, stk_error *err);

#endif
