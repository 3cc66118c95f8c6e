/* hdf5_filter.h: the filters of HDF5 chunks that stoker decodes without the library: deflate, shuffle, fletcher32 and
 * LZF, in any order, with at most one compressing filter. Works on bytes in memory. Thread-safe. */
#ifndef STKI_HDF5_FILTER_H
#define STKI_HDF5_FILTER_H

#include <stdbool.h>
#include <stoker/status.h>

enum {
    STKI_HDF5_DEFLATE = 1,
    STKI_HDF5_SHUFFLE = 2,
    STKI_HDF5_FLETCHER32 = 3,
    STKI_HDF5_LZF = 32000,
    STKI_HDF5_MAX_FILTERS = 32 /* the number of bits in a filter mask */
};

typedef struct stki_hdf5_filter {
    int id;
    unsigned value; /* shuffle: size of an element in bytes */
    char name[24];  /* as in the file */
} stki_hdf5_filter;

typedef struct stki_hdf5_pipeline {
    int count; /* filters are in the order in which they were applied */
    stki_hdf5_filter filters[STKI_HDF5_MAX_FILTERS];
    int64_t chunk_bytes; /* size of the elements of a chunk */
} stki_hdf5_pipeline;

/* Whether stoker can decode all filters of the pipeline. */
bool stki_hdf5_pipeline_known(const stki_hdf5_pipeline *pipeline);
/* Whether a chunk with this mask is stored unfiltered. */
bool stki_hdf5_pipeline_plain(const stki_hdf5_pipeline *pipeline, uint32_t mask);
/* Returns the size in bytes of `work` of stki_hdf5_decode. */
int64_t stki_hdf5_pipeline_room(const stki_hdf5_pipeline *pipeline);

/* Decodes a stored chunk into `to`, which has room for chunk_bytes bytes. The buffers must not overlap. STK_E_CORRUPT:
 * invalid stream, wrong checksum, or wrong size. `path` and `offset`: location of the chunk for messages (-1:
 * unknown). */
stk_status stki_hdf5_decode(const stki_hdf5_pipeline *pipeline, uint32_t mask, const void *stored, int64_t bytes,
                            void *to, void *work, const char *path, int64_t offset, stk_error *err);

/* ---- single filters ---- */

/* Reverses the shuffling of `count` elements of `size` bytes: byte k of element j is from[k * count + j]. */
void stki_hdf5_unshuffle(void *to, const void *from, int64_t count, int64_t size);
/* The inverse of stki_hdf5_unshuffle. */
void stki_hdf5_shuffle(void *to, const void *from, int64_t count, int64_t size);
uint32_t stki_hdf5_fletcher32(const void *bytes, int64_t count);
/* Returns true if the stream decoded to exactly `room` bytes. */
bool stki_hdf5_lzf(const void *from, int64_t bytes, void *to, int64_t room);

#endif
