/* stki-threads */
/* Tests of the thread pool with any number of threads: order of results, phases, parts run by the caller, the first
 * error in task order, stopping in every state, deadlines and failing allocations. */
#include "allocate.h"
#include "clock.h"
#include "counter.h"
#include "error.h"
#include "faults.h"
#include "stk_test.h"
#include "test_random.h"
#include "thread.h"
#include "thread_pool.h"

#define MS (STKI_SECOND / 1000)

/* ---- tasks whose outcome follows from their number ---- */

enum { PARTS = 24, PHASES = 3, TASKS = 40, NEVER = 1 << 20 };

typedef struct job {
    int64_t number;
    int phases, phase;
    int64_t parts[PHASES];
    int64_t runs[PHASES][PARTS]; /* written by parts without a lock; the pool must order the accesses */
    int64_t fails;               /* phase 0 fails from this part on; NEVER if it does not */
    int64_t seen;                /* runs of all finished phases, added up by `done` */
} job;

typedef struct work {
    int threads;
    stki_counter in_use[16]; /* by worker */
    stki_counter wrong, part_count;
    uint64_t seed;
} work;

static void make_job(job *j, int64_t number)
{
    uint64_t state = (uint64_t)number + 11;

    *j = (job){.number = number, .fails = NEVER, .phases = (int)stkt_random_in(&state, 1, PHASES)};
    for (int i = 0; i < j->phases; i++)
        j->parts[i] = stkt_random_in(&state, i == 0 ? 0 : 1, PARTS);
}

static void dawdle(uint64_t seed)
{
    if (stkt_random(&seed) % 7 == 0)
        stki_sleep_ns((int64_t)(stkt_random(&seed) % 60000));
}

static stk_status run(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    work *w = context;
    job *j = task;

    if (worker < 0 || worker > w->threads || atomic_fetch_add(&w->in_use[worker], 1) != 0)
        stki_count(&w->wrong, 1);
    dawdle(w->seed + (uint64_t)(j->number * 1000 + part));
    stki_count(&w->part_count, 1);
    j->runs[j->phase][part]++;
    for (int64_t i = 0; j->phase > 0 && i < j->parts[j->phase - 1]; i++)
        if (j->runs[j->phase - 1][i] != 1)
            stki_count(&w->wrong, 1);
    atomic_fetch_sub(&w->in_use[worker], 1);
    if (j->phase == 0 && part >= j->fails)
        return stki_fail(err, STK_E_CORRUPT, "task %lld part %lld", (long long)j->number, (long long)part);
    return STK_OK;
}

static int64_t done(void *context, void *task)
{
    job *j = task;

    (void)context;
    for (int64_t i = 0; i < j->parts[j->phase]; i++)
        j->seen += j->runs[j->phase][i];
    j->phase++;
    return j->phase < j->phases ? j->parts[j->phase] : 0;
}

static stki_thread_pool *create(work *w, int threads, int depth, bool caller_runs_none)
{
    stki_thread_pool *pool;
    stk_error err;

    *w = (work){.threads = threads, .seed = (uint64_t)(threads * 100 + depth)};
    assert_ok(stki_thread_pool_create(&(stki_thread_pool_opts){.name = "test",
                                                               .threads = threads,
                                                               .depth = depth,
                                                               .caller_runs_none = caller_runs_none,
                                                               .run = run,
                                                               .done = done,
                                                               .context = w},
                                      &pool, &err));
    return pool;
}

static void check_complete(const job *j)
{
    int64_t parts = 0;

    assert_int_equal(j->phase, j->phases);
    for (int p = 0; p < j->phases; p++)
        for (int64_t i = 0; i < PARTS; i++) {
            assert_int_equal(j->runs[p][i], i < j->parts[p]);
            parts += i < j->parts[p];
        }
    assert_int_equal(j->seen, parts);
}

