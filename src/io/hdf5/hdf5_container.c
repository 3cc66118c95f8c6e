/* hdf5_container.c: an HDF5 file as a container of its data sets. A requested name is resolved by following links
 * (hdf5_path.h), so any path to a data set works. Without a name, all data sets are listed.
 *
 * Contiguous data becomes an array in the mapped file. A data set that was never written becomes one fill value with
 * strides of 0. Compact, virtual and external data becomes an array in memory. Chunked data has its own reader. */
#include "hdf5_container.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_chunks.h"
#include "hdf5_list.h"
#include "hdf5_reader.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>

static const stki_reader_opts no_opts;

/* Maximum number of containers that keep their file open; others open it for each call. */
enum { MOST_OPEN = 64 };
static stki_counter open_files;

struct hdf5 {
    stki_container base;   /* first member */
    stki_hdf5_file *file;  /* NULL: the file is not kept open */
    stki_reader_opts opts; /* options for opening the file */
};

static const struct hdf5 *hdf5_of(const stki_container *base)
{
    return (const struct hdf5 *)(const void *)base;
}

/* Returns the file with a reference for the caller. */
static stk_status file_of(const struct hdf5 *h, stki_hdf5_file **out, stk_error *err)
{
    if (!h->file)
        return stki_hdf5_file_open(h->base.path, &h->opts, out, err);
    *out = stki_hdf5_file_retain(h->file);
    return STK_OK;
}

static stk_status open_member(const stki_container *base, int64_t member, stki_hdf5_dataset **out, stk_error *err)
{
    stki_hdf5_file *file;
    stk_status status = file_of(hdf5_of(base), &file, err);

    if (status != STK_OK)
        return status;
    status = stki_hdf5_dataset_open(file, base->members[member].name, out, err);
    stki_hdf5_file_release(file);
    return status;
}

static bool wants_cf(const stki_reader_opts *opts)
{
    stki_hdf5_options options;

    stki_source_values(opts, &stki_hdf5_source, &options);
    return options.cf;
}

/* ---- members ---- */

static const char *layout_name(const stki_hdf5_dataset *d)
{
    static const char *const names[] = {[STKI_HDF5_COMPACT] = "compact",
                                        [STKI_HDF5_CONTIGUOUS] = "contiguous",
                                        [STKI_HDF5_CHUNKED] = "chunked",
                                        [STKI_HDF5_VIRTUAL] = "virtual",
                                        [STKI_HDF5_EXTERNAL] = "external"};
    return names[d->layout];
}

static json_t *filters_of(const stki_hdf5_dataset *d)
{
    json_t *list = json_array();

    for (int k = 0; k < d->pipeline.count; k++)
        json_array_append_new(
            list, json_pack("{s:i, s:s}", "id", d->pipeline.filters[k].id, "name", d->pipeline.filters[k].name));
    return list;
}

static json_t *details_of(const stki_hdf5_dataset *d)
{
    json_t *details = json_object(), *chunk;

    if (d->layout == STKI_HDF5_CHUNKED) {
        chunk = json_array();
        for (int i = 0; i < d->grid.ndim; i++)
            json_array_append_new(chunk, json_integer(d->grid.chunk[i]));
        json_object_set_new(details, "chunk", chunk);
        json_object_set_new(details, "chunks", json_integer(d->grid.count));
        json_object_set_new(details, "filters", filters_of(d));
        json_object_set_new(details, "read_by", json_string(stki_hdf5_chunks_can(d) ? "stoker" : "libhdf5"));
    }
    if (!d->type.raw)
        json_object_set_new(details, "converted", json_true());
    if (d->live)
        json_object_set_new(details, "open_for_writing", json_true());
    if (strcmp(d->path, d->file->path) != 0)
        json_object_set_new(details, "file", stki_text_json(d->path));
    return details;
}

