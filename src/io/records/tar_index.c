/* tar_index.c: one pass over the headers of a tar archive gives, for every sample, where its files lie. Of images the
 * size in pixels is noted too, so that nobody has to look for it later. Tar has no directory, so the pass touches every
 * member; that is why the index can be kept (tar_cache.c).
 *
 * The end is a block of zeros, or the end of the file behind a whole member; what follows a block of zeros is not read.
 * A header with a wrong checksum is an error wherever it is: programs that stop there drop the rest in silence. */
#include "allocate.h"
#include "checked.h"
#include "decode.h"
#include "error.h"
#include "npy_header.h"
#include "tar.h"
#include <inttypes.h>
#include <string.h>

enum { IMAGE_HEAD = 64 << 10 /* of an image that is not mapped, read for its size */, KEY_SHOWN = 64 };

/* A growing array; capacity doubles. */
struct array {
    void *data;
    int64_t count, room;
};

struct builder {
    const stki_file *file;
    struct array first, entries, key_at, keys; /* count in elements */
    stki_tar_extension *extensions;
    int extension_count;
    int64_t skipped;
    /* what extended headers say of the next member */
    char *long_name;
    int64_t long_bytes;
    char *pax_text, *global_text;
    stki_tar_pax pax, global;
    bool pending; /* a header that wants a member behind it */
    void *head;   /* IMAGE_HEAD bytes, made at first use */
};

static stk_status reserve(struct array *array, int64_t more, int64_t each, stk_error *err)
{
    int64_t room = array->room > 0 ? array->room : 64;
    void *data;

    if (array->count + more <= array->room)
        return STK_OK;
    while (room < array->count + more)
        room *= 2; /* a file's bytes at most: far from 2^63 */
    data = stki_resize(array->data, room * each);
    if (!data)
        return stki_fail_memory(err, room * each, "the index of an archive");
    array->data = data;
    array->room = room;
    return STK_OK;
}

/* ---- samples -------------------------------------------------------------------------------------------------------
 */

static const char *current_key(const struct builder *b, int64_t *bytes)
{
    const int64_t *at = b->key_at.data;
    int64_t start = at[b->key_at.count - 1];

    *bytes = b->keys.count - start;
    return (const char *)b->keys.data + start;
}

static stk_status begin_sample(struct builder *b, const char *key, int64_t bytes, stk_error *err)
{
    stk_status status = reserve(&b->first, 2, sizeof(uint32_t), err);

    if (!status)
        status = reserve(&b->key_at, 2, sizeof(int64_t), err);
    if (!status)
        status = reserve(&b->keys, bytes, 1, err);
    if (status)
        return status;
    ((uint32_t *)b->first.data)[b->first.count++] = (uint32_t)b->entries.count;
    ((int64_t *)b->key_at.data)[b->key_at.count++] = b->keys.count;
    memcpy((char *)b->keys.data + b->keys.count, key, (size_t)bytes);
    b->keys.count += bytes;
    return STK_OK;
}

/* The number of an extension, a new one if need be. `text` is not ended. */
static stk_status extension_number(struct builder *b, const char *text, int64_t bytes, uint32_t *out, stk_error *err)
{
    char name[STKI_TAR_EXTENSION_NAME] = {0};
    int64_t size = (b->extension_count + 1) * (int64_t)sizeof *b->extensions;
    stki_tar_extension *extensions;

    for (int64_t i = 0; i < bytes; i++)
        name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    for (int i = 0; i < b->extension_count; i++)
        if (!strcmp(b->extensions[i].name, name)) {
            *out = (uint32_t)i;
            return STK_OK;
        }
    if (b->extension_count == STKI_TAR_EXTENSIONS)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){b->file->path, -1, -1, NULL, STKI_TEXT("at most %d", STKI_TAR_EXTENSIONS)},
                            "too many different extensions of names");
    extensions = stki_resize(b->extensions, size);
    if (!extensions)
        return stki_fail_memory(err, size, "an extension");
    b->extensions = extensions;
    extensions[b->extension_count] = (stki_tar_extension){.smallest = INT64_MAX};
    memcpy(extensions[b->extension_count].name, name, sizeof name);
    *out = (uint32_t)b->extension_count++;
    return STK_OK;
}

