/* sink_common.c: see sink_common.h. */
#include "sink_common.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "path.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

/* ---- open and commit ---- */

static stk_status measure(const stki_sink_field *field, int64_t *unit, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS];

    *unit = 1;
    if (field->kind == STKI_SINK_ARRAY)
        return stki_row_major(field->dtype, field->ndim, field->shape, strides, unit, err);
    if (field->kind == STKI_SINK_RAGGED)
        return stki_row_major(field->dtype, field->ndim - 1, field->shape + 1, strides, unit, err);
    return STK_OK;
}

stk_status stki_sink_common_init(stki_sink_common *c, const stki_sink_ops *ops, const stki_sink_opts *opts,
                                 stk_error *err)
{
    char *path = stki_strdup(opts->path), *folder = stki_strdup(opts->folder);
    stk_status status = STK_OK;

    c->base.ops = ops;
    c->opts = *opts;
    c->opts.path = path;
    c->opts.folder = folder;
    c->units = stki_zalloc_array(opts->field_count + 1, sizeof *c->units);
    if (!path || !folder || !c->units)
        return stki_fail_memory(err, (int64_t)strlen(opts->path) + 1, opts->path);
    for (int i = 0; i < opts->field_count && status == STK_OK; i++)
        status = measure(&opts->fields[i], &c->units[i], err);
    return status;
}

void stki_sink_common_fini(stki_sink_common *c)
{
    stki_free((void *)(uintptr_t)c->opts.path);
    stki_free((void *)(uintptr_t)c->opts.folder);
    stki_free(c->units);
}

/* ---- rows ---- */

stk_status stki_sink_check_usable(const stki_sink_common *c, stk_error *err)
{
    if (!c->failed)
        return STK_OK;
    return stki_fail_at(err, c->failed, (stki_place){c->opts.path, -1, -1, NULL, NULL}, "an earlier write failed");
}

static stk_status fail_value(const stki_sink_common *c, int64_t row, int field, int64_t found, int64_t expected,
                             const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_VALUE,
                        (stki_place){c->opts.path, row, -1, STKI_TEXT("%" PRId64, found),
                                     expected < 0 ? "at least 0" : STKI_TEXT("%" PRId64, expected)},
                        "field %s: %s", c->opts.fields[field].name, what);
}

static stk_status check_value(const stki_sink_common *c, int64_t row, int i, const stki_sink_value *v, stk_error *err)
{
    int64_t expected = v->size;

    if (v->size < 0)
        return fail_value(c, row, i, v->size, -1, "bytes", err);
    if (v->size > 0 && !v->bytes)
        return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){c->opts.path, row, -1, "NULL", "bytes"}, "field %s",
                            c->opts.fields[i].name);
    switch (c->opts.fields[i].kind) {
    case STKI_SINK_ARRAY:
        expected = c->units[i];
        break;
    case STKI_SINK_RAGGED:
        if (v->length < 0 || !stki_mul(v->length, c->units[i], &expected))
            return fail_value(c, row, i, v->length, -1, "length", err);
        break;
    case STKI_SINK_IMAGE:
        if (v->height < 0 || v->width < 0 || v->channels < 0)
            return fail_value(c, row, i,
                              v->height < 0  ? v->height
                              : v->width < 0 ? v->width
                                             : v->channels,
                              -1, "size of the image", err);
        if (v->encoding == STKI_PLAIN &&
            (!stki_mul(v->height, v->width, &expected) || !stki_mul(expected, v->channels, &expected)))
            return stki_fail_at(
                err, STK_E_BAD_VALUE,
                (stki_place){c->opts.path, row, -1,
                             STKI_TEXT("%" PRId64 " x %" PRId64 " x %" PRId64, v->height, v->width, v->channels),
                             "less than 2^63 bytes"},
                "field %s: size of the image", c->opts.fields[i].name);
        break;
    default:
        break;
    }
    return v->size == expected ? STK_OK : fail_value(c, row, i, v->size, expected, "bytes", err);
}

