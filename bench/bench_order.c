/* bench_order.c: the time per position of an order. First, the random order of 10^3 to 10^12 samples: with the table of
 * an epoch (look-ups without and with the time to build the table) and with the computed bijection. Then the other
 * kinds of order, and the time to open them. Finally, packing of documents. Positions are evaluated in runs of 256,
 * like those of a batch; figures are medians of the repeats.
 */
#include "clock.h"
#include "order.h"
#include "packing.h"
#include "permutation.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUN = 256, REPEATS = 9, POSITIONS = 1 << 17 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, REPEATS, sizeof *values, by_value);
    return values[REPEATS / 2];
}

/* Evaluates `count` positions in runs; returns ns per position. In an epoch that was not used before, this includes
 * building its table. */
static double order_ns(stki_order *order, int64_t n, int64_t count, int64_t epoch, uint64_t *sink)
{
    static stki_position out[RUN];
    int64_t start = stki_now_ns(), at = 0;

    for (int64_t done = 0; done < count; done += RUN) {
        int64_t part = n - at < RUN ? n - at : RUN;

        stki_order_eval(order, epoch, at, part, out, NULL);
        *sink += (uint64_t)out[part - 1].sample;
        at = at + part >= n ? 0 : at + part;
    }
    return (double)(stki_now_ns() - start) / (double)count;
}

static double feistel_ns(uint64_t n, uint64_t *sink)
{
    static uint64_t out[RUN];
    stki_permutation permutation;
    int64_t start = stki_now_ns();
    uint64_t at = 0;

    for (int64_t done = 0; done < POSITIONS; done += RUN) {
        int64_t part = n - at < RUN ? (int64_t)(n - at) : RUN;

        stki_permutation_init(&permutation, 1, 2, n); /* once per batch, as in the order */
        stki_permutation_run(&permutation, at, part, out);
        *sink += out[part - 1];
        at = at + (uint64_t)part >= n ? 0 : at + (uint64_t)part;
    }
    return (double)(stki_now_ns() - start) / POSITIONS;
}

static void random_orders(uint64_t *sink)
{
    static const int64_t sizes[] = {1000,        10000,        65536,        65537,        100000,     262145,
                                    1000000,     10000000,     16777217,     100000000,    1000000000, 1073741825,
                                    10000000000, 100000000000, 274877906945, 1000000000000};

    printf("%15s  %14s  %14s  %14s\n", "samples", "order ns/pos", "with building", "bijection ns");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = sizes[i], .seed = 1};
        double warm[REPEATS], fresh[REPEATS], bijection[REPEATS];
        stki_order *order;

        if (stki_order_create(&opts, &order, NULL) != STK_OK)
            exit(1);
        order_ns(order, sizes[i], RUN, 0, sink);
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            warm[repeat] = order_ns(order, sizes[i], POSITIONS, 0, sink);
            fresh[repeat] = order_ns(order, sizes[i], sizes[i] < POSITIONS ? sizes[i] : POSITIONS, repeat + 1, sink);
            order_ns(order, sizes[i], RUN, 0, sink);
            bijection[repeat] = feistel_ns((uint64_t)sizes[i], sink);
        }
        printf("%15" PRId64 "  %14.2f  %14.2f  %14.2f\n", sizes[i], median(warm), median(fresh), median(bijection));
        stki_order_destroy(order);
    }
}

/* ---- the other kinds ---- */

static int64_t length_of(void *context, int64_t sample)
{
    (void)context;
    return sample * 7919 % 1009;
}

