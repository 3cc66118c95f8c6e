/* documents.c: see documents.h. */
#include "documents.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include <inttypes.h>
#include <string.h>

enum { PIECE = 1 << 20, RUN = 64, UNIT_BYTES = 4 << 20, ADVISE_AT_ONCE = 128 };

struct documents {
    stki_reader base; /* first member */
    stki_reader_ops ops;
    stki_array array;
    int64_t size;   /* size of a token in bytes */
    int64_t *first; /* token number at which each document starts, and the end of the last one */
};

static const struct documents *documents_of(const stki_reader *base)
{
    return (const struct documents *)(const void *)base;
}

/* ---- finding documents ---- */

struct search {
    struct documents *d;
    uint64_t token; /* in the byte order of the file */
    bool ends, found;
    int64_t room, last; /* capacity of `first`; number of tokens */
};

static stk_status add(struct search *s, int64_t start, stk_error *err)
{
    struct documents *d = s->d;
    stk_status status;

    if (start >= s->last || (d->base.count > 0 && d->first[d->base.count - 1] == start))
        return STK_OK;
    status = stki_grow(&d->first, &s->room, d->base.count + 2, sizeof *d->first, /* + 2: the new document and the end */
                       "the starts of documents", err);
    if (status == STK_OK)
        d->first[d->base.count++] = start;
    return status;
}

#define LOOK_THROUGH(name, type)                                                                        \
    static stk_status name(struct search *s, const void *tokens, int64_t at, int64_t n, stk_error *err) \
    {                                                                                                   \
        const type *t = tokens;                                                                         \
        type wanted = (type)s->token;                                                                   \
        stk_status status = STK_OK;                                                                     \
                                                                                                        \
        for (int64_t i = 0; i < n && status == STK_OK; i += RUN) {                                      \
            int64_t run = n - i < RUN ? n - i : RUN;                                                    \
            int found = 0;                                                                              \
                                                                                                        \
            for (int64_t k = 0; k < run; k++)                                                           \
                found |= t[i + k] == wanted;                                                            \
            for (int64_t k = 0; found && k < run && status == STK_OK; k++)                              \
                if (t[i + k] == wanted) {                                                               \
                    s->found = true;                                                                    \
                    status = add(s, at + i + k + s->ends, err);                                         \
                }                                                                                       \
        }                                                                                               \
        return status;                                                                                  \
    }

LOOK_THROUGH(look_1, uint8_t)
LOOK_THROUGH(look_2, uint16_t)
LOOK_THROUGH(look_4, uint32_t)
LOOK_THROUGH(look_8, uint64_t)

static stk_status look(struct search *s, const void *tokens, int64_t at, int64_t n, stk_error *err)
{
    switch (s->d->size) {
    case 1:
        return look_1(s, tokens, at, n, err);
    case 2:
        return look_2(s, tokens, at, n, err);
    case 4:
        return look_4(s, tokens, at, n, err);
    default:
        return look_8(s, tokens, at, n, err);
    }
}

static const void *address_of(const stki_array *array)
{
    if (!array->file)
        return (const char *)stk_storage_data(array->memory) + array->offset;
    return array->file->map ? (const char *)array->file->map + array->offset : NULL;
}

static stk_status find(struct search *s, stk_error *err)
{
    struct documents *d = s->d;
    const void *mapped = address_of(&d->array);
    void *piece = NULL;
    stk_status status = add(s, 0, err);

    if (!mapped && status == STK_OK && !(piece = stki_zalloc(PIECE)))
        return stki_fail_memory(err, PIECE, "tokens");
    for (int64_t at = 0, n; at < s->last && status == STK_OK; at += n) {
        const void *tokens = piece;

        n = s->last - at < PIECE / d->size ? s->last - at : PIECE / d->size;
        if (mapped)
            tokens = (const char *)mapped + at * d->size;
        else
            status = stki_file_read(d->array.file, d->array.offset + at * d->size, piece, n * d->size, err);
        if (status == STK_OK)
            status = look(s, tokens, at, n, err);
    }
    stki_free(piece);
    if (status == STK_OK && d->base.count > 0)
        d->first[d->base.count] = s->last;
    return status;
}

static bool is_whole(stk_dtype dtype)
{
    return dtype >= STK_U8 && dtype <= STK_I64;
}

/* Converts the token to the dtype and byte order of the file. Returns false if it does not fit. */
static bool encode(stk_dtype dtype, bool swapped, int64_t token, uint64_t *out)
{
    int bits = (int)stk_dtype_size(dtype) * 8;
    bool is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
    int64_t high = bits - is_signed >= 63 ? INT64_MAX : (INT64_C(1) << (bits - is_signed)) - 1;

    if (token < 0 || token > high)
        return false;
    *out = (uint64_t)token;
    if (swapped)
        *out = __builtin_bswap64(*out) >> (64 - bits);
    return true;
}

/* ---- the reader ---- */

