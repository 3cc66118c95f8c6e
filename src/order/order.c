/* order.c: maps positions to samples, given a data set, a seed and possibly a subset. Checks that the options are
 * compatible and translates the images of a permutation to samples. The kinds are implemented in order_random.c,
 * order_block.c, order_weighted.c, order_mixture.c and order_bucket.c (on top of any of the others). Immutable after
 * creation, except for the tables of some kinds (order_tables.h). Thread-safe. */
#include "order.h"
#include "allocate.h"
#include "bisect.h"
#include "error.h"
#include "order_block.h"
#include "order_bucket.h"
#include "order_mixture.h"
#include "order_print.h"
#include "order_random.h"
#include "order_shift.h"
#include "order_weighted.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { BLOCK = 512 };

struct stki_order {
    enum stki_order_kind kind;
    int64_t length;
    uint64_t seed;
    int64_t *indices; /* NULL: the image is the sample number */
    /* only the member that implements the order's kind is set */
    stki_random_order *random;
    stki_blocks *blocks;
    stki_weighted *weighted;
    stki_mixture *mixture; /* also for a single data set, if the epoch's length differs from its size */
    stki_buckets *buckets; /* on top of any of the above */
    stki_shift *shift;     /* on top of any of the above */
    stki_order_print print;
};

static stk_status check_indices(const int64_t *indices, int64_t n, int64_t count, const char *of, stk_error *err)
{
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0 || indices[i] >= count)
            return stki_fail_at(err, STK_E_RANGE,
                                (stki_place){.record = -1,
                                             .offset = -1,
                                             .found = STKI_TEXT("%" PRId64, indices[i]),
                                             .expected = STKI_TEXT("0 to %" PRId64, count - 1)},
                                "index %" PRId64 " of the subset (indices) is outside the data set%s%s", i,
                                of ? " " : "", of ? of : "");
    return STK_OK;
}

static stk_status copy_indices(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    if (opts->index_count == 0)
        return STK_OK;
    order->indices = stki_zalloc_array(opts->index_count, (int64_t)sizeof *order->indices);
    if (!order->indices)
        return stki_fail_memory(err, opts->index_count * (int64_t)sizeof *order->indices, "the index subset");
    memcpy(order->indices, opts->indices, (size_t)opts->index_count * sizeof *order->indices);
    return STK_OK;
}

/* ---- blocks ---- */

/* Finds the units of a subset: runs of its list within one unit of the data set. */
static stk_status make_subset_blocks(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    int64_t *first = stki_zalloc_array(order->length + 1, sizeof *first), count = 0, unit = -1;
    stk_status status;

    if (!first)
        return stki_fail_memory(err, (order->length + 1) * (int64_t)sizeof *first, "the blocks of a subset");
    for (int64_t i = 0; i < order->length; i++) {
        int64_t its = stki_bisect(opts->unit_first, 0, opts->unit_count - 1, order->indices[i]);

        if (its != unit)
            first[count++] = i;
        unit = its;
    }
    first[count] = order->length;
    status = stki_blocks_create(first, count, opts->window, opts->in_order, order->seed, &order->blocks, err);
    stki_free(first);
    return status;
}

static stk_status make_blocks(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    if (order->indices)
        return make_subset_blocks(order, opts, err);
    return stki_blocks_create(opts->unit_first, opts->unit_count, opts->window, opts->in_order, order->seed,
                              &order->blocks, err);
}

/* ---- evaluation ---- */

/* Stores the sample at a position. `image`: its number in the subset, or in the data set if there is no subset. */
static void put(const stki_order *order, stki_position *out, int64_t position, int64_t image)
{
    *out = (stki_position){.source = 0,
                           .sample = order->indices ? order->indices[image] : image,
                           .offset = 0,
                           .length = -1,
                           .draw = position};
}

static void eval_sequential(const stki_order *order, int64_t first, int64_t n, stki_position *out)
{
    for (int64_t i = 0; i < n; i++)
        put(order, &out[i], first + i, first + i);
}

