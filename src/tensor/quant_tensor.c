/* quant_tensor.c: quantized tensors and their public functions: checks, allocation, then one run. */
#include "device_kernels.h"
#include "device_table.h"
#include "error.h"
#include "profile_scope.h"
#include "quant_internal.h"
#include "stage.h"
#include "stream.h"
#include "tensor_internal.h"
#include <inttypes.h>

/* ---- checks ---- */

static stk_status check_dtype(const stk_tensor *tensor, stk_dtype expected, const char *what, stk_error *err)
{
    if (tensor->dtype != expected)
        return stki_fail(err, STK_E_BAD_DTYPE, "%s: the tensor is %s, but must be %s", what,
                         stk_dtype_name(tensor->dtype), stk_dtype_name(expected));
    if (tensor->flags & STK_TENSOR_SWAPPED)
        return stki_fail(err, STK_E_UNSUPPORTED, "%s: the tensor is in the opposite byte order", what);
    return STK_OK;
}

static stk_status check_channels(const stk_tensor *tensor, const stk_quant *quant, stk_error *err)
{
    if (quant->axis < 0)
        return STK_OK;
    if (quant->axis >= tensor->ndim)
        return stki_fail(err, STK_E_BAD_DIM, "quantization: axis %d is out of range for a %d-dimensional tensor",
                         quant->axis, tensor->ndim);
    if (tensor->shape[quant->axis] != quant->count)
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "axis %d has length %" PRId64 ", but the number of parameter pairs is %" PRId64, quant->axis,
                         tensor->shape[quant->axis], quant->count);
    return STK_OK;
}

static stk_status check_target(const stk_tensor *out, const stk_tensor *in, stk_error *err)
{
    stk_status status = STK_OK;

    if (out->ndim != in->ndim)
        status = STK_E_BAD_SHAPE;
    for (int i = 0; status == STK_OK && i < in->ndim; i++)
        if (out->shape[i] != in->shape[i])
            status = STK_E_BAD_SHAPE;
    if (status != STK_OK)
        return stki_fail(err, status, "the output's shape is %s, but must be %s", STKI_SHAPE(out->ndim, out->shape),
                         STKI_SHAPE(in->ndim, in->shape));
    if (stki_tensor_device(out) != stki_tensor_device(in))
        return stki_fail(err, STK_E_BAD_DEVICE, "the output is on %s, but the input is on %s",
                         stk_device_name(stki_tensor_device(out)), stk_device_name(stki_tensor_device(in)));
    status = stki_check_writable(out, err);
    return status != STK_OK ? status : stki_check_overlap(out, in, err);
}

/* ---- the run ---- */

typedef void (*run_fn)(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa);

/* Runs the device's own kernel. STK_E_UNSUPPORTED: it has none. */
static stk_status run_on_device(run_fn run, const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src,
                                stk_error *err)
{
    stk_device *device = stki_tensor_device(src);
    const stki_quantize_job job = {.quant = quant, .dst = dst, .src = src, .back = run == stki_dequantize_run};
    stk_status status;

    if (!device->ops->quantize)
        return STK_E_UNSUPPORTED;
    status = device->ops->quantize(device, &job, stki_stream_for(device, NULL), err);
    if (status == STK_E_UNSUPPORTED)
        stki_error_clear(err);
    return status;
}

static stk_status run_anywhere(run_fn run, const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src,
                               stk_error *err)
{
    stki_stage from, to;
    stk_status status = run_on_device(run, quant, dst, src, err);

    if (status != STK_E_UNSUPPORTED)
        return status;
    status = stki_stage_begin(&from, src, err);
    if (status != STK_OK)
        return status;
    status = stki_stage_begin_write(&to, dst, err);
    if (status == STK_OK) {
        run(quant, &to.host, &from.host, stki_isa());
        status = stki_stage_commit(&to, err);
        stki_stage_end(&to);
    }
    stki_stage_end(&from);
    return status;
}

