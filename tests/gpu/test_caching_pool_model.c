/* stki-threads */
/* The caching pool is checked against a model in long random sequences of calls, also from many threads. The model has
 * plain lists of the allocated blocks and of unfinished work on freed ones, and no segments or trees.
 *
 * It requires that allocated blocks do not overlap, that they lie in memory from the driver, and that memory with
 * unfinished work of another stream is neither allocated nor returned to the driver. The choice of a free block is
 * checked against an exhaustive search. */
#include "caching_pool.h"
#include "fake_device.h"
#include "pool_check.h"
#include "stk_test.h"
#include "test_random.h"

#define MIB (INT64_C(1) << 20)

enum { MOST_LIVE = 200, MOST_OWED = 8192, STREAMS = 4, STEPS = 20000 };

typedef struct live {
    char *block;
    int64_t bytes;
    fake_engine *user; /* NULL: the NULL stream, or none in particular */
    fake_engine *others[STREAMS];
    int other_count;
    bool exact;
} live;

/* Work on [block, block + bytes) that was queued before it was freed. */
typedef struct owed {
    char *block;
    int64_t bytes;
    fake_engine *engine;
    int64_t ticket;
} owed;

typedef struct model {
    fake_device *fake;
    stki_pool *pool;
    uint64_t random;
    live lives[MOST_LIVE];
    int live_count;
    owed debts[MOST_OWED];
    int owed_count;
    stk_stream *streams[STREAMS];
    int64_t got, failed, reused;
} model;

static fake_device fake_memory;

static bool overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static bool is_done(const owed *debt)
{
    return stki_counted(&debt->engine->done) >= debt->ticket;
}

static void forget_done(model *m)
{
    int kept = 0;

    for (int i = 0; i < m->owed_count; i++)
        if (!is_done(&m->debts[i]))
            m->debts[kept++] = m->debts[i];
    m->owed_count = kept;
}

static void owe(model *m, const live *freed, fake_engine *engine)
{
    if (!engine || stki_counted(&engine->queued) == stki_counted(&engine->done))
        return;
    if (m->owed_count == MOST_OWED)
        forget_done(m);
    assert_true(m->owed_count < MOST_OWED);
    m->debts[m->owed_count++] = (owed){freed->block, freed->bytes, engine, stki_counted(&engine->queued)};
}

/* Only `user` may still have work there. */
static void check_nothing_owed(model *m, const char *block, int64_t bytes, const fake_engine *user)
{
    for (int i = 0; i < m->owed_count; i++)
        if (overlap(block, bytes, m->debts[i].block, m->debts[i].bytes))
            assert_true(m->debts[i].engine == user || is_done(&m->debts[i]));
}

static void driver_takes_back(void *context, void *memory, int64_t bytes)
{
    model *m = context;

    check_nothing_owed(m, memory, bytes, NULL);
    for (int i = 0; i < m->live_count; i++)
        assert_false(overlap(memory, bytes, m->lives[i].block, m->lives[i].bytes));
}

static fake_engine *engine_of(stk_stream *stream)
{
    return stream ? fake_engine_of(stream) : NULL;
}

/* The block that the header's rules select, found by examining all of them. NULL: the pool must request memory from the
 * driver. */
static char *expected_block(model *m, int64_t bytes, stk_stream *stream)
{
    stki_caching_pool *pool = stki_caching_pool_of(m->pool);
    const void *owners[2] = {m->pool->kind == STK_MEMORY_PINNED ? NULL : stream, &stki_pool_unowned};
    int64_t need = (bytes ? bytes + 511 : 512) / 512 * 512;
    const stki_pool_block *best = NULL;

    (void)stki_pool_process(pool);
    for (int i = 0; i < 2 && !best; i++)
        for (const stki_pool_segment *segment = pool->segments; segment; segment = segment->next)
            for (const stki_pool_block *block = &segment->first; block; block = block->after)
                if (block->state == STKI_POOL_FREE && segment->owner == owners[i] && block->bytes >= need &&
                    (segment->class == STKI_POOL_SMALL) == (need <= MIB) &&
                    (!best || block->bytes < best->bytes ||
                     (block->bytes == best->bytes && block->address < best->address)))
                    best = block;
    if (best && best->segment->owner == &stki_pool_unowned && !stki_pool_whole(best->segment) && !stream)
        return NULL;
    return best ? best->address : NULL;
}

