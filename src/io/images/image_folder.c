/* image_folder.c: the images of a folder or a list as a container: "image" and "path" are records, "label" is an array
 * in memory. Skipped entries are reported as warnings. */
#include "image_folder.h"
#include "allocate.h"
#include "error.h"
#include "image_load.h"
#include "image_reader.h"
#include "image_set.h"
#include "storage.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>

enum { IMAGE, PATH, LABEL }; /* members, in this order */

struct folder {
    stki_container base; /* first member */
    stki_image_set set;
    stk_storage *labels;
};

static const struct folder *folder_of(const stki_container *base)
{
    return (const struct folder *)(const void *)base;
}

static stk_status folder_array(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                               stki_array *out, stk_error *err)
{
    const struct folder *folder = folder_of(base);

    (void)opts;
    if (member != LABEL)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){base->path, -1, -1, "samples of different sizes", "one array"},
                            "%s cannot be read as an array", base->members[member].name);
    *out = (stki_array){
        .memory = folder->labels, .dtype = STK_I64, .ndim = 1, .shape = {folder->set.count}, .strides = {8}};
    stk_storage_retain(folder->labels);
    return STK_OK;
}

static stk_status folder_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                                stki_reader **out, stk_error *err)
{
    const struct folder *folder = folder_of(base);
    const stki_decode_opts decode = stki_image_opts(opts);
    stki_array labels;
    stk_status status;

    if (member == IMAGE)
        return stki_image_reader_open(base, &folder->set, &decode, out, err);
    if (member == PATH)
        return stki_image_path_reader_open(base, &folder->set, out, err);
    status = folder_array(base, member, opts, &labels, err);
    if (status != STK_OK)
        return status;
    status = stki_array_reader(&labels, base->ops->format, base->path, opts, out, err);
    stki_array_release(&labels);
    return status;
}

/* Opens files that are listed in a config. They have a common shape if all readable images have the same shape. */
static stk_status files_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                               stki_reader **out, stk_error *err)
{
    stk_status status = folder_reader(base, member, opts, out, err);

    if (status != STK_OK || member != IMAGE || stki_image_opts(opts).none)
        return status;
    status = stki_image_reader_settle(*out, err);
    if (status != STK_OK)
        stki_reader_destroy(*out);
    return status;
}

static bool folder_classes(const stki_container *base, int64_t member, stki_class_column *out)
{
    const struct folder *folder = folder_of(base);

    if (member != LABEL || folder->set.classes.count == 0)
        return false;
    *out = (stki_class_column){&folder->set.classes, stk_storage_data(folder->labels), folder->set.count};
    return true;
}

static void folder_destroy(stki_container *base)
{
    struct folder *folder = (struct folder *)(void *)base;

    stk_storage_release(folder->labels);
    stki_image_set_fini(&folder->set);
    stki_container_free(base);
}

static bool folder_name(const stki_container *base, int64_t index, char *buffer, int64_t size)
{
    return snprintf(buffer, (size_t)size, "%s", stki_image_set_name(&folder_of(base)->set, index)) < size;
}

static stk_status folder_arrange(stki_container *base, const int64_t *order, stk_error *err)
{
    struct folder *folder = (struct folder *)(void *)base;
    const int64_t count = folder->set.count, bytes = count * (int64_t)sizeof(int64_t);
    int64_t *columns[] = {folder->set.name_at, folder->labels ? stk_storage_data(folder->labels) : NULL};
    int64_t *old = stki_zalloc(bytes);

    if (!old)
        return stki_fail_memory(err, bytes, "the order of images");
    for (int c = 0; c < 2 && columns[c]; c++) {
        memcpy(old, columns[c], (size_t)bytes);
        for (int64_t i = 0; i < count; i++)
            columns[c][i] = old[order[i]];
    }
    stki_free(old);
    return STK_OK;
}

