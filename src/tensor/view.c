/* view.c: views. Each function computes a new address, shape and strides and retains the storage; no element is
 * accessed. Strides are the same as torch's, even where they have no effect. */
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "record.h"
#include "storage.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <inttypes.h>
#include <string.h>

stk_status stki_wrap_dim(int dim, int ndim, const char *what, int *out, stk_error *err)
{
    int limit = ndim > 0 ? ndim : 1;

    if (dim < -limit || dim >= limit)
        return stki_fail(err, STK_E_BAD_DIM, "%s: dimension %d is out of range for a %d-dimensional tensor", what, dim,
                         ndim);
    *out = dim < 0 ? dim + limit : dim;
    return STK_OK;
}

/* Like stki_wrap_dim, for operations that need an axis. */
static stk_status wrap_real_dim(int dim, int ndim, const char *what, int *out, stk_error *err)
{
    if (ndim == 0)
        return stki_fail(err, STK_E_BAD_DIM, "%s: the tensor has no dimensions", what);
    return stki_wrap_dim(dim, ndim, what, out, err);
}

static void *address_at(const stk_tensor *tensor, int dim, int64_t index)
{
    return stki_address(tensor->data, stki_wrap_mul(tensor->strides[dim], index));
}

stk_status stk_tensor_slice(const stk_tensor *tensor, int dim, int64_t start, int64_t end, int64_t step,
                            stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("slice");
    int64_t size, stride;
    stk_status status = wrap_real_dim(dim, tensor->ndim, "slice", &dim, err);

    if (status != STK_OK)
        return status;
    if (step < 1)
        return stki_fail(err, STK_E_BAD_STEP, "slice: step %" PRId64 ": must be at least 1 (flip reverses an axis)",
                         step);
    size = tensor->shape[dim];
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = start < 0 ? 0 : start > size ? size : start;
    end = end < start ? start : end > size ? size : end;
    stride = stki_wrap_mul(tensor->strides[dim], step);
    stki_view_of(tensor, address_at(tensor, dim, start), tensor->ndim, tensor->shape, tensor->strides, out);
    out->shape[dim] = (end - start) / step + ((end - start) % step != 0);
    out->strides[dim] = stride;
    stki_record_geometry(out);
    return STK_OK;
}

stk_status stk_tensor_narrow(const stk_tensor *tensor, int dim, int64_t start, int64_t length, stk_tensor *out,
                             stk_error *err)
{
    STKI_PROFILE("narrow");
    int64_t size;
    stk_status status = wrap_real_dim(dim, tensor->ndim, "narrow", &dim, err);

    if (status != STK_OK)
        return status;
    if (length < 0)
        return stki_fail(err, STK_E_BAD_ARG, "narrow: negative length %" PRId64, length);
    size = tensor->shape[dim];
    if (start < -size || start > size || length > size - (start < 0 ? start + size : start))
        return stki_fail(err, STK_E_BAD_INDEX,
                         "narrow: length %" PRId64 " from index %" PRId64 " exceeds an axis of size %" PRId64, length,
                         start, size);
    start = start < 0 ? start + size : start;
    stki_view_of(tensor, address_at(tensor, dim, start), tensor->ndim, tensor->shape, tensor->strides, out);
    out->shape[dim] = length;
    stki_record_geometry(out);
    return STK_OK;
}

static void drop_axis(stk_tensor *view, int dim)
{
    size_t rest = (size_t)(view->ndim - dim - 1) * sizeof view->shape[0];

    memmove(view->shape + dim, view->shape + dim + 1, rest);
    memmove(view->strides + dim, view->strides + dim + 1, rest);
    view->ndim--;
    view->shape[view->ndim] = view->strides[view->ndim] = 0;
}

stk_status stk_tensor_select(const stk_tensor *tensor, int dim, int64_t index, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("select");
    int64_t size;
    stk_status status = wrap_real_dim(dim, tensor->ndim, "select", &dim, err);

    if (status != STK_OK)
        return status;
    size = tensor->shape[dim];
    if (index < -size || index >= size)
        return stki_fail(err, STK_E_BAD_INDEX, "select: index %" PRId64 " is out of range for an axis of size %" PRId64,
                         index, size);
    stki_view_of(tensor, address_at(tensor, dim, index < 0 ? index + size : index), tensor->ndim, tensor->shape,
                 tensor->strides, out);
    drop_axis(out, dim);
    stki_record_geometry(out);
    return STK_OK;
}

