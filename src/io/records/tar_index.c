/* tar_index.c: builds the index of a tar archive. One pass over the headers locates the files of every sample; archives
 * with hard links need a second pass, which keeps the names of all members. For images, the size in pixels is also
 * recorded. Tar archives have no directory, so the pass has to read every header, and the index can therefore be cached
 * (tar_cache.c).
 *
 * The archive ends with a block of zeros, or at the end of the file after a complete member; data after a block of
 * zeros is not read, but counted. A header with a wrong checksum is always an error, because a program that merely
 * stops there silently loses the rest of the archive. */
#include "allocate.h"
#include "checked.h"
#include "decode.h"
#include "error.h"
#include "npy_header.h"
#include "tar.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum {
    IMAGE_HEAD = 64 << 10 /* bytes read for an image's size if the archive is not mapped */,
    LARGEST_RECORD = 1 << 20 /* no tar program pads an archive by more */,
    KEY_SHOWN = 64
};

/* A member to which a hard link may refer. */
struct named {
    int64_t offset, size;
    bool sparse;
};

struct builder {
    const stki_file *file;
    stki_tar_array first, entries, key_at, keys, runs;
    stki_tar_extension *extensions;
    int extension_count;
    int64_t skipped, links, hard_links, others;
    int64_t end, beyond; /* as in stki_tar_index */
    /* Maps the names of all members to indexes in `named`. Filled only in a second pass, if the first one found a hard
     * link. */
    json_t *names;
    stki_tar_array named;
    /* from extended headers that apply to the next member */
    char *long_name, *long_link;
    char *pax_text, *global_text;
    int64_t pax_bytes, pax_offset;
    stki_tar_pax pax, global;
    bool pending; /* an extended header was read, so its member must follow */
    void *head;   /* IMAGE_HEAD bytes, allocated at first use */
};

/* ---- samples ---- */

static const char *current_key(const struct builder *b, int64_t *bytes)
{
    const int64_t *at = b->key_at.data;
    int64_t start = at[b->key_at.count - 1];

    *bytes = b->keys.count - start;
    return (const char *)b->keys.data + start;
}

static stk_status begin_sample(struct builder *b, const char *key, int64_t bytes, stk_error *err)
{
    stk_status status = stki_tar_reserve(&b->first, 2, sizeof(uint32_t), err);

    if (status == STK_OK)
        status = stki_tar_reserve(&b->key_at, 2, sizeof(int64_t), err);
    if (status == STK_OK)
        status = stki_tar_reserve(&b->keys, bytes, 1, err);
    if (status != STK_OK)
        return status;
    ((uint32_t *)b->first.data)[b->first.count++] = (uint32_t)b->entries.count;
    ((int64_t *)b->key_at.data)[b->key_at.count++] = b->keys.count;
    memcpy((char *)b->keys.data + b->keys.count, key, (size_t)bytes);
    b->keys.count += bytes;
    return STK_OK;
}

/* Finds or adds an extension and returns its number. `text` is not NUL-terminated. */
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
                            "too many different file name extensions");
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
                                             STKI_TEXT("a second .%s", b->extensions[extension].name),
                                             "at most one file per extension"},
                                "sample %s has several files with the same extension",
                                stki_npy_printable(shown, sizeof shown, key, bytes));
    return STK_OK;
}

/* Records the size of an image. If it cannot be determined, reading the image will fail. */
static stk_status note_size(struct builder *b, stki_tar_entry *entry, stk_error *err)
{
    static const stki_decode_opts as_stored;
    int64_t count = entry->size;
    stki_image_info info;
    const void *bytes = stki_tar_index_mapped(b->file, entry);

    if (!bytes) {
        stk_status status;

        if (!b->head)
            b->head = stki_zalloc(IMAGE_HEAD);
        if (!b->head)
            return stki_fail_memory(err, IMAGE_HEAD, "the beginning of an image");
        count = count < IMAGE_HEAD ? count : IMAGE_HEAD;
        status = stki_tar_runs_read(b->runs.data, b->runs.count, b->file, entry, 0, b->head, count, err);
        if (status != STK_OK)
            return status;
        bytes = b->head;
    }
    if (stki_image_info_of(bytes, count, &as_stored, &info, NULL) != STK_OK)
        return STK_OK;
    entry->height = (uint32_t)info.stored_height;
    entry->width = (uint32_t)info.stored_width;
    entry->orientation = (uint16_t)info.orientation;
    return STK_OK;
}