static stk_status check_twice(const struct builder *b, uint32_t extension, int64_t offset, stk_error *err)
{
    const stki_tar_entry *entries = b->entries.data;
    char shown[KEY_SHOWN];
    int64_t bytes;
    const char *key = current_key(b, &bytes);

    for (int64_t i = ((const uint32_t *)b->first.data)[b->first.count - 1]; i < b->entries.count; i++)
        if (entries[i].extension == extension)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){b->file->path, b->first.count - 1, offset,
                                             STKI_TEXT("a second .%s", b->extensions[extension].name), "one of each"},
                                "sample %s", stki_npy_printable(shown, sizeof shown, key, bytes));
    return STK_OK;
}

/* Notes how large an image is. One that does not tell fails when it is read. */
static stk_status note_size(struct builder *b, stki_tar_entry *entry, stk_error *err)
{
    static const stki_decode_opts as_stored;
    int64_t count = entry->size;
    stki_image_info info;
    const void *bytes;

    if (b->file->map) {
        bytes = (const char *)b->file->map + entry->offset;
    } else {
        stk_status status;

        if (!b->head)
            b->head = stki_zalloc(IMAGE_HEAD);
        if (!b->head)
            return stki_fail_memory(err, IMAGE_HEAD, "the beginning of an image");
        count = count < IMAGE_HEAD ? count : IMAGE_HEAD;
        status = stki_file_read(b->file, entry->offset, b->head, count, err);
        if (status)
            return status;
        bytes = b->head;
    }
    if (stki_image_info_of(bytes, count, &as_stored, &info, NULL))
        return STK_OK;
    entry->height = (uint32_t)info.stored_height;
    entry->width = (uint32_t)info.stored_width;
    entry->orientation = (uint32_t)info.orientation;
    return STK_OK;
}

static void count_file(stki_tar_extension *extension, int64_t size)
{
    extension->count++;
    extension->smallest = size < extension->smallest ? size : extension->smallest;
    extension->largest = size > extension->largest ? size : extension->largest;
}

/* What lies in the archive must be the file's bytes. */
static stk_status check_plain(const struct builder *b, const char *name, int64_t bytes, int64_t offset, stk_error *err)
{
    const stki_tar_pax *pax = b->pax.encoded ? &b->pax : &b->global;
    char shown[STKI_TAR_NAME], record[KEY_SHOWN];

    if (!pax->encoded)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_UNSUPPORTED,
        (stki_place){
            b->file->path, -1, offset,
            STKI_TEXT("pax record %s", stki_npy_printable(record, sizeof record, pax->encoded, pax->encoded_bytes)),
            "the bytes of a whole file"},
        "member %s is a sparse file or a part of a divided one: write the archive without --sparse and --multi-volume",
        stki_npy_printable(shown, sizeof shown, name, bytes));
}

static stk_status add_file(struct builder *b, const char *name, int64_t bytes, int64_t offset, int64_t size,
                           stk_error *err)
{
    stki_tar_entry entry = {.offset = offset, .size = size};
    int64_t key_bytes, extension_at, current = -1;
    const char *key = NULL;
    stk_status status = STK_OK;

    if (!stki_tar_split_name(name, bytes, &key_bytes, &extension_at) ||
        bytes - extension_at >= STKI_TAR_EXTENSION_NAME) {
        b->skipped++;
        return STK_OK;
    }
    status = check_plain(b, name, bytes, offset, err);
    if (status)
        return status;
    if (b->entries.count >= UINT32_MAX - 1)
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){b->file->path, -1, offset, NULL, "fewer than 2^32"},
                            "too many files");
    if (b->first.count > 0)
        key = current_key(b, &current);
    if (current != key_bytes || memcmp(key, name, (size_t)key_bytes) != 0)
        status = begin_sample(b, name, key_bytes, err);
    if (!status)
        status = extension_number(b, name + extension_at, bytes - extension_at, &entry.extension, err);
    if (!status)
        status = check_twice(b, entry.extension, offset, err);
    if (!status && stki_tar_kind_of(b->extensions[entry.extension].name) == STKI_TAR_IMAGE)
        status = note_size(b, &entry, err);
    if (!status)
        status = reserve(&b->entries, 1, sizeof entry, err);
    if (status)
        return status;
    ((stki_tar_entry *)b->entries.data)[b->entries.count++] = entry;
    count_file(&b->extensions[entry.extension], size);
    return STK_OK;
}

/* ---- members -------------------------------------------------------------------------------------------------------
 */

