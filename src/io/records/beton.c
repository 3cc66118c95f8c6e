/* beton.c: a .beton file as a container with one member per field. Opening reads the header and the descriptors; rows
 * and the table of allocations are read when a field that needs them is opened. Numeric fields are arrays located in
 * the rows, one element per row; all other fields are records (beton_reader.c). */
#include "beton.h"
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "source_common.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static stki_beton *beton_of(const stki_container *base)
{
    return (stki_beton *)(uintptr_t)base;
}

/* ---- container operations ---- */

static bool is_number(const stki_beton_field *field)
{
    return field->kind == STKI_BETON_FLOAT || field->kind == STKI_BETON_INT;
}

static stk_status beton_array(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                              stk_error *err)
{
    const stki_beton *beton = beton_of(base);
    const stki_beton_field *field = &beton->fields[member];

    (void)opts, (void)err; /* records have already been rejected */
    *out = (stki_array){.file = stki_file_retain(beton->file),
                        .offset = beton->layout.rows + field->row_offset,
                        .dtype = field->dtype,
                        .ndim = 1,
                        .shape = {beton->layout.sample_count},
                        .strides = {beton->layout.row_bytes}};
    return STK_OK;
}

static stk_status beton_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                               stki_reader **out, stk_error *err)
{
    const stki_beton *beton = beton_of(base);
    stki_array array;
    stk_status status;

    if (!is_number(&beton->fields[member]))
        return stki_beton_reader(beton, (int)member, opts, out, err);
    status = stki_beton_check_type(&beton->fields[member], opts->alias_dtype, base->path, err);
    if (status != STK_OK)
        return status;
    status = beton_array(base, member, opts, &array, err);
    if (status == STK_OK)
        status = stki_array_check(&array, base->path, err);
    if (status == STK_OK)
        status = stki_array_reader(&array, "beton", base->path, opts, out, err);
    stki_array_release(&array);
    return status;
}

static void beton_destroy(stki_container *base)
{
    stki_beton *beton = beton_of(base);

    if (beton->lazy) {
        stki_beton_table_fini(&beton->lazy->table);
        stki_mutex_fini(&beton->lazy->lock);
        stki_free(beton->lazy);
    }
    stki_free(beton->fields);
    stki_file_close(beton->file);
    stki_container_free(base);
}

static const stki_container_ops ops = {
    .format = "beton", .array = beton_array, .reader = beton_reader, .destroy = beton_destroy};

/* ---- opening ---- */

/* FFCV truncates names to 16 bytes, so two fields may have the same name. The field number is then appended to the name
 * of the later one. */
static const char *name_of(const stki_beton *beton, int index, char *buffer, size_t size)
{
    const char *name = beton->fields[index].name;
    bool taken = !*name;

    for (int i = 0; i < index && !taken; i++)
        taken = !strcmp(beton->fields[i].name, name);
    if (!taken)
        return name;
    snprintf(buffer, size, "%s#%d", name, index);
    return buffer;
}

static const stki_source_group *const *groups_of(const stki_beton_field *field)
{
    static const stki_source_group *const image[] = {&stki_image_source, &stki_jpeg_source, NULL},
                                          *const array[] = {&stki_dtype_source, NULL}, *const none[] = {NULL};

    if (field->kind == STKI_BETON_IMAGE)
        return image;
    return field->kind == STKI_BETON_NDARRAY || field->kind == STKI_BETON_TENSOR ? array : none;
}

static stk_status add_member(stki_beton *beton, int index, stk_status refused, const stk_error *why, stk_error *err)
{
    const stki_beton_field *field = &beton->fields[index];
    const int64_t image[] = {-1, -1, 3}, one[] = {-1}, all[] = {beton->layout.sample_count};
    bool array = field->kind == STKI_BETON_NDARRAY || field->kind == STKI_BETON_TENSOR;
    int ndim = array ? field->ndim : field->kind == STKI_BETON_IMAGE ? 3 : 1;
    const int64_t *shape = is_number(field)                  ? all
                           : array                           ? field->shape
                           : field->kind == STKI_BETON_IMAGE ? image
                                                             : one;
    char buffer[STKI_BETON_NAME + 16];
    const char *name = name_of(beton, index, buffer, sizeof buffer);
    stki_member *member;
    stk_status status = stki_container_add(&beton->base, name, ndim, shape, &member, err);

    if (status != STK_OK)
        return status;
    if (name == buffer)
        stki_container_warn(&beton->base,
                            "field %d has the same name '%s' as an earlier one and is renamed to '%s' here", index,
                            field->name, name);
    member->kind = is_number(field) ? STKI_MEMBER_ARRAY : STKI_MEMBER_RECORDS;
    member->groups = groups_of(field);
    member->dtype = field->dtype;
    member->swapped = field->swapped;
    member->count = beton->layout.sample_count;
    member->layout = is_number(field) ? "strided" : "records";
    member->details = json_pack("{s:s, s:I}", "field", stki_beton_kind_name(field->kind), "row_offset",
                                (json_int_t)field->row_offset);
    if (refused != STK_OK)
        stki_member_refuse(member, why);
    if (!is_number(field))
        return STK_OK;
    member->offset = beton->layout.rows + field->row_offset;
    return stki_member_set_strides(member, &beton->layout.row_bytes, err);
}

