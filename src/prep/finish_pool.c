/* finish_pool.c: see finish_pool.h. A batch is a task of a thread pool with two phases: runs of rows, which
 * finish_rows.c finishes, and then one part an observer. Batch number n lies in slot n % depth from push to release. */
#include "error.h"
#include "finish_rows.h"
#include "thread_pool.h"
#include <inttypes.h>

enum { DEPTH = 3, RUNS_A_WORKER = 8, MOST_ROWS_A_RUN = 64, MOST_THREADS = 1024, MOST_DEPTH = 64 };

struct stki_finish_pool {
    stki_finish_rows work;
    int depth;
    stki_finish_slot *slots;
    int64_t pushed, popped, released; /* batches so far; released <= popped <= pushed */
    stki_thread_pool *pool;
};

static stki_finish_slot *slot_of(const stki_finish_pool *pool, int64_t number)
{
    return &pool->slots[number % pool->depth];
}

static stk_status run(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    const stki_finish_pool *pool = context;
    stki_finish_slot *slot = task;
    const int64_t first = part * slot->run_rows, left = slot->batch.rows - first;

    if (!slot->observing)
        return stki_finish_rows_run(&pool->work, slot, worker, first, left < slot->run_rows ? left : slot->run_rows,
                                    err);
    stki_finish_rows_observe(&pool->work, slot, (int)part);
    return STK_OK;
}

static int64_t end_phase(void *context, void *task)
{
    const stki_finish_pool *pool = context;
    stki_finish_slot *slot = task;

    if (slot->observing)
        return 0;
    stki_finish_slot_settle(slot, &pool->work);
    slot->observing = true;
    return pool->work.observer_count;
}

/* Rows are claimed a few times a worker and batch, so that none waits long for the last run. */
static int64_t rows_of_run(const stki_finish_pool *pool, int64_t rows)
{
    const int64_t most = rows / (RUNS_A_WORKER * pool->work.worker_count);

    if (!pool->work.finishes && rows > 0)
        return rows; /* which are only looked at */
    return most < 1 ? 1 : most > MOST_ROWS_A_RUN ? MOST_ROWS_A_RUN : most;
}

/* ---- create and destroy ----------------------------------------------------------------------------------------- */

static stk_status make_slots(stki_finish_pool *pool, stk_error *err)
{
    stk_status status = STK_OK;

    pool->slots = stki_zalloc_array(pool->depth, sizeof *pool->slots);
    if (!pool->slots)
        return stki_fail_memory(err, pool->depth * (int64_t)sizeof *pool->slots, "finished batches");
    for (int i = 0; i < pool->depth && status == STK_OK; i++)
        status = stki_finish_slot_init(&pool->slots[i], &pool->work, err);
    return status;
}

stk_status stki_finish_pool_create(const stki_finish_pool_opts *opts, stki_finish_pool **out, stk_error *err)
{
    stki_thread_pool_opts threads = {.name = "stoker-finish", .run = run, .done = end_phase};
    stki_finish_pool *pool;
    stk_status status;

    if (opts->field_count < 1 || opts->max_rows < 1 || opts->threads < 0 || opts->threads > MOST_THREADS ||
        opts->depth < 0 || opts->depth > MOST_DEPTH)
        return stki_fail(err, STK_E_BAD_ARG,
                         "a pool of finishers: %d fields, %" PRId64 " rows, %d threads, %d batches at once",
                         opts->field_count, opts->max_rows, opts->threads, opts->depth);
    pool = stki_zalloc(sizeof *pool);
    if (!pool)
        return stki_fail_memory(err, (int64_t)sizeof *pool, "a pool of finishers");
    pool->depth = threads.depth = opts->depth ? opts->depth : DEPTH;
    threads.context = pool;
    status = stki_finish_rows_init(&pool->work, opts, err);
    threads.threads = pool->work.worker_count - 1;
    if (status == STK_OK)
        status = make_slots(pool, err);
    if (status == STK_OK)
        status = stki_thread_pool_create(&threads, &pool->pool, err);
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
    stki_thread_pool_destroy(pool->pool);
    for (int i = 0; pool->slots && i < pool->depth; i++)
        stki_finish_slot_fini(&pool->slots[i], &pool->work);
    stki_finish_rows_fini(&pool->work);
    stki_free(pool->slots);
    stki_free(pool);
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

bool stki_finish_pool_has_room(const stki_finish_pool *pool)
{
    return pool->pushed - pool->released < pool->depth && stki_thread_pool_has_room(pool->pool);
}

stk_status stki_finish_pool_push(stki_finish_pool *pool, const stki_finish_batch *batch, stk_error *err)
{
    stki_finish_slot *slot = slot_of(pool, pool->pushed);
    stk_status status;

    if (!stki_finish_pool_has_room(pool))
        return stki_fail(err, STK_E_BUSY, "%d batches are being finished already", pool->depth);
    if (batch->rows < 0 || batch->rows > pool->work.max_rows)
        return stki_fail(err, STK_E_RANGE, "a batch of rows to finish: found %" PRId64 ", expected 0 to %" PRId64,
                         batch->rows, pool->work.max_rows);
    stki_finish_slot_fill(slot, &pool->work, batch, rows_of_run(pool, batch->rows));
    status = stki_thread_pool_submit(pool->pool, slot, (batch->rows + slot->run_rows - 1) / slot->run_rows, err);
    pool->pushed += status == STK_OK;
    return status;
}

stk_status stki_finish_pool_pop(stki_finish_pool *pool, int64_t deadline_ns, stki_finished *out, stk_error *err)
{
    const stki_finish_slot *slot;
    void *task;
    stk_status status;

    if (pool->popped > pool->released)
        return stki_fail(err, STK_E_BUSY, "the last finished batch has not been released");
    status = stki_thread_pool_next(pool->pool, deadline_ns, &task, err);
    if (status != STK_OK)
        return status;
    slot = task;
    *out = (stki_finished){.rows = slot->good,
                           .values = slot->values,
                           .kept = slot->kept,
                           .failed = slot->failed,
                           .failures = slot->failures,
                           .lease = slot->batch.lease};
    pool->popped++;
    return STK_OK;
}

stk_status stki_finish_pool_seen(stki_finish_pool *pool, stki_seen **seen, stk_error *err)
{
    return stki_finish_slot_merge(slot_of(pool, pool->released), &pool->work, seen, err);
}

void stki_finish_pool_release(stki_finish_pool *pool)
{
    if (pool->popped == pool->released)
        return;
    stki_finish_slot_drop_seen(slot_of(pool, pool->released), &pool->work);
    pool->released++;
}
