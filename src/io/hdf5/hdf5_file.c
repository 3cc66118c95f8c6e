/* hdf5_file.c: see hdf5_file.h. Before the library sees a path, the file is opened by our own rules, which refuse FIFOs
 * and devices and tell a file that is cut off from one that is something else. */
#include "hdf5_file.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "file.h"
#include "hdf5_container.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening -------------------------------------------------------------------------------------------------------
 */

/* What the superblock says, by its first bytes. */
struct head {
    int version;        /* -1: it cannot be read */
    bool writing, swmr; /* marks of who has the file open, from version 3 on: 1 writing, 4 SWMR, behind the sizes */
};

enum { NEWEST_SUPERBLOCK = 3 };

static void read_head(const stki_file *file, int64_t at, struct head *head)
{
    unsigned char block[12];

    if (!stki_inside(at, sizeof block, file->size) || stki_file_read(file, at, block, sizeof block, NULL))
        return;
    head->version = block[8];
    head->writing = block[8] >= 3 && (block[11] & 1);
    head->swmr = head->writing && (block[11] & 4);
}

static stk_status check_signature(const char *path, struct head *head, stk_error *err)
{
    stki_file *file;
    char mark[8] = {0};
    bool found = false;
    int64_t size;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, err);

    *head = (struct head){.version = -1};
    if (status)
        return status;
    size = file->size;
    for (int64_t at = 0; at <= size - 8 && !found && !status; at = at ? at * 2 : 512) {
        status = stki_file_read(file, at, mark, 8, err);
        found = !memcmp(mark, "\x89HDF\r\n\x1a\n", 8);
        if (found)
            read_head(file, at, head);
    }
    stki_file_close(file);
    if (status || found)
        return status;
    return stki_fail_at(err, size < 8 ? STK_E_TRUNCATED : STK_E_CORRUPT,
                        (stki_place){path, -1, 0, size < 8 ? STKI_TEXT("%d bytes", (int)size) : "something else",
                                     "the signature of an HDF5 file at 0, 512, 1024, 2048, …"},
                        "no HDF5 file");
}

/* As a SWMR reader the library takes a wrong checksum for a write that is under way and reads again, 100 times, waiting
 * twice as long each time from 1 ns on: for ever. This often is 16 ms, more than a write takes. */
enum { SWMR_ATTEMPTS = 24 };

/* Without locks; closed by H5Pclose. */
static hid_t plain_access(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

#if H5_VERSION_GE(1, 10, 7)
    if (access >= 0)
        (void)H5Pset_file_locking(access, false, true);
#endif
    return access;
}

/* Opens, trying what systems and writers may demand: without locks; as another handle of this process has it open; as
 * a reader beside a SWMR writer, where the file says there is one (*swmr; afterwards: was it opened so?). */
static hid_t open_id(const char *path, bool *swmr)
{
    const bool try_swmr = *swmr;
    hid_t access = plain_access(), id;

    *swmr = false;
    if (access < 0)
        return -1;
    id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (id < 0)
        id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (id < 0 && try_swmr && H5Pset_metadata_read_attempts(access, SWMR_ATTEMPTS) >= 0) {
        id = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access);
        *swmr = id >= 0;
    }
    (void)H5Pclose(access);
    return id;
}

/* What the system says of it now: the library only knows errors of the system by their text. */
static stk_status fail_system(const char *path, stk_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC), error = errno;

    if (fd >= 0) {
        (void)close(fd);
        return STK_OK;
    }
    if (error == EMFILE || error == ENFILE)
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){path, -1, -1, NULL, NULL},
                            "no descriptor is left to open it: raise ulimit -n");
    return stki_fail_errno(err, error, path, "cannot be opened");
}

/* What the first, ordinary try fails of is what the user wants to know. */
static stk_status fail_open(const char *path, const struct head *head, stk_error *err)
{
    hid_t access;
    stk_status status = fail_system(path, err);

    if (status)
        return status;
    if (head->version > NEWEST_SUPERBLOCK)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, STKI_TEXT("version %d of the superblock", head->version),
                                         STKI_TEXT("0 to %d", NEWEST_SUPERBLOCK)},
                            "cannot be opened: written by a newer HDF5 than the library here");
    if (head->writing && !head->swmr)
        return stki_fail_at(err, STK_E_BUSY,
                            (stki_place){path, -1, -1, "the mark of a writer", "a file that was closed"},
                            "cannot be opened: a program has it open for writing, or ended without closing it (h5clear "
                            "-s FILE removes the mark)");
    access = plain_access();
    (void)H5Eclear2(H5E_DEFAULT);
    (void)H5Fopen(path, H5F_ACC_RDONLY, access < 0 ? H5P_DEFAULT : access);
    status = stki_hdf5_fail(err, STK_E_CORRUPT, path, NULL, "cannot be opened");
    if (access >= 0)
        (void)H5Pclose(access);
    return status;
}

static bool open_for_writing(hid_t id)
{
    unsigned intent = 0;

    return H5Fget_intent(id, &intent) < 0 || (intent & H5F_ACC_RDWR);
}

static stk_status open_locked(stki_hdf5_file *file, bool plugins, const struct head *head, stk_error *err)
{
    bool swmr = head->swmr;
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    stki_hdf5_enter(&guard, plugins);
    file->id = open_id(file->path, &swmr);
    if (file->id < 0)
        status = fail_open(file->path, head, err);
    else
        file->live = swmr || open_for_writing(file->id);
    stki_hdf5_leave(&guard);
    return status;
}

