/* copy.c: strided copies and casts in host memory: plans the axes, selects the pattern that the inner ones form, and
 * iterates over the others.
 *
 * With every pattern, the source is gathered into runs of contiguous elements in a block that stays in the L1 cache,
 * and each run is cast to its destination. Without a cast and without streaming stores, runs are gathered directly in
 * the destination. */
#include "cast.h"
#include "fast.h"
#include "float_control.h"
#include "strided.h"
#include "tensor_internal.h"
#include <stdlib.h>
#include <string.h>

enum stki_copy_pattern {
    STKI_PATTERN_ROWS,       /* one axis: any strides, element by element */
    STKI_PATTERN_SHORT_ROWS, /* two axes, the last one short: the same, in blocks along the longer axis */
    STKI_PATTERN_BLOCKS, /* two axes: the same, in parts of rows, if the source has its smaller stride across rows */
    STKI_PATTERN_RUNS,   /* one axis, contiguous on both sides */
    STKI_PATTERN_EVERY,  /* one axis: every k-th element (possibly in reverse) to contiguous elements */
    STKI_PATTERN_INTERLEAVE,   /* two axes: planes to pixels */
    STKI_PATTERN_DEINTERLEAVE, /* two axes: pixels to planes */
    STKI_PATTERN_TILES         /* two axes: transposition */
};

typedef struct stki_copy {
    stki_strided plan; /* operand 0 is written; the inner axes are last */
    stki_cast cast;
    const stki_fast *fast;      /* NULL: plain code only */
    stki_fast_cast_fn adjacent; /* casts contiguous elements; NULL: use `cast` */
    stki_fast_lines_fn lines;   /* the same, one destination line at a time; NULL: not available */
    bool streaming;
    int64_t dst_size, src_size;
    enum stki_copy_pattern pattern;
    stki_shuffle shuffle;
    stki_tile_fn tile;
} stki_copy;

enum { LINE = 64, BLOCK = 4096, CAST_BLOCK = 4096, TILE_BLOCK = 32768 }; /* bytes */

static int size_index(int64_t size)
{
    return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
}

/* ---- adjacent elements ---- */

/* Casts into a block that stays in the L1 cache and copies it with streaming stores of whole lines. */
static void stream_cast(const stki_copy *copy, char *dst, const char *src, int64_t count)
{
    _Alignas(LINE) char block[CAST_BLOCK];
    int64_t size = copy->dst_size, first = (int64_t)(-(uintptr_t)dst % LINE) / size, whole = CAST_BLOCK / size;

    for (int64_t done = 0, n = first ? first : whole; done < count; done += n, n = whole) {
        n = n < count - done ? n : count - done;
        if (copy->adjacent)
            copy->adjacent(block, src + done * copy->src_size, n);
        else
            stki_cast_row(&copy->cast, block, size, src + done * copy->src_size, copy->src_size, n);
        copy->fast->stream(dst + done * size, block, n * size);
    }
}

static void copy_run(const stki_copy *copy, char *dst, const char *src, int64_t count)
{
    if (copy->lines)
        copy->lines(dst, src, count, copy->streaming, copy->adjacent);
    else if (copy->streaming && copy->cast.raw)
        copy->fast->stream(dst, src, count * copy->dst_size);
    else if (copy->streaming)
        stream_cast(copy, dst, src, count);
    else if (copy->adjacent)
        copy->adjacent(dst, src, count);
    else
        stki_cast_row(&copy->cast, dst, copy->dst_size, src, copy->src_size, count);
}

/* ---- selecting the pattern ---- */

/* The axis along which the source is contiguous; -1: none. */
static int adjacent_axis(const stki_copy *copy)
{
    for (int i = copy->plan.ndim - 1; i >= 0; i--)
        if (copy->plan.strides[1][i] == copy->src_size)
            return i;
    return -1;
}

