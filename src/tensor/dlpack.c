/* dlpack.c: exports and imports in DLPack's two forms. They differ in the frame only; the tensor in it is laid out the
 * same, which is checked below, so both go through stk_dlpack_tensor. */
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
               "DLPack's tensor is laid out differently");

/* ---- export ------------------------------------------------------------------------------------------------------ */

struct exported {
    union {
        DLManagedTensor unversioned;
        stk_dlpack_versioned versioned;
    } frame; /* first: its address is what is given away */
    stk_tensor tensor;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
};

static stk_status check_exportable(const stk_tensor *tensor, int major, stki_dlpack_type *type, stk_error *err)
{
    const stk_device *device = stki_tensor_device(tensor);

    if (device->kind != STK_DEVICE_CPU && device->kind != STK_DEVICE_CUDA)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack knows no device like %s: copy the tensor to the cpu first",
                         device->name);
    if (!tensor->storage)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: a borrowed tensor cannot be handed out: clone it first");
    if (tensor->storage->mapping)
        return stki_fail(
            err, STK_E_UNSUPPORTED,
            "DLPack: a mapping of a file cannot be handed out, as it may end with the file: clone it first");
    if (tensor->flags & STK_TENSOR_SWAPPED)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: the tensor is in the other byte order: clone it first");
    if (major == 0 && (tensor->flags & STK_TENSOR_READONLY))
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack 0.6 cannot say that a tensor is read-only: version 1 can");
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

    if (status)
        return status;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] > 1 && tensor->strides[i] % size != 0)
            return stki_fail(err, STK_E_BAD_STRIDE,
                             "DLPack: the stride of axis %d is %" PRId64 " bytes, no whole number of %s elements", i,
                             tensor->strides[i], stk_dtype_name(tensor->dtype));
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

    if (status)
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

    if (status)
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

/* ---- import ------------------------------------------------------------------------------------------------------ */

static stk_status find_device(const stk_dlpack_tensor *given, stk_device **out, stk_error *err)
{
    char name[32];

    switch (given->device_type) {
    case kDLCPU:
    case kDLCUDAHost: /* pinned, but the processor's memory all the same */
        *out = stk_device_cpu();
        return STK_OK;
    case kDLCUDA:
        snprintf(name, sizeof name, "cuda:%d", (int)given->device_id);
        if (stk_device_find(name, out, NULL) != STK_OK)
            return stki_fail(err, STK_E_BAD_DEVICE, "DLPack: the tensor is on %s, which is not here", name);
        return STK_OK;
    default:
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: a tensor on a device of kind %d", (int)given->device_type);
    }
}

static stk_status check_shape(const stk_dlpack_tensor *given, stk_error *err)
{
    if (given->ndim < 0 || given->ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: a tensor with %d axes: must be 0 to %d", (int)given->ndim,
                         STK_MAX_DIMS);
    if (given->ndim > 0 && !given->shape)
        return stki_fail(err, STK_E_BAD_ARG, "DLPack: a tensor with %d axes and no shape", (int)given->ndim);
    return STK_OK;
}

/* Shape and byte strides. */
static stk_status read_geometry(const stk_dlpack_tensor *given, stk_dtype dtype, int64_t *strides, stk_error *err)
{
    stk_status status = stki_row_major(dtype, given->ndim, given->shape, strides, NULL, err);

    for (int i = 0; !status && given->strides && i < given->ndim; i++)
        if (!stki_mul(given->strides[i], stk_dtype_size(dtype), &strides[i])) {
            if (given->shape[i] > 1)
                status = stki_fail(err, STK_E_BAD_SHAPE, "DLPack: the stride of axis %d is %" PRId64 " elements", i,
                                   given->strides[i]);
            strides[i] = 0;
        }
    return status;
}

/* `free_fn(managed)` becomes the end of the storage. */
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
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack: elements of type code %d, %d bits, %d lanes", given->code,
                         given->bits, given->lanes);
    status = check_shape(given, err);
    status = status ? status : find_device(given, &device, err);
    status = status ? status : read_geometry(given, dtype, strides, err);
    status = status ? status : stki_byte_span(dtype, given->ndim, given->shape, strides, &low, &high, err);
    if (status)
        return status;
    if (!given->data && high > low)
        return stki_fail(err, STK_E_BAD_ARG, "DLPack: a tensor with elements and no data");
    if (given->byte_offset > INT64_MAX)
        return stki_fail(err, STK_E_BAD_ARG, "DLPack: byte_offset %" PRIu64, given->byte_offset);
    first = stki_address(given->data, (int64_t)given->byte_offset);
    status = stk_storage_wrap(device, high > low ? stki_address(first, low) : first, high - low, free_fn, managed,
                              &storage, err);
    if (status)
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
        return stki_fail(err, STK_E_UNSUPPORTED, "DLPack %u.%u: only version %d is known", given->major, given->minor,
                         STK_DLPACK_MAJOR);
    return import(&given->tensor, given->flags & STK_DLPACK_READ_ONLY ? STK_TENSOR_READONLY : 0, end_versioned, given,
                  out, err);
}
