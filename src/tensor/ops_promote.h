/* ops_promote.h: type promotion of operands, and which results may be stored in which dtype. */
#ifndef STKI_OPS_PROMOTE_H
#define STKI_OPS_PROMOTE_H

#include <stoker/ops.h>

/* Whether a result of dtype `from` may be stored in a tensor of dtype `to`. Within a category narrowing is allowed. */
bool stki_can_store(stk_dtype from, stk_dtype to);
/* The dtype that the loops compute `dtype` in: f32 for f16 and bf16. */
stk_dtype stki_compute_dtype(stk_dtype dtype);
/* Fails with STK_E_UNSUPPORTED if the tensor is complex, an 8-bit float or byte-swapped. `what` names the operation. */
stk_status stki_check_computable(const stk_tensor *tensor, const char *what, stk_error *err);

#endif