static void images_of(const stki_order *order, int64_t epoch, int64_t first, int64_t n, uint64_t *images)
{
    if (order->random)
        stki_random_order_run(order->random, epoch, first, n, images);
    else
        stki_weighted_run(order->weighted, epoch, first, n, images);
}

static void eval_images(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    uint64_t images[BLOCK];

    for (int64_t done = 0; done < n;) {
        int64_t part = n - done < BLOCK ? n - done : BLOCK;

        images_of(order, epoch, first + done, part, images);
        for (int64_t i = 0; i < part; i++)
            put(order, &out[done + i], first + done + i, (int64_t)images[i]);
        done += part;
    }
}

static void eval_blocks(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    int64_t samples[BLOCK];

    for (int64_t done = 0; done < n;) {
        int64_t part = n - done < BLOCK ? n - done : BLOCK;

        stki_blocks_eval(order->blocks, epoch, first + done, part, samples);
        for (int64_t i = 0; i < part; i++)
            put(order, &out[done + i], first + done + i, samples[i]);
        done += part;
    }
}

static void eval_underlying(const void *context, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    const stki_order *order = context;

    if (order->mixture)
        stki_mixture_eval(order->mixture, epoch, first, n, out);
    else if (order->blocks)
        eval_blocks(order, epoch, first, n, out);
    else if (order->random || order->weighted)
        eval_images(order, epoch, first, n, out);
    else
        eval_sequential(order, first, n, out);
}

static void underlying_ahead(const stki_order *order, int64_t epoch, int64_t taken, int64_t n)
{
    if (order->mixture)
        stki_mixture_ahead(order->mixture, epoch, taken, n);
    else if (order->blocks)
        stki_blocks_ahead(order->blocks, epoch, taken, n);
    else if (order->random)
        stki_random_order_ahead(order->random, epoch, taken, n);
}

/* Evaluates the underlying order for buckets, which read it sequentially, and builds part of the table that is needed
 * next. */
static void eval_underlying_ahead(const void *context, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    eval_underlying(context, epoch, first, n, out);
    underlying_ahead(context, epoch, first + n, n);
}

void stki_order_ahead(const stki_order *order, int64_t epoch, int64_t first, int64_t n, int64_t epochs)
{
    const bool last = epoch + 1 >= epochs;

    if (n == 0)
        return;
    if (order->buckets)
        stki_buckets_ahead(order->buckets, epoch, first + n, n, last);
    else if (!last)
        underlying_ahead(order, epoch, first + n, n);
}

bool stki_order_is_ready(const stki_order *order, int64_t epoch, int64_t position)
{
    if (order->buckets)
        return stki_buckets_is_ready(order->buckets, epoch, position);
    return (!order->mixture || stki_mixture_is_ready(order->mixture, epoch)) &&
           (!order->blocks || stki_blocks_is_ready(order->blocks, epoch)) &&
           (!order->random || stki_random_order_is_ready(order->random, epoch));
}

stk_status stki_order_eval(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                           stk_error *err)
{
    (void)err; /* all memory is allocated at creation, so this cannot fail */
    assert(first >= 0 && n >= 0 && first <= order->length && n <= order->length - first);
    if (n == 0)
        return STK_OK;
    if (order->buckets)
        stki_buckets_eval(order->buckets, epoch, first, n, out);
    else
        eval_underlying(order, epoch, first, n, out);
    if (order->shift)
        stki_shift_apply(order->shift, epoch, out, n);
    return STK_OK;
}

/* ---- create ---- */

