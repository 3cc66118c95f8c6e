/* finish_pool.h: encodes the rows of batches and passes them to observers, on one thread pool, and returns the batches
 * in order.
 *
 *     push --> [ batch | batch | ... ] --> pop --> the sink --> release
 *                 rows are encoded, then passed to each observer; oldest batch first; pop helps
 *
 * Several batches are in flight (`depth`, including the popped one), so that the threads have work while the caller
 * writes earlier ones. An observer processes a batch in one thread, from the first row to the last, so its result does
 * not depend on the number of threads. Once the memory for encoded rows has grown to the size of the batches, encoding
 * allocates nothing.
 *
 * push, pop, release and destroy must be called from one thread; the pool's threads are named stoker-finish.
 */
#ifndef STKI_FINISH_POOL_H
#define STKI_FINISH_POOL_H

#include "observe.h"

typedef struct stki_finish_pool stki_finish_pool;

typedef struct stki_finish_field {
    const stki_finisher *finisher; /* NULL: rows are passed to the sink without a copy */
    stki_sink_field in;            /* describes the loader's rows */
} stki_finish_field;

/* Returns the path of a sample's file, for messages; it may be stored in `buffer` (STKI_RECORD_PATH bytes). NULL:
 * unknown. Thread-safe. */
typedef const char *stki_finish_path(void *context, int field, int64_t sample, char *buffer);

typedef struct stki_finish_pool_opts {
    const stki_finish_field *fields; /* borrowed, including the finishers */
    int field_count;
    int64_t max_rows;                /* maximum number of rows in a batch */
    stki_observer *const *observers; /* receive the original rows that did not fail; borrowed */
    int observer_count;
    int threads; /* number of threads in addition to the caller; none are started if there is nothing to do */
    int depth;   /* batches in flight; 0: 3 */
    stki_finish_path *path_of;   /* NULL: files are unknown */
    const stki_sink_ops *format; /* rows that it cannot store fail; NULL: not checked */
    stki_sink_opts sink;         /* with `format`: as in its check */
    void *context;
} stki_finish_pool_opts;

stk_status stki_finish_pool_create(const stki_finish_pool_opts *opts, stki_finish_pool **out, stk_error *err);
/* May be called with batches in flight, whose leases the caller ends. NULL is allowed. */
void stki_finish_pool_destroy(stki_finish_pool *pool);

/* The location of a field's rows in a batch. */
typedef struct stki_finish_source {
    const char *bytes;      /* address of row 0 */
    int64_t step;           /* bytes between rows; with offsets: bytes per counted element */
    const int64_t *offsets; /* rows + 1 offsets of rows in elements; NULL: all rows have the field's shape */
    const int64_t *shapes;  /* rows x axes; NULL: the field's shape, with axis 0 from the offsets */
} stki_finish_source;

typedef struct stki_finish_batch {
    int64_t rows;
    const stki_finish_source *sources; /* one per field; copied, but their data is borrowed until release */
    const int64_t *positions; /* position of each row in the job's order; NULL: consecutive from first_position */
    int64_t first_position;
    const int64_t *samples; /* sample of each row; NULL: equal to the positions */
    void *lease;            /* returned with the batch */
} stki_finish_batch;

typedef struct stki_finish_failure {
    int64_t row, sample; /* row in its batch; sample in its data set */
    int field;
    stk_error error; /* names file (if known), record and field */
} stki_finish_failure;

typedef struct stki_finished {
    int64_t rows;                  /* rows that did not fail, in order */
    const stki_sink_value *values; /* [rows][fields] */
    const int64_t *kept;           /* their numbers in the batch */
    int64_t failed;                /* number of failed rows */
    stki_finish_failure *failures; /* by row */
    void *lease;
} stki_finished;

/* Returns whether another batch can be pushed. */
bool stki_finish_pool_has_room(const stki_finish_pool *pool);
/* STK_E_BUSY: the pool is full, or has failed with an error that pop returns. STK_E_RANGE: more rows than max_rows. */
stk_status stki_finish_pool_push(stki_finish_pool *pool, const stki_finish_batch *batch, stk_error *err);
/* Returns the oldest batch, which is valid until release. Until it is finished, the calling thread helps to process
 * rows. STK_AGAIN: not finished at the deadline. STK_END: nothing was pushed. STK_E_MEMORY: from
 * then on, the pool can only be destroyed. */
stk_status stki_finish_pool_pop(stki_finish_pool *pool, int64_t deadline_ns, stki_finished *out, stk_error *err);
/* Merges the observations of the popped batch into `seen`, one per observer (initially NULL). To be called once per
 * batch, in order. */
stk_status stki_finish_pool_seen(stki_finish_pool *pool, stki_seen **seen, stk_error *err);
/* Releases the popped batch, whose memory may then be reused. */
void stki_finish_pool_release(stki_finish_pool *pool);

#endif
