/* kernel_plan_fast.c: see kernel_nest.h. Selects the kernels for common cases and sets their arguments. */
#include "convert_internal.h"
#include "dtype.h"
#include "kernel_nest.h"
#include <stdlib.h>

/* ---- tiles ---- */

/* Moves the axis with the source's smallest stride before the last one, if it is not the last one and both are long
 * enough for tiles. */
static bool choose_tiles(stki_strided *plan)
{
    enum { SHORTEST = 12 };
    const int last = plan->ndim - 1;
    int near = last;

    for (int i = 0; i < last; i++)
        if (plan->strides[1][i] != 0 && llabs(plan->strides[1][i]) < llabs(plan->strides[1][near]))
            near = i;
    if (near == last || plan->shape[near] < SHORTEST || plan->shape[last] < SHORTEST)
        return false;
    stki_strided_second_last(plan, near);
    return true;
}

static bool tiled_blocks(const stki_strided *plan, stki_launch *out)
{
    stki_map_args *args = &out->args.map;
    const int64_t columns = (plan->shape[plan->ndim - 1] + STKI_MAP_TILE - 1) / STKI_MAP_TILE,
                  rows = (plan->shape[plan->ndim - 2] + STKI_MAP_TILE - 1) / STKI_MAP_TILE,
                  outer = stki_nest_count(plan, 2);

    if (columns >= STKI_NARROW || rows >= STKI_NARROW || outer >= STKI_NARROW ||
        (double)columns * (double)rows * (double)outer >= 2e9)
        return false;
    args->tile_columns = (uint32_t)columns;
    args->tile_rows = (uint32_t)rows;
    args->by_tile_columns = stki_divisor_of(columns);
    args->by_tile_rows = stki_divisor_of(rows);
    out->blocks = (uint32_t)(columns * rows * outer);
    return true;
}

bool stki_plan_tiles(stki_strided *plan, stki_launch *out)
{
    return choose_tiles(plan) && tiled_blocks(plan, out);
}

/* ---- runs ---- */

/* The pairs of dtypes that kernels_convert.cu instantiates. */
static bool runs_pair(stk_dtype dst, stk_dtype src, bool pattern)
{
    bool from = src == STK_U8 || src == STK_F16 || src == STK_BF16 || src == STK_F32;
    bool to = dst == STK_U8 || dst == STK_I8 || dst == STK_F16 || dst == STK_BF16 || dst == STK_F32;

    return from && to && (!pattern || src == STK_U8 || src == STK_F32);
}

bool stki_plan_runs(const stki_map_plan *map, const stki_strided *given, int64_t channels, stki_launch *out)
{
    stki_runs_args *args = &out->args.runs;
    stki_strided plan = *given;
    const int64_t dst_size = stk_dtype_size(map->dst_dtype), src_size = stk_dtype_size(map->src_dtype);
    const int64_t strip = 16 / (dst_size > src_size ? dst_size : src_size);
    int last = plan.ndim - 1;
    const bool pattern = plan.strides[2][last] == 1;

    if (!runs_pair(map->dst_dtype, map->src_dtype, pattern) || map->swapped || plan.strides[2][last] < 0 ||
        (pattern && (plan.shape[last] != channels || plan.offsets[2] != 0)))
        return false;
    if (pattern)
        stki_strided_join_rows(&plan);
    last = plan.ndim - 1;
    const int64_t row = plan.shape[last], row_strips = (row + strip - 1) / strip, rows = stki_nest_count(&plan, 1);
    if (plan.strides[0][last] != dst_size || plan.strides[1][last] != src_size || row < 2 * strip ||
        !stki_nest_aligned(&plan, 1, 0, map->dst, strip * dst_size) ||
        !stki_nest_aligned(&plan, 1, 1, map->src, strip * src_size) || row_strips >= STKI_NARROW / rows)
        return false;
    out->kernel = STKI_KERNEL_RUNS;
    out->dst_dtype = (int32_t)map->dst_dtype;
    out->src_dtype = (int32_t)map->src_dtype;
    out->pattern = pattern;
    args->dst = map->dst + plan.offsets[0];
    args->src = map->src + plan.offsets[1];
    args->first_channel = plan.offsets[2];
    args->row = row;
    args->period = pattern ? channels : 0;
    args->row_strips = (uint32_t)row_strips;
    args->by_row_strips = stki_divisor_of(row_strips);
    args->strips = (uint32_t)(row_strips * rows);
    stki_nest_of(&args->nest, &plan, 1, 3);
    return stki_launch_blocks(out, args->strips, 1, NULL) == STK_OK;
}

/* ---- pixels ---- */

enum { FEWEST_PIXELS = 16, NO_PLANES = -1, NO_PIXELS = -2 };

/* Finds the channel axis of interleaved pixels. */
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

/* Removes the axis of the planes from the plan: channel c is written to args->plane[c] with coefficient pair pairs[c].
 */
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

/* Divides the rows into tiles, one per block. False: there are too many. */
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

bool stki_plan_pixels(const stki_map_plan *map, const stki_convert *convert, const stki_strided *given,
                      stki_levels levels, stki_launch *out)
{
    const bool raw = map->kind == STKI_MAP_RAW, to_bytes = stk_dtype_size(map->dst_dtype) == 1;
    const stki_convert_pairs *pairs = &convert->pairs;
    stki_pixels_args *args = &out->args.pixels;
    stki_strided plan = *given;
    int64_t pair[STKI_PIXELS_CHANNELS];
    int step;
    const int planes = find_planes(&plan, map->dst_dtype, &step);

    if (stk_dtype_size(map->src_dtype) != 1 || (!raw && map->src_dtype != STK_U8) ||
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

/* ---- binary runs ---- */

bool stki_plan_is_binary_runs(const stki_elementwise_job *job, const stki_strided *plan)
{
    const stk_dtype dtype = job->out->dtype;
    const bool halves = dtype == STK_F16 || dtype == STK_BF16;

    if (plan->ndim != 1 || (dtype != STK_F32 && !halves) || job->common != dtype || job->writes == STK_BOOL ||
        plan->strides[0][0] != stk_dtype_size(dtype) || !stki_nest_aligned(plan, 1, 0, job->out->data, 16))
        return false;
    for (int k = 0; k < 2; k++)
        if (job->in[k] && (job->in[k]->dtype != dtype || plan->strides[k + 1][0] != stk_dtype_size(dtype) ||
                           !stki_nest_aligned(plan, 1, k + 1, job->in[k]->data, 16)))
            return false;
    return true;
}
