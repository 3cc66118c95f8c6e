/* hdf5_chunks.h: the elements of a chunked data set without the library: chunks are found in the table that was read
 * from the file's own index, taken from the mapping (or read), and their filters undone by the thread that asks. Where
 * the index is of a kind that is not walked here, stored chunks come from the library and everything else is the same.
 *
 * Only for what stki_hdf5_chunks_can says. Any thread.
 */
#ifndef STKI_HDF5_CHUNKS_H
#define STKI_HDF5_CHUNKS_H

#include "chunk_cache.h"
#include "hdf5_dataset.h"

typedef struct stki_hdf5_chunks {
    stki_hdf5_dataset *dataset; /* the library is asked for stored chunks; else NULL, and no id is held */
    stki_file *file;
    char *path, *name;
    stki_hdf5_grid grid;
    stki_hdf5_pipeline pipeline;
    stki_hdf5_table table;
    int64_t strides[STK_MAX_DIMS]; /* bytes, of the elements in a chunk */
    int64_t stored_room;           /* bytes of the longest stored chunk that has to be read into memory */
    void *fill;                    /* one item */
    stki_chunk_user *cache;
    stki_counter direct;  /* chunks decoded past the cache */
    stki_counter library; /* stored chunks that the library was asked for */
} stki_hdf5_chunks;

/* Are filters, type and layout on the list of what is proven? */
bool stki_hdf5_chunks_can(const stki_hdf5_dataset *dataset);
/* `file`: the data set's own, if it is open already (retained); or NULL. */
stk_status stki_hdf5_chunks_open(stki_hdf5_dataset *dataset, stki_file *file, const stki_reader_opts *opts,
                                 stki_hdf5_chunks **out, stk_error *err);
void stki_hdf5_chunks_destroy(stki_hdf5_chunks *chunks); /* NULL is fine */

/* Memory that undoing a chunk's filters takes, in the caller's scratch. */
int64_t stki_hdf5_chunks_room(const stki_hdf5_chunks *chunks);

/* Where a stored chunk's elements lie as they are in the mapping; NULL: nowhere. *missing: it was never written. */
const char *stki_hdf5_chunks_mapped(const stki_hdf5_chunks *chunks, int64_t number, bool *missing);
/* The same of an entry of the table. */
const char *stki_hdf5_chunks_mapped_entry(const stki_hdf5_chunks *chunks, const stki_hdf5_chunk *chunk);
/* The entry of a chunk, proven to lie inside the file; NULL with STK_OK: never written, or only the library knows. */
stk_status stki_hdf5_chunks_entry(const stki_hdf5_chunks *chunks, int64_t number, const stki_hdf5_chunk **out,
                                  stk_error *err);
/* chunk_bytes of elements at `to`; `room` as above. Never written: fill values. */
stk_status stki_hdf5_chunks_load(const stki_hdf5_chunks *chunks, int64_t number, void *to, void *room, stk_error *err);
/* The same through the cache, a chunk served `uses` times a pass. STK_AGAIN: no cache in this process. */
stk_status stki_hdf5_chunks_get(const stki_hdf5_chunks *chunks, int64_t number, int64_t uses, void *room,
                                stk_storage **out, stk_error *err);

/* The box of elements [start, start + length), row-major, to `to`. `scratch` holds chunk_bytes and then the room. With
 * `cached`, decoded chunks are kept for others. */
stk_status stki_hdf5_chunks_read(const stki_hdf5_chunks *chunks, const int64_t *start, const int64_t *length,
                                 bool cached, void *to, void *scratch, stk_error *err);
/* Bytes of that scratch. */
int64_t stki_hdf5_chunks_read_room(const stki_hdf5_chunks *chunks);

#endif
