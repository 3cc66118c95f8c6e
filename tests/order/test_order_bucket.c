/* stki-threads */
/* Tests of bucketing by length against its definition, for each kind of order, with unknown lengths, calls of any
 * length, any number of threads, and a smaller last batch. */
#include "allocate.h"
#include "cmocka_all.h"
#include "faults.h"
#include "order.h"
#include "permutation.h"
#include "permute.h"
#include "philox.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

static int64_t stretch; /* added once or twice to two thirds of the lengths, to give them more digits */

/* The length of sample i; one in seven is unknown. */
static int64_t length_of(void *context, int64_t sample)
{
    assert_true(context == (void *)&length_of);
    return sample % 7 == 6 ? -1 : (sample * 37 + sample / 5) % 23 + sample % 3 * stretch;
}

static stki_order_opts options(enum stki_order_kind kind, int64_t count, int64_t window, int64_t batch)
{
    return (stki_order_opts){.kind = kind,
                             .count = count,
                             .seed = 5,
                             .bucket_window = window,
                             .bucket_batch = batch,
                             .length_of = length_of,
                             .length_context = (void *)&length_of};
}

static stki_order *make(const stki_order_opts *opts)
{
    stki_order *order = NULL;
    stk_error err;

    if (stki_order_create(opts, &order, &err) != STK_OK)
        fail_msg("%s", err.message);
    return order;
}

/* The expected order by the definition, computed with insertion sort. */
static void expect(const stki_order_opts *opts, int64_t epoch, int64_t n, int64_t *samples)
{
    stki_order_opts beneath_opts = *opts;
    stki_order *underlying;
    stki_position *before = calloc((size_t)n, sizeof *before);
    int64_t window = opts->bucket_window * opts->bucket_batch, batch = opts->bucket_batch;
    stki_philox drawn = stki_philox_draw(stki_order_key(opts->seed, (uint64_t)epoch), STKI_KEY_BUCKETS, 0);
    uint64_t key = (uint64_t)drawn.word[1] << 32 | drawn.word[0];

    beneath_opts.bucket_window = 0;
    underlying = make(&beneath_opts);
    stki_order_eval(underlying, epoch, 0, n, before, NULL);
    for (int64_t first = 0; first < n; first += window) {
        int64_t size = n - first < window ? n - first : window, whole = size / batch;
        stki_position *part = before + first;

        for (int64_t i = 1; i < size; i++)
            for (int64_t k = i; k > 0 && length_of((void *)&length_of, part[k - 1].sample) >
                                             length_of((void *)&length_of, part[k].sample);
                 k--) {
                stki_position keep = part[k];

                part[k] = part[k - 1];
                part[k - 1] = keep;
            }
        for (int64_t i = 0; i < size; i++) {
            int64_t from = i / batch;

            if (from < whole && opts->kind != STKI_ORDER_SEQUENTIAL)
                from = (int64_t)stkt_permute(key, (uint64_t)(first / window), (uint64_t)whole, (uint64_t)from);
            samples[first + i] = part[from * batch + i % batch].sample;
        }
    }
    free(before);
    stki_order_destroy(underlying);
}

static void check(const stki_order_opts *opts, int64_t piece)
{
    stki_order *order = make(opts);
    int64_t n = stki_order_length(order), *expected = calloc((size_t)n, sizeof *expected);

    for (int64_t epoch = 0; epoch < 3; epoch++) {
        expect(opts, epoch, n, expected);
        for (int64_t p = 0; p < n; p += piece) {
            stki_position out[64];
            int64_t part = n - p < piece ? n - p : piece;

            assert_int_equal(stki_order_eval(order, epoch, p, part, out, NULL), STK_OK);
            for (int64_t i = 0; i < part; i++) {
                assert_int_equal(out[i].sample, expected[p + i]);
                assert_int_equal(out[i].draw, p + i);
            }
        }
    }
    free(expected);
    stki_order_destroy(order);
}

static void equals_the_definition(void **state)
{
    static const int64_t unit_first[] = {0, 100, 150, 400, 1000};
    double weights[1000];

    (void)state;
    for (int i = 0; i < 1000; i++)
        weights[i] = 1 + i % 5;
    for (int kind = STKI_ORDER_SEQUENTIAL; kind <= STKI_ORDER_WEIGHTED; kind++)
        for (int64_t batch = 1; batch <= 33; batch += 16)
            for (int64_t window = 1; window <= 51; window += 10) {
                stki_order_opts opts = options((enum stki_order_kind)kind, 1000, window, batch);

                opts.unit_first = unit_first;
                opts.unit_count = 4;
                opts.window = 2;
                opts.weights = weights;
                check(&opts, 17);
                check(&opts, 64);
            }
}

static void lengths_of_any_size(void **state)
{
    stki_order_opts opts = options(STKI_ORDER_RANDOM, 500, 6, 16);

    (void)state;
    for (stretch = 250; stretch < INT64_MAX / 512; stretch *= 251)
        check(&opts, 64);
    stretch = INT64_MAX / 4; /* eight digits */
    check(&opts, 64);
    stretch = 0;
}

