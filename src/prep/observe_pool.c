/* observe_pool.c: see observe_pool.h. One lock for all of it: it is taken twice for what an observer sees of a batch.
 */
#include "observe_pool.h"
#include "allocate.h"
#include "error.h"
#include "thread.h"
#include <string.h>

struct block {
    stki_run_of_rows run;
    int64_t *kept, count;
    stki_seen **seen; /* one an observer */
    int next, left;   /* observers: not yet claimed, not yet done */
    stk_status status;
    stk_error error;
};

struct stki_observe_pool {
    stki_observe_opts opts; /* fixed after create */
    stki_thread **threads;
    struct block *blocks; /* block n is blocks[n % depth] */

    stki_mutex lock; /* guards what is claimed and done of blocks, and the rest */
    stki_cond work, done;
    int64_t pushed, taken;
    bool stop;
};

static stk_status see(const stki_observe_pool *pool, const struct block *block, int number, stki_seen *seen,
                      stk_error *err)
{
    enum { AT_ONCE = 64 };
    const stki_observer *observer = pool->opts.observers[number];
    stki_row rows[AT_ONCE];
    stk_status status = STK_OK;

    for (int64_t first = 0; first < block->count && status == STK_OK; first += AT_ONCE) {
        int64_t n = block->count - first < AT_ONCE ? block->count - first : AT_ONCE;

        for (int64_t i = 0; i < n; i++)
            stki_row_of(block->run.held->batch, pool->opts.plans[number], block->run.first + block->kept[first + i],
                        &rows[i]);
        status = observer->ops->see(observer, seen, rows, n, err);
    }
    return status;
}

/* Runs what is claimed; called and returning with the lock. */
static void work_on(stki_observe_pool *pool, struct block *block, int number)
{
    const stki_observer *observer = pool->opts.observers[number];
    stki_seen *seen = NULL;
    stk_error error = {0};
    stk_status status;

    stki_unlock(&pool->lock);
    status = observer->ops->begin(observer, &seen, &error);
    if (status == STK_OK)
        status = see(pool, block, number, seen, &error);
    stki_lock(&pool->lock);
    block->seen[number] = seen;
    if (status != STK_OK && block->status == STK_OK) {
        block->status = status;
        block->error = error;
    }
    if (--block->left == 0)
        stki_wake_all(&pool->done);
}

static bool work(stki_observe_pool *pool)
{
    for (int64_t b = pool->taken; b < pool->pushed; b++) {
        struct block *block = &pool->blocks[b % pool->opts.depth];

        if (block->next > 0) {
            work_on(pool, block, --block->next);
            return true;
        }
    }
    return false;
}

static void run(void *context)
{
    stki_observe_pool *pool = context;

    stki_lock(&pool->lock);
    while (!pool->stop)
        if (!work(pool))
            (void)stki_wait(&pool->work, &pool->lock, INT64_MAX);
    stki_unlock(&pool->lock);
}

bool stki_observe_has_room(const stki_observe_pool *pool)
{
    return pool->pushed - pool->taken < pool->opts.depth;
}

void stki_observe_push(stki_observe_pool *pool, const stki_run_of_rows *rows, const int64_t *kept, int64_t count)
{
    struct block *block;

    stki_lock(&pool->lock);
    block = &pool->blocks[pool->pushed % pool->opts.depth];
    block->run = *rows;
    block->count = count;
    if (count > 0)
        memcpy(block->kept, kept, (size_t)count * sizeof *kept);
    block->status = STK_OK;
    block->next = block->left = pool->opts.observer_count;
    pool->pushed++;
    stki_wake_all(&pool->work);
    stki_unlock(&pool->lock);
}

