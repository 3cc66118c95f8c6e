/* element.c: single elements: conversion between scalars and bytes, get, set and fill. */
#include "element.h"
#include "cast.h"
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "profile_scope.h"
#include "stage.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- scalars ---- */

double stki_scalar_to_double(stk_scalar value)
{
    switch (value.kind) {
    case STK_SCALAR_BOOL:
        return value.as.b;
    case STK_SCALAR_INT:
        return (double)value.as.i;
    case STK_SCALAR_UINT:
        return (double)value.as.u;
    case STK_SCALAR_REAL:
        return value.as.f;
    case STK_SCALAR_COMPLEX:
        return value.as.c[0];
    }
    return NAN;
}

bool stki_scalar_is_whole(stk_scalar value)
{
    return value.kind == STK_SCALAR_BOOL || value.kind == STK_SCALAR_INT || value.kind == STK_SCALAR_UINT;
}

stki_element stki_element_cast(stk_dtype dtype, stk_scalar value)
{
    static const stk_dtype own[] = {[STK_SCALAR_BOOL] = STK_BOOL,
                                    [STK_SCALAR_INT] = STK_I64,
                                    [STK_SCALAR_UINT] = STK_U64,
                                    [STK_SCALAR_REAL] = STK_F64,
                                    [STK_SCALAR_COMPLEX] = STK_C128};
    stki_element out = {{0}};
    unsigned char truth = value.kind == STK_SCALAR_BOOL && value.as.b;
    stki_cast cast;

    stki_cast_init(&cast, dtype, own[value.kind], false);
    stki_cast_row(&cast, out.bytes, 16, value.kind == STK_SCALAR_BOOL ? (const void *)&truth : &value.as, 16, 1);
    return out;
}

/* Largest finite value of a real dtype. */
static double largest(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F16:
        return 65504;
    case STK_BF16:
        return 0x1.FEp127;
    case STK_F32:
        return (double)FLT_MAX;
    case STK_F8_E4M3FN:
        return 448;
    case STK_F8_E5M2:
        return 57344;
    default:
        return INFINITY;
    }
}

/* Limits of an integer dtype: low <= v < high for all its values; both are exact in double. */
static void limits(stk_dtype dtype, double *low, double *high)
{
    int bits = (int)(8 * stk_dtype_size(dtype));
    bool is_signed = stki_dtype_signed(dtype);

    *low = is_signed ? -ldexp(1, bits - 1) : 0;
    *high = ldexp(1, is_signed ? bits - 1 : bits);
}

static bool fits(stk_dtype dtype, stk_scalar value)
{
    double real = stki_scalar_to_double(value), low, high;
    enum stki_category category = stki_dtype_category(dtype);

    if (category == STKI_CATEGORY_BOOL || category == STKI_CATEGORY_COMPLEX)
        return true;
    if (category == STKI_CATEGORY_REAL)
        return !isfinite(real) || fabs(real) <= largest(dtype);
    if (value.kind == STK_SCALAR_INT && dtype == STK_U64)
        return value.as.i >= 0;
    if (value.kind == STK_SCALAR_UINT && dtype == STK_I64)
        return value.as.u <= INT64_MAX;
    if ((value.kind == STK_SCALAR_INT && dtype == STK_I64) || (value.kind == STK_SCALAR_UINT && dtype == STK_U64))
        return true;
    /* Integers beyond 2^53 are rounded in `real`, but still exceed the limits of the dtypes that remain. */
    limits(dtype, &low, &high);
    return isfinite(real) && trunc(real) >= low && trunc(real) < high;
}

stk_status stki_element_from_scalar(stk_dtype dtype, stk_scalar value, stki_element *out, stk_error *err)
{
    if (!fits(dtype, value))
        return stki_fail(err, STK_E_BAD_VALUE, "%.17g does not fit in %s", stki_scalar_to_double(value),
                         stk_dtype_name(dtype));
    *out = stki_element_cast(dtype, value);
    return STK_OK;
}

stk_scalar stki_element_to_scalar(stk_dtype dtype, const void *bytes)
{
    enum stki_category category = stki_dtype_category(dtype);
    stk_dtype wide = category == STKI_CATEGORY_COMPLEX ? STK_C128
                     : category == STKI_CATEGORY_REAL  ? STK_F64
                     : dtype == STK_U64                ? STK_U64
                                                       : STK_I64;
    stk_scalar scalar = {.kind = category == STKI_CATEGORY_COMPLEX ? STK_SCALAR_COMPLEX
                                 : category == STKI_CATEGORY_REAL  ? STK_SCALAR_REAL
                                 : dtype == STK_U64                ? STK_SCALAR_UINT
                                                                   : STK_SCALAR_INT};
    stki_cast cast;

    stki_cast_init(&cast, wide, dtype, false);
    stki_cast_row(&cast, &scalar.as, 16, bytes, 16, 1);
    return category == STKI_CATEGORY_BOOL ? stk_bool(scalar.as.i != 0) : scalar;
}

/* ---- one element of a tensor ---- */

