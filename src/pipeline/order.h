/* order.h: which sample stands at which position, as a pure function: nothing is stored that an epoch number and a seed
 * do not give again. Ranks and workers only slice the positions. Positions of an epoch are [0, stki_order_length). Any
 * thread. */
#ifndef STKI_ORDER_H
#define STKI_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_ORDER_VERSION = 1 }; /* grows when the same seed would give another order; saved states hold it */

enum stki_order_kind { STKI_ORDER_SEQUENTIAL, STKI_ORDER_RANDOM, STKI_ORDER_BLOCK };

/* One position's answer, with room for mixtures (source), token windows and packing (offset, length), and repeated
 * samples (draw: the global position that keys the random transforms). */
typedef struct stki_position {
    int32_t source;
    int64_t sample;
    int64_t offset, length; /* 0, -1: the whole sample */
    int64_t draw;
} stki_position;

typedef struct stki_order_opts {
    enum stki_order_kind kind;
    int64_t count; /* samples of the data set */
    uint64_t seed;
    const int64_t *indices; /* a subset, applied first; copied; NULL: all */
    int64_t index_count;
    /* BLOCK: samples [unit_first[u], unit_first[u + 1]) are best read together; unit_count + 1 numbers, copied. Of a
     * subset, neighbours in its list that share a unit are one. */
    const int64_t *unit_first;
    int64_t unit_count, window; /* window: units that are shuffled together, at least 1 */
} stki_order_opts;

typedef struct stki_order stki_order;

/* STK_E_RANGE: an index outside the data set, naming its place. */
stk_status stki_order_create(const stki_order_opts *opts, stki_order **out, stk_error *err);
void stki_order_destroy(stki_order *order);
int64_t stki_order_length(const stki_order *order);
/* Positions [first, first + n) of an epoch; all must be inside [0, length). Random up to 65,536 positions builds the
 * epoch's table on first use (a few are kept), above it O(1) memory. Fails only for memory. */
stk_status stki_order_eval(stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                           stk_error *err);

/* The keyed bijection on [0, n) alone: a Feistel network over the next power of four, cycle-walked. */
uint64_t stki_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t index);

/* ---- batches: (epoch, step, rank, world_size) -> positions, design 5 ------------------------------------------ */

enum stki_last_batch { STKI_LAST_PARTIAL, STKI_LAST_DROP, STKI_LAST_PAD };

typedef struct stki_batching {
    int64_t length;       /* positions of an epoch, n */
    int64_t global_batch; /* B */
    int64_t rank, world_size;
    enum stki_last_batch last;
} stki_batching;

typedef struct stki_batch_rows {
    int64_t rows;  /* of this rank, padding included; may be 0 under `partial` */
    int64_t valid; /* rows that are not padding: they come first */
    int64_t first; /* position of row 0; row r < valid is first + r; padded row r is (first + r) mod length */
} stki_batch_rows;

int64_t stki_batching_steps(const stki_batching *batching);    /* of an epoch; the same on every rank */
int64_t stki_batching_max_rows(const stki_batching *batching); /* largest batch of this rank */
stki_batch_rows stki_batching_rows(const stki_batching *batching, int64_t step);

#endif
