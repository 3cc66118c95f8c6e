/* beton_write.c: writing .beton files that FFCV reads (beton.h draws them). The caller's thread decides where
 * everything goes: each sample's regions lie in one page, one behind the other; a sample that does not fit the rest of
 * a page begins the next. Where a sample lands so depends on sizes alone, and not on who writes the pages.
 *
 * Rows are written as they fill a buffer. Of the table of allocations only the sizes are remembered, 4 bytes a region;
 * at the end the pages are laid out again to write it. The header says that there is no table until all else is there.
 *
 * An empty region takes a byte, so that no two allocations share a pointer: FFCV looks lengths up by pointer alone. */
#include "allocate.h"
#include "beton.h"
#include "checked.h"
#include "decode.h"
#include "error.h"
#include "page_writer.h"
#include "tensor_internal.h"
#include "thread.h"
#include <inttypes.h>
#include <stoker/dataset.h>
#include <string.h>

enum { ROW_BUFFER = 1 << 20, TABLE_BUFFER = 24 << 10, ALIGNMENT = 64, SIDE_MOST = 65535, FIELDS_MOST = 65535 };
#define PAGE_LEAST (INT64_C(2) << 20)
#define PAGE_MOST (INT64_C(2) << 30)
#define PAGE_DEFAULT (INT64_C(8) << 20)

/* Where the next region goes. */
struct cursor {
    int64_t page; /* -1: none begun */
    int64_t used; /* bytes of it */
};

struct stk_beton_writer {
    stki_output *output;
    stki_page_writer *pages;
    stki_beton_layout layout;
    stki_beton_field *fields;
    int regions; /* fields that have one */
    int64_t done;
    struct cursor cursor;
    char *page; /* being filled, or NULL */
    char *rows; /* ROW_BUFFER or one row */
    int64_t row_room, rows_held;
    uint32_t *sizes; /* of every region of every sample */
    stk_status failed;
};

static bool has_region(enum stki_beton_kind kind)
{
    return kind != STKI_BETON_FLOAT && kind != STKI_BETON_INT;
}

static bool is_array(enum stki_beton_kind kind)
{
    return kind == STKI_BETON_NDARRAY || kind == STKI_BETON_TENSOR;
}

/* ---- fields --------------------------------------------------------------------------------------------------------
 */

static stk_status fail_field(const char *path, int index, const char *found, const char *expected, const char *what,
                             stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, -1, -1, found, expected}, "field %d: %s", index, what);
}

static stk_status take_name(const char *path, const stk_beton_field *fields, int index, char *out, stk_error *err)
{
    const char *name = fields[index].name;
    size_t length = name ? strlen(name) : 0;

    if (length == 0 || length > STKI_BETON_NAME)
        return fail_field(path, index, STKI_TEXT("%zu bytes: %s", length, name ? name : "none"),
                          "1 to 16 bytes, which FFCV keeps", "name", err);
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] > '~')
            return fail_field(path, index, STKI_TEXT("byte 0x%02x", (unsigned char)name[i]), "ASCII", "name", err);
    for (int i = 0; i < index; i++)
        if (!strcmp(fields[i].name, name))
            return fail_field(path, index, name, "a name of its own", "name", err);
    memcpy(out, name, length + 1);
    return STK_OK;
}

/* "<f4"; NULL: NumPy has no such type. */
static const char *descr_of(stk_dtype dtype)
{
    static const char *const descrs[STK_DTYPE_END] = {
        [STK_BOOL] = "|b1", [STK_U8] = "|u1",  [STK_I8] = "|i1",  [STK_U16] = "<u2",  [STK_I16] = "<i2",
        [STK_U32] = "<u4",  [STK_I32] = "<i4", [STK_U64] = "<u8", [STK_I64] = "<i8",  [STK_F16] = "<f2",
        [STK_F32] = "<f4",  [STK_F64] = "<f8", [STK_C64] = "<c8", [STK_C128] = "<c16"};

    return dtype > STK_DTYPE_NONE && dtype < STK_DTYPE_END ? descrs[dtype] : NULL;
}

