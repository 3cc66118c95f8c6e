/* hdf5_index.h: where the chunks of an HDF5 data set lie, read from the file's own structures: the object header, then
 * the chunk index it names. No library: asking it for the chunks one by one costs a walk each. Works on any stki_file,
 * so that it can be fuzzed. Any thread.
 *
 * Known are version 1 B-trees, single chunks, implicit indexes, fixed and extensible arrays. Whatever else is met, and
 * whatever does not fit, is refused, and the caller asks the library.
 */
#ifndef STKI_HDF5_INDEX_H
#define STKI_HDF5_INDEX_H

#include "hdf5_parse.h"

/* A data set cut into chunks, as its header describes it. Chunks are numbered by their place in the grid, last axis
 * fastest. */
typedef struct stki_hdf5_grid {
    int ndim; /* at least 1 */
    int64_t shape[STK_MAX_DIMS];
    int64_t largest[STK_MAX_DIMS]; /* the shape it may grow to; -1: without end */
    int64_t chunk[STK_MAX_DIMS];   /* elements of one chunk, each >= 1 */
    int64_t per[STK_MAX_DIMS];     /* chunks along each axis */
    int64_t item_bytes;
    int64_t count;       /* of chunks: the product of per */
    int64_t chunk_bytes; /* of one chunk, unfiltered */
    bool filtered;
} stki_hdf5_grid;

/* Fills per, count and chunk_bytes from the rest. STK_E_LIMIT: a product does not fit in 63 bits. */
stk_status stki_hdf5_grid_measure(stki_hdf5_grid *grid, const char *path, stk_error *err);

typedef struct stki_hdf5_chunk {
    int64_t number;  /* in the grid */
    int64_t address; /* from the start of the file, user block included. INT64_MAX: outside any file */
    uint32_t bytes;  /* as stored; a chunk is smaller than 4 GiB, UINT32_MAX stands for more */
    uint32_t mask;   /* bit k: filter k was skipped */
} stki_hdf5_chunk;

/* The chunks that are stored, by number; those that were never written are not there. */
typedef struct stki_hdf5_table {
    stki_hdf5_chunk *chunks;
    int64_t count, capacity;
} stki_hdf5_table;

void stki_hdf5_table_fini(stki_hdf5_table *table);
/* The place of the first chunk from `number` on; table->count: there is none. */
int64_t stki_hdf5_table_from(const stki_hdf5_table *table, int64_t number);
/* NULL: never written. */
const stki_hdf5_chunk *stki_hdf5_table_find(const stki_hdf5_table *table, int64_t number);

/* `header`: the address of the data set's object header, relative to the file's base. The
 * table's addresses and sizes are what the file says: check them against its size before use. On failure the table is
 * empty. */
stk_status stki_hdf5_index_read(const stki_file *file, uint64_t header, const stki_hdf5_grid *grid,
                                stki_hdf5_table *table, stk_error *err);

/* ---- between the files of the walk ---- */

/* hdf5_header.c: the message that says how a data set is laid out: its first bytes, as many as there are up to the
 * room. `base` is what the file's addresses are relative to. */
enum { STKI_HDF5_LAYOUT_ROOM = 512 };
typedef struct stki_hdf5_layout {
    unsigned char bytes[STKI_HDF5_LAYOUT_ROOM];
    int length;
    int64_t base, place; /* of the message in the file */
} stki_hdf5_layout;

stk_status stki_hdf5_layout_read(const stki_file *file, uint64_t header, stki_hdf5_layout *out, stk_error *err);

#endif
