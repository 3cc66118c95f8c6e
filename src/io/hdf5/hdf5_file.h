/* hdf5_file.h: HDF5 files opened through the library, and the rule which other files they may lead to. Counted; any
 * thread.
 *
 * Opened without file locks. A file that a SWMR writer has open, or that this process has open for writing, is `live`:
 * its bytes are asked from the library alone, as a writer may move them.
 *
 * External links, external raw data and the sources of virtual data sets name other files, and the file that names them
 * may be hostile: only regular files inside the folder of the first file are opened, unless external ones are allowed.
 */
#ifndef STKI_HDF5_FILE_H
#define STKI_HDF5_FILE_H

#include "counter.h"
#include "hdf5_library.h"
#include "reader.h"
#include "source.h"
#include "stamp.h"

typedef struct stki_hdf5_file {
    stki_counter refs;
    hid_t id;
    char *path;
    char *folder; /* of the file, without links; NULL: external files are allowed anywhere */
    bool live, plugins;
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
stki_hdf5_file *stki_hdf5_file_retain(stki_hdf5_file *file);
void stki_hdf5_file_release(stki_hdf5_file *file); /* NULL is fine */

/* May the file `target`, named inside the file `from`, be opened? STK_E_UNSAFE: it lies elsewhere. STK_E_NOT_FOUND: it
 * is not there. STK_E_UNSUPPORTED: no regular file. */
stk_status stki_hdf5_may_open(const stki_hdf5_file *file, const char *from, const char *target, stk_error *err);

/* Following names (inside stki_hdf5_enter and leave): the access properties make external links obey the rule. After a
 * failed call, `status` and `err` say whether that was why. */
typedef struct stki_hdf5_follow {
    const stki_hdf5_file *file;
    hid_t links; /* for the library's link access; dataset access below */
    hid_t dataset;
    stk_status status;
    stk_error err;
} stki_hdf5_follow;

stk_status stki_hdf5_follow_begin(stki_hdf5_follow *follow, const stki_hdf5_file *file, stk_error *err);
void stki_hdf5_follow_end(stki_hdf5_follow *follow);

#endif