/* A zero-dimensional view of the element at `index`. */
static stk_status element_view(const stk_tensor *tensor, int ndim, const int64_t *index, stk_tensor *out,
                               stk_error *err)
{
    int64_t offset = 0;

    if (ndim != tensor->ndim)
        return stki_fail(err, STK_E_BAD_DIM, "index: found length %d, expected %d, one number per axis", ndim,
                         tensor->ndim);
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t size = tensor->shape[i], at = index[i];
        if (at < -size || at >= size)
            return stki_fail(err, STK_E_BAD_INDEX, "index %" PRId64 " is out of range for axis %d of size %" PRId64, at,
                             i, size);
        offset = stki_wrap_add(offset, stki_wrap_mul(at < 0 ? at + size : at, tensor->strides[i]));
    }
    *out = (stk_tensor){.data = stki_address(tensor->data, offset),
                        .device = tensor->device,
                        .dtype = tensor->dtype,
                        .flags = tensor->flags};
    return STK_OK;
}

stk_status stk_tensor_offset_of(const stk_tensor *tensor, int ndim, const int64_t *index, int64_t *out_bytes,
                                stk_error *err)
{
    stk_tensor element = {0};
    stk_status status = element_view(tensor, ndim, index, &element, err);

    if (status != STK_OK)
        return status;
    *out_bytes = stk_tensor_offset_bytes(tensor) + (int64_t)((uintptr_t)element.data - (uintptr_t)tensor->data);
    return STK_OK;
}

stk_status stk_tensor_get(const stk_tensor *tensor, int ndim, const int64_t *index, stk_scalar *out, stk_error *err)
{
    stk_tensor element = {0}, here = {.device = stk_device_cpu(), .dtype = tensor->dtype};
    char bytes[16] = {0};
    stk_status status = element_view(tensor, ndim, index, &element, err);

    if (status != STK_OK)
        return status;
    here.data = bytes;
    status = stki_tensor_transfer(&here, &element, err);
    if (status != STK_OK)
        return status;
    *out = stki_element_to_scalar(tensor->dtype, bytes);
    return STK_OK;
}

stk_status stk_tensor_set(stk_tensor *tensor, int ndim, const int64_t *index, stk_scalar value, stk_error *err)
{
    stk_tensor element = {0};
    stk_status status = stki_check_may_fill(tensor, err);

    status = status != STK_OK ? status : element_view(tensor, ndim, index, &element, err);
    return status != STK_OK ? status : stk_tensor_fill(&element, value, err);
}

/* ---- filling ---- */

/* Fills a tensor with any strides by copying one element in device memory to all others. STK_E_UNSUPPORTED: the device
 * has no strided copy. */
static stk_status fill_on_device(stk_device *device, const stk_tensor *tensor, const stki_element *element,
                                 stk_error *err)
{
    static const int64_t no_axes[1] = {0};
    stk_stream *stream = stk_stream_current(device);
    stk_tensor one = {0}, wide = *tensor;
    int64_t size = stk_dtype_size(tensor->dtype);
    stk_status status;

    if (!device->ops->copy_strided)
        return STK_E_UNSUPPORTED;
    status = stki_tensor_new(tensor->dtype, 0, no_axes, no_axes, size, device, &one, err);
    if (status != STK_OK)
        return status;
    wide.data = one.data;
    memset(wide.strides, 0, sizeof wide.strides);
    status = device->ops->fill(device, one.data, element->bytes, size, 1, stream, err);
    status = status != STK_OK ? status : device->ops->copy_strided(device, tensor, &wide, stream, err);
    stk_tensor_release(&one);
    if (status == STK_E_UNSUPPORTED)
        stki_error_clear(err);
    return status;
}

stk_status stki_tensor_fill_element(const stk_tensor *tensor, const stki_element *element, stk_error *err)
{
    static const int64_t no_strides[STK_MAX_DIMS] = {0};
    stk_device *device = stki_tensor_device(tensor);
    int64_t size = stk_dtype_size(tensor->dtype);
    stki_stage stage;
    stk_status status;

    if (stk_tensor_numel(tensor) == 0)
        return STK_OK;
    if (stk_tensor_is_contiguous(tensor))
        return device->ops->fill(device, tensor->data, element->bytes, size, stk_tensor_numel(tensor),
                                 stk_stream_current(device), err);
    status = fill_on_device(device, tensor, element, err);
    if (status != STK_E_UNSUPPORTED)
        return status;
    status = stki_stage_begin_write(&stage, tensor, err);
    if (status != STK_OK)
        return status;
    stki_copy_strided(stage.host.data, tensor->dtype, tensor->strides, element->bytes, tensor->dtype, no_strides, false,
                      tensor->ndim, tensor->shape);
    status = stki_stage_commit(&stage, err);
    stki_stage_end(&stage);
    return status;
}

stk_status stk_tensor_fill(stk_tensor *tensor, stk_scalar value, stk_error *err)
{
    STKI_PROFILE("fill");
    stki_element element;
    stk_status status = stki_check_may_fill(tensor, err);

    status = status != STK_OK ? status : stki_element_from_scalar(tensor->dtype, value, &element, err);
    return status != STK_OK ? status : stki_tensor_fill_element(tensor, &element, err);
}

stk_status stk_tensor_zero(stk_tensor *tensor, stk_error *err)
{
    STKI_PROFILE("zero");
    return stk_tensor_fill(tensor, stk_int(0), err);
}
