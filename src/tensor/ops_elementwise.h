/* ops_elementwise.h: runs an element-wise operation over whole tensors: any shapes that broadcast, any strides, and any
 * dtypes that can be cast to the one that the operation computes in. */
#ifndef STKI_OPS_ELEMENTWISE_H
#define STKI_OPS_ELEMENTWISE_H

#include "ops_loops.h"
#include <stoker/tensor.h>

typedef struct stki_elementwise {
    enum stki_isa isa;
    enum stki_loop loop;
    enum stki_stores stores; /* auto: non-temporal if the output is larger than the caches and not also an input */
    stk_dtype common;        /* operands are first converted to this dtype, even if `compute` is wider */
    stk_dtype compute;       /* input of the loops: common, or f32 for f16 and bf16 */
    stk_dtype writes;        /* output of the loops: compute, or bool */
    stk_dtype result;        /* the result is rounded to it before the cast to the output's dtype: common, or bool */
} stki_elementwise;

/* An operand: a tensor, or (tensor NULL) constants in the compute dtype, which the loop interprets. */
typedef struct stki_input {
    const stk_tensor *tensor;
    const void *constants;
} stki_input;

/* The tensors must be in host memory, with shapes that broadcast to that of `out`; at most one operand is constant.
 * Arguments are not checked. */
void stki_elementwise_run(const stki_elementwise *op, const stk_tensor *out, stki_input a, stki_input b);

#endif
