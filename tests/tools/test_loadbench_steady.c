/* Tests of the trend of a rate against a calculation by hand; of the distinction between settled, drifting and noisy
 * rates; and of merging intervals without losing samples. */
#include "loadbench_marks.h"
#include "loadbench_steady.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9 * (1 + fabs(b));
}

/* Ten rates 10, 11, …, 19 at 0, 1, …, 9: slope 1, mean 14.5, no residuals. */
static void straight_line(void **state)
{
    double at[10], rates[10];

    (void)state;
    for (int i = 0; i < 10; i++) {
        at[i] = i;
        rates[i] = 10 + i;
    }
    const struct lb_steady steady = lb_steady_judge(at, rates, 10);
    assert_true(near(steady.trend_percent, 100 * 9 / 14.5));
    assert_true(steady.error_percent < 1e-6);
    assert_true(near(steady.scatter_percent, 100 * sqrt(82.5 / 9) / 14.5));
    assert_int_equal(steady.kind, LB_STEADY_DRIFTS);
    assert_true(steady.settled_after_s < 0); /* every part rises by more than 5 % */
}

/* Rates 100, 104, 100, 104, … at 0, 1, …, 9. By hand: mean 102; sum of (x - 4.5)(y - 102) over x: -2 (-4.5) + 2 (-3.5)
 * - 2 (-2.5) + … = 2 * 5 = 10; sum of squares of x 82.5; slope 10 / 82.5. */
static void noise_by_hand(void **state)
{
    double at[10], rates[10];
    const double slope = 10 / 82.5,
                 left = 10 * 4.0 - slope * 10; /* sum of squares about the mean minus the part explained by the line */

    (void)state;
    for (int i = 0; i < 10; i++) {
        at[i] = i;
        rates[i] = i % 2 ? 104 : 100;
    }
    const struct lb_steady steady = lb_steady_judge(at, rates, 10);
    assert_true(near(steady.trend_percent, 100 * slope * 9 / 102));
    assert_true(near(steady.error_percent, 100 * 2 * sqrt(left / 8 / 82.5) * 9 / 102));
    assert_int_equal(steady.kind, LB_STEADY_SETTLED);
    for (int i = 0; i < 10; i++)
        rates[i] = i % 2 ? 150 : 50;
    assert_int_equal(lb_steady_judge(at, rates, 10).kind, LB_STEADY_NOISY);
    assert_int_equal(lb_steady_judge(at, rates, LB_STEADY_LEAST - 1).kind, LB_STEADY_UNKNOWN);
    assert_int_equal(lb_steady_judge(at, rates, 0).kind, LB_STEADY_UNKNOWN);
}

/* A cache fills during the first fifth. The settled part begins at the first quarter. */
static void settles_after_a_while(void **state)
{
    double at[40], rates[40];

    (void)state;
    for (int i = 0; i < 40; i++) {
        at[i] = 0.5 * i;
        rates[i] = i < 8 ? 20 + 10 * i : 100 + i % 2;
    }
    const struct lb_steady steady = lb_steady_judge(at, rates, 40);
    assert_int_equal(steady.kind, LB_STEADY_DRIFTS);
    assert_true(near(steady.settled_after_s, 5));
}

static struct lb_mark mark_at(int i)
{
    struct lb_mark mark = {.at_ns = 1000 + 10 * (int64_t)i, .batches = i, .samples = 64 * (int64_t)i, .next_ns = 3 * i};

    mark.stats.batch_bytes = 100 * (int64_t)i;
    return mark;
}

static void thinned_out(void **state)
{
    struct lb_marks *marks;
    stk_worker_stats workers[2] = {{0}};
    const int first = 37, count = 1000;

    (void)state;
    assert_int_equal(lb_marks_create(2, 10, &marks, NULL), STK_OK);
    for (int i = 0; i < count; i++) {
        const struct lb_mark mark = mark_at(i);
        workers[0].convert_ns = 7 * i;
        workers[1].convert_ns = 9 * i;
        lb_marks_add(marks, &mark, workers, i == first);
        assert_true(marks->count <= LB_MARKS);
        assert_int_equal(marks->due_ns, mark.at_ns + marks->period_ns);
    }
    assert_int_equal(marks->marks[0].batches, 0);
    assert_int_equal(marks->marks[marks->count - 1].batches, count - 1);
    assert_in_range(marks->first, 1, marks->count - 2);
    assert_int_equal(marks->marks[marks->first].batches, first);
    assert_true(marks->count > LB_MARKS / 3);
    assert_true(marks->period_ns >= 10 * count / LB_MARKS);
    for (int i = 0; i < marks->count; i++) { /* each mark is still complete, with the counters of its workers */
        const int64_t n = marks->marks[i].batches;
        assert_int_equal(marks->marks[i].samples, 64 * n);
        assert_int_equal(marks->workers[2 * i].convert_ns, 7 * n);
        assert_int_equal(marks->workers[2 * i + 1].convert_ns, 9 * n);
        if (i > 0)
            assert_true(n > marks->marks[i - 1].batches);
    }
    lb_marks_destroy(marks);
    lb_marks_destroy(NULL);
}

