/* npy_descr.c: converts NumPy's type strings ("<f4") to stoker's dtypes.
 *
 * NumPy has no bfloat16 or float8, so the user has to name these types (`alias`): ml_dtypes arrays are saved as raw
 * bytes (bfloat16 as V2, the float8 types as V1 or f1), and bfloat16 is also saved as u2 and float8 as u1. Any other
 * mismatch between the type in the file and the user's type is an error. */
#include "error.h"
#include "npy_header.h"
#include <stdlib.h>
#include <string.h>

/* A parsed type string. A long name ("int32") has kind 0. */
struct descr {
    const char *whole;
    char order; /* '<', '>', '|', '=', or 0 */
    char kind;
    int64_t size;     /* -1: no size given */
    const char *rest; /* what follows the size */
};

static struct descr split(const char *whole)
{
    struct descr d = {.whole = whole, .size = -1};
    const char *at = whole;

    if (*at && strchr("<>|=", *at))
        d.order = *at++;
    d.kind = *at ? *at++ : '\0';
    if (*at >= '0' && *at <= '9') {
        d.size = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            d.size =
                d.size < 1000000000 ? d.size * 10 + (*at - '0') : d.size; /* ignores digits beyond any valid size */
    }
    d.rest = at;
    return d;
}

const char *stki_npy_printable(char *buffer, int size, const char *text, int64_t length)
{
    int used = 0;

    for (int64_t i = 0; i < length && used < size - 1; i++)
        buffer[used++] = text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
    buffer[used] = '\0';
    if (length > size - 1)
        memcpy(buffer + size - 4, "...", 4);
    return buffer;
}

bool stki_npy_is_object(const char *descr)
{
    struct descr d = split(descr);

    return d.kind == 'O' && !*d.rest;
}

static const struct {
    char kind;
    int size;
    stk_dtype dtype;
} plain_types[] = {
    {'b', 1, STK_BOOL}, {'u', 1, STK_U8},  {'u', 2, STK_U16}, {'u', 4, STK_U32},   {'u', 8, STK_U64},
    {'i', 1, STK_I8},   {'i', 2, STK_I16}, {'i', 4, STK_I32}, {'i', 8, STK_I64},   {'f', 2, STK_F16},
    {'f', 4, STK_F32},  {'f', 8, STK_F64}, {'c', 8, STK_C64}, {'c', 16, STK_C128},
};

/* NumPy's one-letter codes for platforms where C's long has 8 bytes. */
static const struct {
    char code;
    stk_dtype dtype;
} letters[] = {
    {'?', STK_BOOL}, {'b', STK_I8},  {'B', STK_U8},  {'h', STK_I16}, {'H', STK_U16}, {'i', STK_I32},
    {'I', STK_U32},  {'l', STK_I64}, {'L', STK_U64}, {'q', STK_I64}, {'Q', STK_U64}, {'p', STK_I64},
    {'P', STK_U64},  {'e', STK_F16}, {'f', STK_F32}, {'d', STK_F64}, {'F', STK_C64}, {'D', STK_C128},
};

static stk_dtype plain_type(const struct descr *d)
{
    for (size_t i = 0; i < sizeof letters / sizeof letters[0] && d->size < 0 && !*d->rest; i++)
        if (letters[i].code == d->kind)
            return letters[i].dtype;
    for (size_t i = 0; i < sizeof plain_types / sizeof plain_types[0]; i++)
        if (plain_types[i].kind == d->kind && plain_types[i].size == d->size && !*d->rest)
            return plain_types[i].dtype;
    /* NumPy's long names, which exclude bfloat16 and float8. */
    for (int dtype = STK_DTYPE_NONE + 1; dtype < STK_DTYPE_END; dtype++)
        if (dtype != STK_BF16 && dtype != STK_F8_E4M3FN && dtype != STK_F8_E5M2 &&
            !strcmp(d->whole, stk_dtype_long_name((stk_dtype)dtype)))
            return (stk_dtype)dtype;
    return STK_DTYPE_NONE;
}

