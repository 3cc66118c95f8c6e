/* hdf5_dataset.h: one data set. Its description is read from the file (hdf5_describe.c) or, if that is not supported,
 * through the library. Any box of it can be read through the library, which always works but is slow, because it uses
 * one lock and decodes one chunk at a time. Reference-counted; thread-safe. */
#ifndef STKI_HDF5_DATASET_H
#define STKI_HDF5_DATASET_H

#include "hdf5_file.h"
#include "hdf5_filter.h"
#include "hdf5_index.h"
#include "hdf5_type.h"

enum stki_hdf5_layout_kind {
    STKI_HDF5_COMPACT,
    STKI_HDF5_CONTIGUOUS,
    STKI_HDF5_CHUNKED,
    STKI_HDF5_VIRTUAL,
    STKI_HDF5_EXTERNAL
};

/* Another file that the data set needs: from an external link, external raw data, or a virtual source. */
typedef struct stki_hdf5_beside {
    char *path; /* absolute path */
    stki_stamp stamp;
} stki_hdf5_beside;

typedef struct stki_hdf5_dataset {
    stki_counter refs;
    stki_hdf5_file *file; /* the file through which it was opened; holds a reference */
    stki_hdf5_file *home; /* the file that contains it, which may differ after an external link; holds a reference */
    char *path;           /* path of `home` */
    char *name;
    char *field;           /* selected field of a compound type; NULL: whole elements */
    hid_t id, memory_type; /* -1: not opened by the library; set by stki_hdf5_dataset_need */
    stki_hdf5_type type;
    int rank; /* number of axes of the data set; the axes of an array type follow them */
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* sizes of all ndim axes */
    enum stki_hdf5_layout_kind layout;
    int64_t offset;                /* contiguous: offset of the data in the file; -1: never written */
    stki_hdf5_grid grid;           /* chunked: over the axes of the data set, with items of type.bytes */
    stki_hdf5_pipeline pipeline;   /* chunked */
    bool odd_edges;                /* chunks at the edge are stored without filters */
    bool live;                     /* another process may write to it */
    uint64_t header;               /* address of the data set's object header */
    void *compact;                 /* elements stored in the object header; or NULL */
    void *fill;                    /* fill value of type.bytes bytes */
    char filter_missing[96];       /* name of a filter that cannot be decoded; "": none */
    struct stki_hdf5_parts *parts; /* for virtual and external data, see hdf5_parts.h; set by check_sources */
    stki_hdf5_beside *beside;
    int64_t beside_count;
} stki_hdf5_dataset;

/* Opens a data set. Its name may end in ["FIELD"] if it has a compound type. STK_E_NOT_FOUND: there is no such object,
 * or a link is dangling. STK_E_UNSUPPORTED: it is a group or has a type without a dtype or a null dataspace. */
stk_status stki_hdf5_dataset_open(stki_hdf5_file *file, const char *name, stki_hdf5_dataset **out, stk_error *err);
/* Calls `found`, without holding the lock, with the name of each field of a data set of compound type. Does nothing for
 * other types. */
stk_status stki_hdf5_dataset_fields(stki_hdf5_file *file, const char *name,
                                    stk_status (*found)(void *context, const char *field, stk_error *err),
                                    void *context, stk_error *err);
stki_hdf5_dataset *stki_hdf5_dataset_retain(stki_hdf5_dataset *dataset);
void stki_hdf5_dataset_release(stki_hdf5_dataset *dataset); /* NULL is allowed */

/* Opens the data set with the library if that has not been done. Called between enter and leave. */
stk_status stki_hdf5_dataset_need(const stki_hdf5_dataset *dataset, stk_error *err);

/* Reads elements [start, start + length) of each of the `rank` axes (not those of an array type) with H5Dread, in
 * row-major order, and in the file's byte order if type.raw is set. `to` has room for them. Elements that the library
 * does not fill (fill time "never") become zeros. */
stk_status stki_hdf5_dataset_read(const stki_hdf5_dataset *dataset, const int64_t *start, const int64_t *length,
                                  void *to, int64_t bytes, stk_error *err);
/* Reads the fill value: one element of type.bytes bytes, in the form in which stki_hdf5_dataset_read returns
 * elements. */
stk_status stki_hdf5_dataset_fill(const stki_hdf5_dataset *dataset, void *to, stk_error *err);
/* Checks that the file is large enough for all elements of a contiguous or compact data set. Must be called before it
 * is read through the library, which returns zeros for missing bytes. STK_E_TRUNCATED: the file is too small. */
stk_status stki_hdf5_dataset_check_room(const stki_hdf5_dataset *dataset, stk_error *err);
/* Checks that the sources of a virtual or external data set exist and may be opened. Must be called before the data
 * set is read. */
stk_status stki_hdf5_dataset_check_sources(stki_hdf5_dataset *dataset, stk_error *err);

/* Checks that no file of the data set has changed since it was opened. Call this after reading through the library,
 * which returns zeros for missing bytes of a file, and fill values for missing sources. STK_E_TRUNCATED, STK_E_CORRUPT:
 * as in stki_file_intact. STK_E_NOT_FOUND: another file of the data set is missing. Always returns STK_OK for files
 * that are not watched, or to which another process may write (`live`). */
stk_status stki_hdf5_dataset_intact(const stki_hdf5_dataset *dataset, stk_error *err);
/* Records another file that the data set needs; must be called before that file is read. Has no effect if the file is
 * already recorded or must not be watched. */
stk_status stki_hdf5_dataset_add_beside(stki_hdf5_dataset *dataset, const char *path, stk_error *err);

#endif
