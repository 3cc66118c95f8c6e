/* play_why.c: see play_why.h. Strides are given in elements. */
#include "play_why.h"
#include "play_ops.h"
#include <inttypes.h>
#include <stdio.h>

static int64_t element_stride(const stk_tensor *tensor, int axis)
{
    return tensor->strides[axis] / stk_dtype_size(tensor->dtype);
}

/* Returns the rightmost axis that is not contiguous with the one to its right, ignoring axes of size 1; -1: all are
 * contiguous. */
static int find_break(const stk_tensor *tensor, int *right)
{
    int last = -1;

    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] == 1)
            continue;
        if (last >= 0 && tensor->strides[i] != tensor->shape[last] * tensor->strides[last]) {
            *right = last;
            return i;
        }
        last = i;
    }
    return -1;
}

static int tell_break(const stk_tensor *tensor, char *out, int size)
{
    int right = 0, left = find_break(tensor, &right);

    if (left < 0)
        return snprintf(out, (size_t)size, "The new axes would cut across axes of this shape.");
    return snprintf(
        out, (size_t)size,
        "A view does not move elements, so axes can only be merged if they are contiguous with each other in memory: "
        "stride[i] = shape[j] × stride[j] for the next axis j to the right. Here stride[%d] is %" PRId64
        ", and shape[%d] × stride[%d] = %" PRId64 " × %" PRId64 " = %" PRId64 ".",
        left, element_stride(tensor, left), right, right, tensor->shape[right], element_stride(tensor, right),
        tensor->shape[right] * element_stride(tensor, right));
}

void pl_why_view(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_status status, char *out, int size)
{
    int used;

    if (status == STK_E_BAD_SHAPE) {
        pl_why_count(tensor, ndim, shape, out, size);
        return;
    }
    if (status != STK_E_BAD_VIEW)
        return;
    used = tell_break(tensor, out, size);
    if (used < size)
        snprintf(out + used, (size_t)(size - used),
                 " reshape would copy: %" PRId64 " bytes read and %" PRId64 " bytes of new memory written.",
                 stk_tensor_nbytes(tensor), stk_tensor_nbytes(tensor));
}

void pl_why_copied(const stk_tensor *from, const stk_tensor *to, char *out, int size)
{
    int used = snprintf(out, (size_t)size, "No view has this shape, so %" PRId64 " bytes were copied. ",
                        stk_tensor_nbytes(to));

    if (used < size)
        tell_break(from, out + used, size - used);
}

void pl_why_count(const stk_tensor *tensor, int ndim, const int64_t *shape, char *out, int size)
{
    int64_t count = stk_tensor_numel(tensor), known = 1;
    int open = -1;

    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            open = i;
        else if (__builtin_mul_overflow(known, shape[i], &known))
            return;
    }
    if (open >= 0 && known > 0)
        snprintf(out, (size_t)size,
                 "The sizes must multiply to the number of elements: %s has %" PRId64
                 ", and -1 would have to be %" PRId64 " / %" PRId64 ", which is not an integer.",
                 PL_SHAPE(tensor->ndim, tensor->shape), count, count, known);
    else
        snprintf(out, (size_t)size,
                 "The sizes must multiply to the number of elements: %s has %" PRId64 ", %s would have %" PRId64 ".",
                 PL_SHAPE(tensor->ndim, tensor->shape), count, PL_SHAPE(ndim, shape), known);
}

void pl_why_expand(const stk_tensor *tensor, int ndim, const int64_t *shape, char *out, int size)
{
    int lead = ndim - tensor->ndim;

    if (lead < 0) {
        snprintf(out, (size_t)size, "expand adds axes on the left and never removes any: %s has fewer axes than %s.",
                 PL_SHAPE(ndim, shape), PL_SHAPE(tensor->ndim, tensor->shape));
        return;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        if (shape[lead + i] == tensor->shape[i] || shape[lead + i] == -1 || tensor->shape[i] == 1)
            continue;
        snprintf(
            out, (size_t)size,
            "Only an axis of size 1 can be repeated without new memory (with a stride of 0). Axis %d has size %" PRId64
            " and cannot become %" PRId64 "; shapes are aligned from the right.",
            i, tensor->shape[i], shape[lead + i]);
        return;
    }
    if (lead > 0 && shape[0] == -1)
        snprintf(out, (size_t)size, "-1 keeps the size of an existing axis; a new axis on the left requires a number.");
}

