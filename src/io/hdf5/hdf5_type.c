/* hdf5_type.c: see hdf5_type.h. Float types are identified by comparing all their fields with a table, because a type
 * of 16 bits may be half, bfloat16 or something else. */
#include "hdf5_type.h"
#include "checked.h"
#include "error.h"
#include <string.h>

static stk_status refuse(const char *path, const char *name, const char *what, stk_error *err)
{
    (void)H5Eclear2(H5E_DEFAULT);
    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, what, "numbers that have a dtype"},
                        "%s: unsupported type", name);
}

/* ---- floats ---- */

static const struct float_row {
    stk_dtype dtype;
    stki_hdf5_float is;
} floats[] = {
    {STK_F16, {2, 15, 10, 5, 10, 15}},    {STK_BF16, {2, 15, 7, 8, 7, 127}},   {STK_F32, {4, 31, 23, 8, 23, 127}},
    {STK_F64, {8, 63, 52, 11, 52, 1023}}, {STK_F8_E4M3FN, {1, 7, 3, 4, 3, 7}}, {STK_F8_E5M2, {1, 7, 2, 5, 2, 15}},
};

stk_dtype stki_hdf5_float_dtype(const stki_hdf5_float *about)
{
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        if (!memcmp(about, &floats[i].is, sizeof *about)) /* all members have the same size, so there is no padding */
            return floats[i].dtype;
    return STK_DTYPE_NONE;
}

static stk_dtype float_dtype(hid_t type)
{
    size_t size = H5Tget_size(type), sign, exponent_at, exponent_bits, mantissa_at, mantissa_bits;
    H5T_order_t order = H5Tget_order(type);

    if (H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) < 0 ||
        (order != H5T_ORDER_LE && order != H5T_ORDER_BE) || H5Tget_norm(type) != H5T_NORM_IMPLIED ||
        H5Tget_offset(type) != 0 || H5Tget_precision(type) != 8 * size || mantissa_at != 0)
        return STK_DTYPE_NONE;
    return stki_hdf5_float_dtype(&(stki_hdf5_float){(int64_t)size, (int64_t)sign, (int64_t)exponent_at,
                                                    (int64_t)exponent_bits, (int64_t)mantissa_bits,
                                                    (int64_t)H5Tget_ebias(type)});
}

static bool is_swapped(hid_t type)
{
    return H5Tget_size(type) > 1 && H5Tget_order(type) == H5T_ORDER_BE;
}

/* ---- integers, bool, complex ---- */

stk_dtype stki_hdf5_whole_dtype(int64_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? STK_I8 : STK_U8;
    case 2:
        return is_signed ? STK_I16 : STK_U16;
    case 4:
        return is_signed ? STK_I32 : STK_U32;
    case 8:
        return is_signed ? STK_I64 : STK_U64;
    default:
        return STK_DTYPE_NONE;
    }
}

static void read_whole(hid_t type, stki_hdf5_type *out)
{
    size_t size = H5Tget_size(type);
    H5T_order_t order = H5Tget_order(type);
    H5T_sign_t sign = H5Tget_sign(type);

    out->raw = H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0;
    out->swapped = out->raw && is_swapped(type);
    if ((sign == H5T_SGN_NONE || sign == H5T_SGN_2) && (order == H5T_ORDER_LE || order == H5T_ORDER_BE))
        out->dtype = stki_hdf5_whole_dtype((int64_t)size, sign == H5T_SGN_2);
}

/* Treats bitfields as unsigned integers, as h5py does. The library converts bitfields only to bitfields. */
static void read_bits(hid_t type, stki_hdf5_type *out)
{
    const size_t size = H5Tget_size(type);
    const H5T_order_t order = H5Tget_order(type);

    if (H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0 &&
        (order == H5T_ORDER_LE || order == H5T_ORDER_BE))
        out->dtype = stki_hdf5_whole_dtype((int64_t)size, false);
    out->swapped = is_swapped(type);
}

