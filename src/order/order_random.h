/* order_random.h: one random permutation of [0, n) per epoch, determined by a seed. For up to STKI_RANDOM_TABLE_MAX
 * numbers it is a table made by a Fisher-Yates shuffle, so that every permutation is possible and, as far as 64-bit
 * draws allow, equally likely. A Feistel network over so few bits cannot guarantee that. The tables of the last few
 * epochs are kept, and the next epoch's table is built in advance (order_tables.h). Larger permutations are computed
 * (permutation.h) and need only the epoch's round keys: O(1) memory. Thread-safe. */
#ifndef STKI_ORDER_RANDOM_H
#define STKI_ORDER_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_RANDOM_TABLE_MAX = 65536 }; /* so that images fit in 16 bits */

typedef struct stki_random_order stki_random_order;

stk_status stki_random_order_create(int64_t n, uint64_t seed, stki_random_order **out, stk_error *err);
void stki_random_order_destroy(stki_random_order *order); /* NULL is allowed. */
/* out[i] = image of first + i, for i < count; all must be in [0, n). */
void stki_random_order_run(stki_random_order *order, int64_t epoch, int64_t first, int64_t count, uint64_t *out);
/* Builds part of the next epoch's table. Call it after the first `taken` positions of the epoch have been taken, the
 * last `n` of them by the caller. */
void stki_random_order_ahead(stki_random_order *order, int64_t epoch, int64_t taken, int64_t n);

/* Whether an epoch can be evaluated without building a table first. */
bool stki_random_order_is_ready(const stki_random_order *order, int64_t epoch);

#endif
