/* stki-threads */
/* Tests of the rules of the caching pool one by one, on a device whose memory, streams and failures the test controls.
 * Random sequences of calls are in test_caching_pool_model.c, reports in test_caching_pool_report.c. */
#include "calm.h"
#include "device_memory.h"
#include "faults.h"
#include "pool_fixture.h"
#include <stoker/stoker.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- sizes ---- */

static void test_segments(void **unused)
{
    static const struct {
        int64_t bytes, device_segment, pinned_segment, block;
    } rows[] = {
        {0, 2 * MIB, 2 * MIB, 512},
        {1, 2 * MIB, 2 * MIB, 512},
        {512, 2 * MIB, 2 * MIB, 512},
        {513, 2 * MIB, 2 * MIB, 1024},
        {MIB, 2 * MIB, 2 * MIB, MIB},
        {MIB + 1, 20 * MIB, MIB + 4 * KIB, MIB + 512},
        {10 * MIB, 20 * MIB, 10 * MIB, 10 * MIB},
        {10 * MIB + 1, 12 * MIB, 10 * MIB + 4 * KIB, 10 * MIB + 512},
        {33 * MIB, 34 * MIB, 33 * MIB, 33 * MIB}, /* row W35: pinned memory takes the requested size, not 64 MiB */
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *block = get(rows[i].bytes, NULL), *locked = get_from(pinned, rows[i].bytes, NULL);
        int64_t rest = rows[i].device_segment - rows[i].block;
        int64_t keeps = rest > (rows[i].bytes <= MIB ? 0 : MIB) ? rows[i].block : rows[i].device_segment;
        assert_int_equal(stats_of(pool).reserved_bytes, rows[i].device_segment);
        assert_int_equal(stats_of(pinned).reserved_bytes, rows[i].pinned_segment);
        assert_int_equal(stats_of(pool).allocated_bytes, rows[i].bytes);
        assert_int_equal(stats_of(pool).active_bytes, keeps);
        memset(block, 1, (size_t)rows[i].bytes);
        put(block, rows[i].bytes);
        pinned->ops->free(pinned, locked, rows[i].bytes);
        pool_check(pool);
        assert_int_equal(stats_of(pool).active_bytes, 0);
        assert_int_equal(stats_of(pool).largest_free, rows[i].device_segment);
        empty(pool);
        empty(pinned);
        assert_int_equal(reserved(), 0);
    }
}

static void test_best_fit(void **unused)
{
    char *small = get(100, NULL), *blocks[6];
    static const int64_t sizes[6] = {4096, 512, 1024, 512, 1024, 512};

    (void)unused;
    for (int i = 0; i < 6; i++)
        blocks[i] = get(sizes[i], NULL);
    assert_ptr_equal(blocks[0], small + 512); /* from the front, one after another */
    assert_ptr_equal(blocks[5], small + 512 + 4096 + 512 + 1024 + 512 + 1024);
    put(blocks[4], 1024);
    put(blocks[2], 1024);
    put(blocks[0], 4096);
    pool_check(pool);
    assert_ptr_equal(get(1000, NULL), blocks[2]); /* the smallest that fits; of two equal ones the lower */
    assert_ptr_equal(get(1024, NULL), blocks[4]);
    assert_ptr_equal(get(600, NULL), blocks[0]); /* splits the block */
    assert_ptr_equal(get(512, NULL), blocks[0] + 1024);
    assert_int_equal(stats_of(pool).driver_allocations, 1);
    put(blocks[0], 600);
    put(blocks[0] + 1024, 512); /* merges on both sides */
    assert_ptr_equal(get(4096, NULL), blocks[0]);
    assert_int_equal(stats_of(pool).segments, 1);
    /* The rest of a medium segment, up to 1 MiB, is too small for other blocks and stays with its block. */
    small = get(9 * MIB, NULL);
    blocks[0] = get(10 * MIB, NULL);
    assert_ptr_equal(blocks[0], small + 9 * MIB);
    assert_int_equal(stats_of(pool).segments, 2);
    blocks[1] = get(2 * MIB, NULL); /* only 1 MiB is left there, so a new segment is needed */
    assert_int_equal(stats_of(pool).segments, 3);
    assert_int_equal(stats_of(pool).driver_allocations, 3);
}

