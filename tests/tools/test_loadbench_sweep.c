/* Tests of the conclusion of a sweep: a best point is named only if the noise permits it. */
#include "loadbench_sweep.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct point {
    double low, median, high; /* samples/s; 0: it failed */
};

static json_t *sweep_of(const struct point *points, int count, int repeats)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        json_t *point = json_pack("{s:{s:o}, s:i}", "set", "a.b", json_sprintf("%d", i), "repeat_count", repeats);
        if (points[i].median > 0)
            json_object_set_new(point, "result",
                                json_pack("{s:{s:f, s:f, s:f, s:f}}", "samples_per_s", "median", points[i].median,
                                          "low", points[i].low, "high", points[i].high, "spread_percent",
                                          100 * (points[i].high - points[i].low) / points[i].median));
        else
            json_object_set_new(point, "failure", json_string("no"));
        json_array_append_new(list, point);
    }
    return json_pack("{s:[s], s:o}", "keys", "a.b", "points", list);
}

static void assert_concludes(const struct point *points, int count, int repeats, int expected, const char *names_first)
{
    json_t *sweep = sweep_of(points, count, repeats);
    int within_noise = -1;
    char *text = lb_sweep_conclusion(sweep, &within_noise);

    assert_non_null(text);
    if (within_noise != expected || strncmp(text, names_first, strlen(names_first)) != 0)
        fail_msg("%d within the noise: %s", within_noise, text);
    free(text);
    json_decref(sweep);
}

static void equal_points_have_no_best_one(void **state)
{
    (void)state;
    /* the same speed, 1000, with a noise of a few percent: the ranges of the points overlap */
    assert_concludes((struct point[]){{980, 1000, 1020}, {990, 1005, 1030}, {970, 1010, 1025}}, 3, 5, 2,
                     "no difference beyond the noise: 3 points from 1000 to 1010 samples/s");
    /* the ranges of two repeats are disjoint by chance: medians 15 apart, repeats of a point 20 */
    assert_concludes((struct point[]){{1000, 1010, 1020}, {985, 995, 999}}, 2, 2, 1, "no difference beyond the noise");
    /* one repeat each: a single run is accurate to 2 % */
    assert_concludes((struct point[]){{1000, 1000, 1000}, {1015, 1015, 1015}}, 2, 1, 1, "no difference beyond");
    assert_concludes((struct point[]){{1000, 1000, 1000}, {0, 0, 0}, {1000, 1000, 1000}}, 3, 5, 1,
                     "no difference beyond");
}

static void a_best_one_beyond_the_noise_is_named(void **state)
{
    (void)state;
    assert_concludes((struct point[]){{980, 1000, 1020}, {1480, 1500, 1520}, {0, 0, 0}}, 3, 5, 0,
                     "most samples/s: a.b=1 (1500)");
    assert_concludes((struct point[]){{980, 1000, 1020}, {1480, 1500, 1520}, {1470, 1490, 1510}}, 3, 5, 1,
                     "most samples/s: a.b=1 (1500); within the noise of it: a.b=2 (1490)");
    assert_concludes((struct point[]){{1000, 1000, 1000}, {1500, 1500, 1500}}, 2, 1, 0, "most samples/s: a.b=1 (1500)");
}

static void no_conclusion_without_results(void **state)
{
    (void)state;
    assert_concludes((struct point[]){{0, 0, 0}}, 1, 5, 0, "");
    assert_concludes((struct point[]){{9, 10, 11}}, 1, 5, 0, "most samples/s: a.b=0 (10.00)");
}

/* A column always has the same meaning: percentiles are medians over the repeats, like the rate beside them. */
static void columns_are_medians_of_the_repeats(void **state)
{
    (void)state;
    for (int i = 0; i < LB_SWEEP_COLUMNS; i++)
        if (lb_sweep_columns[i].path && strncmp(lb_sweep_columns[i].path, "result.", 7) != 0)
            fail_msg("%s is not in `result`", lb_sweep_columns[i].path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_points_have_no_best_one),
        cmocka_unit_test(a_best_one_beyond_the_noise_is_named),
        cmocka_unit_test(no_conclusion_without_results),
        cmocka_unit_test(columns_are_medians_of_the_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