static bool enum_value(hid_t type, unsigned member, const char *name, unsigned char value)
{
    unsigned char found = 0xFF;
    char *text = H5Tget_member_name(type, member);
    bool same = text && !strcmp(text, name) && H5Tget_member_value(type, member, &found) >= 0 && found == value;

    if (text)
        (void)H5free_memory(text);
    return same;
}

static void read_enum(hid_t type, stki_hdf5_type *out)
{
    hid_t base = H5Tget_super(type);

    if (base < 0)
        return;
    read_whole(base, out);
    (void)H5Tclose(base);
    if (!out->raw)
        out->dtype = STK_DTYPE_NONE;
    else if (H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
             ((enum_value(type, 0, "FALSE", 0) && enum_value(type, 1, "TRUE", 1)) ||
              (enum_value(type, 1, "FALSE", 0) && enum_value(type, 0, "TRUE", 1))))
        out->dtype = STK_BOOL;
}

/* Returns the dtype of a float member with this name and offset; STK_DTYPE_NONE: there is no such member. */
static stk_dtype part_dtype(hid_t type, unsigned member, const char *name, size_t offset, bool *swapped)
{
    char *text = H5Tget_member_name(type, member);
    bool fits = text && !strcmp(text, name) && H5Tget_member_offset(type, member) == offset &&
                H5Tget_member_class(type, member) == H5T_FLOAT;
    hid_t part = fits ? H5Tget_member_type(type, member) : -1;
    stk_dtype dtype = STK_DTYPE_NONE;

    if (part >= 0) {
        dtype = float_dtype(part);
        *swapped = is_swapped(part);
        (void)H5Tclose(part);
    }
    if (text)
        (void)H5free_memory(text);
    return dtype;
}

static void read_compound(hid_t type, stki_hdf5_type *out)
{
    size_t size = H5Tget_size(type);
    bool real_swapped = false, imaginary_swapped = false;
    stk_dtype real, imaginary;

    if (H5Tget_nmembers(type) != 2 || (size != 8 && size != 16))
        return;
    real = part_dtype(type, 0, "r", 0, &real_swapped);
    imaginary = part_dtype(type, 1, "i", size / 2, &imaginary_swapped);
    if (real != imaginary || real != (size == 8 ? STK_F32 : STK_F64) || real_swapped != imaginary_swapped)
        return;
    out->dtype = size == 8 ? STK_C64 : STK_C128;
    out->swapped = real_swapped;
}

/* ---- all types ---- */

static const char *class_name(H5T_class_t class)
{
    switch (class) {
    case H5T_INTEGER:
        return "an integer type of an unsupported size or sign";
    case H5T_FLOAT:
        return "a float type with unsupported fields";
    case H5T_TIME:
        return "a time type";
    case H5T_STRING:
        return "a string type";
    case H5T_BITFIELD:
        return "a bitfield type of an unsupported size";
    case H5T_OPAQUE:
        return "an opaque type";
    case H5T_COMPOUND:
        return "a compound type that is not a complex number (NAME[\"FIELD\"] reads one of its fields)";
    case H5T_REFERENCE:
        return "a reference type";
    case H5T_ENUM:
        return "an enum type with an unsupported base type";
    case H5T_VLEN:
        return "a variable-length type";
    case H5T_ARRAY:
        return "an array type whose elements are not numbers";
    default:
        return "an unknown type";
    }
}

static void read_simple(hid_t type, H5T_class_t class, stki_hdf5_type *out)
{
    out->raw = true;
    if (class == H5T_INTEGER) {
        read_whole(type, out);
    } else if (class == H5T_BITFIELD) {
        read_bits(type, out);
    } else if (class == H5T_FLOAT) {
        out->dtype = float_dtype(type);
        out->swapped = is_swapped(type);
    } else if (class == H5T_ENUM) {
        read_enum(type, out);
    } else if (class == H5T_COMPOUND) {
        read_compound(type, out);
    }
}