/* Cached allocations and frees allocate nothing on the heap once they have run. */
static void test_no_heap(void **unused)
{
    stk_stream *stream = new_stream(), *other = new_stream();
    stki_memory_stats before, after;

    (void)unused;
    for (int round = 0; round < 3; round++) {
        char *blocks[100];
        if (round == 1)
            stki_memory_read(STKI_MEM_HOST, &before);
        for (int i = 0; i < 100; i++)
            blocks[i] = get(100 + 700 * i, stream);
        stk_tag_push("here");
        for (int i = 0; i < 100; i += 2) {
            put(blocks[i], 100 + 700 * i);
            blocks[i] = get(50 + 300 * i, stream);
        }
        stk_tag_pop();
        for (int i = 0; i < 100; i++) {
            pool->ops->record_stream(pool, blocks[i], other);
            put(blocks[i], i % 2 ? 100 + 700 * i : 50 + 300 * i);
        }
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.total_allocations, before.total_allocations);
    assert_int_equal(after.bytes, before.bytes);
}

static void test_exact(void **unused)
{
    void *slot = NULL, *locked = NULL, *nothing = NULL;
    stk_stream *stream = new_stream();
    stk_error err;

    (void)unused;
    assert_ok(stki_device_alloc_exact(&fake.base, STK_MEMORY_PINNED, 77 * MIB + 13, "slots", &locked, &err));
    assert_int_equal(reserved(), 77 * MIB + 13); /* row W35 */
    assert_int_equal(stats_of(pinned).allocated_bytes, 77 * MIB + 13);
    assert_int_equal(stats_of(pinned).active_bytes, 77 * MIB + 13);
    assert_ok(stki_device_alloc_exact(&fake.base, STK_MEMORY_DEVICE, 3 * KIB, "slots", &slot, &err));
    assert_ok(stki_device_alloc_exact(&fake.base, STK_MEMORY_DEVICE, 0, "slots", &nothing, &err));
    assert_int_equal(stats_of(pool).reserved_bytes, 3 * KIB + 1);
    assert_int_equal(stats_of(pool).segments, 2);
    pool_check(pool);
    stki_device_free(&fake.base, STK_MEMORY_PINNED, locked, 77 * MIB + 13);
    assert_int_equal(stats_of(pinned).reserved_bytes, 0); /* not cached */
    stki_device_free(&fake.base, STK_MEMORY_DEVICE, nothing, 0);
    /* A stream still reads it, so it is freed when that has finished. */
    fake_queue(stream, 1);
    stki_device_record_stream(&fake.base, STK_MEMORY_DEVICE, slot, stream);
    stki_device_free(&fake.base, STK_MEMORY_DEVICE, slot, 3 * KIB);
    assert_int_equal(stats_of(pool).reserved_bytes, 3 * KIB);
    empty(pool);
    assert_int_equal(stats_of(pool).reserved_bytes, 3 * KIB);
    fake_finish(stream);
    empty(pool);
    assert_int_equal(stats_of(pool).reserved_bytes, 0);
    assert_int_equal(stki_counted(&fake.frees), 3);
    assert_status(stki_device_alloc_exact(&fake.base, STK_MEMORY_DEVICE, -1, "slots", &slot, &err), STK_E_BAD_ARG);
    assert_status(pool->ops->alloc(pool, -1, NULL, &slot, &err), STK_E_BAD_ARG);
}

/* ---- streams ---- */

static void test_streams_keep_their_blocks(void **unused)
{
    stk_stream *a = new_stream(), *b = new_stream();
    char *block = get(1000, a), *other;

    (void)unused;
    fake_queue(a, 1);
    put(block, 1000);
    other = get(1000, b);
    assert_ptr_not_equal(other, block);
    assert_ptr_not_equal(get(1000, NULL), block);
    assert_int_equal(stats_of(pool).segments, 3); /* one per stream; NULL counts as a stream */
    assert_ptr_equal(get(1000, a), block);        /* at once, because stream order is sufficient */
}