static bool decide_pixels(stki_copy *copy, int axis)
{
    const stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1, size = (int)copy->src_size, vector = copy->fast->shuffle_bytes[size_index(size)];
    int64_t channels = plan->shape[last];

    if (channels <= STKI_SHUFFLE_MAX && plan->strides[0][axis] == channels * copy->dst_size) {
        stki_shuffle_interleave(&copy->shuffle, vector, size, (int)channels, plan->strides[1][last]);
        copy->pattern = STKI_PATTERN_INTERLEAVE;
        return true;
    }
    channels = plan->shape[axis];
    if (channels <= STKI_SHUFFLE_MAX && plan->strides[1][last] == channels * copy->src_size) {
        stki_shuffle_deinterleave(&copy->shuffle, vector, size, (int)channels, 0);
        copy->pattern = STKI_PATTERN_DEINTERLEAVE;
        return true;
    }
    return false;
}

static bool decide_fast(stki_copy *copy)
{
    stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1, index = size_index(copy->src_size), axis;
    int64_t step = plan->strides[1][last] / copy->src_size;

    if (!copy->fast || index < 0)
        return false;
    axis = adjacent_axis(copy);
    copy->tile = copy->fast->tile[index];
    if (axis >= 0 && copy->fast->shuffle[index] && decide_pixels(copy, axis)) {
        stki_strided_second_last(plan, axis);
    } else if (axis >= 0 && copy->tile && plan->shape[axis] >= 4 && plan->shape[last] >= 4) {
        stki_strided_second_last(plan, axis);
        copy->pattern = STKI_PATTERN_TILES;
    } else if (copy->fast->shuffle[index] && plan->strides[1][last] % copy->src_size == 0 && step != 0 &&
               step >= -STKI_SHUFFLE_MAX && step <= STKI_SHUFFLE_MAX) {
        stki_shuffle_every(&copy->shuffle, copy->fast->shuffle_bytes[index], (int)copy->src_size, (int)step);
        copy->pattern = STKI_PATTERN_EVERY;
    } else {
        return false;
    }
    return true;
}

/* Streaming stores are faster only if the copy does not fit in the caches and writes whole cache lines, that is, in
 * long runs or in runs that are contiguous with each other. */
static bool should_stream(const stki_copy *copy, enum stki_stores stores)
{
    const stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1;
    int64_t run = plan->shape[last] * copy->dst_size;

    if (copy->pattern == STKI_PATTERN_INTERLEAVE ||
        (copy->pattern == STKI_PATTERN_TILES && plan->strides[0][last - 1] == run))
        run *= plan->shape[last - 1];
    if (!copy->fast || plan->strides[0][last] != copy->dst_size || stores == STKI_STORES_CACHED)
        return false;
    if (stores == STKI_STORES_STREAMING)
        return true;
    return run >= 16 * LINE && plan->count > stki_cache_bytes() / (copy->dst_size + copy->src_size);
}

/* Plans a copy element by element, in an order that uses each cache line before it is evicted. */
static void decide_plain(stki_copy *copy)
{
    stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1, tight = last;

    for (int i = 0; i < last; i++)
        if (plan->shape[i] >= 4 && llabs(plan->strides[1][i]) < llabs(plan->strides[1][tight]) &&
            plan->strides[1][i] != 0)
            tight = i;
    if (last > 0 && plan->shape[last] < 16 && plan->shape[last - 1] > plan->shape[last]) {
        copy->pattern = STKI_PATTERN_SHORT_ROWS;
    } else if (tight < last && plan->shape[last] >= 16) {
        stki_strided_second_last(plan, tight);
        copy->pattern = STKI_PATTERN_BLOCKS;
    } else {
        copy->pattern = STKI_PATTERN_ROWS;
    }
}

/* Selects the pattern, the order of the inner axes, and streaming. */
static void decide(stki_copy *copy, enum stki_stores stores)
{
    const stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1;
    bool adjacent = plan->strides[0][last] == copy->dst_size;

    if (adjacent && plan->strides[1][last] == copy->src_size)
        copy->pattern = STKI_PATTERN_RUNS;
    else if (!adjacent || !decide_fast(copy))
        decide_plain(copy);
    copy->streaming = copy->pattern >= STKI_PATTERN_RUNS && should_stream(copy, stores);
}

