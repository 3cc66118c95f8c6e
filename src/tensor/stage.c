/* stage.c: see stage.h. */
#include "stage.h"
#include "allocate.h"
#include "error.h"
#include "tensor_internal.h"
#include "transfer.h"
#include "wrap.h"
#include <string.h>

enum { STAGE_ALIGNMENT = 64 };

stk_status stki_device_copy_now(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                                int64_t bytes, stk_error *err)
{
    stk_stream *stream = stk_stream_current(device);
    stk_status status = device->ops->copy(device, dst, dst_on_device, src, src_on_device, bytes, stream, err);

    return status != STK_OK || !stream ? status : stk_stream_synchronize(stream, STK_WAIT_FOREVER, err);
}

/* Allocates the block without filling it. */
static stk_status prepare(stki_stage *stage, const stk_tensor *tensor, stk_error *err)
{
    stk_device *device = stki_tensor_device(tensor);
    int64_t low, high;
    stk_status status;

    *stage = (stki_stage){.host = *tensor, .device = device};
    stage->host.storage = NULL;
    stage->host.device = stk_device_cpu();
    if (device->host_memory)
        return STK_OK;
    status = stki_byte_span(tensor->dtype, tensor->ndim, tensor->shape, tensor->strides, &low, &high, err);
    if (status != STK_OK)
        return status;
    stage->bytes = high - low;
    stage->device_start = stki_address(tensor->data, low);
    stage->block = stki_block_alloc(NULL, stage->bytes, STAGE_ALIGNMENT);
    if (!stage->block)
        return stki_fail_memory(err, stage->bytes, "a copy of a device tensor");
    stage->host.data = stki_address(stage->block, -low);
    return STK_OK;
}

stk_status stki_stage_begin(stki_stage *stage, const stk_tensor *tensor, stk_error *err)
{
    stk_status status = prepare(stage, tensor, err);

    if (status != STK_OK || !stage->block)
        return status;
    status = stki_device_copy_now(stage->device, stage->block, false, stage->device_start, true, stage->bytes, err);
    if (status != STK_OK)
        stki_stage_end(stage);
    return status;
}

stk_status stki_stage_begin_write(stki_stage *stage, const stk_tensor *tensor, stk_error *err)
{
    stk_status status;

    if (!stki_tensor_is_dense(tensor)) /* commit also writes the gaps, so they must be read first */
        return stki_stage_begin(stage, tensor, err);
    status = prepare(stage, tensor, err);
#ifdef STKI_POISON
    if (status == STK_OK && stage->block)
        memset(stage->block, 0xA5, (size_t)stage->bytes); /* the contents are undefined */
#endif
    return status;
}

stk_status stki_stage_commit(stki_stage *stage, stk_error *err)
{
    if (!stage->block)
        return STK_OK;
    return stki_device_copy_now(stage->device, stage->device_start, true, stage->block, false, stage->bytes, err);
}

void stki_stage_end(stki_stage *stage)
{
    stki_block_free(NULL, stage->block, stage->bytes, STAGE_ALIGNMENT);
    stage->block = NULL;
}
