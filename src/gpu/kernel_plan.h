/* kernel_plan.h: plans the launches for a device operation. Nothing is allocated and only the launch is written;
 * planning takes a few microseconds and is repeated for every call. All addresses are in device memory.
 * STK_E_UNSUPPORTED: there is no kernel for the operation, which the message names. */
#ifndef STKI_KERNEL_PLAN_H
#define STKI_KERNEL_PLAN_H

#include "convert.h"
#include "device_kernels.h"
#include "kernel_launch.h"

/* Per-channel numbers that do not fit into a launch and must therefore be in device memory, in this order. The table
 * borrows the numbers. */
typedef struct stki_kernel_table {
    const void *first, *second; /* `count` numbers each; consecutive arrays in device memory */
    int64_t count, size;        /* `size`: bytes per number */
} stki_kernel_table;

/* Return false if the numbers fit into the launch; *out is then unchanged. */
bool stki_kernel_table_of_convert(const stki_convert *convert, stki_kernel_table *out);
bool stki_kernel_table_of_quantize(const stki_quantize_job *job, stki_kernel_table *out);

/* Plans the conversion of `count` samples; the strides are the bytes from one to the next. `far`: the table in device
 * memory; NULL if it fits. */
stk_status stki_kernel_plan_convert(const stki_convert *convert, void *dst, int64_t dst_stride, const void *src,
                                    int64_t src_stride, int64_t count, const void *far, stki_launch *out,
                                    stk_error *err);
/* Plans a copy between tensors of the same shape, with any strides and dtypes; the source may have the opposite byte
 * order. */
stk_status stki_kernel_plan_copy(const stk_tensor *dst, const stk_tensor *src, stki_launch *out, stk_error *err);
stk_status stki_kernel_plan_quantize(const stki_quantize_job *job, const void *far, stki_launch *out, stk_error *err);
stk_status stki_kernel_plan_elementwise(const stki_elementwise_job *job, stki_launch *out, stk_error *err);
/* Plans one launch, or two that share *out_scratch bytes of scratch memory (0: none), whose address
 * stki_kernel_sum_scratch then sets in both. */
stk_status stki_kernel_plan_sum(const stki_sum_job *job, stki_launch out[2], int *out_count, int64_t *out_scratch,
                                stk_error *err);
void stki_kernel_sum_scratch(stki_launch *launches, int count, void *scratch);

#endif
