/* npz.c: a zip archive of .npy members. The data of a stored member is used in place, mapped or read, at any alignment.
 * A deflated member is unpacked into memory as a whole when it is opened. Its header is unpacked first: memory is
 * allocated only if the array's shape, the size in the directory and the memory limit are consistent.
 *
 * A member that cannot be read (objects, an unsupported compression, a wrong CRC) does not affect the others. */
#include "npz.h"
#include "allocate.h"
#include "error.h"
#include "npy_header.h"
#include "source_common.h"
#include "text_json.h"
#include "zip.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 1024 /* number of bytes read from the start of a member; most headers are shorter */ };

struct npz {
    stki_container base; /* first member */
    stki_file *file;
    stki_zip zip;
    const stki_zip_entry **entries; /* one per member of the container */
};

/* ---- names ---- */

static bool has_suffix(const char *name, int64_t length)
{
    return length >= 4 && !memcmp(name + length - 4, ".npy", 4);
}

/* Returns the length of the array's name within an entry's name. */
static int64_t array_name(const char *name)
{
    int64_t length = (int64_t)strlen(name);

    return has_suffix(name, length) ? length - 4 : length;
}

bool stki_npz_matches(const char *head, int64_t length)
{
    int64_t name;

    if (length >= 22 && !memcmp(head, "PK\5\6", 4))
        return true;
    if (length < 30 || memcmp(head, "PK\3\4", 4) != 0)
        return false;
    name = (unsigned char)head[26] | (unsigned char)head[27] << 8;
    return 30 + name <= length && has_suffix(head + 30, name);
}

struct named {
    const char *name;
    int64_t length, index;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    size_t common = (size_t)(x->length < y->length ? x->length : y->length);
    int order = memcmp(x->name, y->name, common);

    if (order || x->length != y->length)
        return order ? order : (x->length > y->length) - (x->length < y->length);
    return (x->index > y->index) - (x->index < y->index);
}

/* Sets shadowed[i] if a later entry has the same name as entry i. */
static stk_status find_shadowed(struct npz *npz, bool *shadowed, stk_error *err)
{
    struct named *sorted = stki_zalloc_array(npz->zip.count, sizeof *sorted);

    if (!sorted)
        return stki_fail_memory(err, npz->zip.count * (int64_t)sizeof *sorted, npz->base.path);
    for (int64_t i = 0; i < npz->zip.count; i++)
        sorted[i] = (struct named){npz->zip.entries[i].name, array_name(npz->zip.entries[i].name), i};
    qsort(sorted, (size_t)npz->zip.count, sizeof *sorted, by_name);
    for (int64_t i = 0; i + 1 < npz->zip.count; i++) {
        if (sorted[i].length != sorted[i + 1].length ||
            memcmp(sorted[i].name, sorted[i + 1].name, (size_t)sorted[i].length) != 0)
            continue;
        shadowed[sorted[i].index] = true;
        stki_container_warn(&npz->base, "%s: two members are named %.*s: the last one wins", npz->base.path,
                            (int)(sorted[i].length < 100 ? sorted[i].length : 100), sorted[i].name);
    }
    stki_free(sorted);
    return STK_OK;
}

/* ---- headers ---- */

struct member_bytes {
    const stki_zip *zip;
    const stki_zip_entry *entry;
    int64_t offset;    /* offset of the member's data in the file */
    const char *label; /* for messages */
};

/* Parses the header of a member. `head` contains the first `got` bytes of the member; a longer header is read again as
 * a whole. */
static stk_status parse_header(const struct member_bytes *m, const char *head, int64_t got,
                               const stki_reader_opts *opts, stk_dtype alias, stki_npy_header *out, stk_error *err)
{
    stki_npy_prefix prefix;
    char *whole;
    stk_status status = stki_npy_read_prefix(head, m->entry->size, stki_header_limit(opts), m->label, &prefix, err);

    if (status != STK_OK)
        return status;
    if (prefix.text_offset + prefix.text_bytes <= got)
        return stki_npy_read_header(&prefix, head + prefix.text_offset, m->entry->size, alias, m->label, out, err);
    got = prefix.text_offset + prefix.text_bytes;
    whole = stki_resize(NULL, got);
    if (!whole)
        return stki_fail_memory(err, got, "an npy header");
    status = stki_zip_head(m->zip, m->entry, m->offset, whole, got, &got, err);
    if (status == STK_OK)
        status = stki_npy_read_header(&prefix, whole + prefix.text_offset, m->entry->size, alias, m->label, out, err);
    stki_free(whole);
    return status;
}

