/* Tests of mixtures of data sets against their definition, which this file computes step by step from the permutations:
 * exact counts in every epoch, no sample repeated before all have occurred once, stop rules, subsets, and rejected
 * options. */
#include "allocate.h"
#include "cmocka_all.h"
#include "faults.h"
#include "order.h"
#include "order_mixture.h"
#include "permutation.h"
#include "permute.h"
#include "philox.h"
#include <stdlib.h>
#include <string.h>

static stki_order *make(const stki_order_opts *opts)
{
    stki_order *order = NULL;
    stk_error err;

    if (stki_order_create(opts, &order, &err) != STK_OK)
        fail_msg("%s", err.message);
    return order;
}

static int64_t total(const stki_order_source *sources, int count)
{
    int64_t sum = 0;

    for (int d = 0; d < count; d++)
        sum += sources[d].count;
    return sum;
}

static stki_order *mix(const stki_order_source *sources, int count, enum stki_order_kind kind, int64_t length,
                       enum stki_mixture_stop stop, uint64_t seed)
{
    stki_order_opts opts = {.kind = kind,
                            .count = total(sources, count),
                            .seed = seed,
                            .length = length,
                            .sources = sources,
                            .source_count = count,
                            .stop = stop};

    return make(&opts);
}

/* ---- the definition ---- */

/* Weights are integers here, so the shares are exact. */
static void shares_of(const stki_order_source *sources, int count, int64_t length, int64_t *shares)
{
    int64_t sum = 0, given = 0;
    bool lifted[16] = {false};

    for (int d = 0; d < count; d++)
        sum += (int64_t)sources[d].weight;
    for (int d = 0; d < count; d++) {
        shares[d] = length * (int64_t)sources[d].weight / sum;
        given += shares[d];
    }
    for (; given < length; given++) {
        int best = -1;

        for (int d = 0; d < count; d++) {
            if (lifted[d])
                continue;
            if (best < 0 || length * (int64_t)sources[d].weight % sum > length * (int64_t)sources[best].weight % sum)
                best = d;
        }
        lifted[best] = true;
        shares[best]++;
    }
}

static uint64_t seed_of(uint64_t seed, int d)
{
    stki_philox drawn = stki_philox_draw(seed, STKI_KEY_SOURCE, (uint64_t)d);

    return (uint64_t)drawn.word[1] << 32 | drawn.word[0];
}

static void check_definition(const stki_order_source *sources, int count, int64_t length, uint64_t seed, int64_t epoch)
{
    stki_order *order = mix(sources, count, STKI_ORDER_RANDOM, length, STKI_STOP_FIRST, seed);
    stki_order_opts outer_opts = {.kind = STKI_ORDER_RANDOM, .count = length, .seed = seed};
    stki_order *outer = make(&outer_opts);
    stki_position *found = calloc((size_t)length, sizeof *found), *q = calloc((size_t)length, sizeof *q);
    int64_t shares[16];

    assert_int_equal(stki_order_length(order), length);
    shares_of(sources, count, length, shares);
    assert_int_equal(stki_order_eval(outer, epoch, 0, length, q, NULL), STK_OK);
    for (int64_t p = 0; p < length; p += 700) /* in calls that end inside blocks */
        assert_int_equal(stki_order_eval(order, epoch, p, length - p < 700 ? length - p : 700, found + p, NULL),
                         STK_OK);
    for (int64_t p = 0; p < length; p++) {
        int64_t j = q[p].sample, first = 0, n, passes;
        int d = 0;

        for (; j >= shares[d]; d++) {
            j -= shares[d];
            first += sources[d].count;
        }
        n = sources[d].count;
        passes = (epoch * shares[d] + j) / n;
        assert_int_equal(found[p].source, d);
        assert_int_equal(found[p].sample, first + (int64_t)stkt_permute(seed_of(seed, d), (uint64_t)passes, (uint64_t)n,
                                                                        (uint64_t)((epoch * shares[d] + j) % n)));
        assert_int_equal(found[p].draw, p);
        assert_int_equal(found[p].length, -1);
    }
    free(found);
    free(q);
    stki_order_destroy(order);
    stki_order_destroy(outer);
}

