/* hdf5_list.h: lists all paths to data sets of an HDF5 file through hard, soft and external links. A group that is its
 * own ancestor is not visited again. Otherwise every path is listed, even if several lead to the same object. */
#ifndef STKI_HDF5_LIST_H
#define STKI_HDF5_LIST_H

#include "hdf5_file.h"

/* Called for each path to a data set, and for each path that is dangling or unreadable (`trouble` is the reason).
 * `alias_of`: the first path to the same data set; NULL: this is the first one, or a pattern was given. */
typedef stk_status (*stki_hdf5_found)(void *context, const char *name, const char *alias_of, const stk_error *trouble,
                                      stk_error *err);

/* Calls `found` without the library's lock, in the order of names within a group. `pattern` is matched per component,
 * as in fnmatch; NULL: all paths. Errors at prefixes of paths that could match are reported too. */
stk_status stki_hdf5_list(stki_hdf5_file *file, const char *pattern, stki_hdf5_found found, void *context,
                          stk_error *err);

#endif
