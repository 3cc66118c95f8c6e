/* Tests of the random numbers of transforms: known values, which are equal on all machines, distributions, and the
 * parts of the key on which the numbers depend. */
#include "draw.h"
#include "stk_test.h"

#include "order_statistics.h"

enum { MANY = 200000 };

static void begin(stki_draw *draw, uint64_t seed, int64_t epoch, int64_t position, const char *name)
{
    stki_draw_begin(draw, &(stki_occasion){stki_draw_key(seed, epoch), position}, stki_draw_name(name, "test"));
}

/* ---- known values ---- */

static void known_values(void **state)
{
    stki_draw draw;

    (void)state;
    begin(&draw, 7, 3, 12345, "image/0");
    assert_true(stki_draw_bits(&draw) == UINT64_C(0xf4a820bc49cb750d));
    assert_true(stki_draw_below(&draw, 1000) == 747);
    assert_true(stki_draw_unit(&draw) == 0x1.c87097b83a92p-2);
    assert_true(stki_draw_log_between(&draw, 0.75, 4.0 / 3) == 0x1.e7fd6395582d2p-1);
    assert_true(stki_draw_normal(&draw) == -0x1.983d1207e8f02p-2);
    assert_true(stki_draw_beta(&draw, 0.2, 0.2) == 0x1.80bc519024bcfp-2);
    assert_true(stki_draw_beta(&draw, 2.5, 1) == 0x1.5e6ad37ae5c1cp-1);
}

/* A different seed, epoch, position or name gives different numbers. The same key gives the same numbers. */
static void keys(void **state)
{
    const char *const names[] = {"a", "b", "image/0", "image/1"};
    uint64_t seen[2 * 2 * 2 * 4];
    stki_draw draw, again;
    int n = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++)
        for (int64_t epoch = 0; epoch < 2; epoch++)
            for (int64_t position = 0; position < 2; position++)
                for (int i = 0; i < 4; i++) {
                    begin(&draw, seed, epoch, position, names[i]);
                    seen[n++] = stki_draw_bits(&draw);
                }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    assert_true(stki_draw_name("a", "b") != stki_draw_name("ab", ""));
    assert_true(stki_draw_name("a", "random_crop") != stki_draw_name("a", "random_horizontal_flip"));
    begin(&draw, 1, 2, 3, "x");
    begin(&again, 1, 2, 3, "x");
    for (int i = 0; i < 100; i++)
        assert_true(stki_draw_bits(&draw) == stki_draw_bits(&again));
}

/* ---- exp and log ---- */

static void exp_and_log(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        const double x = exp(-600.0 + 1200.0 * i / MANY), y = -699.0 + 1398.0 * i / MANY, near = 0.5 + 1.0 * i / MANY;

        assert_true(fabs(stki_draw_log(x) - log(x)) <= 0x1p-51 * fabs(log(x)));
        assert_true(fabs(stki_draw_log(near) - log(near)) <= 0x1p-51 * fabs(log(near)));
        assert_true(fabs(stki_draw_exp(y) / exp(y) - 1) <= 0x1p-51);
        assert_true(fabs(stki_draw_exp(near) / exp(near) - 1) <= 0x1p-51);
    }
    assert_true(stki_draw_log(1) == 0);
    assert_true(stki_draw_exp(0) == 1);
    assert_true(stki_draw_exp(-701) == 0);
}

/* ---- distributions ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Kolmogorov-Smirnov test: 1.95 is exceeded once in a thousand. Seeds are fixed. */
static void expect_distribution(const char *what, double *values, int n, double (*cdf)(double x))
{
    double most = 0;

    qsort(values, (size_t)n, sizeof *values, ascending);
    for (int i = 0; i < n; i++) {
        const double f = cdf(values[i]);

        most = fmax(most, fmax(fabs(f - (double)i / n), fabs((double)(i + 1) / n - f)));
    }
    if (most * sqrt(n) > 1.95)
        fail_msg("%s: distance %.5f of %d values", what, most, n);
}

static double as_unit(double x)
{
    return x;
}

