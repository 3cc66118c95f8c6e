/* sink_parts.c: see sink_parts.h. */
#include "sink_parts.h"
#include "allocate.h"
#include "error.h"
#include "tensor_internal.h"
#include <string.h>

enum { AT_ONCE = 256 /* offsets or shapes that are handed on together */ };

/* ---- making -------------------------------------------------------------------------------------------------------
 */

static stk_status add(stki_parts *parts, const stki_sink_field *field, int index, enum stki_sink_array_kind kind,
                      stk_error *err)
{
    static const char *const endings[] = {"", ".values", ".offsets", ".shapes"};
    stki_sink_array *part = &parts->items[parts->count++];
    int64_t strides[STK_MAX_DIMS];

    *part = (stki_sink_array){.kind = kind,
                              .field = index,
                              .dtype = STK_I64,
                              .alias = field->alias,
                              .lengths = field->kind == STKI_SINK_RAGGED};
    part->name = stki_format("%s%s", field->name, endings[kind]);
    if (!part->name)
        return stki_fail_memory(err, (int64_t)strlen(field->name) + 16, field->name);
    if (kind == STKI_PART_SHAPES) {
        part->ndim = 1;
        part->shape[0] = 3;
    } else if (kind != STKI_PART_OFFSETS) {
        bool ragged = field->kind == STKI_SINK_RAGGED;

        part->dtype = field->dtype == STK_DTYPE_NONE ? STK_U8 : field->dtype;
        part->ndim = kind == STKI_PART_ROWS ? field->ndim : ragged ? field->ndim - 1 : 0;
        memcpy(part->shape, field->shape + ragged, (size_t)part->ndim * sizeof *part->shape);
    }
    return stki_row_major(part->dtype, part->ndim, part->shape, strides, &part->row_bytes, err);
}

static stk_status check_names(const stki_parts *parts, stk_error *err)
{
    for (int i = 0; i < parts->count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(parts->items[i].name, parts->items[k].name))
                return stki_fail(err, STK_E_UNSUPPORTED,
                                 "two fields would both make an array %s: give one of them another name",
                                 parts->items[i].name);
    return STK_OK;
}

stk_status stki_parts_init(stki_parts *parts, const stki_sink_field *fields, int field_count, stk_error *err)
{
    stk_status status = STK_OK;

    *parts = (stki_parts){.items = stki_zalloc_array(3 * (int64_t)field_count + 1, sizeof *parts->items)};
    if (!parts->items)
        return stki_fail_memory(err, 3 * (int64_t)sizeof *parts->items, "fields");
    for (int i = 0; i < field_count && !status; i++) {
        bool rows = fields[i].kind == STKI_SINK_ARRAY;

        status = add(parts, &fields[i], i, rows ? STKI_PART_ROWS : STKI_PART_VALUES, err);
        if (!status && !rows)
            status = add(parts, &fields[i], i, STKI_PART_OFFSETS, err);
        if (!status && fields[i].kind == STKI_SINK_IMAGE)
            status = add(parts, &fields[i], i, STKI_PART_SHAPES, err);
    }
    if (!status)
        status = check_names(parts, err);
    if (status)
        stki_parts_fini(parts);
    return status;
}

void stki_parts_fini(stki_parts *parts)
{
    for (int i = 0; i < parts->count; i++)
        stki_free(parts->items[i].name);
    stki_free(parts->items);
    *parts = (stki_parts){0};
}

int64_t stki_part_expected(const stki_sink_array *part, int64_t rows)
{
    return part->kind == STKI_PART_VALUES ? -1 : part->kind == STKI_PART_OFFSETS ? rows + 1 : rows;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------
 */

struct target {
    stki_parts *parts;
    stki_part_put put;
    void *context;
};

static stk_status put(const struct target *to, int part, const void *bytes, int64_t rows, bool lasting, stk_error *err)
{
    stk_status status = rows > 0 ? to->put(to->context, part, bytes, rows, lasting, err) : STK_OK;

    to->parts->items[part].rows += status ? 0 : rows;
    return status;
}

stk_status stki_parts_begin(stki_parts *parts, stki_part_put take, void *context, stk_error *err)
{
    const struct target to = {parts, take, context};
    stk_status status = STK_OK;

    for (int i = 0; i < parts->count && !status; i++)
        if (parts->items[i].kind == STKI_PART_OFFSETS)
            status = put(&to, i, &(int64_t){0}, 1, false, err);
    return status;
}

/* Values lie behind one another where the loader's rows are lent as they are: then a batch is one piece. */
static stk_status append_bytes(const struct target *to, int index, const stki_sink_value *v, int64_t rows, int step,
                               stk_error *err)
{
    const stki_sink_array *part = &to->parts->items[index];
    const char *from = v->bytes;
    int64_t size = 0;
    stk_status status = STK_OK;

    if (part->row_bytes == 0) { /* rows without bytes; ragged ones have lengths */
        for (int64_t row = 0; row < rows && !status; row++)
            status = put(to, index, "", part->kind == STKI_PART_ROWS ? 1 : v[row * step].length, true, err);
        return status;
    }
    for (int64_t row = 0; row < rows && !status; row++, v += step) {
        if (v->size == 0)
            continue;
        if (size > 0 && from + size != v->bytes) {
            status = put(to, index, from, size / part->row_bytes, true, err);
            size = 0;
        }
        from = size > 0 ? from : v->bytes;
        size += v->size;
    }
    return status ? status : put(to, index, from, size / part->row_bytes, true, err);
}

static stk_status append_offsets(const struct target *to, int index, const stki_sink_value *v, int64_t rows, int step,
                                 stk_error *err)
{
    stki_sink_array *part = &to->parts->items[index];
    int64_t offsets[AT_ONCE];
    stk_status status = STK_OK;

    for (int64_t row = 0, count; row < rows && !status; row += count) {
        count = rows - row < AT_ONCE ? rows - row : AT_ONCE;
        for (int64_t i = 0; i < count; i++, v += step) {
            part->total += part->lengths ? v->length : v->size;
            offsets[i] = part->total;
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

    for (int64_t row = 0, count; row < rows && !status; row += count) {
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

stk_status stki_parts_append(stki_parts *parts, const stki_sink_value *values, int64_t rows, int field_count,
                             stki_part_put take, void *context, stk_error *err)
{
    const struct target to = {parts, take, context};
    stk_status status = STK_OK;

    for (int i = 0; i < parts->count && rows > 0 && !status; i++) {
        const stki_sink_value *first = values + parts->items[i].field;

        if (parts->items[i].kind == STKI_PART_OFFSETS)
            status = append_offsets(&to, i, first, rows, field_count, err);
        else if (parts->items[i].kind == STKI_PART_SHAPES)
            status = append_shapes(&to, i, first, rows, field_count, err);
        else
            status = append_bytes(&to, i, first, rows, field_count, err);
    }
    return status;
}
