/* stki-threads */
/* Tests of orders that build tables ahead of time. A consumer that visits the epochs in sequence waits only for the
 * first table, each table is built once, and the positions equal those of an order that builds none ahead. */
#include "cmocka_all.h"
#include "counter.h"
#include "order.h"
#include "order_tables.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

enum { COUNT = 6000, BATCH = 17, EPOCHS = 4, MOST_RANKS = 3 }; /* an epoch does not end with a batch */

static stki_counter asked; /* counts requests for lengths */

static int64_t length_of(void *context, int64_t sample)
{
    (void)context;
    stki_count(&asked, 1);
    return sample * 7919 % 3001;
}

enum which { RANDOM, BLOCK, BUCKETS, BUCKETS_IN_ORDER, BUCKETS_OVER_BLOCKS, MIXTURE, ALL };

static stki_order *make(enum which which)
{
    static const stki_order_source sources[] = {{"a", COUNT, 2, NULL, 0}, {"b", COUNT, 1, NULL, 0}};
    int64_t unit_first[COUNT / 10 + 1];
    stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = COUNT, .seed = 3};
    stki_order *order = NULL;
    stk_error err;

    for (int i = 0; i <= COUNT / 10; i++)
        unit_first[i] = 10 * i;
    if (which == BLOCK || which == BUCKETS_OVER_BLOCKS) {
        opts.kind = STKI_ORDER_BLOCK;
        opts.unit_first = unit_first;
        opts.unit_count = COUNT / 10;
        opts.window = 3;
    } else if (which == BUCKETS_IN_ORDER) {
        opts.kind = STKI_ORDER_SEQUENTIAL;
    } else if (which == MIXTURE) {
        opts.sources = sources;
        opts.source_count = 2;
        opts.length = COUNT;
    }
    if (which == BUCKETS || which == BUCKETS_IN_ORDER || which == BUCKETS_OVER_BLOCKS) {
        opts.bucket_window = 50;
        opts.bucket_batch = BATCH * MOST_RANKS;
        opts.length_of = length_of;
    }
    if (stki_order_create(&opts, &order, &err) != STK_OK)
        fail_msg("%s", err.message);
    return order;
}

/* The same order without building ahead. */
static stki_position *expect(enum which which)
{
    stki_order *order = make(which);
    stki_position *all = calloc((size_t)EPOCHS * COUNT, sizeof *all);

    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        stki_order_eval(order, epoch, 0, COUNT, all + epoch * COUNT, NULL);
    stki_order_destroy(order);
    return all;
}

/* Evaluates one step of a rank; padding at the end of an epoch repeats its first samples. Returns whether all tables
 * were ready. */
static bool take(const stki_order *order, int64_t epoch, int64_t first, int64_t epochs, const stki_position *expected)
{
    stki_position out[BATCH];
    bool ready = true;

    for (int64_t r = 0, n; r < BATCH; r += n) {
        const int64_t at = (first + r) % COUNT;

        n = BATCH - r < COUNT - at ? BATCH - r : COUNT - at;
        ready = ready && stki_order_is_ready(order, epoch, at) && stki_order_is_ready(order, epoch, at + n - 1);
        stki_order_eval(order, epoch, at, n, out, NULL);
        if (at == first)
            stki_order_ahead(order, epoch, first, n, epochs);
        assert_memory_equal(out, expected + epoch * COUNT + at, (size_t)n * sizeof *out);
    }
    return ready;
}

static void go_from(enum which which, int64_t begin, int ranks, int rank)
{
    stki_position *expected = expect(which);
    stki_order *order = make(which);
    bool first = true;

    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t step = epoch ? 0 : begin; step * ranks * BATCH < COUNT; step++) {
            const int64_t at = (step * ranks + rank) * BATCH;
            const bool ready = take(order, epoch, at, EPOCHS, expected);

            /* the padding of an epoch that was not begun at its start is also waited for */
            assert_true(ready || first || (begin > 0 && epoch == 0 && at + BATCH > COUNT));
            first = false;
        }
    stki_order_destroy(order);
    free(expected);
}

static void only_the_first_is_waited_for(void **state)
{
    (void)state;
    for (int which = 0; which < ALL; which++)
        for (int ranks = 1; ranks <= MOST_RANKS; ranks += 2)
            go_from((enum which)which, 0, ranks, ranks / 2);
}

static void starting_at_any_step(void **state)
{
    (void)state;
    for (int which = 0; which < ALL; which++)
        for (int64_t left = 1; left < COUNT / BATCH; left += 47)
            go_from((enum which)which, COUNT / BATCH - left, 1, 0);
}