/* The number of inner axes that the pattern handles. */
static int pattern_axes(const stki_copy *copy)
{
    return copy->pattern == STKI_PATTERN_ROWS || copy->pattern == STKI_PATTERN_RUNS ||
                   copy->pattern == STKI_PATTERN_EVERY
               ? 1
               : 2;
}

/* ---- copying ---- */

/* Moves elements without a cast, with any steps: for the elements before and after whole vectors. */
static void move_elements(int64_t size, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(dst + i * dst_step, src + i * src_step, (size_t)size);
}

/* The shape and strides of the two inner axes, the last one at index 1. */
struct inner {
    int64_t shape[2], dst[2], src[2];
};

static struct inner inner_axes(const stki_strided *plan)
{
    int last = plan->ndim - 1;

    return (struct inner){{plan->shape[last - 1], plan->shape[last]},
                          {plan->strides[0][last - 1], plan->strides[0][last]},
                          {plan->strides[1][last - 1], plan->strides[1][last]}};
}

static void copy_row(const stki_copy *copy, char *dst, const char *src)
{
    const stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1;

    stki_cast_row(&copy->cast, dst, plan->strides[0][last], src, plan->strides[1][last], plan->shape[last]);
}

static void copy_blocks(const stki_copy *copy, char *dst, const char *src)
{
    enum { PIECE = 64 };
    struct inner axes = inner_axes(&copy->plan);

    for (int64_t c = 0; c < axes.shape[1]; c += PIECE) {
        int64_t n = axes.shape[1] - c < PIECE ? axes.shape[1] - c : PIECE;
        for (int64_t r = 0; r < axes.shape[0]; r++)
            stki_cast_row(&copy->cast, dst + r * axes.dst[0] + c * axes.dst[1], axes.dst[1],
                          src + r * axes.src[0] + c * axes.src[1], axes.src[1], n);
    }
}

static void copy_short_rows(const stki_copy *copy, char *dst, const char *src)
{
    enum { ALONG = 512 };
    struct inner axes = inner_axes(&copy->plan);

    for (int64_t done = 0; done < axes.shape[0]; done += ALONG) {
        int64_t n = axes.shape[0] - done < ALONG ? axes.shape[0] - done : ALONG;
        for (int64_t k = 0; k < axes.shape[1]; k++)
            stki_cast_row(&copy->cast, dst + done * axes.dst[0] + k * axes.dst[1], axes.dst[0],
                          src + done * axes.src[0] + k * axes.src[1], axes.src[0], n);
    }
}

static void shuffle(const stki_copy *copy, const stki_shuffle *pattern, char *dst, const char *src, int64_t groups,
                    bool streaming)
{
    copy->fast->shuffle[size_index(copy->src_size)](pattern, dst, src, groups, streaming);
}

/* The number of steps of `step` bytes from `dst` to a line boundary; -1: there is none. */
static int64_t steps_to_aligned(const char *dst, int64_t step)
{
    for (int64_t n = 0; n < LINE; n++)
        if (((int64_t)(uintptr_t)dst + n * step) % LINE == 0)
            return n;
    return -1;
}

/* Whether runs are gathered in place, and after how many elements (pixels, columns) they are aligned. False if there is
 * a cast, or if streaming stores could not be aligned. */
static bool in_place(const stki_copy *copy, const char *dst, int64_t step, int64_t count, int64_t *head)
{
    *head = 0;
    if (!copy->cast.raw)
        return false;
    if (!copy->streaming)
        return true;
    *head = steps_to_aligned(dst, step);
    if (*head > count)
        *head = count;
    return *head >= 0;
}

/* ---- every k-th element ---- */

static void gather_every(const stki_copy *copy, char *to, const char *src, int64_t step, int64_t count, bool streaming)
{
    int64_t groups = stki_shuffle_groups(&copy->shuffle, count), done = groups * copy->shuffle.lanes;

    shuffle(copy, &copy->shuffle, to, src, groups, streaming);
    move_elements(copy->src_size, to + done * copy->src_size, copy->src_size, src + done * step, step, count - done);
}

