/* safetensors.c: a length, a JSON object that names the tensors, and their bytes.
 *
 *     offset 0   8 bytes   N, little-endian
 *     offset 8   N bytes   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}, possibly followed
 *                          by spaces; "__metadata__" is an object of strings
 *     8 + N      data      to the end of the file; offsets count from here
 *
 * As in the original library, other keys of a tensor are ignored and "__metadata__" may be null. Duplicate names are
 * rejected; the original takes the last one.
 *
 * The tensors must cover the data without gaps or overlaps, so that all readers interpret a file the same way. Values
 * are little-endian in C order at any alignment and are used in place. */
#include "safetensors.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_LIMIT UINT64_C(100000000)

struct tensors {
    stki_container base; /* first member */
    stki_file *file;
    int64_t data; /* offset of the tensors' bytes in the file */
};

static stk_status fail(const struct tensors *t, stk_status status, int64_t offset, const char *what, const char *found,
                       const char *expected, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){t->base.path, -1, offset, found, expected}, "%s", what);
}

/* ---- one tensor ---- */

static const struct {
    const char *name;
    stk_dtype dtype;
} dtypes[] = {
    {"BOOL", STK_BOOL},       {"U8", STK_U8},   {"I8", STK_I8},   {"U16", STK_U16}, {"I16", STK_I16},
    {"U32", STK_U32},         {"I32", STK_I32}, {"U64", STK_U64}, {"I64", STK_I64}, {"F16", STK_F16},
    {"BF16", STK_BF16},       {"F32", STK_F32}, {"F64", STK_F64}, {"C64", STK_C64}, {"F8_E4M3", STK_F8_E4M3FN},
    {"F8_E5M2", STK_F8_E5M2},
};

/* Newer types, which are not supported; some are not whole bytes. */
static const char *const later[] = {"F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "F6_E2M3", "F6_E3M2"};

static stk_dtype find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!strcmp(dtypes[i].name, name))
            return dtypes[i].dtype;
    return STK_DTYPE_NONE;
}

static bool is_later(const char *name)
{
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (!strcmp(later[i], name))
            return true;
    return false;
}

struct item {
    const struct tensors *tensors;
    const char *name;
    const json_t *object;
    stki_array array;
    int64_t begin, end; /* byte range in the data */
    bool unsupported;   /* its dtype is not supported */
};

static stk_status fail_item(const struct item *item, stk_status status, const char *what, const char *found,
                            const char *expected, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){item->tensors->base.path, -1, -1, found, expected},
                        "tensor %.100s: %s", item->name, what);
}

static stk_status take_dtype(struct item *item, stk_error *err)
{
    const char *name = json_string_value(json_object_get(item->object, "dtype"));

    if (!name)
        return fail_item(item, STK_E_CORRUPT, "invalid dtype", "a value that is not a string", "a name such as F32",
                         err);
    item->array.dtype = find_dtype(name);
    item->unsupported = item->array.dtype == STK_DTYPE_NONE && is_later(name);
    if (item->array.dtype == STK_DTYPE_NONE && !item->unsupported)
        return fail_item(item, STK_E_CORRUPT, "invalid dtype", name, "a name such as F32", err);
    return STK_OK;
}

static stk_status take_shape(struct item *item, stk_error *err)
{
    const json_t *shape = json_object_get(item->object, "shape");
    size_t ndim = json_array_size(shape);

    if (!json_is_array(shape))
        return fail_item(item, STK_E_CORRUPT, "invalid shape", "a value that is not a list", "a list of sizes", err);
    if (ndim > STK_MAX_DIMS)
        return fail_item(item, STK_E_UNSUPPORTED, "too many axes", STKI_TEXT("%zu", ndim),
                         STKI_TEXT("at most %d", STK_MAX_DIMS), err);
    item->array.ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++) {
        const json_t *size = json_array_get(shape, i);

        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return fail_item(item, STK_E_CORRUPT, "invalid shape", STKI_TEXT("axis %zu", i), "non-negative integers",
                             err);
        item->array.shape[i] = json_integer_value(size);
    }
    return STK_OK;
}

