/* loadbench_facts.c: properties of a loader, kept after it is closed, and a check that the next repeat's loader has the
 * same properties, since a median over different data is meaningless. */
#include "allocate.h"
#include "error.h"
#include "loadbench_run.h"
#include "text_json.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

static void format_shape(const stk_field_info *info, char *out, int size)
{
    int used = snprintf(out, (size_t)size, "[");

    for (int i = 0; i < info->ndim && used < size; i++)
        used += info->shape[i] < 0
                    ? snprintf(out + used, (size_t)(size - used), "%svarying", i > 0 ? ", " : "")
                    : snprintf(out + used, (size_t)(size - used), "%s%" PRId64, i > 0 ? ", " : "", info->shape[i]);
    if (used < size)
        snprintf(out + used, (size_t)(size - used), "]");
}

/* Returns the size of a sample in its file, assuming as many elements as in a row of the batch; 0 if the size
 * varies. */
static int64_t sample_bytes(const stk_field_info *info)
{
    int64_t bytes = stk_dtype_size(info->source_dtype);

    for (int i = 1; i < info->ndim; i++)
        bytes = info->shape[i] < 0 ? 0 : bytes * info->shape[i];
    return bytes;
}

static void read_field(const stk_field_info *info, struct lb_field *out)
{
    snprintf(out->name, sizeof out->name, "%s", info->name);
    snprintf(out->layout, sizeof out->layout, "%s", info->layout ? info->layout : "");
    snprintf(out->kernel, sizeof out->kernel, "%s", info->kernel ? info->kernel : "");
    snprintf(out->access, sizeof out->access, "%s", info->access ? info->access : "");
    format_shape(info, out->shape, sizeof out->shape);
    out->source_dtype = info->source_dtype;
    out->dtype = info->dtype;
    out->sample_bytes = sample_bytes(info);
    out->ndim = info->ndim;
    for (int i = 0; i < info->ndim; i++) {
        out->lengths[i] = info->shape[i];
        out->varies = out->varies || info->shape[i] < 0;
    }
}

static void look_at(struct lb_file *file)
{
    struct stat stat_of;

    file->missing = stat(file->path, &stat_of) != 0;
    if (file->missing)
        return;
    file->device = (int64_t)stat_of.st_dev;
    file->inode = (int64_t)stat_of.st_ino;
    file->size_bytes = stat_of.st_size;
    file->changed_ns = stat_of.st_mtim.tv_sec * INT64_C(1000000000) + stat_of.st_mtim.tv_nsec;
}

static stk_status add_file(struct lb_facts *facts, const char *path, stk_error *err)
{
    struct lb_file *file = &facts->files[facts->file_count];

    file->path = stki_strdup(path);
    if (!file->path)
        return stki_fail_memory(err, (int64_t)strlen(path), "a path");
    look_at(file);
    facts->file_count++;
    return STK_OK;
}

/* Adds a file of a field. A file that several fields share is added to facts->data only once. */
static stk_status add_data(struct lb_facts *facts, const char *path, const char *format, stk_error *err)
{
    struct stat about;
    bool known = false;

    if (format && strcmp(format, "synthetic") == 0)
        return add_file(facts, path, err);
    /* a regular file with format "images" is a list of images */
    if (format && strcmp(format, "images") == 0 && stat(path, &about) == 0 && S_ISREG(about.st_mode))
        facts->data.others = true;

    for (int i = 1; i < facts->file_count; i++)
        known = known || strcmp(facts->files[i].path, path) == 0;
    stk_status status = add_file(facts, path, err);
    return status == STK_OK && !known && !facts->data_known ? lb_files_add(&facts->data, path, err) : status;
}

/* Records the state of the config and of all files of all fields. */
static stk_status read_files(const char *config_path, struct lb_facts *facts, stk_error *err)
{
    json_t *fields = json_object_get(facts->effective.all, "fields"), *field, *path;
    const char *name;
    size_t i;
    int64_t count = 1;
    stk_status status;

    json_object_foreach(fields, name, field) count += (int64_t)json_array_size(json_object_get(field, "path"));
    facts->files = stki_zalloc_array(count, sizeof *facts->files);
    status = facts->files ? add_file(facts, config_path, err)
                          : stki_fail_memory(err, count * (int64_t)sizeof *facts->files, "the files");
    json_object_foreach(fields, name, field)
    {
        json_array_foreach(json_object_get(field, "path"), i, path)
        {
            char *bytes = stki_text_of_json(path);

            if (status == STK_OK && bytes)
                status = add_data(facts, bytes, json_string_value(json_object_get(field, "format")), err);
            stki_free(bytes);
        }
    }
    return status;
}

