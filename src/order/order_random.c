/* order_random.c: see order_random.h. All is fixed after create but the tables, which `lock` guards; a call holds it
 * while it builds a table (about a millisecond at most) or copies out of one. */
#include "order_random.h"
#include "allocate.h"
#include "error.h"
#include "permutation.h"
#include "philox.h"
#include "thread.h"
#include <stdbool.h>

enum { TABLES = 4 };

struct table {
    bool filled;
    int64_t epoch;
    int64_t last_use;
    uint16_t *images;
};

struct stki_random_order {
    int64_t n;
    uint64_t seed;
    /* guarded by lock */
    stki_mutex lock;
    int64_t uses;
    struct table tables[TABLES];
    uint16_t *memory; /* of the tables; NULL: the permutation is computed */
};

stk_status stki_random_order_create(int64_t n, uint64_t seed, stki_random_order **out, stk_error *err)
{
    stki_random_order *order = stki_zalloc(sizeof *order);

    if (!order)
        return stki_fail_memory(err, sizeof *order, "the order");
    stki_mutex_init(&order->lock);
    order->n = n;
    order->seed = seed;
    if (n > 0 && n <= STKI_RANDOM_TABLE_MAX) {
        const int64_t bytes = TABLES * n * (int64_t)sizeof *order->memory;

        order->memory = stki_zalloc(bytes);
        if (!order->memory) {
            stki_random_order_destroy(order);
            return stki_fail_memory(err, bytes, "the shuffle tables");
        }
        for (int i = 0; i < TABLES; i++)
            order->tables[i].images = order->memory + i * n;
    }
    *out = order;
    return STK_OK;
}

void stki_random_order_destroy(stki_random_order *order)
{
    if (!order)
        return;
    stki_mutex_fini(&order->lock);
    stki_free(order->memory);
    stki_free(order);
}

static void shuffle(uint16_t *images, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) { /* inside out: entry i lands in a random place of the first i + 1 */
        uint64_t place = stki_philox_below(key, STKI_KEY_SHUFFLE, (uint64_t)i, (uint64_t)i + 1);

        images[i] = images[place];
        images[place] = (uint16_t)i;
    }
}

/* The epoch's table, built in place of the one unused for longest. Called with the lock held. */
static const uint16_t *table_of(stki_random_order *order, int64_t epoch)
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
        shuffle(found->images, order->n, stki_order_key(order->seed, (uint64_t)epoch));
        found->epoch = epoch;
        found->filled = true;
    }
    found->last_use = ++order->uses;
    return found->images;
}

void stki_random_order_run(stki_random_order *order, int64_t epoch, int64_t first, int64_t count, uint64_t *out)
{
    if (order->memory) {
        const uint16_t *images;

        stki_lock(&order->lock);
        images = table_of(order, epoch);
        for (int64_t i = 0; i < count; i++)
            out[i] = images[first + i];
        stki_unlock(&order->lock);
    } else {
        stki_permutation permutation;

        stki_permutation_init(&permutation, order->seed, (uint64_t)epoch, (uint64_t)order->n);
        stki_permutation_run(&permutation, (uint64_t)first, count, out);
    }
}
