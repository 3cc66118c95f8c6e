/* Tests of sums without rounding errors, against 128-bit integers and known sums. */
#include "exact_sum.h"
#include "stk_test.h"
#include "test_random.h"
#include <float.h>
#include <math.h>

static double rounded(const stki_exact *sum)
{
    int exponent;
    const double fraction = stki_exact_fraction(sum, &exponent);

    return ldexp(fraction, exponent);
}

/* The result, rounded once, does not depend on the order or on the number of parts. */
static void test_terms_that_cancel(void **unused)
{
    static const double terms[] = {1e308, 1, -1e308, 1e-308, 5e-324, -1, 1e200, 3, -1e200};
    enum { N = sizeof terms / sizeof terms[0] };

    (void)unused;
    for (int shift = 0; shift < N; shift++) {
        stki_exact a = {{0}, 0}, b = {{0}, 0};

        for (int i = 0; i < N; i++)
            stki_exact_add(i % 2 ? &a : &b, terms[(i + shift) % N], 0);
        stki_exact_merge(&a, &b);
        assert_true(rounded(&a) == 3.0);
        stki_exact_add(&a, -3, 0);
        assert_true(rounded(&a) == 1e-308 + 5e-324);
    }
}

static void test_integers(void **unused)
{
    uint64_t state = 5;

    (void)unused;
    for (int round = 0; round < 200; round++) {
        stki_exact sum = {{0}, 0};
        stki_i128 expected = 0;

        for (int i = 0; i < 50; i++) {
            const int64_t x = (int64_t)stkt_random(&state) >> (round % 50), y = (int64_t)stkt_random(&state) >> 20;

            expected += (stki_i128)x * y;
            stki_exact_add_whole(&sum, (stki_i128)x * y, 0);
        }
        assert_true(rounded(&sum) == (double)expected);
        stki_exact_add_whole(&sum, -expected, 0);
        assert_true(rounded(&sum) == 0);
    }
}

/* Ties go to even, and even tiny terms break them. */
static void test_rounding(void **unused)
{
    stki_exact sum = {{0}, 0};

    (void)unused;
    stki_exact_add(&sum, 1, 0);
    stki_exact_add(&sum, 0x1p-53, 0);
    assert_true(rounded(&sum) == 1);
    stki_exact_add(&sum, 0x1p-1000, 0);
    assert_true(rounded(&sum) == 1 + DBL_EPSILON);
    stki_exact_add(&sum, -0x1p-1000, 0);
    stki_exact_add(&sum, DBL_EPSILON, 0);
    assert_true(rounded(&sum) == 1 + 2 * DBL_EPSILON);
}

static void test_products(void **unused)
{
    static const double factors[] = {3, -0.1, 1e300, -1e-300, 0};

    (void)unused;
    for (int k = 0; k < 5; k++)
        for (int sign = -1; sign <= 1; sign += 2) {
            stki_exact a = {{0}, 0}, b = {{0}, 0};
            double f = factors[k];

            stki_exact_add(&a, sign * 7.25, 0);
            stki_exact_add_product(&b, &a, f);
            assert_true(rounded(&b) == sign * 7.25 * f);
            stki_exact_add_product(&b, &a, -f);
            assert_true(rounded(&b) == 0);
        }
}

static void test_beyond_doubles(void **unused)
{
    stki_exact sum = {{0}, 0};
    int exponent;

    (void)unused;
    stki_exact_add(&sum, 1.5, 2000);
    assert_true(isinf(rounded(&sum)));
    assert_true(stki_exact_fraction(&sum, &exponent) == 0.75);
    assert_int_equal(exponent, 2001);
    stki_exact_add(&sum, -1.5, 2000);
    stki_exact_add(&sum, -1.5, -2100);
    assert_true(stki_exact_fraction(&sum, &exponent) == -0.75);
    assert_int_equal(exponent, -2099);
}

/* More terms than the digits can take without carries. */
static void test_many_terms(void **unused)
{
    stki_exact sum = {{0}, 0}, part = {{0}, 0};

    (void)unused;
    for (int i = 0; i < 1000; i++)
        stki_exact_add_whole(&part, INT64_MAX, 0);
    for (int i = 0; i < 70; i++) {
        stki_exact other = sum;
        stki_exact_merge(&sum, i ? &other : &part);
        if (i >= 60)
            stki_exact_settle(&sum);
    }
    assert_true(rounded(&sum) == 1000 * ldexp(0x1p63, 69) * (1 - 0x1p-63));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms_that_cancel), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_rounding),          cmocka_unit_test(test_products),
        cmocka_unit_test(test_beyond_doubles),    cmocka_unit_test(test_many_terms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