/* Sets row-major strides. STK_E_CORRUPT: the size exceeds 63 bits. */
static stk_status strides_of(const stki_hdf5_dataset *d, stki_array *out, stk_error *err)
{
    int64_t bytes;

    *out = (stki_array){.dtype = d->type.dtype, .ndim = d->ndim};
    memcpy(out->shape, d->shape, sizeof out->shape);
    return stki_array_row_major(out, &bytes, d->path, err);
}

static stk_status add_refused(struct hdf5 *h, const char *name, const stk_error *cause, stk_error *err)
{
    stki_member *member;
    stk_status status = stki_container_add(&h->base, name, 0, NULL, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_ARRAY;
    member->layout = "none";
    stki_member_refuse(member, cause);
    return STK_OK;
}

/* Describes a data set of strings or lists of varying length. */
static stk_status describe_values(struct hdf5 *h, const stki_hdf5_dataset *d, const char *alias_of, stk_error *err)
{
    static const int64_t varying[] = {-1};
    stki_member *member;
    stk_status status = stki_container_add(&h->base, d->name, 1, varying, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_RECORDS;
    member->dtype = d->type.dtype;
    member->count = d->rank == 1 ? d->shape[0] : 0;
    member->layout = layout_name(d);
    member->details = details_of(d);
    if (alias_of)
        json_object_set_new(member->details, "alias_of", stki_text_json(alias_of));
    return STK_OK;
}

static stk_status describe(struct hdf5 *h, const stki_hdf5_dataset *d, const char *alias_of, stk_error *err)
{
    stki_member *member;
    stki_array array;
    stk_error why;
    bool computes = false;
    stk_status status = strides_of(d, &array, &why);

    if (status != STK_OK)
        return add_refused(h, d->name, &why, err);
    if (d->type.varying != STKI_HDF5_SAME)
        return describe_values(h, d, alias_of, err);
    status = stki_container_add(&h->base, d->name, d->ndim, d->shape, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_ARRAY;
    member->dtype = d->type.dtype;
    member->swapped = d->type.swapped;
    member->layout = layout_name(d);
    member->offset = d->field ? -1 : d->offset; /* the values of a field are not contiguous */
    member->details = details_of(d);
    if (alias_of)
        json_object_set_new(member->details, "alias_of", stki_text_json(alias_of));
    if (d->filter_missing[0]) {
        (void)stki_hdf5_dataset_read(d, NULL, NULL, NULL, 0, &why);
        stki_member_refuse(member, &why);
    } else if (wants_cf(&h->opts) && (status = stki_hdf5_cf_look(d, &member->dtype, &computes, &why)) != STK_OK) {
        stki_member_refuse(member, &why);
    }
    if (computes) { /* computed values are not in the file */
        json_object_set_new(member->details, "stored", json_string(stk_dtype_long_name(d->type.dtype)));
        member->swapped = false;
        member->offset = -1;
        return STK_OK;
    }
    return d->layout == STKI_HDF5_CONTIGUOUS && !d->field ? stki_member_set_strides(member, array.strides, err)
                                                          : STK_OK;
}

static stk_status add_named(struct hdf5 *h, const char *name, const char *alias_of, bool fields_too, stk_error *err);

/* The fields of a compound type. Each of them becomes a member, such as /table["x"]. */
struct fields {
    struct hdf5 *h;
    const char *name;
    int count;
};

static stk_status on_field(void *context, const char *field, stk_error *err)
{
    struct fields *fields = context;
    char *name = stki_format("%s[\"%s\"]", fields->name, field);
    stk_status status =
        name ? add_named(fields->h, name, NULL, false, err) : stki_fail_memory(err, (int64_t)strlen(field), "a name");

    stki_free(name);
    fields->count++;
    return status;
}

/* Adds a member for the data set with this name; if it cannot be opened, the member records the error. `fields_too`:
 * also add the fields of a compound type. */
static stk_status add_named(struct hdf5 *h, const char *name, const char *alias_of, bool fields_too, stk_error *err)
{
    stki_hdf5_dataset *d;
    stk_error why;
    stk_status status = stki_hdf5_dataset_open(h->file, name, &d, &why);

    if (status == STK_E_MEMORY) {
        if (err)
            *err = why;
        return status;
    }
    if (status == STK_E_UNSUPPORTED && fields_too) {
        struct fields fields = {h, name, 0};
        stk_status listed = stki_hdf5_dataset_fields(h->file, name, on_field, &fields, err);

        if (listed != STK_OK || fields.count > 0)
            return listed;
    }
    if (status != STK_OK)
        return add_refused(h, name, &why, err);
    status = describe(h, d, alias_of, err);
    stki_hdf5_dataset_release(d);
    return status;
}

/* Adds a member for a pattern: each matching data set is one sample. */
static stk_status add_pattern(struct hdf5 *h, const char *pattern, const stki_reader_opts *opts, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    stki_reader *reader;
    stki_member *member;
    stk_status status = stki_hdf5_groups_reader(h->file, pattern, opts, &reader, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < reader->ndim; i++)
        shape[i] = reader->variable ? -1 : reader->shape[i];
    status = stki_container_add(&h->base, pattern, reader->ndim, shape, &member, err);
    if (status == STK_OK) {
        member->kind = STKI_MEMBER_RECORDS;
        member->dtype = reader->dtype;
        member->swapped = reader->swapped;
        member->count = reader->count;
        member->layout = "records";
    }
    stki_reader_destroy(reader);
    return status;
}

static stk_status on_found(void *context, const char *name, const char *alias_of, const stk_error *trouble,
                           stk_error *err)
{
    struct hdf5 *h = context;

    return trouble ? add_refused(h, name, trouble, err) : add_named(h, name, alias_of, true, err);
}

/* ---- as an array and as samples ---- */

static stk_status hdf5_array(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                             stk_error *err)
{
    stki_hdf5_dataset *d;
    stk_status status = open_member(base, member, &d, err);

    if (status != STK_OK)
        return status;
    status = stki_hdf5_array_of(d, NULL, opts ? opts : &no_opts, out, err);
    if (status == STK_OK && opts && wants_cf(opts) && (status = stki_hdf5_cf_array(d, opts, out, err)) != STK_OK)
        stki_array_release(out);
    stki_hdf5_dataset_release(d);
    return status;
}

static bool needs_library(const stki_hdf5_dataset *d)
{
    return d->layout == STKI_HDF5_VIRTUAL || d->layout == STKI_HDF5_EXTERNAL || d->live ||
           d->layout == STKI_HDF5_CHUNKED || (!d->type.raw && d->layout == STKI_HDF5_CONTIGUOUS);
}

static stk_status samples_of(stki_hdf5_dataset *d, const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    stki_array array;
    stk_status status;

    if (d->type.varying != STKI_HDF5_SAME)
        return stki_hdf5_values_reader(d, opts, out, err);
    if (d->rank > 0 && stki_hdf5_chunks_can(d)) {
        status = stki_hdf5_chunked_reader(d, opts, out, err);
        if (status != STK_E_UNSUPPORTED)
            return status;
    }
    if (d->rank > 0 && needs_library(d))
        return stki_hdf5_library_reader(d, opts, out, err);
    status = stki_hdf5_array_of(d, NULL, opts, &array, err);
    if (status != STK_OK)
        return status;
    status = stki_array_reader(&array, "hdf5", d->path, opts, out, err);
    stki_array_release(&array);
    return status;
}

static stk_status records_of(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                             stki_reader **out, stk_error *err)
{
    stki_hdf5_file *file = NULL;
    stk_status status = file_of(hdf5_of(base), &file, err);

    if (status == STK_OK && wants_cf(opts))
        status = stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){base->path, -1, -1, NULL, NULL},
                              "%s: source.cf requires a single data set, not a pattern", base->members[member].name);
    else if (status == STK_OK)
        status = stki_hdf5_groups_reader(file, base->members[member].name, opts, out, err);
    stki_hdf5_file_release(file);
    return status;
}

static stk_status hdf5_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                              stki_reader **out, stk_error *err)
{
    stki_hdf5_dataset *d;
    stki_reader *reader;
    stk_status status;

    opts = opts ? opts : &no_opts;
    if (base->members[member].kind == STKI_MEMBER_RECORDS && !strcmp(base->members[member].layout, "records"))
        return records_of(base, member, opts, out, err);
    status = open_member(base, member, &d, err);
    if (status != STK_OK)
        return status;
    status = samples_of(d, opts, &reader, err);
    if (status == STK_OK && wants_cf(opts) && d->type.varying == STKI_HDF5_SAME)
        status = stki_hdf5_cf_reader(d, reader, &reader, err);
    stki_hdf5_dataset_release(d);
    if (status == STK_OK)
        *out = reader;
    return status;
}