static void over_a_mixture(void **state)
{
    const stki_order_source sources[] = {{"a", 700, 2, NULL, 0}, {"b", 300, 1, NULL, 0}};
    stki_order_opts opts = options(STKI_ORDER_RANDOM, 1000, 7, 8);

    (void)state;
    opts.sources = sources;
    opts.source_count = 2;
    check(&opts, 11);
}

static void windows_as_long_as_the_epoch_and_longer(void **state)
{
    stki_order_opts opts = options(STKI_ORDER_RANDOM, 100, 50, 2),
                    longer = options(STKI_ORDER_RANDOM, 100, INT64_MAX, 7);
    stki_order *order = make(&longer);
    stki_position out[100];
    int64_t last = -1;

    (void)state;
    check(&opts, 9);
    stki_order_eval(order, 0, 0, 100, out, NULL);
    for (int b = 0; b < 14; b++)
        for (int r = 1; r < 7; r++)
            assert_true(length_of((void *)&length_of, out[b * 7 + r - 1].sample) <=
                        length_of((void *)&length_of, out[b * 7 + r].sample));
    for (int i = 0; i < 98; i++) { /* the smaller batch at the end has the two longest samples */
        int64_t length = length_of((void *)&length_of, out[i].sample);

        last = length > last ? length : last;
    }
    assert_true(length_of((void *)&length_of, out[98].sample) >= last);
    assert_true(length_of((void *)&length_of, out[99].sample) >= last);
    stki_order_destroy(order);
}

/* Windows of 20 positions. A window is sorted when one of its positions is evaluated. */
static void windows_are_ready_when_sorted(void **state)
{
    const stki_order_opts opts = options(STKI_ORDER_SEQUENTIAL, 100, 10, 2);
    stki_order *order = make(&opts);
    stki_position out[1];

    (void)state;
    for (int window = 0; window < 2; window++) {
        assert_false(stki_order_is_ready(order, 0, 20 * window));
        assert_false(stki_order_is_ready(order, 0, 20 * window + 19));
        stki_order_eval(order, 0, 20 * window + 7, 1, out, NULL);
        assert_true(stki_order_is_ready(order, 0, 20 * window));
        assert_true(stki_order_is_ready(order, 0, 20 * window + 19));
    }
    assert_false(stki_order_is_ready(order, 1, 0));
    stki_order_destroy(order);
}

/* Bucketing must serve its purpose: the lengths within a batch differ much less. */
static void lengths_in_a_batch_are_similar(void **state)
{
    stki_order_opts opts = options(STKI_ORDER_RANDOM, 10000, 50, 16);
    int64_t spread[2] = {0};

    (void)state;
    for (int bucketed = 0; bucketed < 2; bucketed++) {
        stki_order *order;

        opts.bucket_window = bucketed ? 50 : 0;
        order = make(&opts);
        for (int64_t b = 0; b < 625; b++) {
            stki_position out[16];
            int64_t low = INT64_MAX, high = -1;

            stki_order_eval(order, 0, b * 16, 16, out, NULL);
            for (int i = 0; i < 16; i++) {
                int64_t length = length_of((void *)&length_of, out[i].sample);

                low = length < low ? length : low;
                high = length > high ? length : high;
            }
            spread[bucketed] += high - low;
        }
        stki_order_destroy(order);
    }
    assert_true(spread[1] * 10 < spread[0]);
}

struct reader {
    const stki_order *order;
    const stki_position *expected;
    int number;
    bool good;
};

enum { THREADS = 6, N = 3000 };

static void read_all(void *context)
{
    struct reader *reader = context;
    stki_position out[30];

    reader->good = true;
    for (int64_t i = 0; i < 2000; i++) {
        int64_t epoch = (i + reader->number) % 3, p = (i * 113 + reader->number * 31) % (N - 30);

        stki_order_eval(reader->order, epoch, p, 30, out, NULL);
        reader->good = reader->good && !memcmp(out, reader->expected + epoch * N + p, sizeof out);
    }
}

static void many_threads(void **state)
{
    stki_order_opts opts = options(STKI_ORDER_RANDOM, N, 10, 16);
    stki_order *order = make(&opts);
    stki_position *expected = calloc(3 * N, sizeof *expected);
    struct reader readers[THREADS];
    stki_thread *threads[THREADS];

    (void)state;
    for (int64_t epoch = 0; epoch < 3; epoch++)
        stki_order_eval(order, epoch, 0, N, expected + epoch * N, NULL);
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){order, expected, i, false};
        assert_int_equal(stki_thread_start(&threads[i], "order", read_all, &readers[i], NULL), STK_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_true(readers[i].good);
    }
    free(expected);
    stki_order_destroy(order);
}

static void allocations(void **state)
{
    stki_order_opts opts = options(STKI_ORDER_SEQUENTIAL, 100, 3, 5);
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
    assert_int_equal(n, 5); /* order, buckets, a temporary list, the tables */
    stki_order_destroy(order);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition),
        cmocka_unit_test(lengths_of_any_size),
        cmocka_unit_test(over_a_mixture),
        cmocka_unit_test(windows_as_long_as_the_epoch_and_longer),
        cmocka_unit_test(windows_are_ready_when_sorted),
        cmocka_unit_test(lengths_in_a_batch_are_similar),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
