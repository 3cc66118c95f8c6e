/* hdf5_parts.h: virtual data sets, whose elements are in data sets of other files, and data sets with external raw
 * data. Both are assembled here rather than by the library, which returns fill values and zeros for missing sources,
 * locks the files, and searches folders given by the environment. Called between stki_hdf5_enter and leave. */
#ifndef STKI_HDF5_PARTS_H
#define STKI_HDF5_PARTS_H

#include "hdf5_dataset.h"
#include "hdf5_written.h"

typedef struct stki_hdf5_parts stki_hdf5_parts;

/* Checks whether the sources are supported; must be called before the library accesses them. STK_E_UNSUPPORTED: a
 * printf-style source name or an unlimited selection, whose extent depends on which files exist. Returns STK_OK for
 * other layouts. */
stk_status stki_hdf5_parts_check(const stki_hdf5_dataset *dataset, hid_t plist, stk_error *err);
/* Like stki_hdf5_dataset_read, for a virtual data set or one with external raw data. */
stk_status stki_hdf5_parts_read(const stki_hdf5_dataset *dataset, const int64_t *start, const int64_t *length, void *to,
                                int64_t bytes, stk_error *err);
/* Finds the ranges along `axis` that are mapped to sources. Called without the lock. */
stk_status stki_hdf5_parts_written(const stki_hdf5_dataset *dataset, int axis, stki_hdf5_written *out, stk_error *err);
void stki_hdf5_parts_destroy(stki_hdf5_parts *parts); /* called without the lock; accepts NULL */

#endif
