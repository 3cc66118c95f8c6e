/* hdf5_dataset.c: see hdf5_dataset.h. */
#include "hdf5_dataset.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_parts.h"
#include "hdf5_path.h"
#include "thread.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static stk_status fail(const stki_hdf5_dataset *d, stk_status status, const char *found, const char *what,
                       stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){d->path, -1, -1, found, NULL}, "%s: %s", d->name, what);
}

/* ---- opening ---- */

static bool ends_in_field(const char *name)
{
    const size_t length = strlen(name);

    return length > 5 && !strcmp(name + length - 2, "\"]") && strstr(name, "[\"");
}

/* NAME["FIELD"] */
static stk_status open_field(stki_hdf5_dataset *d, stki_hdf5_object *object, stk_error *err)
{
    const char *bracket = strstr(d->name, "[\"");
    char *name = stki_format("%.*s", (int)(bracket - d->name), d->name);
    stk_status status = STK_OK;

    d->field = stki_format("%.*s", (int)strlen(bracket) - 4, bracket + 2);
    if (!name || !d->field)
        status = stki_fail_memory(err, (int64_t)strlen(d->name), "a name");
    if (status == STK_OK)
        status = stki_hdf5_object_open(d->file, name, object, err);
    stki_free(name);
    return status;
}

static stk_status open_object(stki_hdf5_dataset *d, stki_hdf5_object *object, stk_error *err)
{
    char *path;
    stk_status status = stki_hdf5_object_open(d->file, d->name, object, err);

    if (status == STK_E_NOT_FOUND && ends_in_field(d->name))
        status = open_field(d, object, err);
    if (status != STK_OK)
        return status;
    d->home = stki_hdf5_file_retain(object->file);
    path = stki_strdup(d->home->path);
    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(d->home->path) + 1, "a path");
    stki_free(d->path);
    d->path = path;
    d->live = d->file->live || d->home->live;
    return STK_OK;
}

static stk_status read_space(stki_hdf5_dataset *d, hsize_t *largest, stk_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(d->id);
    H5S_class_t class = space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    int rank = class == H5S_SIMPLE ? H5Sget_simple_extent_dims(space, dims, largest) : 0;

    if (space >= 0)
        (void)H5Sclose(space);
    if (class == H5S_NULL)
        return fail(d, STK_E_UNSUPPORTED, "a null dataspace", "the data set has neither elements nor a shape", err);
    if ((class != H5S_SIMPLE && class != H5S_SCALAR) || rank < 0)
        return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the shape cannot be read");
    if (rank + d->type.inner_ndim > STK_MAX_DIMS)
        return fail(d, STK_E_UNSUPPORTED, STKI_TEXT("%d axes", rank + d->type.inner_ndim), "too many axes", err);
    for (int i = 0; i < rank; i++) {
        if (dims[i] > INT64_MAX)
            return fail(d, STK_E_CORRUPT, STKI_TEXT("%" PRIuHSIZE, dims[i]),
                        "the size of an axis does not fit in 63 bits", err);
        d->shape[i] = (int64_t)dims[i];
    }
    for (int i = 0; i < d->type.inner_ndim; i++)
        d->shape[rank + i] = d->type.inner[i];
    d->rank = rank;
    d->ndim = rank + d->type.inner_ndim;
    return STK_OK;
}

/* ---- storage ---- */

/* Chunks contain whole elements, so the axes of an array type are not divided. */
static stk_status read_chunks(stki_hdf5_dataset *d, hid_t plist, const hsize_t *largest, stk_error *err)
{
    stki_hdf5_grid *grid = &d->grid;
    hsize_t chunk[H5S_MAX_RANK];
    unsigned odd = 0;

    if (H5Pget_chunk(plist, H5S_MAX_RANK, chunk) != d->rank || d->rank < 1)
        return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the chunk shape cannot be read");
    grid->ndim = d->rank;
    grid->item_bytes = d->type.bytes;
    for (int i = 0; i < d->rank; i++) {
        if (chunk[i] < 1 || chunk[i] > INT64_MAX)
            return fail(d, STK_E_CORRUPT, STKI_TEXT("%" PRIuHSIZE, chunk[i]), "invalid chunk size", err);
        grid->chunk[i] = (int64_t)chunk[i];
        grid->shape[i] = d->shape[i];
        grid->largest[i] = largest[i] == H5S_UNLIMITED || largest[i] > INT64_MAX ? -1 : (int64_t)largest[i];
    }
    if (H5Pget_chunk_opts(plist, &odd) >= 0)
        d->odd_edges = odd != 0;
    return stki_hdf5_grid_measure(grid, d->path, err);
}

