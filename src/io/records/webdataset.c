/* webdataset.c: a tar archive as a container whose members are the extensions of its samples. */
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "source_common.h"
#include "tar.h"
#include <inttypes.h>
#include <string.h>

enum { KEPT_FROM = 10000 /* by default, an index is cached if the archive has at least this number of files */ };

static stki_webdataset *set_of(const stki_container *base)
{
    return (stki_webdataset *)(uintptr_t)base;
}

static stk_status set_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                             stki_reader **out, stk_error *err)
{
    return stki_webdataset_reader(set_of(base), (int)member, opts, out, err);
}

static void set_destroy(stki_container *base)
{
    stki_webdataset *set = set_of(base);

    stki_tar_index_fini(&set->index);
    stki_file_close(set->file);
    stki_container_free(base);
}

static const stki_container_ops ops = {.format = "webdataset", .reader = set_reader, .destroy = set_destroy};

/* ---- options ---- */

typedef struct tar_options {
    const char *index_cache; /* NULL: next to the archive; "none"; or a folder */
} tar_options;

static const char *const cache_words[] = {"none", NULL};

static const stki_option tar_rows[] = {
    STKI_STRING(
        tar_options, index_cache, NULL,
        "Folder for the index of an archive, or none; by default next to the archive, if it has at least 10,000 files",
        .effect = STKI_ON_NOTHING, .flags = STKI_PATH, .words = cache_words,
        .examples = STKI_EXAMPLES("none", "cache")),
};
static const stki_option_table tar_table = STKI_SOURCE_TABLE("tar", tar_rows);

const stki_source_group stki_tar_source = {&tar_table, sizeof(tar_options), NULL, NULL};

/* ---- the index ---- */

/* Caches the index. Failures are ignored, because the folder may be read-only. A cached index is then used from its
 * file, so that the process that created it uses no more memory than others. */
static void keep_index(stki_webdataset *set, const char *path, const char *where)
{
    stki_tar_index kept;

    if ((!where && set->index.entry_count < KEPT_FROM) ||
        stki_tar_cache_store(path, set->file, &set->index, NULL) != STK_OK ||
        !stki_tar_cache_load(path, set->file, &kept))
        return;
    stki_tar_index_fini(&set->index);
    set->index = kept;
    set->index.source = "built";
}

static stk_status get_index(stki_webdataset *set, const stki_reader_opts *opts, stk_error *err)
{
    tar_options options;
    const char *where;
    char *path;
    stk_status status = STK_OK;

    stki_source_values(opts, &stki_tar_source, &options);
    where = options.index_cache;
    if (where && !strcmp(where, "none"))
        return stki_tar_index_build(set->file, &set->index, err);
    path = stki_tar_cache_path(set->base.path, where);
    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(set->base.path), "a path");
    if (!stki_tar_cache_load(path, set->file, &set->index)) {
        status = stki_tar_index_build(set->file, &set->index, err);
        if (status == STK_OK)
            keep_index(set, path, where);
    }
    stki_free(path);
    return status;
}

/* ---- members ---- */

static const stki_source_group *const *groups_of(const char *extension)
{
    static const stki_source_group *const jpeg[] = {&stki_tar_source, STKI_IMAGE_GROUPS, NULL},
                                          *const png[] = {&stki_tar_source, &stki_image_source, &stki_exif_source,
                                                          NULL},
                                          *const npy[] = {&stki_tar_source, &stki_dtype_source, &stki_header_source,
                                                          NULL},
                                          *const plain[] = {&stki_tar_source, NULL};

    switch (stki_tar_kind_read(extension, &(stki_decode_opts){0})) {
    case STKI_TAR_IMAGE:
        return strcmp(extension, "png") == 0 ? png : jpeg;
    case STKI_TAR_NPY:
        return npy;
    default:
        return plain;
    }
}

