/* stki-threads */
/* Tests of the search for the number of accelerators, which must find the largest that passes in few attempts, and of
 * accelerators that run at the same time, which must be as busy as their loaders permit. */
#include "error.h"
#include "loadbench_accelerators.h"
#include "loadbench_consumer.h"
#include "loadbench_feed.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct machine {
    int feeds, has_data_for, calls, fails_at;
};

static stk_status pretend(void *context, int accelerators, struct lb_feed *out, stk_error *err)
{
    struct machine *machine = context;

    machine->calls++;
    *out = (struct lb_feed){.accelerators = accelerators, .passed = accelerators <= machine->feeds};
    if (machine->calls == machine->fails_at)
        return stki_fail(err, STK_E_IO, "broken");
    if (accelerators > machine->has_data_for)
        return stki_fail(err, STK_E_EMPTY, "no batch for each");
    return STK_OK;
}

static void finds_the_largest(void **state)
{
    struct lb_feed_search search;
    stk_error err;

    (void)state;
    for (int most = 1; most <= 40; most += 13)
        for (int feeds = 0; feeds <= 45; feeds++)
            for (int data = 1; data <= 45; data += 4) {
                struct machine machine = {.feeds = feeds, .has_data_for = data};
                const int possible = data < most ? data : most;
                assert_int_equal(lb_feed_search(pretend, &machine, most, &search, &err), STK_OK);
                assert_int_equal(search.passed, feeds < possible ? feeds : possible);
                if (feeds < possible)
                    assert_int_equal(search.failed, feeds + 1);
                else
                    assert_int_equal(search.failed, 0);
                assert_int_equal(search.data_end, feeds >= data && data < most);
                assert_true(machine.calls <= 14);
            }
}

static void failures_end_the_search(void **state)
{
    struct lb_feed_search search;
    stk_error err;

    (void)state;
    for (int n = 1; n <= 5; n++) {
        struct machine machine = {.feeds = 9, .has_data_for = 1000, .fails_at = n};
        assert_int_equal(lb_feed_search(pretend, &machine, 100, &search, &err), STK_E_IO);
    }
    struct machine none = {.feeds = 9, .has_data_for = 0};
    assert_int_equal(lb_feed_search(pretend, &none, 100, &search, &err), STK_E_EMPTY);
}

static char path[] = "/tmp/stoker_feed_XXXXXX";

static void write_config(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Sources that sleep do not compete: each accelerator gets a batch every 20 ms and computes for 5 ms. A sleep is never
 * shorter than requested, so a busy machine cannot improve the result. */
static void as_busy_as_the_loader_permits(void **state)
{
    struct lb_config config;
    struct lb_feed feed;
    stk_error err;

    (void)state;
    write_config("dataset: {fields: {x: {synthetic: {count: 1000, shape: [4], dtype: u8, read_time: 20ms}}}}\n"
                 "loader: {batch_size: 1, num_workers: 1}\n"
                 "bench: {step: 5ms, ramp: 20ms, run_time: 300ms}\n");
    assert_int_equal(lb_config_open(path, NULL, 0, false, &config, &err), STK_OK);
    for (int n = 1; n <= 3; n += 2) {
        assert_int_equal(lb_feed_run(&config, n, &feed, &err), STK_OK);
        assert_int_equal(feed.accelerators, n);
        assert_int_equal(feed.workers, 1);
        assert_true(feed.mean > 0 && feed.mean < 0.6 && feed.least <= feed.mean && !feed.passed);
        assert_true(feed.samples_per_s > 0 && feed.samples_per_s < 120.0 * n);
    }
    lb_config_close(&config);
}

/* The loader is faster than the steps, so accelerators are kept busy. A rank reads only its part of the data, which is
 * one batch for each of three ranks. */
static void ranks_of_one_data_set(void **state)
{
    struct lb_config config;
    struct lb_feed feed;
    stk_error err;

    (void)state;
    write_config("dataset: {fields: {x: {synthetic: {count: 7, shape: [4], dtype: u8}}}}\n"
                 "loader: {batch_size: 2, num_workers: 1, last_batch: drop}\n"
                 "bench: {step: 20ms, ramp: 0, run_time: 1s, au_required: 0.02}\n");
    assert_int_equal(lb_config_open(path, NULL, 0, false, &config, &err), STK_OK);
    assert_int_equal(lb_feed_run(&config, 3, &feed, &err), STK_OK);
    assert_true(feed.mean > 0.02 && feed.mean <= 1 && feed.passed);
    assert_true(feed.steps >= 3);
    assert_int_equal(lb_feed_run(&config, 4, &feed, &err), STK_E_EMPTY);
    lb_config_close(&config);
}

/* If one accelerator fails, the others also stop. */
static void an_error_ends_all(void **state)
{
    struct lb_config config;
    struct lb_feed feed;
    stk_error err;

    (void)state;
    write_config("dataset: {fields: {x: {synthetic: {count: 100, shape: [4], dtype: u8, read_time: 5s}}}}\n"
                 "loader: {batch_size: 1, num_workers: 1, close_timeout: 100ms, num_epochs: 0}\n"
                 "bench: {step: 1ms, ramp: 0, run_time: 10ms}\n");
    const char *sets[] = {"dataset.fields.x.synthetic.read_time=0", "loader.num_epochs=1", "bench.run_time=1h",
                          "bench.ramp=1h"};
    assert_int_equal(lb_config_open(path, sets, 4, false, &config, &err), STK_OK);
    /* the epoch ends during the ramp, which would take an hour: nothing was measured, and the error says so */
    assert_int_equal(lb_feed_run(&config, 2, &feed, &err), STK_E_EMPTY);
    assert_non_null(strstr(err.message, "loader.num_epochs"));
    lb_config_close(&config);
}

static int begin(void **state)
{
    const int descriptor = mkstemp(path);

    (void)state;
    return descriptor < 0 || close(descriptor) != 0;
}

static int end(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_largest),
        cmocka_unit_test(failures_end_the_search),
        cmocka_unit_test(as_busy_as_the_loader_permits),
        cmocka_unit_test(ranks_of_one_data_set),
        cmocka_unit_test(an_error_ends_all),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
