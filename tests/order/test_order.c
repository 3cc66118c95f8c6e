/* stki-threads */
/* Tests of orders: shuffle tables and their cache, subsets, epochs and seeds, unions over ranks, failing allocations
 * and many threads. The expected tables come from a Python implementation. */
#include "allocate.h"
#include "faults.h"
#include "order.h"
#include "permutation.h"
#include "permute.h"
#include "thread.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "order_statistics.h"

static stki_order *make(enum stki_order_kind kind, int64_t count, uint64_t seed)
{
    stki_order_opts opts = {.kind = kind, .count = count, .seed = seed};
    stki_order *order;

    assert_int_equal(stki_order_create(&opts, &order, NULL), STK_OK);
    assert_int_equal(stki_order_length(order), count);
    return order;
}

static void samples_of(stki_order *order, int64_t epoch, int64_t first, int64_t n, uint64_t *samples)
{
    static _Thread_local stki_position out[4096];

    for (int64_t done = 0; done < n; done += 4096) {
        int64_t part = n - done < 4096 ? n - done : 4096;

        assert_int_equal(stki_order_eval(order, epoch, first + done, part, out, NULL), STK_OK);
        for (int64_t i = 0; i < part; i++)
            samples[done + i] = (uint64_t)out[i].sample;
    }
}

static void random_order(uint64_t seed, uint64_t epoch, int64_t n, uint64_t *images)
{
    stki_order *order = make(STKI_ORDER_RANDOM, n, seed);

    samples_of(order, (int64_t)epoch, 0, n, images);
    stki_order_destroy(order);
}

static void assert_order(uint64_t seed, int64_t epoch, int64_t n, const uint64_t *expected)
{
    uint64_t found[16];

    random_order(seed, (uint64_t)epoch, n, found);
    assert_memory_equal(found, expected, (size_t)n * sizeof found[0]);
}

/* These values come from a Python implementation. If they change, STKI_ORDER_VERSION must be increased. */
static void known_tables(void **state)
{
    static uint64_t thousand[1000];

    (void)state;
    assert_order(0, 0, 10, (const uint64_t[]){2, 7, 4, 5, 9, 1, 6, 0, 3, 8});
    assert_order(1, 0, 10, (const uint64_t[]){1, 5, 7, 6, 0, 2, 9, 4, 3, 8});
    assert_order(0, 1, 10, (const uint64_t[]){3, 7, 1, 8, 6, 5, 9, 4, 0, 2});
    assert_order(UINT64_C(1) << 63, 5, 6, (const uint64_t[]){1, 3, 0, 5, 4, 2});
    random_order(1, 1, 1000, thousand);
    assert_memory_equal(thousand, ((const uint64_t[]){167, 86, 786, 172, 563, 289}), 6 * sizeof thousand[0]);
    assert_int_equal(thousand[999], 445);
}

/* Row P09: 4096 samples in sequence, and the other fields of a position. */
static void sequential(void **state)
{
    stki_order *order = make(STKI_ORDER_SEQUENTIAL, 4096, 5);
    stki_position out[1024];

    (void)state;
    for (int64_t first = 0; first < 4096; first += 1024) {
        assert_int_equal(stki_order_eval(order, 3, first, 1024, out, NULL), STK_OK);
        for (int64_t i = 0; i < 1024; i++) {
            assert_int_equal(out[i].sample, first + i);
            assert_int_equal(out[i].draw, first + i);
            assert_int_equal(out[i].source, 0);
            assert_int_equal(out[i].offset, 0);
            assert_int_equal(out[i].length, -1);
        }
    }
    assert_int_equal(stki_order_eval(order, 0, 4096, 0, NULL, NULL), STK_OK);
    stki_order_destroy(order);
}

/* Sizes on both sides of the threshold between shuffle tables and the computed bijection. */
static void random_is_a_permutation(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 100, 65535, 65536, 65537, 70000};
    static uint64_t whole[70000], part[5000];

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int64_t n = sizes[s];
        stki_order *order = make(STKI_ORDER_RANDOM, n, 1);

        samples_of(order, 2, 0, n, whole);
        assert_true(stkt_is_bijection(whole, n));
        for (int64_t first = 0; first < n; first += 1 + first / 2) { /* random access, in runs of different lengths */
            int64_t count = n - first < 5000 ? n - first : 5000;

            samples_of(order, 2, first, count, part);
            assert_memory_equal(part, whole + first, (size_t)count * sizeof part[0]);
        }
        stki_order_destroy(order);
    }
}