/* The data of an extended header, with a NUL behind it. */
static stk_status read_extra(struct builder *b, int64_t offset, int64_t size, char **out, stk_error *err)
{
    stk_status status;
    char *text;

    if (size > STKI_TAR_EXTRA_LIMIT)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){b->file->path, -1, offset, STKI_TEXT("%" PRId64 " bytes", size),
                                         STKI_TEXT("at most %d", STKI_TAR_EXTRA_LIMIT)},
                            "a long name or pax header");
    text = stki_zalloc(size + 1);
    if (!text)
        return stki_fail_memory(err, size + 1, "a long name");
    status = stki_file_read(b->file, offset, text, size, err);
    if (status) {
        stki_free(text);
        return status;
    }
    stki_free(*out);
    *out = text;
    return STK_OK;
}

static stk_status take_extra(struct builder *b, const stki_tar_header *header, int64_t offset, stk_error *err)
{
    char *unused = NULL;
    stk_status status;

    b->pending = b->pending || header->what != STKI_TAR_PAX_GLOBAL;
    switch (header->what) {
    case STKI_TAR_LONG_NAME:
        status = read_extra(b, offset, header->size, &b->long_name, err);
        b->long_bytes = status ? 0 : (int64_t)strlen(b->long_name);
        return status;
    case STKI_TAR_LONG_LINK:
        status = read_extra(b, offset, header->size, &unused, err);
        stki_free(unused);
        return status;
    case STKI_TAR_PAX:
        b->pax = (stki_tar_pax){.size = -1};
        status = read_extra(b, offset, header->size, &b->pax_text, err);
        return status ? status : stki_tar_read_pax(b->pax_text, header->size, offset, b->file->path, &b->pax, err);
    default:
        b->global = (stki_tar_pax){.size = -1}; /* its text goes */
        status = read_extra(b, offset, header->size, &b->global_text, err);
        return status ? status
                      : stki_tar_read_pax(b->global_text, header->size, offset, b->file->path, &b->global, err);
    }
}

static void forget_extra(struct builder *b)
{
    stki_free(b->long_name);
    stki_free(b->pax_text);
    b->long_name = b->pax_text = NULL;
    b->long_bytes = 0;
    b->pax = (stki_tar_pax){.size = -1};
    b->pending = false;
}

/* The name that counts: pax, GNU, the header's own. */
static const char *name_of(const struct builder *b, const stki_tar_header *header, int64_t *bytes)
{
    const stki_tar_pax *pax = b->pax.path ? &b->pax : &b->global;

    if (b->pax.path || (!b->long_name && pax->path)) {
        *bytes = pax->path_bytes;
        return pax->path;
    }
    if (b->long_name) {
        *bytes = b->long_bytes;
        return b->long_name;
    }
    *bytes = (int64_t)strlen(header->name);
    return header->name;
}

static stk_status fail_cut(const struct builder *b, int64_t offset, int64_t size, stk_error *err)
{
    return stki_fail_at(err, STK_E_TRUNCATED,
                        (stki_place){b->file->path, -1, offset, STKI_TEXT("%" PRId64 " bytes", b->file->size - offset),
                                     STKI_TEXT("%" PRId64 " bytes of a member", size)},
                        "the archive ends too early");
}

/* The member whose header lies at *offset; moves it to the next one. */
static stk_status take_member(struct builder *b, int64_t *offset, bool *end, stk_error *err)
{
    unsigned char block[STKI_TAR_BLOCK];
    stki_tar_header header;
    int64_t data = *offset + STKI_TAR_BLOCK, size;
    stk_status status = stki_file_read(b->file, *offset, block, sizeof block, err);

    if (!status)
        status = stki_tar_read_header(block, *offset, b->file->path, &header, err);
    if (status)
        return status;
    *end = header.what == STKI_TAR_END;
    if (*end)
        return STK_OK;
    size = header.size;
    if (header.what == STKI_TAR_FILE)
        size = b->pax.size >= 0 ? b->pax.size : b->global.size >= 0 ? b->global.size : size;
    if (!stki_inside(data, size, b->file->size))
        return fail_cut(b, data, size, err);
    if (header.what == STKI_TAR_FILE) {
        int64_t bytes;
        const char *name = name_of(b, &header, &bytes);

        status = add_file(b, name, bytes, data, size, err);
    }
    if (header.what == STKI_TAR_FILE || header.what == STKI_TAR_SKIP)
        forget_extra(b);
    else
        status = take_extra(b, &header, data, err);
    *offset = data + stki_round_up(size, STKI_TAR_BLOCK);
    return status;
}