static void copy_every(const stki_copy *copy, char *dst, const char *src)
{
    _Alignas(LINE) char block[BLOCK];
    const stki_strided *plan = &copy->plan;
    int last = plan->ndim - 1;
    int64_t count = plan->shape[last], step = plan->strides[1][last], size = copy->src_size, whole = BLOCK / size, head;

    if (in_place(copy, dst, size, count, &head)) {
        move_elements(size, dst, size, src, step, head);
        gather_every(copy, dst + head * size, src + head * step, step, count - head, copy->streaming);
        return;
    }
    for (int64_t done = 0; done < count; done += whole) {
        int64_t n = count - done < whole ? count - done : whole;
        gather_every(copy, block, src + done * step, step, n, false);
        copy_run(copy, dst + done * copy->dst_size, block, n);
    }
}

/* ---- planes to pixels ---- */

static void move_pixels(const stki_copy *copy, char *to, const char *src, const struct inner *axes, int64_t count)
{
    int64_t size = copy->src_size;

    for (int64_t c = 0; c < axes->shape[1]; c++)
        move_elements(size, to + c * size, axes->shape[1] * size, src + c * axes->src[1], axes->src[0], count);
}

static void gather_pixels(const stki_copy *copy, char *to, const char *src, const struct inner *axes, int64_t count,
                          bool streaming)
{
    int64_t groups = stki_shuffle_groups(&copy->shuffle, count), done = groups * copy->shuffle.lanes;

    shuffle(copy, &copy->shuffle, to, src, groups, streaming);
    move_pixels(copy, to + done * axes->shape[1] * copy->src_size, src + done * axes->src[0], axes, count - done);
}

static void copy_interleave(const stki_copy *copy, char *dst, const char *src)
{
    _Alignas(LINE) char block[BLOCK];
    struct inner axes = inner_axes(&copy->plan);
    int64_t count = axes.shape[0], pixel = axes.shape[1] * copy->src_size, whole = BLOCK / pixel, head;

    if (in_place(copy, dst, pixel, count, &head)) {
        move_pixels(copy, dst, src, &axes, head);
        gather_pixels(copy, dst + head * pixel, src + head * axes.src[0], &axes, count - head, copy->streaming);
        return;
    }
    whole -= whole % copy->shuffle.lanes;
    for (int64_t done = 0; done < count; done += whole) {
        int64_t n = count - done < whole ? count - done : whole;
        gather_pixels(copy, block, src + done * axes.src[0], &axes, n, false);
        copy_run(copy, dst + done * axes.shape[1] * copy->dst_size, block, n * axes.shape[1]);
    }
}

/* ---- pixels to planes ---- */

static void move_planes(const stki_copy *copy, char *to, int64_t apart, const char *src, int64_t channels,
                        int64_t count)
{
    int64_t size = copy->src_size;

    for (int64_t c = 0; c < channels; c++)
        move_elements(size, to + c * apart, size, src + c * size, channels * size, count);
}

static void gather_planes(const stki_copy *copy, char *to, int64_t apart, const char *src, int64_t channels,
                          int64_t count, bool streaming)
{
    int64_t size = copy->src_size, groups = stki_shuffle_groups(&copy->shuffle, count);
    int64_t done = groups * copy->shuffle.lanes;
    stki_shuffle pattern = copy->shuffle;

    pattern.out_stride = apart;
    shuffle(copy, &pattern, to, src, groups, streaming);
    move_planes(copy, to + done * size, apart, src + done * channels * size, channels, count - done);
}

static void copy_deinterleave(const stki_copy *copy, char *dst, const char *src)
{
    _Alignas(LINE) char block[BLOCK];
    struct inner axes = inner_axes(&copy->plan);
    int64_t channels = axes.shape[0], count = axes.shape[1], size = copy->src_size, whole = BLOCK / (size * channels);
    int64_t head;
    bool same_alignment = !copy->streaming || axes.dst[0] % LINE == 0; /* of all planes */

    if (same_alignment && in_place(copy, dst, size, count, &head)) {
        move_planes(copy, dst, axes.dst[0], src, channels, head);
        gather_planes(copy, dst + head * size, axes.dst[0], src + head * channels * size, channels, count - head,
                      copy->streaming);
        return;
    }
    whole -= whole % copy->shuffle.lanes;
    for (int64_t done = 0; done < count; done += whole) {
        int64_t n = count - done < whole ? count - done : whole;
        gather_planes(copy, block, whole * size, src + done * channels * size, channels, n, false);
        for (int64_t c = 0; c < channels; c++)
            copy_run(copy, dst + c * axes.dst[0] + done * copy->dst_size, block + c * whole * size, n);
    }
}