stk_status stk_tensor_flip(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("flip");
    int64_t size;
    stk_status status = wrap_real_dim(dim, tensor->ndim, "flip", &dim, err);

    if (status != STK_OK)
        return status;
    size = tensor->shape[dim];
    stki_view_of(tensor, address_at(tensor, dim, size > 0 ? size - 1 : 0), tensor->ndim, tensor->shape, tensor->strides,
                 out);
    out->strides[dim] = stki_wrap_mul(out->strides[dim], -1);
    stki_record_geometry(out);
    return STK_OK;
}

stk_status stk_tensor_permute(const stk_tensor *tensor, const int *dims, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("permute");
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
    bool seen[STK_MAX_DIMS] = {false};

    for (int i = 0; i < tensor->ndim; i++) {
        int from = 0;
        stk_status status = stki_wrap_dim(dims[i], tensor->ndim, "permute", &from, err);
        if (status != STK_OK)
            return status;
        if (seen[from])
            return stki_fail(err, STK_E_BAD_DIM, "permute: dimension %d is given twice", dims[i]);
        seen[from] = true;
        shape[i] = tensor->shape[from];
        strides[i] = tensor->strides[from];
    }
    stki_view_of(tensor, tensor->data, tensor->ndim, shape, strides, out);
    return STK_OK;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t kept = *a;

    *a = *b;
    *b = kept;
}

stk_status stk_tensor_transpose(const stk_tensor *tensor, int dim0, int dim1, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("transpose");
    stk_status status = stki_wrap_dim(dim0, tensor->ndim, "transpose", &dim0, err);

    status = status != STK_OK ? status : stki_wrap_dim(dim1, tensor->ndim, "transpose", &dim1, err);
    if (status != STK_OK)
        return status;
    stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
    if (out->ndim > 0) {
        swap(&out->shape[dim0], &out->shape[dim1]);
        swap(&out->strides[dim0], &out->strides[dim1]);
    }
    stki_record_geometry(out);
    return STK_OK;
}

stk_status stk_tensor_squeeze(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("squeeze");
    bool drop;
    stk_status status = stki_wrap_dim(dim, tensor->ndim, "squeeze", &dim, err);

    if (status != STK_OK)
        return status;
    drop = tensor->ndim > 0 && tensor->shape[dim] == 1;
    stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
    if (drop)
        drop_axis(out, dim);
    stki_record_geometry(out);
    return STK_OK;
}

stk_status stk_tensor_squeeze_all(const stk_tensor *tensor, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("squeeze_all");
    (void)err;
    stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
    for (int i = out->ndim - 1; i >= 0; i--)
        if (out->shape[i] == 1)
            drop_axis(out, i);
    stki_record_geometry(out);
    return STK_OK;
}

stk_status stk_tensor_unsqueeze(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("unsqueeze");
    int64_t stride = stk_dtype_size(tensor->dtype);
    stk_status status;

    if (tensor->ndim == STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "unsqueeze: at most %d axes are supported", STK_MAX_DIMS);
    status = stki_wrap_dim(dim, tensor->ndim + 1, "unsqueeze", &dim, err);
    if (status != STK_OK)
        return status;
    if (dim < tensor->ndim)
        stride = stki_wrap_mul(tensor->shape[dim], tensor->strides[dim]);
    stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
    for (int i = out->ndim; i > dim; i--) {
        out->shape[i] = out->shape[i - 1];
        out->strides[i] = out->strides[i - 1];
    }
    out->ndim++;
    out->shape[dim] = 1;
    out->strides[dim] = stride;
    stki_record_geometry(out);
    return STK_OK;
}

/* ---- expand ---- */

/* A new leading axis of length 1 has the stride of a row-major one (`right_*`: the axis to its right). */
static stk_status expand_axis(const stk_tensor *tensor, int axis, int64_t wanted, const int64_t *right_shape,
                              const int64_t *right_stride, int64_t *shape, int64_t *stride, stk_error *err)
{
    bool leading = axis < 0;
    int64_t size = leading ? 1 : tensor->shape[axis];

    if (wanted < -1 || (wanted == -1 && leading))
        return stki_fail(err, STK_E_BAD_SHAPE, "expand: invalid size %" PRId64 " for %s axis", wanted,
                         leading ? "a new" : "an");
    *stride = leading ? stki_wrap_mul(*right_shape, *right_stride) : tensor->strides[axis];
    *shape = wanted == -1 ? size : wanted;
    if (*shape == size)
        return STK_OK;
    if (size != 1)
        return stki_fail(err, STK_E_BAD_BROADCAST,
                         "expand: an axis of size %" PRId64 " cannot be expanded to %" PRId64 " (only size 1 can)",
                         size, wanted);
    *stride = 0;
    return STK_OK;
}

