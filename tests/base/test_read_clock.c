/* Tests of the clocks inside reads: they count only for the thread that set them, and only one in sixteen short calls
 * is timed, on behalf of all of them. */
#include "read_clock.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void nothing_is_counted_without_clocks(void **state)
{
    (void)state;
    assert_int_equal(stki_read_work_begin(STKI_READ_DECODE, true), 0);
    assert_int_equal(stki_read_call_begin(), 0);
    stki_read_work_end(STKI_READ_DECODE, 0);
    stki_read_call_end(0);
}

static void each_part_has_its_clock(void **state)
{
    (void)state;
    for (int part = 0; part < STKI_READ_COUNT; part++) {
        stki_read_clocks clocks = {0};
        stki_read_clocks_set(&clocks);
        const int64_t began = stki_read_work_begin((enum stki_read_work)part, true);
        assert_true(began > 0);
        stki_read_work_end((enum stki_read_work)part, began - 1000000);
        stki_read_clocks_set(NULL);
        for (int i = 0; i < STKI_READ_COUNT; i++)
            assert_true(i == part ? stki_counted(&clocks.ns[i]) >= 1000000 : stki_counted(&clocks.ns[i]) == 0);
    }
    assert_int_equal(stki_read_work_begin(STKI_READ_DECODE, true), 0);
}

/* Makes `calls` calls that appear to take `ns` each, because their start is moved back. Returns how many were timed. */
static int timed_calls(stki_read_clocks *clocks, int calls, int64_t ns)
{
    int timed = 0;

    stki_read_clocks_set(clocks);
    for (int i = 0; i < calls; i++) {
        const int64_t began = stki_read_call_begin();
        timed += began != 0;
        stki_read_call_end(began == 0 ? 0 : began - ns);
    }
    stki_read_clocks_set(NULL);
    return timed;
}

static void long_calls_are_all_timed(void **state)
{
    stki_read_clocks clocks = {0};

    (void)state;
    assert_int_equal(timed_calls(&clocks, 100, 5000000), 100);
    assert_true(stki_counted(&clocks.ns[STKI_READ_CALL]) >= 100 * INT64_C(5000000));
}

/* A timed call represents all calls since the last timed one: here the sixteenth call is the first that is timed, so it
 * counts sixteen times. Because it was long, all following calls are timed. */
static void timed_calls_represent_the_others(void **state)
{
    stki_read_clocks clocks = {.skip = 15, .weight = 16};

    (void)state;
    assert_int_equal(timed_calls(&clocks, 15, 5000000), 0);
    assert_int_equal(stki_counted(&clocks.ns[STKI_READ_CALL]), 0);
    assert_int_equal(timed_calls(&clocks, 1, 5000000), 1);
    assert_true(stki_counted(&clocks.ns[STKI_READ_CALL]) >= 16 * INT64_C(5000000));
    assert_int_equal(clocks.weight, 1);
    assert_int_equal(clocks.skip, 0);
}

/* After a conversion that took 50 µs, the next sixteen are watched for page faults. Here no page is read from a disk,
 * so no wait is counted. */
static void long_conversions_are_watched(void **state)
{
    stki_read_clocks clocks = {0};
    stki_paging paging;

    (void)state;
    stki_paging_begin(&clocks, &paging);
    assert_false(paging.watched);
    assert_int_equal(stki_paging_end(&clocks, &paging, 49999), 0);
    stki_paging_begin(&clocks, &paging);
    assert_false(paging.watched);
    assert_int_equal(stki_paging_end(&clocks, &paging, 50000), 0);
    for (int i = 0; i < 16; i++) {
        stki_paging_begin(&clocks, &paging);
        assert_true(paging.watched);
        (void)stki_paging_end(&clocks, &paging, 10);
    }
    stki_paging_begin(&clocks, &paging);
    assert_false(paging.watched);
}

/* Without new faults or context switches, the wait time is zero. With them, it is the elapsed time minus the CPU
 * time. */
static void waiting_is_elapsed_minus_cpu_time(void **state)
{
    stki_paging before = {.watched = true};
    int64_t none = -1;

    (void)state;
    for (int i = 0; i < 100 && none != 0; i++) { /* the thread may be preempted or fault between the two readings */
        stki_paging_look(&before);
        none = stki_paging_waited(&before, 1000000000);
    }
    assert_int_equal(none, 0);
    before.waits--;
    before.cpu_ns -= 300000; /* as if 0.3 ms of CPU time had been used since */
    const int64_t waited = stki_paging_waited(&before, 1000000000);
    assert_in_range(waited, 1, 1000000000 - 300000);
    assert_int_equal(stki_paging_waited(&before, 100000), 0); /* shorter than the CPU time */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_counted_without_clocks), cmocka_unit_test(each_part_has_its_clock),
        cmocka_unit_test(long_calls_are_all_timed),          cmocka_unit_test(timed_calls_represent_the_others),
        cmocka_unit_test(long_conversions_are_watched),      cmocka_unit_test(waiting_is_elapsed_minus_cpu_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
