/* copy_tensor.c: copies between tensors: copy, clone, contiguous, to. Each checks its arguments and makes one transfer
 * (transfer.h), possibly between devices. */
#include "dtype.h"
#include "error.h"
#include "profile_scope.h"
#include "tensor_internal.h"
#include "transfer.h"
#include <inttypes.h>

/* ---- checks ---- */

stk_status stki_check_may_fill(const stk_tensor *out, stk_error *err)
{
    if (out->flags & STK_TENSOR_READONLY)
        return stki_fail(err, STK_E_BAD_ARG, "the tensor is read-only");
    if (out->flags & STK_TENSOR_SWAPPED)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "the output is in the opposite byte order, which is supported only for reading");
    return STK_OK;
}

stk_status stki_check_writable(const stk_tensor *out, stk_error *err)
{
    stk_status status = stki_check_may_fill(out, err);

    if (status != STK_OK)
        return status;
    if (stk_tensor_numel(out) == 0)
        return STK_OK;
    for (int i = 0; i < out->ndim; i++)
        if (out->shape[i] > 1 && out->strides[i] == 0)
            return stki_fail(err, STK_E_BAD_OVERLAP, "the %" PRId64 " elements along axis %d have the same address",
                             out->shape[i], i);
    return STK_OK;
}

static bool same_strides(const stk_tensor *a, const stk_tensor *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->strides[i] != b->strides[i])
            return false;
    return true;
}

stk_status stki_check_overlap(const stk_tensor *out, const stk_tensor *in, stk_error *err)
{
    uintptr_t out_start = (uintptr_t)out->data, in_start = (uintptr_t)in->data;
    uintptr_t out_end = out_start + (uintptr_t)stk_tensor_nbytes(out),
              in_end = in_start + (uintptr_t)stk_tensor_nbytes(in);

    if (stki_tensor_device(out) != stki_tensor_device(in) || out_start >= in_end || in_start >= out_end)
        return STK_OK;
    if (!stki_tensor_is_dense(out) || !stki_tensor_is_dense(in))
        return STK_OK;
    if (out_start == in_start && out_end == in_end && same_strides(out, in))
        return STK_OK;
    return stki_fail(err, STK_E_BAD_OVERLAP, "output and input overlap, but are not the same view");
}

/* ---- the public calls ---- */

stk_status stk_tensor_copy_on(stk_tensor *dst, const stk_tensor *src, stk_stream *stream, bool non_blocking,
                              stk_error *err)
{
    STKI_PROFILE("copy");
    stk_tensor wide = {0};
    stk_status status = stki_check_writable(dst, err);

    if (status != STK_OK)
        return status;
    if (src->ndim > dst->ndim)
        return stki_fail(err, STK_E_BAD_BROADCAST, "copy: shape %s does not broadcast to %s",
                         STKI_SHAPE(src->ndim, src->shape), STKI_SHAPE(dst->ndim, dst->shape));
    status = stki_check_overlap(dst, src, err);
    status = status != STK_OK ? status : stk_tensor_expand(src, dst->ndim, dst->shape, &wide, err);
    status = status != STK_OK ? status : stki_tensor_transfer_on(dst, &wide, stream, non_blocking, err);
    stk_tensor_release(&wide);
    return status;
}

stk_status stk_tensor_copy(stk_tensor *dst, const stk_tensor *src, stk_error *err)
{
    return stk_tensor_copy_on(dst, src, NULL, false, err);
}

static stk_status retain_as(const stk_tensor *tensor, stk_tensor *out)
{
    stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
    return STK_OK;
}

static bool swapped(const stk_tensor *tensor)
{
    return (tensor->flags & STK_TENSOR_SWAPPED) != 0;
}