static stk_status add_member(stki_webdataset *set, const stki_tar_extension *extension, const stki_decode_opts *decode,
                             stk_error *err)
{
    static const int64_t varying[] = {-1, -1, 3};
    enum stki_tar_kind kind = stki_tar_kind_read(extension->name, decode);
    int ndim = kind == STKI_TAR_IMAGE ? 3 : kind == STKI_TAR_BYTES ? 1 : 0;
    stki_member *member;
    stk_status status =
        stki_container_add(&set->base, extension->name, ndim, kind == STKI_TAR_NPY ? NULL : varying, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_RECORDS;
    member->dtype = kind == STKI_TAR_CLASS   ? STK_I64
                    : kind == STKI_TAR_NPY   ? STK_DTYPE_NONE
                    : kind == STKI_TAR_IMAGE ? stki_image_dtype(decode)
                                             : STK_U8;
    member->count = set->index.sample_count;
    member->layout = "records";
    member->groups = groups_of(extension->name);
    member->details = json_pack("{s:I, s:I, s:I}", "files", (json_int_t)extension->count, "fewest_bytes",
                                (json_int_t)extension->smallest, "most_bytes", (json_int_t)extension->largest);
    if (extension->count < set->index.sample_count)
        stki_container_warn(&set->base, "%" PRId64 " of %" PRId64 " samples have no .%s file",
                            set->index.sample_count - extension->count, set->index.sample_count, extension->name);
    return STK_OK;
}

/* Warns if decoding would discard bits of samples. Checks only the first sample. */
static void warn_of_cut(stki_webdataset *set, const stki_decode_opts *decode)
{
    const stki_tar_index *index = &set->index;

    for (int i = 0; i < index->extension_count && index->sample_count > 0; i++) {
        const char *name = index->extensions[i].name;
        const stki_tar_entry *entry;
        char head[STKI_PNG_HEAD_BYTES];
        int64_t count;

        if (stki_tar_kind_read(name, decode) != STKI_TAR_IMAGE ||
            stki_tar_index_find(index, set->file, 0, i, &entry, NULL) != STK_OK)
            continue;
        count = entry->size < STKI_PNG_HEAD_BYTES ? entry->size : STKI_PNG_HEAD_BYTES;
        if (stki_tar_index_read(index, set->file, entry, 0, head, count, NULL) == STK_OK &&
            stki_image_is_cut(head, count, decode))
            stki_container_warn(&set->base, STKI_IMAGE_CUT, STKI_TEXT("the first .%s", name));
    }
}

static stk_status add_members(stki_webdataset *set, const stki_decode_opts *decode, stk_error *err)
{
    const stki_tar_index *index = &set->index;
    stk_status status = STK_OK;

    for (int i = 0; i < index->extension_count && status == STK_OK; i++)
        status = add_member(set, &index->extensions[i], decode, err);
    if (status == STK_OK)
        warn_of_cut(set, decode);
    if (index->skipped > 0)
        stki_container_warn(&set->base, "%" PRId64 " %s not part of a sample (hidden, or without an extension)",
                            index->skipped, index->skipped == 1 ? "file is" : "files are");
    if (index->links > 0)
        stki_container_warn(&set->base,
                            "%" PRId64
                            " %s skipped: symbolic links, and hard links to files that do not precede them in "
                            "the archive (tar --dereference --hard-dereference stores the files)",
                            index->links, index->links == 1 ? "link is" : "links are");
    if (index->others > 0)
        stki_container_warn(&set->base, "%" PRId64 " %s: devices, volume labels, directory listings, ACLs",
                            index->others, index->others == 1 ? "member is not a file" : "members are not files");
    if (index->beyond > 0)
        stki_container_warn(&set->base,
                            "%" PRId64 " bytes of data follow the end-of-archive marker at offset %" PRId64
                            " and are not read (concatenated archives? list the archives in path, or join them with "
                            "tar --concatenate)",
                            index->beyond, index->end);
    if (index->end < 0)
        stki_container_warn(&set->base, "no end-of-archive marker: the archive may be truncated");
    set->base.details =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s}", "samples", (json_int_t)index->sample_count, "files",
                  (json_int_t)index->entry_count, "skipped", (json_int_t)index->skipped, "links",
                  (json_int_t)index->links, "others", (json_int_t)index->others, "index", index->source);
    return status;
}

stk_status stki_webdataset_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_webdataset *set;
    stk_status status = stki_container_create(sizeof *set, &ops, file->path, &set, err);

    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    set->file = file;
    status = get_index(set, opts, err);
    if (status == STK_OK) {
        const stki_decode_opts decode = stki_image_opts(opts);

        status = add_members(set, &decode, err);
    }
    if (status != STK_OK)
        set_destroy(&set->base);
    else
        *out = &set->base;
    return status;
}

stk_status stki_webdataset_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_webdataset_of_file(file, opts, out, err);
}

bool stki_webdataset_matches(const char *head, int64_t length)
{
    return length >= STKI_TAR_BLOCK && head[0] != '\0' && stki_tar_checksum_holds(head);
}
