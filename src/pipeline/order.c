/* order.c: the order object: what a data set's samples, a seed and perhaps a subset make of a position.
 *
 * Up to TABLE_MAX positions an epoch's permutation is a table, made by a Fisher-Yates shuffle: every order is then
 * possible and, as far as 64-bit draws can tell, equally likely, which no network over so few bits can promise. The
 * last few epochs' tables are kept, so that a pipeline that fetches epoch e + 1 while it still delivers epoch e builds
 * each once. Above TABLE_MAX the permutation is computed (permutation.c) and only an epoch's round keys are needed.
 *
 * Threads. All is fixed after create but the tables, which `lock` guards; a call holds it while it builds a table
 * (about a millisecond at most) or copies out of one.
 */
#include "order.h"
#include "allocate.h"
#include "error.h"
#include "order_block.h"
#include "permutation.h"
#include "philox.h"
#include "thread.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    TABLE_MAX = 65536, /* images then fit 16 bits */
    TABLES = 4,
    BLOCK = 512
};

struct table {
    bool filled;
    int64_t epoch;
    int64_t last_use;
    uint16_t *images;
};

struct stki_order {
    enum stki_order_kind kind;
    int64_t length;
    uint64_t seed;
    int64_t *indices;    /* NULL: position's image is the sample */
    stki_blocks *blocks; /* BLOCK */
    /* guarded by lock */
    stki_mutex lock;
    int64_t uses;
    struct table tables[TABLES];
    uint16_t *table_memory;
};

static bool uses_tables(const stki_order *order)
{
    return order->kind == STKI_ORDER_RANDOM && order->length <= TABLE_MAX;
}

static stk_status copy_indices(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    for (int64_t i = 0; i < opts->index_count; i++) {
        if (opts->indices[i] < 0 || opts->indices[i] >= opts->count)
            return stki_fail_at(err, STK_E_RANGE,
                                (stki_place){.record = -1,
                                             .offset = -1,
                                             .found = STKI_TEXT("%" PRId64, opts->indices[i]),
                                             .expected = STKI_TEXT("0 to %" PRId64, opts->count - 1)},
                                "index %" PRId64 " of the subset is outside the data set", i);
    }
    if (opts->index_count == 0)
        return STK_OK;
    order->indices = stki_zalloc_array(opts->index_count, (int64_t)sizeof *order->indices);
    if (!order->indices)
        return stki_fail_memory(err, opts->index_count * (int64_t)sizeof *order->indices, "the index subset");
    memcpy(order->indices, opts->indices, (size_t)opts->index_count * sizeof *order->indices);
    return STK_OK;
}

static stk_status make_tables(stki_order *order, stk_error *err)
{
    int64_t bytes = TABLES * order->length * (int64_t)sizeof *order->table_memory;

    if (!uses_tables(order) || order->length == 0)
        return STK_OK;
    order->table_memory = stki_zalloc(bytes);
    if (!order->table_memory)
        return stki_fail_memory(err, bytes, "the shuffle tables");
    for (int i = 0; i < TABLES; i++)
        order->tables[i].images = order->table_memory + i * order->length;
    return STK_OK;
}

