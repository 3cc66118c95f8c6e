/* order_block.c: see order_block.h. */
#include "order_block.h"
#include "allocate.h"
#include "error.h"
#include "permutation.h"
#include "philox.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

enum { TABLES = 4, PART = 512 };

/* One epoch's order of the units: place i holds unit[i], whose samples begin at position start[i]. */
struct table {
    bool filled;
    int64_t epoch, last_use;
    uint32_t *unit;
    int64_t *start; /* unit_count + 1 */
};

struct stki_blocks {
    int64_t unit_count, window;
    uint64_t seed;
    int64_t *first;
    /* guarded by lock */
    stki_mutex lock;
    int64_t uses;
    struct table tables[TABLES];
};

stk_status stki_blocks_create(const int64_t *first, int64_t unit_count, int64_t window, uint64_t seed,
                              stki_blocks **out, stk_error *err)
{
    stki_blocks *b = stki_zalloc(sizeof *b);
    bool ok;

    if (!b)
        return stki_fail_memory(err, sizeof *b, "the order of blocks");
    stki_mutex_init(&b->lock);
    b->unit_count = unit_count;
    b->window = window;
    b->seed = seed;
    if (unit_count >= UINT32_MAX) {
        stki_blocks_destroy(b);
        return stki_fail(err, STK_E_LIMIT, "order: block: found %" PRId64 " blocks, expected fewer than 2^32",
                         unit_count);
    }
    b->first = stki_zalloc_array(unit_count + 1, sizeof *first);
    ok = b->first != NULL;
    for (int i = 0; i < TABLES; i++) {
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
    for (int i = 0; i < TABLES; i++) {
        stki_free(b->tables[i].unit);
        stki_free(b->tables[i].start);
    }
    stki_free(b->first);
    stki_mutex_fini(&b->lock);
    stki_free(b);
}

static void build(const stki_blocks *b, struct table *table, int64_t epoch)
{
    uint64_t key = stki_order_key(b->seed, (uint64_t)epoch);

    for (int64_t i = 0; i < b->unit_count; i++) { /* inside out, as order.c shuffles */
        uint64_t place = stki_philox_below(key, STKI_KEY_UNITS, (uint64_t)i, (uint64_t)i + 1);

        table->unit[i] = table->unit[place];
        table->unit[place] = (uint32_t)i;
    }
    for (int64_t i = 0; i < b->unit_count; i++)
        table->start[i + 1] = table->start[i] + b->first[table->unit[i] + 1] - b->first[table->unit[i]];
    table->epoch = epoch;
    table->filled = true;
}

/* The epoch's table, built in place of the one unused for longest. Called with the lock held. */
static const struct table *table_of(stki_blocks *b, int64_t epoch)
{
    struct table *found = &b->tables[0];

    for (int i = 0; i < TABLES; i++) {
        if (b->tables[i].filled && b->tables[i].epoch == epoch) {
            found = &b->tables[i];
            break;
        }
        if (b->tables[i].last_use < found->last_use)
            found = &b->tables[i];
    }
    if (!found->filled || found->epoch != epoch)
        build(b, found, epoch);
    found->last_use = ++b->uses;
    return found;
}

/* The last of places [low, high] that starts at or before `position`. */
static int64_t place_of(const int64_t *start, int64_t low, int64_t high, int64_t position)
{
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;

        if (start[middle] <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* As many positions from `position` on as lie in one group; returns their number. */
static int64_t eval_in_group(const stki_blocks *b, const struct table *table, int64_t epoch, int64_t position,
                             int64_t n, int64_t *samples)
{
    int64_t place = place_of(table->start, 0, b->unit_count - 1, position);
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
            int64_t at = begin + (int64_t)images[i], within = place_of(table->start, low, high - 1, at);

            samples[done + i] = b->first[table->unit[within]] + at - table->start[within];
        }
        done += part;
    }
    return n;
}

void stki_blocks_eval(stki_blocks *b, int64_t epoch, int64_t position, int64_t n, int64_t *samples)
{
    const struct table *table;

    stki_lock(&b->lock); /* a table may be replaced by another thread's epoch */
    table = table_of(b, epoch);
    for (int64_t done = 0; done < n;)
        done += eval_in_group(b, table, epoch, position + done, n - done, samples + done);
    stki_unlock(&b->lock);
}