static void all_tasks(int threads, int depth, bool caller_runs_none)
{
    job *jobs = calloc(TASKS, sizeof *jobs);
    work w;
    stki_thread_pool *pool = create(&w, threads, depth, caller_runs_none);
    int submitted = 0;
    stk_error err;
    void *task;

    for (int i = 0; i < TASKS; i++)
        make_job(&jobs[i], i);
    for (int taken = 0; taken < TASKS; taken++) {
        while (submitted < TASKS && stki_thread_pool_has_room(pool)) {
            assert_ok(stki_thread_pool_submit(pool, &jobs[submitted], jobs[submitted].parts[0], &err));
            submitted++;
        }
        assert_int_equal(submitted, taken + depth < TASKS ? taken + depth : TASKS);
        if (submitted == taken + depth)
            assert_status(stki_thread_pool_submit(pool, &jobs[0], 1, &err), STK_E_BUSY);
        assert_ok(stki_thread_pool_next(pool, INT64_MAX, &task, &err));
        assert_ptr_equal(task, &jobs[taken]);
        check_complete(task);
    }
    assert_int_equal(stki_thread_pool_next(pool, INT64_MAX, &task, &err), STK_END);
    stki_thread_pool_destroy(pool);
    assert_int_equal(stki_counted(&w.wrong), 0);
    free(jobs);
}

static void tasks_are_returned_in_order(void **unused)
{
    (void)unused;
    for (int threads = 0; threads <= 8; threads = threads ? threads * 2 : 1)
        for (int depth = 1; depth <= 5; depth += 2) {
            all_tasks(threads, depth, false);
            all_tasks(threads, depth, true);
        }
}

/* ---- which thread runs a part ---- */

/* Part 0 of task 0 blocks at a gate. */
typedef struct gated {
    stki_mutex lock;
    stki_cond changed;
    bool open, reached;
    stki_counter ran, by_caller;
    int threads;
} gated;

static void gate_init(gated *g, int threads)
{
    memset(g, 0, sizeof *g);
    g->threads = threads;
    stki_mutex_init(&g->lock);
    stki_cond_init(&g->changed);
}

static void gate_fini(gated *g)
{
    stki_mutex_fini(&g->lock);
    stki_cond_fini(&g->changed);
}

static void gate_open(gated *g)
{
    stki_lock(&g->lock);
    g->open = true;
    stki_wake_all(&g->changed);
    stki_unlock(&g->lock);
}

static void gate_wait(gated *g)
{
    stki_lock(&g->lock);
    while (!g->reached)
        (void)stki_wait(&g->changed, &g->lock, INT64_MAX);
    stki_unlock(&g->lock);
}

static stk_status run_gated(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    gated *g = context;

    (void)err;
    if (task == g && part == 0) {
        stki_lock(&g->lock);
        g->reached = true;
        stki_wake_all(&g->changed);
        while (!g->open)
            (void)stki_wait(&g->changed, &g->lock, INT64_MAX);
        stki_unlock(&g->lock);
    }
    stki_count(&g->ran, 1);
    stki_count(&g->by_caller, worker == g->threads);
    return STK_OK;
}

static stki_thread_pool *create_gated(gated *g, int threads, int depth, bool caller_runs_none)
{
    stki_thread_pool *pool;
    stk_error err;

    gate_init(g, threads);
    assert_ok(stki_thread_pool_create(&(stki_thread_pool_opts){.name = "gated",
                                                               .threads = threads,
                                                               .depth = depth,
                                                               .caller_runs_none = caller_runs_none,
                                                               .run = run_gated,
                                                               .context = g},
                                      &pool, &err));
    return pool;
}

/* While the only thread is blocked, the caller runs all other parts, including those of later tasks, and then waits
 * until its deadline. */