/* Sets *is_array to false if neither the name nor the content indicates an array. */
static stk_status read_header(const struct npz *npz, const stki_zip_entry *entry, const stki_reader_opts *opts,
                              stk_dtype alias, int64_t *offset, stki_npy_header *out, bool *is_array, stk_error *err)
{
    char head[HEAD] = {0};
    struct member_bytes m = {&npz->zip, entry, 0, NULL};
    bool named = has_suffix(entry->name, (int64_t)strlen(entry->name));
    int64_t got = 0;
    char *label;
    stk_status status = stki_zip_locate(&npz->zip, entry, offset, err);

    *is_array = named;
    m.offset = *offset;
    if (status == STK_OK)
        status = stki_zip_head(&npz->zip, entry, *offset, head, HEAD, &got, err);
    if (status != STK_OK)
        return status;
    *is_array = named || (got >= 6 && !memcmp(head, "\x93NUMPY", 6));
    if (!*is_array)
        return STK_OK;
    m.label = label = stki_format("%s: member %.100s", npz->base.path, entry->name);
    if (!label)
        return stki_fail_memory(err, (int64_t)strlen(npz->base.path) + 110, npz->base.path);
    status = parse_header(&m, head, got, opts, alias, out, err);
    stki_free(label);
    return status;
}

/* ---- list of members ---- */

static void describe_archive_member(stki_member *member, const stki_zip_entry *entry)
{
    member->details = json_pack("{s:o, s:s, s:I, s:I, s:s}", "member", stki_text_json(entry->name), "method",
                                entry->method == STKI_ZIP_DEFLATED ? "deflate"
                                : entry->method == STKI_ZIP_STORED ? "stored"
                                                                   : "other",
                                "bytes", (json_int_t)entry->size, "stored_bytes", (json_int_t)entry->compressed,
                                "crc32", STKI_TEXT("%08" PRIx32, entry->crc));
}

static stk_status add_member(struct npz *npz, const stki_zip_entry *entry, const stki_npy_header *header,
                             stki_member **out, stk_error *err)
{
    char *name = stki_strdup(entry->name);
    stk_status status;

    if (!name)
        return stki_fail_memory(err, (int64_t)strlen(entry->name) + 1, entry->name);
    if (!header || header->ndim >= 0)
        name[array_name(entry->name)] = '\0';
    status = stki_container_add(&npz->base, name, header && header->ndim > 0 ? header->ndim : 0,
                                header ? header->shape : NULL, out, err);
    stki_free(name);
    if (status != STK_OK)
        return status;
    npz->entries[npz->base.member_count - 1] = entry;
    describe_archive_member(*out, entry);
    return STK_OK;
}

static stk_status add_other(struct npz *npz, const stki_zip_entry *entry, stk_error *err)
{
    stki_member *member;
    stk_error why;
    stk_status status = add_member(npz, entry, NULL, &member, err);

    if (status != STK_OK)
        return status;
    (void)stki_zip_fail(&npz->zip, entry, STK_E_UNSUPPORTED, -1, "not an array", NULL, "an .npy member", &why);
    member->kind = STKI_MEMBER_OTHER;
    stki_member_refuse(member, &why);
    return STK_OK;
}

static stk_status add_refused(struct npz *npz, const stki_zip_entry *entry, const stk_error *why, stk_error *err)
{
    stki_member *member;
    stk_status status = add_member(npz, entry, NULL, &member, err);

    if (status == STK_OK)
        stki_member_refuse(member, why);
    return status;
}

static stk_status add_array(struct npz *npz, const stki_zip_entry *entry, const stki_npy_header *header, int64_t offset,
                            stk_error *err)
{
    stki_member *member;
    stk_status status = add_member(npz, entry, header, &member, err);

    if (status != STK_OK)
        return status;
    member->dtype = header->dtype;
    member->swapped = header->swapped;
    if (entry->method == STKI_ZIP_DEFLATED) {
        member->layout = "deflated";
        return STK_OK;
    }
    member->layout = header->fortran ? "fortran" : "contiguous";
    member->offset = offset + header->data_offset;
    return stki_member_set_strides(member, header->strides, err);
}

/* Whether a failure is unrelated to the content of the file. */
static bool is_ours(stk_status status)
{
    return status == STK_E_MEMORY || status == STK_E_IO;
}

static stk_status add_entry(struct npz *npz, const stki_zip_entry *entry, const stki_reader_opts *opts, stk_error *err)
{
    size_t length = strlen(entry->name);
    stki_npy_header header;
    int64_t offset = 0;
    bool is_array;
    stk_error why;
    stk_status status;

    if (length > 0 && entry->name[length - 1] == '/')
        return add_other(npz, entry, err);
    status = read_header(npz, entry, opts, STK_DTYPE_NONE, &offset, &header, &is_array, &why);
    if (status == STK_E_UNSUPPORTED && is_array &&
        opts->alias_dtype != STK_DTYPE_NONE) /* retry with the type that the user has given */
        status = read_header(npz, entry, opts, opts->alias_dtype, &offset, &header, &is_array, &why);
    if (is_ours(status)) {
        if (err)
            *err = why;
        return status;
    }
    if (status != STK_OK)
        return add_refused(npz, entry, &why, err);
    return is_array ? add_array(npz, entry, &header, offset, err) : add_other(npz, entry, err);
}

