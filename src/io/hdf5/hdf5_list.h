/* hdf5_list.h: the names of what an HDF5 file holds. */
#ifndef STKI_HDF5_LIST_H
#define STKI_HDF5_LIST_H

#include "hdf5_file.h"

/* Calls `found` with the path of every data set and of every link that leads nowhere, "/train/images", in the order of
 * their names. A group that is reached in several ways is listed once; links that make a cycle end there. `trouble`:
 * not NULL for a link that cannot be followed. Stops with the status of `found` where that is not STK_OK. */
stk_status stki_hdf5_list(stki_hdf5_file *file,
                          stk_status (*found)(void *context, const char *name, const stk_error *trouble,
                                              stk_error *err),
                          void *context, stk_error *err);

#endif