static stk_status check(const stki_order_opts *opts, stk_error *err)
{
    bool simple = opts->kind == STKI_ORDER_SEQUENTIAL || opts->kind == STKI_ORDER_RANDOM;
    stk_status status = STK_OK;

    if (opts->count < 0 || opts->index_count < 0 || opts->length < 0)
        return stki_fail(err, STK_E_RANGE,
                         "order: %" PRId64 " samples, %" PRId64 " indices, %" PRId64
                         " positions per epoch; none may be negative",
                         opts->count, opts->index_count, opts->length);
    if (opts->source_count > 0 && !simple)
        return stki_fail(err, STK_E_UNSUPPORTED, "order: %s cannot mix data sets: use random or sequential",
                         opts->kind == STKI_ORDER_BLOCK ? "block" : "weighted");
    if (opts->kind == STKI_ORDER_BLOCK && opts->length > 0)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "order: block uses every sample once per epoch: epoch_length requires another order");
    for (int d = 0; d < opts->source_count && status == STK_OK; d++)
        if (opts->sources[d].indices)
            status = check_indices(opts->sources[d].indices, opts->sources[d].index_count, opts->sources[d].count,
                                   opts->sources[d].name, err);
    if (status == STK_OK && opts->source_count == 0 && opts->indices)
        status = check_indices(opts->indices, opts->index_count, opts->count, NULL, err);
    return status;
}

static stk_status make_mixture(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    stki_order_source one = {"", opts->count, 1, opts->indices, opts->index_count};
    bool several = opts->source_count > 0;
    stk_status status =
        stki_mixture_create(several ? opts->sources : &one, several ? opts->source_count : 1, opts->stop, opts->length,
                            opts->kind == STKI_ORDER_RANDOM, opts->seed, &order->mixture, err);

    if (status == STK_OK)
        order->length = stki_mixture_length(order->mixture);
    return status;
}

static stk_status make_kind(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    int64_t samples = order->length;
    stk_status status;

    if (opts->source_count > 0 ||
        (opts->length > 0 && opts->kind <= STKI_ORDER_RANDOM && opts->length != samples && samples > 0))
        return make_mixture(order, opts, err);
    status = opts->indices ? copy_indices(order, opts, err) : STK_OK;
    if (status != STK_OK || samples == 0)
        return status;
    switch (order->kind) {
    case STKI_ORDER_SEQUENTIAL:
        return STK_OK;
    case STKI_ORDER_RANDOM:
        return stki_random_order_create(samples, order->seed, &order->random, err);
    case STKI_ORDER_BLOCK:
        return make_blocks(order, opts, err);
    case STKI_ORDER_WEIGHTED:
        order->length = opts->length > 0 ? opts->length : samples;
        return stki_weighted_create(opts->weights, opts->indices, samples, order->seed, &order->weighted, err);
    }
    return STK_OK;
}

stk_status stki_order_create(const stki_order_opts *opts, stki_order **out, stk_error *err)
{
    stki_order *order;
    stk_status status = check(opts, err);

    if (status != STK_OK)
        return status;
    order = stki_zalloc((int64_t)sizeof *order);
    if (!order)
        return stki_fail_memory(err, (int64_t)sizeof *order, "the order");
    order->kind = opts->kind;
    order->seed = opts->seed;
    order->length = opts->indices ? opts->index_count : opts->count;
    status = make_kind(order, opts, err);
    if (status == STK_OK && opts->starts)
        status = stki_shift_create(opts->starts, order->seed, &order->shift, err);
    if (status == STK_OK && opts->bucket_window > 0 && order->length > 0)
        status = stki_buckets_create(opts, order->length, eval_underlying_ahead, order, &order->buckets, err);
    if (status != STK_OK) {
        stki_order_destroy(order);
        return status;
    }
    stki_order_print_make(opts, order->length, &order->print);
    *out = order;
    return STK_OK;
}

void stki_order_destroy(stki_order *order)
{
    if (!order)
        return;
    stki_random_order_destroy(order->random);
    stki_blocks_destroy(order->blocks);
    stki_weighted_destroy(order->weighted);
    stki_mixture_destroy(order->mixture);
    stki_buckets_destroy(order->buckets);
    stki_shift_destroy(order->shift);
    stki_free(order->indices);
    stki_free(order);
}

int64_t stki_order_length(const stki_order *order)
{
    return order->length;
}

int64_t stki_order_share(const stki_order *order, int source)
{
    return order->mixture ? stki_mixture_share(order->mixture, source) : order->length;
}

void stki_order_fingerprint(const stki_order *order, stki_order_print *out)
{
    *out = order->print;
}