static stk_status read_filters(stki_hdf5_dataset *d, hid_t plist, stk_error *err)
{
    int count = H5Pget_nfilters(plist);

    if (count < 0 || count > STKI_HDF5_MAX_FILTERS)
        return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the filters cannot be read");
    d->pipeline.count = count;
    d->pipeline.chunk_bytes = d->grid.chunk_bytes;
    d->grid.filtered = count > 0;
    for (int k = 0; k < count; k++) {
        stki_hdf5_filter *filter = &d->pipeline.filters[k];
        unsigned flags, values[8] = {0}, config;
        size_t value_count = 8;
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)k, &flags, &value_count, values, sizeof filter->name,
                                         filter->name, &config);

        if (id < 0)
            return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "a filter cannot be read");
        filter->id = id;
        filter->name[sizeof filter->name - 1] = '\0';
        filter->value = value_count > 0 ? values[0] : 0;
    }
    return STK_OK;
}

/* Finds filters that neither stoker nor the library can decode. The query may load a plugin, if plugins are allowed. */
static void check_filters(stki_hdf5_dataset *d)
{
    if (stki_hdf5_pipeline_known(&d->pipeline) && !d->odd_edges && !d->live && d->type.raw)
        return;
    for (int k = 0; k < d->pipeline.count; k++) {
        const stki_hdf5_filter *filter = &d->pipeline.filters[k];

        if (H5Zfilter_avail(filter->id) > 0)
            continue;
        snprintf(d->filter_missing, sizeof d->filter_missing, "filter %d%s%.30s%s%s", filter->id,
                 filter->name[0] ? " (" : "", filter->name, filter->name[0] ? ")" : "",
                 filter->id == STKI_HDF5_LZF ? " combined with another compression filter" : "");
        return;
    }
}

static stk_status read_fill(stki_hdf5_dataset *d, hid_t plist, hid_t type, stk_error *err)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_ERROR;

    d->fill = stki_zalloc(d->type.bytes);
    if (!d->fill)
        return stki_fail_memory(err, d->type.bytes, "a fill value");
    if (H5Pfill_value_defined(plist, &defined) < 0 || H5Pget_fill_time(plist, &when) < 0)
        return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the fill value cannot be read");
    if (defined == H5D_FILL_VALUE_USER_DEFINED && when != H5D_FILL_TIME_NEVER && d->type.raw &&
        H5Pget_fill_value(plist, type, d->fill) < 0)
        return stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the fill value cannot be read");
    return STK_OK;
}

static stk_status read_layout(stki_hdf5_dataset *d, hid_t plist, const hsize_t *largest, stk_error *err)
{
    stk_status status = STK_OK;
    H5D_space_status_t space = H5D_SPACE_STATUS_ERROR;
    haddr_t offset;

    d->offset = -1;
    switch (H5Pget_layout(plist)) {
    case H5D_COMPACT:
        d->layout = STKI_HDF5_COMPACT;
        return STK_OK;
    case H5D_CONTIGUOUS:
        d->layout = H5Pget_external_count(plist) > 0 ? STKI_HDF5_EXTERNAL : STKI_HDF5_CONTIGUOUS;
        /* libhdf5 1.10 adds the size of the user block even to an undefined address, so first check whether the address
         * is defined. */
        offset = d->layout == STKI_HDF5_CONTIGUOUS && H5Dget_space_status(d->id, &space) >= 0 &&
                         space != H5D_SPACE_STATUS_NOT_ALLOCATED
                     ? H5Dget_offset(d->id)
                     : HADDR_UNDEF;
        if (offset != HADDR_UNDEF)
            d->offset = offset > INT64_MAX ? INT64_MAX : (int64_t)offset;
        return STK_OK;
    case H5D_CHUNKED:
        d->layout = STKI_HDF5_CHUNKED;
        status = read_chunks(d, plist, largest, err);
        if (status == STK_OK)
            status = read_filters(d, plist, err);
        if (status == STK_OK)
            check_filters(d);
        return status;
    case H5D_VIRTUAL:
        d->layout = STKI_HDF5_VIRTUAL;
        return STK_OK;
    default:
        return stki_hdf5_fail(err, STK_E_UNSUPPORTED, d->path, d->name, "unknown layout");
    }
}