static stk_status take_array(const char *path, const stk_beton_field *field, int index, int64_t page_bytes,
                             stki_beton_field *out, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS];

    if (!descr_of(field->dtype))
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, stk_dtype_long_name(field->dtype), "a type that NumPy has"},
                            "field %d", index);
    if (field->ndim < 1 || field->ndim > STK_MAX_DIMS)
        return fail_field(path, index, STKI_TEXT("%d axes", field->ndim), STKI_TEXT("1 to %d", STK_MAX_DIMS), "shape",
                          err);
    out->dtype = field->dtype;
    out->ndim = field->ndim;
    memcpy(out->shape, field->shape, (size_t)field->ndim * sizeof *field->shape);
    if (stki_row_major(out->dtype, out->ndim, out->shape, strides, &out->bytes, NULL))
        return fail_field(path, index, STKI_SHAPE(out->ndim, out->shape), "sizes that fit in memory", "shape", err);
    if (out->shape[out->ndim - 1] == 0)
        return fail_field(path, index, STKI_SHAPE(out->ndim, out->shape), "a last axis that is not 0", "shape", err);
    for (int i = 0; i < out->ndim; i++)
        out->bytes = out->shape[i] == 0 ? 0 : out->bytes;
    if (out->bytes > page_bytes)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", out->bytes),
                                         STKI_TEXT("at most a page of %" PRId64 " (page_bytes)", page_bytes)},
                            "field '%s': a sample does not fit a page", out->name);
    return STK_OK;
}

static stk_status take_field(stk_beton_writer *w, const char *path, const stk_beton_field *fields, int index,
                             stk_error *err)
{
    stki_beton_field *out = &w->fields[index];
    stk_status status = take_name(path, fields, index, out->name, err);

    if (status)
        return status;
    if (fields[index].kind < STK_BETON_FLOAT || fields[index].kind > STK_BETON_TENSOR)
        return fail_field(path, index, STKI_TEXT("%d", (int)fields[index].kind), "0 to 6", "kind", err);
    out->kind = (enum stki_beton_kind)fields[index].kind;
    w->regions += has_region(out->kind);
    return is_array(out->kind) ? take_array(path, &fields[index], index, w->layout.page_bytes, out, err) : STK_OK;
}

static void write_descriptor(const stki_beton_field *field, char *out)
{
    char *arguments = out + 1 + STKI_BETON_NAME;
    uint64_t length;

    memset(out, 0, STKI_BETON_FIELD);
    out[0] = (char)field->kind;
    memcpy(out + 1, field->name, strlen(field->name));
    if (!is_array(field->kind))
        return;
    memcpy(arguments, field->shape, (size_t)field->ndim * sizeof *field->shape);
    length =
        (uint64_t)snprintf(arguments + 264, STKI_BETON_ARGUMENTS - 264, "[[\"\", \"%s\"]]", descr_of(field->dtype));
    memcpy(arguments + 256, &length, sizeof length);
}

/* ---- creating ------------------------------------------------------------------------------------------------------
 */

static stk_status check_numbers(const char *path, int field_count, int64_t sample_count, int64_t page_bytes,
                                stk_error *err)
{
    if (field_count < 1 || field_count > FIELDS_MOST)
        return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, -1, -1, STKI_TEXT("%d", field_count), "1 to 65535"},
                            "number of fields");
    if (sample_count < 1)
        return stki_fail_at(err, STK_E_BAD_ARG,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, sample_count), "at least 1"},
                            "number of samples");
    if (page_bytes < PAGE_LEAST || page_bytes > PAGE_MOST || (page_bytes & (page_bytes - 1)))
        return stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, page_bytes), "a power of two from 2 MiB to 2 GiB"},
            "page_bytes");
    return STK_OK;
}

static stk_status write_header(stk_beton_writer *w, int64_t table, stk_error *err)
{
    char head[STKI_BETON_HEADER];
    uint16_t version = 2, fields = (uint16_t)w->layout.field_count;
    uint32_t page = (uint32_t)w->layout.page_bytes;

    memcpy(head, &version, 2);
    memcpy(head + 2, &fields, 2);
    memcpy(head + 4, &page, 4);
    memcpy(head + 8, &w->layout.sample_count, 8);
    memcpy(head + 16, &table, 8);
    return stki_output_write_at(w->output, 0, head, sizeof head, err);
}

