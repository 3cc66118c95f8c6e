/* loadbench_write.c: see loadbench_write.h. Files of records (.beton, tar, folders of images) are written sample by
 * sample, each with all of its fields. Files of arrays are written field by field, in chunks of a few megabytes. */
#include "loadbench_write.h"
#include "allocate.h"
#include "codec_encode.h"
#include "error.h"
#include "loadbench_stop.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* STK_E_CLOSED: interrupted by a signal. */
static stk_status goes_on(const struct lb_made_file *file, stk_error *err)
{
    if (!lb_stop_asked)
        return STK_OK;
    return stki_fail(err, STK_E_CLOSED, "%s: not created, because a signal stopped the program", file->full_path);
}

/* The fields of one sample. The memory is reused for the next sample. */
struct sample {
    struct part {
        void *pixels, *scratch;        /* the row, and memory for generating it */
        struct codec_encoder *encoder; /* NULL: the field is not encoded */
        const void *bytes;             /* the bytes to write */
        int64_t size, lengths[STK_MAX_DIMS];
    } parts[LB_MADE_FIELDS];
};

static bool is_number(const struct lb_made_field *field)
{
    return field->ndim == 0 && !field->encode;
}

/* Generates a row of a field in `to`, which has `largest_bytes` bytes, and sets its lengths and size. */
static stk_status make_row(const struct lb_made_field *field, int64_t row, void *scratch, void *to, int64_t *lengths,
                           int64_t *bytes, stk_error *err)
{
    int64_t elements = 1;

    lb_made_lengths(field, row, lengths);
    for (int i = 0; i < field->ndim; i++)
        elements *= lengths[i];
    *bytes = elements * stk_dtype_size(field->ask.dtype);
    if (field->ask.kind == LB_VALUES_PICTURES) {
        lb_picture_fill(&field->ask, row, lengths[0], lengths[1], lengths[2], to);
        return STK_OK;
    }
    if (elements == field->row_elements)
        return lb_values_fill(&field->ask, row, 1, elements, scratch, to, err);
    /* rows of varying size have no fixed position, so each gets its own seed */
    struct lb_values_ask ask = field->ask;
    ask.seed += row;
    return lb_values_fill(&ask, 0, 1, elements, scratch, to, err);
}

static void release(const struct lb_made_file *file, struct sample *sample)
{
    for (int i = 0; i < file->field_count; i++) {
        stki_free(sample->parts[i].pixels);
        stki_free(sample->parts[i].scratch);
        codec_encoder_destroy(sample->parts[i].encoder);
    }
}

static stk_status prepare(const struct lb_made_file *file, struct sample *sample, stk_error *err)
{
    memset(sample, 0, sizeof *sample);
    for (int i = 0; i < file->field_count; i++) {
        const struct lb_made_field *field = &file->made[i];
        const int64_t most = field->spread > 0 ? 16 * field->row_elements : field->row_elements;
        sample->parts[i].pixels = stki_zalloc(field->largest_bytes + 64);
        sample->parts[i].scratch = stki_zalloc_array(most + 1, 8);
        sample->parts[i].encoder = field->encode ? codec_encoder_create() : NULL;
        if (!sample->parts[i].pixels || !sample->parts[i].scratch || (field->encode && !sample->parts[i].encoder))
            return stki_fail_memory(err, field->largest_bytes + 8 * most, "a sample");
    }
    return STK_OK;
}

static stk_status make_part(const struct lb_made_field *field, int64_t row, struct part *part, stk_error *err)
{
    const stk_status status = make_row(field, row, part->scratch, part->pixels, part->lengths, &part->size, err);

    part->bytes = part->pixels;
    if (status != STK_OK || !field->encode)
        return status;
    return codec_encode(part->encoder, part->pixels, part->lengths[0], part->lengths[1], (int)part->lengths[2],
                        (int)field->quality, &part->bytes, &part->size, err);
}

