/* broadcast.c: broadcasting of shapes and tensors. */
#include "error.h"
#include "profile_scope.h"
#include "tensor_internal.h"
#include <string.h>

stk_status stki_broadcast_shape(int a_ndim, const int64_t *a_shape, int b_ndim, const int64_t *b_shape, int *out_ndim,
                                int64_t *shape, stk_error *err)
{
    int ndim = a_ndim > b_ndim ? a_ndim : b_ndim;
    int64_t common[STK_MAX_DIMS];

    for (int i = 0; i < ndim; i++) { /* from the right */
        int64_t a = i < a_ndim ? a_shape[a_ndim - 1 - i] : 1, b = i < b_ndim ? b_shape[b_ndim - 1 - i] : 1;
        if (a != b && a != 1 && b != 1)
            return stki_fail(err, STK_E_BAD_BROADCAST, "shapes %s and %s cannot be broadcast together",
                             STKI_SHAPE(a_ndim, a_shape), STKI_SHAPE(b_ndim, b_shape));
        common[ndim - 1 - i] = a == 1 ? b : a;
    }
    for (int i = 0; i < ndim; i++)
        shape[i] = common[i];
    *out_ndim = ndim;
    return STK_OK;
}

stk_status stk_tensor_broadcast(const stk_tensor *a, const stk_tensor *b, stk_tensor *out_a, stk_tensor *out_b,
                                stk_error *err)
{
    STKI_PROFILE("broadcast");
    int64_t shape[STK_MAX_DIMS];
    stk_tensor wide_a;
    int ndim;
    stk_status status = stki_broadcast_shape(a->ndim, a->shape, b->ndim, b->shape, &ndim, shape, err);

    status = status != STK_OK ? status : stk_tensor_expand(a, ndim, shape, &wide_a, err);
    if (status != STK_OK)
        return status;
    status = stk_tensor_expand(b, ndim, shape, out_b, err);
    if (status != STK_OK) {
        stk_tensor_release(&wide_a);
        return status;
    }
    *out_a = wide_a;
    return STK_OK;
}
