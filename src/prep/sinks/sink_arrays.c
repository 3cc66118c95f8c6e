/* sink_arrays.c: see sink_arrays.h. Rows arrive with all their fields, but the formats store one array after the other:
 * the array with the most bytes is written directly, and the others are collected in unnamed temporary files and
 * appended at the end. The choice depends only on the fields. */
#include "sink_arrays.h"
#include "allocate.h"
#include "error.h"
#include "field_arrays.h"
#include "hdf5_pack.h"
#include "npy_form.h"
#include "output.h"
#include "spill.h"
#include "writers.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 1 << 20, FILE_MOST = 1 << 10 /* size of a file without arrays */ };

struct arrays {
    stki_sink_common common; /* first member */
    stki_arrays_opts own;
    stki_field_arrays arrays;
    int direct; /* index of the array that is written directly */
    stki_spill **spills;
    stki_writer *writer; /* NULL: finished */
    char *temporary;
    int64_t bytes;
};

static struct arrays *arrays_of(const stki_sink *sink)
{
    return (struct arrays *)(uintptr_t)sink;
}

/* ---- supported fields ---- */

static stk_status check_part(const stki_sink_opts *opts, const stki_sink_array *array, bool npy, stk_dtype except,
                             stk_error *err)
{
    const stki_sink_field *field = &opts->fields[array->field];
    stki_npy_form form;
    stk_status status = STK_OK;

    if (npy)
        status = stki_npy_form_init(&form, opts->path, array->dtype, array->ndim, array->shape, array->alias, err);
    else if (array->dtype == except && except != STK_DTYPE_NONE)
        status = stki_sink_refuse(opts, field, stk_dtype_long_name(array->dtype),
                                  "another type: use the transform cast", err);
    else if (array->ndim >= STK_MAX_DIMS)
        status =
            stki_sink_refuse(opts, field, STKI_TEXT("%d axes", array->ndim), STKI_TEXT("below %d", STK_MAX_DIMS), err);
    return status;
}

stk_status stki_arrays_check(const stki_sink_opts *opts, bool npy, stk_dtype except, stk_error *err)
{
    stki_field_arrays arrays;
    stk_status status = stki_field_arrays_init(&arrays, opts->fields, opts->field_count, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < arrays.count && status == STK_OK; i++)
        status = check_part(opts, &arrays.items[i], npy, except, err);
    stki_field_arrays_fini(&arrays);
    return status;
}

/* ---- sizes ---- */

int64_t stki_arrays_measure(const stki_sink_opts *opts, int64_t each, const stki_sink_value *values, int64_t count,
                            stki_sink_size *size)
{
    const int64_t bytes = stki_field_arrays_measure(opts, values, count, size);

    if (size->fixed == 0) {
        size->fixed = FILE_MOST;
        for (int i = 0; i < opts->field_count; i++) {
            const enum stki_sink_kind kind = opts->fields[i].kind;
            const int arrays = kind == STKI_SINK_ARRAY ? 1 : kind == STKI_SINK_IMAGE ? 3 : 2;

            size->fixed += arrays * (each + 2 * ((int64_t)strlen(opts->fields[i].name) + 16));
        }
    }
    return stki_sink_times(size->fixed, 1, bytes);
}

int64_t stki_arrays_packed(int level, bool shuffled, const stki_sink_field *field, const void *bytes, int64_t size)
{
    const int64_t item = shuffled && field->dtype != STK_DTYPE_NONE ? stk_dtype_size(field->dtype) : 1;
    stki_hdf5_packer *packer;
    stki_hdf5_packed packed = {.count = size};
    void *room;

    if (level == 0)
        return -1;
    if (size == 0 || stki_hdf5_packer_create(size, item, level, 1, &packer, NULL) != STK_OK)
        return size;
    room = stki_hdf5_packer_room(packer);
    memcpy(room, bytes, (size_t)size);
    if (stki_hdf5_packer_submit(packer, NULL) != STK_OK || stki_hdf5_packer_take(packer, &packed, NULL) != STK_OK)
        packed.count = size;
    stki_hdf5_packer_destroy(packer);
    return packed.count;
}

/* ---- opening ---- */

/* Returns the number of bytes per sample; values of unknown size count as the largest. */
static int64_t weight(const struct arrays *a, int index)
{
    const stki_sink_array *array = &a->arrays.items[index];
    int64_t largest = a->common.opts.fields[array->field].largest_bytes;

    if (array->kind != STKI_ARRAY_VALUES)
        return array->row_bytes;
    return largest > 0 ? largest : INT64_MAX;
}

static stk_status begin(struct arrays *a, int index, stk_error *err)
{
    const stki_sink_array *array = &a->arrays.items[index];
    bool whole = array->kind == STKI_ARRAY_ROWS;
    int64_t rows = a->common.opts.may_skip ? -1 : stki_field_array_rows(array, a->common.opts.most_rows);

    if (index != a->direct)
        rows = array->rows; /* complete */
    a->writer->chunk_rows = whole ? a->own.chunk_rows : 0;
    return stki_writer_begin(a->writer, array->name, array->dtype, array->ndim, array->shape, rows, err);
}

static stk_status put(void *context, int array, const void *bytes, int64_t rows, bool lasting, stk_error *err)
{
    struct arrays *a = context;

    (void)lasting;
    if (array == a->direct)
        return stki_writer_append(a->writer, bytes, rows, err);
    return stki_spill_append(a->spills[array], bytes, rows * a->arrays.items[array].row_bytes, err);
}

