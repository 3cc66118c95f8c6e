/* ops_promote.h: the dtype in which operands meet, and which results may be stored in which dtype. */
#ifndef STKI_OPS_PROMOTE_H
#define STKI_OPS_PROMOTE_H

#include <stoker/ops.h>

/* May a result of `from` be written into a tensor of `to`? Inside a category it may narrow. */
bool stki_can_store(stk_dtype from, stk_dtype to);
/* The dtype of the loops that compute in `dtype`: f16 and bf16 do so in f32. */
stk_dtype stki_compute_dtype(stk_dtype dtype);
/* STK_E_UNSUPPORTED: complex, 8-bit float or byte-swapped. `what` names the operation. */
stk_status stki_check_computable(const stk_tensor *tensor, const char *what, stk_error *err);

#endif
