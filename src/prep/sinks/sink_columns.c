/* sink_columns.c: see sink_columns.h. The size of each file follows from its number of rows, so these numbers are the
 * marks. The header of an .npy has room for any number of rows and is rewritten at the end. */
#include "sink_columns.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "field_arrays.h"
#include "npy_form.h"
#include "output.h"
#include <inttypes.h>
#include <string.h>

struct column {
    char *final, *temporary;
    stki_output *output; /* NULL: finished */
    stki_npy_form form;  /* header_bytes 0: no header */
    int64_t bytes;       /* size of the finished file */
};

struct columns {
    stki_sink_common common; /* first member */
    stki_field_arrays arrays;
    struct column *items; /* arrays.count columns */
};

static struct columns *columns_of(const stki_sink *sink)
{
    return (struct columns *)(uintptr_t)sink;
}

/* ---- supported fields ---- */

static stk_status make_form(const stki_sink_opts *opts, const stki_sink_array *array, stki_npy_form *form,
                            stk_error *err)
{
    stk_status status =
        stki_npy_form_init(form, opts->path, array->dtype, array->ndim, array->shape, array->alias, err);

    return status != STK_OK ? stki_fail_place(err, status, opts->path, -1, array->name) : STK_OK;
}

static stk_status check_names(const stki_sink_opts *opts, const stki_field_arrays *arrays, stk_error *err)
{
    for (int i = 0; i < arrays->count && arrays->count > 1; i++)
        if (strchr(arrays->items[i].name, '/'))
            return stki_sink_refuse(opts, &opts->fields[arrays->items[i].field], "a slash in its name",
                                    "a name that is valid in a file name", err);
    return STK_OK;
}

stk_status stki_columns_check(const stki_sink_opts *opts, bool header, stk_error *err)
{
    stki_field_arrays arrays;
    stki_npy_form form;
    stk_status status = stki_field_arrays_init(&arrays, opts->fields, opts->field_count, err);

    if (status != STK_OK)
        return status;
    status = check_names(opts, &arrays, err);
    for (int i = 0; i < arrays.count && header && status == STK_OK; i++)
        status = make_form(opts, &arrays.items[i], &form, err);
    stki_field_arrays_fini(&arrays);
    return status;
}

static int64_t header_bytes(const stki_sink_opts *opts)
{
    stki_field_arrays arrays;
    stki_npy_form form;
    int64_t bytes = 0;

    if (stki_field_arrays_init(&arrays, opts->fields, opts->field_count, NULL) != STK_OK)
        return 0;
    for (int i = 0; i < arrays.count; i++)
        bytes += make_form(opts, &arrays.items[i], &form, NULL) == STK_OK ? form.header_bytes : 0;
    stki_field_arrays_fini(&arrays);
    return bytes;
}

int64_t stki_columns_measure(const stki_sink_opts *opts, bool header, const stki_sink_value *values, int64_t count,
                             stki_sink_size *size)
{
    const int64_t bytes = stki_field_arrays_measure(opts, values, count, size);

    if (header && size->fixed == 0)
        size->fixed = header_bytes(opts);
    return stki_sink_times(size->fixed, 1, bytes);
}

/* ---- opening ---- */

static char *path_of(const stki_sink_opts *opts, const stki_field_arrays *arrays, int index)
{
    return stki_sink_array_path(opts->path, arrays->count > 1 ? arrays->items[index].name : NULL);
}

char *stki_columns_name(const stki_sink_opts *opts, int index)
{
    stki_field_arrays arrays;
    char *path;

    if (stki_field_arrays_init(&arrays, opts->fields, opts->field_count, NULL) != STK_OK)
        return NULL;
    path = index < arrays.count ? path_of(opts, &arrays, index) : NULL;
    stki_field_arrays_fini(&arrays);
    return path;
}