static void equals_the_definition(void **state)
{
    const stki_order_source two[] = {{"a", 100, 7, NULL, 0}, {"b", 50, 3, NULL, 0}};
    const stki_order_source many[] = {{"a", 1000, 1, NULL, 0},  {"b", 3, 5, NULL, 0},  {"c", 1, 2, NULL, 0},
                                      {"d", 70000, 9, NULL, 0}, {"e", 10, 0, NULL, 0}, {"f", 511, 11, NULL, 0}};

    (void)state;
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        check_definition(two, 2, 10, 1, epoch);
        check_definition(two, 2, 1001, 2, epoch);
        check_definition(many, 6, 4321, 3, epoch);
        check_definition(many, 6, 70001, 4, epoch * 1000003);
    }
}

/* Weights that are proportional to integers give the same shares as the integers. */
static void weights_that_are_fractions(void **state)
{
    static const struct {
        double weights[3];
        int64_t shares[3];
    } cases[] = {{{1.5, 1, 0}, {30, 20, 0}},      {{1, 1.5, 0}, {20, 30, 0}},         {{0.25, 2, 3.125}, {2, 16, 25}},
                 {{3.125, 2, 0.25}, {25, 16, 2}}, {{1e-3, 0.999, 4}, {1, 999, 4000}}, {{1e14, 3e14, 0}, {10, 30, 0}}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stki_order_source sources[3] = {{"a", 9000, 0, NULL, 0}, {"b", 9000, 0, NULL, 0}, {"c", 9000, 0, NULL, 0}};
        int64_t length = 0;
        stki_mixture *m;

        for (int d = 0; d < 3; d++) {
            sources[d].weight = cases[i].weights[d];
            length += cases[i].shares[d];
        }
        assert_int_equal(stki_mixture_create(sources, 3, STKI_STOP_FIRST, length, true, 1, &m, NULL), STK_OK);
        for (int d = 0; d < 3; d++)
            assert_int_equal(stki_mixture_share(m, d), cases[i].shares[d]);
        stki_mixture_destroy(m);
    }
}

static void many_sources_are_found(void **state)
{
    stki_order_source sources[STKI_MAX_SOURCES];
    stki_position out[1000];
    stki_order *order;
    int64_t seen[STKI_MAX_SOURCES] = {0};

    (void)state;
    for (int d = 0; d < STKI_MAX_SOURCES; d++) /* every fifth source has weight 0, but not the last one */
        sources[d] = (stki_order_source){"x", 10, d % 5 != 1 ? 1 + d % 3 : 0, NULL, 0};
    order = mix(sources, STKI_MAX_SOURCES, STKI_ORDER_RANDOM, 1000, STKI_STOP_FIRST, 1);
    stki_order_eval(order, 0, 0, 1000, out, NULL);
    for (int i = 0; i < 1000; i++) {
        assert_in_range(out[i].sample, out[i].source * 10, out[i].source * 10 + 9);
        seen[out[i].source]++;
    }
    for (int d = 0; d < STKI_MAX_SOURCES; d++)
        assert_true(d % 5 == 1 ? seen[d] == 0 : seen[d] > 0);
    stki_order_destroy(order);
}

/* ---- consequences of the definition ---- */

