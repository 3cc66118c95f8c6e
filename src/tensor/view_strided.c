/* view_strided.c: views made from strides rather than from axes: as_strided, diagonal. */
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "storage.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <inttypes.h>

stk_status stk_tensor_as_strided(const stk_tensor *tensor, int ndim, const int64_t *shape, const int64_t *strides,
                                 int64_t offset_bytes, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("as_strided");
    int64_t low, high;
    stk_status status = stki_row_major(STK_U8, ndim, shape, NULL, NULL, err);

    if (status)
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
    if (status || offset_bytes < 0 || (high > 0 && !stki_inside(offset_bytes, high, tensor->storage->bytes)))
        return stki_fail(err, STK_E_BAD_STORAGE,
                         "as_strided: shape %s, byte strides %s from byte %" PRId64
                         " on reach outside a storage of %" PRId64 " bytes",
                         STKI_SHAPE(ndim, shape), STKI_SHAPE(ndim, strides), offset_bytes, tensor->storage->bytes);
    stki_view_of(tensor, stki_address(tensor->storage->data, offset_bytes), ndim, shape, strides, out);
    return STK_OK;
}

/* Elements on the diagonal that starts `offset` columns to the right (rows down, if negative) of a rows x columns
 * matrix. */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset)
{
    int64_t length;

    if (offset > columns || offset < -rows)
        return 0;
    columns -= offset > 0 ? offset : 0;
    rows += offset < 0 ? offset : 0;
    length = rows < columns ? rows : columns;
    return length;
}

stk_status stk_tensor_diagonal(const stk_tensor *tensor, int64_t offset, int dim0, int dim1, stk_tensor *out,
                               stk_error *err)
{
    STKI_PROFILE("diagonal");
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], length, skip = 0;
    int ndim = 0;
    stk_status status = stki_wrap_dim(dim0, tensor->ndim, "diagonal", &dim0, err);

    status = status ? status : stki_wrap_dim(dim1, tensor->ndim, "diagonal", &dim1, err);
    if (status)
        return status;
    if (dim0 == dim1)
        return stki_fail(err, STK_E_BAD_DIM, "diagonal: needs two dimensions, not %d twice", dim0);
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
