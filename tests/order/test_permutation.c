/* Tests of the keyed bijection: images against a Python implementation, bijectivity, random access, identical bits from
 * every variant of the round function, and statistics at small sizes (test_order_long.c has larger ones). */
#include "isa.h"
#include "order.h"
#include "order_shuffle.h"
#include "permutation.h"
#include "permute.h"
#include "philox.h"
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

static void by_call(uint64_t seed, uint64_t epoch, int64_t n, uint64_t *images)
{
    for (int64_t i = 0; i < n; i++)
        images[i] = stkt_permute(seed, epoch, (uint64_t)n, (uint64_t)i);
}

/* If these images change, the order of all data sets changes, and STKI_ORDER_VERSION must be increased. */
static void known_images(void **state)
{
    static const uint64_t rows[][5] = {
        /* seed, epoch, n, index, image */
        {0, 0, 1, 0, 0},
        {0, 0, 2, 1, 1},
        {1, 0, 5, 3, 0},
        {7, 3, 16, 15, 5},
        {7, 3, 17, 4, 4},
        {1, 2, 1000, 999, 302},
        {42, 9, 65537, 12345, 54587},
        {UINT64_MAX, UINT64_C(1) << 63, 1000000, 0, 835969},
        {3, 1, 1000000000, 999999999, 884953659},
        {5, 0, UINT64_C(1000000000000), UINT64_C(123456789012), UINT64_C(587731712862)},
        {5, 0, INT64_MAX, UINT64_C(1) << 62, UINT64_C(2615882278018122875)},
        {5, 1, (UINT64_C(1) << 62) + 1, 17, UINT64_C(3573824389402785222)},
    };

    (void)state;
    assert_int_equal(STKI_ORDER_VERSION, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(stkt_permute(rows[i][0], rows[i][1], rows[i][2], rows[i][3]) == rows[i][4]);
}

static void is_bijection(void **state)
{
    static uint64_t images[70000];

    (void)state;
    for (int64_t n = 1; n <= 300; n++) {
        computed((uint64_t)n, 0, n, images);
        assert_true(stkt_is_bijection(images, n));
    }
    for (int64_t power = 4; power <= 65536; power *= 4) {
        for (int64_t n = power - 1; n <= power + 1; n++) {
            computed(11, (uint64_t)n, n, images);
            assert_true(stkt_is_bijection(images, n));
        }
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Sets that are too large to enumerate: images lie in the range, and a long run has no duplicates. */
static void is_injective_on_huge_sets(void **state)
{
    enum { RUN = 100000 };
    static uint64_t images[RUN];
    static const uint64_t sizes[] = {UINT64_C(1) << 32,
                                     (UINT64_C(1) << 32) + 1,
                                     UINT64_C(1000000000000),
                                     (UINT64_C(1) << 62) - 1,
                                     UINT64_C(1) << 62,
                                     (UINT64_C(1) << 62) + 1,
                                     INT64_MAX,
                                     UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stki_permutation permutation;
        uint64_t top = 0;

        stki_permutation_init(&permutation, i, 1, sizes[i]);
        stki_permutation_run(&permutation, sizes[i] - RUN, RUN, images);
        for (int k = 0; k < RUN; k++) {
            assert_true(images[k] < sizes[i]);
            top = images[k] > top ? images[k] : top;
        }
        assert_true(top > sizes[i] / 1000 * 999); /* the images reach the top of the range */
        qsort(images, RUN, sizeof images[0], by_value);
        for (int k = 1; k < RUN; k++)
            assert_true(images[k] != images[k - 1]);
    }
}

static void random_access_equals_run(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 255, 256, 257, 1000, 4097, 70000};
    static uint64_t whole[70000], part[1000];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t n = sizes[i];
        stki_permutation permutation;

        stki_permutation_init(&permutation, 9, 4, (uint64_t)n);
        stki_permutation_run(&permutation, 0, n, whole);
        for (int64_t first = 0; first < n; first += 1 + first / 3) {
            for (int64_t count = 0; count <= 1000 && count <= n - first; count += 1 + count / 2) {
                stki_permutation_run(&permutation, (uint64_t)first, count, part);
                assert_memory_equal(part, whole + first, (size_t)count * sizeof part[0]);
            }
            assert_true(stkt_permute(9, 4, (uint64_t)n, (uint64_t)first) == whole[first]);
        }
    }
}

/* Mapping of arbitrary indices in place, which mixtures use. */
static void map_equals_run(void **state)
{
    static const int64_t sizes[] = {1, 5, 256, 1000, 65537};
    static uint64_t whole[65537], values[1500];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stki_permutation permutation;

        stki_permutation_init(&permutation, 3, i, (uint64_t)sizes[i]);
        stki_permutation_run(&permutation, 0, sizes[i], whole);
        for (int64_t count = 0; count <= 1500; count += 1 + count) {
            for (int64_t k = 0; k < count; k++)
                values[k] = (uint64_t)(k * k * 31 + 7) % (uint64_t)sizes[i];
            stki_permutation_map(&permutation, values, count);
            for (int64_t k = 0; k < count; k++)
                assert_true(values[k] == whole[(uint64_t)(k * k * 31 + 7) % (uint64_t)sizes[i]]);
        }
    }
}

