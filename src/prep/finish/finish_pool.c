/* finish_pool.c: see finish_pool.h. The threads, and who works on which rows; finish_rows.c does the work.
 *
 * Batches have numbers that run free and lie in slot number % depth. released <= popped <= pushed, and all of them are
 * the caller's own; what the threads share with it is guarded by `lock`: which batch is being claimed from
 * (released <= claiming, so that nobody looks at a slot that is being filled), how many rows of each are claimed and
 * how many are done. A run of rows is claimed at once, so that the lock is taken a few times a thread and batch. The
 * caller sees what the threads wrote since both hold the lock when `done` reaches `rows`.
 */
#include "clock.h"
#include "error.h"
#include "finish_rows.h"
#include "thread.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 3, RUNS_A_WORKER = 8, MOST_ROWS_A_RUN = 64, MOST_THREADS = 1024, MOST_DEPTH = 64 };

struct stki_finish_pool {
    /* fixed after create */
    stki_finish_rows work;
    int depth, worker_count; /* the caller's own is the last */
    stki_finish_slot *slots;
    struct worker {
        stki_finish_pool *pool;
        int number;
        stki_thread *thread;
    } * workers;
    bool has_locks;

    /* the caller's own */
    int64_t released, popped;
    bool out;

    stki_mutex lock;
    stki_cond more, done; /* a batch was pushed, or stop; a batch is finished */
    /* guarded by lock */
    int64_t pushed, claiming;
    bool stop;
    stk_status failed;

    stki_counter idle_ns, wait_ns;
};

static stki_finish_slot *slot_of(const stki_finish_pool *pool, int64_t number)
{
    return &pool->slots[number % pool->depth];
}

/* ---- claiming --------------------------------------------------------------------------------------------------- */

typedef struct run {
    stki_finish_slot *slot;
    int64_t first, rows;
} run;

/* With the lock held. */
static bool claim(stki_finish_pool *pool, run *out)
{
    for (; pool->claiming < pool->pushed; pool->claiming++) {
        stki_finish_slot *slot = slot_of(pool, pool->claiming);
        int64_t left = slot->batch.rows - slot->claimed, most = slot->batch.rows / (RUNS_A_WORKER * pool->worker_count);

        if (left <= 0)
            continue;
        most = most < 1 ? 1 : most > MOST_ROWS_A_RUN ? MOST_ROWS_A_RUN : most;
        *out = (run){slot, slot->claimed, left < most ? left : most};
        slot->claimed += out->rows;
        return true;
    }
    return false;
}

/* With the lock held, which is open while the rows are worked on. */
static void work(stki_finish_pool *pool, int worker, const run *r)
{
    stk_status status;

    stki_unlock(&pool->lock);
    status = stki_finish_rows_run(&pool->work, r->slot, worker, r->first, r->rows);
    stki_lock(&pool->lock);
    if (status != STK_OK)
        pool->failed = status;
    r->slot->done += r->rows;
    if (r->slot->done == r->slot->batch.rows)
        stki_wake_all(&pool->done);
}

static void worker_main(void *context)
{
    struct worker *self = context;
    stki_finish_pool *pool = self->pool;
    run r;

    stki_lock(&pool->lock);
    while (!pool->stop) {
        int64_t since;

        if (claim(pool, &r)) {
            work(pool, self->number, &r);
            continue;
        }
        since = stki_now_ns();
        (void)stki_wait(&pool->more, &pool->lock, since + STKI_SECOND);
        stki_count(&pool->idle_ns, stki_now_ns() - since);
    }
    stki_unlock(&pool->lock);
}

/* ---- create and destroy ----------------------------------------------------------------------------------------- */

static stk_status start_threads(stki_finish_pool *pool, stk_error *err)
{
    for (int i = 0; i < pool->worker_count - 1; i++) {
        stk_status status;

        pool->workers[i].pool = pool;
        pool->workers[i].number = i;
        status = stki_thread_start(&pool->workers[i].thread, "stoker-finish", worker_main, &pool->workers[i], err);
        if (status != STK_OK)
            return status;
    }
    return STK_OK;
}

static stk_status make_slots(stki_finish_pool *pool, stk_error *err)
{
    stk_status status = STK_OK;

    pool->slots = stki_zalloc_array(pool->depth, sizeof *pool->slots);
    pool->workers = stki_zalloc_array(pool->worker_count, sizeof *pool->workers);
    if (!pool->slots || !pool->workers)
        return stki_fail_memory(err, pool->depth * (int64_t)sizeof *pool->slots, "finished batches");
    for (int i = 0; i < pool->depth && status == STK_OK; i++)
        status = stki_finish_slot_init(&pool->slots[i], &pool->work, err);
    return status;
}

