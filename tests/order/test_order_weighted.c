/* Tests of `order: weighted`: the frequency of each sample, independence of positions and epochs, random access,
 * subsets, lengths and rejected weights. */
#include "allocate.h"
#include "cmocka_all.h"
#include "faults.h"
#include "order.h"
#include "order_statistics.h"
#include "permutation.h"
#include "philox.h"
#include <stdlib.h>
#include <string.h>

static stki_order *make(const double *weights, int64_t count, uint64_t seed, int64_t length)
{
    stki_order_opts opts = {
        .kind = STKI_ORDER_WEIGHTED, .count = count, .weights = weights, .seed = seed, .length = length};
    stki_order *order = NULL;
    stk_error err;

    if (stki_order_create(&opts, &order, &err) != STK_OK)
        fail_msg("%s", err.message);
    return order;
}

static void count_samples(const stki_order *order, int64_t epochs, int64_t *counts)
{
    stki_position out[1000];
    int64_t length = stki_order_length(order);

    for (int64_t epoch = 0; epoch < epochs; epoch++)
        for (int64_t p = 0; p < length; p += 1000) {
            int64_t n = length - p < 1000 ? length - p : 1000;

            assert_int_equal(stki_order_eval(order, epoch, p, n, out, NULL), STK_OK);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(out[i].draw, p + i);
                counts[out[i].sample]++;
            }
        }
}

static void check_frequencies(const double *weights, int n, uint64_t seed)
{
    enum { DRAWS = 400000 };
    stki_order *order = make(weights, n, seed, 10000);
    int64_t *counts = calloc((size_t)n, sizeof *counts), kept[256];
    double sum = 0, expected[256];
    int cells = 0;

    for (int i = 0; i < n; i++)
        sum += weights[i];
    count_samples(order, DRAWS / 10000, counts);
    for (int i = 0; i < n; i++) {
        if (weights[i] == 0) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        kept[cells] = counts[i];
        expected[cells++] = weights[i] / sum * DRAWS;
    }
    if (cells > 1)
        stkt_expect_score("frequencies", n, stkt_chi_square_score(stkt_chi_square(kept, expected, cells), cells - 1),
                          4);
    free(counts);
    stki_order_destroy(order);
}

static void frequencies_follow_the_weights(void **state)
{
    static const double few[] = {1, 2, 3, 4}, zeros[] = {0, 0, 5, 0, 1, 0}, alone[] = {0, 0, 1e-300, 0},
                        large[] = {1e307, 2e307, 1e306}, wide[] = {1000, 1, 10, 0.5, 100};
    double rising[200];

    (void)state;
    for (int i = 0; i < 200; i++)
        rising[i] = i % 7 == 3 ? 0 : 1 + i * i / 100.0;
    for (uint64_t seed = 0; seed < 3; seed++) {
        check_frequencies(few, 4, seed);
        check_frequencies(zeros, 6, seed);
        check_frequencies(alone, 4, seed);
        check_frequencies(large, 3, seed);
        check_frequencies(wide, 5, seed);
        check_frequencies(rising, 200, seed);
    }
    check_frequencies((const double[]){3}, 1, 1);
}

/* Rounding while the table is built must not give samples of weight 0 a share. */
static void weight_0_is_never_drawn(void **state)
{
    enum { N = 1000 };
    double weights[N];
    int64_t counts[N];

    (void)state;
    for (int round = 0; round < 20; round++) {
        stki_order *order;

        for (int i = 0; i < N; i++)
            weights[i] = (i * 7 + round) % 3 == 0 ? 0 : 0.1 + (i * 31 + round) % 97 / 7.0;
        memset(counts, 0, sizeof counts);
        order = make(weights, N, (uint64_t)round, 20000);
        count_samples(order, 2, counts);
        for (int i = 0; i < N; i++)
            if (weights[i] == 0)
                assert_int_equal(counts[i], 0);
        stki_order_destroy(order);
    }
}

/* The rarest draw: the 32 bits that decide between a column and its alias are 0. */
static void weight_0_is_not_drawn_by_a_fraction_of_0(void **state)
{
    enum { N = 1024, COLUMN = 1015 };
    const int64_t position = 134808924;
    const stki_philox drawn =
        stki_philox_draw(stki_order_key(7, 0), STKI_KEY_WEIGHTED, (uint64_t)position / 2); /* found by trying them */
    const uint64_t bits = (uint64_t)drawn.word[1] << 32 | drawn.word[0];
    double weights[N] = {1};
    stki_order *order = make(weights, N, 7, position + 1);
    stki_position out;

    (void)state;
    assert_int_equal(bits / (UINT64_MAX / N + 1), COLUMN);
    assert_int_equal((uint32_t)(bits * N >> 32), 0);
    stki_order_eval(order, 0, position, 1, &out, NULL);
    assert_int_equal(out.sample, 0);
    stki_order_destroy(order);
}

