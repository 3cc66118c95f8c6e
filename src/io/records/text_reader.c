/* text_reader.c: the samples of a text file: views of the mapping, or read into the worker's scratch memory. For JSON,
 * a sample is the decoded string of a key, which is a view if it has no escapes. */
#include "allocate.h"
#include "error.h"
#include "json_text.h"
#include "npy_header.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>

enum { ADVISE_AT_ONCE = 128, UNIT_BYTES = 4 << 20, SMALL = 8 << 10 };

struct texts {
    stki_reader base; /* first member */
    const stki_text_file *text;
    int64_t max_bytes; /* limit set by the option; 0: none */
    int64_t *units;
};

static const struct texts *texts_of(const stki_reader *base)
{
    return (const struct texts *)(const void *)base;
}

static stk_status too_long(const struct texts *t, int64_t index, int64_t at, int64_t bytes, stk_error *err)
{
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){t->base.path, index, at, STKI_TEXT("%" PRId64 " bytes", bytes),
                                     STKI_TEXT("at most %" PRId64 " (max_bytes)", t->max_bytes)},
                        t->text->column.kind == STKI_JSONL_LIST ? "the list is too long" : "the text is too long");
}

/* Locates the sample, or the line of JSON that contains it. */
static stk_status locate(const struct texts *t, int64_t index, int64_t *at, int64_t *bytes, stk_error *err)
{
    stk_status status = stki_reader_check_index(&t->base, index, err);

    if (status != STK_OK)
        return status;
    status = stki_fail_record(err, stki_text_sample(t->text, index, at, bytes, err), index);
    if (status == STK_OK && !t->text->json && t->max_bytes > 0 && *bytes > t->max_bytes)
        return too_long(t, index, *at, *bytes, err);
    return status;
}

/* ---- JSON ---- */

/* Finds the value in a line whose bytes are in memory. */
static stk_status find_value(const struct texts *t, int64_t index, int64_t at, const char *line, int64_t bytes,
                             stki_json_span *out, stk_error *err)
{
    stk_status status = stki_jsonl_find(t->text, index, at, line, bytes, out, err);

    if (status != STK_OK)
        return status;
    return t->max_bytes > 0 && out->bytes > t->max_bytes ? too_long(t, index, at, out->bytes, err) : STK_OK;
}

/* Counts the numbers of a list and, unless `to` is NULL, stores them. */
static stk_status numbers(const struct texts *t, int64_t index, int64_t at, const stki_json_span *value, void *to,
                          int64_t *count, stk_error *err)
{
    stk_status status = stki_jsonl_numbers(t->text, t->base.dtype, index, at, value, to, count, err);

    return status == STK_OK && t->text->column.kind == STKI_JSONL_LIST && t->max_bytes > 0 && *count > t->max_bytes / 8
               ? too_long(t, index, at, 8 * *count, err)
               : status;
}

static stk_status json_length(const struct texts *t, int64_t index, int64_t at, int64_t bytes, int64_t *out,
                              stk_error *err)
{
    const stki_file *file = t->text->file;
    char small[SMALL], *block = NULL;
    const char *line = file->map ? (const char *)file->map + at : small;
    stki_json_span value;
    stk_status status = STK_OK;

    if (!file->map && bytes > SMALL) {
        line = block = stki_zalloc(bytes);
        status = block ? STK_OK : stki_fail_memory(err, bytes, "a line of JSON");
    }
    if (status == STK_OK && !file->map)
        status = stki_fail_record(err, stki_file_read(file, at, block ? block : small, bytes, err), index);
    if (status == STK_OK)
        status = find_value(t, index, at, line, bytes, &value, err);
    if (status == STK_OK && t->text->column.kind == STKI_JSONL_LIST)
        status = numbers(t, index, at, &value, NULL, out, err);
    else if (status == STK_OK)
        *out = value.bytes;
    stki_free(block);
    return status;
}

