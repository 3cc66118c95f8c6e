/* hdf5_list.h: all paths to data sets of an HDF5 file, through hard, soft and external links. A group that lies on the
 * path to itself is not entered again; apart from that, every path counts, also if several lead to one object. */
#ifndef STKI_HDF5_LIST_H
#define STKI_HDF5_LIST_H

#include "hdf5_file.h"

/* A path that leads to a data set, or that leads nowhere or to something that cannot be read (`trouble`). `alias_of`:
 * the first path to the same data set; NULL: this is it, or a pattern was given. */
typedef stk_status (*stki_hdf5_found)(void *context, const char *name, const char *alias_of, const stk_error *trouble,
                                      stk_error *err);

/* Calls `found` without the library's lock, in the order of names within a group. `pattern` (as of fnmatch, component
 * by component): the paths that fit it alone; NULL: all. Trouble on the way to a path that could fit is told, too. */
stk_status stki_hdf5_list(stki_hdf5_file *file, const char *pattern, stki_hdf5_found found, void *context,
                          stk_error *err);

#endif