/* Each variant of a pass must give the same values and leftovers as the plain one and write at most
 * STKI_PERMUTATION_SPARE elements beyond its output. */
static void check_variant(stki_permutation_pass *pass, const stki_permutation *permutation)
{
    enum { MOST = STKI_PERMUTATION_BLOCK, GUARD = 8, ROOM = MOST + STKI_PERMUTATION_SPARE + GUARD };
    uint64_t values[2][ROOM], out[2][MOST + GUARD];
    int32_t place[2][ROOM];

    for (int count = 0; count <= MOST; count += 1 + count / 40) {
        int left[2];

        for (int i = 0; i < ROOM; i++) {
            uint64_t value = stkt_permute(3, 4, UINT64_C(1) << 62, (uint64_t)(count * 1000 + i)) % permutation->n;

            values[0][i] = values[1][i] = i < 2 && count % 2 ? (uint64_t)i : value;
            place[0][i] = place[1][i] = i < count ? count - 1 - i : 0;
        }
        for (int i = 0; i < MOST + GUARD; i++)
            out[0][i] = out[1][i] = UINT64_MAX;
        left[0] = stki_permutation_pass_plain(permutation, values[0], place[0], count, out[0]);
        left[1] = pass(permutation, values[1], place[1], count, out[1]);
        assert_int_equal(left[0], left[1]);
        assert_memory_equal(values[0], values[1], (size_t)left[0] * sizeof values[0][0]);
        assert_memory_equal(place[0], place[1], (size_t)left[0] * sizeof place[0][0]);
        for (int i = 0; i < MOST + GUARD; i++)
            if (i >= count || out[0][i] < permutation->n)
                assert_true(out[0][i] == out[1][i]);
        for (int i = count + STKI_PERMUTATION_SPARE; i < ROOM; i++) {
            assert_true(values[0][i] == values[1][i]);
            assert_int_equal(place[1][i], 0);
        }
    }
}

static void variants_agree(void **state)
{
    static const uint64_t sizes[] = {1,        2, 5, 300, 65537, 1 << 20, UINT64_C(1) << 33, (UINT64_C(1) << 62) + 1,
                                     INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            stki_permutation permutation;

            stki_permutation_init(&permutation, seed, 1, sizes[i]);
            check_variant(permutation.pass, &permutation);
#if defined(__x86_64__)
            if (stki_isa_usable(STKI_ISA_AVX2))
                check_variant(stki_permutation_pass_avx2, &permutation);
            if (stki_isa_usable(STKI_ISA_AVX512))
                check_variant(stki_permutation_pass_avx512, &permutation);
#endif
        }
}

