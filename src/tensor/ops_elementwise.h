/* ops_elementwise.h: runs one element-wise operation over whole tensors: any shapes that broadcast, any strides, any
 * dtypes that cast to the one the operation computes in.
 */
#ifndef STKI_OPS_ELEMENTWISE_H
#define STKI_OPS_ELEMENTWISE_H

#include "ops_loops.h"
#include <stoker/tensor.h>

typedef struct stki_elementwise {
    enum stki_isa isa;
    enum stki_loop loop;
    enum stki_stores stores; /* auto: past the caches if the output is larger than those and not an input too */
    stk_dtype common;        /* operands are converted to it first (where halves lose what they cannot hold) */
    stk_dtype compute;       /* what the loops read: common, or f32 for halves */
    stk_dtype writes;        /* what the loops write: compute, or bool */
    stk_dtype result;        /* what that is rounded to before it is cast to the output's dtype: common, or bool */
} stki_elementwise;

/* An operand: a tensor, or (tensor NULL) constants in the compute dtype that the loops know what to do with. */
typedef struct stki_input {
    const stk_tensor *tensor;
    const void *constants;
} stki_input;

/* Memory that the processor reaches; shapes that broadcast to that of `out`, not both constants. Nothing is checked. */
void stki_elementwise_run(const stki_elementwise *op, const stk_tensor *out, stki_input a, stki_input b);

#endif
