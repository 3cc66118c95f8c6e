/* transfer.c: see transfer.h. A transfer is at most three steps: a copy of bytes between two memories (ops->copy), a
 * strided copy within a device (ops->copy_strided, if it has one), and a strided copy in host memory. If both sides
 * have the same layout, it is one copy of bytes. */
#include "transfer.h"
#include "allocate.h"
#include "error.h"
#include "stage.h"
#include "storage.h"
#include "tensor_internal.h"
#include <inttypes.h>

enum { BLOCK_ALIGNMENT = 64 };

typedef struct transfer {
    const stk_tensor *dst, *src;
    stk_stream *stream; /* the caller's; NULL: the current one of the device that copies */
    bool non_blocking;
} transfer;

static bool swapped(const stk_tensor *tensor)
{
    return (tensor->flags & STK_TENSOR_SWAPPED) != 0;
}

static void copy_on_host(const stk_tensor *dst, const stk_tensor *src)
{
    stki_copy_strided(dst->data, dst->dtype, dst->strides, src->data, src->dtype, src->strides, swapped(src), dst->ndim,
                      dst->shape);
}

/* ---- plain bytes ---- */

/* Whether a copy of bytes suffices: same dtype, both dense, with the same order of elements. */
static bool same_layout(const stk_tensor *a, const stk_tensor *b)
{
    if (a->dtype != b->dtype || swapped(a) || swapped(b))
        return false;
    if (stk_tensor_is_contiguous(a) && stk_tensor_is_contiguous(b))
        return true;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->strides[i] != b->strides[i])
            return false;
    return stki_tensor_is_dense(a);
}

static stk_stream *stream_of(const transfer *t, stk_device *device)
{
    return t->stream && t->stream->device == device ? t->stream : stk_stream_current(device);
}

static stk_status wait_for(stk_stream *stream, stk_error *err)
{
    return stk_stream_synchronize(stream, STK_WAIT_FOREVER, err);
}

/* Records the stream, so that the tensor's pool reuses the block only after the stream has finished with it, even if
 * the tensor is released earlier. */
static void note_use(const stk_tensor *tensor, stk_stream *stream)
{
    /* Fails if the stream belongs to another device; it is not needed then. */
    if (stream)
        (void)stk_tensor_record_stream(tensor, stream, NULL);
}

/* Copies between tensors of the same layout, at least one of which is on `mover`. */
static stk_status copy_bytes(const transfer *t, stk_device *mover, const stk_tensor *dst, const stk_tensor *src,
                             stk_error *err)
{
    stk_device *to = stki_tensor_device(dst), *from = stki_tensor_device(src);
    const stk_tensor *host = to->host_memory ? dst : from->host_memory ? src : NULL;
    stk_stream *stream = stream_of(t, mover);
    stk_status status = mover->ops->copy(mover, dst->data, !to->host_memory, src->data, !from->host_memory,
                                         stk_tensor_nbytes(dst), stream, err);

    if (status != STK_OK || !stream || !host)
        return status;
    if (t->non_blocking && stk_tensor_is_pinned(host)) {
        note_use(host, stream);
        return STK_OK;
    }
    return wait_for(stream, err);
}

/* ---- through host memory ---- */

/* Sets the current stream, because stki_stage uses it. */
static stk_status transfer_staged(const transfer *t, const stk_tensor *dst, const stk_tensor *src, stk_error *err)
{
    stk_stream *before = t->stream ? stk_stream_set_current(t->stream->device, t->stream) : NULL;
    stki_stage source, target;
    stk_status status = stki_stage_begin(&source, src, err);

    if (status == STK_OK) {
        status = stki_stage_begin_write(&target, dst, err);
        if (status == STK_OK) {
            copy_on_host(&target.host, &source.host);
            status = stki_stage_commit(&target, err);
            stki_stage_end(&target);
        }
        stki_stage_end(&source);
    }
    if (t->stream)
        (void)stk_stream_set_current(t->stream->device, before);
    return status;
}

