/* hdf5_dataset.h: one data set as the file describes it (hdf5_describe.c), or, if that is not understood, the library;
 * and reading any box of it through the library, which is right for everything and slow: one lock, one chunk at a time.
 * Counted; any thread.
 */
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

/* A file beside the data set's first one, that it needs too: behind an external link, external raw data, a source. */
typedef struct stki_hdf5_beside {
    char *path; /* from the root */
    stki_stamp stamp;
} stki_hdf5_beside;

typedef struct stki_hdf5_dataset {
    stki_counter refs;
    stki_hdf5_file *file; /* that it was asked from; holds a reference */
    stki_hdf5_file *home; /* that holds it: another one behind an external link; holds a reference */
    char *path;           /* of `home` */
    char *name;
    char *field;           /* of a compound type: its elements are those of this field; NULL: whole elements */
    hid_t id, memory_type; /* -1: the library has not opened it; written by stki_hdf5_dataset_need */
    stki_hdf5_type type;
    int rank; /* axes of the data set; those of an array type come behind */
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* of all ndim axes */
    enum stki_hdf5_layout_kind layout;
    int64_t offset;                /* contiguous: of the data in the file; -1: never written */
    stki_hdf5_grid grid;           /* chunked; over the axes of the data set, of items of type.bytes */
    stki_hdf5_pipeline pipeline;   /* chunked */
    bool odd_edges;                /* chunks at the edge are stored without filters */
    bool live;                     /* somebody may be writing it */
    uint64_t header;               /* address of its object header */
    void *compact;                 /* its elements, if they were found in the object header; or NULL */
    void *fill;                    /* type.bytes: what was never written reads as */
    char filter_missing[96];       /* not "": a filter that nobody here can undo */
    struct stki_hdf5_parts *parts; /* of virtual and external ones: hdf5_parts.h; made by check_sources */
    stki_hdf5_beside *beside;
    int64_t beside_count;
} stki_hdf5_dataset;

/* A name may end in ["FIELD"] of a compound type. STK_E_NOT_FOUND: nothing of that name, or a link that leads nowhere.
 * STK_E_UNSUPPORTED: a group, a type without dtype, a null data space. */
stk_status stki_hdf5_dataset_open(stki_hdf5_file *file, const char *name, stki_hdf5_dataset **out, stk_error *err);
/* Calls `found` with the name of each field of a data set of compound type, without the lock; of others never. */
stk_status stki_hdf5_dataset_fields(stki_hdf5_file *file, const char *name,
                                    stk_status (*found)(void *context, const char *field, stk_error *err),
                                    void *context, stk_error *err);
stki_hdf5_dataset *stki_hdf5_dataset_retain(stki_hdf5_dataset *dataset);
void stki_hdf5_dataset_release(stki_hdf5_dataset *dataset); /* NULL is fine */

/* Inside enter and leave: opens it by the library, if that has not been done. */
stk_status stki_hdf5_dataset_need(const stki_hdf5_dataset *dataset, stk_error *err);

/* Elements [start, start + length) of every axis of the data set (its rank, not the axes of an array type), row-major,
 * through H5Dread; in the file's own byte order where type.raw. `to` has room for them; what the library leaves as it
 * is (fill time "never") becomes zeros. */
stk_status stki_hdf5_dataset_read(const stki_hdf5_dataset *dataset, const int64_t *start, const int64_t *length,
                                  void *to, int64_t bytes, stk_error *err);
/* Has the file room for all elements of a contiguous one? To be called before it is read through the library, which gives
 * zeros for what is missing. STK_E_TRUNCATED. */
stk_status stki_hdf5_dataset_check_room(const stki_hdf5_dataset *dataset, stk_error *err);
/* Was no element of it ever written? Then each is the fill value, however many there are. */
bool stki_hdf5_dataset_unwritten(const stki_hdf5_dataset *dataset);
/* A chunk as it is stored, which is what H5Dread_chunk gives: first how many bytes it has (-1: never written), then
 * those. `element`: the first one, in each axis of the data set. */
stk_status stki_hdf5_dataset_chunk_bytes(const stki_hdf5_dataset *dataset, const int64_t *element, int64_t *bytes,
                                         stk_error *err);
stk_status stki_hdf5_dataset_chunk(const stki_hdf5_dataset *dataset, const int64_t *element, void *to, uint32_t *mask,
                                   stk_error *err);
/* The files and data sets that a virtual or an external one is made of: are all there, and allowed? To be called before
 * such a data set is read. */
stk_status stki_hdf5_dataset_check_sources(stki_hdf5_dataset *dataset, stk_error *err);

/* The library reads what a file no longer has as zeros, and a source that is gone as fill values. So code that has read
 * with it asks afterwards whether all files are still what they were when they were opened. STK_E_TRUNCATED,
 * STK_E_CORRUPT: as stki_file_intact. STK_E_NOT_FOUND: a file beside is gone. Always fine: a file that somebody writes
 * to, which is known, and one that is not to be guarded. */
stk_status stki_hdf5_dataset_intact(const stki_hdf5_dataset *dataset, stk_error *err);
/* Remembers a file beside; before the data set is read. One that is known already, or not to be watched: nothing. */
stk_status stki_hdf5_dataset_add_beside(stki_hdf5_dataset *dataset, const char *path, stk_error *err);

#endif
