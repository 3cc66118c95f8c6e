/* hdf5_filter.h: the filters of HDF5 chunks that are undone here instead of in the library: deflate, shuffle,
 * fletcher32 and LZF, in any order, with at most one of those that compress. Works on memory alone. Any thread.
 */
#ifndef STKI_HDF5_FILTER_H
#define STKI_HDF5_FILTER_H

#include <stdbool.h>
#include <stoker/status.h>

enum {
    STKI_HDF5_DEFLATE = 1,
    STKI_HDF5_SHUFFLE = 2,
    STKI_HDF5_FLETCHER32 = 3,
    STKI_HDF5_LZF = 32000,
    STKI_HDF5_MAX_FILTERS = 32 /* as many as a filter mask has bits */
};

typedef struct stki_hdf5_filter {
    int id;
    unsigned value; /* shuffle: bytes of an element */
    char name[24];  /* as the file has it */
} stki_hdf5_filter;

typedef struct stki_hdf5_pipeline {
    int count; /* in the order of writing */
    stki_hdf5_filter filters[STKI_HDF5_MAX_FILTERS];
    int64_t chunk_bytes; /* of the elements of a chunk */
} stki_hdf5_pipeline;

/* Can all of it be undone here? */
bool stki_hdf5_pipeline_known(const stki_hdf5_pipeline *pipeline);
/* Does a chunk of this mask hold its elements as they are? */
bool stki_hdf5_pipeline_plain(const stki_hdf5_pipeline *pipeline, uint32_t mask);
/* Bytes of `work` that a decode may need. */
int64_t stki_hdf5_pipeline_room(const stki_hdf5_pipeline *pipeline);

/* The bytes of a chunk as it is stored become its chunk_bytes bytes at `to`. Nothing may overlap. STK_E_CORRUPT: a
 * stream is broken, a checksum wrong, or the sizes do not come out. `path` and `offset` say where the chunk lies (-1:
 * not known). */
stk_status stki_hdf5_decode(const stki_hdf5_pipeline *pipeline, uint32_t mask, const void *stored, int64_t bytes,
                            void *to, void *work, const char *path, int64_t offset, stk_error *err);

/* ---- the filters alone ---- */

/* `count` elements of `size` bytes: byte k of element j comes from from[k * count + j]. */
void stki_hdf5_unshuffle(void *to, const void *from, int64_t count, int64_t size);
/* And back. */
void stki_hdf5_shuffle(void *to, const void *from, int64_t count, int64_t size);
uint32_t stki_hdf5_fletcher32(const void *bytes, int64_t count);
/* True: the stream gave just `room` bytes. */
bool stki_hdf5_lzf(const void *from, int64_t bytes, void *to, int64_t room);

#endif
