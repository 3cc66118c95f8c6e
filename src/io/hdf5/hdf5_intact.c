/* hdf5_intact.c: checks whether the files of a data set have changed since they were opened. See hdf5_dataset.h. */
#include "allocate.h"
#include "error.h"
#include "hdf5_dataset.h"
#include <errno.h>
#include <string.h>

static bool is_watched(const stki_hdf5_dataset *d)
{
    return d->file->watched && !d->live && !d->file->live;
}

stk_status stki_hdf5_dataset_add_beside(stki_hdf5_dataset *d, const char *path, stk_error *err)
{
    stki_hdf5_beside *more, one = {0};
    stk_status status;

    if (!is_watched(d))
        return STK_OK;
    status = stki_stamp_path(path, &one.path, err);
    if (status != STK_OK || !one.path)
        return status;
    for (int64_t i = -1; i < d->beside_count; i++) {
        const char *known = i < 0 ? d->file->place : d->beside[i].path;

        if (known && !strcmp(known, one.path)) {
            stki_free(one.path);
            return STK_OK;
        }
    }
    if (stki_stamp_take(one.path, &one.stamp, NULL) != STK_OK) {
        /* The library's name is relative to another folder, so the file is not found here. */
        stki_free(one.path);
        return STK_OK;
    }
    more = stki_resize(d->beside, (d->beside_count + 1) * (int64_t)sizeof *more);
    if (!more) {
        stki_free(one.path);
        return stki_fail_memory(err, (d->beside_count + 1) * (int64_t)sizeof *more, d->name);
    }
    d->beside = more;
    d->beside[d->beside_count++] = one;
    return STK_OK;
}

stk_status stki_hdf5_dataset_intact(const stki_hdf5_dataset *d, stk_error *err)
{
    const stki_hdf5_file *file = d->file;
    stk_status status = STK_OK;

    if (!is_watched(d))
        return STK_OK;
    if (file->place)
        status = stki_stamp_check(&file->stamp, file->place, file->path, -1, err);
    for (int64_t i = 0; i < d->beside_count && status >= 0; i++) {
        const stki_hdf5_beside *beside = &d->beside[i];

        status = stki_stamp_check(&beside->stamp, beside->path, beside->path, -1, err);
        if (status > 0 && (d->layout == STKI_HDF5_VIRTUAL ||
                           d->layout == STKI_HDF5_EXTERNAL)) /* the library may have to reopen the file, which fails */
            status = stki_fail_errno(err, ENOENT, beside->path, "the file was removed while it was in use");
    }
    return status < 0 ? status : STK_OK;
}