/* ---- transposition ---- */

static void move_tile(const stki_copy *copy, char *dst, const char *src, const struct inner *axes, int64_t columns)
{
    for (int64_t r = 0; r < axes->shape[0]; r++)
        move_elements(copy->src_size, dst + r * axes->dst[0], copy->src_size, src + r * copy->src_size, axes->src[1],
                      columns);
}

/* Transposes all rows at once, which is possible without a cast if the rows have the same alignment or need none. */
static void copy_tiles_in_place(const stki_copy *copy, char *dst, const char *src, const struct inner *axes)
{
    int64_t size = copy->src_size, head = copy->streaming ? steps_to_aligned(dst, size) : 0;
    bool streaming = copy->streaming && head >= 0;

    head = head < 0 ? 0 : head > axes->shape[1] ? axes->shape[1] : head;
    move_tile(copy, dst, src, axes, head);
    copy->tile(dst + head * size, axes->dst[0], src + head * axes->src[1], axes->src[1], axes->shape[0],
               axes->shape[1] - head, axes->shape[0], streaming);
}

/* Blocks have as many rows as a line of the source has elements, so that each line is read once, and many columns, so
 * that few lines of the destination are written in two halves. */
static void copy_tiles(const stki_copy *copy, char *dst, const char *src)
{
    enum { COLUMNS = TILE_BLOCK / LINE };
    _Alignas(LINE) char block[TILE_BLOCK + LINE * LINE];
    struct inner axes = inner_axes(&copy->plan);
    int64_t size = copy->src_size, high = LINE / size;
    int64_t apart = COLUMNS * size + LINE; /* not a power of two, so that the rows are in different cache sets */

    if (copy->cast.raw && (!copy->streaming || axes.dst[0] % LINE == 0)) {
        copy_tiles_in_place(copy, dst, src, &axes);
        return;
    }
    for (int64_t c = 0; c < axes.shape[1]; c += COLUMNS) {
        int64_t columns = axes.shape[1] - c < COLUMNS ? axes.shape[1] - c : COLUMNS;
        for (int64_t r = 0; r < axes.shape[0]; r += high) {
            int64_t rows = axes.shape[0] - r < high ? axes.shape[0] - r : high;
            copy->tile(block, apart, src + c * axes.src[1] + r * size, axes.src[1], rows, columns, axes.shape[0] - r,
                       false);
            for (int64_t k = 0; k < rows; k++)
                copy_run(copy, dst + (r + k) * axes.dst[0] + c * copy->dst_size, block + k * apart, columns);
        }
    }
}

static void copy_block(const stki_copy *copy, char *dst, const char *src)
{
    switch (copy->pattern) {
    case STKI_PATTERN_ROWS:
        copy_row(copy, dst, src);
        break;
    case STKI_PATTERN_SHORT_ROWS:
        copy_short_rows(copy, dst, src);
        break;
    case STKI_PATTERN_BLOCKS:
        copy_blocks(copy, dst, src);
        break;
    case STKI_PATTERN_RUNS:
        copy_run(copy, dst, src, copy->plan.shape[copy->plan.ndim - 1]);
        break;
    case STKI_PATTERN_EVERY:
        copy_every(copy, dst, src);
        break;
    case STKI_PATTERN_INTERLEAVE:
        copy_interleave(copy, dst, src);
        break;
    case STKI_PATTERN_DEINTERLEAVE:
        copy_deinterleave(copy, dst, src);
        break;
    case STKI_PATTERN_TILES:
        copy_tiles(copy, dst, src);
        break;
    }
}

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
    decide(&copy, stores);
    control = stki_float_enter();
    stki_walk_begin(&walk, &copy.plan, pattern_axes(&copy), (const void *const[]){dst, src});
    do
        copy_block(&copy, walk.at[0], walk.at[1]);
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