static void large_is_the_bijection(void **state)
{
    stki_order *order = make(STKI_ORDER_RANDOM, INT64_C(1000000000000), 9);
    stki_position out[1000];

    (void)state;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t first = INT64_C(999999999000) / (epoch + 1);

        assert_int_equal(stki_order_eval(order, epoch, first, 1000, out, NULL), STK_OK);
        for (int64_t i = 0; i < 1000; i += 37) {
            assert_true((uint64_t)out[i].sample ==
                        stkt_permute(9, (uint64_t)epoch, UINT64_C(1000000000000), (uint64_t)(first + i)));
            assert_int_equal(out[i].draw, first + i);
        }
    }
    stki_order_destroy(order);
}

/* An order of ten billion samples takes as much memory as one of a hundred thousand. */
static void large_needs_no_table(void **state)
{
    stki_memory_stats before, after;
    int64_t bytes[2], n = 100000;

    (void)state;
    for (int i = 0; i < 2; i++, n = INT64_C(10000000000)) {
        stki_order *order;

        stki_memory_read(STKI_MEM_HOST, &before);
        order = make(STKI_ORDER_RANDOM, n, 9);
        stki_memory_read(STKI_MEM_HOST, &after);
        bytes[i] = after.bytes - before.bytes;
        stki_order_destroy(order);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_true(bytes[1] < 2048);
}

/* More epochs than cached tables, visited forwards, backwards and in random order: an epoch's order never depends on
 * earlier calls. */
static void tables_are_rebuilt_identically(void **state)
{
    enum { EPOCHS = 11, N = 257 };
    static uint64_t first_time[EPOCHS][N], again[N];
    stki_order *order = make(STKI_ORDER_RANDOM, N, 3);

    (void)state;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        random_order(3, (uint64_t)epoch, N, first_time[epoch]);
    for (int64_t i = 0; i < 400; i++) {
        int64_t epoch = i < EPOCHS ? i : i < 2 * EPOCHS ? 2 * EPOCHS - 1 - i : i * i % EPOCHS;

        samples_of(order, epoch, 0, N, again);
        assert_memory_equal(again, first_time[epoch], sizeof again);
    }
    samples_of(order, INT64_MAX, 0, N, again);
    assert_true(stkt_is_bijection(again, N));
    stki_order_destroy(order);
}

/* Row R08 (tensorflow/tensorflow#13446): each epoch has its own order, and a second run repeats these orders. */
static void epochs_differ_and_repeat(void **state)
{
    static const int64_t sizes[] = {1000, 70000};
    static uint64_t epochs[3][70000], again[70000];

    (void)state;
    for (int s = 0; s < 2; s++) {
        size_t bytes = (size_t)sizes[s] * sizeof again[0];

        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            random_order(1, epoch, sizes[s], epochs[epoch]);
            random_order(1, epoch, sizes[s], again);
            assert_memory_equal(again, epochs[epoch], bytes);
            for (uint64_t before = 0; before < epoch; before++)
                assert_memory_not_equal(epochs[before], epochs[epoch], bytes);
        }
    }
}

/* Row R09 (NVIDIA/DALI#6288): orders are not keyed by seed + epoch. W14: neighboring seeds and epochs give different
 * orders. */
static void seed_and_epoch_do_not_add_up(void **state)
{
    (void)state;
    for (int64_t n = 100; n <= 100000; n *= 10)
        stkt_check_correlations(random_order, n);
    for (uint64_t sum = 1; sum < 200; sum++)
        for (uint64_t epoch = 0; epoch < sum; epoch++)
            assert_true(stki_order_key(sum - epoch, epoch) != stki_order_key(sum - epoch - 1, epoch + 1));
}

