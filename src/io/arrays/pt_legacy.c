/* pt_legacy.c: see pt_legacy.h. Five consecutive pickles, then the storages:
 *
 *     a magic number, the protocol 1001, properties of the machine, the saved object, the keys of the storages
 *     for each key: the number of elements (8 bytes, little-endian), the elements (little-endian)
 *
 * The size of an element is given only in the object's pickle, where it refers to the storage. Storages that are views
 * of others (before torch 0.4) are rejected. */
#include "pt_legacy.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROTOCOL = 1001, SIZE_BYTES = 8 };

static const unsigned char magic[] = {0x80, 0x02, 0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46,
                                      0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19, 0x2E};

struct reading {
    const stki_file *file;
    char *bytes; /* the pickles, and possibly more */
    int64_t length, at;
    stk_error *err;
};

/* A reference to a storage in the object's pickle. */
struct reference {
    const char *key;
    int64_t key_bytes;
    int64_t count, bytes; /* number of elements, and their size */
};

bool stki_pt_is_legacy(const void *head, int64_t length)
{
    return length >= (int64_t)sizeof magic && !memcmp(head, magic, sizeof magic);
}

static stk_status fail(const struct reading *r, stk_status status, const char *what, const char *found,
                       const char *expected)
{
    return stki_fail_at(r->err, status, (stki_place){r->file->path, -1, r->at, found, expected}, "%s", what);
}

/* ---- pickles ---- */

static stk_status next_pickle(struct reading *r, stki_pt_pickle *out)
{
    char *label = stki_format("%s: the pickle at %" PRId64, r->file->path, r->at);
    stk_status status;

    if (!label)
        return stki_fail_memory(r->err, 0, "a pickle");
    status = stki_pt_unpickle(r->bytes + r->at, r->length - r->at, label, out, r->err);
    stki_free(label);
    if (status == STK_E_TRUNCATED && r->length < r->file->size)
        return fail(r, STK_E_LIMIT, "the pickles are too long", NULL,
                    STKI_TEXT("at most %" PRId64 " bytes (header_limit)", r->length));
    if (status == STK_OK)
        r->at += out->bytes;
    return status;
}

static stk_status read_protocol(struct reading *r)
{
    const int64_t began = r->at;
    stki_pt_pickle pickle;
    const stki_pt_value *value;
    stk_status status = next_pickle(r, &pickle);

    if (status != STK_OK)
        return status;
    value = &pickle.values[pickle.root];
    if (value->kind != STKI_PT_INT || value->integer != PROTOCOL) {
        r->at = began;
        status = fail(r, STK_E_UNSUPPORTED, "unsupported protocol of the legacy format",
                      value->kind == STKI_PT_INT ? STKI_TEXT("%" PRId64, value->integer) : "a value of another type",
                      STKI_TEXT("%d", PROTOCOL));
    }
    stki_pt_pickle_free(&pickle);
    return status;
}

/* Properties of the machine; ignored, because data is always little-endian. */
static stk_status skip_machine(struct reading *r)
{
    stki_pt_pickle pickle;
    stk_status status = next_pickle(r, &pickle);

    if (status == STK_OK)
        stki_pt_pickle_free(&pickle);
    return status;
}

/* ---- storages ---- */

static int by_key(const void *a, const void *b)
{
    const struct reference *x = a, *y = b;
    const int order = memcmp(x->key, y->key, (size_t)(x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes));

    return order ? order : x->key_bytes < y->key_bytes ? -1 : x->key_bytes > y->key_bytes;
}

static stk_status add_reference(const struct reading *r, const stki_pt_pickle *pickle, const stki_pt_value *stored,
                                struct reference *to)
{
    const stki_pt_global *class = stki_pt_item(pickle, stored, 1)->global;
    const stki_pt_value *key = stki_pt_item(pickle, stored, 2);
    const int64_t size = class->role == STKI_PT_UNTYPED ? 1 : stk_dtype_size(class->dtype);

    *to = (struct reference){key->text, key->length, stki_pt_item(pickle, stored, 4)->integer, 0};
    if (size == 0)
        return fail(r, STK_E_UNSUPPORTED, "a storage of an unsupported type", class->name, NULL);
    if (!stki_mul(to->count, size, &to->bytes))
        return fail(r, STK_E_CORRUPT, "the storage is too large", STKI_TEXT("%" PRId64 " elements", to->count),
                    "a size in bytes that fits in 63 bits");
    return STK_OK;
}

/* *out is sorted by key; the caller frees it with stki_free. */
static stk_status find_references(const struct reading *r, const stki_pt_pickle *pickle, struct reference **out,
                                  int64_t *count)
{
    stk_status status = STK_OK;

    *count = 0;
    for (int32_t i = 0; i < pickle->count; i++)
        *count += pickle->values[i].kind == STKI_PT_STORED;
    *out = stki_zalloc_array(*count ? *count : 1, sizeof **out);
    if (!*out)
        return stki_fail_memory(r->err, *count * (int64_t)sizeof **out, "the storages of a file");
    *count = 0;
    for (int32_t i = 0; i < pickle->count && status == STK_OK; i++)
        if (pickle->values[i].kind == STKI_PT_STORED)
            status = add_reference(r, pickle, &pickle->values[i], &(*out)[(*count)++]);
    qsort(*out, (size_t)*count, sizeof **out, by_key);
    return status;
}

