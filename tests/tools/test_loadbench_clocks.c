/* Tests of the loader's counters over a span: differences, and times that are limited to the span. */
#include "loadbench_clocks.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void counters_are_differences(void **state)
{
    const stk_loader_stats before = {.workers = 2, .batches = 1, .rows = 2, .tiles = 3, .convert_ns = 4, .slots = 5};
    stk_loader_stats stats = {.workers = 2, .batches = 11, .rows = 22, .tiles = 33, .convert_ns = 44, .slots = 5};

    (void)state;
    lb_stats_since(&stats, &before);
    assert_int_equal(stats.batches, 10);
    assert_int_equal(stats.rows, 20);
    assert_int_equal(stats.tiles, 30);
    assert_int_equal(stats.convert_ns, 40);
    assert_int_equal(stats.slots, 5); /* the value at the end of the span */
    assert_int_equal(stats.workers, 2);
}

static void times_within_the_span_are_unchanged(void **state)
{
    stk_loader_stats stats = {
        .workers = 2, .convert_ns = 120, .wait_slot_ns = 50, .wait_work_ns = 30, .wait_next_ns = 100};

    (void)state;
    lb_stats_fit(&stats, 100);
    assert_int_equal(stats.convert_ns, 120);
    assert_int_equal(stats.wait_slot_ns, 50);
    assert_int_equal(stats.wait_work_ns, 30);
    assert_int_equal(stats.wait_next_ns, 100);
}

/* Two workers had each waited for 500 before a span of 100, in which each worked for 60. Of the waiting time, 80
 * belongs to the span. */
static void waits_from_before_are_cut(void **state)
{
    stk_loader_stats stats = {.workers = 2, .convert_ns = 120, .wait_slot_ns = 1080, .wait_next_ns = 101};

    (void)state;
    lb_stats_fit(&stats, 100);
    assert_int_equal(stats.convert_ns, 120);
    assert_int_equal(stats.wait_slot_ns, 80);
    assert_int_equal(stats.wait_next_ns, 100);
    stats = (stk_loader_stats){.workers = 1, .order_ns = 10, .wait_slot_ns = 30, .wait_work_ns = 400};
    lb_stats_fit(&stats, 100);
    assert_int_equal(stats.order_ns, 10);
    assert_int_equal(stats.wait_slot_ns, 30);
    assert_int_equal(stats.wait_work_ns, 60);
}

/* Work that began before the span is also cut when no waits are left to cut. Whatever the numbers, the sum is at most
 * the span. */
static void work_from_before_is_cut(void **state)
{
    (void)state;
    for (int i = 0; i < 243; i++) {
        static const int64_t times[] = {0, 70, 1000};
        stk_loader_stats stats = {
            .workers = (uint32_t)(i % 2), /* 0: inline, one thread */
            .order_ns = times[i % 3],
            .read_ns = times[i / 3 % 3],
            .convert_ns = times[i / 9 % 3],
            .wait_slot_ns = times[i / 27 % 3],
            .wait_work_ns = times[i / 81],
        };
        const int64_t work = stats.order_ns + stats.read_ns + stats.convert_ns;
        const int64_t all = work + stats.wait_slot_ns + stats.wait_work_ns;
        lb_stats_fit(&stats, 100);
        const int64_t left = stats.order_ns + stats.read_ns + stats.convert_ns;
        assert_int_equal(left, work < 100 ? work : 100);
        assert_int_equal(left + stats.wait_slot_ns + stats.wait_work_ns, all < 100 ? all : 100);
        assert_true(stats.order_ns >= 0 && stats.read_ns >= 0 && stats.convert_ns >= 0);
        assert_true(stats.wait_slot_ns >= 0 && stats.wait_work_ns >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_differences),
        cmocka_unit_test(times_within_the_span_are_unchanged),
        cmocka_unit_test(waits_from_before_are_cut),
        cmocka_unit_test(work_from_before_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
