/* device_kernels.h: the arguments of a device's kernels (device_table.h). All tensors are in the device's memory; the
 * core has checked and allocated them. The structs and everything they point to, except the tensors' memory, are read
 * only during the call; a quantizer must stay valid until the stream has executed the work. */
#ifndef STKI_DEVICE_KERNELS_H
#define STKI_DEVICE_KERNELS_H

#include "ops_loops.h"
#include <stoker/quant.h>
#include <stoker/tensor.h>

/* out = a op b, operands broadcast to the shape of `out`. The dtypes are those of stki_elementwise (ops_elementwise.h):
 * operands are converted to `common`, then to `compute`; results from `writes` to `result`, then to the dtype of `out`.
 */
typedef struct stki_elementwise_job {
    enum stki_loop loop;
    stk_dtype common, compute, writes, result;
    const stk_tensor *out, *in[2]; /* in[i] NULL: use constants[i] */
    char constants[2][16];         /* in the compute dtype; for clamp, [1] holds low followed by high */
} stki_elementwise_job;

/* out = sum of `in` over the axes with reduced[i], elements cast to the dtype of `out` first; divided by `divisor`
 * unless that is 0. `out` has the axes that are not reduced; with `keep`, it also has the reduced axes, with length 1.
 * There is at least one element. */
typedef struct stki_sum_job {
    const stk_tensor *out, *in;
    const bool *reduced;
    bool keep;
    double divisor;
} stki_sum_job;

/* dst = quantized src (f32 to integers), or the inverse if `back`. */
typedef struct stki_quantize_job {
    const stk_quant *quant;
    const stk_tensor *dst, *src;
    bool back;
} stki_quantize_job;

#endif
