/* hdf5_read.c: reads a data set through the library; see hdf5_dataset.h. */
#include "checked.h"
#include "error.h"
#include "hdf5_dataset.h"
#include "hdf5_parts.h"
#include <inttypes.h>
#include <string.h>

static stk_status fail_read(const stki_hdf5_dataset *d, const char *what, stk_error *err)
{
    return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, what);
}

static hid_t select_box(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, hid_t *memory)
{
    hsize_t first[H5S_MAX_RANK], count[H5S_MAX_RANK];
    hid_t space = H5Dget_space(d->id);

    *memory = -1;
    if (space < 0 || d->rank == 0) {
        *memory = space < 0 ? -1 : H5Scopy(space);
        return space;
    }
    for (int i = 0; i < d->rank; i++) {
        first[i] = (hsize_t)start[i];
        count[i] = (hsize_t)length[i];
    }
    *memory = H5Screate_simple(d->rank, count, NULL);
    if (*memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, count, NULL) >= 0)
        return space;
    (void)H5Sclose(space);
    if (*memory >= 0)
        (void)H5Sclose(*memory);
    return -1;
}

static stk_status read_locked(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, void *to,
                              stk_error *err)
{
    hid_t memory, space;
    stk_status status = stki_hdf5_dataset_need(d, err);

    if (status != STK_OK)
        return status;
    space = select_box(d, start, length, &memory);
    if (space < 0)
        return fail_read(d, "a part of the data set cannot be selected", err);
    if (H5Dread(d->id, d->memory_type, memory, space, H5P_DEFAULT, to) < 0)
        status = fail_read(d, "cannot be read", err);
    (void)H5Sclose(space);
    (void)H5Sclose(memory);
    return status;
}

static bool is_whole(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length)
{
    for (int i = 0; i < d->rank; i++)
        if (start[i] != 0 || length[i] != d->shape[i])
            return false;
    return true;
}

/* Returns the number of bytes that the library may have to read, because it reads whole chunks. */
static int64_t touched_bytes(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, int64_t bytes)
{
    int64_t touched = d->grid.chunk_bytes;

    if (d->layout != STKI_HDF5_CHUNKED)
        return bytes;
    for (int i = 0; i < d->rank; i++) {
        const int64_t chunk = d->grid.chunk[i];

        if (!stki_mul(touched, (start[i] + length[i] - 1) / chunk - start[i] / chunk + 1, &touched))
            return INT64_MAX;
    }
    return touched;
}

stk_status stki_hdf5_dataset_read(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, void *to,
                                  int64_t bytes, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_error changed;
    stk_status status = stki_hdf5_check_fork(d->file->generation, d->path, err);

    if (status != STK_OK)
        return status;
    if (d->filter_missing[0])
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){d->path, -1, -1, d->filter_missing, NULL},
                            "%s: unsupported filter%s", d->name,
                            d->file->plugins ? "" : " (source.allow_plugins allows loading filter plugins)");
    if (bytes == 0)
        return STK_OK;
    if (d->compact && is_whole(d, start, length)) {
        memcpy(to, d->compact, (size_t)bytes);
        return STK_OK;
    }
    memset(to, 0, (size_t)bytes);
    stki_hdf5_enter(&guard, d->file->plugins);
    stki_apart_note(d->path, d->name, "reading elements", touched_bytes(d, start, length, bytes));
    status = d->parts ? stki_hdf5_parts_read(d, start, length, to, bytes, err) : read_locked(d, start, length, to, err);
    stki_hdf5_leave(&guard);
    if (stki_hdf5_dataset_intact(d, &changed) == STK_OK)
        return status;
    if (err) /* the change is reported, because it may be the cause of a failure */
        *err = changed;
    return changed.status;
}

stk_status stki_hdf5_dataset_fill(const stki_hdf5_dataset *d, void *to, stk_error *err)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_ERROR;
    stki_hdf5_guard guard;
    hid_t plist = -1;
    stk_status status = stki_hdf5_check_fork(d->file->generation, d->path, err);

    memset(to, 0, (size_t)d->type.bytes);
    if (status != STK_OK)
        return status;
    stki_hdf5_enter(&guard, false);
    stki_apart_note(d->path, d->name, "reading its fill value", 0);
    status = stki_hdf5_dataset_need(d, err);
    if (status == STK_OK)
        plist = H5Dget_create_plist(d->id);
    if (status == STK_OK &&
        (plist < 0 || H5Pfill_value_defined(plist, &defined) < 0 || H5Pget_fill_time(plist, &when) < 0 ||
         (defined != H5D_FILL_VALUE_UNDEFINED && when != H5D_FILL_TIME_NEVER &&
          H5Pget_fill_value(plist, d->memory_type, to) < 0)))
        status = fail_read(d, "the fill value cannot be read", err);
    if (plist >= 0)
        (void)H5Pclose(plist);
    stki_hdf5_leave(&guard);
    return status;
}

stk_status stki_hdf5_dataset_check_room(const stki_hdf5_dataset *d, stk_error *err)
{
    stki_hdf5_guard guard;
    hid_t type = -1, file = -1;
    hsize_t size = 0;
    int64_t bytes = 0;
    const int64_t from = d->layout == STKI_HDF5_COMPACT ? 0 : d->offset;
    bool known = false, fits;
    stk_status status;

    if (d->live ||
        (d->layout == STKI_HDF5_COMPACT ? d->compact != NULL : d->layout != STKI_HDF5_CONTIGUOUS || d->offset < 0))
        return STK_OK;
    status = stki_hdf5_check_fork(d->file->generation, d->path, err);
    if (status != STK_OK)
        return status;
    stki_hdf5_enter(&guard, d->file->plugins);
    stki_apart_note(d->path, d->name, "reading its size", 0);
    status = stki_hdf5_dataset_need(d, err);
    if (status == STK_OK) {
        type = H5Dget_type(d->id);
        file = H5Iget_file_id(d->id);
        bytes =
            type < 0 ? 0 : (int64_t)H5Tget_size(type); /* for strings and lists, a lower bound: the size of a pointer */
        if (d->layout == STKI_HDF5_COMPACT)
            size = H5Dget_storage_size(d->id);
        known = d->layout == STKI_HDF5_COMPACT || (file >= 0 && H5Fget_filesize(file, &size) >= 0 && size <= INT64_MAX);
    }
    if (type >= 0)
        (void)H5Tclose(type);
    if (file >= 0)
        (void)H5Fclose(file);
    stki_hdf5_leave(&guard);
    fits = true;
    for (int i = 0; i < d->rank; i++)
        fits = fits && stki_mul(bytes, d->shape[i], &bytes);
    if (status != STK_OK || !known || (fits && stki_inside(from, bytes, (int64_t)size)))
        return status;
    return stki_fail_at(err, STK_E_TRUNCATED,
                        (stki_place){d->path, -1, d->offset,
                                     STKI_TEXT("%" PRId64 " bytes", (int64_t)size > from ? (int64_t)size - from : 0),
                                     fits ? STKI_TEXT("%" PRId64 " bytes starting at this offset", bytes)
                                          : "more bytes than fit in 63 bits"},
                        d->layout == STKI_HDF5_COMPACT ? "%s: fewer elements are stored than the data set has"
                                                       : "%s: the file ends before the last element",
                        d->name);
}