/* Into the caller's, in the order of batches. */
static stk_status merge(const stki_observe_pool *pool, struct block *block, stki_seen **seen, stk_error *err)
{
    stk_status status = block->status;

    if (status != STK_OK && err)
        *err = block->error;
    for (int i = 0; i < pool->opts.observer_count; i++) {
        const stki_observer *observer = pool->opts.observers[i];

        if (status == STK_OK && !seen[i]) {
            seen[i] = block->seen[i];
            block->seen[i] = NULL;
        } else if (status == STK_OK) {
            status = observer->ops->merge(observer, seen[i], block->seen[i], err);
        }
        observer->ops->drop(observer, block->seen[i]);
        block->seen[i] = NULL;
    }
    return status;
}

stk_status stki_observe_next(stki_observe_pool *pool, stki_seen **seen, stki_held **held, stk_error *err)
{
    struct block *block = &pool->blocks[pool->taken % pool->opts.depth];
    stk_status status;

    if (pool->taken == pool->pushed)
        return STK_END;
    stki_lock(&pool->lock);
    while (block->left > 0)
        if (!work(pool))
            (void)stki_wait(&pool->done, &pool->lock, INT64_MAX);
    stki_unlock(&pool->lock);
    status = merge(pool, block, seen, err);
    *held = block->run.held;
    stki_lock(&pool->lock);
    pool->taken++;
    stki_unlock(&pool->lock);
    return status;
}

/* ---- life ----------------------------------------------------------------------------------------------------------
 */

static stk_status build(stki_observe_pool *pool, stk_error *err)
{
    const stki_observe_opts *o = &pool->opts;
    stk_status status = STK_OK;
    bool fits = true;

    pool->blocks = stki_zalloc_array(o->depth, sizeof *pool->blocks);
    pool->threads = stki_zalloc_array(o->threads + 1, sizeof(stki_thread *));
    fits = pool->blocks && pool->threads;
    for (int i = 0; fits && i < o->depth; i++) {
        pool->blocks[i].kept = stki_zalloc_array(o->most_rows, sizeof(int64_t));
        pool->blocks[i].seen = stki_zalloc_array(o->observer_count, sizeof(stki_seen *));
        fits = pool->blocks[i].kept && pool->blocks[i].seen;
    }
    if (!fits)
        return stki_fail_memory(err, o->depth * o->most_rows * 8, "statistics");
    for (int i = 0; i < o->threads && status == STK_OK; i++)
        status = stki_thread_start(&pool->threads[i], "stoker-observe", run, pool, err);
    return status;
}

stk_status stki_observe_create(const stki_observe_opts *opts, stki_observe_pool **out, stk_error *err)
{
    stki_observe_pool *pool = stki_zalloc(sizeof *pool);
    stk_status status;

    if (!pool)
        return stki_fail_memory(err, sizeof *pool, "statistics");
    pool->opts = *opts;
    stki_mutex_init(&pool->lock);
    stki_cond_init(&pool->work);
    stki_cond_init(&pool->done);
    status = build(pool, err);
    if (status == STK_OK)
        *out = pool;
    else
        stki_observe_destroy(pool);
    return status;
}

void stki_observe_destroy(stki_observe_pool *pool)
{
    if (!pool)
        return;
    stki_lock(&pool->lock);
    pool->stop = true;
    stki_wake_all(&pool->work);
    stki_unlock(&pool->lock);
    for (int i = 0; pool->threads && i < pool->opts.threads; i++)
        if (pool->threads[i])
            (void)stki_thread_join(pool->threads[i], INT64_MAX);
    for (int i = 0; pool->blocks && i < pool->opts.depth; i++) {
        for (int k = 0; pool->blocks[i].seen && k < pool->opts.observer_count; k++)
            pool->opts.observers[k]->ops->drop(pool->opts.observers[k], pool->blocks[i].seen[k]);
        stki_free(pool->blocks[i].seen);
        stki_free(pool->blocks[i].kept);
    }
    stki_free(pool->blocks);
    stki_free(pool->threads);
    stki_cond_fini(&pool->work);
    stki_cond_fini(&pool->done);
    stki_mutex_fini(&pool->lock);
    stki_free(pool);
}