void pl_why_broadcast(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b, char *out, int size)
{
    int most = a_ndim > b_ndim ? a_ndim : b_ndim;

    for (int i = 1; i <= most; i++) {
        int64_t left = i <= a_ndim ? a[a_ndim - i] : 1, right = i <= b_ndim ? b[b_ndim - i] : 1;
        if (left == right || left == 1 || right == 1)
            continue;
        snprintf(out, (size_t)size,
                 "Shapes are aligned from the right. In each axis, the sizes must be equal, or one of them must be 1. "
                 "In axis -%d, they are %" PRId64 " and %" PRId64 ".",
                 i, left, right);
        return;
    }
}

void pl_why_as_strided(const stk_tensor *tensor, int ndim, const int64_t *shape, const int64_t *strides,
                       int64_t offset_bytes, char *out, int size)
{
    int64_t element = stk_dtype_size(tensor->dtype), last = offset_bytes;

    if (offset_bytes == STK_SAME_OFFSET)
        last = stk_tensor_offset_bytes(tensor);
    for (int i = 0; i < ndim; i++) {
        int64_t reach;
        if (strides[i] < 0) {
            snprintf(out, (size_t)size, "as_strided follows torch and accepts no negative strides; flip creates them.");
            return;
        }
        if (shape[i] <= 0 || __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return;
    }
    if (last < 0 || tensor->storage == NULL)
        return;
    snprintf(out, (size_t)size,
             "The last element would be cell %" PRId64
             " (offset + sum of (size - 1) × stride); the storage has cells 0 to "
             "%" PRId64 ".",
             last / element, stk_storage_bytes(tensor->storage) / element - 1);
}

void pl_why_step(int64_t step, int64_t length, int dim, char *out, int size)
{
    if (step == 0)
        snprintf(out, (size_t)size,
                 "A step of 0 would read the same element forever. expand repeats elements without new memory.");
    else if (length < 2 || step == -1)
        snprintf(
            out, (size_t)size,
            "torch does not allow negative steps either. Here flip %d reverses the axis without a copy (a negative "
            "stride, as in NumPy); start and end then count from the other end.",
            dim);
    else
        snprintf(
            out, (size_t)size,
            "torch does not allow negative steps either. Here flip %d reverses the axis without a copy (a negative "
            "stride, as in NumPy), and ::%" PRIu64 " after it applies the step; start and end then count from the "
            "other end.",
            dim, (uint64_t)0 - (uint64_t)step);
}

void pl_why_dim(const stk_tensor *tensor, char *out, int size)
{
    if (tensor->ndim == 0)
        snprintf(out, (size_t)size, "This tensor is a single number and has no axes; unsqueeze 0 gives it one.");
    else
        snprintf(out, (size_t)size,
                 "The axes of %s are 0 to %d from the left, or -1 to -%d from the right. Each may be given only once.",
                 PL_SHAPE(tensor->ndim, tensor->shape), tensor->ndim - 1, tensor->ndim);
}

void pl_why_index(int64_t length, char *out, int size)
{
    if (length == 0)
        snprintf(out, (size_t)size, "The axis has length 0, so there is no valid index.");
    else
        snprintf(out, (size_t)size,
                 "Indices of this axis are 0 to %" PRId64 ", or -1 to -%" PRId64
                 " from the end. A slice may extend beyond the end; an index or the range of narrow may not.",
                 length - 1, length);
}

void pl_why_in_place(const stk_tensor *tensor, stk_status status, char *out, int size)
{
    if (status == STK_E_BAD_OVERLAP)
        snprintf(
            out, (size_t)size,
            "An in-place operation writes each element once. If two indices refer to the same cell (stride 0), or the "
            "other operand is a different view of the same cells, the result would depend on the order. Use clone "
            "first.");
    else if (status == STK_E_BAD_DTYPE)
        snprintf(out, (size_t)size,
                 "The result has a higher category than %s (bool < integer < real), so it cannot be stored in place: "
                 "convert first, or omit the _.",
                 stk_dtype_name(tensor->dtype));
    else if (status == STK_E_BAD_BROADCAST)
        snprintf(out, (size_t)size, "In place, the result has the shape of the first tensor, which cannot grow.");
}