static double as_normal(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static double as_log_between(double x)
{
    return log(x / 0.5) / log(8 / 0.5);
}

static double as_beta_half(double x)
{
    return 2 / acos(-1) * asin(sqrt(x));
}

static double as_beta_fifth(double x) /* beta(0.2, 1) */
{
    return pow(x, 0.2);
}

static double as_beta_two(double x)
{
    return x * x * (3 - 2 * x);
}

static double as_beta_mixed(double x) /* beta(3, 1) */
{
    return x * x * x;
}

static double between(stki_draw *draw)
{
    return stki_draw_log_between(draw, 0.5, 8);
}

static double second_normal(stki_draw *draw)
{
    float two[2];

    stki_draw_normals(draw, 2, -1, two, 2);
    return ((double)two[1] + 1) / 2;
}

static double beta_half(stki_draw *draw)
{
    return stki_draw_beta(draw, 0.5, 0.5);
}

static double beta_fifth(stki_draw *draw)
{
    return stki_draw_beta(draw, 0.2, 1);
}

static double beta_one(stki_draw *draw)
{
    return stki_draw_beta(draw, 1, 1);
}

static double beta_two(stki_draw *draw)
{
    return stki_draw_beta(draw, 2, 2);
}

static double beta_mixed(stki_draw *draw)
{
    return stki_draw_beta(draw, 3, 1);
}

static void distributions(void **state)
{
    static const struct {
        const char *what;
        double (*draw)(stki_draw *draw), (*cdf)(double x);
    } cases[] = {{"unit", stki_draw_unit, as_unit},           {"normal", stki_draw_normal, as_normal},
                 {"normals", second_normal, as_normal},       {"log between", between, as_log_between},
                 {"beta(0.5, 0.5)", beta_half, as_beta_half}, {"beta(0.2, 1)", beta_fifth, as_beta_fifth},
                 {"beta(1, 1)", beta_one, as_unit},           {"beta(2, 2)", beta_two, as_beta_two},
                 {"beta(3, 1)", beta_mixed, as_beta_mixed}};
    double *values = malloc(MANY * sizeof *values);

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int by = 0; by < 2; by++) { /* the first number at many positions, and many numbers at one position */
            stki_draw draw;

            begin(&draw, 11, 0, 0, cases[c].what);
            for (int i = 0; i < MANY; i++) {
                if (by == 0)
                    begin(&draw, 11, 0, i, cases[c].what);
                values[i] = cases[c].draw(&draw);
            }
            expect_distribution(cases[c].what, values, MANY, cases[c].cdf);
        }
    }
    free(values);
}

static void integers(void **state)
{
    static const int64_t bounds[] = {1, 2, 3, 9, 33, 100};

    (void)state;
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        int64_t counts[100] = {0}, n = bounds[b];
        double expected[100];
        stki_draw draw;

        for (int i = 0; i < MANY; i++) {
            begin(&draw, 5, 1, i, "below");
            const int64_t value = stki_draw_below(&draw, n);

            assert_in_range(value, 0, n - 1);
            counts[value]++;
        }
        for (int64_t i = 0; i < n; i++)
            expected[i] = (double)MANY / (double)n;
        if (n > 1)
            stkt_expect_score("below", n,
                              stkt_chi_square_score(stkt_chi_square(counts, expected, (int)n), (double)n - 1), 4);
    }
}

/* A beta distribution with small parameters is almost always 0 or 1, and never NaN. */
static void extreme_beta(void **state)
{
    double sum = 0;
    stki_draw draw;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        begin(&draw, 5, 1, i, "beta");
        const double x = stki_draw_beta(&draw, 1e-3, 1e-3);

        assert_true(x >= 0 && x <= 1);
        sum += x;
    }
    assert_true(fabs(sum / 10000 - 0.5) < 0.02);
    for (int i = 0; i < 1000; i++) {
        begin(&draw, 5, 1, i, "beta");
        const double x = stki_draw_beta(&draw, 1e4, 1e4);

        assert_true(fabs(x - 0.5) < 0.03);
    }
}

static double correlation(const double *x, const double *y)
{
    double sum = 0;

    for (int i = 0; i < MANY; i++)
        sum += (x[i] - 0.5) * (y[i] - 0.5);
    return sum / MANY * 12 * sqrt(MANY);
}

/* Neighboring positions, epochs, seeds and names give independent numbers. */
static void neighbors(void **state)
{
    double *x = malloc(MANY * sizeof *x), *y = malloc(MANY * sizeof *y);

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < MANY; i++) {
            stki_draw draw;

            begin(&draw, 1, 1, i, "a");
            x[i] = stki_draw_unit(&draw);
            begin(&draw, 1 + (kind == 0), 1 + (kind == 1), i + (kind == 2), kind == 3 ? "b" : "a");
            y[i] = stki_draw_unit(&draw);
        }
        assert_true(fabs(correlation(x, y)) < 4);
    }
    free(x);
    free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_values), cmocka_unit_test(keys),
                                       cmocka_unit_test(exp_and_log),  cmocka_unit_test(distributions),
                                       cmocka_unit_test(integers),     cmocka_unit_test(extreme_beta),
                                       cmocka_unit_test(neighbors)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
