/* finish_rows.h: one batch's rows and what they become; the part of the pool (finish_pool.c) that knows no threads. A
 * slot is filled by the caller, its rows are finished by any number of workers at once (each with memory of its own),
 * it is settled by one of them, seen by observers (any number at once), and taken by the caller. */
#ifndef STKI_FINISH_ROWS_H
#define STKI_FINISH_ROWS_H

#include "allocate.h"
#include "finish_pool.h"
#include "thread.h"

typedef struct stki_finish_slot {
    stki_finish_batch batch;
    stki_finish_source *sources; /* one a field */
    int64_t run_rows;            /* rows that are finished at a time */
    bool observing;              /* all rows are finished, and settled */
    /* By row and field. Workers write those of their own rows. */
    stki_sink_value *values;
    int64_t *at; /* where its bytes begin in its worker's memory; -1: they are borrowed */
    int *worker; /* by row */
    uint8_t *bad;
    stki_bytes *memory; /* one a worker; it moves as it grows, so pointers are made at the end */
    /* Made when it is settled: the rows that did not fail. */
    int64_t good, *kept;
    stki_seen **seen; /* of them, one an observer */

    stki_mutex lock; /* guards the rest while parts run */
    bool has_lock;
    int64_t failed, failure_room;
    stki_finish_failure *failures;
    int unseen; /* the first observer that failed, or observer_count */
    stk_error unseen_error;
} stki_finish_slot;

typedef struct stki_finish_rows {
    int field_count, worker_count, observer_count;
    bool finishes; /* some field has a finisher */
    stki_finish_field *fields;
    stki_observer *const *observers;
    int64_t max_rows;
    void **scratch; /* by worker and field */
    stki_finish_path *path_of;
    void *context;
} stki_finish_rows;

/* worker_count follows from what there is to do. */
stk_status stki_finish_rows_init(stki_finish_rows *work, const stki_finish_pool_opts *opts, stk_error *err);
void stki_finish_rows_fini(stki_finish_rows *work); /* fine on a zeroed one */

stk_status stki_finish_slot_init(stki_finish_slot *slot, const stki_finish_rows *work, stk_error *err);
void stki_finish_slot_fini(stki_finish_slot *slot, const stki_finish_rows *work);
void stki_finish_slot_fill(stki_finish_slot *slot, const stki_finish_rows *work, const stki_finish_batch *batch,
                           int64_t run_rows);
/* STK_E_MEMORY alone is a failure of the run; those of single rows are noted in the slot. */
stk_status stki_finish_rows_run(const stki_finish_rows *work, stki_finish_slot *slot, int worker, int64_t first,
                                int64_t rows, stk_error *err);
/* Once all rows are finished. */
void stki_finish_slot_settle(stki_finish_slot *slot, const stki_finish_rows *work);
/* Observer `number` sees the rows that did not fail. Its error is noted in the slot. */
void stki_finish_rows_observe(const stki_finish_rows *work, stki_finish_slot *slot, int number);
/* Adds what was seen to `seen`, one an observer; the error of the first observer that failed. */
stk_status stki_finish_slot_merge(stki_finish_slot *slot, const stki_finish_rows *work, stki_seen **seen,
                                  stk_error *err);
void stki_finish_slot_drop_seen(stki_finish_slot *slot, const stki_finish_rows *work);

#endif
