/* create_memory.c: tensors over memory that is already there, copies of it, and raw bytes out. */
#include "error.h"
#include "profile_scope.h"
#include "record.h"
#include "stage.h"
#include "storage.h"
#include "tensor_internal.h"
#include "transfer.h"
#include "wrap.h"
#include <inttypes.h>
#include <stoker/create.h>

static void nothing(void *context)
{
    (void)context;
}

stk_status stk_tensor_wrap(void *data, stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                           void (*free_fn)(void *context), void *context, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("wrap");
    stk_tensor made;
    int64_t low, high;
    stk_storage *storage;
    stk_status status = stk_tensor_borrow(data, dtype, ndim, shape, strides, &made, err);

    status = status ? status : stki_byte_span(dtype, ndim, made.shape, made.strides, &low, &high, err);
    if (status)
        return status;
    if (low < 0)
        return stki_fail(err, STK_E_BAD_STRIDE, "wrap: the strides lead %" PRId64 " bytes below the address", -low);
    status = stk_storage_wrap(NULL, data, high, free_fn ? free_fn : nothing, context, &storage, err);
    if (status)
        return status;
    made.storage = storage;
    if (stki_watched())
        stki_record_holder(&made);
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_from_buffer(void *buffer, int64_t buffer_bytes, stk_dtype dtype, int64_t count, int64_t offset,
                                  void (*free_fn)(void *context), void *context, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_buffer");
    int64_t size = stk_dtype_size(dtype), rest = buffer_bytes - offset;

    if (size == 0)
        return stki_fail(err, STK_E_BAD_DTYPE, "no dtype has the number %d", (int)dtype);
    if (offset < 0 || offset >= buffer_bytes)
        return stki_fail(err, STK_E_BAD_ARG, "offset %" PRId64 " in a buffer of %" PRId64 " bytes", offset,
                         buffer_bytes);
    if (count == -1 && rest % size)
        return stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " bytes are no whole number of %s elements", rest,
                         stk_dtype_name(dtype));
    count = count == -1 ? rest / size : count;
    if (count < 0 || count > rest / size)
        return stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " %s elements in %" PRId64 " bytes", count,
                         stk_dtype_name(dtype), rest);
    if (!free_fn)
        return stk_tensor_borrow(stki_address(buffer, offset), dtype, 1, &count, NULL, out, err);
    return stk_tensor_wrap(stki_address(buffer, offset), dtype, 1, &count, NULL, free_fn, context, out, err);
}

stk_status stk_tensor_from_array(stk_dtype dtype, const void *data, int64_t data_bytes, int ndim, const int64_t *shape,
                                 stk_device *device, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_array");
    stk_tensor made;
    int64_t bytes;
    stk_status status = stki_row_major(dtype, ndim, shape, NULL, &bytes, err);

    if (status)
        return status;
    if (bytes != data_bytes)
        return stki_fail(err, STK_E_BAD_SHAPE, "shape %s of %s takes %" PRId64 " bytes, not %" PRId64,
                         STKI_SHAPE(ndim, shape), stk_dtype_name(dtype), bytes, data_bytes);
    status = stk_tensor_empty(dtype, ndim, shape, device, &made, err);
    if (status)
        return status;
    status = stki_device_copy_now(made.device, made.data, true, data, false, bytes, err);
    if (status) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_to_bytes(const stk_tensor *tensor, void *out, int64_t bytes, stk_error *err)
{
    STKI_PROFILE("to_bytes");
    stk_tensor flat;
    stk_status status;

    if (bytes != stk_tensor_nbytes(tensor))
        return stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " bytes for a tensor of %" PRId64, bytes,
                         stk_tensor_nbytes(tensor));
    status = stk_tensor_borrow(out, tensor->dtype, tensor->ndim, tensor->shape, NULL, &flat, err);
    return status ? status : stki_tensor_transfer(&flat, tensor, err);
}
