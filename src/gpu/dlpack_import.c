/* dlpack_import.c: imports tensors from both of DLPack's structs. This file is in src/gpu because it looks up
 * devices. */
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
#include <stdio.h>
#include <stoker/dlpack.h>
#include <string.h>

static stk_status find_device(const stk_dlpack_tensor *given, stk_device **out, stk_error *err)
{
    char name[32];

    switch (given->device_type) {
    case kDLCPU:
    case kDLCUDAHost: /* pinned host memory */
        *out = stk_device_cpu();
        return STK_OK;
    case kDLCUDA:
        snprintf(name, sizeof name, "cuda:%d", (int)given->device_id);
        if (stk_device_find(name, out, NULL) != STK_OK)
            return stki_fail(err, STK_E_BAD_DEVICE, "DLPack: the tensor is on %s, which does not exist", name);
        return STK_OK;
    default:
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: unsupported device type %d", (int)given->device_type);
    }
}

static stk_status check_shape(const stk_dlpack_tensor *given, stk_error *err)
{
    if (given->ndim < 0 || given->ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: found %d axes, expected 0 to %d", (int)given->ndim,
                         STK_MAX_DIMS);
    if (given->ndim > 0 && !given->shape)
        return stki_fail(err, STK_E_BAD_ARG, "DLPack: the tensor has %d axes, but its shape is NULL", (int)given->ndim);
    return STK_OK;
}

/* Converts the strides to bytes. */
static stk_status byte_strides(const stk_dlpack_tensor *given, stk_dtype dtype, int64_t *strides, stk_error *err)
{
    stk_status status = stki_row_major(dtype, given->ndim, given->shape, strides, NULL, err);

    for (int i = 0; status == STK_OK && given->strides && i < given->ndim; i++)
        if (!stki_mul(given->strides[i], stk_dtype_size(dtype), &strides[i])) {
            if (given->shape[i] > 1)
                status =
                    stki_fail(err, STK_E_BAD_SHAPE, "DLPack: the stride of axis %d, %" PRId64 " elements, is too large",
                              i, given->strides[i]);
            strides[i] = 0;
        }
    return status;
}

/* Wraps the given tensor; `free_fn(managed)` is called when the storage is destroyed. */
static stk_status import(const stk_dlpack_tensor *given, uint32_t flags, void (*free_fn)(void *managed), void *managed,
                         stk_tensor *out, stk_error *err)
{
    stk_dtype dtype = stki_dlpack_dtype(given->code, given->bits, given->lanes);
    int64_t strides[STK_MAX_DIMS], low, high;
    stk_storage *storage;
    stk_device *device;
    char *first;
    stk_status status;

    if (dtype == STK_DTYPE_NONE)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: unsupported elements: type code %d, %d bits, %d lanes",
                         given->code, given->bits, given->lanes);
    status = check_shape(given, err);
    status = status != STK_OK ? status : find_device(given, &device, err);
    status = status != STK_OK ? status : byte_strides(given, dtype, strides, err);
    status = status != STK_OK ? status : stki_byte_span(dtype, given->ndim, given->shape, strides, &low, &high, err);
    if (status != STK_OK)
        return status;
    if (!given->data && high > low)
        return stki_fail(err, STK_E_BAD_ARG, "DLPack: the tensor has elements, but its data is NULL");
    if (given->byte_offset > INT64_MAX)
        return stki_fail(err, STK_E_BAD_ARG, "DLPack: byte_offset %" PRIu64 " is too large", given->byte_offset);
    first = stki_address(given->data, (int64_t)given->byte_offset);
    status = stk_storage_wrap(device, high > low ? stki_address(first, low) : first, high - low, free_fn, managed,
                              &storage, err);
    if (status != STK_OK)
        return status;
    if (given->device_type == kDLCUDAHost)
        flags |= STK_TENSOR_PINNED;
    *out = (stk_tensor){
        .data = first, .storage = storage, .device = device, .dtype = dtype, .ndim = given->ndim, .flags = flags};
    for (int i = 0; i < given->ndim; i++) {
        out->shape[i] = given->shape[i];
        out->strides[i] = strides[i];
    }
    if (stki_watched())
        stki_record_holder(out);
    return STK_OK;
}

static void end_unversioned(void *context)
{
    DLManagedTensor *managed = context;

    if (managed->deleter)
        managed->deleter(managed);
}

static void end_versioned(void *context)
{
    stk_dlpack_versioned *managed = context;

    if (managed->deleter)
        managed->deleter(managed);
}

stk_status stk_tensor_from_dlpack(struct DLManagedTensor *managed, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_dlpack");
    stk_dlpack_tensor given;

    memcpy(&given, &managed->dl_tensor, sizeof given);
    return import(&given, 0, end_unversioned, managed, out, err);
}

stk_status stk_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_dlpack_versioned");
    stk_dlpack_versioned *given = (stk_dlpack_versioned *)(void *)managed;

    if (given->major != STK_DLPACK_MAJOR)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack %u.%u: only version %d is supported", given->major,
                         given->minor, STK_DLPACK_MAJOR);
    return import(&given->tensor, given->flags & STK_DLPACK_READ_ONLY ? STK_TENSOR_READONLY : 0, end_versioned, given,
                  out, err);
}
