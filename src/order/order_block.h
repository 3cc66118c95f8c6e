/* order_block.h: `order: block`. Samples are in units that are best read together (chunks, pages, shards). The units
 * are shuffled by key, `window` consecutive units form a group, and the samples of a group are permuted by a keyed
 * bijection. The group of a position follows from the prefix sums of the units' sizes, and a reader never needs more
 * than two groups at a time. The table of the units' order and sums, O(units), is kept for a few epochs, and the next
 * epoch's table is built in advance (order_tables.h). Thread-safe. */
#ifndef STKI_ORDER_BLOCK_H
#define STKI_ORDER_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_blocks stki_blocks;

/* `in_order`: the samples of a unit stay in order and units follow one another; `window` is then ignored. Unit u holds
 * samples [first[u], first[u + 1]), first[0] = 0; `first` has unit_count + 1 numbers and is copied. Units may be empty.
 * window >= 1. */
stk_status stki_blocks_create(const int64_t *first, int64_t unit_count, int64_t window, bool in_order, uint64_t seed,
                              stki_blocks **out, stk_error *err);
void stki_blocks_destroy(stki_blocks *blocks); /* NULL is allowed. */
/* Sets samples[i] to the sample at position + i, for i < n; all positions must be in the epoch. */
void stki_blocks_eval(stki_blocks *blocks, int64_t epoch, int64_t position, int64_t n, int64_t *samples);
/* Builds part of the next epoch's table. Call it after the first `taken` positions of the epoch have been taken, the
 * last `n` of them by the caller. */
void stki_blocks_ahead(stki_blocks *blocks, int64_t epoch, int64_t taken, int64_t n);

/* Whether an epoch can be evaluated without building a table first. */
bool stki_blocks_is_ready(const stki_blocks *blocks, int64_t epoch);

#endif