static void the_caller_helps(void **unused)
{
    gated g;
    stki_thread_pool *pool = create_gated(&g, 1, 3, false);
    stki_thread_pool_stats stats;
    int other;
    void *task;
    stk_error err;

    (void)unused;
    assert_ok(stki_thread_pool_submit(pool, &g, 1, &err));
    gate_wait(&g);
    assert_ok(stki_thread_pool_submit(pool, &other, 5, &err));
    assert_ok(stki_thread_pool_submit(pool, &other, 6, &err));
    while (stki_counted(&g.ran) < 11)
        assert_int_equal(stki_thread_pool_next(pool, 0, &task, &err), STK_AGAIN); /* each call runs a part */
    do { /* a call that starts after its deadline does not wait */
        assert_int_equal(stki_thread_pool_next(pool, stki_now_ns() + MS, &task, &err), STK_AGAIN);
        stki_thread_pool_read_stats(pool, &stats);
    } while (stats.wait_ns < MS / 2);
    assert_int_equal(stki_counted(&g.by_caller), 11);
    gate_open(&g);
    assert_ok(stki_thread_pool_next(pool, INT64_MAX, &task, &err));
    assert_ptr_equal(task, &g);
    for (int i = 0; i < 2; i++) {
        assert_ok(stki_thread_pool_next(pool, 0, &task, &err));
        assert_ptr_equal(task, &other);
    }
    assert_int_equal(stki_counted(&g.ran), 12);
    stki_thread_pool_read_stats(pool, &stats);
    assert_true(stats.busy_ns >= MS / 2 && stats.idle_ns >= 0); /* includes the part that was blocked at the gate */
    stki_thread_pool_destroy(pool);
    gate_fini(&g);
}

static void the_caller_only_waits(void **unused)
{
    gated g;
    stki_thread_pool *pool = create_gated(&g, 1, 2, true);
    int other;
    void *task;
    stk_error err;

    (void)unused;
    assert_ok(stki_thread_pool_submit(pool, &g, 1, &err));
    gate_wait(&g);
    assert_ok(stki_thread_pool_submit(pool, &other, 5, &err));
    assert_int_equal(stki_thread_pool_next(pool, stki_now_ns() + 2 * MS, &task, &err), STK_AGAIN);
    assert_int_equal(stki_counted(&g.ran), 0);
    gate_open(&g);
    assert_ok(stki_thread_pool_next(pool, INT64_MAX, &task, &err));
    assert_ok(stki_thread_pool_next(pool, INT64_MAX, &task, &err));
    assert_int_equal(stki_counted(&g.ran), 6);
    assert_int_equal(stki_counted(&g.by_caller), 0);
    stki_thread_pool_destroy(pool);
    gate_fini(&g);
}

/* Without threads, parts run only inside next: at least one in each call, even if its deadline has passed. */
static void without_threads(void **unused)
{
    for (int none = 0; none < 2; none++) {
        gated g;
        stki_thread_pool *pool = create_gated(&g, 0, 2, none);
        int other, again = 0;
        void *task;
        stk_error err;

        (void)unused;
        assert_ok(stki_thread_pool_submit(pool, &other, 10, &err));
        assert_int_equal(stki_counted(&g.ran), 0);
        while (stki_thread_pool_next(pool, 0, &task, &err) == STK_AGAIN)
            again++;
        assert_int_equal(again, 9);
        assert_int_equal(stki_counted(&g.by_caller), 10);
        assert_int_equal(stki_thread_pool_next(pool, 0, &task, &err), STK_END);
        stki_thread_pool_destroy(pool);
        gate_fini(&g);
    }
}

/* ---- the first error ---- */

