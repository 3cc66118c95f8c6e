/* pinned.c: tensors in pinned memory. */
#include "device_memory.h"
#include "error.h"
#include "profile_scope.h"
#include "storage.h"
#include "tensor_internal.h"
#include "transfer.h"

static stk_status check_pins(const stk_device *device, stk_error *err)
{
    if (!device)
        return stki_fail(err, STK_E_BAD_ARG, "pinned memory needs a device");
    if (device->host_memory)
        return stki_fail(err, STK_E_BAD_DEVICE, "%s uses host memory directly, so pinning memory for it has no effect",
                         device->name);
    return STK_OK;
}

stk_status stki_tensor_new_pinned(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                                  int64_t bytes, stk_device *device, stk_tensor *out, stk_error *err)
{
    stk_storage *storage;
    stk_status status = stki_storage_create_pinned(device, bytes, &storage, err);

    status = status != STK_OK ? status : stk_tensor_from_storage(storage, 0, dtype, ndim, shape, strides, out, err);
    if (status == STK_OK)
        stk_storage_release(storage); /* the tensor has its own reference */
    return status;
}

stk_status stk_tensor_empty_pinned(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device, stk_tensor *out,
                                   stk_error *err)
{
    STKI_PROFILE("empty_pinned");
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_status status = check_pins(device, err);

    status = status != STK_OK ? status : stki_row_major(dtype, ndim, shape, strides, &bytes, err);
    return status != STK_OK ? status : stki_tensor_new_pinned(dtype, ndim, shape, strides, bytes, device, out, err);
}

stk_status stk_tensor_pin(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("pin");
    int64_t row[STK_MAX_DIMS], bytes;
    stk_tensor made;
    stk_status status = check_pins(device, err);

    if (status != STK_OK)
        return status;
    if (!stki_tensor_device(tensor)->host_memory)
        return stki_fail(err, STK_E_BAD_DEVICE, "pin: the tensor is on %s; only CPU tensors can be pinned",
                         stki_tensor_device(tensor)->name);
    if (stk_tensor_is_pinned(tensor)) {
        stki_view_of(tensor, tensor->data, tensor->ndim, tensor->shape, tensor->strides, out);
        return STK_OK;
    }
    status = stki_row_major(tensor->dtype, tensor->ndim, tensor->shape, row, &bytes, err);
    status = status != STK_OK ? status
                              : stki_tensor_new_pinned(tensor->dtype, tensor->ndim, tensor->shape,
                                                       stki_tensor_is_dense(tensor) ? tensor->strides : row, bytes,
                                                       device, &made, err);
    if (status != STK_OK)
        return status;
    status = stki_tensor_transfer(&made, tensor, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}