static void measure(const char *name, const stki_order_opts *opts, uint64_t *sink)
{
    double ns[REPEATS], open[REPEATS];
    stki_order *order = NULL;

    for (int repeat = 0; repeat < REPEATS; repeat++) {
        int64_t start = stki_now_ns();

        stki_order_destroy(order);
        start = stki_now_ns();
        if (stki_order_create(opts, &order, NULL) != STK_OK)
            exit(1);
        open[repeat] = (double)(stki_now_ns() - start) * 1e-6;
        order_ns(order, stki_order_length(order), RUN, 0, sink);
        ns[repeat] = order_ns(order, stki_order_length(order), POSITIONS, 0, sink);
    }
    printf("%-34s  %14" PRId64 "  %12.2f  %12.4f\n", name, stki_order_length(order), median(ns), median(open));
    stki_order_destroy(order);
}

static void kinds(int64_t n, uint64_t *sink)
{
    stki_order_opts opts = {.kind = STKI_ORDER_SEQUENTIAL, .count = n, .seed = 1};
    stki_order_source sources[8];
    stki_order_starts starts = {.group_count = 1, .starts = &n, .stride = 1};
    double *weights = malloc((size_t)(n < 10000000 ? n : 1) * sizeof *weights);
    int64_t unit_count = n < 10000000 ? n / 1000 : 0, *units = malloc((size_t)(unit_count + 1) * sizeof *units);

    if (!weights || !units)
        exit(1);
    measure("sequential", &opts, sink);
    opts.kind = STKI_ORDER_RANDOM;
    measure("random", &opts, sink);
    opts.starts = &starts;
    measure("random, shifted windows", &opts, sink);
    opts.starts = NULL;
    opts.length = n / 3;
    measure("random, epochs of a third", &opts, sink);
    opts.length = 0;
    for (int d = 0; d < 8; d++)
        sources[d] = (stki_order_source){"x", n / 8, d + 1, NULL, 0};
    opts.sources = sources;
    opts.source_count = 8;
    measure("mixture of 8, first exhausted", &opts, sink);
    opts.stop = STKI_STOP_ALL;
    measure("mixture of 8, all exhausted", &opts, sink);
    opts.source_count = 0;
    opts.sources = NULL;
    opts.bucket_window = 100;
    opts.bucket_batch = 64;
    opts.length_of = length_of;
    measure("random, buckets of 6400", &opts, sink);
    opts.bucket_window = 0;
    for (int64_t u = 0; u <= unit_count; u++)
        units[u] = u * 1000;
    opts.kind = STKI_ORDER_BLOCK;
    opts.unit_first = units;
    opts.unit_count = unit_count;
    opts.window = 16;
    if (n < 10000000)
        measure("block, units of 1000", &opts, sink);
    opts.kind = STKI_ORDER_WEIGHTED;
    opts.weights = weights;
    for (int64_t i = 0; n < 10000000 && i < n; i++)
        weights[i] = (double)(1 + i % 10);
    if (n < 10000000)
        measure("weighted", &opts, sink);
    free(weights);
    free(units);
}

static int64_t document_length(void *context, int64_t document)
{
    (void)context;
    return 1 + document * 7919 % 4001;
}

static void packing(int64_t documents)
{
    stki_packing_opts opts = {.length = 2049, .length_of = document_length, .documents = documents};
    stki_packing plan;
    int64_t start = stki_now_ns();

    if (stki_packing_plan(&opts, &plan, NULL) != STK_OK)
        exit(1);
    printf("packing of %" PRId64 " documents into %" PRId64 " windows: %.1f ns per document, %.2f %% full\n", documents,
           plan.windows, (double)(stki_now_ns() - start) / (double)documents,
           100.0 * (double)plan.used / ((double)plan.windows * (double)plan.length));
    stki_packing_fini(&plan);
}

int main(void)
{
    uint64_t sink = 0;

    random_orders(&sink);
    printf("\n%-34s  %14s  %12s  %12s\n", "order", "positions", "ns/pos", "open ms");
    kinds(1000000, &sink);
    kinds(INT64_C(10000000000), &sink);
    printf("\n");
    packing(100000);
    packing(10000000);
    fprintf(stderr, "%s", sink == 42 ? " " : "");
    return 0;
}
