/* view_expand.c: views of more axes, or of longer ones, whose stride is 0. */
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <inttypes.h>
#include <string.h>

/* The stride of a new leading axis is that of a row-major one if it has length 1 (`right` is the axis to its right). */
static stk_status expand_axis(const stk_tensor *tensor, int axis, int64_t wanted, const int64_t *right_shape,
                              const int64_t *right_stride, int64_t *shape, int64_t *stride, stk_error *err)
{
    bool leading = axis < 0;
    int64_t size = leading ? 1 : tensor->shape[axis];

    if (wanted < -1 || (wanted == -1 && leading))
        return stki_fail(err, STK_E_BAD_SHAPE, "expand: size %" PRId64 " for %s axis", wanted,
                         leading ? "a new" : "an");
    *stride = leading ? stki_wrap_mul(*right_shape, *right_stride) : tensor->strides[axis];
    *shape = wanted == -1 ? size : wanted;
    if (*shape == size)
        return STK_OK;
    if (size != 1)
        return stki_fail(err, STK_E_BAD_BROADCAST, "expand: an axis of %" PRId64 " cannot become %" PRId64, size,
                         wanted);
    *stride = 0;
    return STK_OK;
}

/* A tensor without axes has stride 0 in every new one, also in those of length 1. */
static stk_status expand_scalar(int ndim, const int64_t *wanted, int64_t *strides, stk_error *err)
{
    for (int i = 0; i < ndim; i++) {
        if (wanted[i] < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "expand: size %" PRId64 " for a new axis", wanted[i]);
        strides[i] = 0;
    }
    return STK_OK;
}

stk_status stk_tensor_expand(const stk_tensor *tensor, int ndim, const int64_t *wanted, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("expand");
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
    stk_status status = STK_OK;

    if (ndim < tensor->ndim)
        return stki_fail(err, STK_E_BAD_BROADCAST, "expand: %d axes cannot become %d", tensor->ndim, ndim);
    if (ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "expand: at most %d axes are supported", STK_MAX_DIMS);
    if (tensor->ndim == 0) {
        memcpy(shape, wanted, sizeof *shape * (size_t)ndim);
        status = expand_scalar(ndim, wanted, strides, err);
    }
    for (int i = ndim - 1; i >= 0 && tensor->ndim > 0 && !status; i--)
        status = expand_axis(tensor, i - (ndim - tensor->ndim), wanted[i], shape + i + 1, strides + i + 1, shape + i,
                             strides + i, err);
    status = status ? status : stki_row_major(STK_U8, ndim, shape, NULL, NULL, err); /* the count fits in 63 bits */
    if (status)
        return status;
    stki_view_of(tensor, tensor->data, ndim, shape, strides, out);
    return STK_OK;
}