static void test_recorded_streams(void **unused)
{
    stk_stream *owner = new_stream(), *a = new_stream(), *b = new_stream();
    char *block = get(1000, owner);

    (void)unused;
    fake_queue(a, 1);
    fake_queue(b, 1);
    pool->ops->record_stream(pool, block, a);
    pool->ops->record_stream(pool, block, b);
    pool->ops->record_stream(pool, block, a);
    pool->ops->record_stream(pool, block, owner);
    fake_queue(a, 1); /* work queued after the call but before the free also counts */
    put(block, 1000);
    assert_int_equal(stats_of(pool).allocated_bytes, 0);
    assert_int_equal(stats_of(pool).active_bytes, 1024);
    assert_int_equal(stki_counted(&fake.events), 2);
    assert_ptr_not_equal(get(1000, owner), block);
    stki_count_set(&fake_engine_of(a)->done, 1);
    fake_finish(b);
    assert_ptr_not_equal(get(1000, owner), block);
    fake_finish(a);
    assert_ptr_equal(get(1000, owner), block);
    /* The free also ended the recorded uses, so work in these streams no longer delays reuse. */
    fake_queue(a, 1);
    put(block, 1000);
    assert_ptr_equal(get(1000, owner), block);
    assert_int_equal(stki_counted(&fake.events), 2);
}

/* The CPU writes to a pinned block as soon as it is allocated, so a block is not reused before the work of every
 * recorded stream is done, even its own. */
static void test_pinned_waits_for_its_own_stream(void **unused)
{
    stk_stream *a = new_stream(), *b = new_stream();
    char *block = get_from(pinned, 1000, a);

    (void)unused;
    fake_queue(a, 1);
    pinned->ops->record_stream(pinned, block, a);
    pinned->ops->free(pinned, block, 1000);
    assert_ptr_not_equal(get_from(pinned, 1000, a), block);
    fake_finish(a);
    assert_ptr_equal(get_from(pinned, 1000, b), block);
    pinned->ops->free(pinned, block, 1000);
    assert_ptr_equal(get_from(pinned, 1000, NULL), block); /* one pool for all streams */
}

static void test_destroyed_stream(void **unused)
{
    stk_stream *gone = new_stream(), *next;
    char *cached = get(2 * MIB, gone), *held = get(3 * MIB, gone), *whole = get(30 * MIB, gone), *got;

    (void)unused;
    fake_queue(gone, 1);
    put(cached, 2 * MIB);
    put(whole, 30 * MIB);
    {
        fake_engine *engine = fake_engine_of(gone);
        stk_stream_destroy(gone);
        pool_check(pool);
        next = new_stream();
        assert_ptr_equal(next, gone); /* the driver reuses the handle */
        got = get(30 * MIB, next);
        assert_ptr_not_equal(got, whole); /* work of the old stream is still running */
        assert_ptr_not_equal(get(2 * MIB, next), cached);
        stki_count_set(&engine->done, 1);
    }
    assert_ptr_equal(get(29 * MIB, next), whole); /* a whole segment without an owner becomes this stream's */
    fake_queue(next, 1);
    put(whole, 29 * MIB);
    assert_ptr_equal(get(30 * MIB, next), whole);
    put(held, 3 * MIB);
    pool_check(pool);
}

static void test_part_of_nobodys_segment(void **unused)
{
    stk_stream *gone = new_stream(), *a = new_stream();
    char *held = get(2 * MIB, gone), *block, *beside;

    (void)unused;
    stk_stream_destroy(gone);
    assert_int_equal(stats_of(pool).largest_free, 18 * MIB);
    /* not for the NULL stream, for which no uses are recorded */
    assert_ptr_not_equal(get(2 * MIB, NULL), held + 2 * MIB);
    block = get(2 * MIB, a);
    assert_ptr_equal(block, held + 2 * MIB);
    fake_queue(a, 1);
    put(block, 2 * MIB);
    beside = get(2 * MIB, a);
    assert_ptr_equal(beside, held + 4 * MIB); /* the first block is still in use by stream a */
    assert_ptr_not_equal(get(19 * MIB, a), held);
    fake_finish(a);
    assert_ptr_equal(get(2 * MIB, new_stream()), block);
    put(block, 2 * MIB);
    put(held, 2 * MIB);
    put(beside, 2 * MIB);
    assert_ptr_equal(get(19 * MIB, NULL), held); /* whole again, and free for any stream */
}

