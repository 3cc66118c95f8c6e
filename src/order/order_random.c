/* order_random.c: see order_random.h. Immutable after creation, except for the tables. */
#include "order_random.h"
#include "allocate.h"
#include "error.h"
#include "order_shuffle.h"
#include "order_tables.h"
#include "permutation.h"
#include <stdbool.h>

struct stki_random_order {
    int64_t n;
    uint64_t seed;
    stki_tables tables;
    int64_t built;    /* entries built so far of the table being built */
    uint16_t *memory; /* memory of the tables, n entries each; NULL: the permutation is computed */
};

static uint16_t *images_of(const stki_random_order *order, int number)
{
    return order->memory + number * order->n;
}

static int64_t build(void *context, int number, uint64_t epoch, bool fresh, int64_t units)
{
    stki_random_order *order = context;
    uint16_t *images = images_of(order, number);
    const uint64_t key = stki_order_key(order->seed, epoch);
    int64_t i = fresh ? 0 : order->built;
    const int64_t end = units < order->n - i ? i + units : order->n;

    while (i < end) {
        uint64_t places[STKI_SHUFFLE_BLOCK + STKI_SHUFFLE_SPARE];
        const int count = end - i < STKI_SHUFFLE_BLOCK ? (int)(end - i) : STKI_SHUFFLE_BLOCK;

        stki_shuffle_places(key, STKI_KEY_SHUFFLE, (uint64_t)i, count, places);
        for (int k = 0; k < count; k++, i++) {
            images[i] = images[places[k]];
            images[places[k]] = (uint16_t)i;
        }
    }
    order->built = i;
    return order->n - i;
}

stk_status stki_random_order_create(int64_t n, uint64_t seed, stki_random_order **out, stk_error *err)
{
    stki_random_order *order = stki_zalloc(sizeof *order);

    if (!order)
        return stki_fail_memory(err, sizeof *order, "the order");
    stki_tables_init(&order->tables, build, order);
    order->n = n;
    order->seed = seed;
    if (n > 0 && n <= STKI_RANDOM_TABLE_MAX) {
        const int64_t bytes = STKI_TABLES * n * (int64_t)sizeof *order->memory;

        order->memory = stki_zalloc(bytes);
        if (!order->memory) {
            stki_random_order_destroy(order);
            return stki_fail_memory(err, bytes, "the shuffle tables");
        }
    }
    *out = order;
    return STK_OK;
}

void stki_random_order_destroy(stki_random_order *order)
{
    if (!order)
        return;
    stki_tables_fini(&order->tables);
    stki_free(order->memory);
    stki_free(order);
}

void stki_random_order_run(stki_random_order *order, int64_t epoch, int64_t first, int64_t count, uint64_t *out)
{
    if (order->memory) {
        const int number = stki_tables_acquire(&order->tables, (uint64_t)epoch);
        const uint16_t *images = images_of(order, number) + first;

        for (int64_t i = 0; i < count; i++)
            out[i] = images[i];
        stki_tables_release(&order->tables, number);
    } else {
        stki_permutation permutation;

        stki_permutation_init(&permutation, order->seed, (uint64_t)epoch, (uint64_t)order->n);
        stki_permutation_run(&permutation, (uint64_t)first, count, out);
    }
}

void stki_random_order_ahead(stki_random_order *order, int64_t epoch, int64_t taken, int64_t n)
{
    if (order->memory)
        stki_tables_ahead(&order->tables, (uint64_t)epoch, (uint64_t)epoch, taken, n, order->n);
}

bool stki_random_order_is_ready(const stki_random_order *order, int64_t epoch)
{
    return !order->memory || stki_tables_have(&order->tables, (uint64_t)epoch);
}