static stk_status make_sample(const struct lb_made_file *file, int64_t row, struct sample *sample, stk_error *err)
{
    stk_status status = goes_on(file, err);

    for (int i = 0; i < file->field_count && status == STK_OK; i++)
        status = make_part(&file->made[i], row, &sample->parts[i], err);
    return status;
}

/* Converts a single number of any dtype. */
static stk_status number_of(const struct lb_made_field *field, const struct part *part, double *real, int64_t *whole,
                            stk_error *err)
{
    stk_tensor from, to;
    const int64_t one = 1;
    stk_status status = stk_tensor_borrow((void *)(uintptr_t)part->bytes, field->ask.dtype, 1, &one, NULL, &from, err);

    if (status == STK_OK && (status = stk_tensor_borrow(real, STK_F64, 1, &one, NULL, &to, err)) == STK_OK)
        status = stk_tensor_copy(&to, &from, err);
    if (status == STK_OK && (status = stk_tensor_borrow(whole, STK_I64, 1, &one, NULL, &to, err)) == STK_OK)
        status = stk_tensor_copy(&to, &from, err);
    return status;
}

static bool is_real(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

/* ---- .beton ---- */

static stk_beton_kind kind_of(const struct lb_made_field *field)
{
    if (field->encode)
        return STK_BETON_IMAGE;
    if (is_number(field))
        return is_real(field->ask.dtype) ? STK_BETON_FLOAT : STK_BETON_INT;
    return field->spread > 0 ? STK_BETON_BYTES : STK_BETON_NDARRAY;
}

static stk_status value_of(const struct lb_made_field *field, const struct part *part, stk_beton_value *out,
                           stk_error *err)
{
    *out = (stk_beton_value){.bytes = part->bytes, .size = part->size};
    if (field->encode) {
        out->height = part->lengths[0];
        out->width = part->lengths[1];
        out->jpeg = true;
    }
    return is_number(field) ? number_of(field, part, &out->real, &out->integer, err) : STK_OK;
}

static stk_status write_beton(const struct lb_made_file *file, struct sample *sample, stk_error *err)
{
    stk_beton_field fields[LB_MADE_FIELDS];
    stk_beton_value values[LB_MADE_FIELDS];
    stk_beton_writer *writer;
    stk_status status;

    for (int i = 0; i < file->field_count; i++) {
        const struct lb_made_field *field = &file->made[i];
        fields[i] = (stk_beton_field){.name = field->name,
                                      .kind = kind_of(field),
                                      .dtype = field->ask.dtype,
                                      .ndim = field->ndim,
                                      .shape = field->lengths};
    }
    status = stk_beton_create(file->full_path, fields, file->field_count, file->count, NULL, &writer, err);
    if (status != STK_OK)
        return status;
    for (int64_t row = 0; row < file->count && status == STK_OK; row++) {
        status = make_sample(file, row, sample, err);
        for (int i = 0; i < file->field_count && status == STK_OK; i++)
            status = value_of(&file->made[i], &sample->parts[i], &values[i], err);
        if (status == STK_OK)
            status = stk_beton_append(writer, values, 1, err);
    }
    if (status == STK_OK)
        return stk_beton_commit(writer, err);
    stk_beton_abort(writer);
    return status;
}

/* ---- tar ---- */

/* Encoded images are written as NAME.jpg (the field "image" as jpg), scalar labels as text in cls, and all others as
 * raw bytes. */
static stk_status tar_file(const struct lb_made_field *field, const struct part *part, char extension[64],
                           char text[32], stk_tar_file *out, stk_error *err)
{
    double real;
    int64_t whole;

    *out = (stk_tar_file){.extension = extension, .bytes = part->bytes, .size = part->size};
    snprintf(extension, 64, "%.40s%s", field->name, field->encode ? ".jpg" : "");
    if (strcmp(field->name, "image") == 0 && field->encode)
        snprintf(extension, 64, "jpg");
    if (field->values != LB_VALUES_LABELS || !is_number(field))
        return STK_OK;
    const stk_status status = number_of(field, part, &real, &whole, err);
    snprintf(extension, 64, "cls");
    snprintf(text, 32, "%" PRId64, whole);
    out->bytes = text;
    out->size = (int64_t)strlen(text);
    return status;
}

static stk_status write_tar(const struct lb_made_file *file, struct sample *sample, stk_error *err)
{
    char extensions[LB_MADE_FIELDS][64], texts[LB_MADE_FIELDS][32], key[32];
    stk_tar_file files[LB_MADE_FIELDS];
    stk_tar_writer *writer;
    stk_status status = stk_tar_create(file->full_path, &writer, err);

    if (status != STK_OK)
        return status;
    for (int64_t row = 0; row < file->count && status == STK_OK; row++) {
        status = make_sample(file, row, sample, err);
        for (int i = 0; i < file->field_count && status == STK_OK; i++)
            status = tar_file(&file->made[i], &sample->parts[i], extensions[i], texts[i], &files[i], err);
        snprintf(key, sizeof key, "%09" PRId64, row);
        if (status == STK_OK)
            status = stk_tar_append(writer, key, files, file->field_count, err);
    }
    if (status == STK_OK)
        return stk_tar_commit(writer, err);
    stk_tar_abort(writer);
    return status;
}

/* ---- folders of images ---- */

static stk_status write_bytes(const char *path, const void *bytes, int64_t size, stk_error *err)
{
    FILE *file = fopen(path, "wxe");

    if (!file)
        return stki_fail_errno(err, errno, path, "creating this file");
    const bool wrote = fwrite(bytes, 1, (size_t)size, file) == (size_t)size;
    const int failed = wrote ? 0 : errno;
    if (fclose(file) != 0 || !wrote)
        return stki_fail_errno(err, failed ? failed : errno, path, "writing");
    return STK_OK;
}

static stk_status write_image(const struct lb_made_file *file, const char *folder, int64_t row, struct sample *sample,
                              int image, int label, stk_error *err)
{
    double real;
    int64_t class = -1;
    char *path;
    stk_status status = make_sample(file, row, sample, err);

    if (status == STK_OK && label >= 0)
        status = number_of(&file->made[label], &sample->parts[label], &real, &class, err);
    if (status != STK_OK)
        return status;
    if (class >= 0) {
        path = stki_format("%s/class%06" PRId64, folder, class);
        if (path && mkdir(path, 0777) != 0 && errno != EEXIST)
            status = stki_fail_errno(err, errno, path, "creating this folder");
        stki_free(path);
        path = stki_format("%s/class%06" PRId64 "/%09" PRId64 ".jpg", folder, class, row);
    } else {
        path = stki_format("%s/%09" PRId64 ".jpg", folder, row);
    }
    if (!path)
        return stki_fail_memory(err, 256, "a path");
    if (status == STK_OK)
        status = write_bytes(path, sample->parts[image].bytes, sample->parts[image].size, err);
    stki_free(path);
    return status;
}

static void remove_folder(const char *folder, const struct lb_made_file *file, int64_t rows)
{
    /* removes only the class folders and numbered files that this program has written */
    for (int64_t row = 0; row < rows; row++) {
        for (int i = 0; i < file->field_count; i++) {
            char *path = file->made[i].encode ? stki_format("%s/%09" PRId64 ".jpg", folder, row)
                                              : stki_format("%s/class%06" PRId64 "/%09" PRId64 ".jpg", folder,
                                                            lb_values_class(&file->made[i].ask, row), row);
            if (path)
                unlink(path);
            stki_free(path);
        }
    }
    for (int i = 0; i < file->field_count; i++)
        for (int64_t class = 0; !file->made[i].encode && class < file->made[i].classes && class < file->count;
             class ++) {
            char *path = stki_format("%s/class%06" PRId64, folder, class);
            if (path)
                rmdir(path);
            stki_free(path);
        }
    rmdir(folder);
}

/* Writes the folder under a temporary name, and renames it when it is complete. */
static stk_status write_images(const struct lb_made_file *file, struct sample *sample, stk_error *err)
{
    char *folder = stki_format("%s.tmp.%ld", file->full_path, (long)getpid());
    int image = 0, label = -1;
    int64_t rows = 0; /* number of rows started */
    stk_status status = STK_OK;

    for (int i = 0; i < file->field_count; i++)
        *(file->made[i].encode ? &image : &label) = i;
    if (!folder)
        return stki_fail_memory(err, 256, "a path");
    if (mkdir(folder, 0777) != 0)
        status = stki_fail_errno(err, errno, folder, "creating this folder");
    for (; rows < file->count && status == STK_OK; rows++)
        status = write_image(file, folder, rows, sample, image, label, err);
    if (status == STK_OK && rename(folder, file->full_path) != 0)
        status = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
                     ? stki_fail(err, STK_E_MISMATCH, "%s: exists; folders are never overwritten: remove it first",
                                 file->full_path)
                     : stki_fail_errno(err, errno, file->full_path, "renaming the folder");
    if (status != STK_OK)
        remove_folder(folder, file, rows);
    stki_free(folder);
    return status;
}

static stk_status write_records(const struct lb_made_file *file, stk_error *err)
{
    struct sample *sample = stki_zalloc(sizeof *sample);
    stk_status status = sample ? prepare(file, sample, err) : stki_fail_memory(err, sizeof *sample, "a sample");

    if (status == STK_OK)
        status = file->format == LB_FORMAT_BETON ? write_beton(file, sample, err)
                 : file->format == LB_FORMAT_TAR ? write_tar(file, sample, err)
                                                 : write_images(file, sample, err);
    if (sample)
        release(file, sample);
    stki_free(sample);
    return status;
}

/* ---- files of arrays ---- */

enum { CHUNK_BYTES = 4 << 20 };

static stk_status write_field(const struct lb_made_file *file, const struct lb_made_field *field, stk_writer *writer,
                              stk_error *err)
{
    const int64_t chunk = field->row_bytes > 0 && field->row_bytes < CHUNK_BYTES ? CHUNK_BYTES / field->row_bytes : 1;
    void *scratch = stki_zalloc_array(chunk * field->row_elements + 1, 8),
         *rows = stki_zalloc(chunk * field->row_bytes + 1);
    stk_status status;

    if (!scratch || !rows)
        status = stki_fail_memory(err, chunk * (field->row_bytes + 8 * field->row_elements), file->full_path);
    else
        status = stk_writer_begin(writer, field->name, field->ask.dtype, field->ndim, field->lengths, file->count, err);
    for (int64_t first = 0; first < file->count && status == STK_OK; first += chunk) {
        const int64_t count = file->count - first < chunk ? file->count - first : chunk;
        status = lb_values_fill(&field->ask, first, count, field->row_elements, scratch, rows, err);
        if (status == STK_OK)
            status = stk_writer_append(writer, rows, count, err);
        if (status == STK_OK)
            status = goes_on(file, err);
    }
    stki_free(scratch);
    stki_free(rows);
    return status == STK_OK ? stk_writer_end(writer, err) : status;
}

static stk_status write_arrays(const struct lb_made_file *file, stk_error *err)
{
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *writer;
    stk_status status;

    opts.level = (int32_t)file->level;
    opts.chunk_rows = file->chunk_rows;
    opts.alias = file->format == LB_FORMAT_NPY || file->format == LB_FORMAT_NPZ;
    status = stk_writer_create(file->full_path, lb_format_words[file->format], &opts, &writer, err);
    if (status != STK_OK)
        return status;
    for (int i = 0; i < file->field_count && status == STK_OK; i++)
        status = write_field(file, &file->made[i], writer, err);
    if (status == STK_OK)
        return stk_writer_commit(writer, err);
    stk_writer_abort(writer);
    return status;
}

stk_status lb_write(const struct lb_made_file *file, stk_error *err)
{
    return file->format >= LB_FORMAT_BETON ? write_records(file, err) : write_arrays(file, err);
}
