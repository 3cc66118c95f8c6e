/* Tests of the interval of a ratio of medians: it contains the true value about as often as stated, shows real
 * differences, and shows none otherwise. */
#include "loadbench_statistics.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void equal_sides_show_nothing(void **state)
{
    const double values[] = {98, 99, 100, 101, 102};
    const struct lb_ratio_interval found = lb_bootstrap(values, 5, values, 5);

    (void)state;
    assert_true(found.known);
    assert_true(found.ratio == 1);
    assert_true(found.low < 1 && found.high > 1);
    assert_true(found.low >= 98.0 / 102 && found.high <= 102.0 / 98); /* drawn medians are within the values */
}

static void a_difference_is_shown(void **state)
{
    const double before[] = {98, 99, 100, 101, 102}, now[] = {128, 129, 130, 131, 132};
    const struct lb_ratio_interval found = lb_bootstrap(before, 5, now, 5);

    (void)state;
    assert_true(fabs(found.ratio - 1.3) < 1e-12);
    assert_true(found.low > 1.2 && found.low < 1.3 && found.high > 1.3 && found.high < 1.4);
}

/* Nine values 1 to 9 are compared with a side that is always 1. The median of nine draws is at most 2 if five of them
 * are 1 or 2, which has a probability of 3.04 % (binomial, 9 and 2/9), and at most 1 with far less than 2.5 %. So the
 * interval ends at 2 and, by symmetry, at 8; one of 90 % would end at 3 and 7. */
static void the_interval_is_one_of_95_percent(void **state)
{
    const double before[] = {1, 1}, now[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct lb_ratio_interval found = lb_bootstrap(before, 2, now, 9);

    (void)state;
    assert_true(found.ratio == 5);
    assert_true(found.low == 2);
    assert_true(found.high == 8);
}

static void it_is_the_same_each_time(void **state)
{
    const double before[] = {5, 3, 9, 4}, now[] = {6, 2, 8};
    const struct lb_ratio_interval one = lb_bootstrap(before, 4, now, 3), other = lb_bootstrap(before, 4, now, 3);

    (void)state;
    assert_true(one.low == other.low && one.high == other.high && one.ratio == other.ratio);
    assert_true(before[0] == 5 && before[1] == 3 && now[0] == 6); /* the caller's arrays are not reordered */
}

static void too_few_values_are_not_known(void **state)
{
    const double some[] = {1, 2, 3}, zeros[] = {0, 0, 0};

    (void)state;
    assert_false(lb_bootstrap(some, 1, some, 3).known);
    assert_false(lb_bootstrap(some, 3, some, 1).known);
    assert_true(lb_bootstrap(some, 1, some, 1).ratio == 1);
    assert_false(lb_bootstrap(some, 0, some, 3).known);
    assert_false(lb_bootstrap(zeros, 3, some, 3).known);
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* 100 times two sides of 15 values from one distribution: the interval contains 1 about 95 times. A percentile interval
 * of a median is not exact, so 90 to 100 are accepted. */
static void it_contains_the_true_value_as_often_as_stated(void **state)
{
    uint64_t random = 7;
    int held = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        double before[15], now[15];
        for (int k = 0; k < 15; k++) {
            before[k] = 100 + uniform(&random) + uniform(&random) + uniform(&random);
            now[k] = 100 + uniform(&random) + uniform(&random) + uniform(&random);
        }
        const struct lb_ratio_interval found = lb_bootstrap(before, 15, now, 15);
        held += found.low <= 1 && found.high >= 1;
    }
    assert_in_range(held, 88, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_sides_show_nothing),
        cmocka_unit_test(a_difference_is_shown),
        cmocka_unit_test(the_interval_is_one_of_95_percent),
        cmocka_unit_test(it_is_the_same_each_time),
        cmocka_unit_test(too_few_values_are_not_known),
        cmocka_unit_test(it_contains_the_true_value_as_often_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
