/* convert_plan.c: compiles the axes of a description to a loop nest around a kernel.
 *
 * Axes of one element are dropped, the others are sorted by destination stride (so that the destination is written
 * sequentially), and adjacent axes that form one run in both source and destination are merged. The innermost axes then
 * select:
 *
 *     runs      contiguous on both sides; one coefficient pair, or a repeating pattern of pairs
 *     pixels    bytes interleaved in the source (HWC), planes in the destination (CHW); rows may have gaps or be
 *               mirrored
 *     blocks    everything else, through blocks in the L1 cache
 *     copy      no arithmetic, same dtype, contiguous on both sides
 *     core      no arithmetic, everything else: stki_copy_strided
 *
 * The reference uses the axes as described, unmerged. */
#include "convert_assembly.h"
#include "convert_internal.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CUT_ELEMENTS = 16384, CUT_ALIGN = 64, SHORT_AXIS = 16 };

static void take_axes(stki_convert *convert, const stki_convert_desc *desc)
{
    for (int k = 0; k < desc->ndim; k++) {
        int64_t step = desc->channels > 1 && k == desc->channel_axis ? 1 : 0;
        convert->axes[convert->axis_count++] =
            (stki_axis){desc->shape[k], desc->src_strides[k], desc->dst_strides[k], step};
    }
}

static void remove_axis(stki_convert *convert, int at)
{
    for (int k = at; k + 1 < convert->axis_count; k++)
        convert->axes[k] = convert->axes[k + 1];
    convert->axis_count--;
}

static void insert_axis(stki_convert *convert, int at, stki_axis axis)
{
    for (int k = convert->axis_count; k > at; k--)
        convert->axes[k] = convert->axes[k - 1];
    convert->axes[at] = axis;
    convert->axis_count++;
}

static void drop_ones(stki_convert *convert)
{
    for (int k = convert->axis_count - 1; k >= 0; k--)
        if (convert->axes[k].n == 1)
            remove_axis(convert, k);
}

static void reverse(float *values, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        float x = values[i];
        values[i] = values[n - 1 - i];
        values[n - 1 - i] = x;
    }
}

/* Reverses an axis and the order of its coefficients. */
static void turn_axis(stki_convert *convert, stki_axis *axis, int64_t padded)
{
    convert->src_offset += axis->src_stride * (axis->n - 1);
    convert->dst_offset += axis->dst_stride * (axis->n - 1);
    axis->src_stride = -axis->src_stride;
    axis->dst_stride = -axis->dst_stride;
    if (axis->channel_step) {
        reverse(convert->coefficients, axis->n);
        reverse(convert->coefficients + padded, axis->n);
    }
}

static void turn_negative_destinations(stki_convert *convert, int64_t padded)
{
    for (int k = 0; k < convert->axis_count; k++)
        if (convert->axes[k].dst_stride < 0)
            turn_axis(convert, &convert->axes[k], padded);
}

/* Sorts by destination stride, largest first; stable. */
static void sort_axes(stki_convert *convert)
{
    for (int k = 1; k < convert->axis_count; k++) {
        stki_axis axis = convert->axes[k];
        int at = k;
        for (; at > 0 && convert->axes[at - 1].dst_stride < axis.dst_stride; at--)
            convert->axes[at] = convert->axes[at - 1];
        convert->axes[at] = axis;
    }
}

/* Merges adjacent axes. This may make the innermost axis repeat the channels (a pattern): its channel_step is then 1
 * although it is longer than the number of channels. */
static void merge_axes(stki_convert *convert)
{
    for (int k = convert->axis_count - 2; k >= 0; k--) {
        stki_axis *out = &convert->axes[k];
        const stki_axis *in = &convert->axes[k + 1];
        bool one_run = out->src_stride == in->src_stride * in->n && out->dst_stride == in->dst_stride * in->n;
        bool same_pair = !out->channel_step && (!in->channel_step || k + 2 == convert->axis_count);
        if (!one_run || !same_pair)
            continue;
        *out = (stki_axis){out->n * in->n, in->src_stride, in->dst_stride, in->channel_step};
        remove_axis(convert, k + 1);
    }
}

static int channel_axis(const stki_convert *convert)
{
    for (int k = 0; k < convert->axis_count; k++)
        if (convert->axes[k].channel_step)
            return k;
    return -1;
}

