/* finish_rows.h: one batch's rows and what they become; the part of the pool (finish_pool.c) that knows no threads. A
 * slot is filled by the caller, worked on by any number of workers at once (each on other rows, with memory of its
 * own), and given back by the caller when all rows are done.
 */
#ifndef STKI_FINISH_ROWS_H
#define STKI_FINISH_ROWS_H

#include "allocate.h"
#include "finish_pool.h"
#include "thread.h"

typedef struct stki_finish_slot {
    stki_finish_batch batch;
    stki_finish_source *sources; /* one a field */
    int64_t claimed, done;       /* rows; guarded by the pool's lock */
    /* By row and field. Workers write those of their own rows. */
    stki_sink_value *values;
    int64_t *at; /* where its bytes begin in its worker's memory; -1: they are borrowed */
    int *worker; /* by row */
    uint8_t *bad;
    int64_t *kept;
    stki_bytes *memory; /* one a worker; it moves as it grows, so pointers are made at the end */
    int64_t failed, failure_room;
    stki_finish_failure *failures; /* guarded by lock until all rows are done */
    stki_mutex lock;
    bool has_lock;
} stki_finish_slot;

typedef struct stki_finish_rows {
    int field_count, worker_count;
    stki_finish_field *fields;
    int64_t max_rows;
    void **scratch; /* by worker and field */
    stki_finish_path *path_of;
    void *context;
    stki_counter busy_ns, bytes_in, bytes_out, memory_bytes;
} stki_finish_rows;

stk_status stki_finish_rows_init(stki_finish_rows *work, const stki_finish_pool_opts *opts, int worker_count,
                                 stk_error *err);
void stki_finish_rows_fini(stki_finish_rows *work); /* fine on a zeroed one */

stk_status stki_finish_slot_init(stki_finish_slot *slot, const stki_finish_rows *work, stk_error *err);
void stki_finish_slot_fini(stki_finish_slot *slot, const stki_finish_rows *work);
void stki_finish_slot_fill(stki_finish_slot *slot, const stki_finish_rows *work, const stki_finish_batch *batch);
/* STK_E_MEMORY alone is a failure of the run; those of single rows are noted in the slot. */
stk_status stki_finish_rows_run(stki_finish_rows *work, stki_finish_slot *slot, int worker, int64_t first,
                                int64_t rows);
void stki_finish_slot_give(stki_finish_slot *slot, const stki_finish_rows *work, stki_finished *out);
/* The message of the failure that ended the run. */
stk_status stki_finish_slot_fatal(const stki_finish_slot *slot, stk_status status, stk_error *err);
void stki_finish_rows_stats(const stki_finish_rows *work, stki_finish_stats *out);

#endif
