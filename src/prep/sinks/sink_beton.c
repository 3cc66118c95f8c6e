/* sink_beton.c: writes .beton files, which FFCV reads (beton_write.h); the bytes are those of stk_beton_create for the
 * same rows. Integers become int fields, floats become float fields, images become image fields (raw or JPEG, per
 * image), other arrays become NDArrays (with `tensors`: all arrays become torch tensors), and bytes become bytes, or
 * JSON if the job requests it (encode or extension json). */
#include "allocate.h"
#include "beton_write.h"
#include "cast.h"
#include "checked.h"
#include "error.h"
#include "sink_common.h"
#include "sinks.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

enum { AT_ONCE = 64 /* rows per append */ };

struct beton_options {
    int64_t page_bytes;
    bool tensors;
};

static const stki_option option_rows[] = {
    STKI_SIZE(struct beton_options, page_bytes, 8MiB, 2 << 20, INT64_C(2) << 30,
              "Bytes per page of the file, a power of two; no sample may be larger"),
    STKI_BOOL(struct beton_options, tensors, false,
              "Store arrays so that FFCV returns torch tensors, including images of one size"),
};
static const stki_option_table option_table = STKI_OPTION_TABLE("output (beton)", option_rows);

struct beton_sink {
    stki_sink_common common;  /* first member */
    stk_beton_writer *writer; /* NULL: finished */
    stk_beton_field *fields;
    stki_cast *casts; /* convert numbers to i64 or f64 */
    stk_beton_value *values;
    char *temporary, *sizes;
    int64_t bytes;
};

static struct beton_sink *beton_of(const stki_sink *sink)
{
    return (struct beton_sink *)(uintptr_t)sink;
}

static struct beton_options options_of(const stki_sink_opts *opts)
{
    struct beton_options options = {0};

    if (opts->options)
        options = *(const struct beton_options *)opts->options;
    return options;
}

static int64_t page_of(const stki_sink_opts *opts)
{
    return options_of(opts).page_bytes ? options_of(opts).page_bytes : 8 << 20;
}

/* ---- fields ---- */

static bool is_json(const stki_sink_field *field)
{
    return (field->encode && !strcmp(field->encode, "json")) || (field->extension && !strcmp(field->extension, "json"));
}

static stk_status choose_number(const stki_sink_opts *opts, const stki_sink_field *field, stk_beton_field *out,
                                stk_error *err)
{
    bool whole = field->dtype == STK_BOOL || (field->dtype >= STK_U8 && field->dtype <= STK_I64);

    if (!whole && field->dtype != STK_F16 && field->dtype != STK_BF16 && field->dtype != STK_F32 &&
        field->dtype != STK_F64)
        return stki_sink_refuse(opts, field, NULL, "whole or real numbers", err);
    out->kind = whole ? STK_BETON_INT : STK_BETON_FLOAT;
    return STK_OK;
}

/* Returns whether the field has images of one size that are stored as images; with `tensors` they are arrays. */
static bool is_rgb(const stki_sink_opts *opts, const stki_sink_field *field)
{
    return field->image && !options_of(opts).tensors && field->dtype == STK_U8 && field->ndim == 3 &&
           field->shape[2] == 3 && field->shape[0] > 0 && field->shape[0] <= UINT16_MAX && field->shape[1] > 0 &&
           field->shape[1] <= UINT16_MAX;
}

/* Checks the properties of the images that are known in advance. */
static stk_status check_images(const stki_sink_opts *opts, const stki_sink_field *field, stk_error *err)
{
    const int64_t channels = field->shape[2];

    if (field->encodings == 1U << STKI_PNG)
        return stki_sink_refuse(opts, field, "PNG images", "pixels or JPEG images: set encode: jpeg, or omit encode",
                                err);
    if ((field->encodings & 1U << STKI_PLAIN) && channels > 0 && channels != 3)
        return stki_sink_refuse(
            opts, field, STKI_TEXT("pixels of %" PRId64 " channel%s", channels, channels > 1 ? "s" : ""),
            "3 channels: .beton stores RGB (encode: jpeg without proportion and above_… accepts 1)", err);
    return STK_OK;
}