/* Row F04 (libffcv/ffcv#90): all ranks together get exactly the samples of the subset. */
static void subset_over_ranks(void **state)
{
    int64_t indices[] = {7, 3, 11};
    stki_order_opts opts = {.count = 12, .seed = 4, .indices = indices, .index_count = 3};

    (void)state;
    for (int kind = STKI_ORDER_SEQUENTIAL; kind <= STKI_ORDER_RANDOM; kind++) {
        stki_order *order;

        opts.kind = (enum stki_order_kind)kind;
        assert_int_equal(stki_order_create(&opts, &order, NULL), STK_OK);
        assert_int_equal(stki_order_length(order), 3);
        for (int64_t world_size = 1; world_size <= 2; world_size++) {
            int64_t sum = 0, product = 1, rows_seen = 0;

            for (int64_t rank = 0; rank < world_size; rank++) {
                stki_batching batching = {3, 2, rank, world_size, STKI_LAST_PARTIAL};

                for (int64_t step = 0; step < stki_batching_steps(&batching); step++) {
                    stki_batch_rows rows = stki_batching_rows(&batching, step);
                    stki_position out[2];

                    stki_order_eval(order, 0, rows.first, rows.valid, out, NULL);
                    for (int64_t r = 0; r < rows.valid; r++, rows_seen++) {
                        sum += out[r].sample;
                        product *= out[r].sample;
                    }
                }
            }
            assert_int_equal(rows_seen, 3);
            assert_int_equal(sum, 21);
            assert_int_equal(product, 231);
        }
        stki_order_destroy(order);
    }
    /* a sequential order keeps the order of the subset, which the object has copied */
    stki_order *order;
    stki_position out[3];
    opts.kind = STKI_ORDER_SEQUENTIAL;
    assert_int_equal(stki_order_create(&opts, &order, NULL), STK_OK);
    indices[0] = 0;
    stki_order_eval(order, 0, 0, 3, out, NULL);
    assert_int_equal(out[0].sample, 7);
    assert_int_equal(out[1].sample, 3);
    assert_int_equal(out[2].sample, 11);
    stki_order_destroy(order);
}

/* How often the ranks together see each sample in an epoch, not counting padding. */
static void check_union(const stki_order *order, int n, int64_t batch, int64_t world_size, enum stki_last_batch policy)
{
    int seen[64] = {0}, once = 0;

    for (int64_t rank = 0; rank < world_size; rank++) {
        stki_batching batching = {n, batch, rank, world_size, policy};

        for (int64_t step = 0; step < stki_batching_steps(&batching); step++) {
            stki_batch_rows rows = stki_batching_rows(&batching, step);
            stki_position out[64];

            if (rows.valid == 0)
                continue;
            stki_order_eval(order, 1, rows.first, rows.valid, out, NULL);
            for (int64_t r = 0; r < rows.valid; r++)
                seen[out[r].sample]++;
        }
    }
    for (int i = 0; i < n; i++) {
        assert_in_range(seen[i], policy == STKI_LAST_DROP ? 0 : 1, 1);
        once += seen[i];
    }
    assert_int_equal(once, policy == STKI_LAST_DROP ? n - n % batch : n);
}

/* Rows D04, D05 and D06: with any world size the ranks together see each sample once. `drop` omits the samples that do
 * not fill a batch. */
static void union_over_ranks_is_exact(void **state)
{
    enum { N = 37 };
    static const enum stki_order_kind kinds[] = {STKI_ORDER_SEQUENTIAL, STKI_ORDER_RANDOM};
    static const enum stki_last_batch policies[] = {STKI_LAST_PARTIAL, STKI_LAST_DROP, STKI_LAST_PAD};

    (void)state;
    for (int k = 0; k < 6; k++) {
        const enum stki_last_batch policy = policies[k / 2];
        stki_order *order = make(kinds[k % 2], N, 8);

        for (int64_t world_size = 1; world_size <= 45; world_size++)
            for (int64_t batch = 1; batch <= 50; batch += 7)
                check_union(order, N, batch, world_size, policy);
        stki_order_destroy(order);
    }
}