static void make(model *m, bool exact)
{
    static const int64_t most[] = {2000, 2000, 300000, MIB + 5000, 9 * MIB, 24 * MIB};
    int64_t bytes = stkt_random_in(&m->random, 0, most[stkt_random(&m->random) % 6]);
    stk_stream *stream = stkt_random(&m->random) % 5 == 0 ? NULL : m->streams[stkt_random(&m->random) % STREAMS];
    fake_engine *user = m->pool->kind == STK_MEMORY_PINNED || exact ? NULL : engine_of(stream);
    char *expected = exact ? NULL : expected_block(m, bytes, stream);
    int64_t before = stki_counted(&m->fake->allocs);
    void *out = NULL;
    stk_error err;
    stk_status status = exact ? m->pool->ops->alloc_exact(m->pool, bytes, &out, &err)
                              : m->pool->ops->alloc(m->pool, bytes, stream, &out, &err);
    live *made = &m->lives[m->live_count];

    assert_true(status == STK_OK || status == STK_E_MEMORY);
    if (status) {
        assert_null(expected);
        m->failed++;
        return;
    }
    if (expected) {
        assert_ptr_equal(out, expected);
        assert_int_equal(stki_counted(&m->fake->allocs), before);
        m->reused++;
    }
    *made = (live){.block = out, .bytes = bytes, .user = user, .exact = exact};
    for (int i = 0; i < m->live_count; i++)
        assert_false(overlap(out, bytes ? bytes : 1, m->lives[i].block, m->lives[i].bytes ? m->lives[i].bytes : 1));
    check_nothing_owed(m, out, bytes, user);
    m->live_count++;
    m->got++;
}

static void drop(model *m, int which)
{
    live freed = m->lives[which];

    m->lives[which] = m->lives[--m->live_count];
    owe(m, &freed, freed.user);
    for (int i = 0; i < freed.other_count; i++)
        owe(m, &freed, freed.others[i]);
    m->pool->ops->free(m->pool, freed.block, freed.bytes);
}

static void record(model *m, live *used)
{
    stk_stream *stream = m->streams[stkt_random(&m->random) % STREAMS];

    if (used->other_count == STREAMS)
        return;
    m->pool->ops->record_stream(m->pool, used->block, stream);
    used->others[used->other_count++] = engine_of(stream);
}

static void change_stream(model *m, int which)
{
    stk_error err;

    stk_stream_destroy(m->streams[which]);
    assert_ok(stk_stream_create(&m->fake->base, &m->streams[which], &err));
}

static void work(model *m)
{
    stk_stream *stream = m->streams[stkt_random(&m->random) % STREAMS];

    fake_queue(stream, 1);
}

/* Advances each engine, including those of destroyed streams. */
static void advance(model *m)
{
    for (fake_engine *engine = m->fake->engines; engine; engine = engine->next) {
        int64_t left = stki_counted(&engine->queued) - stki_counted(&engine->done);
        if (left > 0 && stkt_random(&m->random) % 3 == 0)
            stki_count(&engine->done, stkt_random_in(&m->random, 1, left));
    }
}

static void check_sums(const model *m)
{
    int64_t bytes = 0;
    stk_device_memory_stats stats;

    for (int i = 0; i < m->live_count; i++)
        bytes += m->lives[i].bytes;
    m->pool->ops->stats(m->pool, &stats);
    assert_int_equal(stats.allocated_bytes, bytes);
    assert_int_equal(stats.blocks, m->live_count);
    assert_int_equal(stats.reserved_bytes, stki_counted(&m->fake->reserved_bytes));
    assert_true(stats.active_bytes >= bytes && stats.active_bytes <= stats.reserved_bytes);
    assert_true(stats.split_bytes >= 0 && stats.split_bytes + stats.active_bytes <= stats.reserved_bytes);
    assert_true(stats.fragmentation >= 0 && stats.fragmentation < 1);
    pool_check(m->pool);
}

static void step(model *m)
{
    uint64_t dice = stkt_random(&m->random) % 100;
    int which = m->live_count ? (int)(stkt_random(&m->random) % (uint64_t)m->live_count) : 0;
    stk_error err;

    if (dice < 40 && m->live_count < MOST_LIVE)
        make(m, stkt_random(&m->random) % 20 == 0);
    else if (dice < 72 && m->live_count > 0)
        drop(m, which);
    else if (dice < 80 && m->live_count > 0)
        record(m, &m->lives[which]);
    else if (dice < 90)
        work(m);
    else if (dice < 97)
        advance(m);
    else if (dice < 98)
        change_stream(m, (int)(stkt_random(&m->random) % STREAMS));
    else if (stkt_random(&m->random) % 4 == 0)
        assert_ok(m->pool->ops->empty(m->pool, &err));
}

