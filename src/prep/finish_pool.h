/* finish_pool.h: rows of batches, encoded and then seen by observers on one thread pool, and given back in the order in
 * which the batches came.
 *
 *     push --> [ batch | batch | ... ] --> pop --> the sink --> release
 *                 rows are encoded, then each observer sees them all; oldest batch first; pop helps
 *
 * Several batches are on their way at once (`depth`, the popped one counted), so that the threads have rows while the
 * caller writes what came out before them. What one observer sees of a batch is seen by one thread, from the first row
 * to the last. So what comes out does not depend on the number of threads. Once the memory of finished rows has grown
 * to what batches need, encoding allocates nothing.
 *
 * push, pop, release and destroy are for one thread; the pool's own threads are called stoker-finish.
 */
#ifndef STKI_FINISH_POOL_H
#define STKI_FINISH_POOL_H

#include "observe.h"

typedef struct stki_finish_pool stki_finish_pool;

typedef struct stki_finish_field {
    const stki_finisher *finisher; /* NULL: rows are lent to the sink as they are */
    stki_sink_field in;            /* what the loader's rows are */
} stki_finish_field;

/* The file that a sample of a field is in, for messages; perhaps in `buffer`, of STKI_RECORD_PATH bytes. NULL: not
 * known. Any thread. */
typedef const char *stki_finish_path(void *context, int field, int64_t sample, char *buffer);

typedef struct stki_finish_pool_opts {
    const stki_finish_field *fields; /* the finishers stay the caller's, and must stay */
    int field_count;
    int64_t max_rows;                /* of a batch */
    stki_observer *const *observers; /* of rows as they came in, of those that did not fail; they stay the caller's */
    int observer_count;
    int threads;               /* beside the caller's; none are started where there is nothing to finish or observe */
    int depth;                 /* batches; 0: 3 */
    stki_finish_path *path_of; /* NULL: no files are known */
    void *context;
} stki_finish_pool_opts;

stk_status stki_finish_pool_create(const stki_finish_pool_opts *opts, stki_finish_pool **out, stk_error *err);
/* Also with batches on their way; their leases are the caller's to end. NULL is fine. */
void stki_finish_pool_destroy(stki_finish_pool *pool);

/* Where the rows of one field lie in a batch. */
typedef struct stki_finish_source {
    const char *bytes;      /* of row 0 */
    int64_t step;           /* bytes from one row to the next; with offsets: of one element of their count */
    const int64_t *offsets; /* rows + 1: where each row begins, in elements; NULL: all rows have the field's shape */
    const int64_t *shapes;  /* rows x the field's axes; NULL: as the field says, axis 0 as the offsets say */
} stki_finish_source;

typedef struct stki_finish_batch {
    int64_t rows;
    const stki_finish_source *sources; /* one a field; copied, what they point to is borrowed until release */
    const int64_t *positions;          /* of each row in the job's order; NULL: first_position and on */
    int64_t first_position;
    const int64_t *samples; /* of each row; NULL: as the positions */
    void *lease;            /* comes back with the batch */
} stki_finish_batch;

typedef struct stki_finish_failure {
    int64_t row, sample; /* in its batch; in its data set */
    int field;
    stk_error error; /* names file (where known), record and field */
} stki_finish_failure;

typedef struct stki_finished {
    int64_t rows;                  /* that are good, in order */
    const stki_sink_value *values; /* [rows][fields] */
    const int64_t *kept;           /* which rows of the batch they are */
    int64_t failed;                /* the others */
    stki_finish_failure *failures; /* by row */
    void *lease;
} stki_finished;

/* True: another batch can be pushed. */
bool stki_finish_pool_has_room(const stki_finish_pool *pool);
/* STK_E_BUSY: there is no room, or the pool has failed and pop says why. STK_E_RANGE: more rows than announced. */
stk_status stki_finish_pool_push(stki_finish_pool *pool, const stki_finish_batch *batch, stk_error *err);
/* The oldest batch, good until release. Works on rows itself while there are some. STK_AGAIN: not finished at the
 * deadline. STK_END: nothing was pushed. STK_E_MEMORY: the pool is then good for destroy alone. */
stk_status stki_finish_pool_pop(stki_finish_pool *pool, int64_t deadline_ns, stki_finished *out, stk_error *err);
/* Adds what the observers saw of the popped batch to `seen`, one an observer (NULL: it begins there). Once a batch, in
 * their order. */
stk_status stki_finish_pool_seen(stki_finish_pool *pool, stki_seen **seen, stk_error *err);
/* Ends what the last pop gave. The batch's own memory may be used for another from then on. */
void stki_finish_pool_release(stki_finish_pool *pool);

#endif