/* ---- the container ---- */

static void hdf5_destroy(stki_container *base)
{
    struct hdf5 *h = (struct hdf5 *)(void *)base;

    if (h->file)
        stki_count(&open_files, -1);
    stki_hdf5_file_release(h->file);
    stki_container_free(base);
}

static const stki_container_ops hdf5_ops = {
    .format = "hdf5", .array = hdf5_array, .reader = hdf5_reader, .destroy = hdf5_destroy};

bool stki_hdf5_matches(const char *head, int64_t length)
{
    const stki_file bytes = {.path = (char *)(uintptr_t) "", .fd = -1, .map = (void *)(uintptr_t)head, .size = length};
    int64_t at;

    return stki_hdf5_find_signature(&bytes, &at, NULL) == STK_OK;
}

/* Describes the HDF5 library in use, for programs that also use it in this process. */
static json_t *library_details(void)
{
    return json_pack("{s:s, s:b}", "libhdf5", stki_hdf5_version(), "thread_safe", stki_hdf5_thread_safe());
}

/* Adds the requested data set, which may be named by any path that leads to it. If it does not exist, adds all data
 * sets, so that the error can list them. */
static stk_status add_members(struct hdf5 *h, const stki_reader_opts *opts, stk_error *err)
{
    stk_status status;

    if (!opts->name)
        return stki_hdf5_list(h->file, NULL, on_found, h, err);
    status = add_named(h, opts->name, NULL, false, err);
    h->base.partial = true;
    if (status != STK_OK || h->base.members[0].status != STK_E_NOT_FOUND)
        return status;
    stki_container_clear(&h->base);
    if (stki_hdf5_is_pattern(opts->name))
        return add_pattern(h, opts->name, opts, err);
    h->base.partial = false;
    return stki_hdf5_list(h->file, NULL, on_found, h, err);
}

