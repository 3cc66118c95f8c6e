/* Tests of the histogram: quantiles against sorted arrays, merging, and values at both ends of the range. */
#include "cmocka_all.h"
#include "histogram.h"
#include "test_random.h"
#include <math.h>
#include <stdlib.h>

enum { MOST = 20000 };

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* By definition, the smallest value such that at least `fraction` of all values do not exceed it. */
static int64_t exact_quantile(const int64_t *sorted, int count, double fraction)
{
    int i;

    for (i = 0; i < count - 1 && (double)(i + 1) < fraction * count; i++)
        ;
    return sorted[i];
}

static int64_t draw(uint64_t *random, int shape)
{
    double u = (double)(stkt_random(random) >> 11) * 0x1p-53;

    switch (shape) {
    case 0: /* few small values */
        return stkt_random_in(random, 0, 10);
    case 1: /* microseconds, uniform */
        return stkt_random_in(random, 1000, 1000000);
    case 2: /* over all powers of two */
        return (int64_t)exp2(u * 46.9);
    case 3: /* two clusters far apart */
        return u < 0.9 ? stkt_random_in(random, 900, 1100) : stkt_random_in(random, 900000000, 1100000000);
    case 4: /* one value */
        return 123456789;
    default: /* a long tail */
        return (int64_t)(1000.0 / pow(1 - u, 1.5));
    }
}

/* A value inside the range is off by at most half a bucket (1/256); 1 % is promised. */
static void assert_near(int64_t found, int64_t expected, double fraction)
{
    if (fabs((double)(found - expected)) > (double)expected / 256)
        fail_msg("quantile %g: found %lld, expected %lld", fraction, (long long)found, (long long)expected);
}

static void quantiles_are_within_one_percent(void **state)
{
    static const double fractions[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1};
    static const int counts[] = {1, 2, 3, 10, 99, 100, 1000, MOST};
    stki_histogram *histogram = malloc(sizeof *histogram);
    int64_t *values = malloc(MOST * sizeof *values), sum;
    uint64_t random = 7;
    int shape, i, f;
    size_t c;

    (void)state;
    for (shape = 0; shape < 6; shape++)
        for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            int count = counts[c];

            stki_histogram_init(histogram);
            for (i = 0, sum = 0; i < count; i++) {
                values[i] = draw(&random, shape);
                sum += values[i];
                stki_histogram_add(histogram, values[i]);
            }
            qsort(values, (size_t)count, sizeof *values, by_size);
            for (f = 0; f < 12; f++)
                assert_near(stki_histogram_quantile(histogram, fractions[f]),
                            exact_quantile(values, count, fractions[f]), fractions[f]);
            assert_int_equal(stki_counted(&histogram->count), count);
            assert_int_equal(stki_counted(&histogram->sum), sum);
            assert_int_equal(stki_counted(&histogram->min), values[0]);
            assert_int_equal(stki_counted(&histogram->max), values[count - 1]);
        }
    free(values);
    free(histogram);
}

/* Single values around every power of two are returned within 1 %. */
static void every_size_of_value(void **state)
{
    stki_histogram *histogram = malloc(sizeof *histogram);
    int power, step;

    (void)state;
    for (power = 0; power < 47; power++)
        for (step = -2; step <= 2; step++) {
            int64_t value = (INT64_C(1) << power) + step;

            if (value < 0 || value >= INT64_C(1) << 47)
                continue;
            stki_histogram_init(histogram);
            stki_histogram_add(histogram, value);
            stki_histogram_add(histogram, 0);
            stki_histogram_add(histogram, (INT64_C(1) << 47) - 1); /* the result is limited to the maximum */
            assert_near(stki_histogram_quantile(histogram, 0.5), value, 0.5);
        }
    free(histogram);
}

static void the_ends(void **state)
{
    stki_histogram *histogram = malloc(sizeof *histogram);

    (void)state;
    stki_histogram_init(histogram);
    assert_int_equal(stki_histogram_quantile(histogram, 0.5), 0);
    stki_histogram_add(histogram, -5); /* the clock went backwards */
    assert_int_equal(stki_histogram_quantile(histogram, 1), 0);
    assert_int_equal(stki_counted(&histogram->sum), 0);
    stki_histogram_add(histogram, INT64_C(1) << 50);
    assert_true(stki_histogram_quantile(histogram, 1) == INT64_C(1) << 50);
    assert_int_equal(stki_histogram_quantile(histogram, -1), 0);
    assert_int_equal(stki_histogram_quantile(histogram, NAN), 0);
    assert_true(stki_histogram_quantile(histogram, 7) == INT64_C(1) << 50);
    assert_int_equal(stki_counted(&histogram->buckets[STKI_HISTOGRAM_BUCKETS - 1]), 1);
    free(histogram);
}

static void merging_is_adding(void **state)
{
    stki_histogram *parts = malloc(3 * sizeof *parts), *whole = malloc(sizeof *whole);
    uint64_t random = 11;
    int i;

    (void)state;
    for (i = 0; i < 3; i++)
        stki_histogram_init(&parts[i]);
    stki_histogram_init(whole);
    for (i = 0; i < 5000; i++) {
        int64_t value = draw(&random, i % 6);

        stki_histogram_add(whole, value);
        stki_histogram_add(&parts[i % 2], value);
    }
    stki_histogram_merge(&parts[0], &parts[1]);
    stki_histogram_merge(&parts[0], &parts[2]); /* an empty histogram changes nothing */
    assert_memory_equal(&parts[0], whole, sizeof *whole);
    stki_histogram_merge(&parts[2], whole);
    assert_memory_equal(&parts[2], whole, sizeof *whole);
    free(whole);
    free(parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_one_percent),
        cmocka_unit_test(every_size_of_value),
        cmocka_unit_test(the_ends),
        cmocka_unit_test(merging_is_adding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
