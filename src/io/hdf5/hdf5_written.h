/* hdf5_written.h: which elements along the axis of the samples were written to the file. All other elements are fill
 * values. Even a small file can declare any number of them. */
#ifndef STKI_HDF5_WRITTEN_H
#define STKI_HDF5_WRITTEN_H

#include "hdf5_dataset.h"

/* Elements [first, last) along the axis. */
typedef struct stki_hdf5_run {
    int64_t first, last;
} stki_hdf5_run;

typedef struct stki_hdf5_written {
    bool all; /* all elements were written, or it is unknown which */
    stki_hdf5_run *runs;
    int64_t count, capacity; /* sorted and disjoint after stki_hdf5_written_end */
} stki_hdf5_written;

/* Derives the written elements from the table of chunks. */
stk_status stki_hdf5_written_of(const stki_hdf5_table *table, const stki_hdf5_grid *grid, int axis,
                                stki_hdf5_written *out, stk_error *err);
stk_status stki_hdf5_written_add(stki_hdf5_written *written, int64_t first, int64_t last, stk_error *err);
void stki_hdf5_written_end(stki_hdf5_written *written);
void stki_hdf5_written_fini(stki_hdf5_written *written);
/* Returns the size of the runs in bytes. */
static inline int64_t stki_hdf5_written_bytes(const stki_hdf5_written *written)
{
    return written->capacity * (int64_t)sizeof *written->runs;
}
/* Returns the first element at or after `from` that was written; INT64_MAX: there is none. */
int64_t stki_hdf5_written_from(const stki_hdf5_written *written, int64_t from);

#endif