static stk_status write_front(stk_beton_writer *w, stk_error *err)
{
    char descriptor[STKI_BETON_FIELD];
    stk_status status = write_header(w, 0, err);

    for (int i = 0; i < w->layout.field_count && !status; i++) {
        write_descriptor(&w->fields[i], descriptor);
        status = stki_output_write_at(w->output, STKI_BETON_HEADER + (int64_t)i * STKI_BETON_FIELD, descriptor,
                                      sizeof descriptor, err);
    }
    return status;
}

static stk_status reserve(stk_beton_writer *w, const char *path, stk_error *err)
{
    stki_beton_layout *l = &w->layout;
    int64_t bytes, regions;

    w->row_room = l->row_bytes < ROW_BUFFER ? ROW_BUFFER / l->row_bytes : 1;
    w->rows = stki_zalloc_array(w->row_room, l->row_bytes);
    if (!w->rows)
        return stki_fail_memory(err, w->row_room * l->row_bytes, path);
    if (w->regions == 0)
        return STK_OK;
    if (!stki_mul(l->sample_count, w->regions, &regions) || !stki_mul(regions, sizeof *w->sizes, &bytes))
        return stki_fail_memory(err, INT64_MAX, path);
    w->sizes = stki_block_alloc(&stki_heap, bytes, ALIGNMENT);
    return w->sizes ? STK_OK : stki_fail_memory(err, bytes, path);
}

static stk_status prepare(stk_beton_writer *w, const char *path, const stk_beton_field *fields, int threads,
                          stk_error *err)
{
    stk_status status = STK_OK;

    w->fields = stki_zalloc_array(w->layout.field_count, sizeof *w->fields);
    if (!w->fields)
        return stki_fail_memory(err, w->layout.field_count * (int64_t)sizeof *w->fields, path);
    for (int i = 0; i < w->layout.field_count && !status; i++)
        status = take_field(w, path, fields, i, err);
    if (!status) {
        w->layout.rows = STKI_BETON_HEADER + (int64_t)w->layout.field_count * STKI_BETON_FIELD;
        w->layout.table = INT64_MAX / 2; /* it comes last */
        status = stki_beton_lay_out(&w->layout, w->fields, INT64_MAX / 2, path, err);
    }
    if (!status)
        status = reserve(w, path, err);
    if (!status)
        status = stki_output_create(path, &w->output, err);
    if (!status)
        status = write_front(w, err);
    if (!status && w->regions > 0)
        status = stki_page_writer_create(w->output, w->layout.page_bytes, threads, &w->pages, err);
    return status;
}

stk_status stk_beton_create(const char *path, const stk_beton_field *fields, int field_count, int64_t sample_count,
                            const stk_beton_opts *opts, stk_beton_writer **out, stk_error *err)
{
    stk_beton_opts effective = {0};
    stk_beton_writer *w;
    stk_status status;

    if (opts)
        memcpy(&effective, opts, opts->struct_size < sizeof effective ? opts->struct_size : sizeof effective);
    if (effective.page_bytes == 0)
        effective.page_bytes = PAGE_DEFAULT;
    if (effective.threads == 0)
        effective.threads = (uint32_t)stki_cpu_count();
    status = check_numbers(path, field_count, sample_count, effective.page_bytes, err);
    if (status)
        return status;
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->layout.page_bytes = effective.page_bytes;
    w->layout.field_count = field_count;
    w->layout.sample_count = sample_count;
    w->cursor = (struct cursor){-1, effective.page_bytes};
    status = prepare(w, path, fields, effective.threads > INT32_MAX ? INT32_MAX : (int)effective.threads, err);
    if (status)
        stk_beton_abort(w);
    else
        *out = w;
    return status;
}

/* ---- one sample ----------------------------------------------------------------------------------------------------
 */

static stk_status fail_value(const stk_beton_writer *w, const stki_beton_field *field, const char *found,
                             const char *expected, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_VALUE, (stki_place){stki_output_path(w->output), w->done, -1, found, expected},
                        "field '%s': %s", field->name, what);
}