/* Creates a tensor in host memory with the shape and strides of `like`, which must be dense. */
static stk_status host_block(const stk_tensor *like, stk_tensor *out, stk_error *err)
{
    *out = *like;
    out->storage = NULL;
    out->device = stk_device_cpu();
    out->flags = out->reserved = 0;
    out->data = stki_block_alloc(NULL, stk_tensor_nbytes(like), BLOCK_ALIGNMENT);
    return out->data ? STK_OK : stki_fail_memory(err, stk_tensor_nbytes(like), "a copy to a device");
}

static void host_block_end(stk_tensor *block)
{
    stki_block_free(NULL, block->data, stk_tensor_nbytes(block), BLOCK_ALIGNMENT);
}

/* ---- within a device ---- */

/* STK_E_UNSUPPORTED: the device has no kernel for this; nothing was queued. */
static stk_status copy_strided(const transfer *t, stk_device *device, const stk_tensor *dst, const stk_tensor *src,
                               stk_error *err)
{
    if (!device->ops->copy_strided)
        return STK_E_UNSUPPORTED;
    return device->ops->copy_strided(device, dst, src, stream_of(t, device), err);
}

static stk_status within(const transfer *t, stk_device *device, stk_error *err)
{
    stk_status status;

    if (same_layout(t->dst, t->src))
        return copy_bytes(t, device, t->dst, t->src, err);
    status = copy_strided(t, device, t->dst, t->src, err);
    return status == STK_E_UNSUPPORTED ? transfer_staged(t, t->dst, t->src, err) : status;
}

/* Creates a tensor in device memory with the shape of `like` and, if that is dense and has the same dtype, its strides;
 * otherwise row-major. */
static stk_status device_block(const transfer *t, stk_device *device, stk_dtype dtype, const stk_tensor *like,
                               stk_tensor *out, stk_error *err)
{
    bool keep = dtype == like->dtype && stki_tensor_is_dense(like);
    stk_stream *stream = stream_of(t, device), *before;
    int64_t row[STK_MAX_DIMS], bytes;
    stk_status status = stki_row_major(dtype, like->ndim, like->shape, row, &bytes, err);

    if (status != STK_OK)
        return status;
    before = stk_stream_set_current(device, stream); /* the pool orders the block's reuse by this stream */
    status = stki_tensor_new(dtype, like->ndim, like->shape, keep ? like->strides : row, bytes, device, out, err);
    (void)stk_stream_set_current(device, before);
    return status;
}

/* ---- between host memory and a device ---- */

/* Copies the bytes and rearranges them on the device: fewer bytes are copied, and the caller need not wait. */
static stk_status upload_then_place(const transfer *t, stk_device *device, stk_error *err)
{
    stk_tensor block;
    stk_status status = device_block(t, device, t->src->dtype, t->src, &block, err);

    if (status != STK_OK)
        return status;
    status = copy_bytes(t, device, &block, t->src, err);
    status = status != STK_OK ? status : copy_strided(t, device, t->dst, &block, err);
    stk_tensor_release(&block);
    return status;
}

/* Rearranges and casts on the host, then copies the bytes. */
static stk_status place_then_upload(const transfer *t, stk_device *device, stk_error *err)
{
    stk_tensor block;
    stk_status status = host_block(t->dst, &block, err);

    if (status != STK_OK)
        return status;
    copy_on_host(&block, t->src);
    status = copy_bytes(t, device, t->dst, &block, err);
    host_block_end(&block);
    return status;
}

static stk_status upload(const transfer *t, stk_device *device, stk_error *err)
{
    bool whole = stki_tensor_is_dense(t->src) && !swapped(t->src);

    if (same_layout(t->dst, t->src))
        return copy_bytes(t, device, t->dst, t->src, err);
    if (whole && stk_dtype_size(t->src->dtype) <= stk_dtype_size(t->dst->dtype)) {
        stk_status status = device->ops->copy_strided ? upload_then_place(t, device, err) : STK_E_UNSUPPORTED;
        if (status != STK_E_UNSUPPORTED)
            return status;
    }
    if (stki_tensor_is_dense(t->dst))
        return place_then_upload(t, device, err);
    return transfer_staged(t, t->dst, t->src, err);
}

