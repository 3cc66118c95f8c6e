/* ops_frame.c: see ops_frame.h. */
#include "ops_frame.h"
#include "device_table.h"
#include "error.h"
#include "float_control.h"
#include "ops_promote.h"
#include "stage.h"
#include "tensor_internal.h"

/* ---- devices ---- */

static stk_status different_devices(const stk_device *a, const stk_device *b, stk_error *err)
{
    return stki_fail(err, STK_E_BAD_DEVICE, "the tensors are on different devices: %s and %s", stk_device_name(a),
                     stk_device_name(b));
}

/* Whether the tensor can be combined with tensors of any device. */
static bool joins_any(const stk_tensor *tensor)
{
    return tensor->ndim == 0 && stki_tensor_device(tensor) == stk_device_cpu();
}

stk_status stki_check_one_device(const stk_tensor *const *tensors, int count, stk_error *err)
{
    const stk_tensor *first = NULL;

    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            continue;
        first = first ? first : tensors[i];
        if (stki_tensor_device(tensors[i]) != stki_tensor_device(first))
            return different_devices(stki_tensor_device(first), stki_tensor_device(tensors[i]), err);
    }
    return STK_OK;
}

static stk_status common_device(const stk_operand *operands, int count, stk_device **out, stk_error *err)
{
    stk_device *common = NULL;

    for (int i = 0; i < count; i++) {
        const stk_tensor *tensor = operands[i].tensor;
        if (!tensor || joins_any(tensor))
            continue;
        if (common && stki_tensor_device(tensor) != common)
            return different_devices(common, stki_tensor_device(tensor), err);
        common = stki_tensor_device(tensor);
    }
    *out = common ? common : stk_device_cpu();
    return STK_OK;
}

bool stki_may_share(const stk_tensor *a, const stk_tensor *b)
{
    int64_t low_a, high_a, low_b, high_b;
    uintptr_t at_a = (uintptr_t)a->data, at_b = (uintptr_t)b->data;

    if (stki_tensor_device(a) != stki_tensor_device(b) ||
        stki_byte_span(a->dtype, a->ndim, a->shape, a->strides, &low_a, &high_a, NULL) != STK_OK ||
        stki_byte_span(b->dtype, b->ndim, b->shape, b->strides, &low_b, &high_b, NULL) != STK_OK)
        return false;
    return high_a > low_a && high_b > low_b && at_a + (uintptr_t)low_a < at_b + (uintptr_t)high_b &&
           at_b + (uintptr_t)low_b < at_a + (uintptr_t)high_a;
}

/* ---- frames ---- */

stk_status stki_frame_of(stki_frame *frame, const stk_operand *operands, int count, stk_error *err)
{
    stk_status status = STK_OK;

    frame->ndim = 0;
    for (int i = 0; i < count && status == STK_OK; i++)
        if (operands[i].tensor)
            status = stki_broadcast_shape(frame->ndim, frame->shape, operands[i].tensor->ndim,
                                          operands[i].tensor->shape, &frame->ndim, frame->shape, err);
    return status != STK_OK ? status : common_device(operands, count, &frame->device, err);
}

static bool has_shape(const stk_tensor *tensor, const stki_frame *frame)
{
    if (tensor->ndim != frame->ndim)
        return false;
    for (int i = 0; i < frame->ndim; i++)
        if (tensor->shape[i] != frame->shape[i])
            return false;
    return true;
}

stk_status stki_frame_accepts(const stki_frame *frame, stk_dtype result, const stk_tensor *out, stk_error *err)
{
    stk_status status = stki_check_computable(out, "arithmetic", err);

    if (status != STK_OK)
        return status;
    if (!has_shape(out, frame))
        return stki_fail(err, STK_E_BAD_BROADCAST, "the result has shape %s, but the output has shape %s",
                         STKI_SHAPE(frame->ndim, frame->shape), STKI_SHAPE(out->ndim, out->shape));
    if (stki_tensor_device(out) != frame->device)
        return different_devices(frame->device, stki_tensor_device(out), err);
    if (!stki_can_store(result, out->dtype))
        return stki_fail(err, STK_E_BAD_DTYPE, "the result has dtype %s, but the output has dtype %s",
                         stk_dtype_name(result), stk_dtype_name(out->dtype));
    return STK_OK;
}

