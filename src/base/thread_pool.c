/* thread_pool.c: see thread_pool.h. Tasks have consecutive numbers; task n is entry n % depth. One lock guards all
 * shared state; it is acquired twice per part and never held while a part or `done` runs. The thread that runs the last
 * part of a phase and the caller of next see the writes of all other threads, since each of those acquired the lock
 * after its writes. */
#include "thread_pool.h"
#include "allocate.h"
#include "clock.h"
#include "counter.h"
#include "error.h"
#include "thread.h"
#include <assert.h>

struct entry {
    void *task;
    int64_t parts, claimed; /* number of parts in this phase, and of those that threads have claimed */
    int64_t running;        /* number of running parts, or 1 while `done` runs */
    bool ended;             /* all phases have run */
};

struct worker {
    stki_thread_pool *pool;
    int number;
    stki_thread *thread;
};

struct stki_thread_pool {
    stki_thread_pool_opts opts; /* fixed after creation, like the next two */
    struct entry *entries;
    struct worker *workers;

    stki_mutex lock;
    stki_cond more; /* signaled for the threads: there are parts, or stop is set */
    stki_cond done; /* signaled for next: the oldest task may have ended, or there are parts */
    /* guarded by lock; the first two are written by the caller's thread only */
    int64_t submitted, taken;
    int64_t failed, failed_part; /* the first failed task (INT64_MAX: none) and its first failed part */
    stk_status status;           /* error of that part */
    stk_error error;
    bool stop;

    stki_counter busy_ns, idle_ns, wait_ns;
};

static struct entry *entry_of(const stki_thread_pool *pool, int64_t number)
{
    return &pool->entries[number % pool->opts.depth];
}

/* ---- running parts; all with the lock held ---- */

static bool claim(stki_thread_pool *pool, int64_t *number, int64_t *part)
{
    for (int64_t n = pool->taken; n < pool->submitted && n < pool->failed; n++) {
        struct entry *e = entry_of(pool, n);

        if (e->claimed < e->parts) {
            *number = n;
            *part = e->claimed++;
            e->running++;
            return true;
        }
    }
    return false;
}

static void wake_for(stki_thread_pool *pool, int64_t parts)
{
    if (parts > 1)
        stki_wake_all(&pool->more);
    else if (parts == 1)
        stki_wake_one(&pool->more);
}

static void note_failure(stki_thread_pool *pool, int64_t number, int64_t part, stk_status status,
                         const stk_error *error)
{
    if (number > pool->failed || (number == pool->failed && part > pool->failed_part))
        return;
    pool->failed = number;
    pool->failed_part = part;
    pool->status = status;
    pool->error = *error;
}

/* Called when all parts of a phase have run. */
static void end_phase(stki_thread_pool *pool, struct entry *e)
{
    int64_t parts = 0;

    if (pool->opts.done) {
        e->running++; /* prevents next from taking the task while `done` runs */
        stki_unlock(&pool->lock);
        parts = pool->opts.done(pool->opts.context, e->task);
        stki_lock(&pool->lock);
        e->running--;
    }
    e->parts = parts;
    e->claimed = 0;
    e->ended = parts == 0;
    wake_for(pool, parts);
}

static void run_part(stki_thread_pool *pool, int64_t number, int64_t part, int worker)
{
    struct entry *e = entry_of(pool, number);
    stk_error error = {0};
    stk_status status;
    int64_t since;

    stki_unlock(&pool->lock);
    since = stki_now_ns();
    status = pool->opts.run(pool->opts.context, e->task, part, worker, &error);
    stki_count(&pool->busy_ns, stki_now_ns() - since);
    stki_lock(&pool->lock);
    if (status != STK_OK)
        note_failure(pool, number, part, status, &error);
    if (--e->running > 0)
        return;
    if (number < pool->failed && e->claimed == e->parts)
        end_phase(pool, e);
    if (number == pool->taken || e->claimed < e->parts)
        stki_wake_one(&pool->done);
}

static void worker_main(void *context)
{
    const struct worker *self = context;
    stki_thread_pool *pool = self->pool;
    int64_t number, part;

    stki_lock(&pool->lock);
    while (!pool->stop) {
        if (claim(pool, &number, &part)) {
            run_part(pool, number, part, self->number);
        } else {
            const int64_t since = stki_now_ns();

            (void)stki_wait(&pool->more, &pool->lock, INT64_MAX); /* signaled by submit, end_phase and destroy */
            stki_count(&pool->idle_ns, stki_now_ns() - since);
        }
    }
    stki_unlock(&pool->lock);
}

/* ---- the caller's side ---- */

/* The error of the first failed part. Lock held. */
static stk_status fail(const stki_thread_pool *pool, stk_error *err)
{
    if (err)
        *err = pool->error;
    return pool->status;
}

bool stki_thread_pool_has_room(stki_thread_pool *pool)
{
    bool room;

    stki_lock(&pool->lock);
    room = pool->submitted - pool->taken < pool->opts.depth &&
           (pool->failed == INT64_MAX || pool->submitted == pool->taken);
    stki_unlock(&pool->lock);
    return room;
}