static void counts_are_exact_and_no_sample_repeats_early(void **state)
{
    const stki_order_source sources[] = {
        {"web", 1000, 0.7, NULL, 0}, {"books", 77, 0.2, NULL, 0}, {"code", 40, 0.1, NULL, 0}};
    enum { LENGTH = 331 };
    stki_order *order = mix(sources, 3, STKI_ORDER_RANDOM, LENGTH, STKI_STOP_FIRST, 5);
    int seen[1117] = {0};
    int64_t expected[3];

    (void)state;
    stki_mixture_counts((const int64_t[]){7, 2, 1}, 3, LENGTH, expected);
    assert_int_equal(expected[0], 232); /* 231.7, 66.2, 33.1 */
    assert_int_equal(expected[1], 66);
    assert_int_equal(expected[2], 33);
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        stki_position out[LENGTH];
        int64_t counts[3] = {0};

        stki_order_eval(order, epoch, 0, LENGTH, out, NULL);
        for (int i = 0; i < LENGTH; i++) {
            counts[out[i].source]++;
            seen[out[i].sample]++;
        }
        assert_memory_equal(counts, expected, sizeof counts);
        for (int d = 0, first = 0; d < 3; first += (int)sources[d++].count) {
            int least = INT32_MAX, most = 0;

            for (int i = first; i < first + (int)sources[d].count; i++) {
                least = seen[i] < least ? seen[i] : least;
                most = seen[i] > most ? seen[i] : most;
            }
            assert_true(most - least <= 1);
        }
    }
    stki_order_destroy(order);
}

static void stop_rules(void **state)
{
    const stki_order_source sources[] = {{"a", 1000, 0.7, NULL, 0}, {"b", 30, 0.3, NULL, 0}};
    const stki_order_source thirds[] = {{"a", 10, 1.0 / 3, NULL, 0}, {"b", 10, 2.0 / 3, NULL, 0}};
    int64_t lengths[2], shares[2][2];

    (void)state;
    for (int stop = 0; stop < 2; stop++) {
        stki_mixture *m;

        assert_int_equal(stki_mixture_create(sources, 2, (enum stki_mixture_stop)stop, 0, true, 1, &m, NULL), STK_OK);
        lengths[stop] = stki_mixture_length(m);
        shares[stop][0] = stki_mixture_share(m, 0);
        shares[stop][1] = stki_mixture_share(m, 1);
        stki_mixture_destroy(m);
    }
    assert_int_equal(lengths[0], 100); /* 70 + 30: b is exhausted */
    assert_int_equal(shares[0][0], 70);
    assert_int_equal(shares[0][1], 30);
    assert_int_equal(lengths[1], 1429); /* 1000 / 0.7 = 1428.57: a is exhausted */
    assert_true(shares[1][0] >= 1000);
    assert_int_equal(shares[1][0] + shares[1][1], 1429);
    for (int stop = 0; stop < 2; stop++) { /* weights that are not finite decimals */
        stki_order *order = mix(thirds, 2, STKI_ORDER_RANDOM, 0, (enum stki_mixture_stop)stop, 1);

        assert_int_equal(stki_order_length(order), stop == STKI_STOP_FIRST ? 15 : 30);
        stki_order_destroy(order);
    }
}

static void no_source_begins_again_before_the_first_stops(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 60; n++)
        for (int w = 1; w < 40; w += 3) {
            stki_order_source sources[] = {{"a", n, w, NULL, 0}, {"b", 37, 17, NULL, 0}, {"c", 90, 0.25, NULL, 0}};

            for (int stop = 0; stop < 2; stop++) {
                stki_mixture *m;
                bool any = false;

                assert_int_equal(stki_mixture_create(sources, 3, (enum stki_mixture_stop)stop, 0, true, 1, &m, NULL),
                                 STK_OK);
                for (int d = 0; d < 3; d++) {
                    if (stop == STKI_STOP_FIRST)
                        assert_true(stki_mixture_share(m, d) <= sources[d].count);
                    else
                        assert_true(stki_mixture_share(m, d) >= sources[d].count);
                    any = any || labs(stki_mixture_share(m, d) - sources[d].count) <= 1;
                }
                assert_true(any);
                stki_mixture_destroy(m);
            }
        }
}

