/* bench_order.c: what one position of a random order costs, from 10^3 to 10^12 samples: the epoch's table (its building
 * spread over its positions, and a look-up alone) and the computed bijection. Runs of 256 positions, as a batch asks
 * for them; median of the repeats. */
#include "clock.h"
#include "order.h"
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

/* ns a position of evaluating `count` positions in runs; `fresh` takes a new epoch each time, so tables are built. */
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

        stki_permutation_init(&permutation, 1, 2, n); /* once a batch, as the order does */
        stki_permutation_run(&permutation, at, part, out);
        *sink += out[part - 1];
        at = at + (uint64_t)part >= n ? 0 : at + (uint64_t)part;
    }
    return (double)(stki_now_ns() - start) / POSITIONS;
}

int main(void)
{
    static const int64_t sizes[] = {1000,        10000,        65536,        65537,        100000,     262145,
                                    1000000,     10000000,     16777217,     100000000,    1000000000, 1073741825,
                                    10000000000, 100000000000, 274877906945, 1000000000000};
    uint64_t sink = 0;

    printf("%15s  %14s  %14s  %14s\n", "samples", "order ns/pos", "with building", "bijection ns");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stki_order_opts opts = {.kind = STKI_ORDER_RANDOM, .count = sizes[i], .seed = 1};
        double warm[REPEATS], fresh[REPEATS], bijection[REPEATS];
        stki_order *order;

        if (stki_order_create(&opts, &order, NULL) != STK_OK)
            return 1;
        order_ns(order, sizes[i], RUN, 0, &sink);
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            warm[repeat] = order_ns(order, sizes[i], POSITIONS, 0, &sink);
            fresh[repeat] = order_ns(order, sizes[i], sizes[i] < POSITIONS ? sizes[i] : POSITIONS, repeat + 1, &sink);
            order_ns(order, sizes[i], RUN, 0, &sink);
            bijection[repeat] = feistel_ns((uint64_t)sizes[i], &sink);
        }
        printf("%15" PRId64 "  %14.2f  %14.2f  %14.2f\n", sizes[i], median(warm), median(fresh), median(bijection));
        stki_order_destroy(order);
    }
    fprintf(stderr, "%s", sink == 42 ? " " : "");
    return 0;
}