static stk_status write_header(struct column *column, int64_t rows, stk_error *err)
{
    char header[STKI_NPY_FORM_MAX];

    if (column->form.header_bytes == 0)
        return STK_OK;
    stki_npy_form_write(&column->form, rows, header);
    return stki_output_write_at(column->output, 0, header, column->form.header_bytes, err);
}

/* Returns the final number of rows if it is known in advance, otherwise -1. */
static int64_t final_rows(const struct columns *c, int index)
{
    const stki_sink_opts *opts = &c->common.opts;

    return opts->may_skip ? -1 : stki_field_array_rows(&c->arrays.items[index], opts->most_rows);
}

/* Computes the number of bytes up to the mark. */
static stk_status read_mark(struct columns *c, int index, const json_t *mark, int64_t *keep, stk_error *err)
{
    stki_sink_array *array = &c->arrays.items[index];
    json_t *rows = json_array_get(json_object_get(mark, "arrays"), (size_t)index);

    array->rows = json_is_integer(rows) ? json_integer_value(rows) : -1;
    if (array->rows >= 0 && stki_mul(array->rows, array->row_bytes, keep) &&
        stki_add(*keep, c->items[index].form.header_bytes, keep)) {
        if (array->kind == STKI_ARRAY_OFFSETS)
            array->total = array[-1].rows; /* the number of values, which are stored in the previous array */
        return STK_OK;
    }
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){c->common.opts.path, -1, -1, NULL, "a number of rows"},
                        "damaged mark: array %s", array->name);
}

static stk_status open_column(struct columns *c, int index, bool header, const json_t *mark, stk_error *err)
{
    const stki_sink_opts *opts = &c->common.opts;
    struct column *column = &c->items[index];
    int64_t keep = -1;
    stk_status status = STK_OK;

    column->final = path_of(opts, &c->arrays, index);
    column->temporary = column->final ? stki_sink_temporary(opts->folder, column->final, "") : NULL;
    if (!column->temporary)
        return stki_fail_memory(err, (int64_t)strlen(opts->path) + 1, opts->path);
    if (header)
        status = make_form(opts, &c->arrays.items[index], &column->form, err);
    if (status == STK_OK && mark)
        status = read_mark(c, index, mark, &keep, err);
    if (status == STK_OK)
        status = stki_output_hold(column->final, column->temporary, keep, &column->output, err);
    if (status == STK_OK) /* unbuffered, so that a full disk is reported immediately */
        status = write_header(column, final_rows(c, index) < 0 ? 0 : final_rows(c, index), err);
    return status != STK_OK || mark ? status : stki_output_seek(column->output, column->form.header_bytes, err);
}

static stk_status put(void *context, int array, const void *bytes, int64_t rows, bool lasting, stk_error *err)
{
    struct columns *c = context;
    int64_t count = rows * c->arrays.items[array].row_bytes; /* cannot overflow, because the bytes are in memory */
    stki_output *output = c->items[array].output;

    return lasting ? stki_output_lend(output, bytes, count, err) : stki_output_append(output, bytes, count, err);
}

static stk_status open_all(struct columns *c, bool header, const json_t *mark, stk_error *err)
{
    const stki_sink_opts *opts = &c->common.opts;
    stk_status status = stki_field_arrays_init(&c->arrays, opts->fields, opts->field_count, err);

    if (status == STK_OK)
        status = check_names(opts, &c->arrays, err);
    if (status != STK_OK)
        return status;
    c->items = stki_zalloc_array(c->arrays.count + 1, sizeof *c->items);
    if (!c->items)
        return stki_fail_memory(err, c->arrays.count * (int64_t)sizeof *c->items, opts->path);
    if (mark)
        status = stki_mark_rows(&c->common, mark, err);
    for (int i = 0; i < c->arrays.count && status == STK_OK; i++)
        status = open_column(c, i, header, mark, err);
    return status != STK_OK || mark ? status : stki_field_arrays_begin(&c->arrays, put, c, err);
}