/* Expands a zero-dimensional tensor: all new axes have stride 0, even those of length 1. */
static stk_status expand_scalar(int ndim, const int64_t *wanted, int64_t *strides, stk_error *err)
{
    for (int i = 0; i < ndim; i++) {
        if (wanted[i] < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "expand: invalid size %" PRId64 " for a new axis", wanted[i]);
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
        return stki_fail(err, STK_E_BAD_BROADCAST, "expand: %d axes cannot be expanded to %d", tensor->ndim, ndim);
    if (ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "expand: at most %d axes are supported", STK_MAX_DIMS);
    if (tensor->ndim == 0) {
        memcpy(shape, wanted, sizeof *shape * (size_t)ndim);
        status = expand_scalar(ndim, wanted, strides, err);
    }
    for (int i = ndim - 1; i >= 0 && tensor->ndim > 0 && status == STK_OK; i--)
        status = expand_axis(tensor, i - (ndim - tensor->ndim), wanted[i], shape + i + 1, strides + i + 1, shape + i,
                             strides + i, err);
    status = status != STK_OK ? status
                              : stki_row_major(STK_U8, ndim, shape, NULL, NULL, err); /* the count fits in 63 bits */
    if (status != STK_OK)
        return status;
    stki_view_of(tensor, tensor->data, ndim, shape, strides, out);
    return STK_OK;
}

/* ---- as_strided, diagonal ---- */

stk_status stk_tensor_as_strided(const stk_tensor *tensor, int ndim, const int64_t *shape, const int64_t *strides,
                                 int64_t offset_bytes, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("as_strided");
    int64_t low, high;
    stk_status status = stki_row_major(STK_U8, ndim, shape, NULL, NULL, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < ndim; i++)
        if (strides[i] < 0)
            return stki_fail(err, STK_E_BAD_STRIDE, "as_strided: stride %" PRId64 " of axis %d is negative", strides[i],
                             i);
    if (!tensor->storage)
        return stki_fail(err, STK_E_BAD_STORAGE, "as_strided: a borrowed tensor has no storage to check against");
    if (offset_bytes == STK_SAME_OFFSET)
        offset_bytes = stk_tensor_offset_bytes(tensor);
    status = stki_byte_span(tensor->dtype, ndim, shape, strides, &low, &high, NULL);
    if (status != STK_OK || offset_bytes < 0 || (high > 0 && !stki_inside(offset_bytes, high, tensor->storage->bytes)))
        return stki_fail(err, STK_E_BAD_STORAGE,
                         "as_strided: shape %s with byte strides %s, starting at byte %" PRId64
                         ", does not fit in a storage of %" PRId64 " bytes",
                         STKI_SHAPE(ndim, shape), STKI_SHAPE(ndim, strides), offset_bytes, tensor->storage->bytes);
    stki_view_of(tensor, stki_address(tensor->storage->data, offset_bytes), ndim, shape, strides, out);
    return STK_OK;
}

/* The length of the diagonal of a rows x columns matrix that starts `offset` columns to the right (negative: -offset
 * rows down). */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset)
{
    if (offset > columns || offset < -rows)
        return 0;
    columns -= offset > 0 ? offset : 0;
    rows += offset < 0 ? offset : 0;
    return rows < columns ? rows : columns;
}

stk_status stk_tensor_diagonal(const stk_tensor *tensor, int64_t offset, int dim0, int dim1, stk_tensor *out,
                               stk_error *err)
{
    STKI_PROFILE("diagonal");
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], length, skip = 0;
    int ndim = 0;
    stk_status status = stki_wrap_dim(dim0, tensor->ndim, "diagonal", &dim0, err);

    status = status != STK_OK ? status : stki_wrap_dim(dim1, tensor->ndim, "diagonal", &dim1, err);
    if (status != STK_OK)
        return status;
    if (dim0 == dim1)
        return stki_fail(err, STK_E_BAD_DIM, "diagonal: dimension %d is given twice", dim0);
    length = diagonal_length(tensor->shape[dim0], tensor->shape[dim1], offset);
    if (length > 0)
        skip = offset >= 0 ? offset * tensor->strides[dim1] : -offset * tensor->strides[dim0];
    for (int i = 0; i < tensor->ndim; i++) {
        if (i == dim0 || i == dim1)
            continue;
        shape[ndim] = tensor->shape[i];
        strides[ndim++] = tensor->strides[i];
    }
    shape[ndim] = length;
    strides[ndim++] = stki_wrap_add(tensor->strides[dim0], tensor->strides[dim1]);
    stki_view_of(tensor, stki_address(tensor->data, skip), ndim, shape, strides, out);
    return STK_OK;
}