static stk_status read_json(const struct texts *t, int64_t index, int64_t at, const char *line, int64_t bytes,
                            stki_scratch *scratch, const void **data, int64_t *length, stk_error *err)
{
    stki_json_span value;
    stk_status status = find_value(t, index, at, line, bytes, &value, err);

    if (status == STK_OK && t->text->column.kind != STKI_JSONL_TEXT) {
        status = stki_scratch_reserve(scratch, 8 * t->text->column.most + 8, err);
        if (status == STK_OK)
            status = numbers(t, index, at, &value, scratch->data, length, err);
        *data = scratch->data;
        return status;
    }
    if (status != STK_OK)
        return status;
    *length = value.bytes;
    *data = value.at;
    if (value.length == value.bytes)
        return STK_OK;
    status = stki_scratch_reserve(scratch, value.bytes > 0 ? value.bytes : 1, err);
    if (status == STK_OK)
        stki_json_unescape(&value, scratch->data);
    *data = scratch->data;
    return status;
}

/* ---- reader operations ---- */

static stk_status texts_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct texts *t = texts_of(base);
    int64_t at, bytes;
    stk_status status = locate(t, index, &at, &bytes, err);

    if (status != STK_OK || !t->text->json) {
        shape[0] = status == STK_OK ? bytes : 0;
        return status;
    }
    return json_length(t, index, at, bytes, shape, err);
}

static stk_status texts_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    const struct texts *t = texts_of(base);
    const stki_file *file = t->text->file;
    stki_scratch *raw = scratch;
    const void *data;
    int64_t at, bytes;
    stk_status status = locate(t, index, &at, &bytes, err);

    (void)want;
    if (status == STK_OK && t->text->json && !file->map)
        status = stki_scratch_second(scratch, &raw, err);
    if (status == STK_OK && !file->map)
        status = stki_scratch_reserve(raw, bytes > 0 ? bytes : 1, err);
    if (status == STK_OK && !file->map)
        status = stki_fail_record(err, stki_file_read(file, at, raw->data, bytes, err), index);
    if (status != STK_OK)
        return status;
    data = file->map ? (const char *)file->map + at : raw->data;
    if (t->text->json)
        status = read_json(t, index, at, data, bytes, scratch, &data, &bytes, err);
    if (status != STK_OK)
        return status;
    *out = (stk_tensor){.data = (void *)(uintptr_t)data,
                        .dtype = base->dtype,
                        .ndim = base->ndim,
                        .flags = STK_TENSOR_READONLY,
                        .shape = {bytes},
                        .strides = {stk_dtype_size(base->dtype)}};
    return STK_OK;
}

static void texts_where(const stki_reader *base, int64_t index, char *buffer, int size)
{
    snprintf(buffer, (size_t)size, "line %" PRId64, stki_text_line(texts_of(base)->text, index));
}

static void texts_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const stki_text_file *text = texts_of(base)->text;
    stki_range ranges[ADVISE_AT_ONCE];
    int64_t n = 0;

    if (!stki_file_advice_due(text->file))
        return;
    for (int64_t i = 0; i < count; i++) {
        int64_t from, to;

        stki_places_pair(&text->index.start, indices[i], &from, &to);
        ranges[n++] = (stki_range){from, to - from};
        if (n == ADVISE_AT_ONCE || i == count - 1) {
            stki_file_will_need_ranges(text->file, ranges, n);
            n = 0;
        }
    }
}

static int texts_place(const stki_reader *base, int64_t index, stki_range *out)
{
    int64_t from, to;

    stki_places_pair(&texts_of(base)->text->index.start, index, &from, &to);
    out[0] = (stki_range){from, to - from};
    return 1;
}

static void texts_destroy(stki_reader *base)
{
    struct texts *t = (struct texts *)(void *)base;

    stki_container_release((stki_container *)(uintptr_t)&t->text->base);
    stki_free(t->units);
    stki_free(base->path);
    stki_free(t);
}

static const stki_reader_ops text_ops = {.format = "text",
                                         .read = texts_read,
                                         .shape = texts_shape,
                                         .where = texts_where,
                                         .will_need = texts_will_need,
                                         .destroy = texts_destroy};