/* Whether a member with this name is part of a sample. */
static bool splits(stki_tar_text name, int64_t *key_bytes, int64_t *extension_at)
{
    return stki_tar_split_name(name.text, name.bytes, key_bytes, extension_at) &&
           name.bytes - *extension_at < STKI_TAR_EXTENSION_NAME;
}

static void count_file(stki_tar_extension *extension, int64_t size)
{
    extension->count++;
    extension->smallest = size < extension->smallest ? size : extension->smallest;
    extension->largest = size > extension->largest ? size : extension->largest;
}

/* Adds a file to the current sample or to a new one. `member`: location of its data, and whether it is sparse.
 * `header`: offset after its header, for messages. */
static stk_status add_file(struct builder *b, stki_tar_text name, int64_t header, const struct named *member,
                           stk_error *err)
{
    stki_tar_entry entry = {.offset = member->offset, .size = member->size, .sparse = member->sparse};
    int64_t key_bytes, extension_at, current = -1;
    const char *key = NULL;
    stk_status status = STK_OK;

    if (!splits(name, &key_bytes, &extension_at)) {
        b->skipped++;
        return STK_OK;
    }
    if (b->entries.count >= UINT32_MAX - 1)
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){b->file->path, -1, header, NULL, "fewer than 2^32"},
                            "too many files");
    if (b->first.count > 0)
        key = current_key(b, &current);
    if (current != key_bytes || memcmp(key, name.text, (size_t)key_bytes) != 0)
        status = begin_sample(b, name.text, key_bytes, err);
    if (status == STK_OK)
        status = extension_number(b, name.text + extension_at, name.bytes - extension_at, &entry.extension, err);
    if (status == STK_OK)
        status = check_twice(b, entry.extension, header, err);
    if (status == STK_OK && stki_tar_kind_of(b->extensions[entry.extension].name) == STKI_TAR_IMAGE)
        status = note_size(b, &entry, err);
    if (status == STK_OK)
        status = stki_tar_reserve(&b->entries, 1, sizeof entry, err);
    if (status != STK_OK)
        return status;
    ((stki_tar_entry *)b->entries.data)[b->entries.count++] = entry;
    count_file(&b->extensions[entry.extension], entry.size);
    return STK_OK;
}

/* ---- members ---- */

/* Reads the data of an extended header and NUL-terminates it. */
static stk_status read_extra(struct builder *b, int64_t offset, int64_t size, char **out, stk_error *err)
{
    stk_status status;
    char *text;

    if (size > STKI_TAR_EXTRA_LIMIT)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){b->file->path, -1, offset, STKI_TEXT("%" PRId64 " bytes", size),
                                         STKI_TEXT("at most %d", STKI_TAR_EXTRA_LIMIT)},
                            "the name or pax header is too long");
    text = stki_zalloc(size + 1);
    if (!text)
        return stki_fail_memory(err, size + 1, "a long name");
    status = stki_file_read(b->file, offset, text, size, err);
    if (status != STK_OK) {
        stki_free(text);
        return status;
    }
    stki_free(*out);
    *out = text;
    return STK_OK;
}

static stk_status take_extra(struct builder *b, const stki_tar_header *header, int64_t offset, stk_error *err)
{
    stk_status status;

    b->pending = b->pending || header->what != STKI_TAR_PAX_GLOBAL;
    switch (header->what) {
    case STKI_TAR_LONG_NAME:
        return read_extra(b, offset, header->size, &b->long_name, err);
    case STKI_TAR_LONG_LINK:
        return read_extra(b, offset, header->size, &b->long_link, err);
    case STKI_TAR_PAX:
        b->pax = STKI_TAR_NO_PAX;
        b->pax_bytes = header->size;
        b->pax_offset = offset;
        status = read_extra(b, offset, header->size, &b->pax_text, err);
        return status != STK_OK ? status
                                : stki_tar_read_pax(b->pax_text, header->size, offset, b->file->path, &b->pax, err);
    default:
        b->global = STKI_TAR_NO_PAX; /* removes references to the text that is about to be freed */
        status = read_extra(b, offset, header->size, &b->global_text, err);
        return status != STK_OK
                   ? status
                   : stki_tar_read_pax(b->global_text, header->size, offset, b->file->path, &b->global, err);
    }
}

static void forget_extra(struct builder *b)
{
    stki_free(b->long_name);
    stki_free(b->long_link);
    stki_free(b->pax_text);
    b->long_name = b->long_link = b->pax_text = NULL;
    b->pax = STKI_TAR_NO_PAX;
    b->pending = false;
}