stk_status stki_columns_open(const stki_sink_ops *ops, const stki_sink_opts *opts, bool header, const json_t *mark,
                             stki_sink **out, stk_error *err)
{
    struct columns *c = stki_zalloc(sizeof *c);
    stk_status status;

    if (!c)
        return stki_fail_memory(err, sizeof *c, opts->path);
    status = stki_sink_common_init(&c->common, ops, opts, err);
    if (status == STK_OK)
        status = open_all(c, header, mark, err);
    if (status != STK_OK)
        stki_columns_destroy(&c->common.base);
    else
        *out = &c->common.base;
    return status;
}

/* ---- rows ---- */

stk_status stki_columns_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    struct columns *c = columns_of(sink);
    stk_status status = stki_sink_check_rows(&c->common, values, rows, err);

    if (status != STK_OK)
        return status;
    status = stki_field_arrays_append(&c->arrays, values, rows, c->common.opts.field_count, put, c, err);
    for (int i = 0; i < c->arrays.count && status == STK_OK; i++)
        status = stki_output_settle(c->items[i].output, err);
    return stki_sink_took(&c->common, rows, status);
}

static json_t *make_mark(const struct columns *c)
{
    json_t *mark = json_pack("{s:I, s:[]}", "rows", (json_int_t)c->common.rows, "arrays");

    for (int i = 0; mark && i < c->arrays.count; i++)
        if (json_array_append_new(json_object_get(mark, "arrays"), json_integer(c->arrays.items[i].rows))) {
            json_decref(mark);
            mark = NULL;
        }
    return mark;
}

stk_status stki_columns_mark(stki_sink *sink, json_t **out, stk_error *err)
{
    struct columns *c = columns_of(sink);
    stk_status status = stki_sink_check_usable(&c->common, err);

    for (int i = 0; i < c->arrays.count && status == STK_OK; i++)
        status = c->common.failed = stki_output_flush(c->items[i].output, err);
    return status != STK_OK ? status : stki_mark_new(make_mark(c), out, err);
}

stk_status stki_columns_sync(stki_sink *sink, stk_error *err)
{
    struct columns *c = columns_of(sink);
    stk_status status = STK_OK;

    for (int i = 0; i < c->arrays.count && status == STK_OK; i++)
        status = stki_output_sync(c->items[i].output, err);
    return status;
}

/* ---- commit ---- */

stk_status stki_columns_finish(stki_sink *sink, stk_error *err)
{
    struct columns *c = columns_of(sink);
    stk_status status = stki_sink_check_finish(&c->common, err);

    for (int i = 0; i < c->arrays.count && status == STK_OK; i++) {
        struct column *column = &c->items[i];

        status = write_header(column, c->arrays.items[i].rows, err);
        if (status != STK_OK)
            break;
        column->bytes = stki_output_position(column->output);
        status = stki_output_commit(column->output, err);
        column->output = NULL;
    }
    return c->common.failed = status;
}

bool stki_columns_settled(const stki_sink *sink)
{
    const struct columns *c = (const struct columns *)(const void *)sink;

    for (int i = 0; i < c->arrays.count; i++)
        if (c->items[i].form.header_bytes > 0 && final_rows(c, i) < 0)
            return false;
    return true;
}

int stki_columns_files(const stki_sink *sink, stki_sink_file *out, int room)
{
    const struct columns *c = columns_of(sink);

    for (int i = 0; i < c->arrays.count && i < room; i++)
        out[i] = (stki_sink_file){c->items[i].temporary, c->items[i].final, c->arrays.items[i].rows, c->items[i].bytes};
    return c->arrays.count;
}

void stki_columns_destroy(stki_sink *sink)
{
    struct columns *c = columns_of(sink);

    if (!sink)
        return;
    for (int i = 0; c->items && i < c->arrays.count; i++) {
        stki_output_abort(c->items[i].output);
        stki_free(c->items[i].final);
        stki_free(c->items[i].temporary);
    }
    stki_free(c->items);
    stki_field_arrays_fini(&c->arrays);
    stki_sink_common_fini(&c->common);
    stki_free(c);
}
