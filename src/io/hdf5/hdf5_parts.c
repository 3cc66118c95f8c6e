/* hdf5_parts.c: see hdf5_parts.h. A source of a virtual data set must not itself be virtual, because such chains would
 * be unbounded. All sources are opened once, when the data set is opened for reading, to check that they exist. After
 * that, only the most recently used ones are kept open, so that the number of sources is not limited by descriptors. */
#include "hdf5_parts.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_path.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_OPEN = 32 };

/* A mapping of a virtual data set: elements selected in `here` come from those selected in `there`. */
struct mapping {
    char *target, *name; /* name of the file ("." for the data set's own file) and of the data set */
    hid_t here, there;   /* dataspaces with selections */
    stki_hdf5_object source;
    int64_t used; /* time of the last read; 0: not open */
};

/* A range of a file that contains external raw data. */
struct piece {
    char *path;
    int64_t offset, bytes;
};

struct stki_hdf5_parts {
    struct mapping *mappings;
    struct piece *pieces;
    int64_t count, open, clock;
    int64_t generation;
};

static stk_status fail(const stki_hdf5_dataset *d, stk_status status, const char *found, const char *what,
                       stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){d->path, -1, -1, found, NULL}, "%s: %s", d->name, what);
}

static stk_status fail_library(const stki_hdf5_dataset *d, const char *what, stk_error *err)
{
    return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, what);
}

/* ---- sources of virtual data sets ---- */

/* Gets a string from the library with `get`, a function like H5Pget_virtual_filename. Returns NULL and sets err on
 * failure. */
static char *text_of(const stki_hdf5_dataset *d, hid_t plist, size_t index,
                     ssize_t (*get)(hid_t plist, size_t index, char *to, size_t room), stk_error *err)
{
    ssize_t length = get(plist, index, NULL, 0);
    char *text = length < 0 ? NULL : stki_zalloc(length + 1);

    if (length < 0)
        (void)fail_library(d, "the source names cannot be read", err);
    else if (!text)
        (void)stki_fail_memory(err, length + 1, "the name of a source");
    else
        (void)get(plist, index, text, (size_t)length + 1);
    return text;
}

static bool is_unlimited(hid_t space)
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_ndims(space);

    if (H5Sget_select_type(space) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (count[i] == H5S_UNLIMITED || block[i] == H5S_UNLIMITED)
            return true;
    return false;
}

stk_status stki_hdf5_parts_check(const stki_hdf5_dataset *d, hid_t plist, stk_error *err)
{
    size_t count = 0;
    stk_status status = STK_OK;

    if (H5Pget_layout(plist) != H5D_VIRTUAL)
        return STK_OK;
    if (H5Pget_virtual_count(plist, &count) < 0)
        return fail_library(d, "the list of sources cannot be read", err);
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        hid_t space = H5Pget_virtual_vspace(plist, i);

        if (space < 0)
            return fail_library(d, "the list of sources cannot be read", err);
        if (is_unlimited(space))
            status = fail(d, STK_E_UNSUPPORTED, "a selection without a limit",
                          "unlimited selections of virtual data sets are not supported", err);
        (void)H5Sclose(space);
    }
    return status;
}

static stk_status read_mapping(stki_hdf5_dataset *d, hid_t plist, size_t index, struct mapping *out, stk_error *err)
{
    stk_error why = {.status = STK_OK};

    out->source = STKI_HDF5_NO_OBJECT;
    out->here = H5Pget_virtual_vspace(plist, index);
    out->there = H5Pget_virtual_srcspace(plist, index);
    if (out->here < 0 || out->there < 0)
        return fail_library(d, "the list of sources cannot be read", err);
    if (!(out->target = text_of(d, plist, index, H5Pget_virtual_filename, &why)) ||
        !(out->name = text_of(d, plist, index, H5Pget_virtual_dsetname, &why))) {
        if (err)
            *err = why;
        return why.status;
    }
    if (strchr(out->target, '%') || strchr(out->name, '%'))
        return fail(d, STK_E_UNSUPPORTED, out->target,
                    "virtual data sets with patterns of source names are not supported", err);
    return STK_OK;
}

