/* kernel_plan_sum.c: divides a sum into blocks, see kernel_sum.h. The division depends only on the shapes, so that the
 * result is the same on every device. */
#include "dtype.h"
#include "error.h"
#include "kernel_nest.h"
#include <inttypes.h>

enum {
    ENOUGH_BLOCKS = 2048, /* to keep any device busy */
    SHORT_ROW = 32,       /* too short for a block */
    LEAST_ROW_PART = 4096,
    LEAST_CELL_PART = 64
};

/* The kept or the reduced axes as a plan. */
static void part_axes(const stki_strided *plan, bool reduced, stki_strided *out)
{
    *out = (stki_strided){.operands = 2};
    for (int i = 0; i < plan->ndim; i++) {
        if ((plan->strides[0][i] == 0) != reduced)
            continue;
        out->shape[out->ndim] = plan->shape[i];
        out->strides[0][out->ndim] = plan->strides[0][i];
        out->strides[1][out->ndim] = plan->strides[1][i];
        out->ndim++;
    }
    out->count = stki_nest_count(out, 0);
}

static void cut(stki_sum_args *args, bool rows)
{
    const int64_t gone = (int64_t)args->gone, cells = (int64_t)args->cells;
    const int64_t blocks = rows ? cells : (cells + STKI_BLOCK_THREADS - 1) / STKI_BLOCK_THREADS;
    const int64_t least = rows ? LEAST_ROW_PART : LEAST_CELL_PART;
    int64_t parts = ENOUGH_BLOCKS / blocks, part;

    if (parts > (gone + least - 1) / least)
        parts = (gone + least - 1) / least;
    if (parts < 1)
        parts = 1;
    part = (gone + parts - 1) / parts;
    part = (part + STKI_BLOCK_THREADS - 1) / STKI_BLOCK_THREADS * STKI_BLOCK_THREADS;
    if (!rows && parts > 1)
        part = (gone + parts - 1) / parts;
    args->part = (uint64_t)part;
    args->parts = (uint32_t)((gone + part - 1) / part);
    args->by_parts = stki_divisor_of(args->parts);
}

stk_status stki_kernel_plan_sum(const stki_sum_job *job, stki_launch out[2], int *out_count, int64_t *out_scratch,
                                stk_error *err)
{
    stki_sum_args *args = &out[0].args.sum;
    int64_t strides[STK_MAX_DIMS];
    stki_strided plan, kept, gone;
    stk_status status;

    memset(out, 0, 2 * sizeof *out);
    *out_count = 1;
    *out_scratch = 0;
    stki_reduced_strides(job->out, job->in, job->reduced, job->keep, strides);
    stki_strided_plan(&plan, 2, (const int64_t *const[]){job->in->strides, strides}, job->in->ndim, job->in->shape,
                      STKI_ANY_ORDER);
    if (plan.count == 0)
        return stki_fail(err, STK_E_UNSUPPORTED, "a sum without elements needs no kernel");
    for (int i = 0; i < plan.ndim; i++) { /* sides: out, in */
        int64_t in = plan.strides[0][i];
        plan.strides[0][i] = plan.strides[1][i];
        plan.strides[1][i] = in;
    }
    const bool near_goes = plan.strides[0][plan.ndim - 1] == 0;
    part_axes(&plan, false, &kept);
    part_axes(&plan, true, &gone);
    out[0].moved_bytes = stk_tensor_nbytes(job->in);
    args->out = (uint8_t *)job->out->data + plan.offsets[1];
    args->in = (const uint8_t *)job->in->data + plan.offsets[0];
    args->cells = (uint64_t)kept.count;
    args->gone = (uint64_t)gone.count;
    args->in_dtype = (int32_t)job->in->dtype;
    args->via = (int32_t)job->out->dtype;
    args->divisor = job->divisor;
    stki_nest_of(&args->kept, &kept, 0, 2);
    stki_nest_of(&args->reduced, &gone, 0, 2);

    const bool rows = near_goes && gone.count > SHORT_ROW;
    cut(args, rows);
    out[0].kernel = rows ? STKI_KERNEL_SUM_ROWS : STKI_KERNEL_SUM_CELLS;
    const int64_t blocks = rows ? kept.count : (kept.count + STKI_BLOCK_THREADS - 1) / STKI_BLOCK_THREADS;
    if (blocks > INT32_MAX / (int64_t)args->parts)
        return stki_fail(err, STK_E_UNSUPPORTED, "%" PRId64 " sums are too many for one kernel launch", kept.count);
    out[0].blocks = (uint32_t)(blocks * args->parts);
    if (args->parts == 1)
        return STK_OK;
    *out_count = 2;
    *out_scratch = 16 * kept.count * args->parts;
    out[1] = out[0];
    out[1].moved_bytes = *out_scratch;
    out[1].kernel = STKI_KERNEL_SUM_FINISH;
    status = stki_launch_blocks(&out[1], args->cells, 1, err);
    return status;
}

void stki_kernel_sum_scratch(stki_launch *launches, int count, void *scratch)
{
    for (int i = 0; i < count; i++)
        launches[i].args.sum.scratch = scratch;
}
