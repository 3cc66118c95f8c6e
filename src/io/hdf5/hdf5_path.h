/* hdf5_path.h: resolves names of objects in HDF5 files link by link, according to the rules of hdf5_file.h. The library
 * does not resolve them, because it would search folders given by the environment. Groups that hdf5_links.c does not
 * support are queried through the library. */
#ifndef STKI_HDF5_PATH_H
#define STKI_HDF5_PATH_H

#include "hdf5_file.h"

/* An object and the file that contains it. */
typedef struct stki_hdf5_object {
    stki_hdf5_file *file; /* holds a reference */
    uint64_t header;      /* address of its object header; UNDEFINED: accessed through the library */
    hid_t id;             /* ID of a group, a data set or a committed datatype; -1: not opened by the library */
} stki_hdf5_object;

#define STKI_HDF5_NO_OBJECT ((stki_hdf5_object){NULL, STKI_HDF5_UNDEFINED, -1})

/* Opens the object with this name. STK_E_NOT_FOUND: there is none, a link on the path is dangling (the message names
 * its target), or there are more than 16 links. STK_E_UNSUPPORTED: the file was written by a newer HDF5, or a link is
 * of an unknown kind. */
stk_status stki_hdf5_object_open(stki_hdf5_file *file, const char *name, stki_hdf5_object *out, stk_error *err);
/* The links of a group, sorted by name. The list must be freed even on failure. */
typedef struct stki_hdf5_link_list {
    stki_hdf5_link *links; /* the strings of each link are in one block, which starts with its name */
    int64_t count, capacity;
} stki_hdf5_link_list;

stk_status stki_hdf5_object_links(stki_hdf5_object *group, const char *asked, stki_hdf5_link_list *out, stk_error *err);
void stki_hdf5_link_list_fini(stki_hdf5_link_list *list);
/* Follows a link of the group; `asked` is for messages. */
stk_status stki_hdf5_object_follow(stki_hdf5_object *group, const stki_hdf5_link *link, const char *asked,
                                   stki_hdf5_object *out, stk_error *err);
/* Opens the object with the library if that has not been done. Called between enter and leave. */
stk_status stki_hdf5_object_need(stki_hdf5_object *object, const char *asked, stk_error *err);
void stki_hdf5_object_close(stki_hdf5_object *object);

/* Identifies an object independently of its name. */
typedef struct stki_hdf5_key {
    uint64_t device, inode, header;
} stki_hdf5_key;

stk_status stki_hdf5_object_key(stki_hdf5_object *object, const char *asked, enum stki_hdf5_kind *kind,
                                stki_hdf5_key *out, stk_error *err);

#endif