static stk_status take_offsets(struct item *item, stk_error *err)
{
    const json_t *offsets = json_object_get(item->object, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    int64_t there = item->tensors->file->size - item->tensors->data;

    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return fail_item(item, STK_E_CORRUPT, "invalid data_offsets", NULL, "[begin, end], begin <= end", err);
    item->begin = json_integer_value(begin);
    item->end = json_integer_value(end);
    if (item->end > there)
        return fail_item(item, STK_E_TRUNCATED, "the data extends beyond the end of the file",
                         STKI_TEXT("%" PRId64 " bytes", there), STKI_TEXT("%" PRId64, item->end), err);
    return STK_OK;
}

static stk_status check_size(struct item *item, stk_error *err)
{
    int64_t bytes;
    stk_status status;

    if (item->unsupported)
        return STK_OK;
    item->array.offset = item->tensors->data + item->begin;
    status = stki_array_row_major(&item->array, &bytes, item->tensors->base.path, err);
    if (status != STK_OK || bytes == item->end - item->begin)
        return status;
    return fail_item(item, STK_E_CORRUPT, "data_offsets do not match the shape",
                     STKI_TEXT("%" PRId64 " bytes", item->end - item->begin), STKI_TEXT("%" PRId64, bytes), err);
}

static stk_status parse_item(struct item *item, stk_error *err)
{
    stk_status status;

    if (!json_is_object(item->object)) /* other keys are ignored, as in the original */
        return fail_item(item, STK_E_CORRUPT, "invalid entry", NULL, "an object of dtype, shape and data_offsets", err);
    status = take_dtype(item, err);
    if (status == STK_OK)
        status = take_shape(item, err);
    if (status == STK_OK)
        status = take_offsets(item, err);
    return status != STK_OK ? status : check_size(item, err);
}

static stk_status add_item(struct tensors *t, const struct item *item, stk_error *err)
{
    stki_member *member;
    stk_error why;
    stk_status status = stki_container_add(&t->base, item->name, item->array.ndim, item->array.shape, &member, err);

    if (status != STK_OK)
        return status;
    member->dtype = item->array.dtype;
    member->layout = "contiguous";
    member->offset = t->data + item->begin;
    if (!item->unsupported)
        return stki_member_set_strides(member, item->array.strides, err);
    (void)fail_item(item, STK_E_UNSUPPORTED, "unsupported dtype: convert the tensor to another one",
                    json_string_value(json_object_get(item->object, "dtype")), NULL, &why);
    stki_member_refuse(member, &why);
    return STK_OK;
}

/* ---- all tensors ---- */

struct span {
    int64_t begin, end;
    const char *name;
};

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Checks that every byte of the data belongs to exactly one tensor. */
static stk_status check_cover(const struct tensors *t, struct span *spans, size_t count, stk_error *err)
{
    int64_t at = 0, size = t->file->size - t->data;

    qsort(spans, count, sizeof *spans, by_begin);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin != at)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){t->base.path, -1, t->data + at,
                                             STKI_TEXT("offset %" PRId64, spans[i].begin), STKI_TEXT("%" PRId64, at)},
                                "tensor %.100s: %s", spans[i].name,
                                spans[i].begin > at ? "the bytes before it do not belong to a tensor"
                                                    : "it overlaps another tensor");
        at = spans[i].end;
    }
    if (at == size)
        return STK_OK;
    return fail(t, STK_E_CORRUPT, t->data + at, "bytes after the last tensor", STKI_TEXT("%" PRId64, size - at), "none",
                err);
}

static stk_status check_metadata(const struct tensors *t, json_t *metadata, stk_error *err)
{
    const char *key;
    json_t *value;

    if (json_is_null(metadata))
        return STK_OK;
    if (!json_is_object(metadata))
        return fail(t, STK_E_CORRUPT, 8, "__metadata__ is not an object", NULL, NULL, err);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return fail(t, STK_E_CORRUPT, 8, "__metadata__ has values that are not strings", key, "a string", err);
    }
    return STK_OK;
}

static stk_status take_tensors(struct tensors *t, json_t *header, struct span *spans, stk_error *err)
{
    size_t count = 0;
    const char *name;
    json_t *value;
    stk_status status = STK_OK;

    json_object_foreach(header, name, value)
    {
        struct item item = {.tensors = t, .name = name, .object = value};

        if (!strcmp(name, "__metadata__")) {
            status = check_metadata(t, value, err);
            if (status == STK_OK)
                t->base.details = json_is_null(value) ? NULL : json_pack("{s:O}", "metadata", value);
        } else {
            status = parse_item(&item, err);
            spans[count++] = (struct span){item.begin, item.end, name};
            if (status == STK_OK)
                status = add_item(t, &item, err);
        }
        if (status != STK_OK)
            return status;
    }
    return check_cover(t, spans, count, err);
}

