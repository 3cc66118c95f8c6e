/* kernel_plan.c: see kernel_plan.h; copies, element-wise operations and quantization. Conversions are in
 * kernel_plan_convert.c, sums in kernel_plan_sum.c. */
#include "kernel_plan.h"
#include "cast.h"
#include "dtype.h"
#include "error.h"
#include "kernel_nest.h"
#include "quant_internal.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdlib.h>

_Static_assert(sizeof(stki_launch) <= 4096,
               "kernel arguments may take at most 4 KiB, and so may a job of a host stream");
_Static_assert((int)STKI_BINARY_ADD == (int)STKI_LOOP_ADD && (int)STKI_BINARY_DIV == (int)STKI_LOOP_DIV &&
                   (int)STKI_BINARY_TRUNC_DIV == (int)STKI_LOOP_TRUNC_DIV && (int)STKI_BINARY_LE == (int)STKI_LOOP_LE &&
                   (int)STKI_BINARY_CLAMP == (int)STKI_LOOP_CLAMP && (int)STKI_BINARY_KINDS == (int)STKI_LOOPS,
               "kernels and loops must number the operations identically");

/* ---- maps ---- */

/* Copies contiguous elements as larger ones, up to 16 bytes, if addresses, strides and lengths allow it. */
static void widen(const stki_map_plan *map, stki_strided *plan, int64_t *size)
{
    const int last = plan->ndim - 1;
    int64_t bytes = 16;

    if (plan->strides[0][last] != *size || plan->strides[1][last] != *size)
        return;
    while (bytes > *size &&
           (plan->shape[last] * *size % bytes != 0 || !stki_nest_aligned(plan, 1, 0, map->dst, bytes) ||
            !stki_nest_aligned(plan, 1, 1, map->src, bytes)))
        bytes /= 2;
    plan->shape[last] = plan->shape[last] * *size / bytes;
    plan->strides[0][last] = plan->strides[1][last] = bytes;
    plan->count = stki_nest_count(plan, 0);
    *size = bytes;
}

stk_status stki_plan_map(const stki_map_plan *map, stki_strided *plan, stki_launch *out, stk_error *err)
{
    stki_map_args *args = &out->args.map;
    int64_t dst_size = stk_dtype_size(map->dst_dtype), src_size = stk_dtype_size(map->src_dtype);

    out->kernel = STKI_KERNEL_MAP_LINEAR;
    out->map_kind = (int32_t)map->kind;
    if (map->kind == STKI_MAP_RAW) {
        widen(map, plan, &src_size);
        dst_size = src_size;
    }
    args->dst = map->dst + plan->offsets[0];
    args->src = map->src + plan->offsets[1];
    args->first_channel = plan->offsets[2];
    args->count = (uint64_t)plan->count;
    args->dst_dtype = (int32_t)map->dst_dtype;
    args->src_dtype = (int32_t)map->src_dtype;
    args->dst_size = (int32_t)dst_size;
    args->src_size = (int32_t)src_size;
    args->swapped = map->swapped;
    if (stki_plan_tiles(plan, out)) {
        out->kernel = STKI_KERNEL_MAP_TILED;
        stki_nest_of(&args->nest, plan, 0, 3);
        args->nest.wide = false; /* indices are computed only for the outer axes */
        return STK_OK;
    }
    stki_nest_of(&args->nest, plan, 0, 3);
    return stki_launch_blocks(out, args->count, STKI_MAP_EACH, err);
}

/* ---- copies ---- */

/* A cast to float equals x * 1 + -0.0 for all x. */
static void no_change(stki_launch *out)
{
    out->args.runs.table = (stki_map_table){.count = 1, .own.f32 = {{1.0f}, {-0.0f}}};
    out->args.runs.levels = (stki_levels){0};
}

stk_status stki_kernel_plan_copy(const stk_tensor *dst, const stk_tensor *src, stki_launch *out, stk_error *err)
{
    static const int64_t none[STK_MAX_DIMS] = {0};
    stki_map_plan map = {.kind = STKI_MAP_CAST,
                         .dst_dtype = dst->dtype,
                         .src_dtype = src->dtype,
                         .swapped = (src->flags & STK_TENSOR_SWAPPED) != 0 && stk_dtype_size(src->dtype) > 1,
                         .dst = dst->data,
                         .src = src->data};
    stki_strided plan;

    memset(out, 0, sizeof *out);
    stki_strided_plan(&plan, 3, (const int64_t *const[]){dst->strides, src->strides, none}, dst->ndim, dst->shape,
                      STKI_ANY_ORDER);
    if (plan.count == 0)
        return STK_OK;
    out->moved_bytes = plan.count * (stk_dtype_size(dst->dtype) + stk_dtype_size(src->dtype));
    if (stki_same_bits(dst->dtype, src->dtype) && !map.swapped)
        map.kind = STKI_MAP_RAW;
    else if ((dst->dtype == STK_F16 || dst->dtype == STK_BF16 || dst->dtype == STK_F32) && dst->dtype != src->dtype &&
             stki_plan_runs(&map, &plan, 1, out)) {
        no_change(out);
        return STK_OK;
    }
    return stki_plan_map(&map, &plan, out, err);
}

