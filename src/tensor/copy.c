/* copy.c: strided copies and casts in memory that the processor reaches: plan the axes, decide the pattern of the inner
 * ones, walk over the rest.
 */
#include "copy_internal.h"
#include "float_control.h"
#include "tensor_internal.h"
#include <string.h>

void stki_copy_strided_as(enum stki_isa isa, enum stki_stores stores, void *dst, stk_dtype dst_dtype,
                          const int64_t *dst_strides, const void *src, stk_dtype src_dtype, const int64_t *src_strides,
                          bool src_swapped, int ndim, const int64_t *shape)
{
    stki_copy copy = {
        .fast = stki_fast_of(isa), .dst_size = stk_dtype_size(dst_dtype), .src_size = stk_dtype_size(src_dtype)};
    stki_float_control control;
    stki_walk walk;

    stki_strided_plan(&copy.plan, 2, (const int64_t *const[]){dst_strides, src_strides}, ndim, shape, STKI_ANY_ORDER);
    if (copy.plan.count == 0)
        return;
    stki_cast_init(&copy.cast, dst_dtype, src_dtype, src_swapped);
    if (copy.fast && !copy.cast.raw && !copy.cast.swapped)
        copy.adjacent = copy.fast->cast[dst_dtype][src_dtype];
    if (copy.adjacent && copy.fast->lines)
        copy.lines = copy.fast->lines->cast[dst_dtype][src_dtype];
    stki_copy_decide(&copy, stores);
    control = stki_float_enter();
    stki_walk_begin(&walk, &copy.plan, stki_copy_inner(&copy), (const void *const[]){dst, src});
    do
        stki_copy_block(&copy, walk.at[0], walk.at[1]);
    while (stki_walk_next(&walk));
    stki_float_leave(control);
    if (copy.streaming)
        stki_store_fence();
}

void stki_copy_strided(void *dst, stk_dtype dst_dtype, const int64_t *dst_strides, const void *src, stk_dtype src_dtype,
                       const int64_t *src_strides, bool src_swapped, int ndim, const int64_t *shape)
{
    stki_copy_strided_as(stki_isa(), STKI_STORES_AUTO, dst, dst_dtype, dst_strides, src, src_dtype, src_strides,
                         src_swapped, ndim, shape);
}