/* Reads the field's type, and creates an in-memory compound type with only this field. */
static stk_status read_field(stki_hdf5_dataset *d, hid_t type, stk_error *err)
{
    const int index = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_member_index(type, d->field) : -1;
    hid_t member = index < 0 ? -1 : H5Tget_member_type(type, (unsigned)index), native = -1;
    stk_status status;

    if (member < 0)
        return fail(d, STK_E_NOT_FOUND, d->field, "the type has no such field", err);
    status = stki_hdf5_type_read(member, d->path, d->name, &d->type, err);
    if (status == STK_E_UNSUPPORTED && H5Tget_class(member) == H5T_COMPOUND)
        status = fail(d, STK_E_UNSUPPORTED, "a compound type inside another one", "unsupported type", err);
    if (status == STK_OK)
        native = stki_hdf5_type_of_field(member, &d->type);
    (void)H5Tclose(member);
    if (status != STK_OK)
        return status;
    d->type.raw = d->type.swapped = false;
    d->type.bytes = native < 0 ? 0 : (int64_t)H5Tget_size(native);
    d->memory_type = native < 0 ? -1 : H5Tcreate(H5T_COMPOUND, (size_t)d->type.bytes);
    if (d->memory_type >= 0 && H5Tinsert(d->memory_type, d->field, 0, native) < 0)
        status = stki_hdf5_fail(err, STK_E_MEMORY, d->path, d->name, "the memory type cannot be created");
    if (native >= 0)
        (void)H5Tclose(native);
    return status;
}

static stk_status read_type(stki_hdf5_dataset *d, hid_t type, stk_error *err)
{
    stk_status status;

    if (d->field)
        return read_field(d, type, err);
    status = stki_hdf5_type_read(type, d->path, d->name, &d->type, err);
    if (status == STK_OK)
        d->memory_type = stki_hdf5_type_in_memory(type, &d->type);
    return status;
}

static stk_status read_facts(stki_hdf5_dataset *d, stk_error *err)
{
    hsize_t largest[H5S_MAX_RANK];
    hid_t type = H5Dget_type(d->id), plist = H5Dget_create_plist(d->id);
    stk_status status = type < 0 || plist < 0
                            ? stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the description cannot be read")
                            : stki_hdf5_parts_check(d, plist, err);

    if (status == STK_OK)
        status = read_type(d, type, err);

    if (status == STK_OK) {
        status = d->memory_type < 0
                     ? stki_hdf5_fail(err, STK_E_MEMORY, d->path, d->name, "the memory type cannot be created")
                     : read_space(d, largest, err);
    }
    if (status == STK_OK)
        status = read_layout(d, plist, largest, err);
    if (status == STK_OK)
        status = read_fill(d, plist, type, err);
    if (type >= 0)
        (void)H5Tclose(type);
    if (plist >= 0)
        (void)H5Pclose(plist);
    return status;
}

/* Reads all properties through the library. */
static stk_status describe_by_library(stki_hdf5_dataset *d, stki_hdf5_object *object, stk_error *err)
{
    enum stki_hdf5_kind kind = STKI_HDF5_IS_OTHER;
    stki_hdf5_key key;
    stki_hdf5_guard guard;
    stk_status status = stki_hdf5_object_key(object, d->name, &kind, &key, err);

    if (status == STK_OK && kind != STKI_HDF5_IS_DATASET)
        status = fail(d, STK_E_UNSUPPORTED, "a group or a committed datatype", "not a data set", err);
    if (status != STK_OK)
        return status;
    d->header = key.header;
    stki_hdf5_enter(&guard, d->file->plugins);
    status = stki_hdf5_object_need(object, d->name, err);
    stki_apart_note(d->path, d->name, "opening a data set", 0);
    if (status == STK_OK) {
        d->id = object->id; /* an open object of any kind */
        object->id = -1;
        status = read_facts(d, err);
    }
    stki_hdf5_leave(&guard);
    return status;
}

static stk_status open_dataset(stki_hdf5_dataset *d, stk_error *err)
{
    stki_hdf5_object object = STKI_HDF5_NO_OBJECT;
    stk_status status = open_object(d, &object, err);

    if (status == STK_OK && strcmp(d->path, d->file->path) != 0)
        status = stki_hdf5_dataset_add_beside(d, d->path, err);
    if (status == STK_OK && (d->field || object.header == STKI_HDF5_UNDEFINED || !stki_hdf5_file_parsed(object.file) ||
                             stki_hdf5_describe(&object.file->super, object.header, d, NULL) != STK_OK))
        status = describe_by_library(d, &object, err);
    stki_hdf5_object_close(&object);
    return status;
}

