/* hdf5_file.c: see hdf5_file.h. Before the library opens a path, stoker's own functions open the file. They reject
 * FIFOs and devices, and distinguish truncated files from files of another format. */
#include "hdf5_file.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "file.h"
#include "hdf5_container.h"
#include "hdf5_driver.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

/* Parsed from the first bytes of the superblock. */
struct head {
    int version;        /* -1: the superblock cannot be read */
    bool writing, swmr; /* consistency flags, from version 3 on: 1 (open for writing), 4 (SWMR) */
};

enum { NEWEST_SUPERBLOCK = 3 };

static stk_status read_head(const stki_file *file, struct head *head, stk_error *err)
{
    unsigned char block[12];
    int64_t at;
    stk_status status = stki_hdf5_find_signature(file, &at, err);

    if (status != STK_OK)
        return status;
    if (!stki_inside(at, sizeof block, file->size) || stki_file_read(file, at, block, sizeof block, NULL) != STK_OK)
        return STK_OK;
    head->version = block[8];
    head->writing = block[8] >= 3 && (block[11] & 1);
    head->swmr = head->writing && (block[11] & 4);
    return STK_OK;
}

/* As a SWMR reader, the library interprets a wrong checksum as a write in progress and by default retries up to 100
 * times with a delay that starts at 1 ns and doubles, so it practically never returns. This number of attempts takes 16
 * ms, which is longer than a write. */
enum { SWMR_ATTEMPTS = 24 };

/* Opens the file again to obtain errno, because the library reports system errors only as text. */
static stk_status fail_system(const char *path, stk_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC), error = errno;

    if (fd >= 0) {
        (void)close(fd);
        return STK_OK;
    }
    return stki_fail_errno(err, error, path, "cannot be opened");
}

/* Reports why the library could not open the file; called directly after the attempt. */
static stk_status fail_open(const char *path, const struct head *head, stk_error *err)
{
    stk_error said;
    stk_status status = stki_hdf5_fail(&said, STK_E_CORRUPT, path, NULL, "cannot be opened"),
               system = fail_system(path, err);

    if (system != STK_OK)
        return system;
    if (head->version > NEWEST_SUPERBLOCK)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, STKI_TEXT("version %d of the superblock", head->version),
                                         STKI_TEXT("0 to %d", NEWEST_SUPERBLOCK)},
                            "cannot be opened: the file was written by a version of HDF5 that is newer than libhdf5");
    if (err)
        *err = said;
    return status;
}

/* Returns the absolute path if it is known, because the working directory may have changed since the file was
 * opened. */
static const char *where(const stki_hdf5_file *file)
{
    return file->bytes && file->bytes->from_root ? file->bytes->from_root : file->path;
}

/* Opens the file with the access mode of another open handle in this process; the library then neither opens nor locks
 * it again. */
static stk_status open_again(stki_hdf5_file *file, const struct head *head, stk_error *err)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    unsigned intent = 0;
    stk_status status = STK_OK;

#if H5_VERSION_GE(1, 10, 7)
    (void)H5Pset_file_locking(access, false, true);
#endif
    file->id = H5Fopen(where(file), H5F_ACC_RDONLY, access);
    if (file->id < 0)
        file->id = H5Fopen(where(file), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file->id < 0)
        status = fail_open(file->path, head, err);
    else
        file->live = H5Fget_intent(file->id, &intent) < 0 || (intent & H5F_ACC_RDWR);
    if (access >= 0)
        (void)H5Pclose(access);
    return status;
}

/* Opens the file with hdf5_driver.h, in SWMR mode if the flags say that a SWMR writer has it open. The library checks
 * these flags only for its own drivers. */
static stk_status open_id(stki_hdf5_file *file, const struct head *head, stk_error *err)
{
    hid_t access;
    stk_status status = STK_OK;

    if (head->writing && !head->swmr)
        return stki_fail_at(err, STK_E_BUSY,
                            (stki_place){file->path, -1, -1, "the mark of a writer", "a file that was closed"},
                            "cannot be opened: a program has it open for writing, or ended without closing it (h5clear "
                            "-s FILE removes the mark)");
    access = stki_hdf5_driver_access();
    if (head->swmr && access >= 0)
        (void)H5Pset_metadata_read_attempts(access, SWMR_ATTEMPTS);
    file->id = access < 0
                   ? -1
                   : H5Fopen(where(file), head->swmr ? H5F_ACC_RDONLY | H5F_ACC_SWMR_READ : H5F_ACC_RDONLY, access);
    if (file->id < 0)
        status = fail_open(file->path, head, err);
    if (access >= 0)
        (void)H5Pclose(access);
    file->live = head->swmr;
    file->ours = file->id >= 0;
    if (file->ours)
        stki_hdf5_driver_opened();
    return status;
}

