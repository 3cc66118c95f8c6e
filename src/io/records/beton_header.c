/* beton_header.c: reads the header, field descriptors and rows of a .beton file; see beton.h for the layout. The format
 * has no magic number, so another kind of file is recognized by an implausible version. */
#include "beton.h"
#include "checked.h"
#include "error.h"
#include "npy_header.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum {
    ODD_VERSION = 100 /* with this version or a later one, the file is not a .beton file */,
    TEXT_AT = 8 * 32 + 8,
    NAME_AT = 1,
    ARGUMENTS_AT = 17
};

static uint64_t load(const void *bytes, int count)
{
    uint64_t value = 0;

    memcpy(&value, bytes, (size_t)count);
    return value;
}

static stk_status fail_cut(const char *path, int64_t file_bytes, int64_t offset, const char *what, int64_t needed,
                           stk_error *err)
{
    return stki_fail_at(err, STK_E_TRUNCATED,
                        (stki_place){path, -1, offset, STKI_TEXT("%" PRId64 " bytes", file_bytes),
                                     STKI_TEXT("at least %" PRId64, needed)},
                        "the file ends inside its %s", what);
}

static bool is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static stk_status check_version(int64_t version, const char *path, stk_error *err)
{
    if (version == 2)
        return STK_OK;
    return stki_fail_at(err, version < ODD_VERSION ? STK_E_UNSUPPORTED : STK_E_CORRUPT,
                        (stki_place){path, -1, 0, STKI_TEXT("version %" PRId64, version), "version 2"},
                        version < ODD_VERSION ? "unsupported .beton version" : "not a .beton file");
}

stk_status stki_beton_read_header(const void *head, int64_t file_bytes, const char *path, stki_beton_layout *out,
                                  stk_error *err)
{
    const char *h = head;
    uint64_t samples, table;
    stk_status status;

    *out = (stki_beton_layout){0};
    if (file_bytes < STKI_BETON_HEADER)
        return fail_cut(path, file_bytes, 0, "header", STKI_BETON_HEADER, err);
    status = check_version((int64_t)load(h, 2), path, err);
    if (status != STK_OK)
        return status;
    out->field_count = (int)load(h + 2, 2);
    out->page_bytes = (int64_t)load(h + 4, 4);
    samples = load(h + 8, 8);
    table = load(h + 16, 8);
    if (!is_power_of_two(out->page_bytes))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, 4, STKI_TEXT("%" PRId64, out->page_bytes), "a power of two"},
                            "invalid page size");
    if (out->field_count == 0)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, 2, "0", "1 to 65535"},
                            "invalid number of fields");
    if (table == 0)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, 16, "no table of allocations", NULL},
                            "the file was never finished by its writer");
    if (samples > INT64_MAX)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, 8, STKI_TEXT("%" PRIu64, samples), NULL},
                            "invalid number of samples");
    out->sample_count = (int64_t)samples;
    out->table = table > INT64_MAX ? INT64_MAX : (int64_t)table; /* INT64_MAX is also beyond the end of the file */
    out->rows = STKI_BETON_HEADER + (int64_t)out->field_count * STKI_BETON_FIELD;
    if (out->rows > file_bytes)
        return fail_cut(path, file_bytes, STKI_BETON_HEADER, "field descriptors", out->rows, err);
    return STK_OK;
}

/* ---- descriptors ---- */

static stk_status read_name(const char *bytes, int index, const char *path, char *name, stk_error *err)
{
    int64_t at = STKI_BETON_HEADER + (int64_t)index * STKI_BETON_FIELD + NAME_AT;

    memcpy(name, bytes, STKI_BETON_NAME);
    name[STKI_BETON_NAME] = '\0';
    for (int i = 0; name[i]; i++)
        if (name[i] < ' ' || name[i] > '~')
            return stki_fail_at(
                err, STK_E_CORRUPT,
                (stki_place){path, -1, at + i, STKI_TEXT("byte 0x%02x", (unsigned char)name[i]), "ASCII"},
                "invalid name of field %d", index);
    return STK_OK;
}