static const stki_reader_ops fixed_ops = {.format = "jsonl",
                                          .read = texts_read,
                                          .where = texts_where,
                                          .will_need = texts_will_need,
                                          .destroy = texts_destroy};
static const stki_reader_ops jsonl_ops = {.format = "jsonl",
                                          .read = texts_read,
                                          .shape = texts_shape,
                                          .where = texts_where,
                                          .will_need = texts_will_need,
                                          .destroy = texts_destroy};

/* ---- opening ---- */

/* Groups samples into units of a few megabytes for `order: block`. */
static stk_status make_units(struct texts *t, stk_error *err)
{
    const stki_text_index *index = &t->text->index;
    const int64_t most = t->text->file->size / UNIT_BYTES + 2;
    int64_t count = 0, begun = 0;

    t->units = stki_zalloc_array(most + 1, sizeof *t->units);
    if (!t->units)
        return stki_fail_memory(err, most * (int64_t)sizeof *t->units, "the units of a text");
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t start = stki_places_at(&index->start, i);

        if (i > 0 && start - begun < UNIT_BYTES)
            continue;
        t->units[count++] = i;
        begun = start;
    }
    t->units[count] = index->count;
    t->base.unit_first = t->units;
    t->base.unit_count = count;
    return STK_OK;
}

static void describe(struct texts *t)
{
    const stki_file *file = t->text->file;
    stki_reader *base = &t->base;

    base->count = t->text->index.count;
    base->dtype = STK_U8;
    base->ndim = 1;
    base->ending = "txt";
    base->variable = true;
    base->strides[0] = 1;
    base->shape[0] = base->max_bytes = t->max_bytes > 0 ? t->max_bytes : t->text->index.longest;
    base->copies = !file->map || t->text->json;
    base->access = file->access;
    base->note = file->note;
    base->held_bytes = t->text->index.held_bytes;
    base->file_bytes = file->size;
    base->data_offset = -1;
    base->file = file;
    base->place = texts_place;
    base->placer = base;
    base->untyped = t->text->json && base->count == 0;
    if (t->text->column.kind == STKI_JSONL_TEXT)
        return;
    base->ending = NULL;
    base->remedy = STKI_NUMBERS_REMEDY;
    base->lists = t->text->column.kind == STKI_JSONL_LIST;
    base->dtype = t->text->column.dtype;
    base->ndim = t->text->column.kind == STKI_JSONL_LIST;
    base->variable = base->ndim == 1 && t->text->column.width < 0;
    base->ops = base->variable ? &jsonl_ops : &fixed_ops;
    base->shape[0] = t->text->column.most;
    base->strides[0] = 8;
    base->max_bytes = 8 * (base->ndim == 1 ? t->text->column.most : 1);
}

stk_status stki_text_reader(const stki_text_file *text, const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    struct texts *t = stki_zalloc(sizeof *t);
    stk_status status;

    if (!t)
        return stki_fail_memory(err, sizeof *t, text->base.path);
    (void)stki_container_retain(&text->base);
    t->text = text;
    t->max_bytes = opts->max_bytes;
    t->base.ops = text->json ? &jsonl_ops : &text_ops;
    describe(t);
    t->base.path = stki_strdup(text->base.path);
    status = t->base.path ? make_units(t, err)
                          : stki_fail_memory(err, (int64_t)strlen(text->base.path) + 1, text->base.path);
    if (status == STK_OK && opts->alias_dtype != STK_DTYPE_NONE && opts->alias_dtype != t->base.dtype)
        status = stki_fail_at(err, STK_E_MISMATCH,
                              (stki_place){t->base.path, -1, -1, stk_dtype_long_name(t->base.dtype),
                                           STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(opts->alias_dtype))},
                              text->column.kind == STKI_JSONL_TEXT
                                  ? "the type of strings differs from the configured one"
                                  : "the type of the values differs from the configured one");
    if (status != STK_OK)
        texts_destroy(&t->base);
    else
        *out = &t->base;
    return status;
}
