/* copy_tensor.c: copies between tensors: copy, clone, contiguous, to. Checks first, then one transfer, which crosses
 * memory spaces where it has to.
 */
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "profile_scope.h"
#include "stage.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <inttypes.h>

/* ---- checks ------------------------------------------------------------------------------------------------------ */

stk_status stki_check_may_fill(const stk_tensor *out, stk_error *err)
{
    if (out->flags & STK_TENSOR_READONLY)
        return stki_fail(err, STK_E_BAD_ARG, "the tensor is read-only");
    if (out->flags & STK_TENSOR_SWAPPED)
        return stki_fail(err, STK_E_UNSUPPORTED, "writing into a tensor in the other byte order");
    return STK_OK;
}

stk_status stki_check_writable(const stk_tensor *out, stk_error *err)
{
    stk_status status = stki_check_may_fill(out, err);

    if (status)
        return status;
    if (stk_tensor_numel(out) == 0)
        return STK_OK;
    for (int i = 0; i < out->ndim; i++)
        if (out->shape[i] > 1 && out->strides[i] == 0)
            return stki_fail(err, STK_E_BAD_OVERLAP, "the %" PRId64 " elements along axis %d are one place in memory",
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
    return stki_fail(err, STK_E_BAD_OVERLAP, "output and input share memory and are not the same view of it");
}

/* ---- transfer ---------------------------------------------------------------------------------------------------- */

static bool plain_bytes(const stk_tensor *dst, const stk_tensor *src)
{
    return dst->dtype == src->dtype && !(src->flags & STK_TENSOR_SWAPPED) && stk_tensor_is_contiguous(dst) &&
           stk_tensor_is_contiguous(src);
}

static stk_status transfer_staged(const stk_tensor *dst, const stk_tensor *src, stk_error *err)
{
    stki_stage from, to;
    stk_status status = stki_stage_begin(&from, src, err);

    if (status)
        return status;
    status = stki_stage_begin(&to, dst, err);
    if (!status) {
        stki_copy_strided(to.host.data, dst->dtype, dst->strides, from.host.data, src->dtype, src->strides,
                          (src->flags & STK_TENSOR_SWAPPED) != 0, dst->ndim, dst->shape);
        status = stki_stage_commit(&to, err);
        stki_stage_end(&to);
    }
    stki_stage_end(&from);
    return status;
}

stk_status stki_tensor_transfer(const stk_tensor *dst, const stk_tensor *src, stk_error *err)
{
    stk_device *to = stki_tensor_device(dst), *from = stki_tensor_device(src);
    stk_device *mover = to->host_memory ? from : to;

    if (stk_tensor_numel(dst) == 0)
        return STK_OK;
    if (mover->host_memory) {
        stki_copy_strided(dst->data, dst->dtype, dst->strides, src->data, src->dtype, src->strides,
                          (src->flags & STK_TENSOR_SWAPPED) != 0, dst->ndim, dst->shape);
        return STK_OK;
    }
    if (plain_bytes(dst, src) && (to == from || to->host_memory || from->host_memory))
        return mover->ops->copy(mover, dst->data, to == mover, src->data, from == mover, stk_tensor_nbytes(dst), NULL,
                                err);
    return transfer_staged(dst, src, err);
}

/* ---- the public calls -------------------------------------------------------------------------------------------- */

stk_status stk_tensor_copy(stk_tensor *dst, const stk_tensor *src, stk_error *err)
{
    STKI_PROFILE("copy");
    stk_tensor wide = {0};
    stk_status status = stki_check_writable(dst, err);

    if (status)
        return status;
    if (src->ndim > dst->ndim)
        return stki_fail(err, STK_E_BAD_BROADCAST, "copy: shape %s into %s", STKI_SHAPE(src->ndim, src->shape),
                         STKI_SHAPE(dst->ndim, dst->shape));
    status = stki_check_overlap(dst, src, err);
    status = status ? status : stk_tensor_expand(src, dst->ndim, dst->shape, &wide, err);
    status = status ? status : stki_tensor_transfer(dst, &wide, err);
    stk_tensor_release(&wide);
    return status;
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

/* A copy as `dtype` in fresh memory of `device`. */
static stk_status copy_as(const stk_tensor *tensor, stk_dtype dtype, stk_layout layout, stk_device *device,
                          stk_tensor *out, stk_error *err)
{
    bool keep = layout == STK_LAYOUT_KEEP;
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_tensor copy;
    stk_status status = stki_layout_strides(dtype, tensor->ndim, tensor->shape, keep ? STK_LAYOUT_ROW_MAJOR : layout,
                                            strides, &bytes, err);

    if (status)
        return status;
    keep = keep && stki_tensor_is_dense(tensor);
    status = stki_tensor_new(dtype, tensor->ndim, tensor->shape, keep ? tensor->strides : strides, bytes, device, &copy,
                             err);
    if (status)
        return status;
    status = stki_tensor_transfer(&copy, tensor, err);
    if (status) {
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
        return stki_fail(err, STK_E_BAD_ARG, "contiguous: which layout?");
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

stk_status stk_tensor_to_device(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("to_device");
    device = device ? device : stk_device_cpu();
    if (stki_tensor_device(tensor) == device)
        return retain_as(tensor, out);
    return copy_as(tensor, tensor->dtype, STK_LAYOUT_KEEP, device, out, err);
}