/* Reads an array type. Nested array types are rejected. */
static stk_status read_array(hid_t type, const char *path, const char *name, stki_hdf5_type *out, stk_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    int rank = H5Tget_array_ndims(type);
    int64_t bytes;
    hid_t base;

    if (rank < 1 || rank > STK_MAX_DIMS || H5Tget_array_dims2(type, dims) < 0)
        return refuse(path, name, "an array type of an unsupported rank", err);
    base = H5Tget_super(type);
    if (base < 0)
        return refuse(path, name, "an array type without a base type", err);
    read_simple(base, H5Tget_class(base), out);
    (void)H5Tclose(base);
    if (out->dtype == STK_DTYPE_NONE || !out->raw)
        return refuse(path, name, class_name(H5T_ARRAY), err);
    out->inner_ndim = rank;
    bytes = stk_dtype_size(out->dtype);
    for (int i = 0; i < rank; i++)
        if (dims[i] > INT64_MAX || !stki_mul(bytes, out->inner[i] = (int64_t)dims[i], &bytes))
            return refuse(path, name, "an array type that is too large", err);
    if ((uint64_t)bytes != H5Tget_size(type))
        return refuse(path, name, "an array type with gaps", err);
    return STK_OK;
}

static void read_string(hid_t type, stki_hdf5_type *out)
{
    const H5T_str_t padding = H5Tget_strpad(type);

    out->dtype = STK_U8;
    out->varying = H5Tis_variable_str(type) > 0 ? STKI_HDF5_STRING : STKI_HDF5_FIXED;
    out->padding = padding == H5T_STR_NULLPAD    ? STKI_HDF5_NULLS
                   : padding == H5T_STR_SPACEPAD ? STKI_HDF5_SPACES
                                                 : STKI_HDF5_TERMINATED;
}

/* Reads a type of variable-length lists of numbers that the library can convert to native types. */
static void read_vlen(hid_t type, stki_hdf5_type *out)
{
    hid_t base = H5Tget_super(type);
    stki_hdf5_type item = {.dtype = STK_DTYPE_NONE};

    if (base < 0)
        return;
    read_simple(base, H5Tget_class(base), &item);
    (void)H5Tclose(base);
    out->dtype = item.dtype;
    out->varying = STKI_HDF5_VLEN;
}

stk_status stki_hdf5_type_read(hid_t type, const char *path, const char *name, stki_hdf5_type *out, stk_error *err)
{
    H5T_class_t class = H5Tget_class(type);

    *out = (stki_hdf5_type){.dtype = STK_DTYPE_NONE};
    if (class == H5T_STRING) {
        read_string(type, out);
    } else if (class == H5T_VLEN) {
        read_vlen(type, out);
    } else if (class == H5T_OPAQUE) { /* bytes */
        *out = (stki_hdf5_type){.dtype = STK_U8, .raw = true, .inner_ndim = 1, .inner = {(int64_t)H5Tget_size(type)}};
    } else if (class == H5T_ARRAY) {
        stk_status status = read_array(type, path, name, out, err);
        if (status != STK_OK)
            return status;
    } else {
        read_simple(type, class, out);
    }
    if (out->dtype == STK_DTYPE_NONE)
        return refuse(path, name, class_name(class), err);
    out->bytes = (int64_t)H5Tget_size(type);
    (void)H5Eclear2(H5E_DEFAULT);
    return STK_OK;
}

static hid_t native(stk_dtype dtype)
{
    switch (dtype) {
    case STK_U8:
        return H5T_NATIVE_UINT8;
    case STK_I8:
        return H5T_NATIVE_INT8;
    case STK_U16:
        return H5T_NATIVE_UINT16;
    case STK_I16:
        return H5T_NATIVE_INT16;
    case STK_U32:
        return H5T_NATIVE_UINT32;
    case STK_I32:
        return H5T_NATIVE_INT32;
    case STK_U64:
        return H5T_NATIVE_UINT64;
    default:
        return H5T_NATIVE_INT64;
    }
}