static int64_t unit_of(const stki_order_opts *opts, int64_t sample)
{
    int64_t low = 0, high = opts->unit_count - 1;

    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;

        if (opts->unit_first[middle] <= sample)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The units of a subset: runs of its list that lie in one unit of the data set. */
static stk_status make_subset_blocks(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    int64_t *first = stki_zalloc_array(order->length + 1, sizeof *first), count = 0, unit = -1;
    stk_status status;

    if (!first)
        return stki_fail_memory(err, (order->length + 1) * (int64_t)sizeof *first, "the blocks of a subset");
    for (int64_t i = 0; i < order->length; i++) {
        int64_t its = unit_of(opts, order->indices[i]);

        if (its != unit)
            first[count++] = i;
        unit = its;
    }
    first[count] = order->length;
    status = stki_blocks_create(first, count, opts->window, order->seed, &order->blocks, err);
    stki_free(first);
    return status;
}

static stk_status make_blocks(stki_order *order, const stki_order_opts *opts, stk_error *err)
{
    if (order->kind != STKI_ORDER_BLOCK || order->length == 0)
        return STK_OK;
    if (order->indices)
        return make_subset_blocks(order, opts, err);
    return stki_blocks_create(opts->unit_first, opts->unit_count, opts->window, order->seed, &order->blocks, err);
}

stk_status stki_order_create(const stki_order_opts *opts, stki_order **out, stk_error *err)
{
    stki_order *order;
    stk_status status;

    if (opts->count < 0 || opts->index_count < 0)
        return stki_fail(err, STK_E_RANGE, "order: %" PRId64 " samples, %" PRId64 " indices; both must be 0 or more",
                         opts->count, opts->index_count);
    order = stki_zalloc((int64_t)sizeof *order);
    if (!order)
        return stki_fail_memory(err, (int64_t)sizeof *order, "the order");
    stki_mutex_init(&order->lock);
    order->kind = opts->kind;
    order->seed = opts->seed;
    order->length = opts->indices ? opts->index_count : opts->count;
    status = opts->indices ? copy_indices(order, opts, err) : STK_OK;
    if (status == STK_OK)
        status = make_tables(order, err);
    if (status == STK_OK)
        status = make_blocks(order, opts, err);
    if (status != STK_OK) {
        stki_order_destroy(order);
        return status;
    }
    *out = order;
    return STK_OK;
}

void stki_order_destroy(stki_order *order)
{
    if (!order)
        return;
    stki_mutex_fini(&order->lock);
    stki_blocks_destroy(order->blocks);
    stki_free(order->indices);
    stki_free(order->table_memory);
    stki_free(order);
}

int64_t stki_order_length(const stki_order *order)
{
    return order->length;
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static void shuffle(uint16_t *images, int64_t length, uint64_t key)
{
    for (int64_t i = 0; i < length; i++) { /* inside out: entry i lands in a random place of the first i + 1 */
        uint64_t place = stki_philox_below(key, STKI_KEY_SHUFFLE, (uint64_t)i, (uint64_t)i + 1);

        images[i] = images[place];
        images[place] = (uint16_t)i;
    }
}

/* The epoch's table, built in place of the one unused for longest. Called with the lock held. */
static const uint16_t *table_of(stki_order *order, int64_t epoch)
{
    struct table *found = &order->tables[0];

    for (int i = 0; i < TABLES; i++) {
        struct table *table = &order->tables[i];

        if (table->filled && table->epoch == epoch) {
            found = table;
            break;
        }
        if (table->last_use < found->last_use)
            found = table;
    }
    if (!found->filled || found->epoch != epoch) {
        shuffle(found->images, order->length, stki_order_key(order->seed, (uint64_t)epoch));
        found->epoch = epoch;
        found->filled = true;
    }
    found->last_use = ++order->uses;
    return found->images;
}

/* ---- evaluation ------------------------------------------------------------------------------------------------ */

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

static void eval_table(stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    const uint16_t *images;

    stki_lock(&order->lock);
    images = table_of(order, epoch);
    for (int64_t i = 0; i < n; i++)
        put(order, &out[i], first + i, images[first + i]);
    stki_unlock(&order->lock);
}

static void eval_computed(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    stki_permutation permutation;
    uint64_t images[BLOCK];

    stki_permutation_init(&permutation, order->seed, (uint64_t)epoch, (uint64_t)order->length);
    for (int64_t done = 0; done < n;) {
        int64_t part = n - done < BLOCK ? n - done : BLOCK;

        stki_permutation_run(&permutation, (uint64_t)(first + done), part, images);
        for (int64_t i = 0; i < part; i++)
            put(order, &out[done + i], first + done + i, (int64_t)images[i]);
        done += part;
    }
}

static void eval_blocks(stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out)
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

stk_status stki_order_eval(stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                           stk_error *err)
{
    (void)err; /* the tables are made by create, so there is nothing left to fail; other orders may need it */
    assert(first >= 0 && n >= 0 && first <= order->length && n <= order->length - first);
    if (n == 0)
        return STK_OK;
    if (order->kind == STKI_ORDER_SEQUENTIAL)
        eval_sequential(order, first, n, out);
    else if (order->kind == STKI_ORDER_BLOCK)
        eval_blocks(order, epoch, first, n, out);
    else if (uses_tables(order))
        eval_table(order, epoch, first, n, out);
    else
        eval_computed(order, epoch, first, n, out);
    return STK_OK;
}
