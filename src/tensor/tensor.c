/* tensor.c: creates and releases tensors, and implements queries. */
#include "checked.h"
#include "device_memory.h"
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "profile_scope.h"
#include "record.h"
#include "storage.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *stki_shape_text(char *buffer, int size, int ndim, const int64_t *shape)
{
    int used = snprintf(buffer, (size_t)size, "[");

    for (int i = 0; i < ndim && used < size; i++)
        used += snprintf(buffer + used, (size_t)(size - used), i ? ", %" PRId64 : "%" PRId64, shape[i]);
    if (used < size - 1)
        snprintf(buffer + used, (size_t)(size - used), "]");
    else
        memcpy(buffer + size - 5, "...]", 5);
    return buffer;
}

static stk_status check_axes(int ndim, const int64_t *shape, stk_error *err)
{
    if (ndim < 0)
        return stki_fail(err, STK_E_BAD_SHAPE, "%d axes", ndim);
    if (ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "%d axes: at most %d are supported", ndim, STK_MAX_DIMS);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "axis %d has the negative size %" PRId64, i, shape[i]);
    return STK_OK;
}

stk_status stki_row_major(stk_dtype dtype, int ndim, const int64_t *shape, int64_t *strides, int64_t *out_bytes,
                          stk_error *err)
{
    int64_t row[STK_MAX_DIMS], bytes = stk_dtype_size(dtype);
    bool empty = false;
    stk_status status = stki_dtype_check(dtype, err);

    status = status != STK_OK ? status : check_axes(ndim, shape, err);
    if (status != STK_OK)
        return status;
    for (int i = ndim - 1; i >= 0; i--) {
        row[i] = bytes;
        empty = empty || shape[i] == 0;
        if (!stki_mul(bytes, shape[i] ? shape[i] : 1, &bytes))
            return stki_fail(err, STK_E_BAD_SHAPE, "the size in bytes of shape %s of %s does not fit in 63 bits",
                             STKI_SHAPE(ndim, shape), stk_dtype_name(dtype));
    }
    if (strides && ndim > 0)
        memcpy(strides, row, sizeof row[0] * (size_t)ndim);
    if (out_bytes)
        *out_bytes = empty ? 0 : bytes;
    return STK_OK;
}