stk_status stki_sink_check_rows(stki_sink_common *c, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    stk_status status = stki_sink_check_usable(c, err);

    if (status != STK_OK)
        return status;
    if (rows < 0 || rows > c->opts.most_rows - c->rows)
        return c->failed =
                   stki_fail_at(err, STK_E_RANGE,
                                (stki_place){c->opts.path, c->rows, -1, STKI_TEXT("%" PRId64 " more rows", rows),
                                             STKI_TEXT("%" PRId64 " in all", c->opts.most_rows)},
                                "number of rows");
    for (int64_t row = 0; row < rows && status == STK_OK; row++) {
        const stki_sink_value *value = &values[row * c->opts.field_count];
        int field;

        for (int i = 0; i < c->opts.field_count && status == STK_OK; i++)
            status = check_value(c, c->rows + row, i, &value[i], err);
        if (status == STK_OK && c->base.ops->fits &&
            (status = c->base.ops->fits(&c->opts, value, &field, err)) != STK_OK)
            (void)stki_fail_place(err, status, c->opts.path, c->rows + row, NULL);
    }
    return c->failed = status;
}

stk_status stki_sink_took(stki_sink_common *c, int64_t rows, stk_status status)
{
    c->failed = status;
    c->rows += status != STK_OK ? 0 : rows;
    return status;
}

stk_status stki_sink_check_finish(const stki_sink_common *c, stk_error *err)
{
    stk_status status = stki_sink_check_usable(c, err);

    if (status != STK_OK || c->rows == c->opts.most_rows || c->opts.may_skip)
        return status;
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){c->opts.path, -1, -1, STKI_TEXT("%" PRId64, c->rows),
                                     STKI_TEXT("%" PRId64 ", as announced", c->opts.most_rows)},
                        "number of rows");
}

/* ---- sizes ---- */

int64_t stki_sink_times(int64_t size, int64_t count, int64_t each)
{
    int64_t all;

    return stki_mul(count, each, &all) && stki_add(size, all, &all) && all < INT64_MAX / 2 ? all : INT64_MAX / 2;
}

/* ---- messages ---- */

static const char *kind_text(const stki_sink_field *field, char *buffer, int size)
{
    const char *dtype = stk_dtype_long_name(field->dtype);

    switch (field->kind) {
    case STKI_SINK_ARRAY:
        return stki_text(buffer, size, "rows of %s, shape %s", dtype, STKI_SHAPE(field->ndim, field->shape));
    case STKI_SINK_RAGGED:
        return stki_text(buffer, size, "rows of %s of varying length", dtype);
    case STKI_SINK_IMAGE:
        return stki_text(buffer, size, "images of different sizes");
    default:
        return stki_text(buffer, size, "bytes of varying length");
    }
}

stk_status stki_sink_refuse(const stki_sink_opts *opts, const stki_sink_field *field, const char *found,
                            const char *expected, stk_error *err)
{
    char kind[128];

    return stki_fail_at(err, STK_E_UNSUPPORTED,
                        (stki_place){opts->path, -1, -1, found ? found : kind_text(field, kind, sizeof kind), expected},
                        "field %s cannot be written", field->name);
}

/* ---- names ---- */

char *stki_sink_array_path(const char *path, const char *part)
{
    const char *base = stki_base_name(path), *dot = strrchr(base, '.');
    int stem = (int)(dot && dot > base ? dot - path : (int64_t)strlen(path));

    return part ? stki_format("%.*s.%s%s", stem, path, part, path + stem) : stki_strdup(path);
}

char *stki_sink_temporary(const char *folder, const char *final, const char *more)
{
    return stki_format("%s/%s%s", folder, stki_base_name(final), more);
}

/* ---- marks ---- */

stk_status stki_mark_int(const json_t *mark, const char *key, const char *path, int64_t *out, stk_error *err)
{
    const json_t *number = json_object_get(mark, key);

    *out = json_is_integer(number) ? json_integer_value(number) : -1;
    if (*out >= 0)
        return STK_OK;
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, NULL, "a number of at least 0"},
                        "damaged mark: %s", key);
}

stk_status stki_mark_rows(stki_sink_common *c, const json_t *mark, stk_error *err)
{
    stk_status status = stki_mark_int(mark, "rows", c->opts.path, &c->rows, err);

    if (status != STK_OK || c->rows <= c->opts.most_rows)
        return status;
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){c->opts.path, -1, -1, STKI_TEXT("%" PRId64, c->rows),
                                     STKI_TEXT("at most %" PRId64, c->opts.most_rows)},
                        "damaged mark: rows");
}

stk_status stki_mark_new(json_t *made, json_t **out, stk_error *err)
{
    *out = made;
    return made ? STK_OK : stki_fail_memory(err, 256, "a mark");
}
