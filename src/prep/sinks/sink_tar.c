/* sink_tar.c: writes tar archives of samples for WebDataset (tar_write.h). A row is a sample whose key is its position
 * in the job's order with at least nine digits; each field is a file of the sample.
 *
 * The content of a field's files depends on the last part of their extension: cls, txt and json of numbers are text;
 * npy is an .npy file of the row's own shape; all others are the row's bytes. The default extension is jpg or png for
 * image files, cls for integers, npy for other arrays (including pixels), txt, json or bin for documents, depending on
 * their source, and bin for bytes. Fields that would share a default extension get their name as a prefix: "left.npy",
 * "right.npy". */
#include "allocate.h"
#include "cast.h"
#include "error.h"
#include "npy_form.h"
#include "sink_common.h"
#include "sinks.h"
#include "tar.h"
#include "tar_write.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum form { FORM_BYTES, FORM_NPY, FORM_WHOLE, FORM_REAL };

struct tar_field {
    enum form form;
    char *extension; /* NULL: depends on the kind of each image */
    char *prefix;    /* used if `extension` is NULL: "" or "NAME." */
    stki_cast cast;  /* converts numbers to i64, u64 or f64 */
};

struct tar_sink {
    stki_sink_common common; /* first member */
    stki_output *output;     /* NULL: finished */
    char *temporary;
    struct tar_field *fields;
    int64_t bytes;
};

static struct tar_sink *tar_of(const stki_sink *sink)
{
    return (struct tar_sink *)(uintptr_t)sink;
}

/* ---- extensions ---- */

static bool is_whole(stk_dtype dtype)
{
    return dtype == STK_BOOL || (dtype >= STK_U8 && dtype <= STK_I64);
}