static const stki_container_ops folder_ops = {.format = "image_folder",
                                              .array = folder_array,
                                              .reader = folder_reader,
                                              .classes = folder_classes,
                                              .name = folder_name,
                                              .arrange = folder_arrange,
                                              .destroy = folder_destroy};
static const stki_container_ops list_ops = {.format = "image_list",
                                            .array = folder_array,
                                            .reader = folder_reader,
                                            .classes = folder_classes,
                                            .name = folder_name,
                                            .arrange = folder_arrange,
                                            .destroy = folder_destroy};
static const stki_container_ops files_ops = {
    .format = "image_list", .array = folder_array, .reader = files_reader, .destroy = folder_destroy};

static void warn(struct folder *folder)
{
    const stki_image_set *set = &folder->set;

    if (set->hidden)
        stki_container_warn(&folder->base, "skipped: %" PRId64 " hidden %s", set->hidden,
                            set->hidden == 1 ? "file or folder" : "files or folders");
    if (set->others)
        stki_container_warn(&folder->base, "skipped: %" PRId64 " %s not .jpg, .jpeg or .png", set->others,
                            set->others == 1 ? "file that is" : "files that are");
    if (set->broken)
        stki_container_warn(&folder->base, "skipped: %" PRId64 " %s without an image extension", set->broken,
                            set->broken == 1 ? "dangling link, pipe or similar entry"
                                             : "dangling links, pipes and similar entries");
    if (set->outside)
        stki_container_warn(&folder->base, "skipped: %" PRId64 " %s next to the class folders", set->outside,
                            set->outside == 1 ? "image" : "images");
    if (set->loops)
        stki_container_warn(&folder->base,
                            "skipped: %" PRId64 " %s (through links) or %s nested more than 64 levels deep", set->loops,
                            set->loops == 1 ? "folder that contains itself" : "folders that contain themselves",
                            set->loops == 1 ? "is" : "are");
    if (set->empty_classes)
        stki_container_warn(&folder->base, "%" PRId64 " class %s no images", set->empty_classes,
                            set->empty_classes == 1 ? "folder has" : "folders have");
}

static stk_status add_details(struct folder *folder, stk_error *err)
{
    const stki_image_set *set = &folder->set;
    json_t *names;

    folder->base.details = json_object();
    if (!folder->base.details)
        return stki_fail_memory(err, 0, "the details of a folder");
    json_object_set_new(folder->base.details, "images", json_integer(set->count));
    if (set->classes.count == 0)
        return STK_OK;
    names = json_array();
    for (int64_t i = 0; names && i < set->classes.count; i++)
        json_array_append_new(names, stki_text_json(stki_classes_name(&set->classes, i)));
    json_object_set_new(folder->base.details, "classes", names);
    return STK_OK;
}

static const stki_source_group *const image_groups[] = {STKI_IMAGE_GROUPS, NULL}, *const no_groups[] = {NULL};