/* Locates the storage of this key, which follows its number of elements at r->at. */
static stk_status take_storage(struct reading *r, const stki_pt_value *key, const struct reference *references,
                               int64_t count, stki_zip_entry *entry)
{
    const struct reference wanted = {key->text, key->length, 0, 0},
                           *found = bsearch(&wanted, references, (size_t)count, sizeof *references, by_key);
    uint8_t size[SIZE_BYTES];
    uint64_t elements = 0;
    stk_status status;

    if (!found)
        return fail(r, STK_E_CORRUPT, "a storage that the pickle does not refer to",
                    STKI_TEXT("key %.*s", (int)(key->length < 20 ? key->length : 20), key->text), NULL);
    if (!stki_inside(r->at, SIZE_BYTES, r->file->size))
        return fail(r, STK_E_TRUNCATED, "the file ends before a storage", STKI_TEXT("%" PRId64 " bytes", r->file->size),
                    NULL);
    if ((status = stki_file_read(r->file, r->at, size, SIZE_BYTES, r->err)) != STK_OK)
        return status;
    for (int i = SIZE_BYTES - 1; i >= 0; i--)
        elements = elements << 8 | size[i];
    if (elements != (uint64_t)found->count)
        return fail(r, STK_E_CORRUPT, "wrong number of elements in a storage", STKI_TEXT("%" PRIu64, elements),
                    STKI_TEXT("%" PRId64 ", as in the pickle", found->count));
    r->at += SIZE_BYTES;
    if (!stki_inside(r->at, found->bytes, r->file->size))
        return fail(r, STK_E_TRUNCATED, "the file ends inside a storage",
                    STKI_TEXT("%" PRId64 " bytes", r->file->size - r->at), STKI_TEXT("%" PRId64, found->bytes));
    entry->size = entry->compressed = found->bytes;
    entry->header = r->at;
    entry->method = STKI_ZIP_STORED;
    r->at += found->bytes;
    return STK_OK;
}

static stk_status list_storages(struct reading *r, const stki_pt_pickle *keys, const struct reference *references,
                                int64_t reference_count, stki_zip *out)
{
    const stki_pt_value *list = &keys->values[keys->root];
    const int64_t name_bytes = (int64_t)sizeof STKI_PT_LEGACY_ROOT "/data/" + 20;
    stk_status status = STK_OK;

    if (list->kind != STKI_PT_LIST)
        return fail(r, STK_E_CORRUPT, "invalid list of storage keys", "a value of another type", "a list");
    *out = (stki_zip){.file = r->file, .count = list->count, .end = r->file->size, .crc_optional = true};
    out->entries = stki_zalloc_array(list->count ? list->count : 1, sizeof *out->entries);
    out->directory = stki_zalloc_array(list->count ? list->count : 1, (size_t)name_bytes);
    if (!out->entries || !out->directory)
        return stki_fail_memory(r->err, list->count * name_bytes, "the storages of a file");
    for (int32_t i = 0; i < list->count && status == STK_OK; i++) {
        const stki_pt_value *key = stki_pt_item(keys, list, i);
        char *name = out->directory + i * name_bytes;

        if (key->kind != STKI_PT_TEXT || key->length > 20)
            return fail(r, STK_E_CORRUPT, "invalid storage key", "something else", "up to 20 digits");
        memcpy(name, STKI_PT_LEGACY_ROOT "/data/", sizeof STKI_PT_LEGACY_ROOT "/data/" - 1);
        memcpy(name + strlen(name), key->text, (size_t)key->length);
        out->entries[i].name = name;
        status = take_storage(r, key, references, reference_count, &out->entries[i]);
    }
    return status;
}

/* ---- the file ---- */

static stk_status read_storages(struct reading *r, const stki_pt_pickle *object, stki_zip *out)
{
    struct reference *references = NULL;
    stki_pt_pickle keys;
    int64_t count;
    stk_status status = next_pickle(r, &keys);

    if (status != STK_OK)
        return status;
    status = find_references(r, object, &references, &count);
    if (status == STK_OK)
        status = list_storages(r, &keys, references, count, out);
    if (status != STK_OK)
        stki_zip_close(out);
    stki_free(references);
    stki_pt_pickle_free(&keys);
    return status;
}

static stk_status read_all(struct reading *r, stki_pt_legacy *out, stki_zip *storages)
{
    stk_status status = stki_file_read(r->file, 0, r->bytes, r->length, r->err);

    r->at = sizeof magic;
    if (status == STK_OK)
        status = read_protocol(r);
    if (status == STK_OK)
        status = skip_machine(r);
    if (status == STK_OK)
        status = next_pickle(r, &out->pickle);
    if (status != STK_OK)
        return status;
    status = read_storages(r, &out->pickle, storages);
    if (status != STK_OK)
        stki_pt_pickle_free(&out->pickle);
    return status;
}

stk_status stki_pt_legacy_open(const stki_file *file, int64_t limit, stki_pt_legacy *out, stki_zip *storages,
                               stk_error *err)
{
    struct reading r = {.file = file, .length = file->size < limit ? file->size : limit, .err = err};
    stk_status status;

    *out = (stki_pt_legacy){0};
    *storages = (stki_zip){0};
    r.bytes = out->bytes = stki_resize(NULL, r.length + 1);
    if (!r.bytes)
        return stki_fail_memory(err, r.length, "a pickle");
    status = read_all(&r, out, storages);
    if (status != STK_OK)
        stki_free(r.bytes);
    return status;
}

void stki_pt_legacy_fini(stki_pt_legacy *legacy)
{
    stki_pt_pickle_free(&legacy->pickle);
    stki_free(legacy->bytes);
}