/* ---- quantization ---- */

bool stki_kernel_table_of_quantize(const stki_quantize_job *job, stki_kernel_table *out)
{
    const stki_quant_lane *lane = &job->quant->lane;

    if (job->quant->count <= STKI_MAP_OWN)
        return false;
    if (job->back)
        *out = (stki_kernel_table){lane->scale, lane->zero_double, job->quant->count, 8};
    else
        *out = (stki_kernel_table){lane->inverse, lane->zero_float, job->quant->count, 4};
    return true;
}

static void quantize_table(const stki_quantize_job *job, const void *far, stki_map_table *table)
{
    const stki_quant_lane *lane = &job->quant->lane;

    table->far = far;
    table->count = job->quant->count;
    for (int64_t i = 0; i < table->count && !far; i++) {
        if (job->back) {
            table->own.f64[0][i] = lane->scale[i];
            table->own.f64[1][i] = lane->zero_double[i];
        } else {
            table->own.f32[0][i] = lane->inverse[i];
            table->own.f32[1][i] = lane->zero_float[i];
        }
    }
}

stk_status stki_kernel_plan_quantize(const stki_quantize_job *job, const void *far, stki_launch *out, stk_error *err)
{
    const stk_tensor *dst = job->dst, *src = job->src;
    int64_t channels[STK_MAX_DIMS] = {0};
    stki_map_plan map = {.kind = job->back ? STKI_MAP_DEQUANTIZE : STKI_MAP_QUANTIZE,
                         .dst_dtype = dst->dtype,
                         .src_dtype = src->dtype,
                         .dst = dst->data,
                         .src = src->data};
    stki_strided plan;

    memset(out, 0, sizeof *out);
    if (job->quant->axis >= 0)
        channels[job->quant->axis] = 1;
    stki_strided_plan(&plan, 3, (const int64_t *const[]){dst->strides, src->strides, channels}, dst->ndim, dst->shape,
                      STKI_ANY_ORDER);
    if (plan.count == 0)
        return STK_OK;
    out->moved_bytes = plan.count * (stk_dtype_size(dst->dtype) + stk_dtype_size(src->dtype));
    quantize_table(job, far, &out->args.map.table);
    out->args.map.per_channel = job->quant->lane.per_channel;
    return stki_plan_map(&map, &plan, out, err);
}

/* ---- element-wise ---- */

static void binary_constants(const stki_elementwise_job *job, stki_binary_args *args)
{
    const size_t size = (size_t)stk_dtype_size(job->compute);

    for (int k = 0; k < 2; k++)
        memcpy(&args->constant[k], job->constants[k], size);
    if (job->loop == STKI_LOOP_CLAMP)
        memcpy(&args->high, job->constants[1] + size, size);
}

stk_status stki_kernel_plan_elementwise(const stki_elementwise_job *job, stki_launch *out, stk_error *err)
{
    stki_binary_args *args = &out->args.binary;
    int64_t strides[2][STK_MAX_DIMS];
    stki_strided plan;

    memset(out, 0, sizeof *out);
    for (int k = 0; k < 2; k++)
        stki_broadcast_strides(job->out, job->in[k], strides[k]);
    stki_strided_plan(&plan, 3, (const int64_t *const[]){job->out->strides, strides[0], strides[1]}, job->out->ndim,
                      job->out->shape, STKI_ANY_ORDER);
    if (plan.count == 0)
        return STK_OK;
    args->out = (uint8_t *)job->out->data + plan.offsets[0];
    for (int k = 0; k < 2; k++) {
        args->in[k] = job->in[k] ? (const uint8_t *)job->in[k]->data + plan.offsets[k + 1] : NULL;
        args->in_dtype[k] = job->in[k] ? (int32_t)job->in[k]->dtype : 0;
    }
    binary_constants(job, args);
    out->moved_bytes = stk_tensor_nbytes(job->out);
    for (int k = 0; k < 2; k++)
        out->moved_bytes += job->in[k] ? stk_tensor_nbytes(job->in[k]) : 0;
    args->count = (uint64_t)plan.count;
    args->loop = (int32_t)job->loop;
    args->common = (int32_t)job->common;
    args->compute = (int32_t)job->compute;
    args->writes = (int32_t)job->writes;
    args->result = (int32_t)job->result;
    args->out_dtype = (int32_t)job->out->dtype;
    if (stki_plan_is_binary_runs(job, &plan)) {
        out->kernel = STKI_KERNEL_BINARY_RUNS;
        out->dst_dtype = args->out_dtype;
        return stki_launch_blocks(out, args->count, (uint64_t)(16 / stk_dtype_size(job->out->dtype)), err);
    }
    out->kernel = STKI_KERNEL_BINARY_LINEAR;
    stki_nest_of(&args->nest, &plan, 0, 3);
    return stki_launch_blocks(out, args->count, STKI_BINARY_EACH, err);
}
