/* hdf5_path.h: names of objects in HDF5 files, followed link by link by our own rules (hdf5_file.h), never by the
 * library: it takes places of other files from the environment. Inside stki_hdf5_enter and leave.
 */
#ifndef STKI_HDF5_PATH_H
#define STKI_HDF5_PATH_H

#include "hdf5_file.h"

/* An object and the file that holds it. */
typedef struct stki_hdf5_object {
    stki_hdf5_file *file; /* with a reference */
    hid_t id;             /* a group, a data set or a named type */
} stki_hdf5_object;

/* The object of this name. STK_E_NOT_FOUND: there is none, or a link on the way leads nowhere (named with its target)
 * or through more than 16 others. STK_E_UNSUPPORTED: written by a newer HDF5, or a link of an unknown kind. */
stk_status stki_hdf5_object_open(stki_hdf5_file *file, const char *name, stki_hdf5_object *out, stk_error *err);
/* One name without slashes in an open group; `asked` is for messages. */
stk_status stki_hdf5_object_step(const stki_hdf5_object *group, const char *name, const char *asked,
                                 stki_hdf5_object *out, stk_error *err);
void stki_hdf5_object_close(stki_hdf5_object *object);

/* What two names of one object have in common. */
typedef struct stki_hdf5_key {
    uint64_t device, inode, header;
} stki_hdf5_key;

/* False: it cannot be told. */
bool stki_hdf5_object_key(const stki_hdf5_object *object, H5O_type_t *type, stki_hdf5_key *out);

#endif
