/* hdf5_file.h: open HDF5 files, and the rules for the other files to which they refer. Reference-counted; thread-safe.
 *
 * An ordinary file is read without the library (hdf5_parse.h). The library opens it only when something is not
 * supported there. Files are opened without file locks, regardless of the environment. A file that a SWMR writer has
 * open, or that this process has open for writing, is `live`: it is read only through the library, because the writer
 * may move its data.
 *
 * External links, external raw data and sources of virtual data sets refer to other files, and the referring file may
 * be hostile. Only regular files are opened and, unless external files are allowed, only those inside the folder of the
 * first file. Relative names are resolved only in the folder of the referring file. These files are opened here rather
 * than by the library, which would also search folders given in the environment and would lock the files. */
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
    hid_t id;              /* -1: not yet opened by the library; accessed between enter and leave */
    stki_file *bytes;      /* for reading without the library; NULL: everything is read through the library */
    stki_hdf5_super super; /* superblock of `bytes` */
    enum stki_access access;
    char *path;
    char *folder; /* folder of the file, with symbolic links resolved; NULL: external files are allowed everywhere */
    dev_t device;
    ino_t inode;
    bool live, plugins;
    bool ours;    /* opened with hdf5_driver.h */
    bool watched; /* checked for changes after each read through the library */
    int64_t generation;
    stki_stamp stamp;
    char *place; /* path for checking `stamp` again; NULL: not checked */
} stki_hdf5_file;

/* Options of HDF5 files in `source`. */
typedef struct stki_hdf5_options {
    bool cf, allow_external, allow_plugins;
} stki_hdf5_options;

/* STK_E_TRUNCATED, STK_E_CORRUPT: the file is incomplete or not an HDF5 file. STK_E_UNSUPPORTED: it has a newer
 * version. STK_E_BUSY: it is marked as open for writing. */
stk_status stki_hdf5_file_open(const char *path, const stki_reader_opts *opts, stki_hdf5_file **out, stk_error *err);
/* Opens the file with the library if that has not been done. Called between enter and leave. Fails like
 * stki_hdf5_file_open, or with STK_E_FORKED if the file was opened by a parent of this process. */
stk_status stki_hdf5_file_need(stki_hdf5_file *file, stk_error *err);
/* Whether the file is read without the library. */
static inline bool stki_hdf5_file_parsed(const stki_hdf5_file *file)
{
    return file->bytes != NULL;
}
stki_hdf5_file *stki_hdf5_file_retain(stki_hdf5_file *file);
void stki_hdf5_file_release(stki_hdf5_file *file); /* NULL is allowed */

/* Checks whether the file `target`, to which `from` refers, may be opened, and stores its location in `path` (PATH_MAX
 * bytes). STK_E_UNSAFE: it is outside the allowed folder. STK_E_NOT_FOUND: it does not exist. STK_E_UNSUPPORTED: it is
 * not a regular file. */
stk_status stki_hdf5_may_open(const stki_hdf5_file *from, const char *target, char *path, stk_error *err);
/* Like stki_hdf5_may_open, but also opens the file. */
stk_status stki_hdf5_file_open_beside(const stki_hdf5_file *from, const char *target, stki_hdf5_file **out,
                                      stk_error *err);

#endif