stk_status stki_finish_pool_create(const stki_finish_pool_opts *opts, stki_finish_pool **out, stk_error *err)
{
    stki_finish_pool *pool;
    bool works = false;
    stk_status status;

    if (opts->field_count < 1 || opts->max_rows < 1 || opts->threads < 0 || opts->threads > MOST_THREADS ||
        opts->depth < 0 || opts->depth > MOST_DEPTH)
        return stki_fail(err, STK_E_BAD_ARG,
                         "a pool of finishers: %d fields, %" PRId64 " rows, %d threads, %d batches at once",
                         opts->field_count, opts->max_rows, opts->threads, opts->depth);
    for (int i = 0; i < opts->field_count; i++)
        works = works || opts->fields[i].finisher;
    pool = stki_zalloc(sizeof *pool);
    if (!pool)
        return stki_fail_memory(err, (int64_t)sizeof *pool, "a pool of finishers");
    stki_mutex_init(&pool->lock);
    stki_cond_init(&pool->more);
    stki_cond_init(&pool->done);
    pool->depth = opts->depth ? opts->depth : DEPTH;
    pool->worker_count = works ? opts->threads + 1 : 1;
    status = stki_finish_rows_init(&pool->work, opts, pool->worker_count, err);
    if (status == STK_OK)
        status = make_slots(pool, err);
    if (status == STK_OK)
        status = start_threads(pool, err);
    if (status == STK_OK)
        *out = pool;
    else
        stki_finish_pool_destroy(pool);
    return status;
}

void stki_finish_pool_destroy(stki_finish_pool *pool)
{
    if (!pool)
        return;
    stki_lock(&pool->lock);
    pool->stop = true;
    stki_wake_all(&pool->more);
    stki_unlock(&pool->lock);
    /* The rows that are worked on are finished first: a finisher computes and waits for nobody. */
    for (int i = 0; pool->workers && i < pool->worker_count; i++)
        if (pool->workers[i].thread)
            (void)stki_thread_join(pool->workers[i].thread, INT64_MAX);
    for (int i = 0; pool->slots && i < pool->depth; i++)
        stki_finish_slot_fini(&pool->slots[i], &pool->work);
    stki_finish_rows_fini(&pool->work);
    stki_free(pool->slots);
    stki_free(pool->workers);
    stki_cond_fini(&pool->done);
    stki_cond_fini(&pool->more);
    stki_mutex_fini(&pool->lock);
    stki_free(pool);
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

bool stki_finish_pool_has_room(const stki_finish_pool *pool)
{
    return pool->pushed - pool->released < pool->depth; /* `pushed` is written by the caller's thread alone */
}

int64_t stki_finish_pool_pending(const stki_finish_pool *pool)
{
    return pool->pushed - pool->popped;
}

stk_status stki_finish_pool_push(stki_finish_pool *pool, const stki_finish_batch *batch, stk_error *err)
{
    if (!stki_finish_pool_has_room(pool))
        return stki_fail(err, STK_E_BUSY, "%d batches are being finished already", pool->depth);
    if (batch->rows < 0 || batch->rows > pool->work.max_rows)
        return stki_fail(err, STK_E_RANGE, "a batch of rows to finish: found %" PRId64 ", expected 0 to %" PRId64,
                         batch->rows, pool->work.max_rows);
    stki_finish_slot_fill(slot_of(pool, pool->pushed), &pool->work, batch);
    stki_lock(&pool->lock);
    pool->pushed++;
    stki_wake_all(&pool->more);
    stki_unlock(&pool->lock);
    return STK_OK;
}

/* Works until the rows of `slot` are done; false: the deadline came first. */
static bool help(stki_finish_pool *pool, const stki_finish_slot *slot, int64_t deadline_ns)
{
    bool in_time = true;

    stki_lock(&pool->lock);
    while (slot->done < slot->batch.rows && in_time) {
        int64_t since;
        run r;

        /* Of later batches too: the last rows of this one are others' work then. */
        if (claim(pool, &r)) {
            work(pool, pool->worker_count - 1, &r);
            in_time = slot->done == slot->batch.rows || stki_now_ns() < deadline_ns;
            continue;
        }
        since = stki_now_ns();
        in_time = stki_wait(&pool->done, &pool->lock, deadline_ns);
        stki_count(&pool->wait_ns, stki_now_ns() - since);
    }
    in_time = slot->done == slot->batch.rows;
    stki_unlock(&pool->lock);
    return in_time;
}

stk_status stki_finish_pool_pop(stki_finish_pool *pool, int64_t deadline_ns, stki_finished *out, stk_error *err)
{
    stki_finish_slot *slot = slot_of(pool, pool->popped);
    stk_status failed;

    if (pool->out)
        return stki_fail(err, STK_E_BUSY, "the last finished batch has not been released");
    if (pool->popped == pool->pushed)
        return STK_END;
    if (!help(pool, slot, deadline_ns))
        return STK_AGAIN;
    stki_lock(&pool->lock);
    failed = pool->failed;
    stki_unlock(&pool->lock);
    if (failed != STK_OK)
        return stki_finish_slot_fatal(slot, failed, err);
    stki_finish_slot_give(slot, &pool->work, out);
    pool->popped++;
    pool->out = true;
    return STK_OK;
}

void stki_finish_pool_release(stki_finish_pool *pool)
{
    if (!pool->out)
        return;
    pool->out = false;
    /* Nobody has looked behind the last rows of that batch, perhaps; its slot is to be filled anew. */
    stki_lock(&pool->lock);
    pool->released++;
    pool->claiming = pool->claiming < pool->released ? pool->released : pool->claiming;
    stki_unlock(&pool->lock);
}

void stki_finish_pool_stats(const stki_finish_pool *pool, stki_finish_stats *out)
{
    stki_finish_rows_stats(&pool->work, out);
    out->idle_ns = stki_counted(&pool->idle_ns);
    out->wait_ns = stki_counted(&pool->wait_ns);
}