static stk_status check_jpeg(const stk_beton_writer *w, const stki_beton_field *field, const stk_beton_value *value,
                             stk_error *err)
{
    static const stki_decode_opts as_stored;
    int64_t shape[3];
    stk_status status = stki_image_shape(value->bytes, value->size, &as_stored, shape, err);

    if (status)
        return stki_image_place(err, status, stki_output_path(w->output), w->done);
    if (((const unsigned char *)value->bytes)[0] != 0xff)
        return fail_value(w, field, "another kind of image", "a JPEG image", "bytes", err);
    if (shape[0] == value->height && shape[1] == value->width)
        return STK_OK;
    return fail_value(w, field, STKI_TEXT("%" PRId64 " x %" PRId64 " pixels in the JPEG image", shape[0], shape[1]),
                      STKI_TEXT("%" PRId64 " x %" PRId64, value->height, value->width), "height and width", err);
}

static stk_status check_image(const stk_beton_writer *w, const stki_beton_field *field, const stk_beton_value *value,
                              stk_error *err)
{
    if (value->height < 1 || value->width < 1 || value->height > SIDE_MOST || value->width > SIDE_MOST)
        return fail_value(w, field, STKI_TEXT("%" PRId64 " x %" PRId64, value->height, value->width),
                          "sides of 1 to 65535", "height and width", err);
    if (value->jpeg)
        return check_jpeg(w, field, value, err);
    if (value->size != value->height * value->width * 3)
        return fail_value(w, field, STKI_TEXT("%" PRId64 " bytes", value->size),
                          STKI_TEXT("%" PRId64 " for %" PRId64 " x %" PRId64 " pixels",
                                    value->height * value->width * 3, value->height, value->width),
                          "size", err);
    return STK_OK;
}

static stk_status check_json(const stk_beton_writer *w, const stki_beton_field *field, const stk_beton_value *value,
                             stk_error *err)
{
    json_error_t why;
    json_t *json = json_loadb(value->bytes, (size_t)value->size, JSON_DECODE_ANY, &why);

    if (!json)
        return fail_value(w, field, why.text, "a JSON text", "bytes", err);
    json_decref(json);
    return STK_OK;
}

/* Bytes of the region that the value needs. */
static stk_status size_of(const stk_beton_writer *w, const stki_beton_field *field, const stk_beton_value *value,
                          int64_t *out, stk_error *err)
{
    *out = value->size;
    if (value->size < 0 || value->size > w->layout.page_bytes)
        *out = w->layout.page_bytes + 1; /* more than fits */
    if (value->size < 0)
        return fail_value(w, field, STKI_TEXT("%" PRId64 " bytes", value->size), "at least 0", "size", err);
    if (*out > w->layout.page_bytes)
        return STK_OK;
    switch (field->kind) {
    case STKI_BETON_IMAGE:
        return check_image(w, field, value, err);
    case STKI_BETON_JSON:
        *out += 1; /* a NUL */
        return check_json(w, field, value, err);
    case STKI_BETON_NDARRAY:
    case STKI_BETON_TENSOR:
        if (value->size != field->bytes)
            return fail_value(w, field, STKI_TEXT("%" PRId64 " bytes", value->size),
                              STKI_TEXT("%" PRId64, field->bytes), "size", err);
        return STK_OK;
    default:
        return STK_OK;
    }
}

/* Moves the cursor to where a sample with regions of these sizes begins. False: it does not fit a page. */
static bool place_sample(struct cursor *cursor, int64_t page_bytes, const uint32_t *sizes, int regions, int64_t *total)
{
    *total = 0;
    for (int i = 0; i < regions; i++)
        *total += sizes[i] > 0 ? sizes[i] : 1;
    if (*total > page_bytes)
        return false;
    if (*total > page_bytes - cursor->used) {
        cursor->page++;
        cursor->used = 0;
    }
    return true;
}

static int64_t place_region(struct cursor *cursor, const stki_beton_layout *layout, uint32_t size)
{
    int64_t pointer = layout->data_start + cursor->page * layout->page_bytes + cursor->used;

    cursor->used += size > 0 ? size : 1;
    return pointer;
}

