/* flusher.c: the thread of outlet.h that syncs: a thread pool of one, for which the caller only waits. So tasks run one
 * at a time and in order, and none after one that failed. */
#include "allocate.h"
#include "error.h"
#include "outlet.h"
#include "thread_pool.h"

struct stki_flusher {
    stki_thread_pool *pool;
    int depth;
    int64_t submitted;
    stki_flush **tasks; /* number n is tasks[n % depth]; NULL: it has been dropped */
};

static stk_status run(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    stki_flush **flush = task;
    stk_status status = (*flush)->run(*flush, err);

    (void)context, (void)part, (void)worker;
    (*flush)->drop(*flush);
    *flush = NULL;
    return status;
}

stk_status stki_flusher_create(int depth, stki_flusher **out, stk_error *err)
{
    stki_flusher *flusher = stki_zalloc(sizeof *flusher);
    const stki_thread_pool_opts opts = {
        .name = "stoker-flush", .threads = 1, .depth = depth, .caller_runs_none = true, .run = run};
    stk_status status;

    if (!flusher)
        return stki_fail_memory(err, sizeof *flusher, "a thread that syncs");
    flusher->depth = depth;
    flusher->tasks = stki_zalloc_array(depth, sizeof(stki_flush *));
    status = flusher->tasks ? stki_thread_pool_create(&opts, &flusher->pool, err)
                            : stki_fail_memory(err, depth * (int64_t)sizeof(stki_flush *), "a thread that syncs");
    if (status == STK_OK)
        *out = flusher;
    else
        stki_flusher_destroy(flusher);
    return status;
}

/* Waits for the oldest task. STK_END: there is none. */
static stk_status take(stki_flusher *flusher, stk_error *err)
{
    void *task = NULL;
    stk_status status = stki_thread_pool_next(flusher->pool, INT64_MAX, &task, err);
    stki_flush **flush = task;

    if (flush && *flush) /* one before it failed */
        (*flush)->drop(*flush);
    return status;
}

void stki_flusher_destroy(stki_flusher *flusher)
{
    if (!flusher)
        return;
    while (flusher->pool && take(flusher, NULL) != STK_END)
        ;
    stki_thread_pool_destroy(flusher->pool);
    stki_free(flusher->tasks);
    stki_free(flusher);
}

stk_status stki_flusher_put(stki_flusher *flusher, stki_flush *flush, stk_error *err)
{
    stki_flush **task = &flusher->tasks[flusher->submitted % flusher->depth];
    stk_status status = STK_OK;

    while (status == STK_OK && !stki_thread_pool_has_room(flusher->pool))
        status = take(flusher, err);
    if (status == STK_OK) {
        *task = flush;
        status = stki_thread_pool_submit(flusher->pool, task, 1, err);
    }
    if (status == STK_OK)
        flusher->submitted++;
    else
        flush->drop(flush);
    return status;
}

stk_status stki_flusher_wait(stki_flusher *flusher, stk_error *err)
{
    stk_status status = STK_OK, taken;

    while ((taken = take(flusher, status == STK_OK ? err : NULL)) != STK_END)
        status = status == STK_OK ? taken : status;
    return status;
}

int64_t stki_flusher_waited_ns(const stki_flusher *flusher)
{
    stki_thread_pool_stats stats;

    stki_thread_pool_read_stats(flusher->pool, &stats);
    return stats.wait_ns;
}