static void fail_at(int threads, int depth, int64_t first, int64_t part, int64_t second)
{
    job *jobs = calloc(TASKS, sizeof *jobs);
    work w;
    stki_thread_pool *pool = create(&w, threads, depth, false);
    int submitted = 0, taken = 0;
    stk_error err;
    char says[64];
    void *task;
    stk_status status;

    for (int i = 0; i < TASKS; i++) {
        make_job(&jobs[i], i);
        if (i == first || i == second)
            jobs[i].parts[0] = PARTS;
    }
    jobs[first].fails = part;
    jobs[second].fails = 0;
    for (;; taken++) {
        while (submitted < TASKS && stki_thread_pool_has_room(pool)) {
            assert_ok(stki_thread_pool_submit(pool, &jobs[submitted], jobs[submitted].parts[0], &err));
            submitted++;
        }
        assert_true(submitted > taken);
        status = stki_thread_pool_next(pool, INT64_MAX, &task, &err);
        assert_ptr_equal(task, &jobs[taken]);
        if (status != STK_OK)
            break;
        check_complete(task);
    }
    assert_int_equal(taken, first);
    snprintf(says, sizeof says, "task %lld part %lld", (long long)first, (long long)part);
    assert_string_equal(err.message, says);
    for (int64_t i = 0; i <= part; i++)
        assert_int_equal(jobs[first].runs[0][i], 1);
    assert_int_equal(jobs[first].phase, 0);
    taken++;
    if (taken < submitted && submitted - taken < depth && submitted < TASKS) { /* submitted after the failure */
        assert_ok(stki_thread_pool_submit(pool, &jobs[submitted], jobs[submitted].parts[0], &err));
        assert_int_equal(jobs[submitted].runs[0][0], 0);
        submitted++;
    }
    for (; taken < submitted; taken++) { /* only the error follows */
        assert_false(stki_thread_pool_has_room(pool));
        assert_status(stki_thread_pool_next(pool, INT64_MAX, &task, &err), STK_E_CORRUPT);
        assert_string_equal(err.message, says);
        assert_ptr_equal(task, &jobs[taken]);
    }
    assert_int_equal(stki_thread_pool_next(pool, INT64_MAX, &task, &err), STK_END);
    assert_status(stki_thread_pool_submit(pool, &jobs[0], 1, &err), STK_E_CORRUPT);
    assert_string_equal(err.message, says);
    stki_thread_pool_destroy(pool);
    assert_int_equal(stki_counted(&w.wrong), 0);
    free(jobs);
}

static void the_first_error_counts(void **unused)
{
    uint64_t state = 4;

    (void)unused;
    for (int i = 0; i < 60; i++) {
        const int64_t first = stkt_random_in(&state, 0, TASKS - 2);

        fail_at(i % 5, 1 + i % 4, first, stkt_random_in(&state, 0, PARTS - 1), first + 1);
    }
}

/* ---- stopping ---- */

static void destroyed_in_every_state(void **unused)
{
    job *jobs = calloc(TASKS, sizeof *jobs);

    (void)unused;
    stki_thread_pool_destroy(NULL);
    for (int i = 0; i < 200; i++) {
        const int depth = 1 + i % 5, want = i % 7;
        work w;
        stki_thread_pool *pool = create(&w, i % 4, depth, i % 3 == 0);
        int64_t ran;
        stk_error err;
        void *task;

        for (int n = 0; n < want; n++) {
            make_job(&jobs[n], n + i);
            if (i % 11 == 0 && jobs[n].parts[0] > 0)
                jobs[n].fails = 0;
            if (!stki_thread_pool_has_room(pool))
                (void)stki_thread_pool_next(pool, i % 2 ? INT64_MAX : 0, &task, &err);
            if (stki_thread_pool_has_room(pool))
                (void)stki_thread_pool_submit(pool, &jobs[n], jobs[n].parts[0], &err);
        }
        stki_thread_pool_destroy(pool);
        ran = stki_counted(&w.part_count);
        assert_int_equal(stki_counted(&w.wrong), 0);
        for (int n = 0; n < 16; n++)
            assert_int_equal(stki_counted(&w.in_use[n]), 0);
        assert_int_equal(stki_counted(&w.part_count), ran);
    }
    free(jobs);
}

static void open_soon(void *context)
{
    stki_sleep_ns(5 * MS);
    gate_open(context);
}