/* Determines the rank, which is not stored: trailing zeros are not axes. */
static stk_status read_shape(const char *arguments, const char *path, int64_t at, stki_beton_field *out, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS], bytes;

    out->ndim = 32;
    while (out->ndim > 0 && load(arguments + 8 * (out->ndim - 1), 8) == 0)
        out->ndim--;
    for (int i = 0; i < out->ndim; i++) {
        uint64_t size = load(arguments + 8 * i, 8);

        if (size > INT64_MAX)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){path, -1, at + 8 * i, STKI_TEXT("%" PRIu64, size), NULL},
                                "field '%s': invalid size of axis %d", out->name, i);
        out->shape[i] = (int64_t)size;
    }
    if (stki_row_major(out->dtype, out->ndim, out->shape, strides, &bytes, NULL) != STK_OK)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, at, STKI_SHAPE(out->ndim, out->shape), "fewer than 2^63 bytes"},
                            "field '%s': invalid shape", out->name);
    for (int i = 0; i < out->ndim; i++)
        if (out->shape[i] == 0)
            bytes = 0;
    out->bytes = bytes;
    return STK_OK;
}

/* Extracts "<f4" from [["", "<f4"]]. */
static stk_status plain_descr(json_t *list, const char *path, int64_t at, stki_beton_field *out, stk_error *err)
{
    json_t *pair = json_array_get(list, 0), *descr = json_array_get(pair, 1);
    size_t i;
    json_t *each;

    json_array_foreach(list, i, each)
    {
        if (!json_is_array(each) || json_array_size(each) < 2 || json_array_size(each) > 3)
            return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, at, NULL, "[[\"\", \"<f4\"]]"},
                                "field '%s': invalid description of the element type", out->name);
    }
    if (json_array_size(list) != 1 || json_array_size(pair) != 2 || !json_is_string(descr) ||
        !json_is_string(json_array_get(pair, 0)) || json_string_length(json_array_get(pair, 0)) != 0)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, at, "a structured element type", "a plain element type"},
                            "field '%s': unsupported element type", out->name);
    if (json_string_length(descr) >= STKI_BETON_DESCR)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, at, STKI_TEXT("%zu bytes", json_string_length(descr)),
                                         "a type string such as '<f4'"},
                            "field '%s': invalid type string", out->name);
    memcpy(out->descr, json_string_value(descr), json_string_length(descr));
    return STK_OK;
}

static stk_status read_descr(const char *arguments, const char *path, int64_t at, stki_beton_field *out, stk_error *err)
{
    uint64_t length = load(arguments + TEXT_AT - 8, 8);
    json_t *list;
    stk_status status;

    if (length > STKI_BETON_ARGUMENTS - TEXT_AT)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, at + TEXT_AT - 8, STKI_TEXT("%" PRIu64 " bytes", length),
                                         STKI_TEXT("at most %d", STKI_BETON_ARGUMENTS - TEXT_AT)},
                            "field '%s': invalid description of the element type", out->name);
    list = json_loadb(arguments + TEXT_AT, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_array(list) || json_array_size(list) == 0) {
        char shown[48];

        json_decref(list);
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, at + TEXT_AT,
                                         stki_npy_printable(shown, sizeof shown, arguments + TEXT_AT, (int64_t)length),
                                         "[[\"\", \"<f4\"]]"},
                            "field '%s': invalid description of the element type", out->name);
    }
    out->descr_at = at + TEXT_AT;
    status = plain_descr(list, path, out->descr_at, out, err);
    json_decref(list);
    if (status == STK_OK)
        status = stki_npy_read_descr(out->descr, STK_DTYPE_NONE, path, out->descr_at, &out->dtype, &out->swapped, err);
    return status;
}

