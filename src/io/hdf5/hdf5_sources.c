/* hdf5_sources.c: what a data set without bytes of its own is made of. The library reads a virtual data set whose
 * source is missing, and external data that is missing or too short, as if fill values or zeros stood there; here that
 * is an error. A source must itself hold its elements: chains of virtual data sets could lead anywhere. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_dataset.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static stk_status fail(const stki_hdf5_dataset *d, stk_status status, const char *found, const char *what,
                       stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){d->path, -1, -1, found, NULL}, "%s: %s", d->name, what);
}

/* Where the library will look: beside the file. */
static void path_beside(const stki_hdf5_dataset *d, const char *target, char path[PATH_MAX])
{
    const char *slash = strrchr(d->path, '/');
    int folder = slash && target[0] != '/' ? (int)(slash - d->path) + 1 : 0;

    snprintf(path, PATH_MAX, "%.*s%s", folder, d->path, target);
}

static int64_t size_of(const char *path)
{
    struct stat about;

    return stat(path, &about) ? -1 : about.st_size;
}

/* ---- external raw data ----------------------------------------------------------------------------------------------
 */

static stk_status check_external(stki_hdf5_dataset *d, hid_t plist, stk_error *err)
{
    int count = H5Pget_external_count(plist);

    for (int i = 0; i < count; i++) {
        char target[PATH_MAX] = "", path[PATH_MAX];
        off_t offset = 0;
        hsize_t bytes = 0;
        int64_t needed = d->type.bytes, size;
        stk_status status;

        if (H5Pget_external(plist, (unsigned)i, sizeof target - 1, target, &offset, &bytes) < 0)
            return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "its external files cannot be read");
        status = stki_hdf5_may_open(d->file, d->path, target, err);
        if (status)
            return status;
        for (int k = 0; k < d->rank; k++)
            if (!stki_mul(needed, d->shape[k], &needed))
                return fail(d, STK_E_LIMIT, NULL, "its bytes do not fit in 63 bits", err);
        if (bytes <= INT64_MAX && (int64_t)bytes < needed)
            needed = (int64_t)bytes; /* one of several files */
        path_beside(d, target, path);
        status = stki_hdf5_dataset_add_beside(d, path, err);
        if (status)
            return status;
        size = size_of(path);
        if (count == 1 && !stki_inside(offset, needed, size))
            return fail(d, STK_E_TRUNCATED, target, "the external file is too short", err);
    }
    return STK_OK;
}

/* ---- virtual data sets ------------------------------------------------------------------------------------------ */

static bool holds_its_elements(hid_t dataset)
{
    hid_t plist = H5Dget_create_plist(dataset);
    bool holds = plist >= 0 && H5Pget_layout(plist) != H5D_VIRTUAL &&
                 (H5Pget_layout(plist) != H5D_CONTIGUOUS || H5Pget_external_count(plist) == 0);

    if (plist >= 0)
        (void)H5Pclose(plist);
    return holds;
}

static hid_t open_source_file(const stki_hdf5_dataset *d, const char *target)
{
    char path[PATH_MAX];
    hid_t access, file;

    if (!strcmp(target, "."))
        return H5Iget_file_id(d->id);
    path_beside(d, target, path);
    access = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
    if (access >= 0)
        (void)H5Pset_file_locking(access, false, true);
#endif
    file = access < 0 ? -1 : H5Fopen(path, H5F_ACC_RDONLY, access);
    if (access >= 0)
        (void)H5Pclose(access);
    return file;
}

/* The file of the source's name, and where that leads by an external link. */
static stk_status watch_source(stki_hdf5_dataset *d, const char *target, hid_t source, stk_error *err)
{
    char path[PATH_MAX];
    ssize_t length = H5Fget_name(source, path, sizeof path);
    stk_status status =
        length > 0 && length < (ssize_t)sizeof path ? stki_hdf5_dataset_add_beside(d, path, err) : STK_OK;

    if (status || !strcmp(target, "."))
        return status;
    path_beside(d, target, path);
    return stki_hdf5_dataset_add_beside(d, path, err);
}

static stk_status check_source(stki_hdf5_dataset *d, const char *target, const char *name, stk_error *err)
{
    stki_hdf5_follow follow;
    hid_t file, source;
    stk_status status;

    if (strchr(target, '%') || strchr(name, '%'))
        return fail(d, STK_E_UNSUPPORTED, target, "a virtual data set over a pattern of names", err);
    status = strcmp(target, ".") ? stki_hdf5_may_open(d->file, d->path, target, err) : STK_OK;
    if (!status)
        status = stki_hdf5_follow_begin(&follow, d->file, err);
    if (status)
        return status;
    file = open_source_file(d, target);
    source = file < 0 ? -1 : H5Dopen2(file, name, follow.dataset);
    if (follow.status) {
        status = follow.status;
        if (err)
            *err = follow.err;
    } else if (source < 0) {
        status = stki_hdf5_fail(err, STK_E_NOT_FOUND, d->path, d->name, "a source of it is not there");
    } else if (!holds_its_elements(source)) {
        status = fail(d, STK_E_UNSUPPORTED, target, "a virtual data set over virtual or external ones", err);
    } else {
        status = watch_source(d, target, source, err);
    }
    if (source >= 0)
        (void)H5Dclose(source);
    if (file >= 0)
        (void)H5Fclose(file);
    stki_hdf5_follow_end(&follow);
    return status;
}

static stk_status check_virtual(stki_hdf5_dataset *d, hid_t plist, stk_error *err)
{
    size_t count = 0;
    stk_status status = STK_OK;

    if (H5Pget_virtual_count(plist, &count) < 0)
        return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "its sources cannot be read");
    for (size_t i = 0; i < count && !status; i++) {
        char target[PATH_MAX] = "", name[1024] = "";

        if (H5Pget_virtual_filename(plist, i, target, sizeof target) < 0 ||
            H5Pget_virtual_dsetname(plist, i, name, sizeof name) < 0)
            return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "its sources cannot be read");
        status = check_source(d, target, name, err);
    }
    return status;
}

stk_status stki_hdf5_dataset_check_sources(stki_hdf5_dataset *d, stk_error *err)
{
    stki_hdf5_guard guard;
    hid_t plist;
    stk_status status = stki_hdf5_check_fork(d->file->generation, d->path, err);

    if (status || (d->layout != STKI_HDF5_VIRTUAL && d->layout != STKI_HDF5_EXTERNAL))
        return status;
    stki_hdf5_enter(&guard, false);
    plist = H5Dget_create_plist(d->id);
    if (plist < 0)
        status = stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "its description cannot be read");
    else
        status = d->layout == STKI_HDF5_VIRTUAL ? check_virtual(d, plist, err) : check_external(d, plist, err);
    if (plist >= 0)
        (void)H5Pclose(plist);
    stki_hdf5_leave(&guard);
    return status;
}
