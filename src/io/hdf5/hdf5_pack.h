/* hdf5_pack.h: shuffles and deflates chunks in a thread pool and returns them in order. The output does not depend on
 * the number of threads. Not thread-safe. */
#ifndef STKI_HDF5_PACK_H
#define STKI_HDF5_PACK_H

#include <stdbool.h>
#include <stoker/status.h>

typedef struct stki_hdf5_packer stki_hdf5_packer;

typedef struct stki_hdf5_packed {
    const void *bytes; /* valid until the next call */
    int64_t count;
    bool deflated; /* false: only shuffled, because deflate would not make it smaller */
} stki_hdf5_packed;

/* Creates a packer. level: 1 to 9. threads 1: everything runs in the calling thread. */
stk_status stki_hdf5_packer_create(int64_t chunk_bytes, int64_t item_bytes, int level, int threads,
                                   stki_hdf5_packer **out, stk_error *err);
void stki_hdf5_packer_destroy(stki_hdf5_packer *packer); /* NULL is allowed; chunks that were not taken are discarded */

/* Returns a buffer for the next chunk; NULL: all buffers are in use, so a chunk must be taken first. */
void *stki_hdf5_packer_room(stki_hdf5_packer *packer);
/* Submits the buffer that stki_hdf5_packer_room returned last. Fails if an earlier chunk failed. */
stk_status stki_hdf5_packer_submit(stki_hdf5_packer *packer, stk_error *err);
/* Waits for the oldest chunk and returns it. STK_END: there is none. */
stk_status stki_hdf5_packer_take(stki_hdf5_packer *packer, stki_hdf5_packed *out, stk_error *err);

#endif
