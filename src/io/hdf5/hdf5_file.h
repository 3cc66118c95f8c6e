/* hdf5_file.h: open HDF5 files, and the rule which other files they may lead to. Counted; any thread.
 *
 * An ordinary file is read past the library (hdf5_parse.h), which opens it when something in it is not understood
 * there. Opened without file locks, whatever the environment says. A file that a SWMR writer has open, or that this
 * process has open for writing, is `live`: its bytes are asked from the library alone, as a writer may move them.
 *
 * External links, external raw data and the sources of virtual data sets name other files, and the file that names them
 * may be hostile: only regular files inside the folder of the first file are opened, unless external ones are allowed.
 * They are looked for beside the file that names them and nowhere else, and opened here and not by the library, which
 * would take other places from the environment and lock what it opens.
 */
#ifndef STKI_HDF5_FILE_H
#define STKI_HDF5_FILE_H

#include "counter.h"
#include "file.h"
#include "hdf5_library.h"
#include "hdf5_parse.h"
#include "reader.h"
#include "source.h"
#include "stamp.h"
#include <sys/types.h>

typedef struct stki_hdf5_file {
    stki_counter refs;
    hid_t id;              /* -1: the library has not opened it yet; read and written inside enter and leave */
    stki_file *bytes;      /* the file without the library; NULL: everything is asked from the library */
    stki_hdf5_super super; /* of `bytes` */
    enum stki_access access;
    char *path;
    char *folder; /* of the file, without links; NULL: external files are allowed anywhere */
    dev_t device;
    ino_t inode;
    bool live, plugins;
    bool ours;    /* opened by hdf5_driver.h */
    bool watched; /* is it still what it was? is asked after each reading by the library */
    int64_t generation;
    stki_stamp stamp;
    char *place; /* where `stamp` is asked again; NULL: not */
} stki_hdf5_file;

/* Options of HDF5 files in `source`. */
typedef struct stki_hdf5_options {
    bool cf, allow_external, allow_plugins;
} stki_hdf5_options;

/* STK_E_TRUNCATED, STK_E_CORRUPT: no HDF5 file, or not all of it. STK_E_UNSUPPORTED: of a newer version. STK_E_BUSY: it
 * is marked as open for writing. */
stk_status stki_hdf5_file_open(const char *path, const stki_reader_opts *opts, stki_hdf5_file **out, stk_error *err);
/* Inside enter and leave: opens it by the library, if that has not been done. Errors as above. STK_E_FORKED: it was
 * opened by a parent of this process. */
stk_status stki_hdf5_file_need(stki_hdf5_file *file, stk_error *err);
/* Is it read past the library? */
static inline bool stki_hdf5_file_parsed(const stki_hdf5_file *file)
{
    return file->bytes != NULL;
}
stki_hdf5_file *stki_hdf5_file_retain(stki_hdf5_file *file);
void stki_hdf5_file_release(stki_hdf5_file *file); /* NULL is fine */

/* May the file `target`, named inside the file `from`, be opened? `path` (PATH_MAX bytes): where it is. STK_E_UNSAFE:
 * it lies elsewhere. STK_E_NOT_FOUND: it is not there. STK_E_UNSUPPORTED: no regular file. */
stk_status stki_hdf5_may_open(const stki_hdf5_file *from, const char *target, char *path, stk_error *err);
/* Opens it. */
stk_status stki_hdf5_file_open_beside(const stki_hdf5_file *from, const char *target, stki_hdf5_file **out,
                                      stk_error *err);

#endif