/* Gathers the source on the device into a dense block, so that only its elements are transferred. */
static stk_status gather(const transfer *t, stk_device *device, stk_tensor *block, stk_error *err)
{
    bool as_dst = stk_dtype_size(t->dst->dtype) <= stk_dtype_size(t->src->dtype);
    stk_dtype dtype = as_dst ? t->dst->dtype : t->src->dtype;
    stk_status status;

    if (!device->ops->copy_strided || (!as_dst && stki_tensor_is_dense(t->src)))
        return STK_E_UNSUPPORTED; /* a dense source needs no gathering, and the host can cast */
    status = device_block(t, device, dtype, t->dst, block, err);
    if (status != STK_OK)
        return status;
    status = copy_strided(t, device, block, t->src, err);
    if (status != STK_OK)
        stk_tensor_release(block);
    return status;
}

static stk_status download(const transfer *t, stk_device *device, stk_error *err)
{
    stk_tensor block;
    stk_status status;

    if (same_layout(t->dst, t->src))
        return copy_bytes(t, device, t->dst, t->src, err);
    status = gather(t, device, &block, err);
    if (status == STK_E_UNSUPPORTED)
        return transfer_staged(t, t->dst, t->src, err);
    if (status != STK_OK)
        return status;
    if (same_layout(t->dst, &block))
        status = copy_bytes(t, device, t->dst, &block, err);
    else
        status = transfer_staged(t, t->dst, &block, err);
    stk_tensor_release(&block);
    return status;
}

/* ---- between devices ---- */

/* Devices of the same kind can access each other's memory. Streams of different devices are not ordered, so this
 * function waits for the source's stream. */
static stk_status across(const transfer *t, stk_device *to, stk_device *from, stk_error *err)
{
    stk_tensor block = {0};
    stk_status status = wait_for(stream_of(t, from), err);

    if (status != STK_OK)
        return status;
    if (to->kind == from->kind && same_layout(t->dst, t->src)) {
        status = copy_bytes(t, to, t->dst, t->src, err);
        return status != STK_OK ? status : wait_for(stream_of(t, to), err); /* the source may then be overwritten */
    }
    status = stk_tensor_empty(t->src->dtype, t->src->ndim, t->src->shape, NULL, &block, err);
    status = status != STK_OK ? status : stki_tensor_transfer_on(&block, t->src, stream_of(t, from), false, err);
    status = status != STK_OK ? status : stki_tensor_transfer_on(t->dst, &block, stream_of(t, to), false, err);
    stk_tensor_release(&block);
    return status;
}

stk_status stki_tensor_transfer_on(const stk_tensor *dst, const stk_tensor *src, stk_stream *stream, bool non_blocking,
                                   stk_error *err)
{
    transfer t = {dst, src, stream, non_blocking};
    stk_device *to = stki_tensor_device(dst), *from = stki_tensor_device(src);
    stk_status status;

    if (stream && stream->device != to && stream->device != from)
        return stki_fail(err, STK_E_BAD_DEVICE, "a copy from %s to %s cannot run in a stream of %s", from->name,
                         to->name, stream->device->name);
    if (stk_tensor_numel(dst) == 0)
        return STK_OK;
    if (to->host_memory && from->host_memory) {
        copy_on_host(dst, src);
        return STK_OK;
    }
    if (to == from)
        status = within(&t, to, err);
    else if (from->host_memory)
        status = upload(&t, to, err);
    else if (to->host_memory)
        status = download(&t, from, err);
    else
        return across(&t, to, from, err);
    if (!to->host_memory) /* the memory may have been allocated for a stream other than `stream` */
        note_use(dst, stream);
    if (!from->host_memory)
        note_use(src, stream);
    return status;
}

stk_status stki_tensor_transfer(const stk_tensor *dst, const stk_tensor *src, stk_error *err)
{
    return stki_tensor_transfer_on(dst, src, NULL, false, err);
}