static stk_status check_file(const struct lb_file *before, stk_error *err)
{
    struct lb_file now = *before;
    const char *what = NULL;

    look_at(&now);
    if (now.missing != before->missing)
        what = now.missing ? "removed" : "created";
    else if (now.device != before->device || now.inode != before->inode)
        what = "replaced by another file";
    else if (now.size_bytes != before->size_bytes || now.changed_ns != before->changed_ns)
        what = "modified";
    if (!what)
        return STK_OK;
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){before->path, -1, -1,
                                     now.missing ? NULL : STKI_TEXT("%" PRId64 " bytes", now.size_bytes),
                                     now.missing ? NULL : STKI_TEXT("%" PRId64 " bytes", before->size_bytes)},
                        "%s between two repeats", what);
}

static stk_status check_field(const struct lb_field *before, const stk_loader *loader, int index, stk_error *err)
{
    struct lb_field now = {0};
    stk_field_info info;
    stk_status status = stk_loader_field(loader, index, &info, err);

    if (status != STK_OK)
        return status;
    read_field(&info, &now);
    if (strcmp(now.name, before->name) == 0 && now.source_dtype == before->source_dtype && now.dtype == before->dtype &&
        strcmp(now.shape, before->shape) == 0)
        return STK_OK;
    return stki_fail(err, STK_E_MISMATCH,
                     "the data changed between two repeats: field %s was %s from %s %s, and now %s is %s from %s %s",
                     before->name, stk_dtype_name(before->dtype), stk_dtype_name(before->source_dtype), before->shape,
                     now.name, stk_dtype_name(now.dtype), stk_dtype_name(now.source_dtype), now.shape);
}

stk_status lb_facts_check(const stk_loader *loader, const struct lb_facts *facts, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < facts->file_count && status == STK_OK; i++)
        status = check_file(&facts->files[i], err);
    if (status != STK_OK || !loader)
        return status;
    if (stk_loader_samples(loader) != facts->samples || stk_loader_steps_per_epoch(loader) != facts->steps_per_epoch ||
        stk_loader_field_count(loader) != facts->field_count)
        return stki_fail(err, STK_E_MISMATCH,
                         "the data changed between two repeats: %" PRId64 " samples, %" PRId64 " batches per epoch, "
                         "%d fields became %" PRId64 ", %" PRId64 ", %d",
                         facts->samples, facts->steps_per_epoch, facts->field_count, stk_loader_samples(loader),
                         stk_loader_steps_per_epoch(loader), stk_loader_field_count(loader));
    for (int i = 0; i < facts->field_count && status == STK_OK; i++)
        status = check_field(&facts->fields[i], loader, i, err);
    return status;
}

void lb_facts_add_notes(struct lb_facts *facts, const stk_loader *loader)
{
    for (int i = 0; loader && i < stk_loader_note_count(loader); i++) {
        const char *note = stk_loader_note(loader, i);

        if (note)
            stki_notes_add(&facts->notes, "%s", note);
    }
}

stk_status lb_facts_read(const stk_loader *loader, const char *config_path, struct lb_facts *facts, stk_error *err)
{
    const int fields = stk_loader_field_count(loader);
    stk_status status;

    if (fields > LB_FIELDS)
        return stki_fail(err, STK_E_UNSUPPORTED, "loadbench supports at most %d fields, this data set has %d",
                         LB_FIELDS, fields);
    if ((status = lb_effective_read(loader, &facts->effective, err)) != STK_OK)
        return status;
    facts->samples = stk_loader_samples(loader);
    facts->steps_per_epoch = stk_loader_steps_per_epoch(loader);
    for (; facts->field_count < fields; facts->field_count++) {
        stk_field_info info;
        if ((status = stk_loader_field(loader, facts->field_count, &info, err)) != STK_OK)
            return status;
        read_field(&info, &facts->fields[facts->field_count]);
    }
    lb_facts_add_notes(facts, loader);
    return read_files(config_path, facts, err);
}

void lb_facts_fini(struct lb_facts *facts)
{
    lb_effective_fini(&facts->effective);
    stki_notes_fini(&facts->notes);
    for (int i = 0; i < facts->file_count; i++)
        stki_free(facts->files[i].path);
    stki_free(facts->files);
    lb_files_fini(&facts->data);
    memset(facts, 0, sizeof *facts);
}