static bool is_real(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

static bool is_number(const stki_sink_field *field)
{
    return field->kind == STKI_SINK_ARRAY && field->ndim == 0 && (is_whole(field->dtype) || is_real(field->dtype));
}

/* Returns the default extension of a field; NULL: an image, for which it depends on the value. */
static const char *usual_extension(const stki_sink_field *field)
{
    if (field->kind == STKI_SINK_IMAGE)
        return NULL;
    if (field->kind == STKI_SINK_RAGGED && field->ending && !field->encode)
        return field->ending;
    if (field->kind == STKI_SINK_BYTES)
        return field->encode && !strcmp(field->encode, "json") ? "json" : "bin";
    return is_number(field) && is_whole(field->dtype) ? "cls" : "npy";
}

static const char *last_part(const char *extension)
{
    const char *dot = strrchr(extension, '.');

    return dot ? dot + 1 : extension;
}

static bool is_text(const char *part)
{
    return !strcmp(part, "cls") || !strcmp(part, "txt") || !strcmp(part, "json");
}

static enum form form_of(const stki_sink_field *field, const char *extension)
{
    const char *part = extension ? last_part(extension) : "";

    if (is_number(field) && is_text(part))
        return is_whole(field->dtype) ? FORM_WHOLE : FORM_REAL;
    return !strcmp(part, "npy") && field->kind != STKI_SINK_BYTES ? FORM_NPY : FORM_BYTES;
}

/* Returns whether another field has, or may get, the extension that is the default of this one. */
static bool is_shared(const stki_sink_opts *opts, int index)
{
    const char *own = usual_extension(&opts->fields[index]), *other;

    for (int i = 0; i < opts->field_count; i++) {
        if (i == index)
            continue;
        other = opts->fields[i].extension ? opts->fields[i].extension : usual_extension(&opts->fields[i]);
        if (own == other || (own && other && !strcmp(own, other)))
            return true;
        if (!own && other && (!strcmp(other, "jpg") || !strcmp(other, "png") || !strcmp(other, "npy")))
            return true;
        if (own && !other && !strcmp(own, "npy")) /* pixels are stored as npy */
            return true;
    }
    return false;
}

static void lower(char *text)
{
    for (; text && *text; text++)
        *text = (char)(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
}

static stk_status choose(const stki_sink_opts *opts, int index, struct tar_field *out, stk_error *err)
{
    const stki_sink_field *field = &opts->fields[index];
    const char *usual = usual_extension(field);
    bool named = !field->extension && is_shared(opts, index);

    out->prefix = stki_format("%s%s", named ? field->name : "", named ? "." : "");
    lower(out->prefix);
    if (out->prefix && field->extension)
        out->extension = stki_strdup(field->extension);
    else if (out->prefix && usual)
        out->extension = stki_format("%s%s", out->prefix, usual);
    if (!out->prefix || (!out->extension && (field->extension || usual)))
        return stki_fail_memory(err, 64, field->name);
    out->form = form_of(field, out->extension);
    if (out->form == FORM_WHOLE || out->form == FORM_REAL)
        stki_cast_init(&out->cast,
                       out->form == FORM_REAL    ? STK_F64
                       : field->dtype == STK_U64 ? STK_U64
                                                 : STK_I64,
                       field->dtype, false);
    return STK_OK;
}

/* Returns the n-th extension that the field's files may have; NULL: no more. */
static const char *possible(const struct tar_field *field, int n, char *buffer, size_t size)
{
    static const char *const images[] = {"jpg", "png", "npy"};

    if (field->extension)
        return n == 0 ? field->extension : NULL;
    if (n >= 3)
        return NULL;
    snprintf(buffer, size, "%s%s", field->prefix, images[n]);
    return buffer;
}

static bool collide(const struct tar_field *a, const struct tar_field *b)
{
    char one[STKI_TAR_EXTENSION_NAME + 8], other[STKI_TAR_EXTENSION_NAME + 8];

    for (int i = 0; possible(a, i, one, sizeof one); i++)
        for (int k = 0; possible(b, k, other, sizeof other); k++)
            if (!strcmp(possible(a, i, one, sizeof one), possible(b, k, other, sizeof other)))
                return true;
    return false;
}

static const char *image_extension(enum stki_encoding encoding)
{
    return encoding == STKI_JPEG ? "jpg" : encoding == STKI_PNG ? "png" : "npy";
}

/* Returns whether the extension is compatible with the encoding. Only extensions of images are checked. */
static bool fits(const char *extension, enum stki_encoding encoding)
{
    const char *part = last_part(extension);
    bool jpeg = !strcmp(part, "jpg") || !strcmp(part, "jpeg");

    return (!jpeg && strcmp(part, "png") != 0 && strcmp(part, "npy") != 0) ||
           !strcmp(part, image_extension(encoding)) || (jpeg && encoding == STKI_JPEG);
}

/* Checks the job's extension against the kind of images, as far as it is known in advance. */
static stk_status check_images(const stki_sink_opts *opts, const stki_sink_field *field, const char *extension,
                               stk_error *err)
{
    static const char *const words[] = {[STKI_JPEG] = "JPEG images", [STKI_PNG] = "PNG images"};
    const bool pixels = field->kind == STKI_SINK_ARRAY && field->ndim >= 2;
    const unsigned encodings = pixels ? 1U << STKI_PLAIN : field->encodings;
    enum stki_encoding one = STKI_PLAIN;
    bool may = encodings == 0;

    for (int i = STKI_PLAIN; i <= STKI_PNG; i++)
        if (encodings & 1U << i) {
            may = may || fits(extension, (enum stki_encoding)i);
            one = (enum stki_encoding)i;
        }
    if (may)
        return STK_OK;
    return stki_sink_refuse(
        opts, field, one == STKI_PLAIN ? NULL : words[one],
        one == STKI_PLAIN
            ? STKI_TEXT("an image of the kind given by extension: %s: encode the field (encode: jpeg or png)",
                        extension)
            : STKI_TEXT("an image of the kind given by extension: %s: remove it, or set it to %s", extension,
                        image_extension(one)),
        err);
}

static stk_status check_field(const stki_sink_opts *opts, const struct tar_field *fields, int index, stk_error *err)
{
    const stki_sink_field *field = &opts->fields[index];
    char buffer[STKI_TAR_EXTENSION_NAME + 8];
    stki_npy_form form;
    stk_status status = STK_OK;

    for (int i = 0; status == STK_OK && possible(&fields[index], i, buffer, sizeof buffer); i++)
        status = stki_tar_check_extension(possible(&fields[index], i, buffer, sizeof buffer), opts->path, err);
    for (int i = 0; i < index && status == STK_OK; i++)
        if (collide(&fields[i], &fields[index]))
            return stki_sink_refuse(opts, field, STKI_TEXT("the same extension as %s", opts->fields[i].name),
                                    "a different one (output.fields.NAME.extension)", err);
    if (status == STK_OK && field->extension)
        status = check_images(opts, field, field->extension, err);
    if (status == STK_OK && fields[index].form == FORM_NPY)
        status = stki_npy_form_init(&form, opts->path, field->dtype, 0, NULL, field->alias, err);
    return status;
}

static void free_fields(struct tar_field *fields, int count)
{
    for (int i = 0; fields && i < count; i++) {
        stki_free(fields[i].extension);
        stki_free(fields[i].prefix);
    }
    stki_free(fields);
}

static stk_status choose_all(const stki_sink_opts *opts, struct tar_field **out, stk_error *err)
{
    struct tar_field *fields = stki_zalloc_array(opts->field_count + 1, sizeof *fields);
    stk_status status =
        fields ? STK_OK : stki_fail_memory(err, opts->field_count * (int64_t)sizeof *fields, opts->path);

    for (int i = 0; i < opts->field_count && status == STK_OK; i++)
        status = choose(opts, i, &fields[i], err);
    for (int i = 0; i < opts->field_count && status == STK_OK; i++)
        status = check_field(opts, fields, i, err);
    if (status != STK_OK)
        free_fields(fields, opts->field_count);
    else
        *out = fields;
    return status;
}

static stk_status tar_check(const stki_sink_opts *opts, stk_error *err)
{
    struct tar_field *fields;
    stk_status status = choose_all(opts, &fields, err);

    if (status == STK_OK)
        free_fields(fields, opts->field_count);
    return status;
}

/* ---- values ---- */

static void shape_of(const stki_sink_field *field, const stki_sink_value *v, int64_t shape[STK_MAX_DIMS])
{
    memcpy(shape, field->shape, STK_MAX_DIMS * sizeof *shape);
    if (field->kind == STKI_SINK_RAGGED)
        shape[0] = v->length;
    if (field->kind == STKI_SINK_IMAGE) {
        shape[0] = v->height;
        shape[1] = v->width;
        shape[2] = v->channels;
    }
}

static stk_status npy_form(const stki_sink_opts *opts, const stki_sink_field *field, const int64_t *shape,
                           stki_npy_form *form, stk_error *err)
{
    return stki_npy_form_init(form, opts->path, field->dtype == STK_DTYPE_NONE ? STK_U8 : field->dtype, field->ndim - 1,
                              shape + 1, field->alias, err);
}

/* Returns the size of a value without the NUL that ends JSON texts from FFCV. */
static int64_t bytes_of(const stki_sink_value *v, const char *extension)
{
    const bool nul =
        !strcmp(last_part(extension), "json") && v->size > 0 && ((const char *)v->bytes)[v->size - 1] == '\0';

    return v->size - nul;
}

/* ---- sizes ---- */

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 128)
        text++;
    return !*text;
}