static stk_status parse_header(struct tensors *t, const char *text, int64_t bytes, stk_error *err)
{
    json_error_t error;
    json_t *header;
    struct span *spans;
    stk_status status;

    header = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!json_is_object(header)) {
        json_decref(header);
        return fail(t, STK_E_CORRUPT, 8 + (error.position > 0 ? error.position : 0), "the header is not a JSON object",
                    error.text, NULL, err);
    }
    spans = stki_zalloc_array((int64_t)json_object_size(header) + 1, sizeof *spans);
    status = spans ? take_tensors(t, header, spans, err)
                   : stki_fail_memory(err, (int64_t)json_object_size(header), t->base.path);
    stki_free(spans);
    json_decref(header);
    return status;
}

static stk_status read_header(struct tensors *t, stk_error *err)
{
    unsigned char head[8];
    uint64_t bytes = 0;
    char *text;
    stk_status status;

    if (t->file->size < 8)
        return fail(t, STK_E_TRUNCATED, -1, "the file ends before its header",
                    STKI_TEXT("%" PRId64 " bytes", t->file->size), "at least 8", err);
    status = stki_file_read(t->file, 0, head, sizeof head, err);
    if (status != STK_OK)
        return status;
    for (int i = 7; i >= 0; i--)
        bytes = bytes << 8 | head[i];
    if (bytes > (uint64_t)t->file->size - 8)
        return fail(t, STK_E_TRUNCATED, 0, "the file ends inside its header",
                    STKI_TEXT("%" PRId64 " bytes", t->file->size - 8), STKI_TEXT("%" PRIu64, bytes), err);
    if (bytes > HEADER_LIMIT)
        return fail(t, STK_E_LIMIT, 0, "the header is too long", STKI_TEXT("%" PRIu64 " bytes", bytes),
                    "at most 100000000, the limit of the format", err);
    t->data = 8 + (int64_t)bytes;
    if (t->file->map)
        return parse_header(t, (const char *)t->file->map + 8, (int64_t)bytes, err);
    text = stki_resize(NULL, (int64_t)bytes + 1); /* + 1, because the size must not be 0 */
    if (!text)
        return stki_fail_memory(err, (int64_t)bytes, t->base.path);
    status = stki_file_read(t->file, 8, text, (int64_t)bytes, err);
    if (status == STK_OK)
        status = parse_header(t, text, (int64_t)bytes, err);
    stki_free(text);
    return status;
}

/* ---- as a container ---- */

static stk_status safetensors_array(const stki_container *container, int64_t number, const stki_reader_opts *opts,
                                    stki_array *out, stk_error *err)
{
    const struct tensors *t = (const struct tensors *)(const void *)container;
    const stki_member *member = &container->members[number];

    (void)opts, (void)err;
    *out = (stki_array){
        .file = stki_file_retain(t->file), .offset = member->offset, .dtype = member->dtype, .ndim = member->ndim};
    memcpy(out->shape, member->shape, sizeof *member->shape * (size_t)member->ndim);
    memcpy(out->strides, member->strides, sizeof *member->strides * (size_t)member->ndim);
    return STK_OK;
}

static void safetensors_destroy(stki_container *container)
{
    stki_file_close(((struct tensors *)(void *)container)->file);
    stki_container_free(container);
}

static const stki_container_ops safetensors_ops = {
    .format = "safetensors", .array = safetensors_array, .destroy = safetensors_destroy};

stk_status stki_safetensors_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    struct tensors *t;
    stk_status status = stki_container_create(sizeof *t, &safetensors_ops, file->path, &t, err);

    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    (void)opts;
    t->file = file;
    status = read_header(t, err);
    if (status != STK_OK)
        stki_container_release(&t->base);
    else
        *out = &t->base;
    return status;
}

stk_status stki_safetensors_container(const char *path, const stki_reader_opts *opts, stki_container **out,
                                      stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_safetensors_of_file(file, opts, out, err);
}
