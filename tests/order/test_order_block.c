/* Tests of `order: block` against its definition: every sample once per epoch, in groups of whole units, and the same
 * positions for calls of any length. */
#include "allocate.h"
#include "cmocka_all.h"
#include "faults.h"
#include "order_difference.h"
#include "order_print.h"
#include <stdlib.h>
#include <string.h>

enum { UNITS = 37 };

static int64_t first[UNITS + 1];

static int set_up(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) /* 0 to 12 samples, some units are empty */
        first[u + 1] = first[u] + (u * 5) % 13;
    return 0;
}

static stki_order *make(int64_t window, uint64_t seed)
{
    stki_order_opts opts = {.kind = STKI_ORDER_BLOCK,
                            .count = first[UNITS],
                            .seed = seed,
                            .unit_first = first,
                            .unit_count = UNITS,
                            .window = window};
    stki_order *order;
    stk_error err;

    assert_int_equal(stki_order_create(&opts, &order, &err), STK_OK);
    return order;
}

static void evaluate(stki_order *order, int64_t epoch, int64_t piece, int64_t *samples)
{
    int64_t n = stki_order_length(order);
    stki_position out[64];
    stk_error err;

    for (int64_t p = 0; p < n; p += piece) {
        int64_t part = n - p < piece ? n - p : piece;

        assert_int_equal(stki_order_eval(order, epoch, p, part, out, &err), STK_OK);
        for (int64_t i = 0; i < part; i++) {
            assert_int_equal(out[i].draw, p + i);
            samples[p + i] = out[i].sample;
        }
    }
}

static int unit_of(int64_t sample)
{
    int u = 0;

    while (first[u + 1] <= sample)
        u++;
    return u;
}

/* With in_order, each unit is read from its first sample to its last, and the units have the same order as with window
 * 1. The window does not affect the order or the fingerprint. */
static void in_order(void **state)
{
    int64_t n = first[UNITS], samples[512], shuffled[512];
    stki_order_print print, others, first_print;

    (void)state;
    for (int64_t window = 1; window < 4; window++) {
        stki_order_opts opts = {.kind = STKI_ORDER_BLOCK,
                                .count = n,
                                .seed = 7,
                                .unit_first = first,
                                .unit_count = UNITS,
                                .window = window,
                                .in_order = true};
        stki_order *runs, *one = make(1, 7);
        stk_error err;

        assert_int_equal(stki_order_create(&opts, &runs, &err), STK_OK);
        for (int64_t epoch = 0; epoch < 6; epoch++) {
            evaluate(runs, epoch, window == 1 ? 1 : 13, samples);
            evaluate(one, epoch, 17, shuffled);
            for (int64_t i = 0, end; i < n; i = end) {
                const int u = unit_of(shuffled[i]);

                end = i + first[u + 1] - first[u];
                for (int64_t k = i; k < end; k++) {
                    assert_int_equal(unit_of(shuffled[k]), u);
                    assert_int_equal(samples[k], first[u] + k - i);
                }
            }
        }
        stki_order_fingerprint(runs, &print);
        stki_order_fingerprint(one, &others);
        assert_string_equal(stkt_order_difference(&print, &others), "blocks of samples");
        if (window == 1)
            first_print = print;
        assert_memory_equal(&print, &first_print, sizeof print);
        stki_order_destroy(runs);
        stki_order_destroy(one);
    }
}

static void every_sample_once_in_groups_of_whole_units(void **state)
{
    int64_t n = first[UNITS], samples[512], again[512];

    (void)state;
    for (int64_t window = 1; window <= UNITS + 3; window += 3)
        for (int64_t epoch = 0; epoch < 6; epoch++) { /* more epochs than cached tables */
            stki_order *order = make(window, 7);
            bool seen[512] = {0}, left[UNITS] = {0};
            int64_t position = 0;

            evaluate(order, epoch, 17, samples);
            evaluate(order, epoch, 1, again);
            assert_memory_equal(samples, again, (size_t)n * sizeof *samples);
            for (int64_t i = 0; i < n; i++) {
                assert_in_range(samples[i], 0, n - 1);
                assert_false(seen[samples[i]]);
                seen[samples[i]] = true;
            }
            while (position < n) { /* a group of at most `window` units ends where all its units are complete */
                bool open[UNITS] = {0};
                int64_t units = 0, missing = 0;

                do {
                    int u = unit_of(samples[position++]);

                    assert_false(left[u]);
                    if (!open[u]) {
                        open[u] = true;
                        units++;
                        missing += first[u + 1] - first[u];
                    }
                    missing--;
                } while (missing > 0);
                assert_true(units <= window);
                for (int u = 0; u < UNITS; u++)
                    left[u] = left[u] || open[u];
            }
            stki_order_destroy(order);
        }
}

