/* Clocks inside of reads count for the thread that runs a tile, and nowhere else; short calls are timed one in sixteen
 * and count for all. */
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

/* A call is said to have taken long by moving its beginning back. */
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

/* The weight of what was timed is that of all: here each timed call is made to be long, so that all that follow are
 * timed, and the sixteen before the second one count as long as it. */
static void short_calls_count_for_those_not_timed(void **state)
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

/* What took long is watched for a while; no page came from a disk here, so that nothing counts as waiting for one. */
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

/* As many waits as before: nothing. More of them: the time that no processor was used, within the time it took. */
static void waiting_is_time_off_the_processor(void **state)
{
    stki_paging before = {.watched = true};

    (void)state;
    stki_paging_look(&before);
    before.waits--;
    before.cpu_ns -= 300000; /* 0.3 ms of processor time since */
    const int64_t waited = stki_paging_waited(&before, 1000000000);
    assert_in_range(waited, 1, 1000000000 - 300000);
    assert_int_equal(stki_paging_waited(&before, 100000), 0); /* shorter than the processor time */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_counted_without_clocks), cmocka_unit_test(each_part_has_its_clock),
        cmocka_unit_test(long_calls_are_all_timed),          cmocka_unit_test(short_calls_count_for_those_not_timed),
        cmocka_unit_test(long_conversions_are_watched),      cmocka_unit_test(waiting_is_time_off_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
