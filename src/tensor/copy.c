/* copy.c: strided copies and casts in memory that the processor reaches. */
#include "cast.h"
#include "strided.h"
#include "tensor_internal.h"

void stki_copy_strided(void *dst, stk_dtype dst_dtype, const int64_t *dst_strides, const void *src, stk_dtype src_dtype,
                       const int64_t *src_strides, bool src_swapped, int ndim, const int64_t *shape)
{
    stki_cast cast;
    stki_strided plan;
    stki_walk walk;
    int row;

    stki_cast_init(&cast, dst_dtype, src_dtype, src_swapped);
    stki_strided_plan(&plan, 2, (const int64_t *const[]){dst_strides, src_strides}, ndim, shape, STKI_ANY_ORDER);
    if (!stki_walk_begin(&walk, &plan, 1, (const void *const[]){dst, src}))
        return;
    row = plan.ndim - 1;
    do
        stki_cast_row(&cast, walk.at[0], plan.strides[0][row], walk.at[1], plan.strides[1][row], plan.shape[row]);
    while (stki_walk_next(&walk));
}