static stk_status add_records(struct folder *folder, const char *name, stk_dtype dtype, int ndim, const int64_t *shape,
                              const stki_source_group *const *groups, stk_error *err)
{
    stki_member *member;
    stk_status status = stki_container_add(&folder->base, name, ndim, shape, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_RECORDS;
    member->dtype = dtype;
    member->count = folder->set.count;
    member->layout = "records";
    member->groups = groups;
    return STK_OK;
}

static stk_status add_labels(struct folder *folder, stk_error *err)
{
    int64_t count = folder->set.count, stride = 8;
    stki_member *member;
    stk_status status = stk_storage_create(NULL, count * 8, &folder->labels, err);

    if (status != STK_OK)
        return status;
    memcpy(stk_storage_data(folder->labels), folder->set.labels, (size_t)count * 8);
    stki_free(folder->set.labels);
    folder->set.labels = NULL;
    status = stki_container_add(&folder->base, "label", 1, &count, &member, err);
    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_ARRAY;
    member->dtype = STK_I64;
    member->layout = "contiguous";
    member->groups = no_groups;
    member->inferred = folder->set.classes.count == 0;
    if (folder->set.name_line > 0) {
        stk_error cause;

        (void)stki_fail_at(&cause, STK_E_CORRUPT,
                           (stki_place){folder->base.path, -1, -1, folder->set.name_found,
                                        "an integer; source: {classes: sorted} accepts class names"},
                           "line %" PRId64 ": the label after the tab", folder->set.name_line);
        stki_member_refuse(member, &cause);
    }
    return stki_member_set_strides(member, &stride, err);
}

/* Warns if decoding would discard bits of samples. Checks only the first image. */
static void warn_of_cut(struct folder *folder, const stki_decode_opts *decode)
{
    char path[4096];

    if (folder->set.count > 0 && stki_image_set_path(&folder->set, 0, path, sizeof path) &&
        stki_image_load_is_cut(path, decode))
        stki_container_warn(&folder->base, STKI_IMAGE_CUT, path);
}

static stk_status describe(struct folder *folder, const stki_reader_opts *opts, stk_error *err)
{
    const stki_decode_opts decode = stki_image_opts(opts);
    const int64_t image[3] = {-1, -1, stki_image_channels(&decode)}, path[1] = {-1};
    const bool whole = decode.none;
    stk_status status = add_records(folder, "image", whole ? STK_U8 : stki_image_dtype(&decode), whole ? 1 : 3,
                                    whole ? path : image, image_groups, err);

    if (status == STK_OK)
        status = add_records(folder, "path", STK_U8, 1, path, no_groups, err);
    if (status == STK_OK && folder->set.labels)
        status = add_labels(folder, err);
    if (status == STK_OK)
        status = add_details(folder, err);
    if (status == STK_OK)
        warn_of_cut(folder, &decode);
    return status;
}

static stk_status open_set(const char *path, const stki_container_ops *ops,
                           stk_status (*make)(const char *path, stki_image_set *out, stk_error *err),
                           const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    struct folder *folder;
    stk_status status = stki_container_create(sizeof *folder, ops, path, &folder, err);

    if (status != STK_OK)
        return status;
    status = make(path, &folder->set, err);
    if (status == STK_OK)
        status = describe(folder, opts, err);
    if (status != STK_OK) {
        folder_destroy(&folder->base);
        return status;
    }
    warn(folder);
    folder->base.named = folder->set.count;
    folder->base.listed = ops == &list_ops;
    *out = &folder->base;
    return STK_OK;
}

stk_status stki_image_folder_container(const char *path, const stki_reader_opts *opts, stki_container **out,
                                       stk_error *err)
{
    return open_set(path, &folder_ops, stki_image_set_scan, opts, out, err);
}

stk_status stki_image_folder_classes(const char *path, stki_classes *out, stk_error *err)
{
    return stki_image_set_classes(path, out, err);
}

stk_status stki_image_list_container(const char *path, const stki_reader_opts *opts, stki_container **out,
                                     stk_error *err)
{
    return open_set(path, &list_ops, stki_image_set_list, opts, out, err);
}

stk_status stki_image_files_container(char *const *paths, int64_t count, const stki_reader_opts *opts,
                                      stki_container **out, stk_error *err)
{
    struct folder *folder;
    stk_status status = stki_container_create(sizeof *folder, &files_ops, paths[0], &folder, err);

    if (status != STK_OK)
        return status;
    folder->set.root = stki_strdup("");
    status = folder->set.root ? STK_OK : stki_fail_memory(err, 1, paths[0]);
    for (int64_t i = 0; i < count && status == STK_OK; i++)
        status = stki_image_set_add(&folder->set, "", paths[i], 0, err);
    stki_free(folder->set.labels); /* no labels */
    folder->set.labels = NULL;
    if (status == STK_OK)
        status = describe(folder, opts, err);
    if (status != STK_OK)
        folder_destroy(&folder->base);
    else
        *out = &folder->base;
    return status;
}