static stk_status end_page(stk_beton_writer *w, int64_t page, int64_t used, stk_error *err)
{
    char *full = w->page;

    if (!full)
        return STK_OK;
    w->page = NULL;
    memset(full + used, 0, (size_t)(w->layout.page_bytes - used));
    return stki_page_put(w->pages, full, w->layout.data_start + page * w->layout.page_bytes, err);
}

/* Sizes of all regions; the page they go to is w->page afterwards. */
static stk_status make_room(stk_beton_writer *w, const stk_beton_value *values, uint32_t *sizes, stk_error *err)
{
    struct cursor before = w->cursor;
    int64_t total, size, wanted = 0;
    stk_status status = STK_OK;
    void *page;

    for (int i = 0, region = 0; i < w->layout.field_count && !status; i++) {
        if (!has_region(w->fields[i].kind))
            continue;
        status = size_of(w, &w->fields[i], &values[i], &size, err);
        sizes[region++] = (uint32_t)size; /* at most a page and one */
        wanted += values[i].size > INT64_MAX - wanted - 1 ? 0 : values[i].size + (w->fields[i].kind == STKI_BETON_JSON);
    }
    if (status)
        return status;
    if (!place_sample(&w->cursor, w->layout.page_bytes, sizes, w->regions, &total))
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){stki_output_path(w->output), w->done, -1,
                                         STKI_TEXT("%" PRId64 " bytes", wanted > total ? wanted : total),
                                         STKI_TEXT("at most %" PRId64 " (page_bytes)", w->layout.page_bytes)},
                            "the sample does not fit a page");
    if (w->cursor.page == before.page)
        return STK_OK;
    status = end_page(w, before.page, before.used, err);
    if (!status)
        status = stki_page_take(w->pages, &page, err);
    if (!status)
        w->page = page;
    return status;
}

static void fill_region(stk_beton_writer *w, const stki_beton_field *field, const stk_beton_value *value, uint32_t size,
                        char *row)
{
    char *to = w->page + w->cursor.used;
    int64_t pointer = place_region(&w->cursor, &w->layout, size);
    uint16_t width = (uint16_t)value->width, height = (uint16_t)value->height;
    uint64_t length = size;

    if (value->size > 0)
        memcpy(to, value->bytes, (size_t)value->size);
    if (value->size < (int64_t)size || size == 0)
        to[value->size] = '\0'; /* of a JSON text, and the byte of an empty region */
    switch (field->kind) {
    case STKI_BETON_IMAGE:
        row[0] = value->jpeg ? STKI_BETON_JPEG : STKI_BETON_RAW;
        memcpy(row + 1, &width, 2);
        memcpy(row + 3, &height, 2);
        memcpy(row + 5, &pointer, 8);
        return;
    case STKI_BETON_BYTES:
    case STKI_BETON_JSON:
        memcpy(row + 8, &length, 8);
        break;
    default:
        break;
    }
    memcpy(row, &pointer, 8);
}

static stk_status flush_rows(stk_beton_writer *w, stk_error *err)
{
    int64_t row_bytes = w->layout.row_bytes, first = w->done - w->rows_held;
    stk_status status;

    if (w->rows_held == 0)
        return STK_OK;
    status =
        stki_output_write_at(w->output, w->layout.rows + first * row_bytes, w->rows, w->rows_held * row_bytes, err);
    memset(w->rows, 0, (size_t)(w->rows_held * row_bytes));
    w->rows_held = 0;
    return status;
}

static stk_status append_one(stk_beton_writer *w, const stk_beton_value *values, stk_error *err)
{
    char *row = w->rows + w->rows_held * w->layout.row_bytes;
    uint32_t *sizes = w->sizes ? w->sizes + w->done * w->regions : NULL;
    int region = 0;
    stk_status status = STK_OK;

    if (w->done >= w->layout.sample_count)
        return stki_fail_at(err, STK_E_RANGE,
                            (stki_place){stki_output_path(w->output), w->done, -1, "one sample more",
                                         STKI_TEXT("%" PRId64, w->layout.sample_count)},
                            "number of samples");
    if (w->regions > 0)
        status = make_room(w, values, sizes, err);
    if (status)
        return status;
    for (int i = 0; i < w->layout.field_count; i++) {
        const stki_beton_field *field = &w->fields[i];

        if (field->kind == STKI_BETON_FLOAT)
            memcpy(row + field->row_offset, &values[i].real, 8);
        else if (field->kind == STKI_BETON_INT)
            memcpy(row + field->row_offset, &values[i].integer, 8);
        else
            fill_region(w, field, &values[i], sizes[region++], row + field->row_offset);
    }
    w->done++;
    w->rows_held++;
    return w->rows_held == w->row_room ? flush_rows(w, err) : STK_OK;
}

