/* hdf5_pack.h: chunks shuffled and deflated by a thread pool, given back in the order they came. What comes out
 * is the same bytes for any number of threads. One thread at a time.
 */
#ifndef STKI_HDF5_PACK_H
#define STKI_HDF5_PACK_H

#include <stdbool.h>
#include <stoker/status.h>

typedef struct stki_hdf5_packer stki_hdf5_packer;

typedef struct stki_hdf5_packed {
    const void *bytes; /* valid until the next call */
    int64_t count;
    bool deflated; /* else only shuffled: it would not have become smaller */
} stki_hdf5_packed;

/* level 1 to 9. threads 1: everything runs in the caller's thread. */
stk_status stki_hdf5_packer_create(int64_t chunk_bytes, int64_t item_bytes, int level, int threads,
                                   stki_hdf5_packer **out, stk_error *err);
void stki_hdf5_packer_destroy(stki_hdf5_packer *packer); /* NULL is fine; what is not taken is lost */

/* Where the next chunk's bytes go; NULL: all places are in use, take one first. */
void *stki_hdf5_packer_room(stki_hdf5_packer *packer);
/* The room is filled: it is packed soon. Only after stki_hdf5_packer_room; fails if an earlier chunk did. */
stk_status stki_hdf5_packer_submit(stki_hdf5_packer *packer, stk_error *err);
/* Waits for the oldest chunk. STK_END: there is none. */
stk_status stki_hdf5_packer_take(stki_hdf5_packer *packer, stki_hdf5_packed *out, stk_error *err);

#endif