static bool holds_its_elements(hid_t dataset)
{
    hid_t plist = H5Dget_create_plist(dataset);
    bool holds = plist >= 0 && H5Pget_layout(plist) != H5D_VIRTUAL &&
                 (H5Pget_layout(plist) != H5D_CONTIGUOUS || H5Pget_external_count(plist) == 0);

    if (plist >= 0)
        (void)H5Pclose(plist);
    return holds;
}

static void close_source(stki_hdf5_parts *parts, struct mapping *m)
{
    if (m->used == 0)
        return;
    stki_hdf5_object_close(&m->source);
    m->used = 0;
    parts->open--;
}

/* Adapts a selection to the current shape of the source, which may have grown since the mapping was made. */
static stk_status space_there(const stki_hdf5_dataset *d, const struct mapping *m, hid_t selection, hid_t *out,
                              stk_error *err)
{
    hid_t space = H5Dget_space(m->source.id);
    hssize_t count = H5Sget_select_npoints(selection);

    *out = H5Scopy(selection);
    if (space < 0 || *out < 0 || H5Sget_simple_extent_ndims(space) != H5Sget_simple_extent_ndims(*out) ||
        H5Sextent_copy(*out, space) < 0 || H5Sselect_valid(*out) <= 0 || H5Sget_select_npoints(*out) != count) {
        if (space >= 0)
            (void)H5Sclose(space);
        if (*out >= 0)
            (void)H5Sclose(*out);
        *out = -1;
        (void)H5Eclear2(H5E_DEFAULT);
        return fail(d, STK_E_MISMATCH, m->name, "the shape of a source differs from that of its mapping", err);
    }
    (void)H5Sclose(space);
    return STK_OK;
}

/* Replaces a selection of the whole source, whose shape is not stored in the mapping, with the source's dataspace. */
static stk_status select_all(const stki_hdf5_dataset *d, struct mapping *m, stk_error *err)
{
    hid_t space;

    if (H5Sget_select_type(m->there) != H5S_SEL_ALL)
        return STK_OK;
    space = H5Dget_space(m->source.id);
    if (space < 0)
        return fail_library(d, "the shape of a source cannot be read", err);
    (void)H5Sclose(m->there);
    m->there = space;
    return STK_OK;
}

static stk_status open_source(stki_hdf5_dataset *d, struct mapping *m, stk_error *err)
{
    stki_hdf5_file *file = NULL;
    hid_t space;
    stk_status status = STK_OK;

    if (strcmp(m->target, ".") != 0)
        status = stki_hdf5_file_open_beside(d->home, m->target, &file, err);
    if (status == STK_OK)
        status = stki_hdf5_object_open(file ? file : d->home, m->name, &m->source, err);
    stki_hdf5_file_release(file);
    if (status == STK_E_NOT_FOUND)
        return fail(d, status, STKI_TEXT("no %.40s in %.40s", m->name, m->target),
                    "a source of this virtual data set does not exist", err);
    if (status != STK_OK)
        return status;
    if ((status = stki_hdf5_object_need(&m->source, m->name, err)) != STK_OK) {
        stki_hdf5_object_close(&m->source);
        return status;
    }
    if (H5Iget_type(m->source.id) != H5I_DATASET)
        status = fail(d, STK_E_UNSUPPORTED, m->name, "a source is not a data set", err);
    else if (!holds_its_elements(m->source.id))
        status = fail(d, STK_E_UNSUPPORTED, m->target,
                      "sources that are virtual or external themselves are not supported", err);
    else if ((status = select_all(d, m, err)) == STK_OK &&
             (status = space_there(d, m, m->there, &space, err)) == STK_OK)
        (void)H5Sclose(space);
    if (status == STK_OK && H5Sget_select_npoints(m->here) != H5Sget_select_npoints(m->there))
        status = fail(d, STK_E_MISMATCH, m->name, "the number of elements of a source differs from that of its mapping",
                      err);
    if (status != STK_OK) {
        stki_hdf5_object_close(&m->source);
        return status;
    }
    m->used = ++d->parts->clock;
    d->parts->open++;
    return STK_OK;
}

