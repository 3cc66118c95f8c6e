/* layout.c: the order of a tensor's elements in memory: queries, and the strides of new tensors. */
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "tensor_internal.h"
#include <stdlib.h>

/* From the innermost axis to the outermost. */
static const int channels_last_axes[4] = {1, 3, 2, 0};

/* Whether the strides are those of a dense tensor with axes[0] innermost. Axes of length 1 are ignored. */
static bool dense_in_order(const stk_tensor *tensor, const int *axes)
{
    int64_t expected = stk_dtype_size(tensor->dtype);

    for (int i = 0; i < tensor->ndim; i++) {
        int axis = axes[i];
        if (tensor->shape[axis] == 1)
            continue;
        if (tensor->strides[axis] != expected)
            return false;
        expected *= tensor->shape[axis];
    }
    return true;
}

bool stk_tensor_is_contiguous(const stk_tensor *tensor)
{
    int axes[STK_MAX_DIMS];

    for (int i = 0; i < tensor->ndim; i++)
        axes[i] = tensor->ndim - 1 - i;
    return stk_tensor_numel(tensor) == 0 || dense_in_order(tensor, axes);
}

/* As in torch, and unlike stk_tensor_is_contiguous, this makes no exception for tensors without elements. */
bool stk_tensor_is_channels_last(const stk_tensor *tensor)
{
    return tensor->ndim == 4 && dense_in_order(tensor, channels_last_axes);
}

static bool is_column_major(const stk_tensor *tensor)
{
    int axes[STK_MAX_DIMS];

    for (int i = 0; i < tensor->ndim; i++)
        axes[i] = i;
    return stk_tensor_numel(tensor) == 0 || dense_in_order(tensor, axes);
}

bool stki_tensor_is_dense(const stk_tensor *tensor)
{
    int axes[STK_MAX_DIMS];

    if (stk_tensor_is_contiguous(tensor))
        return true;
    for (int i = 0; i < tensor->ndim; i++) { /* insertion sort, smallest stride first; axes of length 1 do not matter */
        int at = i;
        while (at > 0 && tensor->strides[axes[at - 1]] > tensor->strides[i]) {
            axes[at] = axes[at - 1];
            at--;
        }
        axes[at] = i;
    }
    return dense_in_order(tensor, axes);
}

bool stk_tensor_has_layout(const stk_tensor *tensor, stk_layout layout)
{
    switch (layout) {
    case STK_LAYOUT_ROW_MAJOR:
        return stk_tensor_is_contiguous(tensor);
    case STK_LAYOUT_CHANNELS_LAST:
        return stk_tensor_is_channels_last(tensor);
    case STK_LAYOUT_COLUMN_MAJOR:
        return is_column_major(tensor);
    case STK_LAYOUT_KEEP:
        return stki_tensor_is_dense(tensor);
    }
    return false;
}

/* As in torch, channels-last strides are plain products that do not count empty axes as 1. */
static void channels_last_strides(int64_t size, const int64_t *shape, int64_t *strides)
{
    for (int i = 0; i < 4; i++) {
        strides[channels_last_axes[i]] = size;
        size *= shape[channels_last_axes[i]];
    }
}

static void column_major_strides(int64_t size, int ndim, const int64_t *shape, int64_t *strides)
{
    for (int i = 0; i < ndim; i++) {
        strides[i] = size;
        size *= shape[i] ? shape[i] : 1;
    }
}

stk_status stki_layout_strides(stk_dtype dtype, int ndim, const int64_t *shape, stk_layout layout, int64_t *strides,
                               int64_t *out_bytes, stk_error *err)
{
    stk_status status = stki_row_major(dtype, ndim, shape, strides, out_bytes, err); /* all products fit */

    if (status != STK_OK)
        return status;
    switch (layout) {
    case STK_LAYOUT_ROW_MAJOR:
        return STK_OK;
    case STK_LAYOUT_CHANNELS_LAST:
        if (ndim != 4)
            return stki_fail(err, STK_E_BAD_DIM, "channels-last needs four axes (N, C, H, W), not %d", ndim);
        channels_last_strides(stk_dtype_size(dtype), shape, strides);
        return STK_OK;
    case STK_LAYOUT_COLUMN_MAJOR:
        column_major_strides(stk_dtype_size(dtype), ndim, shape, strides);
        return STK_OK;
    case STK_LAYOUT_KEEP:
        break;
    }
    return stki_fail(err, STK_E_BAD_ARG, "a new tensor cannot have layout %d", (int)layout);
}

stk_status stk_tensor_empty_as(stk_dtype dtype, int ndim, const int64_t *shape, stk_layout layout, stk_device *device,
                               stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("empty_as");
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_status status = stki_layout_strides(dtype, ndim, shape, layout, strides, &bytes, err);

    return status != STK_OK ? status : stki_tensor_new(dtype, ndim, shape, strides, bytes, device, out, err);
}