static stk_status open_by_library(stki_hdf5_file *file, const struct head *head, stk_error *err)
{
    return stki_hdf5_driver_open_elsewhere(where(file)) ? open_again(file, head, err) : open_id(file, head, err);
}

static void note_opening(const stki_file *bytes, const char *path)
{
    const int64_t few = 1 << 20; /* maximum number of bytes to search */

    stki_apart_note(path, NULL, "opening the file", bytes->size < few ? bytes->size : few);
}

/* Opens the file. The library opens it now only if the file cannot be parsed without it. */
static stk_status open_either(stki_hdf5_file *file, const struct head *head, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;
    bool parsed =
        !head->writing && stki_hdf5_super_read(file->bytes, &file->super, NULL) == STK_OK && file->super.plain;

    stki_hdf5_enter(&guard, file->plugins);
    note_opening(file->bytes, file->path);
    parsed = parsed && !stki_hdf5_driver_open_elsewhere(file->path);
    if (!parsed)
        status = open_by_library(file, head, err);
    stki_hdf5_leave(&guard);
    if (!parsed) {
        stki_file_close(file->bytes);
        file->bytes = NULL;
    }
    return status;
}

stk_status stki_hdf5_file_need(stki_hdf5_file *file, stk_error *err)
{
    const struct head head = {.version =
                                  NEWEST_SUPERBLOCK}; /* there is no writer, as checked when the file was opened */
    stk_status status = stki_hdf5_check_fork(file->generation, file->path, err);

    if (status != STK_OK || file->id >= 0)
        return status;
    note_opening(file->bytes, file->path);
    return open_by_library(file, &head, err);
}

static stk_status find_folder(stki_hdf5_file *file, const char *path, stk_error *err)
{
    char *real = realpath(path, NULL), *slash;
    int64_t room = real ? (int64_t)strlen(real) + 1 : 0;

    if (!real)
        return stki_fail_errno(err, errno, path, "cannot be opened");
    slash = strrchr(real, '/');
    slash[slash == real] = '\0';
    file->folder = stki_strdup(real);
    free(real);
    return file->folder ? STK_OK : stki_fail_memory(err, room, path);
}

static const stki_option rows[] = {
    STKI_BOOL(stki_hdf5_options, cf, false, "Apply scale_factor, add_offset, _FillValue and _Unsigned of NetCDF files"),
    STKI_BOOL(stki_hdf5_options, allow_external, false, "Allow external links outside the file's folder",
              .effect = STKI_ON_FAILURES),
    STKI_BOOL(stki_hdf5_options, allow_plugins, false, "Allow loading filter plugins", .effect = STKI_ON_FAILURES),
};
static const stki_option_table table = STKI_SOURCE_TABLE("HDF5", rows);

const stki_source_group stki_hdf5_source = {&table, sizeof(stki_hdf5_options), NULL, NULL};

/* Takes ownership of `file`, whose options are set; releases it on failure. */
static stk_status open_file(stki_hdf5_file *file, const char *path, bool stamped, stki_hdf5_file **out, stk_error *err)
{
    struct head head = {.version = -1};
    struct stat about;
    stk_status status = stki_file_open(path, file->access, STKI_PATTERN_RANDOM, &file->bytes, err);

    file->id = -1;
    file->generation = stki_fork_generation();
    stki_count_set(&file->refs, 1);
    if (status == STK_OK)
        status = read_head(file->bytes, &head, err);
    if (status == STK_OK && !(file->path = stki_strdup(path)))
        status = stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    if (status == STK_OK && stamped)
        status = stki_stamp_path(path, &file->place, err);
    if (status == STK_OK && file->place)
        status = stki_stamp_take(path, &file->stamp, err);
    if (status == STK_OK)
        status = open_either(file, &head, err);
    if (status == STK_OK && !stat(path, &about)) {
        file->device = about.st_dev;
        file->inode = about.st_ino;
    }
    if (status == STK_OK)
        *out = file;
    else
        stki_hdf5_file_release(file);
    return status;
}