static stk_status fail_earlier(const stk_beton_writer *w, stk_error *err)
{
    return stki_fail_at(err, w->failed, (stki_place){stki_output_path(w->output), -1, -1, NULL, NULL},
                        "an earlier write failed");
}

stk_status stk_beton_append(stk_beton_writer *w, const stk_beton_value *values, int64_t count, stk_error *err)
{
    if (w->failed)
        return fail_earlier(w, err);
    for (int64_t i = 0; i < count && !w->failed; i++)
        w->failed = append_one(w, values + i * w->layout.field_count, err);
    return w->failed;
}

/* ---- finishing -----------------------------------------------------------------------------------------------------
 */

/* The allocations of all samples, laid out once more. */
static stk_status write_table(stk_beton_writer *w, int64_t table, stk_error *err)
{
    struct cursor cursor = {-1, w->layout.page_bytes};
    uint64_t entries[TABLE_BUFFER / 8];
    int64_t total, held = 0;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < w->layout.sample_count && !status; i++) {
        const uint32_t *sizes = w->sizes + i * w->regions;

        (void)place_sample(&cursor, w->layout.page_bytes, sizes, w->regions, &total);
        for (int region = 0; region < w->regions && !status; region++) {
            entries[held++] = (uint64_t)i;
            entries[held++] = (uint64_t)place_region(&cursor, &w->layout, sizes[region]);
            entries[held++] = sizes[region];
            if (held < TABLE_BUFFER / 8)
                continue;
            status = stki_output_write_at(w->output, table, entries, sizeof entries, err);
            table += (int64_t)sizeof entries;
            held = 0;
        }
    }
    if (!status && held > 0)
        status = stki_output_write_at(w->output, table, entries, held * 8, err);
    return status;
}

static stk_status finish(stk_beton_writer *w, stk_error *err)
{
    int64_t table = w->layout.rows_end;
    stk_status status;

    if (w->failed)
        return fail_earlier(w, err);
    if (w->done != w->layout.sample_count)
        return stki_fail_at(err, STK_E_MISMATCH,
                            (stki_place){stki_output_path(w->output), -1, -1, STKI_TEXT("%" PRId64, w->done),
                                         STKI_TEXT("%" PRId64 " as announced", w->layout.sample_count)},
                            "number of samples");
    status = flush_rows(w, err);
    if (!status && w->regions > 0) {
        table = w->layout.data_start + (w->cursor.page + 1) * w->layout.page_bytes;
        status = end_page(w, w->cursor.page, w->cursor.used, err);
        if (!status)
            status = stki_page_writer_finish(w->pages, err);
        if (!status)
            status = write_table(w, table, err);
    }
    return status ? status : write_header(w, table, err);
}

static void discard(stk_beton_writer *w)
{
    int64_t regions = w->layout.sample_count * w->regions;

    stki_page_writer_destroy(w->pages);
    stki_output_abort(w->output);
    if (w->sizes)
        stki_block_free(&stki_heap, w->sizes, regions * (int64_t)sizeof *w->sizes, ALIGNMENT);
    stki_free(w->fields);
    stki_free(w->rows);
    stki_free(w);
}

stk_status stk_beton_commit(stk_beton_writer *w, stk_error *err)
{
    stk_status status = finish(w, err);

    if (!status) {
        stki_page_writer_destroy(w->pages); /* its threads are done */
        w->pages = NULL;
        status = stki_output_commit(w->output, err);
        w->output = NULL;
    }
    discard(w);
    return status;
}

void stk_beton_abort(stk_beton_writer *w)
{
    if (w)
        discard(w);
}
