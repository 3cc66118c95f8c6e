/* order_block.c: see order_block.h. */
#include "order_block.h"
#include "allocate.h"
#include "bisect.h"
#include "error.h"
#include "order_shuffle.h"
#include "order_tables.h"
#include "permutation.h"
#include <inttypes.h>
#include <string.h>

enum { PART = 512 };

/* The order of the units in one epoch: place i holds unit[i], whose samples begin at position start[i]. */
struct table {
    uint32_t *unit;
    int64_t *start; /* unit_count + 1 */
};

struct stki_blocks {
    int64_t unit_count, window;
    bool in_order;
    uint64_t seed;
    int64_t *first;
    stki_tables keys;
    struct table tables[STKI_TABLES];
    int64_t built; /* progress of the table being built: units shuffled, then units summed */
};

/* Shuffles the units, then computes the prefix sums of their sizes. */
static int64_t build(void *context, int number, uint64_t epoch, bool fresh, int64_t units)
{
    stki_blocks *b = context;
    const struct table *table = &b->tables[number];
    const uint64_t key = stki_order_key(b->seed, epoch);
    const int64_t n = b->unit_count, all = 2 * n;
    int64_t i = fresh ? 0 : b->built;
    const int64_t end = units < all - i ? i + units : all;

    while (i < end && i < n) {
        uint64_t places[STKI_SHUFFLE_BLOCK + STKI_SHUFFLE_SPARE];
        const int64_t last = end < n ? end : n;
        const int count = last - i < STKI_SHUFFLE_BLOCK ? (int)(last - i) : STKI_SHUFFLE_BLOCK;

        stki_shuffle_places(key, STKI_KEY_UNITS, (uint64_t)i, count, places);
        for (int k = 0; k < count; k++, i++) {
            table->unit[i] = table->unit[places[k]];
            table->unit[places[k]] = (uint32_t)i;
        }
    }
    for (; i < end; i++)
        table->start[i - n + 1] = table->start[i - n] + b->first[table->unit[i - n] + 1] - b->first[table->unit[i - n]];
    b->built = i;
    return all - i;
}

stk_status stki_blocks_create(const int64_t *first, int64_t unit_count, int64_t window, bool in_order, uint64_t seed,
                              stki_blocks **out, stk_error *err)
{
    stki_blocks *b = stki_zalloc(sizeof *b);
    bool ok;

    if (!b)
        return stki_fail_memory(err, sizeof *b, "the order of blocks");
    stki_tables_init(&b->keys, build, b);
    b->unit_count = unit_count;
    b->window = window;
    b->in_order = in_order;
    b->seed = seed;
    if (unit_count >= UINT32_MAX) {
        stki_blocks_destroy(b);
        return stki_fail(err, STK_E_LIMIT, "order: block: found %" PRId64 " blocks, expected fewer than 2^32",
                         unit_count);
    }
    b->first = stki_zalloc_array(unit_count + 1, sizeof *first);
    ok = b->first != NULL;
    for (int i = 0; i < STKI_TABLES; i++) {
        b->tables[i].unit = stki_zalloc_array(unit_count + 1, sizeof *b->tables[i].unit);
        b->tables[i].start = stki_zalloc_array(unit_count + 1, sizeof *b->tables[i].start);
        ok = ok && b->tables[i].unit && b->tables[i].start;
    }
    if (!ok) {
        stki_blocks_destroy(b);
        return stki_fail_memory(err, (unit_count + 1) * (int64_t)sizeof *first, "the order of blocks");
    }
    memcpy(b->first, first, (size_t)(unit_count + 1) * sizeof *first);
    *out = b;
    return STK_OK;
}

void stki_blocks_destroy(stki_blocks *b)
{
    if (!b)
        return;
    for (int i = 0; i < STKI_TABLES; i++) {
        stki_free(b->tables[i].unit);
        stki_free(b->tables[i].start);
    }
    stki_free(b->first);
    stki_tables_fini(&b->keys);
    stki_free(b);
}

/* Evaluates positions from `position` to at most the end of their group. Returns their number. */
static int64_t eval_in_group(const stki_blocks *b, const struct table *table, int64_t epoch, int64_t position,
                             int64_t n, int64_t *samples)
{
    int64_t place = stki_bisect(table->start, 0, b->unit_count - 1, position);
    int64_t group = place / b->window, low = group * b->window;
    int64_t high = b->unit_count - low > b->window ? low + b->window : b->unit_count; /* units [low, high) */
    int64_t begin = table->start[low], size = table->start[high] - begin, done = 0;
    uint64_t key = stki_order_key(b->seed, (uint64_t)epoch), images[PART];
    stki_permutation permutation;

    n = n < begin + size - position ? n : begin + size - position;
    stki_permutation_init(&permutation, key, (uint64_t)group, (uint64_t)size);
    while (done < n) {
        int64_t part = n - done < PART ? n - done : PART;

        stki_permutation_run(&permutation, (uint64_t)(position - begin + done), part, images);
        for (int64_t i = 0; i < part; i++) {
            int64_t at = begin + (int64_t)images[i], within = stki_bisect(table->start, low, high - 1, at);

            samples[done + i] = b->first[table->unit[within]] + at - table->start[within];
        }
        done += part;
    }
    return n;
}

/* Like eval_in_group, to at most the end of the unit and with the samples of the unit in order. */
static int64_t eval_in_unit(const stki_blocks *b, const struct table *table, int64_t position, int64_t n,
                            int64_t *samples)
{
    const int64_t place = stki_bisect(table->start, 0, b->unit_count - 1, position);
    const int64_t first = b->first[table->unit[place]] + position - table->start[place];

    n = n < table->start[place + 1] - position ? n : table->start[place + 1] - position;
    for (int64_t i = 0; i < n; i++)
        samples[i] = first + i;
    return n;
}

void stki_blocks_eval(stki_blocks *b, int64_t epoch, int64_t position, int64_t n, int64_t *samples)
{
    const int number = stki_tables_acquire(&b->keys, (uint64_t)epoch);

    for (int64_t done = 0; done < n;)
        done += b->in_order ? eval_in_unit(b, &b->tables[number], position + done, n - done, samples + done)
                            : eval_in_group(b, &b->tables[number], epoch, position + done, n - done, samples + done);
    stki_tables_release(&b->keys, number);
}

void stki_blocks_ahead(stki_blocks *b, int64_t epoch, int64_t taken, int64_t n)
{
    stki_tables_ahead(&b->keys, (uint64_t)epoch, (uint64_t)epoch, taken, n, b->first[b->unit_count]);
}

bool stki_blocks_is_ready(const stki_blocks *b, int64_t epoch)
{
    return stki_tables_have(&b->keys, (uint64_t)epoch);
}