stk_status stki_byte_span(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides, int64_t *out_low,
                          int64_t *out_high, stk_error *err)
{
    int64_t low = 0, high = 0;

    *out_low = *out_high = 0;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            return STK_OK;
    for (int i = 0; i < ndim; i++) {
        int64_t reach;
        if (!stki_mul(shape[i] - 1, strides[i], &reach) ||
            !stki_add(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return stki_fail(err, STK_E_BAD_SHAPE,
                             "the byte range of shape %s with these strides does not fit in 63 bits",
                             STKI_SHAPE(ndim, shape));
    }
    if (!stki_add(high, stk_dtype_size(dtype), &high) || low == INT64_MIN)
        return stki_fail(err, STK_E_BAD_SHAPE, "the byte range of shape %s with these strides does not fit in 63 bits",
                         STKI_SHAPE(ndim, shape));
    *out_low = low;
    *out_high = high;
    return STK_OK;
}

static void set_geometry(stk_tensor *tensor, int ndim, const int64_t *shape, const int64_t *strides)
{
    tensor->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        tensor->shape[i] = shape[i];
        tensor->strides[i] = strides[i];
    }
}

/* Shape and strides are not set here: only their used part is written, because views are created very often. */
static void set_tensor(stk_tensor *out, void *data, stk_storage *storage, stk_device *device, stk_dtype dtype,
                       uint32_t flags)
{
    out->data = data;
    out->storage = storage;
    out->device = device;
    out->dtype = dtype;
    out->flags = flags;
    out->reserved = 0;
}

void stki_view_of(const stk_tensor *base, void *data, int ndim, const int64_t *shape, const int64_t *strides,
                  stk_tensor *out)
{
    stk_storage_retain(base->storage);
    set_tensor(out, data, base->storage, base->device, base->dtype, base->flags);
    set_geometry(out, ndim, shape, strides);
    if (stki_watched())
        stki_record_holder(out);
}

/* ---- create and release ---- */

stk_status stki_tensor_new(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides, int64_t bytes,
                           stk_device *device, stk_tensor *out, stk_error *err)
{
    stk_storage *storage;
    stk_status status = stk_storage_create(device, bytes, &storage, err);

    if (status != STK_OK)
        return status;
    set_tensor(out, storage->data, storage, storage->device, dtype, 0);
    set_geometry(out, ndim, shape, strides);
    if (stki_watched())
        stki_record_holder(out);
    return STK_OK;
}

stk_status stk_tensor_empty(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device, stk_tensor *out,
                            stk_error *err)
{
    STKI_PROFILE("empty");
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_status status = stki_row_major(dtype, ndim, shape, strides, &bytes, err);

    return status != STK_OK ? status : stki_tensor_new(dtype, ndim, shape, strides, bytes, device, out, err);
}

stk_status stk_tensor_zeros(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device, stk_tensor *out,
                            stk_error *err)
{
    STKI_PROFILE("zeros");
    stk_tensor made;
    stk_status status = stk_tensor_empty(dtype, ndim, shape, device, &made, err);

    if (status != STK_OK)
        return status;
    status = made.device->ops->fill(made.device, made.data, "", 1, made.storage->bytes, stk_stream_current(made.device),
                                    err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_borrow(void *data, stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                             stk_tensor *out, stk_error *err)
{
    stk_tensor made = {.data = data, .device = stk_device_cpu(), .dtype = dtype};
    int64_t row[STK_MAX_DIMS], low, high;
    stk_status status = stki_dtype_check(dtype, err);

    status = status != STK_OK ? status : check_axes(ndim, shape, err);
    if (status == STK_OK && !strides)
        status = stki_row_major(dtype, ndim, shape, row, NULL, err);
    strides = strides ? strides : row;
    status = status != STK_OK ? status : stki_byte_span(dtype, ndim, shape, strides, &low, &high, err);
    if (status != STK_OK)
        return status;
    set_geometry(&made, ndim, shape, strides);
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_from_storage(stk_storage *storage, int64_t offset_bytes, stk_dtype dtype, int ndim,
                                   const int64_t *shape, const int64_t *strides, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_storage");
    stk_tensor made;
    int64_t low, high, first;
    stk_status status = stk_tensor_borrow(storage->data, dtype, ndim, shape, strides, &made, err);

    if (status != STK_OK)
        return status;
    status = stki_byte_span(dtype, ndim, made.shape, made.strides, &low, &high, err);
    if (status != STK_OK)
        return status;
    if (offset_bytes < 0 || !stki_add(offset_bytes, low, &first) ||
        (high > low && !stki_inside(first, high - low, storage->bytes)))
        return stki_fail(err, STK_E_BAD_STORAGE,
                         "bytes %" PRId64 " to %" PRId64 " from offset %" PRId64 " are outside a storage of %" PRId64
                         " bytes",
                         low, high, offset_bytes, storage->bytes);
    made.data = (void *)((uintptr_t)storage->data + (uintptr_t)offset_bytes);
    made.storage = storage;
    made.device = storage->device;
    made.flags = storage->pinned ? STK_TENSOR_PINNED : 0;
    stk_storage_retain(storage);
    if (stki_watched())
        stki_record_holder(&made);
    *out = made;
    return STK_OK;
}

void stk_tensor_retain(const stk_tensor *tensor)
{
    if (tensor->reserved)
        stki_record_retain(tensor);
    stk_storage_retain(tensor->storage);
}

void stk_tensor_release(stk_tensor *tensor)
{
    if (!tensor)
        return;
    if (tensor->reserved)
        stki_record_release(tensor);
    stk_storage_release(tensor->storage);
    set_tensor(tensor, NULL, NULL, NULL, STK_DTYPE_NONE, 0);
    tensor->ndim = 0;
}

/* ---- queries ---- */

stk_device *stki_tensor_device(const stk_tensor *tensor)
{
    return tensor->device ? tensor->device : stk_device_cpu();
}

int64_t stk_tensor_numel(const stk_tensor *tensor)
{
    int64_t count = 1;

    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] == 0)
            return 0;
    for (int i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

int64_t stk_tensor_nbytes(const stk_tensor *tensor)
{
    return stk_tensor_numel(tensor) * stk_dtype_size(tensor->dtype);
}

int64_t stk_tensor_alignment(const stk_tensor *tensor)
{
    uint64_t bits = (uint64_t)(uintptr_t)tensor->data | 4096;

    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] > 1)
            bits |= (uint64_t)tensor->strides[i]; /* negation does not change the lowest set bit */
    return (int64_t)(bits & -bits);
}

int64_t stk_tensor_offset_bytes(const stk_tensor *tensor)
{
    return stki_tensor_offset_bytes(tensor);
}

stk_status stk_tensor_element_strides(const stk_tensor *tensor, int64_t *strides, int64_t *offset, stk_error *err)
{
    int64_t size = stk_dtype_size(tensor->dtype), bytes = stk_tensor_offset_bytes(tensor);

    if (size == 0)
        return stki_dtype_check(tensor->dtype, err);
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->strides[i] % size)
            return stki_fail(err, STK_E_BAD_STRIDE,
                             "axis %d has a stride of %" PRId64 " bytes, not a multiple of the size of a %s element", i,
                             tensor->strides[i], stk_dtype_name(tensor->dtype));
    if (bytes % size && offset)
        return stki_fail(err, STK_E_BAD_STRIDE,
                         "an offset of %" PRId64 " bytes is not a multiple of the size of a %s element", bytes,
                         stk_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->ndim && strides; i++)
        strides[i] = tensor->strides[i] / size;
    if (offset)
        *offset = bytes / size;
    return STK_OK;
}

bool stk_tensor_is_pinned(const stk_tensor *tensor)
{
    return (tensor->flags & STK_TENSOR_PINNED) != 0;
}

stk_status stk_tensor_record_stream(const stk_tensor *tensor, stk_stream *stream, stk_error *err)
{
    stk_storage *storage = tensor->storage;
    bool pinned = storage && storage->pinned;
    stk_device *owner = pinned ? storage->context : stki_tensor_device(tensor);

    if (!stream)
        return STK_OK; /* work without a stream has already completed */
    if (!pinned && owner != stream->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "a tensor on %s cannot be used in a stream of %s", owner->name,
                         stream->device->name);
    if (storage && !storage->free_fn && !storage->small)
        stki_device_record_stream(owner, pinned ? STK_MEMORY_PINNED : STK_MEMORY_DEVICE, storage->data, stream);
    return STK_OK;
}