static stk_status choose(const stki_sink_opts *opts, const stki_sink_field *field, stk_beton_field *out, stk_error *err)
{
    out->name = field->name;
    switch (field->kind) {
    case STKI_SINK_ARRAY:
        if (field->ndim == 0)
            return choose_number(opts, field, out, err);
        if (is_rgb(opts, field)) {
            out->kind = STK_BETON_IMAGE;
            return STK_OK;
        }
        out->kind = options_of(opts).tensors ? STK_BETON_TENSOR : STK_BETON_NDARRAY;
        out->dtype = field->dtype;
        out->ndim = field->ndim;
        out->shape = field->shape;
        return STK_OK;
    case STKI_SINK_RAGGED:
        if (field->dtype != STK_U8 || field->ndim != 1)
            return stki_sink_refuse(
                opts, field, NULL,
                "rows of one shape (pad or crop them), or uint8 of one axis: .beton stores no others", err);
        out->kind = STK_BETON_BYTES;
        return STK_OK;
    case STKI_SINK_IMAGE:
        out->kind = STK_BETON_IMAGE;
        return check_images(opts, field, err);
    default:
        out->kind = is_json(field) ? STK_BETON_JSON : STK_BETON_BYTES;
        return STK_OK;
    }
}

/* Returns the minimum number of bytes of a sample in its page. */
static int64_t least_bytes(const stki_sink_opts *opts, const stk_beton_field *fields)
{
    int64_t sum = 0;

    for (int i = 0; i < opts->field_count; i++) {
        const stki_sink_field *field = &opts->fields[i];
        int64_t strides[STK_MAX_DIMS], bytes;

        if (fields[i].kind == STK_BETON_INT || fields[i].kind == STK_BETON_FLOAT)
            continue;
        if (field->kind != STKI_SINK_ARRAY ||
            stki_row_major(field->dtype, field->ndim, field->shape, strides, &bytes, NULL) != STK_OK)
            bytes = 1;
        sum += bytes > INT64_MAX - sum ? INT64_MAX - sum : bytes > 0 ? bytes : 1;
    }
    return sum;
}

static stk_status choose_all(const stki_sink_opts *opts, stk_beton_field **out, stk_error *err)
{
    int64_t page_bytes = page_of(opts);
    stk_beton_field *fields = stki_zalloc_array(opts->field_count + 1, sizeof *fields);
    stki_beton_field checked;
    stk_status status = fields ? STK_OK : stki_fail_memory(err, (int64_t)sizeof *fields, opts->path);

    for (int i = 0; i < opts->field_count && status == STK_OK; i++)
        status = choose(opts, &opts->fields[i], &fields[i], err);
    for (int i = 0; i < opts->field_count && status == STK_OK; i++)
        status = stki_beton_check_field(opts->path, fields, i, page_bytes, &checked, err);
    if (status == STK_OK && least_bytes(opts, fields) > page_bytes)
        status = stki_fail_at(err, STK_E_LIMIT,
                              (stki_place){opts->path, -1, -1,
                                           STKI_TEXT("at least %" PRId64 " bytes", least_bytes(opts, fields)),
                                           STKI_TEXT("at most %" PRId64 " (output.page_bytes)", page_bytes)},
                              "a sample does not fit in a page");
    if (status != STK_OK)
        stki_free(fields);
    else
        *out = fields;
    return status;
}

static stk_status beton_check(const stki_sink_opts *opts, stk_error *err)
{
    int64_t page_bytes = options_of(opts).page_bytes;
    stk_beton_field *fields;
    stk_status status;

    if (page_bytes & (page_bytes - 1))
        return stki_fail_at(err, STK_E_CONFIG,
                            (stki_place){opts->path, -1, -1, STKI_TEXT("%" PRId64, page_bytes), "a power of two"},
                            "output.page_bytes");
    if (opts->most_rows < 1)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){opts->path, -1, -1, STKI_TEXT("%" PRId64, opts->most_rows), "at least 1"},
                            "number of rows (FFCV cannot read a .beton without samples)");
    status = choose_all(opts, &fields, err);
    if (status == STK_OK)
        stki_free(fields);
    return status;
}