static void run_model(stk_device_memory kind, uint64_t seed, int64_t limit)
{
    model *m = calloc(1, sizeof *m);
    stk_device_memory_stats stats;
    stk_error err;

    *m = (model){.fake = &fake_memory, .random = seed};
    fake_init(&fake_memory, "model");
    stki_count_set(&fake_memory.limit_bytes, limit);
    fake_memory.freed = driver_takes_back;
    fake_memory.context = m;
    assert_ok(stki_caching_pool_create(&fake_memory.base, kind, &m->pool, &err));
    *(kind == STK_MEMORY_PINNED ? &fake_memory.base.pinned_pool : &fake_memory.base.pool) = m->pool;
    pool_set_patience(m->pool, 0);
    for (int i = 0; i < STREAMS; i++)
        assert_ok(stk_stream_create(&fake_memory.base, &m->streams[i], &err));
    for (int i = 0; i < STEPS; i++) {
        step(m);
        if (i % 16 == 0)
            check_sums(m);
    }
    assert_true(m->got > STEPS / 5 && m->reused > m->got / 2);
    while (m->live_count > 0)
        drop(m, m->live_count - 1);
    assert_ok(fake_synchronize(&fake_memory.base, &err));
    (void)stki_pool_process(stki_caching_pool_of(m->pool));
    m->pool->ops->record_stream(m->pool, m, m->streams[0]); /* takes the lock once more, which frees exact blocks */
    check_sums(m);
    /* Everything has merged, so segments are whole. */
    for (const stki_pool_segment *at = stki_caching_pool_of(m->pool)->segments; at; at = at->next)
        assert_true(stki_pool_whole(at));
    assert_ok(m->pool->ops->empty(m->pool, &err));
    m->pool->ops->stats(m->pool, &stats);
    assert_int_equal(stats.reserved_bytes, 0);
    assert_int_equal(stats.segments, 0);
    assert_int_equal(stki_counted(&fake_memory.allocs), stki_counted(&fake_memory.frees));
    assert_true(limit > 1000 * MIB || stats.retries > 0);
    for (int i = 0; i < STREAMS; i++)
        stk_stream_destroy(m->streams[i]);
    stki_caching_pool_destroy(m->pool);
    fake_memory.base.pool = fake_memory.base.pinned_pool = NULL;
    assert_int_equal(stki_counted(&fake_memory.events), 0);
    fake_fini(&fake_memory);
    free(m);
}

static void test_device_memory(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 3; seed++)
        run_model(STK_MEMORY_DEVICE, seed, 2000 * MIB);
}

static void test_pinned_memory(void **unused)
{
    (void)unused;
    for (uint64_t seed = 11; seed <= 12; seed++)
        run_model(STK_MEMORY_PINNED, seed, 2000 * MIB);
}

static void test_little_memory(void **unused)
{
    (void)unused;
    for (uint64_t seed = 21; seed <= 22; seed++) {
        run_model(STK_MEMORY_DEVICE, seed, 200 * MIB);
        run_model(STK_MEMORY_PINNED, seed, 200 * MIB);
    }
}

/* The same calls give the same addresses, relative to their segments, in every run. */
static void test_repeatable(void **unused)
{
    static int64_t places[2][400];

    (void)unused;
    for (int run = 0; run < 2; run++) {
        uint64_t random = 5;
        void *blocks[400] = {NULL};
        int64_t sizes[400];
        stki_pool *pool;
        stk_error err;
        fake_init(&fake_memory, "model");
        assert_ok(stki_caching_pool_create(&fake_memory.base, STK_MEMORY_DEVICE, &pool, &err));
        for (int i = 0; i < 400; i++) {
            sizes[i] = stkt_random_in(&random, 1, 4000);
            assert_ok(pool->ops->alloc(pool, sizes[i], NULL, &blocks[i], &err));
            places[run][i] = (char *)blocks[i] - stki_caching_pool_of(pool)->segments->address;
            if (i > 20)
                pool->ops->free(pool, blocks[i - 20], sizes[i - 20]);
        }
        assert_int_equal(stki_caching_pool_of(pool)->stats.segments, 1);
        stki_caching_pool_destroy(pool);
        fake_fini(&fake_memory);
    }
    assert_memory_equal(places[0], places[1], sizeof places[0]);
}

/* ---- threads ---- */

enum { THREADS = 4, THREAD_STEPS = 3000, HELD = 16 };