/* Selects a value by precedence: pax, GNU, global pax, the header itself. */
static stki_tar_text which(const stki_tar_text *pax, const char *gnu, const stki_tar_text *global, const char *own)
{
    if (pax->text)
        return *pax;
    if (gnu)
        return (stki_tar_text){gnu, (int64_t)strlen(gnu)};
    return global->text ? *global : (stki_tar_text){own, (int64_t)strlen(own)};
}

static stki_tar_text name_of(const struct builder *b, const stki_tar_header *header)
{
    return b->pax.sparse_path.text ? b->pax.sparse_path
                                   : which(&b->pax.path, b->long_name, &b->global.path, header->name);
}

static stk_status fail_cut(const struct builder *b, int64_t offset, int64_t size, stk_error *err)
{
    return stki_fail_at(err, STK_E_TRUNCATED,
                        (stki_place){b->file->path, -1, offset, STKI_TEXT("%" PRId64 " bytes", b->file->size - offset),
                                     STKI_TEXT("%" PRId64 " bytes of a member", size)},
                        "the archive is truncated");
}

/* Reports a member whose stored bytes are not the bytes of the file, as `record` shows. */
static stk_status fail_encoded(const struct builder *b, stki_tar_text name, int64_t offset, stki_tar_text record,
                               stk_error *err)
{
    char shown[STKI_TAR_NAME], key[KEY_SHOWN];

    return stki_fail_at(
        err, STK_E_UNSUPPORTED,
        (stki_place){b->file->path, -1, offset,
                     STKI_TEXT("pax record %s", stki_npy_printable(key, sizeof key, record.text, record.bytes)),
                     "the bytes of a whole file"},
        "member %s is part of a file that spans several archives, or sparse in an unsupported format: write the "
        "archive without "
        "--multi-volume and --sparse",
        stki_npy_printable(shown, sizeof shown, name.text, name.bytes));
}

/* Locates the bytes of a file whose data starts at member->offset. `block` is its header. */
static stk_status place_data(struct builder *b, const stki_tar_header *header, const unsigned char *block,
                             stki_tar_text name, struct named *member, stk_error *err)
{
    static const char star[] = "SCHILY.realsize", gnu[] = "GNU.sparse.size";
    const stki_tar_pax *pax = &b->pax;
    stki_tar_sparse sparse = {member->offset, member->size, member->size, b->pax_text, b->pax_bytes, b->pax_offset};
    int64_t data_at = member->offset;
    stk_status status = STK_OK;

    if (pax->encoded.text || b->global.encoded.text)
        return fail_encoded(b, name, data_at, pax->encoded.text ? pax->encoded : b->global.encoded, err);
    member->sparse = true;
    if (header->what == STKI_TAR_SPARSE) {
        status = stki_tar_sparse_gnu(b->file, block, &sparse, &b->runs, err);
    } else if (pax->map != STKI_TAR_MAP_NONE) {
        sparse.size = pax->real_size >= 0 ? pax->real_size : member->size;
        status = stki_tar_sparse_pax(b->file, pax, &sparse, &b->runs, err);
    } else {
        member->sparse = false;
        if (pax->real_size >= 0 && pax->real_size != member->size)
            return fail_encoded(b, name, data_at, (stki_tar_text){gnu, sizeof gnu - 1}, err);
    }
    if (status == STK_OK && pax->star_size >= 0 && pax->star_size != sparse.size)
        return fail_encoded(b, name, data_at, (stki_tar_text){star, sizeof star - 1}, err);
    member->offset = sparse.offset;
    member->size = sparse.size;
    return status;
}

/* Removes leading "./". */
static const char *plain_name(const char *name)
{
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return name;
}

static stk_status remember(struct builder *b, stki_tar_text name, const struct named *member, stk_error *err)
{
    stk_status status;
    char *text;

    if (!b->names)
        return STK_OK;
    status = stki_tar_reserve(&b->named, 1, sizeof *member, err);
    if (status != STK_OK)
        return status;
    text = stki_format("%.*s", (int)name.bytes, name.text);
    if (!text || json_object_set_new_nocheck(b->names, plain_name(text), json_integer(b->named.count)))
        status = stki_fail_memory(err, name.bytes, "the name of a member");
    else
        ((struct named *)b->named.data)[b->named.count++] = *member;
    stki_free(text);
    return status;
}