/* Whether the two innermost axes are short rows, contiguous in the destination, that do not end at line boundaries. */
static bool fits_assembly(const stki_convert *convert)
{
    if (convert->axis_count < 2 || !convert->lane.streaming)
        return false;
    const stki_axis *row = &convert->axes[convert->axis_count - 2], *run = row + 1;
    const int64_t bytes = run->n * run->dst_stride;
    return row->n > 1 && row->dst_stride == bytes && bytes % STKI_ASSEMBLY_LINE != 0 && bytes <= STKI_ASSEMBLY_ROW;
}

/* ---- pixels ---- */

/* Returns the axis of the channels if the source is interleaved pixels; -1: only one channel of the pixels is read; -2:
 * the source is not pixels. */
static int find_planes(const stki_convert *convert)
{
    const stki_axis *pixel = &convert->axes[convert->axis_count - 1];
    int64_t step = llabs(pixel->src_stride);
    int coefficients = channel_axis(convert);

    if (convert->src_size != 1 || pixel->dst_stride != convert->dst_size || (step != 3 && step != 4))
        return -2;
    for (int k = 0; k + 1 < convert->axis_count; k++) {
        const stki_axis *plane = &convert->axes[k];
        if (llabs(plane->src_stride) == 1 && plane->n <= step && (coefficients < 0 || coefficients == k))
            return k;
    }
    return coefficients < 0 ? -1 : -2;
}

/* Whether the conversion copies bytes. Not for bool: bytes of a file may be neither 0 nor 1, but the core must store 0
 * or 1. */
static bool same_bytes(const stki_convert *convert)
{
    return convert->src_dtype == convert->dst_dtype && convert->src_dtype != STK_BOOL && !convert->src_swapped;
}

static stki_plane_fn plane_kernel(const stki_convert *convert)
{
    const stki_convert_kernels *kernels = convert->kernels;

    if (!convert->arithmetic)
        return same_bytes(convert) ? kernels->split_plane : NULL;
    if (convert->table && kernels->table_plane)
        return kernels->table_plane;
    return convert->src_kind == STKI_SRC_U8 ? kernels->plane[convert->dst_kind] : NULL;
}

static bool plan_pixels(stki_convert *convert, int64_t padded)
{
    int planes = find_planes(convert);

    convert->plane = plane_kernel(convert);
    if (planes == -2 || !convert->plane)
        return false;
    convert->lane.channels = 1;
    if (planes >= 0) {
        stki_axis *axis = &convert->axes[planes];
        if (axis->src_stride < 0)
            turn_axis(convert, axis, padded);
        convert->lane.channels = (int)axis->n;
        convert->lane.plane_stride = axis->dst_stride;
        remove_axis(convert, planes);
    }
    const int step = (int)convert->axes[convert->axis_count - 1].src_stride;
    convert->lane.pixel_step = step;
    for (int i = 0; i < 64; i++)
        convert->lane.pick[i] = (uint8_t)((step < 0 ? -64 * step - convert->lane.channels : 0) + i * step);
    if (convert->axis_count == 1)
        insert_axis(convert, 0, (stki_axis){.n = 1});
    convert->outer_count = convert->axis_count - 2;
    convert->inner = stki_convert_pixels;
    if (fits_assembly(convert))
        convert->inner = stki_convert_pixels_assembled;
    convert->lane.downwards = step < 0 && convert->lane.streaming;
    return true;
}

static bool are_byte_planes(const stki_convert *convert)
{
    return convert->dst_size == 1 && find_planes(convert) != -2 && plane_kernel(convert);
}

/* Whether bytes are written in runs so short that ordinary stores are faster for slots of any size (performance.md). */
static bool suits_cached_stores(const stki_convert *convert, enum stki_isa isa)
{
    if (are_byte_planes(convert))
        return isa == STKI_ISA_AVX512;
    return convert->dst_size == 1 && !convert->arithmetic && fits_assembly(convert);
}

/* ---- runs and blocks ---- */