/* Several permutations evaluated together, in any combination and with each variant, give the same images as each
 * alone. */
static void several_are_evaluated_together(void **state)
{
    enum { RUN = 700 };
    static const uint64_t sizes[][STKI_PERMUTATIONS_MOST] = {
        {1, 2, 3, 5, 17, 200, 255, 256},                     /* 24 rounds */
        {300, 6250, 16384, 16385, 50000, 65535, 65536, 257}, /* 12 */
        {65537, UINT64_C(1) << 20, 1000003, UINT64_C(1) << 40, 1 << 18, 99999999, UINT64_C(1) << 33,
         (UINT64_C(1) << 62) + 1}, /* 8 */
    };
    uint64_t values[RUN], expected[RUN];
    uint8_t which[RUN];

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        stki_permutations set = {0};
        stki_permutation one, other;
        stki_permutations_pass *passes[3] = {stki_permutations_pass_plain};
        int variants = 1;

#if defined(__x86_64__)
        if (stki_isa_usable(STKI_ISA_AVX2))
            passes[variants++] = stki_permutations_pass_avx2;
        if (stki_isa_usable(STKI_ISA_AVX512))
            passes[variants++] = stki_permutations_pass_avx512;
#endif
        stki_permutation_init(&other, 1, 1, sizes[(s + 1) % 3][0]);
        for (int d = 0; d < STKI_PERMUTATIONS_MOST; d++) {
            stki_permutation_init(&one, 11, (uint64_t)d, sizes[s][d]);
            assert_true(stki_permutations_add(&set, &one));
            assert_false(stki_permutations_add(&set, &other)); /* it has a different number of rounds */
        }
        assert_false(stki_permutations_add(&set, &one)); /* full */
        for (int v = 0; v < variants; v++)
            for (int count = 0; count <= RUN; count += 1 + count / 3) {
                set.pass = passes[v];
                for (int i = 0; i < count; i++) {
                    which[i] = (uint8_t)stkt_permute(5, (uint64_t)count, STKI_PERMUTATIONS_MOST, (uint64_t)i % 8);
                    values[i] = stkt_permute(6, (uint64_t)count, UINT64_C(1) << 62, (uint64_t)i) % sizes[s][which[i]];
                    values[i] = i % 5 == 0 && sizes[s][which[i]] > 1 ? (uint64_t)i / 5 % 2 : values[i];
                    expected[i] = stkt_permute(11, which[i], sizes[s][which[i]], values[i]);
                }
                stki_permutations_map(&set, which, values, count);
                assert_memory_equal(values, expected, (size_t)count * sizeof values[0]);
            }
    }
}

/* Flipping one bit of the index flips every bit of the image half of the time. */
static void every_bit_affects_every_bit(void **state)
{
    enum { TRIALS = 4000 };
    static const int widths[] = {18, 20, 40, 62};

    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        int bits = widths[w];
        uint64_t n = UINT64_C(1) << bits;

        for (int in = 0; in < bits; in++) {
            int64_t flips[64] = {0};

            for (uint64_t trial = 0; trial < TRIALS; trial++) {
                uint64_t index = trial * UINT64_C(0x9e3779b97f4a7c15) & (n - 1);
                stki_permutation permutation;
                uint64_t a, b;

                stki_permutation_init(&permutation, trial, 0, n);
                stki_permutation_run(&permutation, index, 1, &a);
                stki_permutation_run(&permutation, index ^ UINT64_C(1) << in, 1, &b);
                for (int out = 0; out < bits; out++)
                    flips[out] += (int64_t)((a ^ b) >> out & 1);
            }
            for (int out = 0; out < bits; out++) /* 5.5 standard deviations, because there are 6,172 pairs of bits */
                stkt_expect_score("avalanche", bits, ((double)flips[out] - TRIALS / 2.0) / (sqrt(TRIALS) / 2), 5.5);
        }
    }
}

static void all_orders_are_even(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++)
        stkt_check_all_orders(by_call, n, 100000);
}