static int64_t parts_run_by_destroy(void)
{
    gated g;
    stki_thread_pool *pool = create_gated(&g, 1, 3, true);
    stki_thread *opener;
    int64_t ran;
    stk_error err;

    assert_ok(stki_thread_pool_submit(pool, &g, 9, &err));
    assert_ok(stki_thread_pool_submit(pool, &g, 9, &err));
    gate_wait(&g);
    assert_ok(stki_thread_start(&opener, "opener", open_soon, &g, &err));
    stki_thread_pool_destroy(pool);
    ran = stki_counted(&g.ran);
    assert_true(stki_thread_join(opener, INT64_MAX));
    gate_fini(&g);
    return ran;
}

/* The running part finishes first; the following ones are not started. If the main thread is delayed, the gate may open
 * before the pool is destroyed, so the test makes several attempts. */
static void destroy_waits_for_running_parts(void **unused)
{
    int64_t ran = 0;

    (void)unused;
    for (int i = 0; i < 100 && ran != 1; i++) {
        ran = parts_run_by_destroy();
        assert_in_range(ran, 1, 18);
    }
    assert_int_equal(ran, 1);
}

/* ---- one task, and memory ---- */

typedef struct sums {
    int64_t squares[1000];
    stki_counter sum;
    int64_t fails;
} sums;

static stk_status square(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    sums *s = context;

    (void)task, (void)worker;
    if (part == s->fails || part == s->fails + 1)
        return stki_fail(err, STK_E_RANGE, "part %lld", (long long)part);
    s->squares[part] = part * part;
    stki_count(&s->sum, part);
    return STK_OK;
}

static void parts_of_one_task(void **unused)
{
    sums *s = calloc(1, sizeof *s);
    stk_error err;

    (void)unused;
    for (int threads = 0; threads <= 4; threads++) {
        *s = (sums){.fails = -2};
        assert_ok(stki_thread_pool_run("squares", threads, 1000, square, s, &err));
        assert_int_equal(stki_counted(&s->sum), 1000 * 999 / 2);
        for (int64_t i = 0; i < 1000; i++)
            assert_int_equal(s->squares[i], i * i);
        s->fails = 700;
        assert_status(stki_thread_pool_run("squares", threads, 1000, square, s, &err), STK_E_RANGE);
        assert_string_equal(err.message, "part 700");
        assert_ok(stki_thread_pool_run("squares", threads, 0, square, s, &err));
    }
    free(s);
}

/* A pool whose threads cannot be started is an error. stki_thread_pool_run works with the threads that could be
 * started. */
static void memory_runs_out(void **unused)
{
    sums *s = calloc(1, sizeof *s);
    int64_t n, refused = 0;
    stk_error err;

    (void)unused;
    for (n = 1;; n++) {
        stki_thread_pool *pool = NULL;
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_thread_pool_create(
            &(stki_thread_pool_opts){.name = "test", .threads = 3, .depth = 2, .run = square}, &pool, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) {
            stki_thread_pool_destroy(pool);
            break;
        }
        assert_int_equal(status, STK_E_MEMORY);
    }
    assert_true(n > 6);
    for (int64_t i = 1; i < n; i++) {
        stk_status status;

        *s = (sums){.fails = -2};
        stki_memory_fail_at(i);
        status = stki_thread_pool_run("squares", 3, 1000, square, s, &err);
        stki_memory_fail_at(0);
        if (status != STK_OK)
            assert_int_equal(status, STK_E_MEMORY);
        else
            assert_int_equal(stki_counted(&s->sum), 1000 * 999 / 2);
        refused += status != STK_OK;
    }
    assert_int_equal(refused, 3); /* the pool, its tasks and the handles of its threads */
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_returned_in_order),
        cmocka_unit_test(the_caller_helps),
        cmocka_unit_test(the_caller_only_waits),
        cmocka_unit_test(without_threads),
        cmocka_unit_test(the_first_error_counts),
        cmocka_unit_test(destroyed_in_every_state),
        cmocka_unit_test(destroy_waits_for_running_parts),
        cmocka_unit_test(parts_of_one_task),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
