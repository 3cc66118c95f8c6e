/* stage.h: a tensor of another memory space as a tensor of ordinary memory, for work that only the processor can do.
 * The bytes from its first to its last element are copied over, strides and gaps included. A tensor that the processor
 * reaches is used as it is, at no cost. The copies stand in the thread's current stream of the device and are done when
 * the call returns.
 */
#ifndef STKI_STAGE_H
#define STKI_STAGE_H

#include <stoker/tensor.h>

typedef struct stki_stage {
    stk_tensor host; /* borrowed: same shape and strides, data in ordinary memory */
    stk_device *device;
    void *block; /* NULL: nothing was copied */
    void *device_start;
    int64_t bytes;
} stki_stage;

/* After a failure there is nothing to end. */
stk_status stki_stage_begin(stki_stage *stage, const stk_tensor *tensor, stk_error *err);
/* For a tensor all of whose elements are written before the commit: what they were before is copied only where gaps lie
 * between them. */
stk_status stki_stage_begin_write(stki_stage *stage, const stk_tensor *tensor, stk_error *err);
/* Sends the bytes back, if they were copied; then end. */
stk_status stki_stage_commit(stki_stage *stage, stk_error *err);
void stki_stage_end(stki_stage *stage);

/* Plain bytes between a device and ordinary memory of any kind, behind what the thread's current stream holds. Done
 * when it returns. */
stk_status stki_device_copy_now(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                                int64_t bytes, stk_error *err);

#endif