static bool plan_runs(stki_convert *convert, int64_t channels)
{
    const stki_axis *run = &convert->axes[convert->axis_count - 1];
    const stki_convert_kernels *kernels = convert->kernels;
    bool pattern = run->channel_step != 0;

    if (run->src_stride != convert->src_size || run->dst_stride != convert->dst_size || convert->src_swapped)
        return false;
    if (convert->table && kernels->table_u8 && !pattern)
        convert->run = kernels->table_u8;
    else if (convert->src_kind == STKI_SRC_F32)
        convert->run = kernels->run_f32[convert->dst_kind][pattern];
    else if (convert->src_kind == STKI_SRC_U8)
        convert->run = kernels->run_u8[convert->dst_kind][pattern];
    else if (convert->dst_kind == STKI_DST_F32 && !pattern)
        convert->run = kernels->run_wide[convert->src_kind];
    if (!convert->run)
        return false;
    convert->lane.period = pattern ? channels : 0;
    const bool assembled = fits_assembly(convert);
    convert->outer_count = convert->axis_count - (assembled ? 2 : 1);
    convert->inner = assembled ? stki_convert_assembled : stki_convert_runs;
    return true;
}

static int log2_of(int size)
{
    return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
}

/* Selects the kernel for blocks whose elements are interleaved, on one side, with those of the other channels (three or
 * four in all). */
static void plan_interleaved(stki_convert *convert, const stki_axis *run, const stki_axis *beside)
{
    const int planes = (int)beside->n - 3;

    if (beside->dst_stride == convert->dst_size && run->dst_stride == beside->n * convert->dst_size) {
        convert->interleave = convert->kernels->interleave[log2_of(convert->dst_size)][planes];
        convert->inner = stki_convert_interleaved;
    } else if (beside->src_stride == convert->src_size && run->src_stride == beside->n * convert->src_size &&
               run->dst_stride == convert->dst_size) {
        convert->deinterleave = convert->kernels->deinterleave[log2_of(convert->src_size)][planes];
        convert->inner = stki_convert_deinterleaved;
    }
}

/* Chooses the two inner axes: the run, which is divided into blocks, and `beside`, the axis with the smallest source
 * stride, which is iterated while the cache lines of a block are still cached. A short pattern of channels may be
 * `beside`, since the padding of the coefficients continues the pattern. */
static void plan_blocks(stki_convert *convert, int64_t channels)
{
    int last = convert->axis_count - 1, near = last;

    for (int k = 0; k < convert->axis_count; k++)
        if (llabs(convert->axes[k].src_stride) < llabs(convert->axes[near].src_stride))
            near = k;
    int run = last, beside = near;
    if (convert->axes[last].n < SHORT_AXIS && convert->axes[last].n < convert->axes[near].n) {
        run = near;
        beside = last;
    }
    stki_axis run_axis = convert->axes[run], beside_axis = {.n = 1};
    if (run != beside) {
        beside_axis = convert->axes[beside];
        remove_axis(convert, run > beside ? run : beside);
        remove_axis(convert, run > beside ? beside : run);
    } else {
        remove_axis(convert, run);
    }
    convert->outer_count = convert->axis_count;
    insert_axis(convert, convert->axis_count, run_axis);
    insert_axis(convert, convert->axis_count, beside_axis);

    bool pattern = run_axis.channel_step != 0;
    convert->lane.period = pattern ? channels : 0;
    convert->run = convert->kernels->run_f32[convert->dst_kind][pattern];
    convert->load = convert->kernels->load[convert->src_kind];
    if (convert->src_kind == STKI_SRC_F32)
        convert->load = NULL;
    if (convert->src_kind == STKI_SRC_U8 && convert->kernels->run_u8[convert->dst_kind][pattern]) {
        convert->run = convert->kernels->run_u8[convert->dst_kind][pattern];
        convert->load = NULL;
    }
    convert->inner = stki_convert_blocks;
    if (!pattern && (beside_axis.n == 3 || beside_axis.n == 4))
        plan_interleaved(convert, &run_axis, &beside_axis);
    if (run_axis.dst_stride != convert->dst_size && convert->inner != stki_convert_interleaved)
        convert->lane.streaming = false; /* the kernel writes to a block in the cache */
}

/* Plans a copy that deinterleaves three or four channels. False: the axes do not have this form. */
static bool plan_copied_planes(stki_convert *convert)
{
    const int last = convert->axis_count - 1;

    for (int k = 0; k < last && same_bytes(convert) && convert->src_size <= 8; k++) {
        const stki_axis run = convert->axes[last], beside = convert->axes[k];
        if (beside.n != 3 && beside.n != 4)
            continue;
        plan_interleaved(convert, &run, &beside);
        if (convert->inner != stki_convert_deinterleaved)
            continue;
        remove_axis(convert, k);
        insert_axis(convert, last, beside);
        convert->outer_count = last - 1;
        return true;
    }
    return false;
}