static void each_window_is_sorted_once(void **state)
{
    (void)state;
    for (int which = BUCKETS; which <= BUCKETS_OVER_BLOCKS; which++) {
        stki_position *expected = expect((enum which)which);
        stki_order *order = make((enum which)which);

        stki_count_set(&asked, 0);
        for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
            for (int64_t first = 0; first < COUNT; first += BATCH)
                take(order, epoch, first, EPOCHS, expected);
        assert_int_equal(stki_counted(&asked), EPOCHS * COUNT);
        stki_order_destroy(order);
        free(expected);
    }
}

struct shared {
    const stki_order *order;
    const stki_position *expected;
    stki_counter next, bad;
};

static void take_steps(void *context)
{
    struct shared *shared = context;
    const int64_t steps = COUNT / BATCH;

    for (int64_t step; (step = atomic_fetch_add(&shared->next, 1)) < EPOCHS * steps;) {
        const int64_t epoch = step / steps, first = step % steps * BATCH;
        stki_position out[BATCH];

        stki_order_eval(shared->order, epoch, first, BATCH, out, NULL);
        stki_order_ahead(shared->order, epoch, first, BATCH, EPOCHS);
        if (memcmp(out, shared->expected + epoch * COUNT + first, sizeof out) != 0)
            stki_count(&shared->bad, 1);
        if (step % 97 == 0) { /* like a substitute sample, which may be from another epoch */
            stki_order_eval(shared->order, 0, first, BATCH, out, NULL);
            if (memcmp(out, shared->expected + first, sizeof out) != 0)
                stki_count(&shared->bad, 1);
        }
    }
}

static void many_threads(void **state)
{
    enum { THREADS = 8 };

    (void)state;
    for (int which = 0; which < ALL; which++) {
        stki_position *expected = expect((enum which)which);
        stki_order *order = make((enum which)which);
        struct shared shared = {.order = order, .expected = expected};
        stki_thread *threads[THREADS];

        for (int i = 0; i < THREADS; i++)
            assert_int_equal(stki_thread_start(&threads[i], "order", take_steps, &shared, NULL), STK_OK);
        for (int i = 0; i < THREADS; i++)
            assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(stki_counted(&shared.bad), 0);
        stki_order_destroy(order);
        free(expected);
    }
}

/* ---- the tables alone ---- */

static int64_t build_at_once(void *context, int number, uint64_t key, bool fresh, int64_t units)
{
    (void)context, (void)number, (void)key, (void)fresh, (void)units;
    return 0;
}

static void use_once(void *context)
{
    stki_tables_release(context, stki_tables_acquire(context, 0));
}

/* A thread counts itself in and out in the same group, whichever group it gets. */
static void users_are_counted_out(void **state)
{
    stki_tables tables = {0};

    (void)state;
    stki_tables_init(&tables, build_at_once, NULL);
    for (int i = 0; i < STKI_TABLE_GROUPS; i++) {
        stki_thread *thread;

        assert_int_equal(stki_thread_start(&thread, "order", use_once, &tables, NULL), STK_OK);
        assert_true(stki_thread_join(thread, INT64_MAX));
    }
    for (int g = 0; g < STKI_TABLE_GROUPS; g++)
        for (int i = 0; i < STKI_TABLES; i++)
            assert_int_equal(stki_counted(&tables.groups[g].users[i]), 0);
    stki_tables_fini(&tables);
}

static void expect_keys(const stki_tables *tables, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    for (uint64_t key = 0; key < 20; key++)
        assert_int_equal(stki_tables_have(tables, key), key == a || key == b || key == c || key == d);
}

/* The oldest table is replaced, except `key` and `keep`. */
static void the_oldest_is_replaced(void **state)
{
    stki_tables tables = {0};

    (void)state;
    stki_tables_init(&tables, build_at_once, NULL);
    for (uint64_t key = 3; key < 6; key++)
        stki_tables_release(&tables, stki_tables_acquire(&tables, key));
    stki_tables_ahead(&tables, 5, 5, 10, 10, 10);
    expect_keys(&tables, 3, 4, 5, 6);
    stki_tables_ahead(&tables, 6, 6, 10, 10, 10);
    expect_keys(&tables, 4, 5, 6, 7);
    stki_tables_ahead(&tables, 7, 4, 10, 10, 10); /* keeps 4 */
    expect_keys(&tables, 4, 6, 7, 8);
    stki_tables_ahead(&tables, 10, 10, 10, 10, 10);
    expect_keys(&tables, 6, 7, 8, 11);
    stki_tables_ahead(&tables, 6, 6, 10, 10, 10); /* has 7 */
    expect_keys(&tables, 6, 7, 8, 11);
    stki_tables_ahead(&tables, 8, 6, 10, 10, 10); /* keeps 6 and 8 */
    expect_keys(&tables, 6, 8, 9, 11);
    stki_tables_fini(&tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_first_is_waited_for), cmocka_unit_test(starting_at_any_step),
        cmocka_unit_test(each_window_is_sorted_once),   cmocka_unit_test(many_threads),
        cmocka_unit_test(users_are_counted_out),        cmocka_unit_test(the_oldest_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