typedef struct worker {
    stki_pool *pool;
    int number;
    stki_counter *wrong, *stop;
} worker;

static void fill(char *block, int64_t bytes, char value)
{
    if (bytes > 0)
        block[0] = block[bytes / 2] = block[bytes - 1] = value;
}

static bool is_filled(const char *block, int64_t bytes, char value)
{
    return bytes == 0 || (block[0] == value && block[bytes / 2] == value && block[bytes - 1] == value);
}

static void run_worker(void *context)
{
    worker *w = context;
    uint64_t random = (uint64_t)w->number + 100;
    char *blocks[HELD] = {NULL};
    int64_t sizes[HELD] = {0};
    stk_stream *mine = NULL, *other = NULL;
    stk_error err;

    if (stk_stream_create(w->pool->device, &mine, &err) || stk_stream_create(w->pool->device, &other, &err))
        abort();
    for (int i = 0; i < THREAD_STEPS; i++) {
        int at = (int)(stkt_random(&random) % HELD);
        char value = (char)(w->number * HELD + at);
        void *out;
        if (blocks[at]) {
            stki_count(w->wrong, !is_filled(blocks[at], sizes[at], value));
            if (i % 3 == 0) {
                fake_queue(other, 1);
                w->pool->ops->record_stream(w->pool, blocks[at], other);
            }
            w->pool->ops->free(w->pool, blocks[at], sizes[at]);
        }
        blocks[at] = NULL;
        sizes[at] = stkt_random_in(&random, 0, i % 10 == 0 ? 6 * MIB : 5000);
        if (w->pool->ops->alloc(w->pool, sizes[at], mine, &out, &err) != STK_OK)
            continue;
        blocks[at] = out;
        fill(blocks[at], sizes[at], value);
        if (i % 5 == 0)
            fake_finish(other);
        if (i % 500 == 250) {
            stk_stream_destroy(other);
            if (stk_stream_create(w->pool->device, &other, &err))
                abort();
        }
    }
    for (int at = 0; at < HELD; at++)
        w->pool->ops->free(w->pool, blocks[at], sizes[at]);
    stk_stream_destroy(mine);
    stk_stream_destroy(other);
}

static void run_asker(void *context)
{
    worker *w = context;

    while (!stki_counted(w->stop)) {
        stk_device_memory_stats stats;
        char *text = NULL;
        w->pool->ops->stats(w->pool, &stats);
        stki_count(w->wrong, stats.allocated_bytes > stats.active_bytes || stats.active_bytes > stats.reserved_bytes);
        (void)w->pool->ops->empty(w->pool, NULL);
        if (w->pool->ops->snapshot(w->pool, &text, NULL) == STK_OK)
            stk_text_free(text);
        stki_sleep_ns(500000);
    }
}

static void test_threads(void **unused)
{
    stki_thread *threads[THREADS], *asker;
    worker workers[THREADS + 1];
    stki_counter wrong = 0, stop = 0;
    stki_pool *pool;
    stk_error err;

    (void)unused;
    fake_init(&fake_memory, "model");
    stki_count_set(&fake_memory.limit_bytes, 150 * MIB);
    assert_ok(stki_caching_pool_create(&fake_memory.base, STK_MEMORY_DEVICE, &pool, &err));
    fake_memory.base.pool = pool;
    pool_set_patience(pool, 1000000);
    for (int i = 0; i <= THREADS; i++) {
        workers[i] = (worker){.pool = pool, .number = i, .wrong = &wrong, .stop = &stop};
        assert_ok(stki_thread_start(i < THREADS ? &threads[i] : &asker, "pool", i < THREADS ? run_worker : run_asker,
                                    &workers[i], &err));
    }
    for (int i = 0; i < THREADS; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
    stki_count_set(&stop, 1);
    assert_true(stki_thread_join(asker, INT64_MAX));
    assert_int_equal(stki_counted(&wrong), 0);
    assert_ok(fake_synchronize(&fake_memory.base, &err));
    assert_ok(pool->ops->empty(pool, &err));
    pool_check(pool);
    assert_int_equal(stki_caching_pool_of(pool)->stats.reserved_bytes, 0);
    assert_int_equal(stki_counted(&fake_memory.reserved_bytes), 0);
    assert_int_equal(stki_caching_pool_of(pool)->errors, 0);
    stki_caching_pool_destroy(pool);
    fake_memory.base.pool = NULL;
    fake_fini(&fake_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_memory), cmocka_unit_test(test_pinned_memory),
        cmocka_unit_test(test_little_memory), cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