/* Opens a source, and closes the least recently used one if too many are open. */
static stk_status need_source(stki_hdf5_dataset *d, struct mapping *m, stk_error *err)
{
    stki_hdf5_parts *parts = d->parts;

    if (m->used > 0) {
        m->used = ++parts->clock;
        return STK_OK;
    }
    while (parts->open >= MOST_OPEN) {
        struct mapping *oldest = NULL;

        for (int64_t i = 0; i < parts->count; i++)
            if (parts->mappings[i].used > 0 && (!oldest || parts->mappings[i].used < oldest->used))
                oldest = &parts->mappings[i];
        close_source(parts, oldest);
    }
    return open_source(d, m, err);
}

static stk_status watch_source(stki_hdf5_dataset *d, const struct mapping *m, stk_error *err)
{
    char path[PATH_MAX];
    stk_status status = stki_hdf5_dataset_add_beside(d, m->source.file->path, err);

    if (status != STK_OK || !strcmp(m->target, "."))
        return status;
    status = stki_hdf5_may_open(d->home, m->target, path, err);
    return status == STK_OK ? stki_hdf5_dataset_add_beside(d, path, err) : status;
}

static stk_status open_virtual(stki_hdf5_dataset *d, hid_t plist, stk_error *err)
{
    size_t count = 0;
    stk_status status = STK_OK;

    if (H5Pget_virtual_count(plist, &count) < 0)
        return fail_library(d, "the list of sources cannot be read", err);
    d->parts->mappings = stki_zalloc_array((int64_t)count + 1, sizeof *d->parts->mappings);
    if (!d->parts->mappings)
        return stki_fail_memory(err, (int64_t)count * (int64_t)sizeof *d->parts->mappings, "the sources");
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        struct mapping *m = &d->parts->mappings[i];

        d->parts->count = (int64_t)i + 1;
        status = read_mapping(d, plist, i, m, err);
        if (status == STK_OK)
            status = need_source(d, m, err);
        if (status == STK_OK)
            status = watch_source(d, m, err);
    }
    return status;
}

/* Reads the elements of `mine`, a selection in the data set, that come from one source. `memory`: the dataspace of the
 * result. */
static stk_status read_mapped(stki_hdf5_dataset *d, struct mapping *m, hid_t mine, hid_t memory, void *to,
                              stk_error *err)
{
    const int64_t chunk = 1 << 20; /* assumed, because the source's chunk size is not known */
    hid_t there, here, file = -1;
    stk_status status = STK_OK;

    stki_apart_note(d->path, d->name, "reading elements of a source", chunk);
    there = H5Sselect_project_intersection(m->here, m->there, mine);
    here = there < 0 || H5Sget_select_npoints(there) == 0 ? -1 : H5Sselect_project_intersection(mine, memory, m->here);

    if (there < 0 || (here < 0 && H5Sget_select_npoints(there) > 0))
        status = fail_library(d, "the elements of a source cannot be selected", err);
    if (status == STK_OK && here >= 0)
        status = need_source(d, m, err);
    if (status == STK_OK && here >= 0)
        status = space_there(d, m, there, &file, err);
    if (status == STK_OK && here >= 0 && H5Dread(m->source.id, d->memory_type, here, file, H5P_DEFAULT, to) < 0)
        status = stki_hdf5_fail(err, STK_E_CORRUPT, m->source.file->path, m->name, "cannot be read");
    if (file >= 0)
        (void)H5Sclose(file);
    if (here >= 0)
        (void)H5Sclose(here);
    if (there >= 0)
        (void)H5Sclose(there);
    return status;
}