static void test_recorded_stream_is_destroyed(void **unused)
{
    stk_stream *owner = new_stream(), *reader = new_stream();
    fake_engine *engine = fake_engine_of(reader);
    char *block = get(1000, owner), *late = get(1000, owner);

    (void)unused;
    fake_queue(reader, 1);
    pool->ops->record_stream(pool, block, reader);
    pool->ops->record_stream(pool, late, reader);
    put(block, 1000);
    stk_stream_destroy(reader);
    put(late, 1000);
    pool_check(pool);
    assert_int_equal(stats_of(pool).active_bytes, 2048);
    stki_count_set(&engine->done, 1);
    assert_ptr_equal(get(1000, owner), block);
    assert_ptr_equal(get(1000, owner), late);
    assert_int_equal(stats_of(pool).active_bytes, 2048);
    stk_stream_destroy(new_stream()); /* frees what is done */
    assert_int_equal(stki_counted(&fake.events), 0);
}

/* ---- emptying the cache ---- */

static void test_empty(void **unused)
{
    stk_stream *busy = new_stream();
    char *kept = get(1000, NULL), *half = get(1000, NULL), *whole = get(30 * MIB, NULL), *running = get(40 * MIB, busy);
    stk_device_memory_stats stats;
    stk_error err;

    (void)unused;
    put(half, 1000);
    put(whole, 30 * MIB);
    fake_queue(busy, 1);
    put(running, 40 * MIB);
    assert_ok(stk_device_empty_cache(&fake.base, &err));
    stats = stats_of(pool);
    assert_int_equal(stats.reserved_bytes, 42 * MIB); /* in use or not finished; the call does not wait */
    assert_int_equal(stats.split_bytes, 2 * MIB - 1024);
    assert_int_equal(stats.driver_frees, 1);
    assert_int_equal(stki_counted(&fake.synchronizes), 0);
    fake_finish(busy);
    put(kept, 1000);
    assert_int_equal(stats_of(pool).split_bytes, 0);
    assert_ok(stk_device_empty_cache(&fake.base, &err));
    assert_int_equal(reserved(), 0);
}

/* ---- out of memory ---- */

static void test_cache_makes_room(void **unused)
{
    stk_stream *a = new_stream();
    char *block = get(30 * MIB, a);

    (void)unused;
    stki_count_set(&fake.limit_bytes, 40 * MIB);
    put(block, 30 * MIB);
    put(get(30 * MIB, NULL), 30 * MIB); /* a's cached memory is freed */
    assert_int_equal(stats_of(pool).retries, 1);
    assert_int_equal(stats_of(pool).driver_frees, 1);
    assert_int_equal(stats_of(pool).out_of_memory, 0);
    assert_int_equal(reserved(), 30 * MIB);
}

static void test_events_make_room(void **unused)
{
    stk_stream *owner = new_stream(), *other = new_stream();
    char *block = get(30 * MIB, owner);
    stk_error err;
    void *out;

    (void)unused;
    stki_count_set(&fake.limit_bytes, 40 * MIB);
    fake_queue(other, 1);
    pool->ops->record_stream(pool, block, other);
    put(block, 30 * MIB);
    assert_status(pool->ops->alloc(pool, 30 * MIB, owner, &out, &err), STK_E_MEMORY);
    assert_says("waiting for streams: 30.00 MiB");
    fake_finish(other);
    assert_ptr_equal(get(30 * MIB, owner), block);
    assert_int_equal(stats_of(pool).driver_frees, 0);
}

static void finish_soon(void *context)
{
    stki_sleep_ns(3000000);
    fake_finish_engine(context);
}

/* An allocation waits for memory that a stream will free. */
static void test_patience(void **unused)
{
    stk_stream *other = new_stream();
    char *block = get(30 * MIB, NULL);
    stki_thread *thread;
    stk_error err;

    (void)unused;
    stki_count_set(&fake.limit_bytes, 40 * MIB);
    pool_set_patience(pool, 60 * INT64_C(1000000000));
    fake_queue(other, 1);
    pool->ops->record_stream(pool, block, other);
    put(block, 30 * MIB);
    assert_ok(stki_thread_start(&thread, "finish", finish_soon, fake_engine_of(other), &err));
    put(get(32 * MIB, other), 32 * MIB);
    assert_true(stki_thread_join(thread, INT64_MAX));
    assert_int_equal(stats_of(pool).out_of_memory, 0);
}