stk_status stki_hdf5_container_open(const char *path, const stki_reader_opts *opts, stki_container **out,
                                    stk_error *err)
{
    struct hdf5 *h = NULL;
    stki_hdf5_file *file;
    stk_status status = stki_hdf5_file_open(path, opts ? opts : &no_opts, &file, err);

    if (status != STK_OK)
        return status;
    status = stki_container_create(sizeof *h, &hdf5_ops, path, &h, err);
    if (status != STK_OK) {
        stki_hdf5_file_release(file);
        return status;
    }
    h->file = file;
    h->opts.access = opts ? opts->access : STKI_ACCESS_AUTO;
    h->opts.source = opts ? opts->source : NULL;
    h->base.details = library_details();
    stki_count(&open_files, 1);
    if (file->live)
        stki_container_warn(&h->base,
                            "another process has the file open for writing or did not close it, so it is read through "
                            "libhdf5");
    status = add_members(h, opts ? opts : &no_opts, err);
    if (status != STK_OK) {
        stki_container_release(&h->base);
        return status;
    }
    if (stki_counted(&open_files) > MOST_OPEN) {
        stki_hdf5_file_release(h->file);
        h->file = NULL;
        stki_count(&open_files, -1);
    }
    *out = &h->base;
    return STK_OK;
}
