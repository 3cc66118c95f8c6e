/* ops_tile.h: small two-dimensional blocks of elements from any place in memory into adjacent memory, and back. */
#ifndef STKI_OPS_TILE_H
#define STKI_OPS_TILE_H

#include "convert.h"

/* One side of a copy; strides in bytes, any sign, 0 for a source. */
typedef struct stki_tile {
    void *data;
    int64_t row_stride, column_stride;
} stki_tile;

/* rows times columns elements of `size` bytes (1, 2, 4 or 8). No overlap, no alignment. */
void stki_tile_copy(enum stki_isa isa, stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns);

/* Squares of as many elements as STKI_TILE_SQUARE bytes hold, as many as fit in: dst's neighbours are along a row,
 * src's along a column. */
enum { STKI_TILE_SQUARE = 32 };
void stki_tile_turn_avx2(stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns);

#endif
