/* hdf5_sink.h: lets libhdf5 write to an output (output.h) instead of a file, so that every write is checked, and the
 * temporary name, sync and rename are the same as for other writers. Not thread-safe; called between stki_hdf5_enter
 * and leave.
 *
 * A failed write is recorded in the sink but not reported to the library, because libhdf5 1.10 crashes at process exit
 * if it could not close a file. Check the sink after every call. */
#ifndef STKI_HDF5_SINK_H
#define STKI_HDF5_SINK_H

#include "hdf5_library.h"
#include "output.h"

typedef struct stki_hdf5_sink {
    H5FD_t file; /* the library's struct; must be the first member */
    stki_output *output;
    int64_t end; /* end of the data written by the library or directly */
    stk_status status;
    stk_error err; /* error of the first failed write */
    int fd;        /* for reading, while the file is open */
    haddr_t allocated;
} stki_hdf5_sink;

/* Creates an HDF5 file that writes to the sink, which must outlive it. Sets the driver in `access`. Negative:
 * failed. */
hid_t stki_hdf5_sink_create(stki_hdf5_sink *sink, hid_t access);
/* Writes `count` bytes directly to space that the library has allocated at `offset`. */
stk_status stki_hdf5_sink_write(stki_hdf5_sink *sink, int64_t offset, const void *bytes, int64_t count, stk_error *err);

#endif
