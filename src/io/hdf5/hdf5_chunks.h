/* hdf5_chunks.h: reads a chunked data set without the library: chunks are located with the file's own index, then taken
 * from the mapping (or read) and decoded by the requesting thread.
 *
 * Works only for data sets that stki_hdf5_chunks_can accepts. Thread-safe. */
#ifndef STKI_HDF5_CHUNKS_H
#define STKI_HDF5_CHUNKS_H

#include "chunk_cache.h"
#include "hdf5_dataset.h"

typedef struct stki_hdf5_chunks {
    stki_file *file;
    char *path, *name;
    stki_hdf5_grid grid;
    stki_hdf5_pipeline pipeline;
    stki_hdf5_table table;
    int64_t strides[STK_MAX_DIMS]; /* strides of a chunk in bytes */
    int64_t stored_room;           /* size of the largest stored chunk that must be read into memory */
    void *fill;                    /* one item */
    stki_chunk_user *cache;
    stki_counter direct; /* chunks decoded without the cache */
} stki_hdf5_chunks;

/* Whether the data set's filters, type and layout are supported. */
bool stki_hdf5_chunks_can(const stki_hdf5_dataset *dataset);
/* Locates the chunks of a data set. `file`: the data set's file if it is already open, which is retained; or NULL.
 * STK_E_UNSUPPORTED: the index is of an unknown kind. STK_E_CORRUPT: the index is inconsistent. */
stk_status stki_hdf5_chunks_open(stki_hdf5_dataset *dataset, stki_file *file, const stki_reader_opts *opts,
                                 stki_hdf5_chunks **out, stk_error *err);
void stki_hdf5_chunks_destroy(stki_hdf5_chunks *chunks); /* NULL is allowed */

/* Returns the size in bytes of the scratch memory that the caller provides for decoding a chunk. */
int64_t stki_hdf5_chunks_room(const stki_hdf5_chunks *chunks);

/* Returns the address of a chunk's elements in the mapping; NULL: the file is not mapped, the chunk is not stored
 * unfiltered inside it, or the chunk was never written, which sets *missing. */
const char *stki_hdf5_chunks_mapped(const stki_hdf5_chunks *chunks, int64_t number, bool *missing);
/* Like stki_hdf5_chunks_mapped, for an entry of the table. */
const char *stki_hdf5_chunks_mapped_entry(const stki_hdf5_chunks *chunks, const stki_hdf5_chunk *chunk);
/* Returns the entry of a chunk after checking that it is inside the file; NULL with STK_OK: the chunk was never
 * written. */
stk_status stki_hdf5_chunks_entry(const stki_hdf5_chunks *chunks, int64_t number, const stki_hdf5_chunk **out,
                                  stk_error *err);
/* Decodes a chunk into `to`, which has room for chunk_bytes. `room`: the scratch memory as above. A chunk that was
 * never written yields fill values. */
stk_status stki_hdf5_chunks_load(const stki_hdf5_chunks *chunks, int64_t number, void *to, void *room, stk_error *err);
/* Like stki_hdf5_chunks_load, but through the cache. Each chunk is requested `uses` times per pass. STK_AGAIN: there is
 * no cache in this process. */
stk_status stki_hdf5_chunks_get(const stki_hdf5_chunks *chunks, int64_t number, int64_t uses, void *room,
                                stk_storage **out, stk_error *err);

/* Reads the box of elements [start, start + length) into `to`, in row-major order. `scratch` has room for chunk_bytes,
 * followed by the scratch memory for decoding. With `cached`, decoded chunks are kept in the cache. */
stk_status stki_hdf5_chunks_read(const stki_hdf5_chunks *chunks, const int64_t *start, const int64_t *length,
                                 bool cached, void *to, void *scratch, stk_error *err);
/* Returns the size in bytes of `scratch` of stki_hdf5_chunks_read. */
int64_t stki_hdf5_chunks_read_room(const stki_hdf5_chunks *chunks);

#endif