/* ---- sizes ---- */

/* Returns the number of bytes of a sample's row; 0: the fields cannot be written. */
static int64_t row_bytes(const stki_sink_opts *opts)
{
    stki_beton_layout layout = {.field_count = opts->field_count, .page_bytes = page_of(opts), .table = INT64_MAX / 2};
    stki_beton_field *checked = stki_zalloc_array(opts->field_count + 1, sizeof *checked);
    stk_beton_field *fields = NULL;
    bool fine = checked && choose_all(opts, &fields, NULL) == STK_OK;

    for (int i = 0; fine && i < opts->field_count; i++)
        fine = stki_beton_check_field(opts->path, fields, i, layout.page_bytes, &checked[i], NULL) == STK_OK;
    fine = fine && stki_beton_lay_out(&layout, checked, INT64_MAX / 2, opts->path, NULL) == STK_OK;
    stki_free(fields);
    stki_free(checked);
    return fine ? layout.row_bytes : 0;
}

/* Returns where the regions of `count` samples of `each` bytes end; they start at `at` bytes into the pages, and none
 * crosses a page boundary. */
static int64_t place(int64_t at, int64_t count, int64_t each, int64_t page)
{
    const int64_t rest = at % page ? page - at % page : 0, fit = rest / each, whole = page / each;

    if (count <= fit)
        return at + count * each;
    count -= fit;
    return stki_sink_times(at + rest, (count - 1) / whole, page) + ((count - 1) % whole + 1) * each;
}

/* Returns the number of bytes of a value in its page. An empty one takes one byte; a JSON text has a NUL. */
static int64_t region_bytes(const stki_sink_field *field, const stki_sink_value *v)
{
    if (field->kind == STKI_SINK_ARRAY && field->ndim == 0)
        return 0; /* a number */
    return v->size + ((field->kind == STKI_SINK_BYTES && is_json(field)) || v->size == 0);
}

/* size->bytes is the size of the pages. */
static int64_t beton_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                             stki_sink_size *size)
{
    const int64_t page = page_of(opts), front = STKI_BETON_HEADER + (int64_t)opts->field_count * STKI_BETON_FIELD;
    int64_t each = 0, regions = 0, table;

    if (size->fixed == 0)
        size->fixed = row_bytes(opts);
    for (int i = 0; i < opts->field_count; i++) {
        const stki_sink_field *field = &opts->fields[i];

        if (field->kind == STKI_SINK_ARRAY && field->ndim == 0)
            continue; /* a number */
        regions++;
        if (count > 0)
            each = stki_sink_times(each, 1, region_bytes(field, &values[i]));
    }
    size->rows += count;
    if (regions == 0)
        return stki_sink_times(front, size->rows, size->fixed);
    if (count > 0)
        size->bytes = place(size->bytes, count, each < page ? each : page, page);
    table = stki_sink_times(0, size->rows, regions * STKI_BETON_ENTRY);
    return stki_sink_times(stki_round_up(stki_sink_times(front, opts->most_rows, size->fixed), page) +
                               stki_round_up(size->bytes, page),
                           1, table);
}

/* ---- opening ---- */

static stk_status reserve(struct beton_sink *b, stk_error *err)
{
    const stki_sink_opts *opts = &b->common.opts;

    b->casts = stki_zalloc_array(opts->field_count + 1, sizeof *b->casts);
    b->values = stki_zalloc_array(AT_ONCE * ((int64_t)opts->field_count + 1), sizeof *b->values);
    b->temporary = stki_sink_temporary(opts->folder, opts->path, "");
    b->sizes = stki_sink_temporary(opts->folder, opts->path, ".sizes");
    if (!b->casts || !b->values || !b->temporary || !b->sizes)
        return stki_fail_memory(err, AT_ONCE * opts->field_count * (int64_t)sizeof *b->values, opts->path);
    for (int i = 0; i < opts->field_count; i++)
        if (b->fields[i].kind == STK_BETON_INT || b->fields[i].kind == STK_BETON_FLOAT)
            stki_cast_init(&b->casts[i], b->fields[i].kind == STK_BETON_INT ? STK_I64 : STK_F64, opts->fields[i].dtype,
                           false);
    return STK_OK;
}