static void test_failing_bookkeeping(void **unused)
{
    stk_stream *stream = new_stream(), *other = new_stream();

    (void)unused;
    for (int64_t n = 1; n < 40; n++) {
        void *blocks[4] = {NULL};
        stk_error err;
        stki_memory_fail_at(n);
        for (int i = 0; i < 4; i++) {
            stk_status status = i == 3 ? pool->ops->alloc_exact(pool, 1000, &blocks[i], &err)
                                       : pool->ops->alloc(pool, 1000 + 9 * MIB * i, stream, &blocks[i], &err);
            assert_true(status == STK_OK || status == STK_E_MEMORY);
            assert_true(status == STK_OK || (!blocks[i] && err.message[0]));
            if (blocks[i] && i % 2)
                pool->ops->record_stream(pool, blocks[i], other);
        }
        for (int i = 0; i < 4; i++)
            put(blocks[i], 0);
        stki_memory_fail_at(0);
        pool_check(pool);
        assert_int_equal(stats_of(pool).allocated_bytes, 0);
        assert_int_equal(stats_of(pool).active_bytes, 0);
        if (n % 8 == 0) {
            stki_caching_pool_destroy(pool); /* so that the following ones begin without spare memory */
            assert_ok(stki_caching_pool_create(&fake.base, STK_MEMORY_DEVICE, &pool, &err));
            pool_set_patience(pool, 0);
            fake.base.pool = pool;
        }
    }
}

static void test_failing_create(void **unused)
{
    static stk_device bare = {.name = "bare", .ops = &fake_ops};
    stk_status status = STK_E_MEMORY;
    stk_error err;

    (void)unused;
    for (int64_t n = 1; status; n++) {
        assert_true(n < 10);
        stki_memory_fail_at(n);
        status = stki_caching_pools_attach(&bare, &err);
        stki_memory_fail_at(0);
        assert_true(!status == (bare.pool && bare.pinned_pool));
        assert_true(!status || (status == STK_E_MEMORY && !bare.pool && !bare.pinned_pool));
    }
    stki_caching_pools_detach(&bare);
    stki_caching_pool_destroy(NULL);
}

/* If the use by a stream cannot be recorded, freeing the block waits for the stream. */
static void test_lost_use(void **unused)
{
    stk_stream *owner = new_stream(), *other = new_stream();
    char *block = get(1000, owner);

    (void)unused;
    stki_count_set(&fake.fail_events, 1);
    fake_queue(other, 5);
    pool->ops->record_stream(pool, block, other);
    put(block, 1000);
    assert_int_equal(stki_counted(&fake.synchronizes), 1);
    assert_ptr_equal(get(1000, owner), block);
    put(block, 1000);
    assert_int_equal(stki_counted(&fake.synchronizes), 1);
    /* The same if the event cannot be recorded, which also counts as an error of the device. */
    block = get(1000, owner);
    fake_queue(other, 1);
    pool->ops->record_stream(pool, block, other);
    stki_count_set(&fake.fail_records, 1);
    put(block, 1000);
    assert_int_equal(stki_counted(&fake.synchronizes), 2);
    assert_ptr_equal(get(1000, owner), block);
    assert_int_equal(stki_caching_pool_of(pool)->errors, 1);
}

static void test_destroy_without_events(void **unused)
{
    stk_stream *gone = new_stream();
    char *block = get(1000, gone);
    fake_engine *engine = fake_engine_of(gone);

    (void)unused;
    fake_queue(gone, 1);
    stki_count_set(&fake.fail_events, 1);
    {
        stki_thread *thread;
        stk_error err;
        assert_ok(stki_thread_start(&thread, "finish", finish_soon, engine, &err));
        stk_stream_destroy(gone); /* waits for the stream itself */
        assert_true(stki_thread_join(thread, INT64_MAX));
    }
    assert_int_equal(stki_counted(&engine->done), 1);
    put(block, 1000);
    assert_ptr_equal(get(1000, NULL), block);
}

