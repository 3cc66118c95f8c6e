/* ops_tile.h: copies small two-dimensional blocks of strided elements to contiguous memory and back. */
#ifndef STKI_OPS_TILE_H
#define STKI_OPS_TILE_H

#include "convert.h"

/* One side of a copy; strides in bytes, any sign, 0 for a source. */
typedef struct stki_tile {
    void *data;
    int64_t row_stride, column_stride;
} stki_tile;

/* Copies rows * columns elements of `size` bytes (1, 2, 4 or 8). The tiles must not overlap; no alignment is required.
 */
void stki_tile_copy(enum stki_isa isa, stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns);

/* Transposes whole squares with sides of STKI_TILE_SQUARE bytes: adjacent elements are along a row in dst and along a
 * column in src. */
enum { STKI_TILE_SQUARE = 32 };
void stki_tile_turn_avx2(stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns);

#endif