/* A position's sample does not depend on earlier calls. Another seed or epoch gives another order. */
static void positions_are_a_pure_function(void **state)
{
    static const double weights[] = {1, 2, 3, 4, 5, 6, 7};
    enum { LENGTH = 1001 };
    stki_position whole[LENGTH], one[3];
    stki_order *order = make(weights, 7, 9, LENGTH), *other = make(weights, 7, 10, LENGTH);
    int same_epoch = 0, same_seed = 0;

    (void)state;
    stki_order_eval(order, 4, 0, LENGTH, whole, NULL);
    for (int64_t p = 0; p < LENGTH - 3; p++) {
        stki_order_eval(order, 4, p, 1 + p % 3, one, NULL);
        assert_memory_equal(one, whole + p, (size_t)(1 + p % 3) * sizeof *one);
        stki_order_eval(order, 5, p, 1, one, NULL);
        same_epoch += one[0].sample == whole[p].sample;
        stki_order_eval(other, 4, p, 1, one, NULL);
        same_seed += one[0].sample == whole[p].sample;
    }
    /* two independent draws agree with a probability of 140 / 784 */
    assert_in_range(same_epoch, 998 * 140 / 784 - 70, 998 * 140 / 784 + 70);
    assert_in_range(same_seed, 998 * 140 / 784 - 70, 998 * 140 / 784 + 70);
    stki_order_destroy(order);
    stki_order_destroy(other);
}

/* Neighboring positions share a block of random bits, but their samples are independent. */
static void neighbors_are_independent(void **state)
{
    enum { N = 8, LENGTH = 100000 };
    static const double weights[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    stki_order *order = make(weights, N, 3, LENGTH);
    stki_position *out = calloc(LENGTH, sizeof *out);

    (void)state;
    stki_order_eval(order, 0, 0, LENGTH, out, NULL);
    for (int lag = 1; lag <= 3; lag++) {
        int64_t pairs[N * N] = {0};
        double expected[N * N];

        for (int i = 0; i + lag < LENGTH; i++)
            pairs[out[i].sample * N + out[i + lag].sample]++;
        for (int i = 0; i < N * N; i++)
            expected[i] = (double)(LENGTH - lag) / (N * N);
        stkt_expect_score("pairs", lag, stkt_chi_square_score(stkt_chi_square(pairs, expected, N * N), N * N - 1), 4);
    }
    free(out);
    stki_order_destroy(order);
}

static void a_subset_uses_the_weights_of_its_samples(void **state)
{
    static const double weights[] = {100, 1, 100, 3, 100, 0};
    static const int64_t indices[] = {3, 1, 5};
    stki_order_opts opts = {.kind = STKI_ORDER_WEIGHTED,
                            .count = 6,
                            .weights = weights,
                            .indices = indices,
                            .index_count = 3,
                            .length = 40000};
    stki_order *order;
    int64_t counts[6] = {0};

    (void)state;
    assert_int_equal(stki_order_create(&opts, &order, NULL), STK_OK);
    count_samples(order, 1, counts);
    assert_int_equal(counts[0] + counts[2] + counts[4] + counts[5], 0);
    assert_in_range(counts[3], 30000 - 450, 30000 + 450);
    stki_order_destroy(order);
    opts.length = 0;
    assert_int_equal(stki_order_create(&opts, &order, NULL), STK_OK);
    assert_int_equal(stki_order_length(order), 3);
    stki_order_destroy(order);
}

static void refuse(const double *weights, int64_t count, int64_t record, const char *found)
{
    stki_order_opts opts = {.kind = STKI_ORDER_WEIGHTED, .count = count, .weights = weights};
    stki_order *order = NULL;
    stk_error err;

    assert_int_equal(stki_order_create(&opts, &order, &err), STK_E_RANGE);
    assert_null(order);
    assert_int_equal(err.record, record);
    assert_string_equal(err.found, found);
}

static void refusals(void **state)
{
    (void)state;
    refuse((const double[]){1, 2, -1}, 3, 2, "-1");
    refuse((const double[]){1, INFINITY, 1}, 3, 1, "inf");
    refuse((const double[]){NAN}, 1, 0, "nan");
    refuse((const double[]){0, 0}, 2, -1, "0");
    refuse((const double[]){1e308, 1e308}, 2, -1, "inf");
}

static void allocations(void **state)
{
    static const double weights[] = {1, 2, 3};
    stki_order_opts opts = {.kind = STKI_ORDER_WEIGHTED, .count = 3, .weights = weights};
    stki_memory_stats before, after;
    stki_order *order = NULL;
    int64_t n = 1;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (;; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_order_create(&opts, &order, NULL);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_null(order);
    }
    assert_int_equal(n, 6); /* order, table, its columns, and temporary shares and lists */
    stki_order_destroy(order);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_follow_the_weights),
        cmocka_unit_test(weight_0_is_never_drawn),
        cmocka_unit_test(weight_0_is_not_drawn_by_a_fraction_of_0),
        cmocka_unit_test(positions_are_a_pure_function),
        cmocka_unit_test(neighbors_are_independent),
        cmocka_unit_test(a_subset_uses_the_weights_of_its_samples),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
