/* beton_check.c: checks which fields and values can be stored in a .beton file, and encodes its field descriptors. */
#include "beton_check.h"
#include "decode.h"
#include "error.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SIDE_MOST = 65535 /* maximum height or width of an image, which are stored as u16 */ };

bool stki_beton_has_region(enum stki_beton_kind kind)
{
    return kind != STKI_BETON_FLOAT && kind != STKI_BETON_INT;
}

static bool is_array(enum stki_beton_kind kind)
{
    return kind == STKI_BETON_NDARRAY || kind == STKI_BETON_TENSOR;
}

/* ---- fields ---- */

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
                          "1 to 16 bytes, the limit of FFCV", "invalid name", err);
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] > '~')
            return fail_field(path, index, STKI_TEXT("byte 0x%02x", (unsigned char)name[i]), "ASCII", "invalid name",
                              err);
    for (int i = 0; i < index; i++)
        if (!strcmp(fields[i].name, name))
            return fail_field(path, index, name, "a unique name", "invalid name", err);
    memcpy(out, name, length + 1);
    return STK_OK;
}

/* Returns NumPy's type string, such as "<f4"; NULL: NumPy has no such type. */
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
                            (stki_place){path, -1, -1, stk_dtype_long_name(field->dtype), "a type that NumPy supports"},
                            "field %d: unsupported dtype", index);
    if (field->ndim < 1 || field->ndim > STK_MAX_DIMS)
        return fail_field(path, index, STKI_TEXT("%d axes", field->ndim), STKI_TEXT("1 to %d", STK_MAX_DIMS),
                          "invalid shape", err);
    if (!field->shape)
        return fail_field(path, index, "NULL", STKI_TEXT("%d sizes", field->ndim), "invalid shape", err);
    out->dtype = field->dtype;
    out->ndim = field->ndim;
    memcpy(out->shape, field->shape, (size_t)field->ndim * sizeof *field->shape);
    if (stki_row_major(out->dtype, out->ndim, out->shape, strides, &out->bytes, NULL) != STK_OK)
        return fail_field(path, index, STKI_SHAPE(out->ndim, out->shape), "sizes that fit in memory", "invalid shape",
                          err);
    if (out->shape[out->ndim - 1] == 0)
        return fail_field(path, index, STKI_SHAPE(out->ndim, out->shape), "a last axis that is not empty",
                          "invalid shape", err);
    for (int i = 0; i < out->ndim; i++)
        out->bytes = out->shape[i] == 0 ? 0 : out->bytes;
    if (out->bytes > page_bytes)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", out->bytes),
                                         STKI_TEXT("at most one page (page_bytes: %" PRId64 ")", page_bytes)},
                            "field '%s': a sample does not fit in a page", out->name);
    return STK_OK;
}

stk_status stki_beton_check_field(const char *path, const stk_beton_field *fields, int index, int64_t page_bytes,
                                  stki_beton_field *out, stk_error *err)
{
    stk_status status = take_name(path, fields, index, out->name, err);

    if (status != STK_OK)
        return status;
    if (fields[index].kind < STK_BETON_FLOAT || fields[index].kind > STK_BETON_TENSOR)
        return fail_field(path, index, STKI_TEXT("%d", (int)fields[index].kind), "0 to 6", "invalid kind", err);
    out->kind = (enum stki_beton_kind)fields[index].kind;
    return is_array(out->kind) ? take_array(path, &fields[index], index, page_bytes, out, err) : STK_OK;
}

void stki_beton_write_descriptor(const stki_beton_field *field, char *out)
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

/* ---- values ---- */

static stk_status fail_value(const stki_beton_place *place, const stki_beton_field *field, const char *found,
                             const char *expected, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_VALUE, (stki_place){place->path, place->record, -1, found, expected},
                        "field '%s': %s", field->name, what);
}

static stk_status check_jpeg(const stki_beton_place *place, const stki_beton_field *field, const stk_beton_value *value,
                             stk_error *err)
{
    static const stki_decode_opts as_stored;
    int64_t shape[3];
    stk_status status = stki_image_shape(value->bytes ? value->bytes : "", value->size, &as_stored, shape, err);

    if (status != STK_OK)
        return stki_fail_place(err, status, place->path, place->record, NULL);
    if (((const unsigned char *)value->bytes)[0] != 0xff)
        return fail_value(place, field, "another kind of image", "a JPEG image", "wrong image format", err);
    if (shape[0] == value->height && shape[1] == value->width)
        return STK_OK;
    return fail_value(place, field, STKI_TEXT("%" PRId64 " x %" PRId64 " pixels in the JPEG image", shape[0], shape[1]),
                      STKI_TEXT("%" PRId64 " x %" PRId64, value->height, value->width), "wrong height or width", err);
}

static stk_status check_image(const stki_beton_place *place, const stki_beton_field *field,
                              const stk_beton_value *value, stk_error *err)
{
    if (value->height < 1 || value->width < 1 || value->height > SIDE_MOST || value->width > SIDE_MOST)
        return fail_value(place, field, STKI_TEXT("%" PRId64 " x %" PRId64, value->height, value->width),
                          "a height and width of 1 to 65535", "invalid height or width", err);
    if (value->jpeg)
        return check_jpeg(place, field, value, err);
    if (value->size != value->height * value->width * 3)
        return fail_value(place, field, STKI_TEXT("%" PRId64 " bytes", value->size),
                          STKI_TEXT("%" PRId64 " for %" PRId64 " x %" PRId64 " pixels",
                                    value->height * value->width * 3, value->height, value->width),
                          "wrong size", err);
    return STK_OK;
}

static stk_status check_json(const stki_beton_place *place, const stki_beton_field *field, const stk_beton_value *value,
                             stk_error *err)
{
    json_error_t why;
    json_t *json = json_loadb(value->bytes ? value->bytes : "", (size_t)value->size, JSON_DECODE_ANY, &why);

    if (!json)
        return fail_value(place, field, why.text, "a JSON text", "invalid JSON", err);
    json_decref(json);
    return STK_OK;
}

stk_status stki_beton_check_value(const stki_beton_place *place, const stki_beton_field *field,
                                  const stk_beton_value *value, int64_t *out, stk_error *err)
{
    *out = value->size;
    if (value->size < 0 || value->size > place->page_bytes)
        *out = place->page_bytes + 1; /* does not fit in a page */
    if (value->size < 0)
        return fail_value(place, field, STKI_TEXT("%" PRId64 " bytes", value->size), "at least 0", "invalid size", err);
    if (*out > place->page_bytes)
        return STK_OK;
    if (value->size > 0 && !value->bytes)
        return stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){place->path, place->record, -1, "NULL", STKI_TEXT("%" PRId64 " bytes", value->size)},
            "field '%s': no bytes", field->name);
    switch (field->kind) {
    case STKI_BETON_IMAGE:
        return check_image(place, field, value, err);
    case STKI_BETON_JSON:
        *out += 1; /* a NUL */
        return check_json(place, field, value, err);
    case STKI_BETON_NDARRAY:
    case STKI_BETON_TENSOR:
        if (value->size != field->bytes)
            return fail_value(place, field, STKI_TEXT("%" PRId64 " bytes", value->size),
                              STKI_TEXT("%" PRId64, field->bytes), "wrong size", err);
        return STK_OK;
    default:
        return STK_OK;
    }
}