/* Fills `to` with the fill value, for elements that are not in any source. */
static stk_status put_fill(const stki_hdf5_dataset *d, void *to, int64_t bytes, stk_error *err)
{
    hid_t plist = H5Dget_create_plist(d->id);
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    bool fine = plist >= 0 && H5Pfill_value_defined(plist, &defined) >= 0;

    memset(to, 0, (size_t)d->type.bytes); /* undefined elements are read as zeros */
    if (fine && defined != H5D_FILL_VALUE_UNDEFINED)
        fine = H5Pget_fill_value(plist, d->memory_type, to) >= 0;
    if (plist >= 0)
        (void)H5Pclose(plist);
    if (!fine)
        return fail_library(d, "the fill value cannot be read", err);
    for (int64_t done = d->type.bytes; done < bytes;) {
        int64_t more = done < bytes - done ? done : bytes - done;

        memcpy((char *)to + done, to, (size_t)more);
        done += more;
    }
    return STK_OK;
}

static stk_status read_virtual(stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, void *to,
                               int64_t bytes, stk_error *err)
{
    hsize_t first[H5S_MAX_RANK], count[H5S_MAX_RANK];
    hid_t mine = H5Dget_space(d->id), memory;
    stk_status status = put_fill(d, to, bytes, err);

    for (int i = 0; i < d->rank; i++) {
        first[i] = (hsize_t)start[i];
        count[i] = (hsize_t)length[i];
    }
    memory = d->rank > 0 ? H5Screate_simple(d->rank, count, NULL) : H5Screate(H5S_SCALAR);
    if (status == STK_OK && (mine < 0 || memory < 0 ||
                             (d->rank > 0 && H5Sselect_hyperslab(mine, H5S_SELECT_SET, first, NULL, count, NULL) < 0)))
        status = fail_library(d, "a part of the data set cannot be selected", err);
    for (int64_t i = 0; i < d->parts->count && status == STK_OK; i++)
        status = read_mapped(d, &d->parts->mappings[i], mine, memory, to, err);
    if (mine >= 0)
        (void)H5Sclose(mine);
    if (memory >= 0)
        (void)H5Sclose(memory);
    return status;
}

/* ---- external raw data ---- */

/* Adds a range of external raw data. *needed: number of bytes that the ranges so far do not contain. */
static stk_status add_piece(stki_hdf5_dataset *d, hid_t plist, int index, int64_t *needed, stk_error *err)
{
    struct piece *piece = &d->parts->pieces[index];
    char target[PATH_MAX] = "", path[PATH_MAX];
    struct stat about;
    off_t offset = 0;
    hsize_t bytes = 0;
    stk_status status;

    if (H5Pget_external(plist, (unsigned)index, sizeof target - 1, target, &offset, &bytes) < 0)
        return fail_library(d, "the list of external files cannot be read", err);
    status = stki_hdf5_may_open(d->home, target, path, err);
    if (status == STK_OK)
        status = stki_hdf5_dataset_add_beside(d, path, err);
    if (status != STK_OK)
        return status;
    *piece = (struct piece){stki_strdup(path), offset, bytes > (hsize_t)*needed ? *needed : (int64_t)bytes};
    if (!piece->path)
        return stki_fail_memory(err, (int64_t)strlen(path) + 1, "a path");
    *needed -= piece->bytes;
    if (stat(path, &about) || !stki_inside(offset, piece->bytes, about.st_size))
        return fail(d, STK_E_TRUNCATED, target, "the external file is too short", err);
    return STK_OK;
}

static stk_status open_external(stki_hdf5_dataset *d, hid_t plist, stk_error *err)
{
    hid_t type = H5Dget_type(d->id);
    int64_t needed = type < 0 ? 0 : (int64_t)H5Tget_size(type);
    int count = H5Pget_external_count(plist);
    stk_status status = STK_OK;

    if (type >= 0)
        (void)H5Tclose(type);
    for (int i = 0; i < d->rank; i++)
        if (!stki_mul(needed, d->shape[i], &needed))
            return fail(d, STK_E_LIMIT, NULL, "the size in bytes does not fit in 63 bits", err);
    d->parts->pieces = stki_zalloc_array((int64_t)count + 1, sizeof *d->parts->pieces);
    if (!d->parts->pieces)
        return stki_fail_memory(err, (int64_t)sizeof *d->parts->pieces, "the external files");
    for (int i = 0; i < count && status == STK_OK; i++) {
        d->parts->count = i + 1;
        status = add_piece(d, plist, i, &needed, err);
    }
    if (status == STK_OK && needed > 0)
        status = fail(d, STK_E_TRUNCATED, STKI_TEXT("%" PRId64 " bytes too few", needed),
                      "the external files are too short", err);
    return status;
}

