/* field_arrays.c: see field_arrays.h. */
#include "field_arrays.h"
#include "allocate.h"
#include "error.h"
#include "tensor_internal.h"
#include <string.h>

enum { AT_ONCE = 256 /* offsets or shapes per append */ };

/* ---- create ---- */

static stk_status add(stki_field_arrays *arrays, const stki_sink_field *field, int index,
                      enum stki_sink_array_kind kind, stk_error *err)
{
    static const char *const endings[] = {"", ".values", ".offsets", ".shapes"};
    stki_sink_array *array = &arrays->items[arrays->count++];
    int64_t strides[STK_MAX_DIMS];

    *array = (stki_sink_array){.kind = kind,
                               .field = index,
                               .dtype = STK_I64,
                               .alias = field->alias,
                               .lengths = field->kind == STKI_SINK_RAGGED};
    array->name = stki_format("%s%s", field->name, endings[kind]);
    if (!array->name)
        return stki_fail_memory(err, (int64_t)strlen(field->name) + 16, field->name);
    if (kind == STKI_ARRAY_SHAPES) {
        array->ndim = 1;
        array->shape[0] = 3;
    } else if (kind != STKI_ARRAY_OFFSETS) {
        bool ragged = field->kind == STKI_SINK_RAGGED;

        array->dtype = field->dtype == STK_DTYPE_NONE ? STK_U8 : field->dtype;
        array->ndim = kind == STKI_ARRAY_ROWS ? field->ndim : ragged ? field->ndim - 1 : 0;
        memcpy(array->shape, field->shape + ragged, (size_t)array->ndim * sizeof *array->shape);
    }
    return stki_row_major(array->dtype, array->ndim, array->shape, strides, &array->row_bytes, err);
}

static stk_status check_names(const stki_field_arrays *arrays, stk_error *err)
{
    for (int i = 0; i < arrays->count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(arrays->items[i].name, arrays->items[k].name))
                return stki_fail(err, STK_E_UNSUPPORTED,
                                 "two fields would both be stored as array %s: rename one of them",
                                 arrays->items[i].name);
    return STK_OK;
}

stk_status stki_field_arrays_init(stki_field_arrays *arrays, const stki_sink_field *fields, int field_count,
                                  stk_error *err)
{
    stk_status status = STK_OK;

    *arrays = (stki_field_arrays){.items = stki_zalloc_array(3 * (int64_t)field_count + 1, sizeof *arrays->items)};
    if (!arrays->items)
        return stki_fail_memory(err, 3 * (int64_t)sizeof *arrays->items, "fields");
    for (int i = 0; i < field_count && status == STK_OK; i++) {
        bool rows = fields[i].kind == STKI_SINK_ARRAY;

        status = add(arrays, &fields[i], i, rows ? STKI_ARRAY_ROWS : STKI_ARRAY_VALUES, err);
        if (status == STK_OK && !rows)
            status = add(arrays, &fields[i], i, STKI_ARRAY_OFFSETS, err);
        if (status == STK_OK && fields[i].kind == STKI_SINK_IMAGE)
            status = add(arrays, &fields[i], i, STKI_ARRAY_SHAPES, err);
    }
    if (status == STK_OK)
        status = check_names(arrays, err);
    if (status != STK_OK)
        stki_field_arrays_fini(arrays);
    return status;
}

void stki_field_arrays_fini(stki_field_arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++)
        stki_free(arrays->items[i].name);
    stki_free(arrays->items);
    *arrays = (stki_field_arrays){0};
}

int64_t stki_field_array_rows(const stki_sink_array *array, int64_t rows)
{
    return array->kind == STKI_ARRAY_VALUES ? -1 : array->kind == STKI_ARRAY_OFFSETS ? rows + 1 : rows;
}

int64_t stki_field_arrays_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                                  stki_sink_size *size)
{
    int64_t row = 0, begin = 0;

    for (int i = 0; i < opts->field_count; i++) {
        const enum stki_sink_kind kind = opts->fields[i].kind;

        begin += kind == STKI_SINK_ARRAY ? 0 : 8;
        if (count > 0)
            row = stki_sink_times(row + (kind == STKI_SINK_ARRAY ? 0 : 8) + (kind == STKI_SINK_IMAGE ? 24 : 0), 1,
                                  values[i].size);
    }
    size->rows += count;
    size->bytes = stki_sink_times(size->bytes, count, row);
    return stki_sink_times(begin, 1, size->bytes);
}