stk_status stki_beton_read_field(const void *descriptor, int index, const char *path, stki_beton_field *out,
                                 stk_error *err)
{
    const unsigned char *d = descriptor;
    int64_t at = STKI_BETON_HEADER + (int64_t)index * STKI_BETON_FIELD;
    stk_status status;

    *out = (stki_beton_field){.kind = (enum stki_beton_kind)d[0]};
    status = read_name((const char *)d + NAME_AT, index, path, out->name, err);
    if (status != STK_OK)
        return status;
    switch (d[0]) {
    case STKI_BETON_FLOAT:
        out->dtype = STK_F64;
        return STK_OK;
    case STKI_BETON_INT:
        out->dtype = STK_I64;
        return STK_OK;
    case STKI_BETON_IMAGE:
    case STKI_BETON_BYTES:
    case STKI_BETON_JSON:
        out->dtype = STK_U8;
        return STK_OK;
    case STKI_BETON_NDARRAY:
    case STKI_BETON_TENSOR:
        status = read_descr((const char *)d + ARGUMENTS_AT, path, at + ARGUMENTS_AT, out, err);
        return status != STK_OK ? status
                                : read_shape((const char *)d + ARGUMENTS_AT, path, at + ARGUMENTS_AT, out, err);
    case STKI_BETON_CUSTOM:
        return stki_fail_at(
            err, STK_E_UNSUPPORTED, (stki_place){path, -1, at, "type 255", NULL},
            "field '%s' has a custom type, whose size in a row is not in the file, so no row can be read", out->name);
    default:
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, at, STKI_TEXT("type %d", d[0]), "0 to 6, or 255"},
                            "field '%s': unknown type", out->name);
    }
}

/* ---- layout ---- */

void stki_beton_row_size(enum stki_beton_kind kind, int64_t *bytes, int64_t *alignment)
{
    /* struct members of NumPy's row struct have alignment 1 */
    *alignment = kind == STKI_BETON_IMAGE || kind == STKI_BETON_BYTES || kind == STKI_BETON_JSON ? 1 : 8;
    *bytes = kind == STKI_BETON_IMAGE ? 13 : kind == STKI_BETON_BYTES || kind == STKI_BETON_JSON ? 16 : 8;
}

const char *stki_beton_kind_name(enum stki_beton_kind kind)
{
    static const char *const names[] = {"float", "int", "rgb_image", "bytes", "ndarray", "json", "torch_tensor"};

    return kind <= STKI_BETON_TENSOR ? names[kind] : "custom";
}

static void place_fields(stki_beton_layout *layout, stki_beton_field *fields)
{
    int64_t at = 0, largest = 1, bytes, alignment;

    for (int i = 0; i < layout->field_count; i++) {
        stki_beton_row_size(fields[i].kind, &bytes, &alignment);
        largest = alignment > largest ? alignment : largest;
        fields[i].row_offset = stki_round_up(at, alignment);
        at = fields[i].row_offset + bytes;
    }
    layout->row_bytes = stki_round_up(at, largest);
}

static stk_status check_table(const stki_beton_layout *layout, int64_t file_bytes, const char *path, stk_error *err)
{
    if (layout->table < layout->rows_end)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, 16, STKI_TEXT("%" PRId64, layout->table),
                                         STKI_TEXT("at least %" PRId64 ", the end of the rows", layout->rows_end)},
                            "invalid offset of the table of allocations");
    if (layout->table > file_bytes)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, 16, STKI_TEXT("%" PRId64 " bytes", file_bytes),
                                         STKI_TEXT("a table of allocations at %" PRId64, layout->table)},
                            "the file ends before its table");
    return STK_OK;
}

stk_status stki_beton_lay_out(stki_beton_layout *layout, stki_beton_field *fields, int64_t file_bytes, const char *path,
                              stk_error *err)
{
    int64_t bytes;
    stk_status status;

    place_fields(layout, fields);
    if (!stki_mul(layout->sample_count, layout->row_bytes, &bytes) || !stki_add(bytes, layout->rows, &layout->rows_end))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, 8, STKI_TEXT("%" PRId64, layout->sample_count),
                                         STKI_TEXT("rows of %" PRId64 " bytes that fit in 63 bits", layout->row_bytes)},
                            "invalid number of samples");
    if (layout->rows_end > file_bytes)
        return fail_cut(path, file_bytes, layout->rows, "rows", layout->rows_end, err);
    status = check_table(layout, file_bytes, path, err);
    if (status != STK_OK)
        return status;
    layout->data_start = stki_round_up(
        layout->rows_end, layout->page_bytes); /* cannot overflow: the size of a file plus less than 2^32 */
    if (layout->table > layout->data_start)
        layout->page_count = (layout->table - layout->data_start) / layout->page_bytes;
    layout->entry_count = (file_bytes - layout->table) / STKI_BETON_ENTRY;
    return STK_OK;
}