static stk_status open_writer(struct beton_sink *b, const json_t *mark, stk_error *err)
{
    const stki_sink_opts *opts = &b->common.opts;
    stki_beton_mark at = {0};
    stki_beton_making making = {b->temporary, b->sizes, mark ? &at : NULL};
    int64_t pages = 0;
    stk_status status = STK_OK;

    if (mark)
        status = stki_mark_rows(&b->common, mark, err);
    if (mark && status == STK_OK)
        status = stki_mark_int(mark, "pages", opts->path, &pages, err);
    if (mark && status == STK_OK)
        status = stki_mark_int(mark, "used", opts->path, &at.cursor.used, err);
    at.cursor.page = pages - 1;
    at.samples = b->common.rows;
    return status != STK_OK ? status
                            : stki_beton_hold(opts->path, &making, b->fields, opts->field_count, opts->most_rows,
                                              options_of(opts).page_bytes, &b->writer, err);
}

static void beton_destroy(stki_sink *sink)
{
    struct beton_sink *b = beton_of(sink);

    if (!sink)
        return;
    stk_beton_abort(b->writer);
    stki_free(b->fields);
    stki_free(b->casts);
    stki_free(b->values);
    stki_free(b->temporary);
    stki_free(b->sizes);
    stki_sink_common_fini(&b->common);
    stki_free(b);
}

static stk_status beton_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    struct beton_sink *b;
    stk_status status = beton_check(opts, err);

    if (status != STK_OK)
        return status;
    b = stki_zalloc(sizeof *b);
    if (!b)
        return stki_fail_memory(err, sizeof *b, opts->path);
    status = stki_sink_common_init(&b->common, &stki_sink_beton, opts, err);
    if (status == STK_OK)
        status = choose_all(&b->common.opts, &b->fields, err);
    if (status == STK_OK)
        status = reserve(b, err);
    if (status == STK_OK)
        status = open_writer(b, mark, err);
    if (status != STK_OK)
        beton_destroy(&b->common.base);
    else
        *out = &b->common.base;
    return status;
}

/* ---- rows ---- */

static stk_status fail_value(const stki_sink_field *field, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_VALUE, (stki_place){NULL, -1, -1, found, expected}, "field %s", field->name);
}

static stk_status check_value(const stki_sink_field *field, const stki_sink_value *v, stk_error *err)
{
    uint64_t number;

    if (field->kind == STKI_SINK_ARRAY && field->ndim == 0 && field->dtype == STK_U64) {
        memcpy(&number, v->bytes, sizeof number);
        if (number > INT64_MAX)
            return fail_value(field, STKI_TEXT("%" PRIu64, number), "at most 2^63 - 1", err);
    }
    if (field->kind != STKI_SINK_IMAGE)
        return STK_OK;
    if (v->encoding == STKI_PNG)
        return fail_value(field, "a PNG image", "pixels or JPEG: .beton stores no others (encode: jpeg)", err);
    if (v->encoding == STKI_PLAIN && v->channels != 3)
        return fail_value(field, STKI_TEXT("%" PRId64 " channels", v->channels), "3: .beton only stores RGB", err);
    return STK_OK;
}

static stk_status beton_fits(const stki_sink_opts *opts, const stki_sink_value *row, int *field, stk_error *err)
{
    int64_t bytes = 0;
    stk_status status = STK_OK;

    for (int i = 0; i < opts->field_count && status == STK_OK; i++) {
        *field = i;
        status = check_value(&opts->fields[i], &row[i], err);
        bytes = stki_sink_times(bytes, 1, region_bytes(&opts->fields[i], &row[i]));
    }
    if (status != STK_OK || bytes <= page_of(opts))
        return status;
    for (int i = *field = 0; i < opts->field_count; i++)
        if (row[i].size > row[*field].size)
            *field = i;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){NULL, -1, -1, STKI_TEXT("%" PRId64 " bytes", bytes),
                                     STKI_TEXT("at most %" PRId64 " (page_bytes)", page_of(opts))},
                        "the sample does not fit in a page");
}

