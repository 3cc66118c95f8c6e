/* npy_form.c: see npy_form.h. */
#include "npy_form.h"
#include "checked.h"
#include "error.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

static const char *descr_of(stk_dtype dtype)
{
    switch (dtype) {
    case STK_BOOL:
        return "|b1";
    case STK_U8:
        return "|u1";
    case STK_I8:
        return "|i1";
    case STK_U16:
        return "<u2";
    case STK_I16:
        return "<i2";
    case STK_U32:
        return "<u4";
    case STK_I32:
        return "<i4";
    case STK_U64:
        return "<u8";
    case STK_I64:
        return "<i8";
    case STK_F16:
        return "<f2";
    case STK_F32:
        return "<f4";
    case STK_F64:
        return "<f8";
    case STK_C64:
        return "<c8";
    case STK_C128:
        return "<c16";
    case STK_BF16:
        return "<V2";
    case STK_F8_E4M3FN:
        return "|V1";
    case STK_F8_E5M2:
        return "<f1";
    default:
        return NULL;
    }
}

static bool is_alias(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F8_E4M3FN || dtype == STK_F8_E5M2;
}

static stk_status check_dtype(const char *path, stk_dtype dtype, bool alias, stk_error *err)
{
    if (!descr_of(dtype))
        return stki_fail_at(err, STK_E_BAD_DTYPE,
                            (stki_place){path, -1, -1, STKI_TEXT("dtype number %d", (int)dtype), NULL}, "cannot write");
    if (is_alias(dtype) && !alias)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, stk_dtype_long_name(dtype), "a type that NumPy supports"},
                            ".npy files have no name for this type: set alias to store it as raw bytes (%s), and read "
                            "it with source.dtype",
                            descr_of(dtype));
    return STK_OK;
}

static int form_text(const stki_npy_form *form, int64_t rows, char *text)
{
    int used =
        snprintf(text, STKI_NPY_FORM_MAX, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of(form->dtype));

    if (!form->scalar)
        used += snprintf(text + used, (size_t)(STKI_NPY_FORM_MAX - used), form->row_ndim ? "%" PRId64 : "%" PRId64 ",",
                         rows);
    for (int i = 0; i < form->row_ndim; i++)
        used += snprintf(text + used, (size_t)(STKI_NPY_FORM_MAX - used), ", %" PRId64, form->row_shape[i]);
    return used + snprintf(text + used, (size_t)(STKI_NPY_FORM_MAX - used), "), }");
}

stk_status stki_npy_form_init(stki_npy_form *form, const char *path, stk_dtype dtype, int row_ndim,
                              const int64_t *row_shape, bool alias, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS];
    char text[STKI_NPY_FORM_MAX];
    stk_status status = check_dtype(path, dtype, alias, err);

    if (status == STK_OK && row_ndim >= STK_MAX_DIMS)
        status = stki_fail_at(err, STK_E_UNSUPPORTED,
                              (stki_place){path, -1, -1, STKI_TEXT("%d axes per row", row_ndim),
                                           STKI_TEXT("at most %d", STK_MAX_DIMS - 1)},
                              "too many axes");
    if (status != STK_OK)
        return status;
    *form = (stki_npy_form){.dtype = dtype, .scalar = row_ndim < 0, .row_ndim = row_ndim < 0 ? 0 : row_ndim};
    if (row_ndim > 0)
        memcpy(form->row_shape, row_shape, sizeof *row_shape * (size_t)row_ndim);
    form->header_bytes = stki_round_up(10 + form_text(form, INT64_MAX, text) + 1, ALIGN);
    return stki_row_major(dtype, form->row_ndim, form->row_shape, strides, &form->row_bytes, err);
}

/* The header consists of the magic, version 1.0, the length, the text, spaces and a newline. The text contains at most
 * 32 sizes of 21 characters, which is far less than 64 KiB. */
void stki_npy_form_write(const stki_npy_form *form, int64_t rows, char *to)
{
    int64_t bytes = form->header_bytes, text = bytes - 10;
    char written[STKI_NPY_FORM_MAX];
    int length = form_text(form, rows, written);

    memset(to, ' ', (size_t)bytes);
    memcpy(to, "\x93NUMPY\x01", 8);
    to[8] = (char)(text & 0xFF);
    to[9] = (char)(text >> 8);
    memcpy(to + 10, written, (size_t)length);
    to[bytes - 1] = '\n';
}
