/* kernel_plan_convert.c: plans a compiled conversion of a batch of samples as one launch. The plan uses the axes and
 * coefficients of the description (convert_internal.h); the samples become one more axis. The kernels are
 *
 *     pixels  interleaved bytes to planes
 *     runs    contiguous on both sides
 *     tiles   the source is contiguous along a different axis than the destination
 *     map     everything else, any dtypes and strides */
#include "cast.h"
#include "convert_internal.h"
#include "dtype.h"
#include "error.h"
#include "kernel_nest.h"
#include <inttypes.h>
#include <stdlib.h>

bool stki_kernel_table_of_convert(const stki_convert *convert, stki_kernel_table *out)
{
    const stki_convert_pairs *pairs = &convert->pairs;

    if (convert->empty || pairs->count <= STKI_MAP_OWN)
        return false;
    *out = (stki_kernel_table){pairs->a, pairs->b, pairs->count, sizeof(float)};
    return true;
}

/* ---- axes ---- */

static stk_status plan_axes(const stki_convert *convert, int64_t dst_stride, int64_t src_stride, int64_t count,
                            stki_strided *plan, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS], strides[3][STK_MAX_DIMS];
    int ndim = 0;

    for (int i = -1; i < convert->described_count; i++) {
        const stki_axis axis = i < 0 ? (stki_axis){count, src_stride, dst_stride, 0} : convert->described[i];
        if (axis.n == 1)
            continue;
        if (ndim == STK_MAX_DIMS)
            return stki_fail(err, STK_E_UNSUPPORTED,
                             "convert on a device: batches of samples with %d axes are not supported",
                             convert->described_count);
        shape[ndim] = axis.n;
        strides[0][ndim] = axis.dst_stride;
        strides[1][ndim] = axis.src_stride;
        strides[2][ndim] = axis.channel_step;
        ndim++;
    }
    stki_strided_plan(plan, 3, (const int64_t *const[]){strides[0], strides[1], strides[2]}, ndim, shape,
                      STKI_ANY_ORDER);
    return STK_OK;
}

/* ---- convert ---- */

static stki_map_table table_of(const stki_convert_pairs *pairs, const void *far)
{
    stki_map_table table = {.far = far, .count = pairs->count};

    for (int64_t c = 0; c < pairs->count && !far; c++) {
        table.own.f32[0][c] = pairs->a[c];
        table.own.f32[1][c] = pairs->b[c];
    }
    return table;
}

/* A cast to float equals x * 1 + -0.0 for all x, and 1 and -0.0 are the coefficients of a conversion without
 * arithmetic. */
static bool has_arithmetic(const stki_convert *convert)
{
    stk_dtype dst = convert->dst_dtype;
    bool floating = dst == STK_F16 || dst == STK_BF16 || dst == STK_F32;

    return convert->arithmetic || (floating && (dst != convert->src_dtype || convert->src_swapped) &&
                                   stki_convert_src_of(convert->src_dtype) != STKI_SRC_KINDS);
}

stk_status stki_kernel_plan_convert(const stki_convert *convert, void *dst, int64_t dst_stride, const void *src,
                                    int64_t src_stride, int64_t count, const void *far, stki_launch *out,
                                    stk_error *err)
{
    const stki_levels levels = {convert->lane.zero_point, convert->lane.low, convert->lane.high};
    const bool arithmetic = has_arithmetic(convert);
    const bool raw = !convert->src_swapped && stki_same_bits(convert->dst_dtype, convert->src_dtype);
    stki_map_plan map = {.kind = arithmetic ? STKI_MAP_AFFINE
                                 : raw      ? STKI_MAP_RAW
                                            : STKI_MAP_CAST,
                         .dst_dtype = convert->dst_dtype,
                         .src_dtype = convert->src_dtype,
                         .swapped = convert->src_swapped,
                         .dst = dst,
                         .src = src};
    stki_strided plan;
    stk_status status;

    memset(out, 0, sizeof *out);
    if (convert->empty || count <= 0)
        return STK_OK;
    out->moved_bytes = count * (stki_convert_bytes_read(convert) + stki_convert_bytes_written(convert));
    status = plan_axes(convert, dst_stride, src_stride, count, &plan, err);
    if (status != STK_OK)
        return status;
    if (map.kind != STKI_MAP_CAST && stki_plan_pixels(&map, convert, &plan, levels, out))
        return STK_OK;
    if (arithmetic && stki_plan_runs(&map, &plan, convert->pairs.count, out)) {
        out->args.runs.table = table_of(&convert->pairs, far);
        out->args.runs.levels = levels;
        return STK_OK;
    }
    out->args.map.table = table_of(&convert->pairs, far);
    out->args.map.levels = levels;
    return stki_plan_map(&map, &plan, out, err);
}
