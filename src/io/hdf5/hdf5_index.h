/* hdf5_index.h: locates the chunks of an HDF5 data set by reading the object header and the chunk index from the file,
 * without the library, which would traverse the index for each chunk. Works on any stki_file, so that it can be fuzzed.
 * Thread-safe.
 *
 * Supports B-trees of versions 1 and 2, single chunks, implicit indexes, and fixed and extensible arrays. Anything else
 * fails with STK_E_UNSUPPORTED, and anything inconsistent with STK_E_CORRUPT. */
#ifndef STKI_HDF5_INDEX_H
#define STKI_HDF5_INDEX_H

#include "hdf5_parse.h"

/* The chunk grid of a data set. Chunks are numbered by their position in the grid, last axis fastest. */
typedef struct stki_hdf5_grid {
    int ndim; /* at least 1 */
    int64_t shape[STK_MAX_DIMS];
    int64_t largest[STK_MAX_DIMS]; /* maximum shape; -1: unlimited */
    int64_t chunk[STK_MAX_DIMS];   /* chunk shape in elements, each >= 1 */
    int64_t per[STK_MAX_DIMS];     /* number of chunks along each axis */
    int64_t item_bytes;            /* size of an element; 0 in stki_hdf5_index_read: taken from the index */
    int64_t count;                 /* number of chunks: the product of per */
    int64_t chunk_bytes;           /* size of an unfiltered chunk */
    bool filtered;
} stki_hdf5_grid;

/* Computes per, count and chunk_bytes from the other members. STK_E_LIMIT: a product exceeds 63 bits. */
stk_status stki_hdf5_grid_measure(stki_hdf5_grid *grid, const char *path, stk_error *err);

typedef struct stki_hdf5_chunk {
    int64_t number;  /* position in the grid */
    int64_t address; /* offset in the file, including the user block. INT64_MAX: out of range */
    uint32_t bytes;  /* stored size; UINT32_MAX: too large, because chunks must be smaller than 4 GiB */
    uint32_t mask;   /* bit k: filter k was skipped */
} stki_hdf5_chunk;

/* The stored chunks, sorted by number. Chunks that were never written are not included. */
typedef struct stki_hdf5_table {
    stki_hdf5_chunk *chunks;
    int64_t count, capacity;
} stki_hdf5_table;

void stki_hdf5_table_fini(stki_hdf5_table *table);
static inline int64_t stki_hdf5_table_bytes(const stki_hdf5_table *table)
{
    return table->capacity * (int64_t)sizeof *table->chunks;
}
/* Returns NULL if the chunk was never written. */
const stki_hdf5_chunk *stki_hdf5_table_find(const stki_hdf5_table *table, int64_t number);

/* Reads the chunk index of a data set. `header`: address of its object header, relative to the file's base. Addresses
 * and sizes in the table are unchecked values from the file; compare them with the file's size before use. On failure,
 * the table is empty. */
stk_status stki_hdf5_index_read(const stki_file *file, uint64_t header, const stki_hdf5_grid *grid,
                                stki_hdf5_table *table, stk_error *err);

/* ---- internal ---- */

/* hdf5_header.c: reads the layout message of a data set, truncated to the buffer. `base`: offset to which the file's
 * addresses are relative. */
enum { STKI_HDF5_LAYOUT_ROOM = 512 };
typedef struct stki_hdf5_layout {
    unsigned char bytes[STKI_HDF5_LAYOUT_ROOM];
    int length;
    int64_t base, place; /* offset of the message in the file */
} stki_hdf5_layout;

stk_status stki_hdf5_layout_read(const stki_file *file, uint64_t header, stki_hdf5_layout *out, stk_error *err);

#endif
