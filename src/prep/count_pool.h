/* count_pool.h: threads that count the rows of batches: each batch is one thread's, which has tallies of its own. Rows
 * that lie in a mapped file as they are to be counted need no batch: they are counted where they lie, and the file is
 * asked afterwards whether it still is what was opened. All calls from one thread. */
#ifndef STKI_COUNT_POOL_H
#define STKI_COUNT_POOL_H

#include "slot.h"
#include "stats_options.h"

/* A field that is counted. */
typedef struct stki_count_field {
    const char *name;
    stki_stats_opts opts;
    const stki_node *node; /* where they stand */
    const stki_field_plan *plan;
    stki_tally_form form;
} stki_count_field;

typedef struct stki_count_pool stki_count_pool;

/* threads 0: the caller's; depth: batches that wait beside those that are counted. The fields are borrowed. */
stk_status stki_count_pool_create(const stki_count_field *fields, int field_count, int threads, int depth,
                                  stki_count_pool **out, stk_error *err);
void stki_count_pool_destroy(stki_count_pool *pool); /* NULL is fine; batches on their way are released */
/* Takes the batch over; it is released when it has been counted. Waits for room. */
stk_status stki_count_pool_push(stki_count_pool *pool, stk_batch *batch, stk_error *err);
/* May rows of the field be counted where they lie? Then sample i is what the loader would make of it. */
bool stki_count_pool_may_map(const stki_count_field *field);
/* Samples [first, first + rows) of fields that all may be mapped, as if they were a batch. */
stk_status stki_count_pool_push_rows(stki_count_pool *pool, int64_t first, int64_t rows, stk_error *err);
/* Waits for all batches; then adds what was counted to `total`, one tally per field, and starts over. */
stk_status stki_count_pool_take(stki_count_pool *pool, stki_tally *const *total, stk_error *err);

#endif