static void sequential_follows_each_other(void **state)
{
    const stki_order_source sources[] = {{"a", 5, 1, NULL, 0}, {"b", 3, 1, NULL, 0}};
    const int64_t expected[2][6] = {{0, 1, 2, 5, 6, 7}, {3, 4, 0, 5, 6, 7}};
    stki_order *order = mix(sources, 2, STKI_ORDER_SEQUENTIAL, 0, STKI_STOP_FIRST, 0);
    stki_position out[6];

    (void)state;
    assert_int_equal(stki_order_length(order), 6);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        stki_order_eval(order, epoch, 0, 6, out, NULL);
        for (int i = 0; i < 6; i++)
            assert_int_equal(out[i].sample, expected[epoch][i]);
    }
    stki_order_destroy(order);
}

/* Epochs that are longer or shorter than the data set. A pass over a data set continues across epochs. */
static void one_data_set_in_epochs_of_any_length(void **state)
{
    static const int64_t indices[] = {11, 22, 33, 44, 55, 66, 77};

    (void)state;
    for (int kind = STKI_ORDER_SEQUENTIAL; kind <= STKI_ORDER_RANDOM; kind++)
        for (int64_t length = 1; length < 20; length++) {
            stki_order_opts opts = {.kind = (enum stki_order_kind)kind,
                                    .count = 100,
                                    .seed = 3,
                                    .indices = indices,
                                    .index_count = 7,
                                    .length = length};
            stki_order *order = make(&opts);
            int seen[100] = {0};
            stki_position out[20];

            assert_int_equal(stki_order_length(order), length);
            for (int64_t epoch = 0; epoch < 7; epoch++) {
                stki_order_eval(order, epoch, 0, length, out, NULL);
                for (int i = 0; i < length; i++)
                    seen[out[i].sample]++;
            }
            for (int i = 0; i < 7; i++) /* after seven epochs of any length each sample has occurred `length` times */
                assert_int_equal(seen[indices[i]], length);
            stki_order_destroy(order);
        }
}

static void subsets_of_sources(void **state)
{
    static const int64_t some[] = {4, 2}, others[] = {9, 0, 8};
    const stki_order_source sources[] = {{"a", 5, 2, some, 2}, {"b", 10, 3, others, 3}};
    stki_order *order = mix(sources, 2, STKI_ORDER_RANDOM, 0, STKI_STOP_FIRST, 1);
    stki_position out[5];
    int64_t sum = 0;

    (void)state;
    assert_int_equal(stki_order_length(order), 5);
    stki_order_eval(order, 3, 0, 5, out, NULL);
    for (int i = 0; i < 5; i++) {
        assert_true(out[i].source == 0 ? out[i].sample == 4 || out[i].sample == 2
                                       : out[i].sample == 14 || out[i].sample == 5 || out[i].sample == 13);
        sum += out[i].sample;
    }
    assert_int_equal(sum, 4 + 2 + 14 + 5 + 13);
    stki_order_destroy(order);
}

/* In far epochs, epoch * c_d does not fit in 63 bits. */
static void far_epochs(void **state)
{
    const stki_order_source sources[] = {{"a", INT64_C(1) << 40, 1, NULL, 0}, {"b", 3, 1, NULL, 0}};
    stki_order *order = mix(sources, 2, STKI_ORDER_RANDOM, INT64_C(1) << 41, STKI_STOP_FIRST, 1);
    stki_position out[600], again;

    (void)state;
    stki_order_eval(order, INT64_C(1) << 40, (INT64_C(1) << 41) - 600, 600, out, NULL);
    for (int i = 0; i < 600; i++) {
        assert_true(out[i].source == 0 ? out[i].sample >= 0 && out[i].sample < INT64_C(1) << 40
                                       : out[i].sample >= INT64_C(1) << 40 && out[i].sample < (INT64_C(1) << 40) + 3);
        stki_order_eval(order, INT64_C(1) << 40, (INT64_C(1) << 41) - 600 + i, 1, &again, NULL);
        assert_memory_equal(&again, &out[i], sizeof again);
    }
    stki_order_destroy(order);
}