/* A stream is destroyed and no event for its last work can be recorded: its memory is not reused before this work is
 * done. */
static void test_destroy_without_records(void **unused)
{
    stk_stream *gone = new_stream(), *owner = new_stream();
    char *cached = get(1000, gone), *block = get(1000, owner);
    fake_engine *engine = fake_engine_of(gone);
    stki_thread *thread;
    stk_error err;

    (void)unused;
    pool->ops->record_stream(pool, block, gone);
    put(cached, 1000);
    fake_queue(gone, 1);
    stki_count_set(&fake.fail_records, 1);
    assert_ok(stki_thread_start(&thread, "finish", finish_soon, engine, &err));
    stk_stream_destroy(gone);
    assert_int_equal(stki_counted(&engine->done), 1);
    assert_true(stki_thread_join(thread, INT64_MAX));
    put(block, 1000);
    assert_ptr_equal(get(1000, owner), block);
    assert_int_equal(stki_caching_pool_of(pool)->errors, 1);
}

/* ---- forks ---- */

static void use_pool(void *context)
{
    stki_counter *stop = context;

    while (!stki_counted(stop))
        put(get(3000, NULL), 3000);
}

/* Forks while another thread is in the pool: the child must not inherit a lock that stays locked. */
static void test_fork(void **unused)
{
    stki_counter stop = 0;
    stki_thread *thread;
    stk_error err;

    (void)unused;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it does not support forks of processes with threads */
#endif
    if (STKT_FORKS_ONLY_CALM)
        skip();
    assert_ok(stki_thread_start(&thread, "fork", use_pool, &stop, &err));
    for (int i = 0; i < 40; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(240); /* ends a child that hangs */
            put(get(500, NULL), 500);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stki_count_set(&stop, 1);
    assert_true(stki_thread_join(thread, INT64_MAX));
}

/* ---- errors ---- */

static void test_errors_are_kept(void **unused)
{
    stk_stream *owner = new_stream(), *other = new_stream();
    char *block = get(1000, owner), *text, stranger;
    stk_error err;

    (void)unused;
    fake_queue(other, 1);
    pool->ops->record_stream(pool, block, other);
    put(block, 1000);
    fake_engine_of(other)->broken = true;
    assert_ptr_equal(get(1000, owner), block); /* no work uses it any more */
    put(&stranger, 1);
    put(NULL, 0);
    assert_ok(stk_device_memory_summary(&fake.base, &text, &err));
    assert_non_null(strstr(
        text,
        "errors while returning memory: 2, the last one: freed a pointer that does not belong to this pool: bad_arg"));
    stk_text_free(text);
    assert_ok(pool->ops->snapshot(pool, &text, &err));
    assert_non_null(strstr(text, "\"errors\": 2, \"last_error\": \"freed a pointer"));
    stk_text_free(text);
    fake_engine_of(owner)->broken = true;
    put(block, 1000);
    empty(pool);
    assert_int_equal(reserved(), 0);
    assert_int_equal(stki_caching_pool_of(pool)->errors, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(test_segments),
        POOL_TEST(test_best_fit),
        POOL_TEST(test_no_heap),
        POOL_TEST(test_exact),
        POOL_TEST(test_streams_keep_their_blocks),
        POOL_TEST(test_recorded_streams),
        POOL_TEST(test_pinned_waits_for_its_own_stream),
        POOL_TEST(test_destroyed_stream),
        POOL_TEST(test_part_of_nobodys_segment),
        POOL_TEST(test_recorded_stream_is_destroyed),
        POOL_TEST(test_empty),
        POOL_TEST(test_cache_makes_room),
        POOL_TEST(test_events_make_room),
        POOL_TEST(test_patience),
        POOL_TEST(test_failing_bookkeeping),
        POOL_TEST(test_failing_create),
        POOL_TEST(test_lost_use),
        POOL_TEST(test_destroy_without_events),
        POOL_TEST(test_destroy_without_records),
        POOL_TEST(test_fork),
        POOL_TEST(test_errors_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