static void plan_copy(stki_convert *convert)
{
    const stki_axis *run = &convert->axes[convert->axis_count - 1];

    if (same_bytes(convert) && run->src_stride == convert->src_size && run->dst_stride == convert->dst_size) {
        const bool assembled = fits_assembly(convert);
        convert->outer_count = convert->axis_count - (assembled ? 2 : 1);
        convert->inner = assembled ? stki_convert_assembled : stki_convert_copies;
    } else if (!convert->lane.streaming || !plan_copied_planes(convert)) {
        convert->outer_count = 0;
        convert->inner = stki_convert_core;
        convert->lane.streaming = false;
    }
}

/* ---- the rest ---- */

/* 8 bits to 8 bits: the 256 results per channel, computed by the reference. A single pair is repeated for all channels.
 */
static void make_table(stki_convert *convert)
{
    if (!convert->table)
        return;
    for (int64_t c = 0; c < STKI_TABLE_CHANNELS; c++)
        for (int i = 0; i < 256; i++) {
            uint8_t byte = (uint8_t)i;
            float x = stki_convert_load(convert->src_kind, &byte, false);
            float y = fmaf(x, convert->lane.a[c], convert->lane.b[c]);
            stki_convert_store(convert->dst_kind, &convert->lane, &convert->table[256 * c + i], y);
        }
    convert->lane.table = convert->table;
}

/* Whether the results for all values of an 8-bit source are zero, or normal numbers below 2^30 in magnitude, so that
 * kernels can skip the checks for other results. */
static bool is_tame(const stki_convert *convert, int64_t channels)
{
    if (convert->src_size != 1 || channels > STKI_TABLE_CHANNELS)
        return false;
    for (int64_t c = 0; c < channels; c++)
        for (int i = 0; i < 256; i++) {
            uint8_t byte = (uint8_t)i;
            float x = stki_convert_load(convert->src_kind, &byte, false);
            float y = fabsf(fmaf(x, convert->lane.a[c], convert->lane.b[c]));
            if (!(y < 0x1p30f) || (y > 0 && y < FLT_MIN))
                return false;
        }
    return true;
}

/* Repeats the coefficients after the last one, so that a kernel may load a whole vector starting at any channel. */
static void pad_coefficients(stki_convert *convert, int64_t channels, int64_t padded)
{
    for (int64_t i = channels; i < padded; i++) {
        convert->coefficients[i] = convert->coefficients[i - channels];
        convert->coefficients[padded + i] = convert->coefficients[padded + i - channels];
    }
}

static void plan_cut(stki_convert *convert)
{
    int cut = 0;
    int64_t elements = convert->bytes_written / convert->dst_size;

    for (int k = 1; k < convert->axis_count; k++)
        if (convert->axes[k].n > convert->axes[cut].n)
            cut = k;
    int64_t n = convert->axes[cut].n, each = elements / n;
    int64_t step = (CUT_ELEMENTS + each - 1) / each;
    if (step > CUT_ALIGN) /* each cache line of the destination is written by one thread only */
        step = (step + CUT_ALIGN - 1) / CUT_ALIGN * CUT_ALIGN;
    convert->cut_axis = cut;
    convert->cut_step = step;
    convert->units = (n + step - 1) / step;
}

static const char *kind_name(const stki_convert *convert)
{
    static const char *const pixels[2][5] = {
        {"", "hwc1-planar", "hwc2-planar", "hwc3-planar", "hwc4-planar"},
        {"", "hwc1-planar mirrored", "hwc2-planar mirrored", "hwc3-planar mirrored", "hwc4-planar mirrored"}};

    if (convert->inner == stki_convert_ref)
        return "each";
    if (convert->inner == stki_convert_pixels || convert->inner == stki_convert_pixels_assembled)
        return pixels[convert->lane.pixel_step < 0][convert->lane.channels];
    if (convert->inner == stki_convert_runs)
        return convert->lane.period ? "runs-pattern" : "runs";
    if (convert->inner == stki_convert_blocks)
        return "blocks";
    if (convert->inner == stki_convert_interleaved)
        return "planar-hwc";
    if (convert->inner == stki_convert_deinterleaved)
        return "hwc-planar";
    if (convert->inner == stki_convert_assembled)
        return convert->run ? "runs" : "copy";
    return convert->inner == stki_convert_copies ? "copy" : "core";
}

