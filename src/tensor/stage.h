/* stage.h: makes a tensor from another memory space accessible as a tensor in host memory, for work that only the CPU
 * can do. The bytes from its first to its last element are copied, including gaps between them. A tensor that the CPU
 * can access is used directly at no cost. The copies are queued in the thread's current stream of the device and are
 * complete when the call returns. */
#ifndef STKI_STAGE_H
#define STKI_STAGE_H

#include <stoker/tensor.h>

typedef struct stki_stage {
    stk_tensor host; /* borrowed: same shape and strides, data in host memory */
    stk_device *device;
    void *block; /* NULL: no copy was made */
    void *device_start;
    int64_t bytes;
} stki_stage;

/* After a failure, stki_stage_end need not be called. */
stk_status stki_stage_begin(stki_stage *stage, const stk_tensor *tensor, stk_error *err);
/* Like stki_stage_begin, for a tensor whose elements are all written before the commit: the old contents are copied
 * only if there are gaps between elements. */
stk_status stki_stage_begin_write(stki_stage *stage, const stk_tensor *tensor, stk_error *err);
/* Copies the bytes to the device; no-op for host memory. The caller must still call stki_stage_end, even after a
 * failure. */
stk_status stki_stage_commit(stki_stage *stage, stk_error *err);
void stki_stage_end(stki_stage *stage);

/* Copies bytes between a device and host memory of any kind, after the work in the thread's current stream. The copy is
 * complete when the call returns. */
stk_status stki_device_copy_now(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                                int64_t bytes, stk_error *err);

#endif
