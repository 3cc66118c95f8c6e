/* thread_pool.h: a thread pool that gives its tasks back in the order in which they were submitted.
 *
 *     submit --> [ task | task | ... ] --> next
 *                  threads claim parts, of the oldest task first; next runs parts too while it waits
 *
 * A task is a number of parts that may run at the same time, on any thread. When all of them have run, `done` may give
 * it further parts (its next phase) or end it. Up to `depth` tasks are submitted and not yet taken by next.
 *
 * The first error counts, in the order of tasks, then of parts, whichever thread ran into it first: parts are claimed
 * in that order, so all before a failed one run to their end. Those behind it are not started.
 *
 * submit, next and destroy are for one thread, the caller's.
 */
#ifndef STKI_THREAD_POOL_H
#define STKI_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_thread_pool stki_thread_pool;

/* Runs one part. `worker`: 0 to threads - 1 for the pool's threads, `threads` for the caller's; no two parts run with
 * the same number at the same time. */
typedef stk_status stki_thread_pool_part(void *context, void *task, int64_t part, int worker, stk_error *err);

typedef struct stki_thread_pool_opts {
    const char *name;      /* of the threads; 15 bytes are kept */
    int threads;           /* beside the caller's; 0: the caller runs everything, in next */
    int depth;             /* tasks that are submitted and not yet taken; at least 1 */
    bool caller_runs_none; /* next only waits, where there are threads */
    stki_thread_pool_part *run;
    /* All parts of the task have run: how many its next phase has; 0: none. Runs on the thread that ran the last part
     * (for a task without parts on the caller's, in submit). Not called for a task that failed. NULL: there is one
     * phase. */
    int64_t (*done)(void *context, void *task);
    void *context;
} stki_thread_pool_opts;

stk_status stki_thread_pool_create(const stki_thread_pool_opts *opts, stki_thread_pool **out, stk_error *err);
/* Waits for the parts that are running and starts no others. The tasks that were not taken remain the caller's. NULL is
 * fine. */
void stki_thread_pool_destroy(stki_thread_pool *pool);

/* False: `depth` tasks are submitted and not yet taken, or one of them has failed: call next. */
bool stki_thread_pool_has_room(stki_thread_pool *pool);
/* STK_E_BUSY: `depth` tasks are submitted and not yet taken. A task that is submitted behind one that has failed is not
 * run, and next returns the error for it. Once all are taken, submit returns the error of the first failure. */
stk_status stki_thread_pool_submit(stki_thread_pool *pool, void *task, int64_t parts, stk_error *err);
/* The oldest task. Runs parts, of later tasks too, until it has ended. STK_AGAIN: it has not at the deadline (at least
 * one part ran, if there was one to run). STK_END: there is none. Otherwise *task is set; the status is the task's:
 * STK_OK, or from the one that failed on the error of that one, and then parts of *task may not have run. */
stk_status stki_thread_pool_next(stki_thread_pool *pool, int64_t deadline_ns, void **task, stk_error *err);

typedef struct stki_thread_pool_stats {
    int64_t busy_ns; /* running parts, all threads together, the caller's share included */
    int64_t idle_ns; /* the pool's threads: no parts to run */
    int64_t wait_ns; /* next: others were running the last parts */
} stki_thread_pool_stats;

/* Any thread. */
void stki_thread_pool_read_stats(const stki_thread_pool *pool, stki_thread_pool_stats *out);

/* Runs parts 0 to `parts` - 1 on the caller's thread and up to `threads` others, and returns when all have run. If
 * fewer threads can be started, those do it. `task` is passed to `run` as NULL. Returns the error of the first part
 * that failed. */
stk_status stki_thread_pool_run(const char *name, int threads, int64_t parts, stki_thread_pool_part *run, void *context,
                                stk_error *err);

#endif