/* ---- new outputs ---- */

static bool same_order(const stk_tensor *a, const stk_tensor *b)
{
    int64_t size_a = stk_dtype_size(a->dtype), size_b = stk_dtype_size(b->dtype);

    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->strides[i] * size_b != b->strides[i] * size_a)
            return false;
    return true;
}

/* The operand whose layout the result has; NULL: row-major. */
static const stk_tensor *layout_model(const stki_frame *frame, const stk_operand *operands, int count)
{
    const stk_tensor *model = NULL;

    for (int i = 0; i < count; i++) {
        const stk_tensor *tensor = operands[i].tensor;
        if (!tensor || !has_shape(tensor, frame))
            continue;
        if (!model && (stk_tensor_is_contiguous(tensor) || !stki_tensor_is_dense(tensor)))
            return NULL;
        if (model && !same_order(model, tensor))
            return NULL;
        model = tensor;
    }
    return model;
}

/* Dense strides with the axes in the model's order. The model has no axis of length 0. */
static void strides_as(const stk_tensor *model, int64_t size, int64_t *strides)
{
    int order[STK_MAX_DIMS], count = 0; /* innermost first, without axes of length 1 */
    int64_t step = size;

    for (int i = model->ndim - 1; i >= 0; i--) {
        int at = count;
        if (model->shape[i] == 1)
            continue;
        for (; at > 0 && model->strides[order[at - 1]] > model->strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        count++;
    }
    for (int i = 0; i < count; i++) {
        strides[order[i]] = step;
        step *= model->shape[order[i]];
    }
    for (int i = model->ndim - 1; i >= 0; i--) /* axes of length 1: as in a row-major tensor */
        if (model->shape[i] == 1)
            strides[i] = i == model->ndim - 1 ? size : strides[i + 1] * model->shape[i + 1];
}

stk_status stki_frame_fresh(const stki_frame *frame, stk_dtype dtype, const stk_operand *operands, int count,
                            stk_tensor *out, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS], bytes;
    const stk_tensor *model = layout_model(frame, operands, count);
    stk_status status = stki_row_major(dtype, frame->ndim, frame->shape, strides, &bytes, err);

    if (status != STK_OK)
        return status;
    if (model)
        strides_as(model, stk_dtype_size(dtype), strides);
    return stki_tensor_new(dtype, frame->ndim, frame->shape, strides, bytes, frame->device, out, err);
}

/* ---- operations on the host ---- */

static bool all_reachable(const stk_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (tensors[i] && !stki_tensor_device(tensors[i])->host_memory)
            return false;
    return true;
}

/* Runs in the default floating-point mode, because results must not depend on the thread's mode (such as flushing of
 * subnormals). */
static stk_status run_in_default_mode(stki_host_fn work, void *context, const stk_tensor *const *tensors,
                                      stk_error *err)
{
    stki_float_control control = stki_float_enter();
    stk_status status = work(context, tensors, err);

    stki_float_leave(control);
    return status;
}

stk_status stki_run_on_host(const stk_tensor *const *tensors, int count, int out_count, stki_host_fn work,
                            void *context, stk_error *err)
{
    const stk_tensor *hosts[STKI_HOST_TENSORS];
    stki_stage stages[STKI_HOST_TENSORS];
    stk_status status = STK_OK;
    int begun = 0;

    if (all_reachable(tensors, count))
        return run_in_default_mode(work, context, tensors, err);
    for (; begun < count && status == STK_OK; begun++) {
        hosts[begun] = tensors[begun] ? &stages[begun].host : NULL;
        stages[begun].block = NULL;
        if (tensors[begun])
            status =
                (begun < out_count ? stki_stage_begin_write : stki_stage_begin)(&stages[begun], tensors[begun], err);
    }
    status = status != STK_OK ? status : run_in_default_mode(work, context, hosts, err);
    for (int i = 0; i < out_count && status == STK_OK; i++)
        if (hosts[i])
            status = stki_stage_commit(&stages[i], err);
    for (int i = 0; i < begun; i++)
        stki_stage_end(&stages[i]);
    return status;
}