static stk_status take_file(struct builder *b, const stki_tar_header *header, const unsigned char *block,
                            int64_t header_at, int64_t size, stk_error *err)
{
    struct named member = {header_at + STKI_TAR_BLOCK, size, false};
    stki_tar_text name = name_of(b, header);
    int64_t key_bytes, extension_at, runs = b->runs.count;
    bool wanted = splits(name, &key_bytes, &extension_at);
    stk_status status = STK_OK;

    if (wanted || b->names)
        status = place_data(b, header, block, name, &member, wanted ? err : NULL);
    if (status != STK_OK && !wanted) {
        b->skipped++;
        b->runs.count = runs; /* removes the runs read before the error */
        return STK_OK;        /* links to it are skipped as well */
    }
    if (status == STK_OK)
        status = add_file(b, name, header_at + STKI_TAR_BLOCK, &member, err);
    return status == STK_OK ? remember(b, name, &member, err) : status;
}

static stk_status take_hard_link(struct builder *b, const stki_tar_header *header, int64_t offset, stk_error *err)
{
    stki_tar_text target = which(&b->pax.link, b->long_link, &b->global.link, header->link), name = name_of(b, header);
    char *text;
    json_t *number;
    struct named member;
    stk_status status;

    b->hard_links++;
    if (!b->names)
        return STK_OK; /* handled in the second pass */
    text = stki_format("%.*s", (int)target.bytes, target.text);
    if (!text)
        return stki_fail_memory(err, target.bytes, "the name of a member");
    number = json_object_get(b->names, plain_name(text));
    stki_free(text);
    if (!number) {
        b->links++;
        return STK_OK;
    }
    member = ((const struct named *)b->named.data)[json_integer_value(number)];
    status = add_file(b, name, offset + STKI_TAR_BLOCK, &member, err);
    return status == STK_OK ? remember(b, name, &member, err) : status;
}

/* Returns the number of bytes stored after the header. */
static int64_t stored_bytes(const struct builder *b, const stki_tar_header *header)
{
    if (header->what != STKI_TAR_FILE && header->what != STKI_TAR_SPARSE && header->what != STKI_TAR_OTHER)
        return header->size;
    return b->pax.size >= 0 ? b->pax.size : b->global.size >= 0 ? b->global.size : header->size;
}

/* Returns the size of the additional map blocks of old GNU tar, which are between the header and the data. */
static int64_t map_bytes(const struct builder *b, const stki_tar_header *header, const unsigned char *block,
                         int64_t data)
{
    unsigned char next[STKI_TAR_BLOCK];
    int64_t bytes = 0;
    bool more = header->what == STKI_TAR_SPARSE && block[STKI_TAR_GNU_MORE] != 0;

    while (more && stki_file_read(b->file, data + bytes, next, sizeof next, NULL) == STK_OK) {
        more = next[STKI_TAR_GNU_BLOCK_MORE] != 0;
        bytes += STKI_TAR_BLOCK;
    }
    return bytes;
}

/* Processes the member whose header is at *offset, and advances *offset to the next header. */
static stk_status take_member(struct builder *b, int64_t *offset, bool *end, stk_error *err)
{
    unsigned char block[STKI_TAR_BLOCK];
    stki_tar_header header;
    int64_t header_at = *offset, data = header_at + STKI_TAR_BLOCK, size;
    stk_status status = stki_file_read(b->file, header_at, block, sizeof block, err);

    if (status == STK_OK)
        status = stki_tar_read_header(block, header_at, b->file->path, &header, err);
    if (status != STK_OK)
        return status;
    *end = header.what == STKI_TAR_END;
    if (*end)
        return STK_OK;
    size = stored_bytes(b, &header);
    data += map_bytes(b, &header, block, data);
    if (!stki_inside(data, size, b->file->size))
        return fail_cut(b, data, size, err);
    *offset = data + stki_round_up(size, STKI_TAR_BLOCK);
    switch (header.what) {
    case STKI_TAR_FILE:
    case STKI_TAR_SPARSE:
        status = take_file(b, &header, block, header_at, size, err);
        break;
    case STKI_TAR_HARD_LINK:
        status = take_hard_link(b, &header, header_at, err);
        break;
    case STKI_TAR_SYMLINK:
        b->links++;
        break;
    case STKI_TAR_SKIP:
        b->others += block[156] != '5'; /* folders are not counted */
        break;
    case STKI_TAR_OTHER:
        b->others++;
        break;
    default:
        return take_extra(b, &header, data, err);
    }
    forget_extra(b);
    return status;
}

/* Searches the padding after the end-of-archive marker at `end` for data, such as another archive. */
static stk_status find_beyond(struct builder *b, int64_t end, stk_error *err)
{
    static const unsigned char zeros[STKI_TAR_BLOCK];
    unsigned char block[STKI_TAR_BLOCK];
    int64_t at = end + STKI_TAR_BLOCK;

    b->end = end;
    for (; at < b->file->size && at - end <= LARGEST_RECORD; at += STKI_TAR_BLOCK) {
        const int64_t rest = b->file->size - at, bytes = rest < STKI_TAR_BLOCK ? rest : STKI_TAR_BLOCK;
        stk_status status = stki_file_read(b->file, at, block, bytes, err);

        if (status != STK_OK)
            return status;
        if (memcmp(block, zeros, (size_t)bytes) != 0) {
            b->beyond = rest;
            return STK_OK;
        }
    }
    return STK_OK;
}