/* Returns the memory type of one item, which is little-endian. */
static hid_t item_in_memory(hid_t type, stk_dtype dtype)
{
    hid_t copy;

    if (H5Tget_class(type) != H5T_BITFIELD)
        return stki_hdf5_type_make(dtype);
    copy = H5Tcopy(type);
    if (copy >= 0)
        (void)H5Tset_order(copy, H5T_ORDER_LE);
    return copy;
}

/* Returns the memory type of lists or arrays, depending on `about`. */
static hid_t items_in_memory(hid_t type, const stki_hdf5_type *about)
{
    hsize_t dims[STK_MAX_DIMS];
    hid_t base = H5Tget_super(type), item = base < 0 ? -1 : item_in_memory(base, about->dtype), all = -1;

    for (int i = 0; i < about->inner_ndim; i++)
        dims[i] = (hsize_t)about->inner[i];
    if (item >= 0)
        all = about->varying == STKI_HDF5_VLEN ? H5Tvlen_create(item)
                                               : H5Tarray_create2(item, (unsigned)about->inner_ndim, dims);
    if (item >= 0)
        (void)H5Tclose(item);
    if (base >= 0)
        (void)H5Tclose(base);
    return all;
}

hid_t stki_hdf5_type_in_memory(hid_t type, const stki_hdf5_type *about)
{
    if (about->varying == STKI_HDF5_VLEN)
        return items_in_memory(type, about);
    return H5Tcopy(about->raw || about->varying != STKI_HDF5_SAME ? type : native(about->dtype));
}

hid_t stki_hdf5_type_of_field(hid_t type, const stki_hdf5_type *about)
{
    switch (H5Tget_class(type)) {
    case H5T_VLEN:
    case H5T_ARRAY:
        return items_in_memory(type, about);
    case H5T_STRING:
    case H5T_OPAQUE:
        return H5Tcopy(type);
    default:
        return item_in_memory(type, about->dtype);
    }
}

/* ---- writing ---- */

static hid_t make_bool(void)
{
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    signed char value = 0;

    if (type < 0)
        return -1;
    (void)H5Tenum_insert(type, "FALSE", &value);
    value = 1;
    (void)H5Tenum_insert(type, "TRUE", &value);
    return type;
}

static hid_t make_complex(hid_t part, size_t size)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 2 * size);

    if (type < 0)
        return -1;
    (void)H5Tinsert(type, "r", 0, part);
    (void)H5Tinsert(type, "i", size, part);
    return type;
}

static hid_t make_float(stk_dtype dtype)
{
    const struct float_row *row = floats;
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);

    while (row->dtype != dtype)
        row++;
    if (type < 0)
        return -1;
    if (H5Tset_fields(type, (size_t)row->is.sign, (size_t)row->is.exponent_at, (size_t)row->is.exponent_bits, 0,
                      (size_t)row->is.mantissa_bits) < 0 ||
        H5Tset_precision(type, 8 * (size_t)row->is.size) < 0 || H5Tset_size(type, (size_t)row->is.size) < 0 ||
        H5Tset_ebias(type, (size_t)row->is.bias) < 0) {
        (void)H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t stki_hdf5_type_make(stk_dtype dtype)
{
    switch (dtype) {
    case STK_BOOL:
        return make_bool();
    case STK_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case STK_I8:
        return H5Tcopy(H5T_STD_I8LE);
    case STK_U16:
        return H5Tcopy(H5T_STD_U16LE);
    case STK_I16:
        return H5Tcopy(H5T_STD_I16LE);
    case STK_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case STK_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case STK_U64:
        return H5Tcopy(H5T_STD_U64LE);
    case STK_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case STK_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case STK_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case STK_C64:
        return make_complex(H5T_IEEE_F32LE, 4);
    case STK_C128:
        return make_complex(H5T_IEEE_F64LE, 8);
    default:
        return make_float(dtype);
    }
}