stk_status stki_hdf5_dataset_need(const stki_hdf5_dataset *dataset, stk_error *err)
{
    stki_hdf5_dataset *d = (stki_hdf5_dataset *)(uintptr_t)dataset; /* open handles are changed under the lock */
    stki_hdf5_object object = {d->home, d->header, -1};
    hid_t type;
    stk_status status = STK_OK;

    if (d->id >= 0)
        return STK_OK;
    status = stki_hdf5_object_need(&object, d->name, err);
    if (status != STK_OK)
        return status;
    type = H5Dget_type(object.id);
    d->memory_type = type < 0 ? -1 : stki_hdf5_type_in_memory(type, &d->type);
    if (type >= 0)
        (void)H5Tclose(type);
    if (d->memory_type < 0) {
        status = stki_hdf5_fail(err, STK_E_CORRUPT, d->path, d->name, "the description cannot be read");
        (void)H5Oclose(object.id);
        return status;
    }
    d->id = object.id;
    return STK_OK;
}

stk_status stki_hdf5_dataset_open(stki_hdf5_file *file, const char *name, stki_hdf5_dataset **out, stk_error *err)
{
    stki_hdf5_dataset *d;
    stk_status status = stki_hdf5_check_fork(file->generation, file->path, err);

    if (status != STK_OK)
        return status;
    d = stki_zalloc(sizeof *d);
    if (!d)
        return stki_fail_memory(err, sizeof *d, name);
    stki_count_set(&d->refs, 1);
    d->file = stki_hdf5_file_retain(file);
    d->id = d->memory_type = -1;
    d->path = stki_strdup(file->path);
    d->name = stki_strdup(name);
    status = d->path && d->name ? open_dataset(d, err) : stki_fail_memory(err, (int64_t)strlen(name) + 1, name);
    if (status != STK_OK) {
        stki_hdf5_dataset_release(d);
        return status;
    }
    *out = d;
    return STK_OK;
}

stki_hdf5_dataset *stki_hdf5_dataset_retain(stki_hdf5_dataset *dataset)
{
    stki_ref(&dataset->refs);
    return dataset;
}

void stki_hdf5_dataset_release(stki_hdf5_dataset *d)
{
    stki_hdf5_guard guard;

    if (!d || !stki_unref(&d->refs))
        return;
    if ((d->id >= 0 || d->memory_type >= 0) && d->file->generation == stki_fork_generation()) {
        stki_hdf5_enter(&guard, false);
        if (d->memory_type >= 0)
            (void)H5Tclose(d->memory_type);
        if (d->id >= 0)
            (void)H5Oclose(d->id);
        stki_hdf5_leave(&guard);
    }
    stki_hdf5_parts_destroy(d->parts);
    stki_hdf5_file_release(d->home);
    stki_hdf5_file_release(d->file);
    for (int64_t i = 0; i < d->beside_count; i++)
        stki_free(d->beside[i].path);
    stki_free(d->beside);
    stki_free(d->path);
    stki_free(d->name);
    stki_free(d->field);
    stki_free(d->fill);
    stki_free(d->compact);
    stki_free(d);
}

/* ---- fields ---- */

/* Returns a NULL-terminated list of copies of the names; NULL: not a compound type, or out of memory. */
static char **field_names(stki_hdf5_file *file, const char *name)
{
    stki_hdf5_object object;
    stki_hdf5_guard guard;
    char **names = NULL;
    hid_t type = -1;

    if (stki_hdf5_object_open(file, name, &object, NULL) != STK_OK)
        return NULL;
    stki_hdf5_enter(&guard, false);
    stki_apart_note(file->path, name, "reading the fields of its type", 0);
    if (stki_hdf5_object_need(&object, name, NULL) == STK_OK) {
        type = H5Iget_type(object.id) == H5I_DATASET ? H5Dget_type(object.id) : -1;
        if (type >= 0 && H5Tget_class(type) == H5T_COMPOUND) {
            const int count = H5Tget_nmembers(type);

            names = count > 0 ? stki_zalloc_array((int64_t)count + 1, sizeof *names) : NULL;
            for (int i = 0; names && i < count; i++) {
                char *field = H5Tget_member_name(type, (unsigned)i);

                names[i] = stki_strdup(field ? field : "");
                if (field)
                    (void)H5free_memory(field);
                if (!names[i])
                    break;
            }
        }
        if (type >= 0)
            (void)H5Tclose(type);
    }
    stki_hdf5_leave(&guard);
    stki_hdf5_object_close(&object);
    return names;
}

stk_status stki_hdf5_dataset_fields(stki_hdf5_file *file, const char *name,
                                    stk_status (*found)(void *context, const char *field, stk_error *err),
                                    void *context, stk_error *err)
{
    char **names = field_names(file, name);
    stk_status status = STK_OK;

    for (int i = 0; names && names[i]; i++) {
        if (status == STK_OK)
            status = found(context, names[i], err);
        stki_free(names[i]);
    }
    stki_free(names);
    return status;
}