static int64_t digits(int64_t number)
{
    int64_t count = 1;

    for (; number >= 10; number /= 10)
        count++;
    return count < 9 ? 9 : count;
}

/* Returns the length of a member's name: the key of row `row`, a dot, and the extension, prefixed with the field's name
 * if it is shared. */
static int64_t name_bytes(const stki_sink_opts *opts, int index, const char *extension, int64_t row, bool *ascii)
{
    const stki_sink_field *field = &opts->fields[index];
    int64_t bytes = digits(opts->first_row + row) + 1 + (int64_t)strlen(extension);

    *ascii = is_ascii(extension) && is_ascii(field->name);
    if (!field->extension && (!*ascii || bytes + (int64_t)strlen(field->name) + 1 > 99) && is_shared(opts, index))
        return bytes + (int64_t)strlen(field->name) + 1;
    *ascii = is_ascii(extension);
    return bytes;
}

static int64_t member_bytes(const stki_sink_opts *opts, int index, const stki_sink_value *v, int64_t row)
{
    const stki_sink_field *field = &opts->fields[index];
    const char *extension = field->extension ? field->extension : usual_extension(field);
    stki_npy_form form = {0};
    int64_t size = v->size, shape[STK_MAX_DIMS];
    bool ascii;

    extension = extension ? extension : image_extension(v->encoding);
    switch (form_of(field, extension)) {
    case FORM_NPY:
        shape_of(field, v, shape);
        (void)npy_form(opts, field, shape, &form, NULL);
        size = stki_sink_times(form.header_bytes, 1, size);
        break;
    case FORM_BYTES:
        size = v->bytes ? bytes_of(v, extension) : size;
        break;
    default:
        size = 1; /* a number fits in one block */
    }
    row = name_bytes(opts, index, extension, row, &ascii);
    return stki_tar_member_bytes(row, ascii, size < INT64_MAX / 4 ? size : INT64_MAX / 4);
}