/* Reads all descriptors. An unsupported element type affects only its own field. The descriptors of such fields are
 * parsed again when they become members, to obtain the error. */
static stk_status read_fields(stki_beton *beton, stk_error *err)
{
    unsigned char descriptor[STKI_BETON_FIELD];
    stk_status status = STK_OK;

    for (int i = 0; i < beton->layout.field_count && status == STK_OK; i++) {
        status = stki_file_read(beton->file, STKI_BETON_HEADER + (int64_t)i * STKI_BETON_FIELD, descriptor,
                                sizeof descriptor, err);
        if (status != STK_OK)
            break;
        status = stki_beton_read_field(descriptor, i, beton->file->path, &beton->fields[i], err);
        if ((status == STK_E_UNSUPPORTED || status == STK_E_UNSAFE) && beton->fields[i].kind != STKI_BETON_CUSTOM)
            status = STK_OK;
    }
    return status;
}

static stk_status add_members(stki_beton *beton, stk_error *err)
{
    unsigned char descriptor[STKI_BETON_FIELD];
    stk_status status = STK_OK;

    for (int i = 0; i < beton->layout.field_count && status == STK_OK; i++) {
        stki_beton_field again;
        stk_error why;
        stk_status refused;

        status = stki_file_read(beton->file, STKI_BETON_HEADER + (int64_t)i * STKI_BETON_FIELD, descriptor,
                                sizeof descriptor, err);
        if (status != STK_OK)
            break;
        refused = stki_beton_read_field(descriptor, i, beton->file->path, &again, &why);
        status = add_member(beton, i, refused, &why, err);
    }
    return status;
}

static stk_status read_file(stki_beton *beton, stk_error *err)
{
    const char *path = beton->file->path;
    char head[STKI_BETON_HEADER] = {0};
    int64_t size = beton->file->size;
    stk_status status = stki_file_read(beton->file, 0, head, size < STKI_BETON_HEADER ? size : STKI_BETON_HEADER, err);

    if (status == STK_OK)
        status = stki_beton_read_header(head, size, path, &beton->layout, err);
    if (status != STK_OK)
        return status;
    beton->fields = stki_zalloc_array(beton->layout.field_count, sizeof *beton->fields);
    if (!beton->fields)
        return stki_fail_memory(err, beton->layout.field_count * (int64_t)sizeof *beton->fields, path);
    status = read_fields(beton, err);
    if (status == STK_OK)
        status = stki_beton_lay_out(&beton->layout, beton->fields, size, path, err);
    if (status == STK_OK)
        status = add_members(beton, err);
    if (status == STK_OK)
        beton->base.details = json_pack(
            "{s:i, s:I, s:I, s:I, s:I, s:I}", "version", 2, "samples", (json_int_t)beton->layout.sample_count,
            "page_bytes", (json_int_t)beton->layout.page_bytes, "pages", (json_int_t)beton->layout.page_count,
            "row_bytes", (json_int_t)beton->layout.row_bytes, "allocations", (json_int_t)beton->layout.entry_count);
    return status;
}

stk_status stki_beton_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_beton *beton;
    stk_status status = stki_container_create(sizeof *beton, &ops, file->path, &beton, err);

    (void)opts; /* options are read when a field is opened */
    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    beton->file = file;
    beton->lazy = stki_zalloc(sizeof *beton->lazy);
    if (beton->lazy)
        stki_mutex_init(&beton->lazy->lock);
    status = beton->lazy ? read_file(beton, err) : stki_fail_memory(err, sizeof *beton->lazy, file->path);
    if (status != STK_OK)
        beton_destroy(&beton->base);
    else
        *out = &beton->base;
    return status;
}

stk_status stki_beton_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_beton_of_file(file, opts, out, err);
}

/* Checks for version 2, a page size that is a power of two, and a first field of known type with a name. */
bool stki_beton_matches(const char *head, int64_t length)
{
    const unsigned char *h = (const unsigned char *)head;
    uint32_t page;

    if (length < STKI_BETON_HEADER + 2 || h[0] != 2 || h[1] != 0)
        return false;
    memcpy(&page, h + 4, sizeof page);
    return page >= 512 && (page & (page - 1)) == 0 && (h[2] || h[3]) &&
           (h[STKI_BETON_HEADER] <= STKI_BETON_TENSOR || h[STKI_BETON_HEADER] == STKI_BETON_CUSTOM) &&
           h[STKI_BETON_HEADER + 1] >= ' ' && h[STKI_BETON_HEADER + 1] < 127;
}
