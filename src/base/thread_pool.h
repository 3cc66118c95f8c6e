/* thread_pool.h: a thread pool that returns tasks in the order in which they were submitted.
 *
 *     submit --> [ task | task | ... ] --> next
 *                  threads claim parts of the oldest task first; next also runs parts while it waits
 *
 * A task consists of parts that may run concurrently on any thread. When all of them have run, `done` may add further
 * parts (the task's next phase) or end it. At most `depth` tasks are submitted and not yet taken by next.
 *
 * The error returned is the first one in the order of tasks, then of parts, regardless of which thread failed first:
 * parts are claimed in that order, so all parts before a failed one run to completion. Parts after it are not started.
 *
 * submit, next and destroy may be called by one thread only. */
#ifndef STKI_THREAD_POOL_H
#define STKI_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_thread_pool stki_thread_pool;

/* Runs one part. `worker`: 0 to threads - 1 for the pool's threads, `threads` for the caller; two parts that run at the
 * same time have different numbers. */
typedef stk_status stki_thread_pool_part(void *context, void *task, int64_t part, int worker, stk_error *err);

typedef struct stki_thread_pool_opts {
    const char *name;      /* thread name, truncated to 15 bytes */
    int threads;           /* number of threads besides the caller; 0: the caller runs everything, in next */
    int depth;             /* maximum number of tasks submitted and not yet taken; at least 1 */
    bool caller_runs_none; /* if there are threads, next only waits and runs no parts itself */
    stki_thread_pool_part *run;
    /* Called when all parts of a phase have run. Returns the number of parts in the next phase; 0: the task has ended.
     * Runs on the thread that ran the last part (for a task without parts on the caller's, in submit). Not called for a
     * failed task. NULL: one phase. */
    int64_t (*done)(void *context, void *task);
    void *context;
} stki_thread_pool_opts;

stk_status stki_thread_pool_create(const stki_thread_pool_opts *opts, stki_thread_pool **out, stk_error *err);
/* Waits for the running parts; no others are started. The caller still owns tasks that were not taken. NULL is
 * allowed. */
void stki_thread_pool_destroy(stki_thread_pool *pool);

/* False if `depth` tasks are submitted and not yet taken, or if a task has failed and tasks remain to be taken: call
 * next. */
bool stki_thread_pool_has_room(stki_thread_pool *pool);
/* Submits a task with this number of parts. STK_E_BUSY: `depth` tasks are submitted and not yet taken. A task submitted
 * after a failed one is not run, and next returns that error for it. Once all have been taken, submit returns the error
 * of the first failure. */
stk_status stki_thread_pool_submit(stki_thread_pool *pool, void *task, int64_t parts, stk_error *err);
/* Takes the oldest task, running parts (including those of later tasks) until it has ended. STK_AGAIN: it has not ended
 * by the deadline (at least one part was run, if any was available). STK_END: no tasks. Otherwise *task is set and the
 * status is the task's: STK_OK, or, for the first failed task and all after it, its error; some parts of *task may then
 * not have run. */
stk_status stki_thread_pool_next(stki_thread_pool *pool, int64_t deadline_ns, void **task, stk_error *err);

typedef struct stki_thread_pool_stats {
    int64_t busy_ns; /* time spent running parts, for all threads and the caller together */
    int64_t idle_ns; /* time that pool threads had no parts to run */
    int64_t wait_ns; /* time that next waited for other threads to finish the last parts */
} stki_thread_pool_stats;

/* Thread-safe. */
void stki_thread_pool_read_stats(const stki_thread_pool *pool, stki_thread_pool_stats *out);

/* Runs parts 0 to `parts` - 1 on the calling thread and up to `threads` others, and returns when all have run. If fewer
 * threads can be started, the existing ones do all the work. `run` gets NULL as its task. Returns the error of the
 * first part that failed. */
stk_status stki_thread_pool_run(const char *name, int threads, int64_t parts, stki_thread_pool_part *run, void *context,
                                stk_error *err);

#endif