static void take_image(const stki_sink_field *field, const stki_sink_value *v, stk_beton_value *out)
{
    const bool array = field->kind == STKI_SINK_ARRAY;

    out->height = array ? field->shape[0] : v->height;
    out->width = array ? field->shape[1] : v->width;
    out->jpeg = !array && v->encoding == STKI_JPEG;
}

static void take(const struct beton_sink *b, int field, const stki_sink_value *v, stk_beton_value *out)
{
    stk_dtype dtype = b->common.opts.fields[field].dtype;

    *out = (stk_beton_value){.bytes = v->bytes, .size = v->size};
    switch (b->fields[field].kind) {
    case STK_BETON_FLOAT:
        stki_cast_row(&b->casts[field], &out->real, 8, v->bytes, stk_dtype_size(dtype), 1);
        break;
    case STK_BETON_INT:
        stki_cast_row(&b->casts[field], &out->integer, 8, v->bytes, stk_dtype_size(dtype), 1);
        break;
    case STK_BETON_IMAGE:
        take_image(&b->common.opts.fields[field], v, out);
        break;
    default:
        break;
    }
}

static stk_status append_some(struct beton_sink *b, const stki_sink_value *values, int64_t count, stk_error *err)
{
    int fields = b->common.opts.field_count;

    for (int64_t i = 0; i < count * fields; i++)
        take(b, (int)(i % fields), &values[i], &b->values[i]);
    return stk_beton_append(b->writer, b->values, count, err);
}

static stk_status beton_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    struct beton_sink *b = beton_of(sink);
    int fields = b->common.opts.field_count;
    stk_status status = stki_sink_check_rows(&b->common, values, rows, err);

    if (status != STK_OK)
        return status;
    for (int64_t row = 0, count; row < rows && status == STK_OK; row += count) {
        count = rows - row < AT_ONCE ? rows - row : AT_ONCE;
        status = append_some(b, values + row * fields, count, err);
    }
    return stki_sink_took(&b->common, rows, status);
}

/* ---- marks and commit ---- */

static stk_status beton_mark(stki_sink *sink, json_t **out, stk_error *err)
{
    struct beton_sink *b = beton_of(sink);
    stki_beton_mark at;
    stk_status status = stki_sink_check_usable(&b->common, err);

    if (status == STK_OK)
        status = b->common.failed = stki_beton_mark_here(b->writer, &at, err);
    if (status != STK_OK)
        return status;
    return stki_mark_new(json_pack("{s:I, s:I, s:I}", "rows", (json_int_t)at.samples, "pages",
                                   (json_int_t)(at.cursor.page + 1), "used", (json_int_t)at.cursor.used),
                         out, err);
}

static stk_status beton_sync(stki_sink *sink, stk_error *err)
{
    return stki_beton_sync(beton_of(sink)->writer, err);
}

static stk_status beton_finish(stki_sink *sink, stk_error *err)
{
    struct beton_sink *b = beton_of(sink);
    stk_status status = stki_sink_check_finish(&b->common, err);

    if (status != STK_OK)
        return status;
    status = stki_beton_finish(b->writer, &b->bytes, err);
    b->writer = NULL;
    return b->common.failed = status;
}

static int beton_files(const stki_sink *sink, stki_sink_file *out, int room)
{
    const struct beton_sink *b = beton_of(sink);

    if (room > 0)
        out[0] = (stki_sink_file){b->temporary, b->common.opts.path, b->common.rows, b->bytes};
    return 1;
}

static const char *const endings[] = {".beton", NULL};

const stki_sink_ops stki_sink_beton = {
    .format = "beton",
    .endings = endings,
    .extensions = "json",
    .resumes = true,
    .mixes = true,
    .table = &option_table,
    .options_bytes = sizeof(struct beton_options),
    .check = beton_check,
    .fits = beton_fits,
    .measure = beton_measure,
    .open = beton_open,
    .append = beton_append,
    .mark = beton_mark,
    .sync = beton_sync,
    .finish = beton_finish,
    .files = beton_files,
    .destroy = beton_destroy,
};