static int64_t tar_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                           stki_sink_size *size)
{
    int64_t row = 0;

    for (int i = 0; i < opts->field_count && count > 0; i++)
        row = stki_sink_times(row, 1, member_bytes(opts, i, &values[i], size->rows));
    size->rows += count;
    size->bytes = stki_sink_times(size->bytes, count, row);
    return stki_tar_archive_bytes(size->bytes);
}

/* ---- rows ---- */

static stk_status put_file(struct tar_sink *t, const char *key, const char *extension, const char *head,
                           int64_t head_bytes, const void *bytes, int64_t size, bool lasting, stk_error *err)
{
    stk_status status = stki_tar_put_header(t->output, key, extension, head_bytes + size, err);

    if (status == STK_OK && head_bytes > 0)
        status = stki_output_append(t->output, head, head_bytes, err);
    if (status == STK_OK)
        status =
            lasting ? stki_output_lend(t->output, bytes, size, err) : stki_output_append(t->output, bytes, size, err);
    return status != STK_OK ? status : stki_tar_put_tail(t->output, err);
}

static int write_number(const struct tar_field *own, const stki_sink_field *field, const void *bytes, char *to,
                        size_t size)
{
    union {
        int64_t i;
        uint64_t u;
        double f;
    } number;

    stki_cast_row(&own->cast, &number, 8, bytes, stk_dtype_size(field->dtype), 1);
    if (own->form == FORM_REAL)
        return snprintf(to, size, "%.17g", number.f);
    return field->dtype == STK_U64 ? snprintf(to, size, "%" PRIu64, number.u)
                                   : snprintf(to, size, "%" PRId64, number.i);
}

static stk_status put_npy(struct tar_sink *t, const char *key, const char *extension, const stki_sink_field *field,
                          const stki_sink_value *v, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    char header[STKI_NPY_FORM_MAX];
    stki_npy_form form;
    stk_status status;

    shape_of(field, v, shape);
    status = npy_form(&t->common.opts, field, shape, &form, err);
    if (status != STK_OK)
        return status;
    stki_npy_form_write(&form, shape[0], header);
    return put_file(t, key, extension, header, form.header_bytes, v->bytes, v->size, true, err);
}

/* Rejects images that do not match the job's extension. */
static stk_status tar_fits(const stki_sink_opts *opts, const stki_sink_value *row, int *field, stk_error *err)
{
    for (int i = 0; i < opts->field_count; i++) {
        const stki_sink_field *of = &opts->fields[i];
        const enum stki_encoding encoding = row[i].encoding;

        if (of->kind != STKI_SINK_IMAGE || !of->extension || fits(of->extension, encoding))
            continue;
        *field = i;
        return stki_fail_at(
            err, STK_E_BAD_VALUE,
            (stki_place){NULL, -1, -1,
                         encoding == STKI_PLAIN ? "pixels" : STKI_TEXT("a %s image", image_extension(encoding)),
                         STKI_TEXT("an image that matches extension: %s (output.fields.%s)", of->extension, of->name)},
            "field %s", of->name);
    }
    return STK_OK;
}

static stk_status put_value(struct tar_sink *t, const char *key, int index, const stki_sink_value *v, stk_error *err)
{
    const stki_sink_field *field = &t->common.opts.fields[index];
    const struct tar_field *own = &t->fields[index];
    const char *extension = own->extension;
    char buffer[STKI_TAR_EXTENSION_NAME + 8], text[40];
    enum form form = own->form;
    int length;

    if (field->kind == STKI_SINK_IMAGE) {
        if (!extension) {
            snprintf(buffer, sizeof buffer, "%s%s", own->prefix, image_extension(v->encoding));
            extension = buffer;
        }
        form = !strcmp(last_part(extension), "npy") ? FORM_NPY : FORM_BYTES;
    }
    if (form == FORM_NPY)
        return put_npy(t, key, extension, field, v, err);
    if (form == FORM_BYTES)
        return put_file(t, key, extension, NULL, 0, v->bytes, bytes_of(v, extension), true, err);
    length = write_number(own, field, v->bytes, text, sizeof text);
    return put_file(t, key, extension, NULL, 0, text, length, false, err);
}