static void statistics(void **state)
{
    (void)state;
    stkt_check_position_by_value(computed, 7, 20000);
    stkt_check_position_by_value(computed, 16, 20000);
    stkt_check_position_by_value(computed, 65, 20000);
    stkt_check_fixed_points(computed, 64, 20000);
    stkt_check_fixed_points(computed, 100, 20000);
    stkt_check_long(computed, 65536);
    stkt_check_long(computed, 65537);
    stkt_check_long(computed, 100000);
    for (int64_t n = 10; n <= 100000; n *= 10)
        stkt_check_correlations(computed, n);
}

/* ---- the draws of a shuffle ---- */

static void check_draw(stki_shuffle_draw *draw, uint64_t key, uint64_t stream, uint64_t first, int count)
{
    enum { GUARD = 8, ROOM = STKI_SHUFFLE_BLOCK + STKI_SHUFFLE_SPARE + GUARD };
    uint64_t products[ROOM];

    for (int k = 0; k < ROOM; k++)
        products[k] = UINT64_MAX;
    draw(key, stream, first, count, products);
    for (int k = 0; k < count; k++) {
        const uint64_t i = first + (uint64_t)k;

        if ((uint32_t)products[k] != 0)
            assert_int_equal(products[k] >> 32, stki_philox_below(key, stream, i, i + 1));
    }
    for (int k = count + STKI_SHUFFLE_SPARE; k < ROOM; k++)
        assert_true(products[k] == UINT64_MAX);
}

static void shuffles_draw_as_philox(void **state)
{
    stki_shuffle_draw *draws[3] = {stki_shuffle_draw_plain};
    int variants = 1;

    (void)state;
#if defined(__x86_64__)
    if (stki_isa_usable(STKI_ISA_AVX2))
        draws[variants++] = stki_shuffle_draw_avx2;
    if (stki_isa_usable(STKI_ISA_AVX512))
        draws[variants++] = stki_shuffle_draw_avx512;
#endif
    for (int v = 0; v < variants; v++)
        for (uint64_t n = 0; n < 300; n++) {
            const uint64_t key = stki_order_key(n, 1), high = (UINT64_C(1) << 32) - 1 - STKI_SHUFFLE_BLOCK - n;

            check_draw(draws[v], key, n % 7, n % 3 ? n * n * n : high, (int)(n % STKI_SHUFFLE_BLOCK) + 1);
        }
}

/* Cases in which the product does not decide whether a draw is rejected (one in 2^32; these keys were found by a
 * search). */
static void undecided_draws_are_checked(void **state)
{
    static const struct {
        uint64_t key, index;
    } open[] = {{7497142, 65327}, {12597531, 65497}};
    uint64_t places[STKI_SHUFFLE_BLOCK + STKI_SHUFFLE_SPARE];

    (void)state;
    for (int i = 0; i < 2; i++) {
        stki_shuffle_draw_plain(open[i].key, STKI_KEY_SHUFFLE, open[i].index, 1, places);
        assert_true((uint32_t)places[0] == 0);
        stki_shuffle_places(open[i].key, STKI_KEY_SHUFFLE, open[i].index - 5, 10, places);
        for (uint64_t k = 0; k < 10; k++)
            assert_int_equal(places[k], stki_philox_below(open[i].key, STKI_KEY_SHUFFLE, open[i].index - 5 + k,
                                                          open[i].index - 4 + k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_images),
        cmocka_unit_test(is_bijection),
        cmocka_unit_test(is_injective_on_huge_sets),
        cmocka_unit_test(random_access_equals_run),
        cmocka_unit_test(map_equals_run),
        cmocka_unit_test(variants_agree),
        cmocka_unit_test(shuffles_draw_as_philox),
        cmocka_unit_test(undecided_draws_are_checked),
        cmocka_unit_test(several_are_evaluated_together),
        cmocka_unit_test(every_bit_affects_every_bit),
        cmocka_unit_test(all_orders_are_even),
        cmocka_unit_test(statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