stk_status stki_thread_pool_submit(stki_thread_pool *pool, void *task, int64_t parts, stk_error *err)
{
    stk_status status = STK_OK;

    assert(parts >= 0);
    stki_lock(&pool->lock);
    if (pool->submitted - pool->taken >= pool->opts.depth) {
        status = stki_fail(err, STK_E_BUSY, "%s: the thread pool accepts no more tasks until one has been taken",
                           pool->opts.name);
    } else if (pool->failed < INT64_MAX && pool->submitted == pool->taken) {
        status = fail(pool, err);
    } else {
        struct entry *e = entry_of(pool, pool->submitted);

        *e = (struct entry){.task = task, .parts = parts};
        pool->submitted++;
        /* After a failure (which may happen even if has_room has returned true) the task is not run, and next returns
         * the error for it. */
        if (pool->failed == INT64_MAX && parts == 0)
            end_phase(pool, e);
        else if (pool->failed == INT64_MAX)
            wake_for(pool, parts);
    }
    stki_unlock(&pool->lock);
    return status;
}

/* Lock held. */
static bool has_ended(const stki_thread_pool *pool, int64_t number)
{
    const struct entry *e = entry_of(pool, number);

    return e->running == 0 && (e->ended || number >= pool->failed);
}

stk_status stki_thread_pool_next(stki_thread_pool *pool, int64_t deadline_ns, void **task, stk_error *err)
{
    const bool runs = pool->opts.threads == 0 || !pool->opts.caller_runs_none;
    const int64_t oldest = pool->taken;
    bool in_time = true;
    stk_status status = STK_AGAIN;

    if (pool->taken == pool->submitted)
        return STK_END;
    stki_lock(&pool->lock);
    while (!has_ended(pool, oldest) && in_time) {
        int64_t number, part, since;

        if (runs && claim(pool, &number, &part)) {
            run_part(pool, number, part, pool->opts.threads);
            in_time = deadline_ns == INT64_MAX || stki_now_ns() < deadline_ns;
            continue;
        }
        since = stki_now_ns();
        in_time = stki_wait(&pool->done, &pool->lock, deadline_ns);
        stki_count(&pool->wait_ns, stki_now_ns() - since);
    }
    if (has_ended(pool, oldest)) {
        *task = entry_of(pool, oldest)->task;
        status = oldest < pool->failed ? STK_OK : fail(pool, err);
        pool->taken++;
    }
    stki_unlock(&pool->lock);
    return status;
}

void stki_thread_pool_read_stats(const stki_thread_pool *pool, stki_thread_pool_stats *out)
{
    *out = (stki_thread_pool_stats){.busy_ns = stki_counted(&pool->busy_ns),
                                    .idle_ns = stki_counted(&pool->idle_ns),
                                    .wait_ns = stki_counted(&pool->wait_ns)};
}

/* ---- create and destroy ---- */

static stk_status start_threads(stki_thread_pool *pool, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < pool->opts.threads && status == STK_OK; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].number = i;
        status = stki_thread_start(&pool->workers[i].thread, pool->opts.name, worker_main, &pool->workers[i], err);
    }
    return status;
}

/* Creates the pool without its threads. */
static stk_status prepare(const stki_thread_pool_opts *opts, stki_thread_pool **out, stk_error *err)
{
    stki_thread_pool *pool = stki_zalloc(sizeof *pool);

    assert(opts->threads >= 0 && opts->depth >= 1);
    if (!pool)
        return stki_fail_memory(err, (int64_t)sizeof *pool, "a thread pool");
    pool->opts = *opts;
    pool->failed = INT64_MAX;
    stki_mutex_init(&pool->lock);
    stki_cond_init(&pool->more);
    stki_cond_init(&pool->done);
    pool->entries = stki_zalloc_array(opts->depth, sizeof *pool->entries);
    pool->workers = stki_zalloc_array(opts->threads + 1, sizeof *pool->workers);
    if (!pool->entries || !pool->workers) {
        stki_thread_pool_destroy(pool);
        return stki_fail_memory(err, opts->depth * (int64_t)sizeof *pool->entries, "a thread pool");
    }
    *out = pool;
    return STK_OK;
}

stk_status stki_thread_pool_create(const stki_thread_pool_opts *opts, stki_thread_pool **out, stk_error *err)
{
    stki_thread_pool *pool;
    stk_status status = prepare(opts, &pool, err);

    if (status != STK_OK)
        return status;
    status = start_threads(pool, err);
    if (status == STK_OK)
        *out = pool;
    else
        stki_thread_pool_destroy(pool);
    return status;
}

void stki_thread_pool_destroy(stki_thread_pool *pool)
{
    if (!pool)
        return;
    stki_lock(&pool->lock);
    pool->stop = true;
    stki_wake_all(&pool->more);
    stki_unlock(&pool->lock);
    for (int i = 0; pool->workers && i < pool->opts.threads; i++)
        if (pool->workers[i].thread)
            (void)stki_thread_join(pool->workers[i].thread, INT64_MAX);
    stki_cond_fini(&pool->done);
    stki_cond_fini(&pool->more);
    stki_mutex_fini(&pool->lock);
    stki_free(pool->entries);
    stki_free(pool->workers);
    stki_free(pool);
}

stk_status stki_thread_pool_run(const char *name, int threads, int64_t parts, stki_thread_pool_part *run, void *context,
                                stk_error *err)
{
    const stki_thread_pool_opts opts = {
        .name = name, .threads = threads < parts ? threads : (int)parts, .depth = 1, .run = run, .context = context};
    stki_thread_pool *pool;
    void *task;
    stk_status status = prepare(&opts, &pool, err);

    if (status != STK_OK)
        return status;
    (void)start_threads(pool, NULL);
    status = stki_thread_pool_submit(pool, NULL, parts, err);
    if (status == STK_OK)
        status = stki_thread_pool_next(pool, INT64_MAX, &task, err);
    stki_thread_pool_destroy(pool);
    return status;
}