static stk_status tar_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    struct tar_sink *t = tar_of(sink);
    const int fields = t->common.opts.field_count;
    char key[32];
    stk_status status = stki_sink_check_rows(&t->common, values, rows, err);

    if (status != STK_OK)
        return status;
    for (int64_t row = 0; row < rows && status == STK_OK; row++) {
        snprintf(key, sizeof key, "%09" PRId64, t->common.opts.first_row + t->common.rows + row);
        for (int i = 0; i < fields && status == STK_OK; i++)
            status = put_value(t, key, i, &values[row * fields + i], err);
    }
    if (status == STK_OK)
        status = stki_output_settle(t->output, err);
    return stki_sink_took(&t->common, rows, status);
}

/* ---- sink operations ---- */

static stk_status open_file(struct tar_sink *t, const json_t *mark, stk_error *err)
{
    const stki_sink_opts *opts = &t->common.opts;
    int64_t keep = -1;
    stk_status status = choose_all(opts, &t->fields, err);

    if (status == STK_OK && mark)
        status = stki_mark_rows(&t->common, mark, err);
    if (status == STK_OK && mark)
        status = stki_mark_int(mark, "bytes", opts->path, &keep, err);
    if (status != STK_OK)
        return status;
    t->temporary = stki_sink_temporary(opts->folder, opts->path, "");
    return t->temporary ? stki_output_hold(opts->path, t->temporary, keep, &t->output, err)
                        : stki_fail_memory(err, (int64_t)strlen(opts->path), opts->path);
}

static void tar_destroy(stki_sink *sink)
{
    struct tar_sink *t = tar_of(sink);

    if (!sink)
        return;
    stki_output_abort(t->output);
    free_fields(t->fields, t->common.opts.field_count);
    stki_free(t->temporary);
    stki_sink_common_fini(&t->common);
    stki_free(t);
}

static stk_status tar_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    struct tar_sink *t = stki_zalloc(sizeof *t);
    stk_status status;

    if (!t)
        return stki_fail_memory(err, sizeof *t, opts->path);
    status = stki_sink_common_init(&t->common, &stki_sink_tar, opts, err);
    if (status == STK_OK)
        status = open_file(t, mark, err);
    if (status != STK_OK)
        tar_destroy(&t->common.base);
    else
        *out = &t->common.base;
    return status;
}

static stk_status tar_mark(stki_sink *sink, json_t **out, stk_error *err)
{
    struct tar_sink *t = tar_of(sink);
    stk_status status = stki_sink_check_usable(&t->common, err);

    if (status == STK_OK)
        status = t->common.failed = stki_output_flush(t->output, err);
    if (status != STK_OK)
        return status;
    return stki_mark_new(json_pack("{s:I, s:I}", "rows", (json_int_t)t->common.rows, "bytes",
                                   (json_int_t)stki_output_position(t->output)),
                         out, err);
}

static stk_status tar_sync(stki_sink *sink, stk_error *err)
{
    return stki_output_sync(tar_of(sink)->output, err);
}

static stk_status tar_finish(stki_sink *sink, stk_error *err)
{
    struct tar_sink *t = tar_of(sink);
    stk_status status = stki_sink_check_finish(&t->common, err);

    if (status == STK_OK)
        status = stki_tar_put_end(t->output, err);
    if (status != STK_OK)
        return t->common.failed = status;
    t->bytes = stki_output_position(t->output);
    status = stki_output_commit(t->output, err);
    t->output = NULL;
    return t->common.failed = status;
}

static int tar_files(const stki_sink *sink, stki_sink_file *out, int room)
{
    const struct tar_sink *t = tar_of(sink);

    if (room > 0)
        out[0] = (stki_sink_file){t->temporary, t->common.opts.path, t->common.rows, t->bytes};
    return 1;
}

static bool tar_settled(const stki_sink *sink)
{
    (void)sink;
    return true;
}

static const char *const endings[] = {".tar", NULL};

const stki_sink_ops stki_sink_tar = {
    .format = "tar",
    .endings = endings,
    .extensions = "any",
    .aliases = true,
    .resumes = true,
    .check = tar_check,
    .fits = tar_fits,
    .measure = tar_measure,
    .open = tar_open,
    .append = tar_append,
    .mark = tar_mark,
    .sync = tar_sync,
    .finish = tar_finish,
    .files = tar_files,
    .settled = tar_settled,
    .destroy = tar_destroy,
};