static stk_status take_all(struct builder *b, stk_error *err)
{
    int64_t offset = 0, size = b->file->size;
    bool end = false;
    stk_status status = STK_OK;

    if (size == 0)
        return stki_fail_at(err, STK_E_TRUNCATED, (stki_place){b->file->path, -1, 0, "an empty file", NULL},
                            "not a tar archive");
    while (status == STK_OK && !end && offset < size) {
        if (size - offset < STKI_TAR_BLOCK)
            return fail_cut(b, offset, STKI_TAR_BLOCK, err);
        status = take_member(b, &offset, &end, err);
    }
    if (status == STK_OK && b->pending)
        return stki_fail_at(err, STK_E_TRUNCATED, (stki_place){b->file->path, -1, offset, NULL, NULL},
                            "the archive ends after an extended header, which must be followed by a member");
    return status == STK_OK && end ? find_beyond(b, offset, err) : status;
}

/* ---- building the index ---- */

static stk_status finish(struct builder *b, stki_tar_index *out, stk_error *err)
{
    stk_status status = stki_tar_reserve(&b->first, 1, sizeof(uint32_t), err);

    if (status == STK_OK)
        status = stki_tar_reserve(&b->key_at, 1, sizeof(int64_t), err);
    if (status != STK_OK)
        return status;
    ((uint32_t *)b->first.data)[b->first.count] = (uint32_t)b->entries.count;
    ((int64_t *)b->key_at.data)[b->first.count] = b->keys.count;
    *out = (stki_tar_index){
        .sample_count = b->first.count,
        .entry_count = b->entries.count,
        .key_bytes = b->keys.count,
        .extension_count = b->extension_count,
        .run_count = b->runs.count,
        .skipped = b->skipped,
        .links = b->links,
        .others = b->others,
        .end = b->end,
        .beyond = b->beyond,
        .extensions = b->extensions,
        .first = b->first.data,
        .entries = b->entries.data,
        .key_at = b->key_at.data,
        .keys = b->keys.data,
        .runs = b->runs.data,
        .blocks = {b->first.data, b->entries.data, b->key_at.data, b->keys.data, b->extensions, b->runs.data},
        .source = "built"};
    return STK_OK;
}

static stk_status build(const stki_file *file, bool names, int64_t *hard_links, stki_tar_index *out, stk_error *err)
{
    struct builder b = {.file = file, .end = -1, .pax = STKI_TAR_NO_PAX, .global = STKI_TAR_NO_PAX};
    stk_status status = STK_OK;

    b.names = names ? json_object() : NULL;
    if (names && !b.names)
        status = stki_fail_memory(err, 64, "the names of members");
    if (status == STK_OK)
        status = take_all(&b, err);
    if (status == STK_OK)
        status = finish(&b, out, err);
    *hard_links = b.hard_links;
    forget_extra(&b);
    stki_free(b.global_text);
    stki_free(b.head);
    stki_free(b.named.data);
    json_decref(b.names);
    if (status != STK_OK) {
        stki_tar_index half = {
            .blocks = {b.first.data, b.entries.data, b.key_at.data, b.keys.data, b.extensions, b.runs.data}};

        stki_tar_index_fini(&half);
    }
    return status;
}

stk_status stki_tar_index_build(const stki_file *file, stki_tar_index *out, stk_error *err)
{
    int64_t hard_links;
    stk_status status = build(file, false, &hard_links, out, err);

    if (status != STK_OK || hard_links == 0)
        return status;
    stki_tar_index_fini(out);
    return build(file, true, &hard_links, out, err);
}

void stki_tar_index_fini(stki_tar_index *index)
{
    for (size_t i = 0; i < sizeof index->blocks / sizeof *index->blocks; i++)
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
                        "the cached index does not match the archive: remove the index");
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
        if (entry->sparse ? entry->size < 0 || entry->offset < 0 : !stki_inside(entry->offset, entry->size, file->size))
            return fail_kept(file, sample, err);
        *out = entry;
        return STK_OK;
    }
    return stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){file->path, sample, -1, NULL, NULL},
                        "sample %s has no .%s file", shown_key(index, sample, shown, sizeof shown),
                        index->extensions[extension].name);
}