static stk_status open_writer(struct arrays *a, stk_error *err)
{
    const stki_sink_opts *opts = &a->common.opts;
    stki_writer_opts wanted = {.level = a->own.level,
                               .chunk_rows = a->own.chunk_rows,
                               .threads = opts->threads > 0 ? opts->threads : 1,
                               .temporary = a->temporary};

    for (int i = 0; i < opts->field_count; i++)
        wanted.alias |= opts->fields[i].alias;
    return stki_writer_create(opts->path, a->common.base.ops->format, &wanted, &a->writer, err);
}

static stk_status open_all(struct arrays *a, stk_error *err)
{
    const stki_sink_opts *opts = &a->common.opts;
    stk_status status = stki_field_arrays_init(&a->arrays, opts->fields, opts->field_count, err);

    if (status != STK_OK)
        return status;
    a->temporary = stki_sink_temporary(opts->folder, opts->path, "");
    a->spills = stki_zalloc_array(a->arrays.count + 1, sizeof(stki_spill *));
    if (!a->temporary || !a->spills)
        return stki_fail_memory(err, a->arrays.count * (int64_t)sizeof(stki_spill *), opts->path);
    for (int i = 1; i < a->arrays.count; i++)
        if (weight(a, i) > weight(a, a->direct))
            a->direct = i;
    status = open_writer(a, err);
    for (int i = 0; i < a->arrays.count && status == STK_OK; i++)
        if (i != a->direct)
            status = stki_spill_create(a->temporary, &a->spills[i], err);
    if (status == STK_OK && a->arrays.count > 0)
        status = begin(a, a->direct, err);
    return status != STK_OK ? status : stki_field_arrays_begin(&a->arrays, put, a, err);
}

stk_status stki_arrays_open(const stki_sink_ops *ops, const stki_sink_opts *opts, const stki_arrays_opts *own,
                            stki_sink **out, stk_error *err)
{
    struct arrays *a = stki_zalloc(sizeof *a);
    stk_status status;

    if (!a)
        return stki_fail_memory(err, sizeof *a, opts->path);
    a->own = *own;
    status = stki_sink_common_init(&a->common, ops, opts, err);
    if (status == STK_OK)
        status = open_all(a, err);
    if (status != STK_OK)
        stki_arrays_destroy(&a->common.base);
    else
        *out = &a->common.base;
    return status;
}

/* ---- rows and commit ---- */

stk_status stki_arrays_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    struct arrays *a = arrays_of(sink);
    stk_status status = stki_sink_check_rows(&a->common, values, rows, err);

    if (status != STK_OK)
        return status;
    return stki_sink_took(&a->common, rows,
                          stki_field_arrays_append(&a->arrays, values, rows, a->common.opts.field_count, put, a, err));
}

static stk_status copy_part(struct arrays *a, int index, void *piece, int64_t at_once, stk_error *err)
{
    const stki_sink_array *array = &a->arrays.items[index];
    stk_status status = begin(a, index, err);

    for (int64_t row = 0, count; row < array->rows && status == STK_OK; row += count) {
        count = array->rows - row < at_once ? array->rows - row : at_once;
        status = stki_spill_read(a->spills[index], row * array->row_bytes, piece, count * array->row_bytes, err);
        if (status == STK_OK)
            status = stki_writer_append(a->writer, piece, count, err);
    }
    return status != STK_OK ? status : stki_writer_end(a->writer, err);
}

static stk_status copy_waiting(struct arrays *a, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < a->arrays.count && status == STK_OK; i++) {
        int64_t row_bytes = a->arrays.items[i].row_bytes;
        int64_t at_once = row_bytes > 0 && row_bytes < PIECE ? PIECE / row_bytes : row_bytes > 0 ? 1 : INT64_MAX / 2;
        void *piece;

        if (i == a->direct)
            continue;
        piece = stki_zalloc(row_bytes > 0 ? at_once * row_bytes : 1);
        status =
            piece ? copy_part(a, i, piece, at_once, err) : stki_fail_memory(err, at_once * row_bytes, "buffered rows");
        stki_free(piece);
        stki_spill_destroy(a->spills[i]);
        a->spills[i] = NULL;
    }
    return status;
}

stk_status stki_arrays_finish(stki_sink *sink, stk_error *err)
{
    struct arrays *a = arrays_of(sink);
    struct stat st;
    stk_status status = stki_sink_check_finish(&a->common, err);

    if (status == STK_OK && a->arrays.count > 0)
        status = stki_writer_end(a->writer, err);
    if (status == STK_OK)
        status = copy_waiting(a, err);
    if (status != STK_OK)
        return a->common.failed = status;
    status = stki_writer_commit(a->writer, err);
    a->writer = NULL;
    a->bytes = status == STK_OK && !stat(a->temporary, &st) ? st.st_size : 0;
    return a->common.failed = status;
}

int stki_arrays_files(const stki_sink *sink, stki_sink_file *out, int room)
{
    const struct arrays *a = arrays_of(sink);

    if (room > 0)
        out[0] = (stki_sink_file){a->temporary, a->common.opts.path, a->common.rows, a->bytes};
    return 1;
}

void stki_arrays_destroy(stki_sink *sink)
{
    struct arrays *a = arrays_of(sink);

    if (!sink)
        return;
    stki_writer_abort(a->writer);
    for (int i = 0; a->spills && i < a->arrays.count; i++)
        stki_spill_destroy(a->spills[i]);
    stki_free(a->spills);
    stki_free(a->temporary);
    stki_field_arrays_fini(&a->arrays);
    stki_sink_common_fini(&a->common);
    stki_free(a);
}