static void refusals(void **state)
{
    int64_t indices[] = {0, 4, 5, -1};
    stki_order_opts opts = {.count = 5, .indices = indices, .index_count = 4};
    stki_order *order = NULL;
    stk_error err;

    (void)state;
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_E_RANGE);
    assert_non_null(strstr(err.message, "index 2 "));
    assert_string_equal(err.found, "5");
    assert_string_equal(err.expected, "0 to 4");
    indices[2] = 1;
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_E_RANGE);
    assert_non_null(strstr(err.message, "index 3 "));
    assert_string_equal(err.found, "-1");
    opts = (stki_order_opts){.count = -1};
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_E_RANGE);
    opts = (stki_order_opts){.count = 1, .indices = indices, .index_count = -1};
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_E_RANGE);
    assert_null(order);
    opts = (stki_order_opts){.count = 5, .indices = indices, .index_count = 0}; /* an empty subset is accepted */
    assert_int_equal(stki_order_create(&opts, &order, &err), STK_OK);
    assert_int_equal(stki_order_length(order), 0);
    stki_order_destroy(order);
    stki_order_destroy(NULL);
}

/* Each allocation fails once, and nothing leaks. After that, an epoch allocates nothing. */
static void allocations(void **state)
{
    static const int64_t indices[] = {1, 2, 3};
    stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = 5, .indices = indices, .index_count = 3};
    stki_memory_stats before, after;
    stki_position out[3];
    stki_order *order = NULL;
    stk_error err;
    int failed = 0;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1;; n++) {
        stki_memory_fail_at(n);
        stk_status status = stki_order_create(&opts, &order, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_null(order);
        failed++;
    }
    assert_int_equal(failed, 4);
    stki_memory_read(STKI_MEM_HOST, &after);
    for (int64_t epoch = 0; epoch < 10; epoch++)
        assert_int_equal(stki_order_eval(order, epoch, 0, 3, out, NULL), STK_OK);
    stki_memory_stats later;
    stki_memory_read(STKI_MEM_HOST, &later);
    assert_int_equal(later.total_allocations, after.total_allocations);
    stki_order_destroy(order);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
    assert_int_equal(after.blocks, before.blocks);
}

/* ---- threads ---- */

enum { THREAD_N = 2000, THREAD_EPOCHS = 7 };

struct reader {
    stki_order *order;
    const uint64_t (*expected)[THREAD_N];
    int number;
    bool good;
};

static void read_epochs(void *context)
{
    struct reader *reader = context;
    stki_position out[64];

    reader->good = true;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t epoch = (i * 3 + reader->number) % THREAD_EPOCHS,
                first = (i * 37 + reader->number * 5) % (THREAD_N - 64);

        stki_order_eval(reader->order, epoch, first, 64, out, NULL);
        for (int k = 0; k < 64; k++)
            reader->good = reader->good && (uint64_t)out[k].sample == reader->expected[epoch][first + k];
    }
}

static void many_threads(void **state)
{
    enum { THREADS = 8 };
    static uint64_t expected[THREAD_EPOCHS][THREAD_N];
    struct reader readers[THREADS];
    stki_thread *threads[THREADS];
    stki_order *order = make(STKI_ORDER_RANDOM, THREAD_N, 6);

    (void)state;
    for (uint64_t epoch = 0; epoch < THREAD_EPOCHS; epoch++)
        random_order(6, epoch, THREAD_N, expected[epoch]);
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){order, (const uint64_t(*)[THREAD_N])expected, i, false};
        assert_int_equal(stki_thread_start(&threads[i], "order", read_epochs, &readers[i], NULL), STK_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_true(readers[i].good);
    }
    stki_order_destroy(order);
}

/* ---- statistics of the tables ---- */

static void all_orders_are_even(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++)
        stkt_check_all_orders(random_order, n, 100000);
}

static void statistics(void **state)
{
    (void)state;
    stkt_check_position_by_value(random_order, 7, 10000);
    stkt_check_position_by_value(random_order, 50, 10000);
    stkt_check_fixed_points(random_order, 100, 10000);
    stkt_check_long(random_order, 10000);
    stkt_check_long(random_order, 65536);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_tables),
        cmocka_unit_test(sequential),
        cmocka_unit_test(random_is_a_permutation),
        cmocka_unit_test(large_is_the_bijection),
        cmocka_unit_test(large_needs_no_table),
        cmocka_unit_test(tables_are_rebuilt_identically),
        cmocka_unit_test(epochs_differ_and_repeat),
        cmocka_unit_test(seed_and_epoch_do_not_add_up),
        cmocka_unit_test(subset_over_ranks),
        cmocka_unit_test(union_over_ranks_is_exact),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocations),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(all_orders_are_even),
        cmocka_unit_test(statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