static void refuse(stki_order_opts opts, stk_status status, const char *words)
{
    stki_order *order = NULL;
    stk_error err;

    assert_int_equal(stki_order_create(&opts, &order, &err), status);
    assert_null(order);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" has no \"%s\"", err.message, words);
}

static void refusals(void **state)
{
    static const int64_t outside[] = {0, 5};
    const stki_order_source good[] = {{"a", 5, 1, NULL, 0}, {"b", 3, 1, NULL, 0}};
    const stki_order_source empty[] = {{"a", 5, 1, NULL, 0}, {"bare", 0, 1, NULL, 0}};
    const stki_order_source negative[] = {{"a", 5, 1, NULL, 0}, {"minus", 3, -0.5, NULL, 0}};
    const stki_order_source nothing[] = {{"a", 5, 0, NULL, 0}, {"b", 3, 0, NULL, 0}};
    const stki_order_source tiniest[] = {{"a", 5, 1e-300, NULL, 0}, {"b", 3, 1e-300, NULL, 0}};
    const stki_order_source tiny[] = {{"a", 5, 1, NULL, 0}, {"dust", 3, 1e-20, NULL, 0}};
    const stki_order_source huge[] = {{"all", INT64_MAX / 2, 1, NULL, 0}, {"b", INT64_MAX / 2, 1e9, NULL, 0}};
    const stki_order_source subset[] = {{"a", 5, 1, NULL, 0}, {"cut", 5, 1, outside, 2}};
    stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = 8, .source_count = 2};
    stki_mixture *none = NULL;

    (void)state;
    assert_int_equal(stki_mixture_create(empty, 2, STKI_STOP_FIRST, 0, true, 1, &none, NULL), STK_E_EMPTY);
    assert_null(none);
    opts.sources = empty;
    refuse(opts, STK_E_EMPTY, "bare");
    opts.sources = negative;
    refuse(opts, STK_E_RANGE, "minus");
    opts.sources = nothing;
    refuse(opts, STK_E_RANGE, "largest weight of the 2 data sets: found 0,");
    opts.sources = tiniest;
    refuse(opts, STK_E_RANGE, "largest weight of the 2 data sets: found 1e-300,");
    opts.sources = tiny;
    refuse(opts, STK_E_RANGE, "dust");
    opts.sources = subset;
    refuse(opts, STK_E_RANGE, "cut");
    opts.sources = huge;
    opts.stop = STKI_STOP_ALL;
    refuse(opts, STK_E_LIMIT, "2^62");
    opts.sources = good;
    opts.kind = STKI_ORDER_BLOCK;
    refuse(opts, STK_E_UNSUPPORTED, "block");
    opts.kind = STKI_ORDER_WEIGHTED;
    refuse(opts, STK_E_UNSUPPORTED, "weighted");
}

static void allocations(void **state)
{
    static const int64_t indices[] = {1};
    const stki_order_source sources[] = {{"a", 5, 1, NULL, 0}, {"b", 3, 1, indices, 1}};
    stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = 8, .sources = sources, .source_count = 2};
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
    assert_int_equal(n, 8); /* order, mixture, sources, sums, indices, outer order and its tables */
    stki_order_destroy(order);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition),
        cmocka_unit_test(weights_that_are_fractions),
        cmocka_unit_test(many_sources_are_found),
        cmocka_unit_test(counts_are_exact_and_no_sample_repeats_early),
        cmocka_unit_test(stop_rules),
        cmocka_unit_test(no_source_begins_again_before_the_first_stops),
        cmocka_unit_test(sequential_follows_each_other),
        cmocka_unit_test(one_data_set_in_epochs_of_any_length),
        cmocka_unit_test(subsets_of_sources),
        cmocka_unit_test(far_epochs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
