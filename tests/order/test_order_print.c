/* Tests of the fingerprint of an order: equal for equal options, different if any option changes the sample at a
 * position. The difference is named. */
#include "cmocka_all.h"
#include "order_difference.h"
#include <string.h>

static const int64_t unit_first[] = {0, 3, 10}, other_units[] = {0, 4, 10}, indices[] = {1, 2, 3}, others[] = {1, 2, 4};
static const double weights[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, other_weights[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
static const stki_order_source sources[] = {{"a", 6, 1, NULL, 0}, {"b", 4, 1, NULL, 0}},
                               names[] = {{"x", 6, 1, NULL, 0}, {"y", 4, 1, NULL, 0}},
                               counts[] = {{"a", 5, 1, NULL, 0}, {"b", 5, 1, NULL, 0}},
                               shares[] = {{"a", 6, 1, NULL, 0}, {"b", 4, 2, NULL, 0}},
                               cut[] = {{"a", 6, 1, NULL, 0}, {"b", 4, 1, indices, 3}};

static int64_t length_of(void *context, int64_t sample)
{
    (void)context;
    return sample;
}

static stki_order_print print_of(stki_order_opts opts)
{
    stki_order *order = NULL;
    stki_order_print print;
    stk_error err;

    opts.length_of = length_of;
    if (stki_order_create(&opts, &order, &err) != STK_OK)
        fail_msg("%s", err.message);
    stki_order_fingerprint(order, &print);
    assert_int_equal(print.length, stki_order_length(order));
    stki_order_destroy(order);
    return print;
}

static void differ(stki_order_opts a, stki_order_opts b, const char *words)
{
    stki_order_print x = print_of(a), y = print_of(b), again = print_of(a);

    assert_memory_equal(&x, &again, sizeof x);
    assert_null(stkt_order_difference(&x, &again));
    if (!words) {
        assert_memory_equal(&x, &y, sizeof x);
        return;
    }
    assert_true(x.whole != y.whole);
    assert_non_null(stkt_order_difference(&x, &y));
    assert_string_equal(stkt_order_difference(&x, &y), words);
}

static void every_part_counts(void **state)
{
    const stki_order_opts plain = {.kind = STKI_ORDER_RANDOM, .count = 10, .seed = 1};
    const stki_order_opts mixed = {
        .kind = STKI_ORDER_RANDOM, .count = 10, .seed = 1, .sources = sources, .source_count = 2};
    const stki_order_opts block = {
        .kind = STKI_ORDER_BLOCK, .count = 10, .unit_first = unit_first, .unit_count = 2, .window = 1};
    const stki_order_opts weighted = {.kind = STKI_ORDER_WEIGHTED, .count = 10, .weights = weights};
    stki_order_opts other = plain;

    (void)state;
    other.kind = STKI_ORDER_SEQUENTIAL;
    differ(plain, other, "order");
    other = plain, other.seed = 2;
    differ(plain, other, "seed");
    other = plain, other.count = 11;
    differ(plain, other, "number of samples");
    other = plain, other.length = 11;
    differ(plain, other, "length of an epoch");
    other = plain, other.length = 10;
    differ(plain, other, NULL);
    other = plain, other.data_digest = 7;
    differ(plain, other, "windows of tokens");
    other = plain, other.indices = indices, other.index_count = 3;
    differ(plain, other, "subset");
    stki_order_opts subset = other;
    other.indices = others;
    differ(subset, other, "subset");
    other = plain, other.bucket_window = 2, other.bucket_batch = 2;
    differ(plain, other, "buckets");
    stki_order_opts bucketed = other;
    other.bucket_batch = 3;
    differ(bucketed, other, "buckets");
    other.bucket_batch = 2, other.bucket_window = 3;
    differ(bucketed, other, "buckets");
    other = block, other.unit_first = other_units;
    differ(block, other, "blocks of samples");
    other = block, other.window = 2;
    differ(block, other, "blocks of samples");
    other = weighted, other.weights = other_weights;
    differ(weighted, other, "weights");
    other = mixed, other.sources = names;
    differ(mixed, other, NULL);
    other = mixed, other.sources = counts;
    differ(mixed, other, "number of samples");
    other = mixed, other.sources = shares;
    differ(mixed, other, "weights");
    other = mixed, other.stop = STKI_STOP_ALL;
    differ(mixed, other, "weights");
    other = mixed, other.sources = cut;
    differ(mixed, other, "subset");
    differ(plain, mixed, "number of samples");
}

/* Saved states contain this value; if it changes, none of them can be restored. */
static void known_value(void **state)
{
    stki_order_print print = print_of((stki_order_opts){.kind = STKI_ORDER_RANDOM, .count = 10, .seed = 1});

    (void)state;
    assert_int_equal(print.version, STKI_ORDER_VERSION);
    assert_int_equal(print.kind, STKI_ORDER_RANDOM);
    assert_int_equal(print.seed, 1);
    assert_int_equal(print.subset, 0);
    assert_int_equal(print.weights, 0);
    assert_true(print.samples == UINT64_C(0xe6ad1be9a8972875));
    assert_true(print.whole == UINT64_C(0x4f0080ed4ac15c80));
}

/* The hashes that order_print.c defines, computed with the xxhash library alone. */
static void known_parts(void **state)
{
    stki_order_opts subset = {
        .kind = STKI_ORDER_RANDOM, .count = 10, .indices = indices, .index_count = 3, .bucket_window = 2};
    const stki_order_opts weighted = {.kind = STKI_ORDER_WEIGHTED, .count = 10, .weights = weights};
    const stki_order_opts mixed = {.kind = STKI_ORDER_RANDOM, .count = 10, .sources = cut, .source_count = 2};
    stki_order_opts block = {
        .kind = STKI_ORDER_BLOCK, .count = 10, .unit_first = unit_first, .unit_count = 2, .window = 1};
    stki_order_print print;

    (void)state;
    subset.bucket_batch = 2;
    print = print_of(subset);
    assert_true(print.subset == UINT64_C(0x434fcd92b9b8b8e8));
    assert_true(print.buckets == UINT64_C(0x8153acb64dff624d));
    assert_true(print_of(weighted).weights == UINT64_C(0x38045661b0ac1c8c));
    assert_true(print_of(block).blocks == UINT64_C(0x39285af34b33a9de));
    block.in_order = true;
    assert_true(print_of(block).blocks == UINT64_C(0x640cb879c0219e58));
    print = print_of(mixed);
    assert_true(print.samples == UINT64_C(0x00c3545e78023187));
    assert_true(print.weights == UINT64_C(0x507d04cd6cf9a1b4));
    assert_true(print.subset == UINT64_C(0x2f271288d592a969));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_counts),
        cmocka_unit_test(known_value),
        cmocka_unit_test(known_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
