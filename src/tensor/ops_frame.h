/* ops_frame.h: the common setup of operations: the shape and device that operands share, new outputs, and copies of
 * tensors that the CPU cannot access. */
#ifndef STKI_OPS_FRAME_H
#define STKI_OPS_FRAME_H

#include <stoker/ops.h>

typedef struct stki_frame {
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    stk_device *device;
} stki_frame;

/* STK_E_BAD_BROADCAST, STK_E_BAD_DEVICE. Scalars are compatible with everything. */
stk_status stki_frame_of(stki_frame *frame, const stk_operand *operands, int count, stk_error *err);
/* Checks that `out` can be the output of this frame. STK_E_BAD_BROADCAST, STK_E_BAD_DEVICE, STK_E_BAD_DTYPE. */
stk_status stki_frame_accepts(const stki_frame *frame, stk_dtype result, const stk_tensor *out, stk_error *err);
/* Creates a tensor, row-major unless all operands of the full shape share another dense layout. */
stk_status stki_frame_fresh(const stki_frame *frame, stk_dtype dtype, const stk_operand *operands, int count,
                            stk_tensor *out, stk_error *err);

/* Fails with STK_E_BAD_DEVICE unless all tensors are on one device; NULL entries are ignored. */
stk_status stki_check_one_device(const stk_tensor *const *tensors, int count, stk_error *err);

/* Whether the byte ranges of the two tensors overlap. */
bool stki_may_share(const stk_tensor *a, const stk_tensor *b);

enum { STKI_HOST_TENSORS = 4 };
typedef stk_status (*stki_host_fn)(void *context, const stk_tensor *const *tensors, stk_error *err);

/* Calls `work` with tensors in host memory: the given ones, or copies with the same strides. The first `out_count` are
 * outputs and are copied back on success. NULL entries are passed on as NULL. */
stk_status stki_run_on_host(const stk_tensor *const *tensors, int count, int out_count, stki_host_fn work,
                            void *context, stk_error *err);

#endif
