/* dlpack.c: exports tensors as either of DLPack's two structs (imports are in gpu/dlpack_import.c, since they look up
 * devices). The structs differ only in the members around the tensor, so both are made from stk_dlpack_tensor, whose
 * layout is checked below.
 */
#include "allocate.h"
#include "checked.h"
#include "device_table.h"
#include "dlpack_type.h"
#include "error.h"
#include "profile_scope.h"
#include "record.h"
#include "storage.h"
#include "tensor_internal.h"
#include "wrap.h"
#include <dlpack/dlpack.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stoker/dlpack.h>
#include <string.h>

_Static_assert(sizeof(stk_dlpack_tensor) == sizeof(DLTensor) &&
                   offsetof(stk_dlpack_tensor, device_type) == offsetof(DLTensor, device) &&
                   offsetof(stk_dlpack_tensor, ndim) == offsetof(DLTensor, ndim) &&
                   offsetof(stk_dlpack_tensor, code) == offsetof(DLTensor, dtype) &&
                   offsetof(stk_dlpack_tensor, shape) == offsetof(DLTensor, shape) &&
                   offsetof(stk_dlpack_tensor, strides) == offsetof(DLTensor, strides) &&
                   offsetof(stk_dlpack_tensor, byte_offset) == offsetof(DLTensor, byte_offset),
               "DLPack's tensor has a different layout");

/* ---- export ---- */

struct exported {
    union {
        DLManagedTensor unversioned;
        stk_dlpack_versioned versioned;
    } frame; /* must be first: its address is returned */
    stk_tensor tensor;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
};

static stk_status check_exportable(const stk_tensor *tensor, int major, stki_dlpack_type *type, stk_error *err)
{
    const stk_device *device = stki_tensor_device(tensor);

    if (device->kind != STK_DEVICE_CPU && device->kind != STK_DEVICE_CUDA)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack has no device type for %s: copy the tensor to the CPU first",
                         device->name);
    if (!tensor->storage)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: a borrowed tensor cannot be exported: clone it first");
    if (tensor->storage->mapping)
        return stki_fail(
            err, STK_E_UNSUPPORTED,
            "DLPack: a mapped file cannot be exported, because it may be truncated: clone the tensor first");
    if (tensor->flags & STK_TENSOR_SWAPPED)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: the tensor is in the opposite byte order: clone it first");
    if (major == 0 && (tensor->flags & STK_TENSOR_READONLY))
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack 0.6 cannot mark a tensor as read-only: use version 1");
    if (!stki_dlpack_type_of(tensor->dtype, major, type))
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack %s has no dtype %s", major ? "1.1" : "0.6",
                         stk_dtype_name(tensor->dtype));
    return STK_OK;
}

static stk_status make_export(const stk_tensor *tensor, int major, struct exported **out, stk_dlpack_tensor *described,
                              stk_error *err)
{
    const stk_device *device = stki_tensor_device(tensor);
    const int64_t size = stk_dtype_size(tensor->dtype);
    stki_dlpack_type type;
    struct exported *made;
    stk_status status = check_exportable(tensor, major, &type, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] > 1 && tensor->strides[i] % size != 0)
            return stki_fail(err, STK_E_BAD_STRIDE,
                             "DLPack: the stride of axis %d is %" PRId64
                             " bytes, not a multiple of the size of a %s element",
                             i, tensor->strides[i], stk_dtype_name(tensor->dtype));
    made = stki_zalloc(sizeof *made);
    if (!made)
        return stki_fail_memory(err, sizeof *made, "a DLPack export");
    for (int i = 0; i < tensor->ndim; i++) {
        made->shape[i] = tensor->shape[i];
        made->strides[i] = tensor->strides[i] / size;
    }
    stk_tensor_retain(tensor);
    made->tensor = *tensor;
    *described = (stk_dlpack_tensor){
        .data = tensor->data,
        .device_type = (int32_t)device->kind,
        .device_id = device->index,
        .ndim = tensor->ndim,
        .code = type.code,
        .bits = type.bits,
        .lanes = 1,
        .shape = made->shape,
        .strides = made->strides,
    };
    *out = made;
    return STK_OK;
}

static void end_export(struct exported *exported)
{
    stk_tensor_release(&exported->tensor);
    stki_free(exported);
}

static void delete_unversioned(DLManagedTensor *self)
{
    end_export(self->manager_ctx);
}

static void delete_versioned(stk_dlpack_versioned *self)
{
    end_export(self->manager_ctx);
}

stk_status stk_tensor_to_dlpack(const stk_tensor *tensor, struct DLManagedTensor **out, stk_error *err)
{
    STKI_PROFILE("to_dlpack");
    struct exported *made;
    stk_dlpack_tensor described;
    stk_status status = make_export(tensor, 0, &made, &described, err);

    if (status != STK_OK)
        return status;
    memcpy(&made->frame.unversioned.dl_tensor, &described, sizeof described);
    made->frame.unversioned.manager_ctx = made;
    made->frame.unversioned.deleter = delete_unversioned;
    *out = &made->frame.unversioned;
    return STK_OK;
}

stk_status stk_tensor_to_dlpack_versioned(const stk_tensor *tensor, struct DLManagedTensorVersioned **out,
                                          stk_error *err)
{
    STKI_PROFILE("to_dlpack_versioned");
    struct exported *made;
    stk_dlpack_tensor described;
    stk_status status = make_export(tensor, STK_DLPACK_MAJOR, &made, &described, err);

    if (status != STK_OK)
        return status;
    made->frame.versioned = (stk_dlpack_versioned){
        .major = STK_DLPACK_MAJOR,
        .minor = STK_DLPACK_MINOR,
        .manager_ctx = made,
        .deleter = delete_versioned,
        .flags = tensor->flags & STK_TENSOR_READONLY ? STK_DLPACK_READ_ONLY : 0,
        .tensor = described,
    };
    *out = (struct DLManagedTensorVersioned *)(void *)&made->frame.versioned;
    return STK_OK;
}