/* Whether the elements are raw bytes whose type the user must give: 'V' of any size, and f1. */
static bool is_raw(const struct descr *d)
{
    return (d->kind == 'V' || (d->kind == 'f' && d->size == 1)) && !*d->rest;
}

/* Describes a NumPy type that stoker does not support; NULL: NumPy has no such type. */
static const char *declined(const struct descr *d)
{
    size_t rest = strlen(d->rest);

    if ((d->kind == 'M' || d->kind == 'm') && d->size == 8 &&
        (!rest || (d->rest[0] == '[' && d->rest[rest - 1] == ']')))
        return "dates and time spans";
    if (rest)
        return NULL;
    if ((d->kind == 'g' || d->kind == 'G') && d->size < 0)
        return "long double";
    if ((d->kind == 'f' && (d->size == 12 || d->size == 16)) || (d->kind == 'c' && (d->size == 24 || d->size == 32)))
        return "long double";
    if (d->kind == 'S' || d->kind == 'a')
        return "byte strings";
    if (d->kind == 'U')
        return "text (4 bytes per character)";
    return NULL;
}

/* Whether elements stored as `stored` may be read as `alias`. */
static bool bits_of(stk_dtype stored, stk_dtype alias)
{
    return (stored == STK_U16 && alias == STK_BF16) ||
           (stored == STK_U8 && (alias == STK_F8_E4M3FN || alias == STK_F8_E5M2));
}

static stk_status read_raw(const struct descr *d, stk_dtype alias, stki_place place, stk_dtype *dtype, stk_error *err)
{
    if (alias == STK_DTYPE_NONE) {
        place.expected = "source.dtype in the configuration (bfloat16 for V2, a float8 for V1 and f1)";
        return stki_fail_at(err, STK_E_UNSUPPORTED, place, "the file does not specify the type of its raw bytes");
    }
    if (d->size != stk_dtype_size(alias)) {
        place.expected =
            STKI_TEXT("%s of %d bytes (source.dtype)", stk_dtype_long_name(alias), (int)stk_dtype_size(alias));
        return stki_fail_at(err, STK_E_MISMATCH, place, "the configured type has a different size");
    }
    if (d->order == '>' && d->size > 1)
        return stki_fail_at(err, STK_E_UNSUPPORTED, place,
                            "big-endian raw bytes are not supported: save the array as little-endian");
    *dtype = alias;
    return STK_OK;
}

stk_status stki_npy_read_descr(const char *descr, stk_dtype alias, const char *path, int64_t offset, stk_dtype *dtype,
                               bool *swapped, stk_error *err)
{
    struct descr d = split(descr);
    char shown[64];
    stki_place place = {path, -1, offset, NULL, NULL};

    place.found = STKI_TEXT("descr '%s'", stki_npy_printable(shown, sizeof shown, descr, (int64_t)strlen(descr)));

    *swapped = false;
    if (stki_npy_is_object(descr)) {
        place.expected = "an array of numbers";
        return stki_fail_at(err, STK_E_UNSAFE, place,
                            "refused for security: Python objects are a pickle, and loading one could run code");
    }
    if (is_raw(&d))
        return read_raw(&d, alias, place, dtype, err);
    *dtype = plain_type(&d);
    if (*dtype == STK_DTYPE_NONE) {
        const char *what = declined(&d);
        place.expected = "bool, integers, float16 to float64, complex64 or complex128";
        if (what)
            return stki_fail_at(err, STK_E_UNSUPPORTED, place, "the element type is not supported: %s", what);
        place.expected = "a byte order, a kind and a size such as '<f4'";
        return stki_fail_at(err, STK_E_CORRUPT, place, "unknown element type");
    }
    *swapped = d.order == '>' && stk_dtype_size(*dtype) > 1;
    if (alias == STK_DTYPE_NONE || alias == *dtype)
        return STK_OK;
    if (!bits_of(*dtype, alias)) {
        place.expected = STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(alias));
        return stki_fail_at(err, STK_E_MISMATCH, place, "the type in the file differs from the configured one");
    }
    *dtype = alias;
    return STK_OK;
}