static stk_status list_members(struct npz *npz, const stki_reader_opts *opts, stk_error *err)
{
    bool *shadowed = stki_zalloc_array(npz->zip.count, sizeof *shadowed);
    stk_status status = STK_OK;

    npz->entries = stki_zalloc_array(npz->zip.count, sizeof(stki_zip_entry *));
    if (!shadowed || !npz->entries)
        status = stki_fail_memory(err, npz->zip.count * (int64_t)sizeof(stki_zip_entry *), npz->base.path);
    if (status == STK_OK)
        status = find_shadowed(npz, shadowed, err);
    for (int64_t i = 0; status == STK_OK && i < npz->zip.count; i++)
        if (!shadowed[i])
            status = add_entry(npz, &npz->zip.entries[i], opts, err);
    stki_free(shadowed);
    return status;
}

/* ---- reading ---- */

static stk_status unpack(const struct npz *npz, const stki_zip_entry *entry, int64_t offset,
                         const stki_reader_opts *opts, stki_array *out, stk_error *err)
{
    int64_t limit = stki_memory_limit(opts);
    stk_status status;

    if (entry->size > limit)
        return stki_zip_fail(
            &npz->zip, entry, STK_E_LIMIT, -1, "the member is too large to be decompressed into memory",
            STKI_TEXT("%" PRId64 " bytes", entry->size), STKI_TEXT("at most %" PRId64 " (memory_limit)", limit), err);
    status = stk_storage_create(NULL, entry->size, &out->memory, err);
    if (status == STK_OK)
        status = stki_zip_read(&npz->zip, entry, offset, stk_storage_data(out->memory), err);
    if (status != STK_OK)
        stk_storage_release(out->memory);
    return status;
}

static stk_status npz_array(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                            stki_array *out, stk_error *err)
{
    const struct npz *npz = (const struct npz *)(const void *)container;
    const stki_zip_entry *entry = npz->entries[member];
    stki_npy_header header;
    stki_array array;
    int64_t offset;
    bool is_array;
    stk_status status = read_header(npz, entry, opts, opts->alias_dtype, &offset, &header, &is_array, err);

    if (status != STK_OK)
        return status;
    array = (stki_array){.dtype = header.dtype, .swapped = header.swapped, .ndim = header.ndim};
    memcpy(array.shape, header.shape, sizeof array.shape);
    memcpy(array.strides, header.strides, sizeof array.strides);
    array.offset = header.data_offset;
    if (entry->method == STKI_ZIP_DEFLATED) {
        status = unpack(npz, entry, offset, opts, &array, err);
    } else {
        status = opts->verify ? stki_zip_check(&npz->zip, entry, offset, err) : STK_OK;
        array.offset += offset;
        array.file = status != STK_OK ? NULL : stki_file_retain(npz->file);
    }
    if (status == STK_OK)
        *out = array;
    return status;
}

static stk_status npz_reader(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                             stki_reader **out, stk_error *err)
{
    const struct npz *npz = (const struct npz *)(const void *)container;
    stki_array array;
    stk_status status = npz_array(container, member, opts, &array, err);

    if (status != STK_OK)
        return status;
    status = stki_array_reader(&array, "npz", container->path, opts, out, err);
    stki_array_release(&array);
    if (status == STK_OK && npz->entries[member]->method == STKI_ZIP_DEFLATED)
        (*out)->note = "the member is deflated, so it was decompressed into memory";
    return status;
}

/* ---- opening ---- */

static void npz_destroy(stki_container *container)
{
    struct npz *npz = (struct npz *)(void *)container;

    stki_zip_close(&npz->zip);
    stki_file_close(npz->file);
    stki_free(npz->entries);
    stki_container_free(container);
}

static const stki_container_ops npz_ops = {
    .format = "npz", .array = npz_array, .reader = npz_reader, .destroy = npz_destroy};

stk_status stki_npz_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    struct npz *npz;
    stk_status status = stki_container_create(sizeof *npz, &npz_ops, file->path, &npz, err);

    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    npz->file = file;
    status = stki_zip_open(file, stki_header_limit(opts), &npz->zip, err);
    if (status == STK_OK)
        status = list_members(npz, opts, err);
    if (status != STK_OK)
        stki_container_release(&npz->base);
    else
        *out = &npz->base;
    return status;
}

stk_status stki_npz_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_npz_of_file(file, opts, out, err);
}
