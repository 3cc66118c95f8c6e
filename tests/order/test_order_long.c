/* stki-long: statistics of random orders of up to a million samples, with ten times as many seeds as the ordinary
 * tests. */
#include "order.h"
#include "permutation.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "order_statistics.h"

static void computed(uint64_t seed, uint64_t epoch, int64_t n, uint64_t *images)
{
    stki_permutation permutation;

    stki_permutation_init(&permutation, seed, epoch, (uint64_t)n);
    stki_permutation_run(&permutation, 0, n, images);
}

static void by_order(uint64_t seed, uint64_t epoch, int64_t n, uint64_t *images)
{
    stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = n, .seed = seed};
    stki_position out[1000];
    stki_order *order;

    assert_int_equal(stki_order_create(&opts, &order, NULL), STK_OK);
    for (int64_t first = 0; first < n; first += 1000) {
        int64_t part = n - first < 1000 ? n - first : 1000;

        stki_order_eval(order, (int64_t)epoch, first, part, out, NULL);
        for (int64_t i = 0; i < part; i++)
            images[first + i] = (uint64_t)out[i].sample;
    }
    stki_order_destroy(order);
}

static void all_orders_are_even(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++) {
        stkt_check_all_orders(computed, n, 1000000);
        stkt_check_all_orders(by_order, n, 1000000);
    }
}

static void positions_and_fixed_points(void **state)
{
    static const int64_t sizes[] = {2, 3, 4, 5, 8, 15, 16, 17, 31, 64, 100, 255, 257};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stkt_check_position_by_value(computed, sizes[i], 200000);
        stkt_check_position_by_value(by_order, sizes[i], 50000);
    }
    for (int64_t n = 15; n <= 1100; n = n * 2 + 1) { /* the Poisson distribution is too inexact below 15 */
        stkt_check_fixed_points(computed, n, 100000);
        stkt_check_fixed_points(by_order, n, 30000);
    }
}

static void long_orders(void **state)
{
    static const int64_t sizes[] = {10000, 65536, 65537, 100000, 262143, 262144, 262145, 500000, 1000000, 1048576};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stkt_check_long(by_order, sizes[i]);
        stkt_check_long(computed, sizes[i]);
    }
}

static void correlations(void **state)
{
    (void)state;
    for (int64_t n = 10; n <= 1000000; n *= 10) {
        stkt_check_correlations(by_order, n);
        stkt_check_correlations(computed, n);
    }
}

/* Fixed points of permutations that are too long to be tested with many seeds: their total over the epochs has mean and
 * variance `epochs`. */
static void fixed_points_of_a_million(void **state)
{
    enum { N = 1000000, EPOCHS = 60 };
    uint64_t *images = calloc(N, sizeof *images);
    double fixed = 0;

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        by_order(17, epoch, N, images);
        for (int64_t i = 0; i < N; i++)
            fixed += images[i] == (uint64_t)i;
    }
    stkt_expect_score("fixed points over epochs", N, (fixed - EPOCHS) / sqrt(EPOCHS), 4);
    free(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_orders_are_even),
        cmocka_unit_test(positions_and_fixed_points),
        cmocka_unit_test(long_orders),
        cmocka_unit_test(correlations),
        cmocka_unit_test(fixed_points_of_a_million),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