static stk_status documents_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                 stk_tensor *out, stk_error *err)
{
    const struct documents *d = documents_of(base);
    const void *mapped = address_of(&d->array);
    int64_t length, offset;
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK)
        return status;
    length = d->first[index + 1] - d->first[index];
    offset = d->first[index] * d->size;
    *out = (stk_tensor){.dtype = base->dtype,
                        .ndim = 1,
                        .flags = STK_TENSOR_READONLY | (base->swapped ? STK_TENSOR_SWAPPED : 0),
                        .shape = {length},
                        .strides = {d->size}};
    if (mapped) {
        out->data = (void *)(uintptr_t)((const char *)mapped + offset);
        return STK_OK;
    }
    status = stki_scratch_reserve(scratch, length * d->size, err);
    if (status == STK_OK)
        status = stki_file_read(d->array.file, d->array.offset + offset, scratch->data, length * d->size, err);
    out->data = scratch->data;
    return stki_fail_record(err, status, index);
}

static stk_status documents_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct documents *d = documents_of(base);
    stk_status status = stki_reader_check_index(base, index, err);

    if (status == STK_OK)
        shape[0] = d->first[index + 1] - d->first[index];
    return status;
}

static void documents_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct documents *d = documents_of(base);
    stki_range ranges[ADVISE_AT_ONCE];
    int64_t n = 0;

    if (!d->array.file || !stki_file_advice_due(d->array.file))
        return;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = d->first[indices[i]], last = d->first[indices[i] + 1];

        ranges[n++] = (stki_range){d->array.offset + first * d->size, (last - first) * d->size};
        if (n == ADVISE_AT_ONCE || i == count - 1) {
            stki_file_will_need_ranges(d->array.file, ranges, n);
            n = 0;
        }
    }
}

static int documents_place(const stki_reader *base, int64_t index, stki_range *out)
{
    const struct documents *d = documents_of(base);

    out[0] =
        (stki_range){d->array.offset + d->first[index] * d->size, (d->first[index + 1] - d->first[index]) * d->size};
    return 1;
}

static void documents_destroy(stki_reader *base)
{
    struct documents *d = (struct documents *)(void *)base;

    stki_array_release(&d->array);
    stki_free(d->first);
    stki_free(base->path);
    stki_free(d);
}

static void describe(struct documents *d, const char *format, int64_t tokens)
{
    stki_reader *base = &d->base;
    const stki_file *file = d->array.file;

    d->ops = (stki_reader_ops){.format = format,
                               .read = documents_read,
                               .shape = documents_shape,
                               .will_need = documents_will_need,
                               .destroy = documents_destroy};
    for (int64_t i = 0; i < base->count; i++)
        if (d->first[i + 1] - d->first[i] > base->shape[0])
            base->shape[0] = d->first[i + 1] - d->first[i];
    base->ndim = 1;
    base->strides[0] = d->size;
    base->variable = true;
    base->max_bytes = base->shape[0] * d->size;
    base->copies = !address_of(&d->array);
    base->access = file ? file->access : "memory";
    base->note = file ? file->note : NULL;
    base->file_bytes = file ? file->size : -1;
    base->data_offset = file ? d->array.offset : -1;
    base->file = file;
    base->place = documents_place;
    base->placer = base;
    if (base->count > 0)
        base->unit_length = 1 + (int64_t)((double)base->count / ((double)(tokens * d->size) / UNIT_BYTES + 1));
    if (base->unit_length > 0)
        base->unit_count = (base->count + base->unit_length - 1) / base->unit_length;
}

stk_status stki_documents_open(const stki_array *array, const char *format, const char *path, int64_t token, bool ends,
                               const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    struct documents *d;
    struct search s = {.ends = ends};
    stk_status status;

    if (array->ndim != 1 || !is_whole(array->dtype) || array->strides[0] != stk_dtype_size(array->dtype))
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1,
                                         STKI_TEXT("%d %s of %s", array->ndim, array->ndim == 1 ? "axis" : "axes",
                                                   stk_dtype_long_name(array->dtype)),
                                         "one axis of integers"},
                            "source.documents: the array is not a stream of tokens");
    if (opts->window_length > 0)
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, NULL, NULL},
                            "source.window and source.documents are mutually exclusive");
    if (!encode(array->dtype, array->swapped, token, &s.token))
        return stki_fail_at(err, STK_E_CONFIG,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, token),
                                         STKI_TEXT("a token that fits in %s", stk_dtype_long_name(array->dtype))},
                            "source.documents: the token is out of range");
    status = stki_array_check(array, path, err);
    if (status != STK_OK)
        return status;
    d = stki_zalloc(sizeof *d);
    if (!d)
        return stki_fail_memory(err, sizeof *d, path);
    d->array = *array;
    if (array->file)
        (void)stki_file_retain(array->file);
    if (array->memory)
        stk_storage_retain(array->memory);
    d->size = stk_dtype_size(array->dtype);
    d->base.ops = &d->ops;
    d->base.dtype = array->dtype;
    d->base.swapped = array->swapped;
    d->base.path = stki_strdup(path);
    s.d = d;
    s.last = array->shape[0];
    status = d->base.path ? find(&s, err) : stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    if (status != STK_OK) {
        documents_destroy(&d->base);
        return status;
    }
    describe(d, format, array->shape[0]);
    if (!s.found && d->base.count > 0 && !d->base.note)
        d->base.note = "the token of source.documents does not occur, so the file is a single document";
    *out = &d->base;
    return STK_OK;
}