static int64_t number_of(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void one_line_per_interval(void **state)
{
    const struct lb_mark from = mark_at(2), until = mark_at(7);
    stk_worker_stats a[2] = {{.read_ns = 5}, {.read_ns = 6}}, b[2] = {{.read_ns = 25}, {.read_ns = 46}};
    char *text = NULL;
    size_t size = 0;
    struct lb_log log = {.path = "x", .to = open_memstream(&text, &size)};

    (void)state;
    lb_marks_log(&log, 3, false, 1000, &from, &until, 2, a, b);
    assert_int_equal(lb_log_close(&log), STK_OK);
    lb_marks_log(&log, 4, false, 1000, &from, &until, 2, a, b); /* the log is closed, so this does nothing */
    assert_int_equal(lb_log_close(&log), STK_OK);
    assert_int_equal(text[size - 1], '\n');
    assert_null(memchr(text, '\n', size - 1));
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_int_equal(number_of(json, "repeat"), 3);
    assert_string_equal(json_string_value(json_object_get(json, "phase")), "measure");
    assert_int_equal(number_of(json, "end_ns"), 70);
    assert_int_equal(number_of(json, "length_ns"), 50);
    assert_int_equal(number_of(json, "sample_count"), 320);
    assert_int_equal(number_of(json, "batch_bytes"), 500);
    assert_int_equal(number_of(json, "next_ns"), 15);
    assert_true(near(json_number_value(json_object_get(json, "samples_per_s")), 320 / 50e-9));
    const json_t *workers = json_object_get(json, "workers");
    assert_int_equal(json_array_size(workers), 2);
    assert_int_equal(number_of(json_array_get(workers, 0), "read_work_ns"), 20);
    assert_int_equal(number_of(json_array_get(workers, 1), "read_work_ns"), 40);
    json_decref(json);
    free(text);
    /* a full disk is reported, whether it is noticed while writing or at the end; later lines are omitted */
    stk_error err;
    for (int buffered = 0; buffered < 2 && lb_log_open(&log, "/dev/full", &err) == STK_OK; buffered++) {
        if (!buffered)
            setvbuf(log.to, NULL, _IONBF, 0);
        lb_marks_log(&log, 1, true, 0, &from, &until, 2, a, b);
        assert_int_equal(log.to == NULL, !buffered);
        lb_marks_log(&log, 2, true, 0, &from, &until, 2, a, b);
        assert_int_equal(lb_log_close(&log), STK_E_IO);
        assert_non_null(strstr(log.failed.message, "/dev/full"));
        assert_non_null(strstr(log.failed.message, "No space left"));
        assert_int_equal(lb_log_close(&log), STK_E_IO);
    }
    assert_int_equal(lb_log_open(&log, "/nowhere/x", &err), STK_E_NOT_FOUND);
}

/* The remainder at the end of a run is not an interval. */
static void a_remainder_does_not_count(void **state)
{
    struct lb_marks *marks;
    stk_worker_stats worker = {0};

    (void)state;
    assert_int_equal(lb_marks_create(0, 1000, &marks, NULL), STK_OK);
    for (int i = 0; i <= 20; i++) {
        struct lb_mark mark = {.at_ns = 1000 * (int64_t)i, .samples = 500 * (int64_t)i};
        lb_marks_add(marks, &mark, &worker, i == 0);
    }
    struct lb_mark rest = {.at_ns = 20010, .samples = 20 * 500 + 500}; /* a batch in 10 ns */
    lb_marks_add(marks, &rest, &worker, false);
    const struct lb_steady steady = lb_steady_of(marks, marks->first);
    assert_int_equal(steady.intervals, 20);
    assert_int_equal(steady.kind, LB_STEADY_SETTLED);
    assert_true(fabs(steady.trend_percent) < 1e-6);
    lb_marks_destroy(marks);
}

/* A reported rate cannot fall by more than 100 %. */
static void trends_in_words(void **state)
{
    struct lb_steady steady = {.trend_percent = -42.31, .error_percent = 7.04, .scatter_percent = 9.96};
    char text[160];

    (void)state;
    lb_steady_text(&steady, text, sizeof text);
    assert_string_equal(text, "from start to end, the rate changed by -42.3 % of its mean (+- 7.0); "
                              "intervals vary by 10.0 %");
    steady.trend_percent = -124.5;
    lb_steady_text(&steady, text, sizeof text);
    assert_string_equal(text, "the rate changed from 162 % of its mean at the start to 38 % at the end; intervals "
                              "vary by 10.0 %");
    steady.trend_percent = 260;
    lb_steady_text(&steady, text, sizeof text);
    assert_non_null(strstr(text, "from 0 % of its mean at the start to 230 % at the end"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trends_in_words),
        cmocka_unit_test(straight_line),
        cmocka_unit_test(noise_by_hand),
        cmocka_unit_test(settles_after_a_while),
        cmocka_unit_test(thinned_out),
        cmocka_unit_test(one_line_per_interval),
        cmocka_unit_test(a_remainder_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
