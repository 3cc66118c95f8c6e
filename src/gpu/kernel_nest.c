/* kernel_nest.c: see kernel_nest.h. */
#include "kernel_nest.h"
#include "error.h"
#include <inttypes.h>

enum { MOST_BLOCKS = INT32_MAX };

stki_divisor stki_divisor_of(int64_t n)
{
    stki_divisor by = {1, 0};
    uint64_t divisor = (uint64_t)n;

    if (n < 1 || n >= STKI_NARROW)
        return by;
    while ((UINT64_C(1) << by.shift) < divisor)
        by.shift++;
    by.multiplier = (uint32_t)((((UINT64_C(1) << by.shift) - divisor) << 32) / divisor + 1);
    return by;
}

int64_t stki_nest_count(const stki_strided *plan, int inner)
{
    int64_t count = 1;

    for (int i = 0; i < plan->ndim - inner; i++)
        count *= plan->shape[i];
    return count;
}

void stki_nest_of(stki_nest *nest, const stki_strided *plan, int inner, int operands)
{
    nest->count = 0;
    for (int i = plan->ndim - 1 - inner; i >= 0; i--) {
        stki_axis_of *axis = &nest->axes[nest->count++];
        axis->n = plan->shape[i];
        axis->by = stki_divisor_of(axis->n);
        for (int k = 0; k < operands; k++)
            axis->stride[k] = plan->strides[k][i];
    }
    if (nest->count == 0)
        nest->axes[nest->count++] = (stki_axis_of){.n = 1, .by = {1, 0}};
    nest->wide = stki_nest_count(plan, inner) >= STKI_NARROW;
}

bool stki_nest_aligned(const stki_strided *plan, int inner, int operand, const void *base, int64_t alignment)
{
    if (((intptr_t)base + plan->offsets[operand]) % alignment != 0)
        return false;
    for (int i = 0; i < plan->ndim - inner; i++)
        if (plan->strides[operand][i] % alignment != 0)
            return false;
    return true;
}

stk_status stki_launch_blocks(stki_launch *launch, uint64_t threads, uint64_t a_thread, stk_error *err)
{
    const uint64_t block = STKI_BLOCK_THREADS * a_thread, blocks = threads / block + (threads % block != 0);

    if (blocks > MOST_BLOCKS)
        return stki_fail(err, STK_E_UNSUPPORTED, "%" PRIu64 " elements are too many for one kernel launch", threads);
    launch->blocks = (uint32_t)blocks;
    return STK_OK;
}
