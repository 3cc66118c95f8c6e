/* order_random.h: one random permutation of [0, n) an epoch, of a seed. Up to STKI_RANDOM_TABLE_MAX numbers it is a
 * table, made by a Fisher-Yates shuffle: every order is then possible and, as far as 64-bit draws can tell, equally
 * likely, which no network over so few bits can promise. The last few epochs' tables are kept, and the next epoch's is
 * built ahead (order_tables.h). Above, the permutation is computed (permutation.h) and only an epoch's round keys are
 * needed: O(1) memory. Any thread. */
#ifndef STKI_ORDER_RANDOM_H
#define STKI_ORDER_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_RANDOM_TABLE_MAX = 65536 }; /* images then fit 16 bits */

typedef struct stki_random_order stki_random_order;

stk_status stki_random_order_create(int64_t n, uint64_t seed, stki_random_order **out, stk_error *err);
void stki_random_order_destroy(stki_random_order *order); /* NULL is fine */
/* out[i] = image of first + i, for i < count; all must be inside [0, n). */
void stki_random_order_run(stki_random_order *order, int64_t epoch, int64_t first, int64_t count, uint64_t *out);
/* Positions up to `taken` of the epoch are out, the last `n` by the caller: the next epoch's table is built ahead. */
void stki_random_order_ahead(stki_random_order *order, int64_t epoch, int64_t taken, int64_t n);

/* Whether an epoch can be evaluated without building a table first. */
bool stki_random_order_is_ready(const stki_random_order *order, int64_t epoch);

#endif
