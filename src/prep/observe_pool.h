/* observe_pool.h: the threads that let observers see rows. What an observer sees of one batch is seen by one thread,
 * from the first row to the last; batches go in and come out in order, and are merged in that order by the caller's
 * thread. So what comes out does not depend on the number of threads. All calls from one thread.
 */
#ifndef STKI_OBSERVE_POOL_H
#define STKI_OBSERVE_POOL_H

#include "observe.h"
#include "row_feed.h"

typedef struct stki_observe_pool stki_observe_pool;

typedef struct stki_observe_opts {
    stki_observer *const *observers;
    int observer_count;
    const stki_field_plan *const *plans; /* of the observers' fields, by observer */
    int threads;                         /* 0: the caller's */
    int depth;                           /* batches on their way */
    int64_t most_rows;                   /* of a batch */
} stki_observe_opts;

/* What opts point to is borrowed. */
stk_status stki_observe_create(const stki_observe_opts *opts, stki_observe_pool **out, stk_error *err);
void stki_observe_destroy(stki_observe_pool *pool); /* NULL is fine */
bool stki_observe_has_room(const stki_observe_pool *pool);
/* Rows kept[0 … count) of run.first on; copied. The batch must stay until it comes back from stki_observe_next. */
void stki_observe_push(stki_observe_pool *pool, const stki_run_of_rows *run, const int64_t *kept, int64_t count);
/* Waits for the oldest batch, merges what was seen of it into `seen` (one an observer, NULL: begins there) and says
 * which it was. STK_END: there is none. */
stk_status stki_observe_next(stki_observe_pool *pool, stki_seen **seen, stki_held **held, stk_error *err);

#endif