static stk_status take_all(struct builder *b, stk_error *err)
{
    int64_t offset = 0, size = b->file->size;
    bool end = false;
    stk_status status = STK_OK;

    if (size == 0)
        return stki_fail_at(err, STK_E_TRUNCATED, (stki_place){b->file->path, -1, 0, "an empty file", NULL},
                            "not a tar archive");
    while (!status && !end && offset < size) {
        if (size - offset < STKI_TAR_BLOCK)
            return fail_cut(b, offset, STKI_TAR_BLOCK, err);
        status = take_member(b, &offset, &end, err);
    }
    if (!status && b->pending)
        return stki_fail_at(err, STK_E_TRUNCATED, (stki_place){b->file->path, -1, offset, NULL, NULL},
                            "the archive ends behind a header that names its next member");
    return status;
}

/* ---- the index -----------------------------------------------------------------------------------------------------
 */

static stk_status finish(struct builder *b, stki_tar_index *out, stk_error *err)
{
    stk_status status = reserve(&b->first, 1, sizeof(uint32_t), err);

    if (!status)
        status = reserve(&b->key_at, 1, sizeof(int64_t), err);
    if (status)
        return status;
    ((uint32_t *)b->first.data)[b->first.count] = (uint32_t)b->entries.count;
    ((int64_t *)b->key_at.data)[b->first.count] = b->keys.count;
    *out = (stki_tar_index){.sample_count = b->first.count,
                            .entry_count = b->entries.count,
                            .key_bytes = b->keys.count,
                            .extension_count = b->extension_count,
                            .skipped = b->skipped,
                            .extensions = b->extensions,
                            .first = b->first.data,
                            .entries = b->entries.data,
                            .key_at = b->key_at.data,
                            .keys = b->keys.data,
                            .blocks = {b->first.data, b->entries.data, b->key_at.data, b->keys.data, b->extensions},
                            .source = "built"};
    return STK_OK;
}

stk_status stki_tar_index_build(const stki_file *file, stki_tar_index *out, stk_error *err)
{
    struct builder b = {.file = file, .pax = {.size = -1}, .global = {.size = -1}};
    stk_status status = take_all(&b, err);

    if (!status)
        status = finish(&b, out, err);
    forget_extra(&b);
    stki_free(b.global_text);
    stki_free(b.head);
    if (status) {
        stki_tar_index half = {.blocks = {b.first.data, b.entries.data, b.key_at.data, b.keys.data, b.extensions}};

        stki_tar_index_fini(&half);
    }
    return status;
}

void stki_tar_index_fini(stki_tar_index *index)
{
    for (int i = 0; i < 5; i++)
        stki_free(index->blocks[i]);
    stki_file_close(index->kept);
    *index = (stki_tar_index){0};
}

static const char *shown_key(const stki_tar_index *index, int64_t sample, char *buffer, int size)
{
    int64_t from = index->key_at[sample], to = index->key_at[sample + 1];

    if (from < 0 || to < from || to > index->key_bytes)
        return "?";
    return stki_npy_printable(buffer, size, index->keys + from, to - from);
}

static stk_status fail_kept(const stki_file *file, int64_t sample, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){file->path, sample, -1, NULL, NULL},
                        "its kept index does not belong to it: remove the index");
}

stk_status stki_tar_index_find(const stki_tar_index *index, const stki_file *file, int64_t sample, int extension,
                               const stki_tar_entry **out, stk_error *err)
{
    uint32_t from = index->first[sample], to = index->first[sample + 1];
    char shown[KEY_SHOWN];

    if (from > to || to > index->entry_count)
        return fail_kept(file, sample, err);
    for (uint32_t i = from; i < to; i++) {
        const stki_tar_entry *entry = &index->entries[i];

        if (entry->extension != (uint32_t)extension)
            continue;
        if (!stki_inside(entry->offset, entry->size, file->size))
            return fail_kept(file, sample, err);
        *out = entry;
        return STK_OK;
    }
    return stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){file->path, sample, -1, NULL, NULL}, "sample %s has no .%s",
                        shown_key(index, sample, shown, sizeof shown), index->extensions[extension].name);
}
