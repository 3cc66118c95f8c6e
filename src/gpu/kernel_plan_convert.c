/* kernel_plan_convert.c: a compiled conversion over a batch of samples, as one launch. The conversion keeps its axes
 * and coefficients as they were described (convert_internal.h); the samples become one more axis, and a device plans
 * the whole in its own way:
 *   pixels  interleaved bytes to planes
 *   runs    side by side on both sides
 *   tiles   the source's neighbours along another axis than the destination's
 *   map     everything else, every dtype and stride
 */
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
            return stki_fail(err, STK_E_UNSUPPORTED, "convert on a device: a batch of samples with %d axes",
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

/* ---- pixels ---- */

enum { FEWEST_PIXELS = 16, NO_PLANES = -1, NO_PIXELS = -2 };

/* The axis that is the channels of interleaved pixels. */
static int find_planes(const stki_strided *plan, stk_dtype dst, int *out_step)
{
    const int last = plan->ndim - 1;
    const int64_t step = llabs(plan->strides[1][last]);
    int coefficients = NO_PLANES;

    if (plan->strides[0][last] != stk_dtype_size(dst) || (step != 3 && step != 4) || plan->strides[2][last] != 0 ||
        plan->shape[last] < FEWEST_PIXELS)
        return NO_PIXELS;
    *out_step = (int)step;
    for (int i = 0; i < last; i++)
        if (plan->strides[2][i] != 0)
            coefficients = i;
    for (int i = 0; i < last; i++)
        if (llabs(plan->strides[1][i]) == 1 && plan->shape[i] <= step && (coefficients < 0 || coefficients == i))
            return i;
    return coefficients < 0 ? NO_PLANES : NO_PIXELS;
}

/* Takes the planes out of the plan: channel c of a pixel's bytes goes to plane[c] with pair pairs[c]. */
static void take_planes(stki_strided *plan, int planes, stki_pixels_args *args, int64_t *pairs)
{
    const int64_t n = planes < 0 ? 1 : plan->shape[planes], to = planes < 0 ? 0 : plan->strides[0][planes],
                  pair = planes < 0 ? 0 : plan->strides[2][planes];
    const bool down = planes >= 0 && plan->strides[1][planes] < 0;

    args->channels = (int32_t)n;
    for (int64_t c = 0; c < n; c++) {
        int64_t index = down ? n - 1 - c : c;
        args->plane[c] = index * to;
        pairs[c] = plan->offsets[2] + index * pair;
    }
    if (down)
        plan->offsets[1] -= n - 1;
    if (planes < 0)
        return;
    for (int i = planes; i + 1 < plan->ndim; i++) {
        plan->shape[i] = plan->shape[i + 1];
        for (int k = 0; k < 3; k++)
            plan->strides[k][i] = plan->strides[k][i + 1];
    }
    plan->ndim--;
}

/* How a block's tile lies over the rows. False: there are too many. */
static bool cut_tiles(stki_pixels_args *args, int64_t row, int64_t rows, int size, stki_launch *out)
{
    const bool whole_rows = row <= STKI_PIXELS_TILE;
    const int64_t segment = whole_rows ? row : STKI_PIXELS_TILE, segments = (row + segment - 1) / segment;
    const int64_t pitch = (segment * args->step + 15 + 15) / 16 * 16 + 16, strip = 16 / size;
    int64_t tile_rows = STKI_PIXELS_TILE / segment;

    if (tile_rows > STKI_PIXELS_BYTES / pitch)
        tile_rows = STKI_PIXELS_BYTES / pitch;
    if (tile_rows > rows)
        tile_rows = rows;
    const int64_t groups = (rows + tile_rows - 1) / tile_rows;
    if (row >= INT32_MAX / 8 || rows >= INT32_MAX / 2 || groups >= INT32_MAX / segments)
        return false;
    args->row = (uint32_t)row;
    args->rows = (uint32_t)rows;
    args->tile_rows = (uint32_t)tile_rows;
    args->segment = (uint32_t)segment;
    args->segments = (uint32_t)segments;
    args->by_segments = stki_divisor_of(segments);
    args->pitch = (uint32_t)pitch;
    args->row_chunks = (uint32_t)((segment * args->step + 15 + 15) / 16);
    args->by_row_chunks = stki_divisor_of(args->row_chunks);
    args->row_strips = (uint32_t)((segment + strip - 1) / strip);
    args->by_row_strips = stki_divisor_of(args->row_strips);
    out->blocks = (uint32_t)(groups * segments);
    return true;
}

static bool plan_pixels(const stki_map_plan *map, const stki_convert *convert, const stki_strided *given,
                        stki_levels levels, stki_launch *out)
{
    const bool raw = map->kind == STKI_MAP_RAW, to_bytes = stk_dtype_size(map->dst_dtype) == 1;
    const stki_convert_pairs *pairs = &convert->pairs;
    stki_pixels_args *args = &out->args.pixels;
    stki_strided plan = *given;
    int64_t pair[STKI_PIXELS_CHANNELS];
    int step;
    const int planes = find_planes(&plan, map->dst_dtype, &step);

    if (stki_kernels_general() || stk_dtype_size(map->src_dtype) != 1 || (!raw && map->src_dtype != STK_U8) ||
        (!raw && to_bytes && !convert->lane.tame) || planes == NO_PIXELS)
        return false;
    *args = (stki_pixels_args){.step = step, .levels = levels};
    take_planes(&plan, planes, args, pair);
    const int64_t row = plan.shape[plan.ndim - 1], stride = plan.strides[1][plan.ndim - 1];
    if (!cut_tiles(args, row, stki_nest_count(&plan, 1), (int)stk_dtype_size(map->dst_dtype), out))
        return false;
    out->kernel = STKI_KERNEL_PIXELS;
    out->raw = raw;
    out->dst_dtype = raw ? STK_U8 : (int32_t)map->dst_dtype;
    out->step = step;
    out->mirrored = stride < 0;
    args->dst = map->dst + plan.offsets[0];
    args->src = map->src + plan.offsets[1] + (stride < 0 ? (row - 1) * stride : 0);
    for (int c = 0; c < args->channels; c++) {
        args->a[c] = pairs->a[pair[c]];
        args->b[c] = pairs->b[pair[c]];
    }
    stki_nest_of(&args->nest, &plan, 1, 2);
    return true;
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

/* A cast to a float is x * 1 + -0.0 for every x: the pair that a conversion without arithmetic has. */
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
    if (map.kind != STKI_MAP_CAST && plan_pixels(&map, convert, &plan, levels, out))
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
