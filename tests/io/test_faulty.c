/* stki-threads */
/* Tests of the reader that fails and stalls on request (support/faulty.h). */
#include "allocate.h"
#include "clock.h"
#include "faults.h"
#include "faulty.h"
#include "reader.h"
#include "thread.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static stk_error err;

static stki_reader *make(const stki_faulty_opts *opts, int64_t min_length)
{
    stki_synthetic_opts source = STKI_SYNTHETIC_OPTS_INIT;
    stki_reader *inner, *reader;

    source.count = 10;
    source.dtype = STK_U8;
    source.ndim = 1;
    source.shape[0] = 16;
    source.min_length = min_length;
    assert_int_equal(stki_synthetic_open(&source, &inner, &err), STK_OK);
    assert_int_equal(stki_faulty_open(inner, opts, &reader, &err), STK_OK);
    return reader;
}

static stk_status read_one(const stki_reader *reader, int64_t index)
{
    stki_synthetic_opts source = {.count = 10, .dtype = STK_U8, .ndim = 1, .shape = {16}, .min_length = -1};
    stki_scratch scratch;
    unsigned char expected[16];
    stk_status status;
    stk_tensor t;

    stki_scratch_init(&scratch);
    status = reader->ops->read(reader, index, NULL, &scratch, &t, &err);
    if (!status) {
        stki_synthetic_fill(&source, index, t.shape[0], expected);
        assert_memory_equal(t.data, expected, (size_t)t.shape[0]);
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    return status;
}

static void test_without_faults_it_is_the_inner_reader(void **state)
{
    stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
    stki_reader *reader = make(&opts, -1);
    static const int64_t ahead[] = {1, 2};

    (void)state;
    assert_int_equal(reader->count, 10);
    assert_int_equal(reader->dtype, STK_U8);
    assert_int_equal(reader->shape[0], 16);
    assert_string_equal(reader->path, "synthetic");
    assert_null(reader->base); /* so that every read goes through it */
    assert_null(reader->ops->shape);
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(read_one(reader, i), STK_OK);
    assert_int_equal(read_one(reader, 10), STK_E_RANGE);
    reader->ops->will_need(reader, ahead, 2);
    stki_reader_destroy(reader);
    reader = make(&opts, 3);
    assert_true(reader->variable);
    for (int64_t i = 0; i < 10; i++) {
        int64_t shape;
        assert_int_equal(reader->ops->shape(reader, i, &shape, &err), STK_OK);
        assert_in_range(shape, 3, 16);
    }
    stki_reader_destroy(reader);
}

static void test_one_bad_record(void **state)
{
    stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
    stki_reader *reader;

    (void)state;
    opts.fail_at = 3;
    opts.status = STK_E_CORRUPT;
    reader = make(&opts, -1);
    for (int round = 0; round < 2; round++)
        for (int64_t i = 0; i < 10; i++)
            assert_int_equal(read_one(reader, i), i == 3 ? STK_E_CORRUPT : STK_OK);
    assert_int_equal(read_one(reader, 3), STK_E_CORRUPT);
    assert_int_equal(err.record, 3);
    assert_non_null(strstr(err.message, "synthetic: record 3: made to fail"));
    stki_reader_destroy(reader);
}

static void test_all_reads_fail_from_the_nth_on(void **state)
{
    stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
    stki_reader *reader;

    (void)state;
    opts.fail_from_read = 4;
    reader = make(&opts, -1);
    for (int i = 1; i <= 8; i++)
        assert_int_equal(read_one(reader, 5), i < 4 ? STK_OK : STK_E_IO);
    stki_reader_destroy(reader);
}

static void test_slowness(void **state)
{
    stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
    stki_reader *reader;
    int64_t start;

    (void)state;
    opts.slow_at = 2;
    opts.slow_ns = 30000000;
    opts.all_slow_ns = 5000000;
    reader = make(&opts, -1);
    start = stki_now_ns();
    assert_int_equal(read_one(reader, 1), STK_OK);
    assert_true(stki_now_ns() - start >= 5000000);
    start = stki_now_ns();
    assert_int_equal(read_one(reader, 2), STK_OK);
    assert_true(stki_now_ns() - start >= 35000000);
    stki_reader_destroy(reader);
}

struct sleeper {
    const stki_reader *reader;
    stk_status status;
};

static void sleep_in_read(void *context)
{
    struct sleeper *s = context;

    s->status = read_one(s->reader, 7);
}

static void test_sleeps_until_woken(void **state)
{
    stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
    struct sleeper sleepers[2];
    stki_thread *threads[2];
    stki_reader *reader;

    (void)state;
    opts.slow_at = 7;
    opts.slow_ns = INT64_MAX;
    reader = make(&opts, -1);
    for (int i = 0; i < 2; i++) {
        sleepers[i] = (struct sleeper){reader, STK_E_CLOSED};
        assert_int_equal(stki_thread_start(&threads[i], "sleeper", sleep_in_read, &sleepers[i], &err), STK_OK);
    }
    assert_false(stki_thread_join(threads[0], stki_deadline_ns(30000000)));
    assert_int_equal(read_one(reader, 6), STK_OK); /* only record 7 sleeps */
    stki_faulty_wake(reader);
    for (int i = 0; i < 2; i++) {
        assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(sleepers[i].status, STK_OK);
    }
    assert_int_equal(read_one(reader, 7), STK_OK); /* once woken, reads do not sleep again */
    stki_reader_destroy(reader);
}

static void test_every_allocation_failing(void **state)
{
    stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
    stki_memory_stats before, after;
    stk_status status;
    int n = 0;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stki_synthetic_opts source = {.count = 1, .dtype = STK_U8, .min_length = -1};
        stki_reader *inner, *reader = NULL;
        assert_int_equal(stki_synthetic_open(&source, &inner, &err), STK_OK);
        stki_memory_fail_at(++n);
        status = stki_faulty_open(inner, &opts, &reader, &err); /* owns `inner` now, even if it failed */
        stki_memory_fail_at(0);
        assert_int_equal(status, reader ? STK_OK : STK_E_MEMORY);
        stki_reader_destroy(reader);
    } while (status && n < 50);
    assert_int_equal(n, 3);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_faults_it_is_the_inner_reader),
        cmocka_unit_test(test_one_bad_record),
        cmocka_unit_test(test_all_reads_fail_from_the_nth_on),
        cmocka_unit_test(test_slowness),
        cmocka_unit_test(test_sleeps_until_woken),
        cmocka_unit_test(test_every_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
