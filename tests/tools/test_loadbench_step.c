/* Tests of accelerator utilization against calculations by hand, and of percentiles against a sorted list. */
#include "loadbench_run.h"
#include "loadbench_step.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ten steps of 100 ms. The wait for the first batch takes 2 s, for each later one 25 ms: the first step ends after 2.1
 * s, the other nine take 9 * 125 ms. MLPerf Storage excludes the first step: 9 * 100 / (9 * 125) = 0.8. */
static void by_hand(void **state)
{
    const int64_t ms = 1000000, whole = 2000 * ms + 100 * ms + 9 * 125 * ms, first_end = 2100 * ms;

    (void)state;
    assert_true(fabs(lb_utilization(9, 100 * ms, whole - first_end) - 0.8) < 1e-12);
    /* with the first step included, the value differs */
    assert_true(fabs(lb_utilization(10, 100 * ms, whole) - 10 * 100 / 3225.0) < 1e-12);
    assert_true(lb_utilization(5, 100 * ms, 500 * ms) == 1);
    assert_true(lb_utilization(5, 100 * ms, 499 * ms) == 1); /* utilization is at most 1 */
    assert_true(lb_utilization(0, 100 * ms, 500 * ms) < 0);
    assert_true(lb_utilization(-1, 100 * ms, 500 * ms) < 0);
    assert_true(lb_utilization(1, 100 * ms, 0) < 0);
    assert_true(lb_utilization(3, 0, 500 * ms) == 0);
    assert_true(fabs(lb_utilization(INT64_MAX / 2, 1000, INT64_MAX) - 1) < 1e-9); /* products do not overflow */
}

static void presets_have_names(void **state)
{
    int count = 0;

    (void)state;
    for (; lb_preset_words[count]; count++) {
        assert_string_equal(lb_presets[count].name, lb_preset_words[count]);
        if (count > 0)
            assert_true(lb_presets[count].step_ns > 0 && lb_presets[count].batch_size > 0);
        assert_true(lb_presets[count].au > 0 && lb_presets[count].au < 1);
    }
    assert_true(count > 6);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* By definition, a percentile is the value that this share of the values does not exceed. The histogram may be off by 1
 * %. */
static void percentiles(void **state)
{
    enum { COUNT = 20001 };
    static int64_t values[COUNT];
    static stki_histogram histogram;
    uint64_t draw = 12345;

    (void)state;
    stki_histogram_init(&histogram);
    for (int i = 0; i < COUNT; i++) {
        draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407;
        values[i] = (int64_t)(draw >> 40) % 1000000 + (i % 1000 == 0 ? 50000000 : 0);
        stki_histogram_add(&histogram, values[i]);
    }
    qsort(values, COUNT, sizeof values[0], compare);
    const struct lb_waits waits = lb_waits_of(&histogram);
    const struct {
        double fraction;
        int64_t found;
    } points[] = {{0.5, waits.p50_ns}, {0.9, waits.p90_ns}, {0.99, waits.p99_ns}, {0.999, waits.p999_ns}};
    assert_int_equal(waits.count, COUNT);
    assert_int_equal(waits.max_ns, values[COUNT - 1]);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        const double expected = (double)values[(int)ceil(points[i].fraction * COUNT) - 1];
        assert_true(fabs((double)points[i].found - expected) <= 0.01 * expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(presets_have_names),
        cmocka_unit_test(percentiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