/* ---- rows ---- */

struct target {
    stki_field_arrays *arrays;
    stki_field_array_put put;
    void *context;
};

static stk_status put(const struct target *to, int array, const void *bytes, int64_t rows, bool lasting, stk_error *err)
{
    stk_status status = rows > 0 ? to->put(to->context, array, bytes, rows, lasting, err) : STK_OK;

    to->arrays->items[array].rows += status != STK_OK ? 0 : rows;
    return status;
}

stk_status stki_field_arrays_begin(stki_field_arrays *arrays, stki_field_array_put take, void *context, stk_error *err)
{
    const struct target to = {arrays, take, context};
    stk_status status = STK_OK;

    for (int i = 0; i < arrays->count && status == STK_OK; i++)
        if (arrays->items[i].kind == STKI_ARRAY_OFFSETS)
            status = put(&to, i, &(int64_t){0}, 1, false, err);
    return status;
}

/* Rows borrowed from the loader are contiguous, so a batch is appended with one call. */
static stk_status append_bytes(const struct target *to, int index, const stki_sink_value *v, int64_t rows, int step,
                               stk_error *err)
{
    const stki_sink_array *array = &to->arrays->items[index];
    const char *from = v->bytes;
    int64_t size = 0;
    stk_status status = STK_OK;

    if (array->row_bytes == 0) { /* empty rows; ragged rows only have lengths */
        for (int64_t row = 0; row < rows && status == STK_OK; row++)
            status = put(to, index, "", array->kind == STKI_ARRAY_ROWS ? 1 : v[row * step].length, true, err);
        return status;
    }
    for (int64_t row = 0; row < rows && status == STK_OK; row++, v += step) {
        if (v->size == 0)
            continue;
        if (size > 0 && from + size != v->bytes) {
            status = put(to, index, from, size / array->row_bytes, true, err);
            size = 0;
        }
        from = size > 0 ? from : v->bytes;
        size += v->size;
    }
    return status != STK_OK ? status : put(to, index, from, size / array->row_bytes, true, err);
}

static stk_status append_offsets(const struct target *to, int index, const stki_sink_value *v, int64_t rows, int step,
                                 stk_error *err)
{
    stki_sink_array *array = &to->arrays->items[index];
    int64_t offsets[AT_ONCE];
    stk_status status = STK_OK;

    for (int64_t row = 0, count; row < rows && status == STK_OK; row += count) {
        count = rows - row < AT_ONCE ? rows - row : AT_ONCE;
        for (int64_t i = 0; i < count; i++, v += step) {
            array->total += array->lengths ? v->length : v->size;
            offsets[i] = array->total;
        }
        status = put(to, index, offsets, count, false, err);
    }
    return status;
}

static stk_status append_shapes(const struct target *to, int index, const stki_sink_value *v, int64_t rows, int step,
                                stk_error *err)
{
    int64_t shapes[AT_ONCE][3];
    stk_status status = STK_OK;

    for (int64_t row = 0, count; row < rows && status == STK_OK; row += count) {
        count = rows - row < AT_ONCE ? rows - row : AT_ONCE;
        for (int64_t i = 0; i < count; i++, v += step) {
            shapes[i][0] = v->height;
            shapes[i][1] = v->width;
            shapes[i][2] = v->channels;
        }
        status = put(to, index, shapes, count, false, err);
    }
    return status;
}

stk_status stki_field_arrays_append(stki_field_arrays *arrays, const stki_sink_value *values, int64_t rows,
                                    int field_count, stki_field_array_put take, void *context, stk_error *err)
{
    const struct target to = {arrays, take, context};
    stk_status status = STK_OK;

    for (int i = 0; i < arrays->count && rows > 0 && status == STK_OK; i++) {
        const stki_sink_value *first = values + arrays->items[i].field;

        if (arrays->items[i].kind == STKI_ARRAY_OFFSETS)
            status = append_offsets(&to, i, first, rows, field_count, err);
        else if (arrays->items[i].kind == STKI_ARRAY_SHAPES)
            status = append_shapes(&to, i, first, rows, field_count, err);
        else
            status = append_bytes(&to, i, first, rows, field_count, err);
    }
    return status;
}
