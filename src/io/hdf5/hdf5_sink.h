/* hdf5_sink.h: a file that libhdf5 writes into an output (output.h) instead of the disk: every write is checked there,
 * and the temporary name, the sync and the rename are those of all writers. One thread at a time, inside
 * stki_hdf5_enter and leave.
 *
 * A write that fails is kept here and not told to the library: libhdf5 1.10 does not survive a file that it cannot
 * close (it crashes at the end of the process). Ask the sink after every call.
 */
#ifndef STKI_HDF5_SINK_H
#define STKI_HDF5_SINK_H

#include "hdf5_library.h"
#include "output.h"

typedef struct stki_hdf5_sink {
    H5FD_t file; /* first member; the library's own fields */
    stki_output *output;
    int64_t end; /* of what was written, by the library or past it */
    stk_status status;
    stk_error err; /* of the first write that failed */
    int fd;        /* for reading, while the file is open */
    haddr_t allocated;
} stki_hdf5_sink;

/* A new HDF5 file over the sink, which must outlive it. `access` is set to it. Negative: it failed. */
hid_t stki_hdf5_sink_create(stki_hdf5_sink *sink, hid_t access);
/* `count` bytes that the library has set aside at `offset`, written past it. */
stk_status stki_hdf5_sink_write(stki_hdf5_sink *sink, int64_t offset, const void *bytes, int64_t count, stk_error *err);

#endif
