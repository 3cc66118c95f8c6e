/* places.h: the offsets of a file's samples: a long non-decreasing list of numbers that takes 2.5 bytes per number
 * if they are close together. Lookup takes constant time, as in an array.
 *
 *     blocks    │ first of 16 numbers, i64 │ 15 distances from it, u16 │ 0 │ …   40 bytes each
 *               │ index into `wide`, i64   │                           │ 1 │     if the last one is 64 KiB or more away
 *     wide      16 numbers, i64, of each such block
 *
 * The list thus takes a small fraction of the file's size: less than 3 % for lines of 100 bytes, 0.3 % for long ones.
 */
#ifndef STKI_PLACES_H
#define STKI_PLACES_H

#include "error.h"

enum { STKI_PLACES_BLOCK = 16 };

typedef struct stki_places_near {
    int64_t start;
    uint16_t distance[STKI_PLACES_BLOCK - 1], far;
} stki_places_near;

/* Initialize with zeros. Thread-safe after stki_places_end. */
typedef struct stki_places {
    int64_t count;
    stki_places_near *blocks;
    int64_t *wide;
    int64_t block_room, wide_count, wide_room; /* wide_count and wide_room: in numbers */
    int64_t last[STKI_PLACES_BLOCK];           /* while numbers are added: those that are not yet in a block */
} stki_places;

/* Adds a number, which must not be less than the previous one. */
stk_status stki_places_add(stki_places *places, int64_t number, stk_error *err);
/* Completes the list and releases unused capacity. */
stk_status stki_places_end(stki_places *places, stk_error *err);
void stki_places_fini(stki_places *places);
/* Returns the memory used. */
int64_t stki_places_bytes(const stki_places *places);

/* Returns the number at `index`, which must be in [0, count). */
static inline int64_t stki_places_at(const stki_places *places, int64_t index)
{
    const stki_places_near *block = &places->blocks[index / STKI_PLACES_BLOCK];
    const int within = (int)(index % STKI_PLACES_BLOCK);

    if (block->far)
        return places->wide[block->start + within];
    return within > 0 ? block->start + block->distance[within - 1] : block->start;
}

/* Returns the number at `index` and the next one, which must exist. */
static inline void stki_places_pair(const stki_places *places, int64_t index, int64_t *from, int64_t *to)
{
    *from = stki_places_at(places, index);
    *to = stki_places_at(places, index + 1);
}

#endif
