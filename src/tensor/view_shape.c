/* view_shape.c: views with another shape: view, reshape, flatten. */
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <inttypes.h>
#include <string.h>

/* Replaces a -1 in the requested shape, which must have `count` elements. */
static stk_status complete_shape(int ndim, const int64_t *wanted, int64_t count, int64_t *shape, stk_error *err)
{
    int64_t known = 1;
    int open = -1;
    bool empty = false, fits = true;

    if (ndim < 0 || ndim > STK_MAX_DIMS)
        return stki_fail(err, ndim < 0 ? STK_E_BAD_SHAPE : STK_E_UNSUPPORTED, "view: found %d axes, expected 0 to %d",
                         ndim, STK_MAX_DIMS);
    for (int i = 0; i < ndim; i++) {
        shape[i] = wanted[i];
        if (wanted[i] < -1 || (wanted[i] == -1 && open >= 0))
            return stki_fail(err, STK_E_BAD_SHAPE, "view: shape %s: %s", STKI_SHAPE(ndim, wanted),
                             wanted[i] < -1 ? "a negative size" : "more than one -1");
        if (wanted[i] == -1)
            open = i;
        else if (wanted[i] == 0)
            empty = true;
        else
            fits = fits && stki_mul(known, wanted[i], &known);
    }
    known = empty ? 0 : known;
    fits = fits || empty;
    if (open >= 0 && fits && known != 0 && count % known == 0)
        shape[open] = count / known;
    else if (open >= 0 || !fits || known != count)
        return stki_fail(err, STK_E_BAD_SHAPE, "view: shape %s does not hold %" PRId64 " elements",
                         STKI_SHAPE(ndim, wanted), count);
    return STK_OK;
}

/* Computes strides for `shape` over the elements of `tensor` in row-major order; false: there are none. From the right,
 * mergeable axes of the tensor form a chunk; each chunk must be divided exactly into new axes. */
static bool view_strides(const stk_tensor *tensor, int ndim, const int64_t *shape, int64_t *strides)
{
    int next = ndim - 1; /* new axes to the right of it are done */
    int64_t base, chunk = 1, filled = 1;

    base = tensor->ndim > 0 ? tensor->strides[tensor->ndim - 1] : 0;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        chunk *= tensor->shape[i];
        if (i > 0 && (tensor->shape[i - 1] == 1 || tensor->strides[i - 1] == stki_wrap_mul(chunk, base)))
            continue;
        while (next >= 0 && (filled < chunk || shape[next] == 1)) {
            strides[next] = stki_wrap_mul(filled, base);
            filled *= shape[next--];
        }
        if (filled != chunk)
            return false;
        if (i > 0) {
            base = tensor->strides[i - 1];
            chunk = filled = 1;
        }
    }
    return next < 0;
}

/* False: this shape needs a copy. */
static bool find_strides(const stk_tensor *tensor, int ndim, const int64_t *shape, int64_t *strides)
{
    if (stk_tensor_numel(tensor) == 0) {
        bool unchanged = tensor->ndim == ndim;
        for (int i = 0; i < ndim && unchanged; i++)
            unchanged = tensor->shape[i] == shape[i];
        if (unchanged)
            memcpy(strides, tensor->strides, sizeof *strides * (size_t)ndim);
        return unchanged || stki_row_major(tensor->dtype, ndim, shape, strides, NULL, NULL) == STK_OK;
    }
    if (tensor->ndim == 0) {
        for (int i = 0; i < ndim; i++)
            strides[i] = stk_dtype_size(tensor->dtype);
        return true;
    }
    return view_strides(tensor, ndim, shape, strides);
}

stk_status stk_tensor_view(const stk_tensor *tensor, int ndim, const int64_t *wanted, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("view");
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
    stk_status status = complete_shape(ndim, wanted, stk_tensor_numel(tensor), shape, err);

    if (status != STK_OK)
        return status;
    if (!find_strides(tensor, ndim, shape, strides))
        return stki_fail(err, STK_E_BAD_VIEW,
                         "view: shape %s with byte strides %s cannot be viewed as %s without a copy",
                         STKI_SHAPE(tensor->ndim, tensor->shape), STKI_SHAPE(tensor->ndim, tensor->strides),
                         STKI_SHAPE(ndim, shape));
    stki_view_of(tensor, tensor->data, ndim, shape, strides, out);
    return STK_OK;
}

stk_status stk_tensor_reshape(const stk_tensor *tensor, int ndim, const int64_t *wanted, stk_tensor *out,
                              stk_error *err)
{
    STKI_PROFILE("reshape");
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
    stk_tensor copy;
    stk_status status = complete_shape(ndim, wanted, stk_tensor_numel(tensor), shape, err);

    if (status != STK_OK)
        return status;
    if (find_strides(tensor, ndim, shape, strides)) {
        stki_view_of(tensor, tensor->data, ndim, shape, strides, out);
        return STK_OK;
    }
    status = stk_tensor_clone(tensor, &copy, err);
    if (status != STK_OK)
        return status;
    status = stki_row_major(copy.dtype, ndim, shape, strides, NULL, err);
    if (status == STK_OK)
        stki_view_of(&copy, copy.data, ndim, shape, strides, out);
    stk_tensor_release(&copy);
    return status;
}

stk_status stk_tensor_flatten(const stk_tensor *tensor, int first, int last, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("flatten");
    int64_t shape[STK_MAX_DIMS] = {1}, count = 1;
    int ndim = 0;
    stk_status status = stki_wrap_dim(first, tensor->ndim, "flatten", &first, err);

    status = status != STK_OK ? status : stki_wrap_dim(last, tensor->ndim, "flatten", &last, err);
    if (status != STK_OK)
        return status;
    if (first > last)
        return stki_fail(err, STK_E_BAD_DIM, "flatten: the first dimension, %d, comes after the last, %d", first, last);
    if (tensor->ndim == 0)
        return stk_tensor_reshape(tensor, 1, shape, out, err);
    if (first == last) {
        stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
        return STK_OK;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        bool inside = i >= first && i <= last;
        if (inside && tensor->shape[i] == 0)
            count = 0;
        else if (inside && count)
            count *= tensor->shape[i];
        if (!inside || i == last)
            shape[ndim++] = inside ? count : tensor->shape[i];
    }
    return stk_tensor_reshape(tensor, ndim, shape, out, err);
}