/* Runs into a new tensor, which has the layout of the source if that is dense, otherwise row-major. */
static stk_status run_fresh(run_fn run, const stk_quant *quant, stk_dtype dtype, const stk_tensor *src, stk_tensor *out,
                            stk_error *err)
{
    int64_t strides[STK_MAX_DIMS], bytes, src_size = stk_dtype_size(src->dtype);
    stk_tensor made;
    stk_status status = stki_row_major(dtype, src->ndim, src->shape, strides, &bytes, err);

    if (status != STK_OK)
        return status;
    if (!stk_tensor_is_contiguous(src) && stki_tensor_is_dense(src))
        for (int i = 0; i < src->ndim; i++)
            strides[i] = src->strides[i] / src_size * stk_dtype_size(dtype);
    status = stki_tensor_new(dtype, src->ndim, src->shape, strides, bytes, stki_tensor_device(src), &made, err);
    if (status != STK_OK)
        return status;
    status = run_anywhere(run, quant, &made, src, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

/* ---- the public calls ---- */

stk_status stk_qtensor_of(const stk_tensor *integers, stk_quant *quant, stk_qtensor *out, stk_error *err)
{
    stk_status status = check_dtype(integers, stk_qdtype_integers(quant->qdtype), "a quantized tensor", err);

    status = status != STK_OK ? status : check_channels(integers, quant, err);
    if (status != STK_OK)
        return status;
    stk_tensor_retain(integers);
    stk_quant_retain(quant);
    *out = (stk_qtensor){.integers = *integers, .quant = quant};
    return STK_OK;
}

void stk_qtensor_release(stk_qtensor *qtensor)
{
    if (!qtensor)
        return;
    stk_tensor_release(&qtensor->integers);
    stk_quant_release(qtensor->quant);
    qtensor->quant = NULL;
}

stk_status stk_quantize(const stk_tensor *tensor, stk_quant *quant, stk_qtensor *out, stk_error *err)
{
    STKI_PROFILE("quantize");
    stk_tensor integers;
    stk_status status = check_dtype(tensor, STK_F32, "quantize", err);

    status = status != STK_OK ? status : check_channels(tensor, quant, err);
    status = status != STK_OK
                 ? status
                 : run_fresh(stki_quantize_run, quant, stk_qdtype_integers(quant->qdtype), tensor, &integers, err);
    if (status != STK_OK)
        return status;
    stk_quant_retain(quant);
    *out = (stk_qtensor){.integers = integers, .quant = quant};
    return STK_OK;
}

stk_status stk_quantize_into(const stk_tensor *tensor, const stk_quant *quant, stk_tensor *integers, stk_error *err)
{
    STKI_PROFILE("quantize_into");
    stk_status status = check_dtype(tensor, STK_F32, "quantize", err);

    status = status != STK_OK ? status
                              : check_dtype(integers, stk_qdtype_integers(quant->qdtype), "quantize: the output", err);
    status = status != STK_OK ? status : check_channels(tensor, quant, err);
    status = status != STK_OK ? status : check_target(integers, tensor, err);
    return status != STK_OK ? status : run_anywhere(stki_quantize_run, quant, integers, tensor, err);
}

stk_status stk_dequantize(const stk_qtensor *qtensor, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("dequantize");
    const stk_tensor *integers = &qtensor->integers;
    const stk_quant *quant = qtensor->quant;
    stk_status status = check_dtype(integers, stk_qdtype_integers(quant->qdtype), "dequantize", err);

    status = status != STK_OK ? status : check_channels(integers, quant, err);
    return status != STK_OK ? status : run_fresh(stki_dequantize_run, quant, STK_F32, integers, out, err);
}

stk_status stk_dequantize_into(const stk_tensor *integers, const stk_quant *quant, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("dequantize_into");
    stk_status status = check_dtype(integers, stk_qdtype_integers(quant->qdtype), "dequantize", err);

    status = status != STK_OK ? status : check_dtype(out, STK_F32, "dequantize: the output", err);
    status = status != STK_OK ? status : check_channels(integers, quant, err);
    status = status != STK_OK ? status : check_target(out, integers, err);
    return status != STK_OK ? status : run_anywhere(stki_dequantize_run, quant, out, integers, err);
}

stk_status stk_int_repr(const stk_qtensor *qtensor, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("int_repr");
    return stk_tensor_clone(&qtensor->integers, out, err);
}
