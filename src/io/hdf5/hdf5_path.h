/* hdf5_path.h: names of objects in HDF5 files, followed link by link by our own rules (hdf5_file.h), never by the
 * library: it takes places of other files from the environment. A group that hdf5_links.c does not understand is asked
 * from the library.
 */
#ifndef STKI_HDF5_PATH_H
#define STKI_HDF5_PATH_H

#include "hdf5_file.h"

/* An object and the file that holds it. */
typedef struct stki_hdf5_object {
    stki_hdf5_file *file; /* with a reference */
    uint64_t header;      /* the address of its object header; UNDEFINED: only the library knows it */
    hid_t id;             /* a group, a data set or a named type; -1: the library has not opened it */
} stki_hdf5_object;

#define STKI_HDF5_NO_OBJECT ((stki_hdf5_object){NULL, STKI_HDF5_UNDEFINED, -1})

/* The object of this name. STK_E_NOT_FOUND: there is none, or a link on the way leads nowhere (named with its target)
 * or through more than 16 others. STK_E_UNSUPPORTED: written by a newer HDF5, or a link of an unknown kind. */
stk_status stki_hdf5_object_open(stki_hdf5_file *file, const char *name, stki_hdf5_object *out, stk_error *err);
/* The links of a group, in the order of their names; to be freed also where that fails. */
typedef struct stki_hdf5_link_list {
    stki_hdf5_link *links; /* the texts of each are in one block, which begins with its name */
    int64_t count, capacity;
} stki_hdf5_link_list;

stk_status stki_hdf5_object_links(stki_hdf5_object *group, const char *asked, stki_hdf5_link_list *out, stk_error *err);
void stki_hdf5_link_list_fini(stki_hdf5_link_list *list);
/* What a link of the group leads to; `asked` is for messages. */
stk_status stki_hdf5_object_follow(stki_hdf5_object *group, const stki_hdf5_link *link, const char *asked,
                                   stki_hdf5_object *out, stk_error *err);
/* Inside enter and leave: opens the object by the library, if that has not been done. */
stk_status stki_hdf5_object_need(stki_hdf5_object *object, const char *asked, stk_error *err);
void stki_hdf5_object_close(stki_hdf5_object *object);

/* What two names of one object have in common. */
typedef struct stki_hdf5_key {
    uint64_t device, inode, header;
} stki_hdf5_key;

stk_status stki_hdf5_object_key(stki_hdf5_object *object, const char *asked, enum stki_hdf5_kind *kind,
                                stki_hdf5_key *out, stk_error *err);

#endif