static stk_status read_file(const char *path, int64_t at, char *to, int64_t count, stk_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    stk_status status = fd < 0 ? stki_fail_errno(err, errno, path, "cannot be opened") : STK_OK;

    while (status == STK_OK && count > 0) {
        ssize_t n = pread(fd, to, (size_t)count, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = stki_fail_errno(err, errno, path, "cannot be read");
        else if (n == 0)
            status = stki_fail_at(err, STK_E_TRUNCATED, (stki_place){path, -1, at, NULL, NULL},
                                  "the external file is too short");
        at += n;
        to += n;
        count -= n;
    }
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* Reads bytes [at, at + count) of the concatenated ranges. */
static stk_status read_pieces(const stki_hdf5_dataset *d, int64_t at, char *to, int64_t count, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < d->parts->count && count > 0 && status == STK_OK; i++) {
        const struct piece *piece = &d->parts->pieces[i];
        int64_t bytes = piece->bytes - at < count ? piece->bytes - at : count;

        if (bytes > 0) {
            status = read_file(piece->path, piece->offset + at, to, bytes, err);
            to += bytes;
            count -= bytes;
            at = 0;
        } else {
            at -= piece->bytes;
        }
    }
    return status;
}

/* Reads the box row by row along its last axis, or as a whole if it is contiguous. */
static stk_status read_box(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, int64_t item,
                           char *to, stk_error *err)
{
    int64_t index[H5S_MAX_RANK] = {0}, run = item, steps[H5S_MAX_RANK], step = item;
    int outer = d->rank; /* number of axes before those that are read completely */
    stk_status status = STK_OK;

    for (int i = d->rank - 1; i >= 0; i--) {
        steps[i] = step;
        step *= d->shape[i]; /* cannot overflow, as checked at open */
    }
    for (bool whole = true; outer > 0 && whole; outer--) {
        run *= length[outer - 1];
        whole = length[outer - 1] == d->shape[outer - 1];
    }
    for (bool more = true; more && status == STK_OK;) {
        int64_t at = 0;
        int axis = outer - 1;

        for (int i = 0; i < d->rank; i++)
            at += (start[i] + index[i]) * steps[i];
        status = read_pieces(d, at, to, run, err);
        to += run;
        for (; axis >= 0 && ++index[axis] == length[axis]; axis--)
            index[axis] = 0;
        more = axis >= 0;
    }
    return status;
}

static stk_status read_external(const stki_hdf5_dataset *d, const int64_t *start, const int64_t *length, void *to,
                                int64_t bytes, stk_error *err)
{
    const hid_t type = H5Dget_type(d->id);
    const int64_t item = type < 0 ? 0 : (int64_t)H5Tget_size(type), count = bytes / d->type.bytes;
    void *stored = NULL;
    stk_status status;

    if (type < 0)
        return fail_library(d, "the type cannot be read", err);
    if (d->type.raw) {
        status = read_box(d, start, length, item, to, err);
    } else {
        const int64_t larger = item > d->type.bytes ? item : d->type.bytes;

        stored = stki_zalloc(count * larger);
        status = stored ? read_box(d, start, length, item, stored, err)
                        : stki_fail_memory(err, count * larger, "elements to convert");
        if (status == STK_OK && H5Tconvert(type, d->memory_type, (size_t)count, stored, NULL, H5P_DEFAULT) < 0)
            status = fail_library(d, "the elements cannot be converted", err);
        if (status == STK_OK)
            memcpy(to, stored, (size_t)bytes);
    }
    stki_free(stored);
    (void)H5Tclose(type);
    return status;
}

/* ---- virtual and external data sets ---- */

stk_status stki_hdf5_parts_read(const stki_hdf5_dataset *dataset, const int64_t *start, const int64_t *length, void *to,
                                int64_t bytes, stk_error *err)
{
    stki_hdf5_dataset *d = (stki_hdf5_dataset *)(uintptr_t)dataset; /* sources are opened and closed under the lock */

    return d->layout == STKI_HDF5_VIRTUAL ? read_virtual(d, start, length, to, bytes, err)
                                          : read_external(d, start, length, to, bytes, err);
}

stk_status stki_hdf5_parts_written(const stki_hdf5_dataset *d, int axis, stki_hdf5_written *out, stk_error *err)
{
    hsize_t first[H5S_MAX_RANK], last[H5S_MAX_RANK];
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    *out = (stki_hdf5_written){.all = false};
    stki_hdf5_enter(&guard, false);
    stki_apart_note(d->path, d->name, "looking for its sources", 0);
    for (int64_t i = 0; i < d->parts->count && !out->all && status == STK_OK; i++) {
        const hid_t here = d->parts->mappings[i].here;

        if (H5Sget_select_npoints(here) == 0)
            continue;
        if (H5Sget_simple_extent_ndims(here) != d->rank || H5Sget_select_bounds(here, first, last) < 0 ||
            last[axis] >= (hsize_t)d->shape[axis])
            out->all = true;
        else
            status = stki_hdf5_written_add(out, (int64_t)first[axis], (int64_t)last[axis] + 1, err);
    }
    stki_hdf5_leave(&guard);
    if (status == STK_OK)
        stki_hdf5_written_end(out);
    else
        stki_hdf5_written_fini(out);
    return status;
}

void stki_hdf5_parts_destroy(stki_hdf5_parts *parts)
{
    const bool here = parts && parts->generation == stki_fork_generation();
    stki_hdf5_guard guard;

    if (!parts)
        return;
    if (here)
        stki_hdf5_enter(&guard, false);
    for (int64_t i = 0; i < parts->count && parts->mappings; i++) {
        struct mapping *m = &parts->mappings[i];

        if (here) {
            close_source(parts, m);
            if (m->here >= 0)
                (void)H5Sclose(m->here);
            if (m->there >= 0)
                (void)H5Sclose(m->there);
        } else if (m->used > 0) {
            stki_hdf5_file_release(m->source.file);
        }
        stki_free(m->target);
        stki_free(m->name);
    }
    if (here)
        stki_hdf5_leave(&guard);
    for (int64_t i = 0; i < parts->count && parts->pieces; i++)
        stki_free(parts->pieces[i].path);
    stki_free(parts->mappings);
    stki_free(parts->pieces);
    stki_free(parts);
}

stk_status stki_hdf5_dataset_check_sources(stki_hdf5_dataset *d, stk_error *err)
{
    stki_hdf5_guard guard;
    hid_t plist;
    stk_status status = stki_hdf5_check_fork(d->file->generation, d->path, err);

    if (status != STK_OK || (d->layout != STKI_HDF5_VIRTUAL && d->layout != STKI_HDF5_EXTERNAL) || d->parts)
        return status;
    d->parts = stki_zalloc(sizeof *d->parts);
    if (!d->parts)
        return stki_fail_memory(err, sizeof *d->parts, d->name);
    d->parts->generation = d->file->generation;
    stki_hdf5_enter(&guard, false);
    stki_apart_note(d->path, d->name, "looking for its sources", 0);
    plist = H5Dget_create_plist(d->id);
    if (plist < 0)
        status = fail_library(d, "the description cannot be read", err);
    else
        status = d->layout == STKI_HDF5_VIRTUAL ? open_virtual(d, plist, err) : open_external(d, plist, err);
    if (plist >= 0)
        (void)H5Pclose(plist);
    stki_hdf5_leave(&guard);
    if (status != STK_OK) {
        stki_hdf5_parts_destroy(d->parts);
        d->parts = NULL;
    }
    return status;
}