stk_status stki_hdf5_file_open(const char *path, const stki_reader_opts *opts, stki_hdf5_file **out, stk_error *err)
{
    stki_hdf5_options options;
    stki_hdf5_file *file;
    stk_status status = stki_apart_need(path, "libhdf5", err);

    if (status != STK_OK)
        return status;
    file = stki_zalloc(sizeof *file);
    if (!file)
        return stki_fail_memory(err, sizeof *file, path);
    stki_source_values(opts, &stki_hdf5_source, &options);
    file->plugins = options.allow_plugins;
    file->access = opts->access;
    file->watched = stki_access_watches(opts->access);
    if (!options.allow_external && (status = find_folder(file, path, err)) != STK_OK) {
        stki_free(file);
        return status;
    }
    return open_file(file, path, file->watched, out, err);
}

stki_hdf5_file *stki_hdf5_file_retain(stki_hdf5_file *file)
{
    stki_ref(&file->refs);
    return file;
}

void stki_hdf5_file_release(stki_hdf5_file *file)
{
    stki_hdf5_guard guard;

    if (!file || !stki_unref(&file->refs))
        return;
    if (file->id >= 0 && file->generation == stki_fork_generation()) {
        stki_hdf5_enter(&guard, false);
        (void)H5Fclose(file->id);
        if (file->ours)
            stki_hdf5_driver_closed();
        stki_hdf5_leave(&guard);
    }
    stki_file_close(file->bytes);
    stki_free(file->path);
    stki_free(file->folder);
    stki_free(file->place);
    stki_free(file);
}

/* ---- other files ---- */

static stk_status refuse(const char *from, const char *target, stk_status status, const char *what, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){from, -1, -1, target, NULL}, "refers to another file: %s", what);
}

/* Resolves `target` as the library does, relative to the file that refers to it. */
static bool beside(const char *from, const char *target, char *out, size_t room)
{
    const char *slash = strrchr(from, '/');
    size_t folder = slash && target[0] != '/' ? (size_t)(slash - from) + 1 : 0, length = strlen(target);

    if (folder + length >= room)
        return false;
    memcpy(out, from, folder);
    memcpy(out + folder, target, length + 1);
    return true;
}

static bool inside(const char *folder, const char *real)
{
    size_t length = strlen(folder);

    if (length == 1) /* the root directory */
        return true;
    return !strncmp(real, folder, length) && real[length] == '/';
}

stk_status stki_hdf5_may_open(const stki_hdf5_file *from, const char *target, char *path, stk_error *err)
{
    char real[PATH_MAX];
    struct stat stat_of;
    bool there, outside;

    if (!beside(from->path, target, path, PATH_MAX))
        return refuse(from->path, target, STK_E_NOT_FOUND, "the name is too long", err);
    there = realpath(path, real) != NULL;
    /* For a missing file, only the name can be checked. */
    outside = from->folder && (there ? !inside(from->folder, real)
                                     : strstr(target, "..") || (target[0] == '/' && !inside(from->folder, target)));
    if (outside)
        return refuse(from->path, target, STK_E_UNSAFE,
                      "it is outside the folder (allow it with source.allow_external)", err);
    if (!there)
        return refuse(from->path, target, STK_E_NOT_FOUND, "it does not exist", err);
    if (stat(real, &stat_of) || !S_ISREG(stat_of.st_mode))
        return refuse(from->path, target, STK_E_UNSUPPORTED, "it is not a regular file", err);
    return STK_OK;
}

stk_status stki_hdf5_file_open_beside(const stki_hdf5_file *from, const char *target, stki_hdf5_file **out,
                                      stk_error *err)
{
    char path[PATH_MAX];
    stki_hdf5_file *file;
    stk_status status = stki_hdf5_may_open(from, target, path, err);

    if (status != STK_OK)
        return status;
    file = stki_zalloc(sizeof *file);
    if (!file)
        return stki_fail_memory(err, sizeof *file, path);
    file->plugins = from->plugins;
    file->access = from->access;
    file->watched = from->watched;
    file->folder = from->folder ? stki_strdup(from->folder) : NULL;
    if (from->folder && !file->folder) {
        stki_free(file);
        return stki_fail_memory(err, (int64_t)strlen(from->folder) + 1, path);
    }
    return open_file(file, path, false, out, err);
}
