/* order_weighted.c: see order_weighted.h. The table is built in double precision with plain operations in a fixed
 * order, so it is the same on every machine. Because of rounding, columns may be left over at the end that are full
 * except for a few ulps; they keep their own share and give the rest to the heaviest sample, so that rounding never
 * gives weight to a sample whose weight is 0. */
#include "order_weighted.h"
#include "allocate.h"
#include "error.h"
#include "permutation.h"
#include "philox.h"
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

enum { BLOCK = 512 };

struct column {
    uint32_t threshold; /* out of 2^32: smaller draws select the column's own place, others its alias */
    uint32_t alias;     /* equal to the column's number: the column is full */
};

struct stki_weighted {
    int64_t n;
    uint64_t seed;
    struct column *columns;
};

static stk_status check(const double *weights, const int64_t *indices, int64_t n, double *sum, int64_t *heaviest,
                        stk_error *err)
{
    double lost = 0; /* rounding error of the sum (Neumaier) */

    *sum = 0;
    *heaviest = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t sample = indices ? indices[i] : i;
        double weight = weights[sample], next = *sum + weight;

        if (!(weight >= 0) || isinf(weight))
            return stki_fail_at(
                err, STK_E_RANGE,
                (stki_place){NULL, sample, -1, STKI_TEXT("%g", weight), "a finite number of at least 0"},
                "the weight of sample %" PRId64, sample);
        lost += *sum >= weight ? *sum - next + weight : weight - next + *sum;
        *sum = next;
        if (weight > weights[indices ? indices[*heaviest] : *heaviest])
            *heaviest = i;
    }
    *sum = isfinite(*sum) ? *sum + lost : *sum;
    if (*sum > 0 && isfinite(*sum))
        return STK_OK;
    return stki_fail_at(err, STK_E_RANGE, (stki_place){NULL, -1, -1, STKI_TEXT("%g", *sum), "a finite sum above 0"},
                        "the weights of %" PRId64 " samples", n);
}

static uint32_t threshold_of(double share)
{
    double scaled = rint(share * 0x1p32);

    return scaled >= 0x1p32 ? UINT32_MAX : scaled > 0 ? (uint32_t)scaled : 0;
}

/* Vose's method: each column below 1 is filled from a column above 1. `lists` holds the columns below 1 at its start
 * and the others at its end. */
static void build(struct column *columns, int64_t n, double *share, uint32_t *lists, int64_t heaviest)
{
    int64_t small = 0, large = n;

    for (int64_t i = n - 1; i >= 0; i--) /* popped in ascending order */
        lists[share[i] < 1 ? small++ : --large] = (uint32_t)i;
    while (small > 0 && large < n) {
        uint32_t low = lists[--small], high = lists[large];

        columns[low] = (struct column){threshold_of(share[low]), high};
        share[high] = share[high] + share[low] - 1;
        if (share[high] < 1) {
            large++;
            lists[small++] = high;
        }
    }
    while (large < n) {
        uint32_t full = lists[large++];

        columns[full] = (struct column){UINT32_MAX, full};
    }
    while (small > 0) {
        uint32_t left = lists[--small];

        columns[left] = (struct column){threshold_of(share[left]), (uint32_t)heaviest};
    }
}

stk_status stki_weighted_create(const double *weights, const int64_t *indices, int64_t n, uint64_t seed,
                                stki_weighted **out, stk_error *err)
{
    stki_weighted *w;
    double sum, *share;
    uint32_t *lists;
    int64_t heaviest;
    bool ok;
    stk_status status = check(weights, indices, n, &sum, &heaviest, err);

    if (status != STK_OK)
        return status;
    if (n >= UINT32_MAX)
        return stki_fail(err, STK_E_LIMIT, "order: weighted: found %" PRId64 " samples, expected fewer than 2^32", n);
    w = stki_zalloc(sizeof *w);
    share = stki_zalloc_array(n, sizeof *share);
    lists = stki_zalloc_array(n, sizeof *lists);
    ok = w && share && lists && (w->columns = stki_zalloc_array(n, sizeof *w->columns)) != NULL;
    if (ok) {
        w->n = n;
        w->seed = seed;
        for (int64_t i = 0; i < n; i++) {
            double weight = weights[indices ? indices[i] : i];

            share[i] = weight / sum * (double)n;
        }
        build(w->columns, n, share, lists, heaviest);
        *out = w;
    } else {
        stki_weighted_destroy(w);
        status = stki_fail_memory(err, n * (int64_t)(sizeof *share + sizeof *lists), "the weights");
    }
    stki_free(share);
    stki_free(lists);
    return status;
}

void stki_weighted_destroy(stki_weighted *weighted)
{
    if (!weighted)
        return;
    stki_free(weighted->columns);
    stki_free(weighted);
}

/* Returns the column, and in *fraction the 32 bits that decide within it. The table is large and accessed at random, so
 * its lines are prefetched here and read later. */
static uint64_t draw_column(const stki_weighted *w, uint32_t low_word, uint32_t high_word, uint32_t *fraction)
{
    __extension__ unsigned __int128 product =
        (unsigned __int128)((uint64_t)high_word << 32 | low_word) * (uint64_t)w->n;
    uint64_t column = (uint64_t)(product >> 64);

    *fraction = (uint32_t)(product >> 32);
    __builtin_prefetch(&w->columns[column]);
    return column;
}

/* Draws the samples of a block of positions. One Philox block is used for two positions. */
static void run_block(const stki_weighted *w, uint64_t key, int64_t first, int64_t count, uint64_t *out)
{
    uint32_t fractions[BLOCK];
    int64_t done = 0;

    while (done < count) {
        int64_t position = first + done;
        stki_philox drawn = stki_philox_draw(key, STKI_KEY_WEIGHTED, (uint64_t)position / 2);

        if (position % 2 == 0) {
            out[done] = draw_column(w, drawn.word[0], drawn.word[1], &fractions[done]);
            done++;
        }
        if (done < count) {
            out[done] = draw_column(w, drawn.word[2], drawn.word[3], &fractions[done]);
            done++;
        }
    }
    for (int64_t i = 0; i < count; i++) {
        struct column c = w->columns[out[i]];

        out[i] = fractions[i] < c.threshold ? out[i] : c.alias;
    }
}

void stki_weighted_run(const stki_weighted *w, int64_t epoch, int64_t first, int64_t count, uint64_t *out)
{
    uint64_t key = stki_order_key(w->seed, (uint64_t)epoch);

    for (int64_t done = 0; done < count; done += BLOCK)
        run_block(w, key, first + done, count - done < BLOCK ? count - done : BLOCK, out + done);
}