/* Sets the extent of the source, for prefetching, if at most half of it is unused. */
static void plan_prefetch(stki_convert *convert, const stki_convert_desc *desc)
{
    int64_t low = 0, high = convert->src_size;

    for (int k = 0; k < desc->ndim; k++) {
        int64_t reach = desc->src_strides[k] * (desc->shape[k] - 1);
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    if (high - low > 2 * convert->bytes_read)
        return;
    convert->prefetch_offset = low;
    convert->prefetch_bytes = high - low;
}

static stki_list_fn list_kernel(const stki_convert *convert)
{
    const stki_convert_kernels *kernels = convert->kernels;

    if (convert->inner == stki_convert_copies)
        return kernels->list_bytes;
    if (convert->run == kernels->table_u8)
        return kernels->list_table_u8;
    if (convert->src_kind == STKI_SRC_F32)
        return kernels->list_f32[convert->dst_kind];
    return convert->src_kind == STKI_SRC_U8 ? kernels->list_u8[convert->dst_kind]
                                            : kernels->list_wide[convert->src_kind];
}

/* Selects the kernel for lists of samples, which need to be contiguous on both sides and have one coefficient pair. */
static void plan_list(stki_convert *convert, const stki_fast *fast)
{
    const stki_axis *axis = &convert->axes[0];

    if (convert->axis_count != 1 || axis->src_stride != convert->src_size || axis->dst_stride != convert->dst_size ||
        axis->channel_step != 0 || convert->src_offset != 0 || convert->dst_offset != 0)
        return;
    convert->list_n = convert->inner == stki_convert_copies ? axis->n * convert->src_size : axis->n;
    if (convert->inner == stki_convert_copies || convert->inner == stki_convert_runs)
        convert->list = list_kernel(convert);
    else if (convert->inner == stki_convert_core && fast && fast->lines && !convert->src_swapped &&
             convert->bytes_written % STKI_LINE == 0)
        convert->cast_list = fast->lines->list[convert->dst_dtype][convert->src_dtype];
}

void stki_convert_plan(stki_convert *convert, const stki_convert_desc *desc, enum stki_isa isa)
{
    const int64_t padded = desc->channels + STKI_LANE_PAD;
    const stki_fast *fast = stki_fast_of(isa);

    take_axes(convert, desc);
    plan_prefetch(convert, desc);
    if (!convert->kernels) {
        convert->lane.streaming = false;
        if (convert->axis_count == 0)
            insert_axis(convert, 0, (stki_axis){.n = 1});
        convert->outer_count = convert->arithmetic ? convert->axis_count - 1 : 0;
        convert->inner = convert->arithmetic ? stki_convert_ref : stki_convert_core;
    } else {
        drop_ones(convert);
        turn_negative_destinations(convert, padded);
        sort_axes(convert);
        merge_axes(convert);
        if (convert->axis_count == 0)
            insert_axis(convert, 0, (stki_axis){1, convert->src_size, convert->dst_size, 0});
        convert->lane.native_bf16 = stki_native_bf16();
        if (!fast || (desc->stores == STKI_STORES_AUTO && suits_cached_stores(convert, isa)))
            convert->lane.streaming = false;
        convert->fetches_ahead = isa == STKI_ISA_AVX512 && are_byte_planes(convert);
        if (!plan_pixels(convert, padded)) {
            if (!convert->arithmetic)
                plan_copy(convert);
            else if (!plan_runs(convert, desc->channels))
                plan_blocks(convert, desc->channels);
        }
    }
    pad_coefficients(convert, desc->channels, padded);
    make_table(convert);
    convert->copy = convert->lane.streaming ? fast->stream : NULL;
    convert->lane.tame = convert->arithmetic && is_tame(convert, desc->channels);
    convert->cached = convert->lane;
    convert->cached.streaming = false;
    plan_cut(convert);
    plan_list(convert, fast);
    snprintf(convert->name, sizeof convert->name, "%s %s>%s %s%s", stki_isa_name(isa),
             stk_dtype_name(convert->src_dtype), stk_dtype_name(convert->dst_dtype), kind_name(convert),
             convert->lane.streaming ? " streaming" : "");
}