/* Makes a copy with another dtype or layout in new memory of `device`. */
static stk_status copy_as(const stk_tensor *tensor, stk_dtype dtype, stk_layout layout, stk_device *device,
                          stk_tensor *out, stk_error *err)
{
    bool keep = layout == STK_LAYOUT_KEEP;
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_tensor copy;
    stk_status status = stki_layout_strides(dtype, tensor->ndim, tensor->shape, keep ? STK_LAYOUT_ROW_MAJOR : layout,
                                            strides, &bytes, err);

    if (status != STK_OK)
        return status;
    keep = keep && stki_tensor_is_dense(tensor);
    status = stki_tensor_new(dtype, tensor->ndim, tensor->shape, keep ? tensor->strides : strides, bytes, device, &copy,
                             err);
    if (status != STK_OK)
        return status;
    status = stki_tensor_transfer(&copy, tensor, err);
    if (status != STK_OK) {
        stk_tensor_release(&copy);
        return status;
    }
    *out = copy;
    return STK_OK;
}

stk_status stk_tensor_clone_as(const stk_tensor *tensor, stk_layout layout, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("clone_as");
    return copy_as(tensor, tensor->dtype, layout, stki_tensor_device(tensor), out, err);
}

stk_status stk_tensor_clone(const stk_tensor *tensor, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("clone");
    return stk_tensor_clone_as(tensor, STK_LAYOUT_ROW_MAJOR, out, err);
}

stk_status stk_tensor_contiguous_as(const stk_tensor *tensor, stk_layout layout, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("contiguous_as");
    if (layout == STK_LAYOUT_KEEP)
        return stki_fail(err, STK_E_BAD_ARG, "contiguous: the layout KEEP is not allowed here");
    if (stk_tensor_has_layout(tensor, layout) && !swapped(tensor))
        return retain_as(tensor, out);
    return stk_tensor_clone_as(tensor, layout, out, err);
}

stk_status stk_tensor_contiguous(const stk_tensor *tensor, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("contiguous");
    return stk_tensor_contiguous_as(tensor, STK_LAYOUT_ROW_MAJOR, out, err);
}

stk_status stk_tensor_to(const stk_tensor *tensor, stk_dtype dtype, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("to");
    if (tensor->dtype == dtype && !swapped(tensor))
        return retain_as(tensor, out);
    return copy_as(tensor, dtype, STK_LAYOUT_ROW_MAJOR, stki_tensor_device(tensor), out, err);
}

/* Creates a tensor with the strides of `tensor` if that is dense, otherwise row-major. */
static stk_status empty_like(const stk_tensor *tensor, stk_device *device, stk_device *pinned_for, stk_tensor *out,
                             stk_error *err)
{
    const int64_t *strides = tensor->strides;
    int64_t row[STK_MAX_DIMS], bytes;
    stk_status status = stki_row_major(tensor->dtype, tensor->ndim, tensor->shape, row, &bytes, err);

    if (status != STK_OK)
        return status;
    strides = stki_tensor_is_dense(tensor) ? strides : row;
    if (pinned_for)
        return stki_tensor_new_pinned(tensor->dtype, tensor->ndim, tensor->shape, strides, bytes, pinned_for, out, err);
    return stki_tensor_new(tensor->dtype, tensor->ndim, tensor->shape, strides, bytes, device, out, err);
}

/* Like empty_like, with `stream` as the current one, because the pool reuses a block in the order of the stream that
 * allocated it. */
static stk_status empty_like_on(const stk_tensor *tensor, stk_device *device, stk_device *pinned_for,
                                stk_stream *stream, stk_tensor *out, stk_error *err)
{
    stk_stream *before = stream ? stk_stream_set_current(stream->device, stream) : NULL;
    stk_status status = empty_like(tensor, device, pinned_for, out, err);

    if (stream)
        (void)stk_stream_set_current(stream->device, before);
    return status;
}

stk_status stk_tensor_to_device_on(const stk_tensor *tensor, stk_device *device, stk_stream *stream, bool non_blocking,
                                   stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("to_device");
    stk_device *from = stki_tensor_device(tensor);
    stk_tensor made;
    stk_status status;

    device = device ? device : stk_device_cpu();
    if (from == device)
        return retain_as(tensor, out);
    status = empty_like_on(tensor, device, non_blocking && device->host_memory ? from : NULL, stream, &made, err);
    if (status != STK_OK)
        return status;
    status = stki_tensor_transfer_on(&made, tensor, stream, non_blocking, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_to_device(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err)
{
    return stk_tensor_to_device_on(tensor, device, NULL, false, out, err);
}
