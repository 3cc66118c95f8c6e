/* hdf5_parts.h: data sets without bytes of their own: virtual ones, whose elements are those of data sets in other
 * files, and such with external raw data. Both are put together here and not by the library, which delivers fill values
 * and zeros for what is missing, locks the files, and looks for them where the environment says. Inside stki_hdf5_enter
 * and leave.
 */
#ifndef STKI_HDF5_PARTS_H
#define STKI_HDF5_PARTS_H

#include "hdf5_dataset.h"

typedef struct stki_hdf5_parts stki_hdf5_parts;

/* Before anything that makes the library look at the sources. STK_E_UNSUPPORTED: patterns of names, and selections
 * without a limit, whose extent depends on which files are there. Other layouts: fine. */
stk_status stki_hdf5_parts_check(const stki_hdf5_dataset *dataset, hid_t plist, stk_error *err);
/* Elements as of stki_hdf5_dataset_read; of a data set that has parts. */
stk_status stki_hdf5_parts_read(const stki_hdf5_dataset *dataset, const int64_t *start, const int64_t *length, void *to,
                                int64_t bytes, stk_error *err);
void stki_hdf5_parts_destroy(stki_hdf5_parts *parts); /* without the lock; NULL is fine */

#endif