static void seeds_and_epochs_differ(void **state)
{
    int64_t a[512], b[512], c[512];
    stki_order *one = make(4, 1), *two = make(4, 2);

    (void)state;
    evaluate(one, 0, 64, a);
    evaluate(one, 1, 64, b);
    evaluate(two, 0, 64, c);
    assert_memory_not_equal(a, b, (size_t)first[UNITS] * sizeof *a);
    assert_memory_not_equal(a, c, (size_t)first[UNITS] * sizeof *a);
    evaluate(one, 0, 64, b);
    assert_memory_equal(a, b, (size_t)first[UNITS] * sizeof *a);
    stki_order_destroy(one);
    stki_order_destroy(two);
}

/* Each unit is the first about equally often. So does each sample in a group that contains all units. */
static void places_are_uniform(void **state)
{
    enum { DRAWS = 4000 };
    int64_t equal[9], counts[8] = {0}, sample_counts[32] = {0};
    stki_order_opts opts = {.kind = STKI_ORDER_BLOCK, .count = 32, .unit_first = equal, .unit_count = 8, .window = 2};
    stki_order *order;
    stki_position out;
    stk_error err;

    (void)state;
    for (int u = 0; u <= 8; u++)
        equal[u] = 4 * u;
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_OK);
    for (int64_t epoch = 0; epoch < DRAWS; epoch++) {
        assert_int_equal(stki_order_eval(order, epoch, 0, 1, &out, &err), STK_OK);
        counts[out.sample / 4]++;
        sample_counts[out.sample]++;
    }
    for (int u = 0; u < 8; u++) /* 500 expected; six standard deviations are 126 */
        assert_in_range(counts[u], 500 - 126, 500 + 126);
    for (int s = 0; s < 32; s++) /* 125 expected; six standard deviations are 66 */
        assert_in_range(sample_counts[s], 125 - 66, 125 + 66);
    stki_order_destroy(order);
}

static void a_subset_keeps_its_units(void **state)
{
    int64_t list[100], samples[100], n = 0;
    stki_order_opts opts = {.kind = STKI_ORDER_BLOCK,
                            .count = first[UNITS],
                            .unit_first = first,
                            .unit_count = UNITS,
                            .window = 1,
                            .indices = list};
    stki_order *order;
    stk_error err;
    int previous = -1;
    bool left[UNITS] = {0};

    (void)state;
    for (int64_t i = 0; i < first[UNITS]; i += 3)
        list[n++] = i;
    opts.index_count = n;
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_OK);
    assert_int_equal(stki_order_length(order), n);
    evaluate(order, 3, 9, samples);
    for (int64_t i = 0; i < n; i++) { /* one unit after another */
        int u = unit_of(samples[i]);

        assert_int_equal(samples[i] % 3, 0);
        if (u != previous) {
            assert_false(left[u]);
            left[u] = true;
        }
        previous = u;
    }
    stki_order_destroy(order);
}

static void create_with_little_memory(const int64_t *indices, int64_t index_count)
{
    stki_order_opts opts = {.kind = STKI_ORDER_BLOCK,
                            .count = first[UNITS],
                            .indices = indices,
                            .index_count = index_count,
                            .unit_first = first,
                            .unit_count = UNITS,
                            .window = 2};
    stk_status status = STK_E_MEMORY;
    stki_memory_stats before, after;

    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1; status != STK_OK; n++) {
        stki_order *order;
        stk_error err;

        stki_memory_fail_at(n);
        status = stki_order_create(&opts, &order, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            stki_order_destroy(order);
        else
            assert_int_equal(status, STK_E_MEMORY);
        assert_true(n < 30);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    create_with_little_memory(NULL, 0);
    create_with_little_memory((const int64_t[]){5, 6, 40}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_once_in_groups_of_whole_units),
        cmocka_unit_test(in_order),
        cmocka_unit_test(seeds_and_epochs_differ),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(a_subset_keeps_its_units),
        cmocka_unit_test(memory_may_run_out),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