static stk_status find_folder(stki_hdf5_file *file, stk_error *err)
{
    char *real = realpath(file->path, NULL), *slash;
    int64_t room = real ? (int64_t)strlen(real) + 1 : 0;

    if (!real)
        return stki_fail_errno(err, errno, file->path, "cannot tell its folder");
    slash = strrchr(real, '/');
    slash[slash == real] = '\0';
    file->folder = stki_strdup(real);
    free(real);
    return file->folder ? STK_OK : stki_fail_memory(err, room, file->path);
}

static const stki_option rows[] = {
    STKI_BOOL(stki_hdf5_options, cf, false,
              "scale_factor, add_offset, _FillValue and _Unsigned of NetCDF files are applied first"),
    STKI_BOOL(stki_hdf5_options, allow_external, false, "External links may leave the file's own folder",
              .effect = STKI_ON_FAILURES),
    STKI_BOOL(stki_hdf5_options, allow_plugins, false, "Filter plugins may be loaded", .effect = STKI_ON_FAILURES),
};
static const stki_option_table table = STKI_SOURCE_TABLE("HDF5", rows);

const stki_source_group stki_hdf5_source = {&table, sizeof(stki_hdf5_options), NULL, NULL};

stk_status stki_hdf5_file_open(const char *path, const stki_reader_opts *opts, stki_hdf5_file **out, stk_error *err)
{
    stki_hdf5_options options;
    stki_hdf5_file *file;
    struct head head;
    stk_status status = check_signature(path, &head, err);

    if (status)
        return status;
    stki_source_values(opts, &stki_hdf5_source, &options);
    file = stki_zalloc(sizeof *file);
    if (!file)
        return stki_fail_memory(err, sizeof *file, path);
    file->id = -1;
    file->plugins = options.allow_plugins;
    file->generation = stki_fork_generation();
    file->watched = opts->access != STKI_ACCESS_UNGUARDED;
    stki_count_set(&file->refs, 1);
    file->path = stki_strdup(path);
    status = file->path ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    if (!status && file->watched)
        status = stki_stamp_path(path, &file->place, err);
    if (!status && file->place)
        status = stki_stamp_take(path, &file->stamp, err);
    if (!status && !options.allow_external)
        status = find_folder(file, err);
    if (!status)
        status = open_locked(file, options.allow_plugins, &head, err);
    if (status) {
        stki_hdf5_file_release(file);
        return status;
    }
    *out = file;
    return STK_OK;
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
        stki_hdf5_leave(&guard);
    }
    stki_free(file->path);
    stki_free(file->folder);
    stki_free(file->place);
    stki_free(file);
}

/* ---- other files ------------------------------------------------------------------------------------------------ */

static stk_status refuse(const char *from, const char *target, stk_status status, const char *what, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){from, -1, -1, target, NULL}, "names another file: %s", what);
}

/* `target` as the library looks for it: beside the file that names it. */
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

    if (length == 1) /* the root */
        return true;
    return !strncmp(real, folder, length) && real[length] == '/';
}

stk_status stki_hdf5_may_open(const stki_hdf5_file *file, const char *from, const char *target, stk_error *err)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat stat_of;
    bool there, outside;

    if (!beside(from, target, path, sizeof path))
        return refuse(from, target, STK_E_NOT_FOUND, "its name is too long", err);
    there = realpath(path, real) != NULL;
    /* Of what is not there, only the name can be judged. */
    outside = file->folder && (there ? !inside(file->folder, real)
                                     : strstr(target, "..") || (target[0] == '/' && !inside(file->folder, target)));
    if (outside)
        return refuse(from, target, STK_E_UNSAFE, "it lies outside the folder, and external files are not allowed",
                      err);
    if (!there)
        return refuse(from, target, STK_E_NOT_FOUND, "it is not there", err);
    if (stat(real, &stat_of) || !S_ISREG(stat_of.st_mode))
        return refuse(from, target, STK_E_UNSUPPORTED, "it is no regular file", err);
    return STK_OK;
}

static herr_t on_external_link(const char *parent_file, const char *parent_group, const char *child_file,
                               const char *child_object, unsigned *flags, hid_t access, void *context)
{
    stki_hdf5_follow *follow = context;

    (void)parent_group, (void)child_object, (void)flags, (void)access;
    follow->status = stki_hdf5_may_open(follow->file, parent_file, child_file, &follow->err);
    return follow->status ? -1 : 0;
}

stk_status stki_hdf5_follow_begin(stki_hdf5_follow *follow, const stki_hdf5_file *file, stk_error *err)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    bool fine = access >= 0;

    *follow =
        (stki_hdf5_follow){.file = file, .links = H5Pcreate(H5P_LINK_ACCESS), .dataset = H5Pcreate(H5P_DATASET_ACCESS)};
#if H5_VERSION_GE(1, 10, 7)
    fine = fine && H5Pset_file_locking(access, false, true) >= 0;
#endif
    for (int i = 0; fine && i < 2; i++) {
        hid_t list = i ? follow->dataset : follow->links;
        fine =
            list >= 0 && H5Pset_elink_fapl(list, access) >= 0 && H5Pset_elink_cb(list, on_external_link, follow) >= 0;
    }
    if (access >= 0)
        (void)H5Pclose(access);
    if (fine)
        return STK_OK;
    stki_hdf5_follow_end(follow);
    return stki_hdf5_fail(err, STK_E_MEMORY, file->path, NULL, "cannot set up the access to it");
}

void stki_hdf5_follow_end(stki_hdf5_follow *follow)
{
    if (follow->links >= 0)
        (void)H5Pclose(follow->links);
    if (follow->dataset >= 0)
        (void)H5Pclose(follow->dataset);
    follow->links = follow->dataset = -1;
}
