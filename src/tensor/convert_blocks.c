/* convert_blocks.c: the inner functions of a compiled conversion. Those for runs and copies only call a kernel. The one
 * for blocks supports any strides, although kernels handle only contiguous elements:
 *
 *     strided source ─gather→ raw block ─load→ f32 block ─run→ dst, or result block ─scatter→ strided dst
 *
 * Steps that a side does not need are skipped. The blocks stay in the L1 cache.
 */
#include "convert_internal.h"
#include "tensor_internal.h"
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

void stki_convert_runs(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                       int64_t channel)
{
    convert->run(&convert->lane, dst, src, axes->n, channel);
}

void stki_convert_copies(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel)
{
    size_t bytes = (size_t)(axes->n * convert->src_size);

    (void)channel;
    if (convert->copy)
        convert->copy(dst, src, (int64_t)bytes);
    else
        memcpy(dst, src, bytes);
}

void stki_convert_core(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                       int64_t channel)
{
    int64_t shape[STK_MAX_DIMS], src_strides[STK_MAX_DIMS], dst_strides[STK_MAX_DIMS];

    (void)channel;
    for (int k = 0; k < convert->axis_count; k++) {
        shape[k] = axes[k].n;
        src_strides[k] = axes[k].src_stride;
        dst_strides[k] = axes[k].dst_stride;
    }
    stki_copy_strided(dst, convert->dst_dtype, dst_strides, src, convert->src_dtype, src_strides, convert->src_swapped,
                      convert->axis_count, shape);
}

/* ---- blocks ---- */

#define GATHER(bits)                                                                            \
    static void gather##bits(uint##bits##_t *to, const uint8_t *src, int64_t stride, int64_t n) \
    {                                                                                           \
        for (int64_t i = 0; i < n; i++)                                                         \
            memcpy(&to[i], src + i * stride, sizeof to[i]);                                     \
    }
GATHER(8)
GATHER(16)
GATHER(32)
GATHER(64)

static void swap_block(void *block, int size, int64_t n)
{
    if (size == 2) {
        uint16_t *x = block;
        for (int64_t i = 0; i < n; i++)
            x[i] = __builtin_bswap16(x[i]);
    } else if (size == 4) {
        uint32_t *x = block;
        for (int64_t i = 0; i < n; i++)
            x[i] = __builtin_bswap32(x[i]);
    } else if (size == 8) {
        uint64_t *x = block;
        for (int64_t i = 0; i < n; i++)
            x[i] = __builtin_bswap64(x[i]);
    }
}

static void gather(void *to, const uint8_t *src, int64_t stride, int size, int64_t n)
{
    if (stride == size)
        memcpy(to, src, (size_t)(n * size));
    else if (size == 1)
        gather8(to, src, stride, n);
    else if (size == 2)
        gather16(to, src, stride, n);
    else if (size == 4)
        gather32(to, src, stride, n);
    else
        gather64(to, src, stride, n);
}

#define SCATTER(bits)                                                                              \
    static void scatter##bits(uint8_t *dst, int64_t stride, const uint##bits##_t *from, int64_t n) \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            memcpy(dst + i * stride, &from[i], sizeof from[i]);                                    \
    }
SCATTER(8)
SCATTER(16)
SCATTER(32)

static void scatter(uint8_t *dst, int64_t stride, const void *from, int size, int64_t n)
{
    if (size == 1)
        scatter8(dst, stride, from, n);
    else if (size == 2)
        scatter16(dst, stride, from, n);
    else
        scatter32(dst, stride, from, n);
}

/* Runs the kernel on a contiguous block in native byte order, converted to f32 first if the kernel needs that. */
static void finish_block(const stki_convert *convert, const stki_lane *lane, uint8_t *to, const uint8_t *from,
                         int64_t n, int64_t channel)
{
    _Alignas(64) float wide[STKI_CONVERT_BLOCK];

    if (!convert->run) {
        convert->copy(to, from, n * convert->dst_size);
        return;
    }
    if (convert->load) {
        convert->load(wide, from, n);
        from = (const uint8_t *)wide;
    }
    convert->run(lane, to, from, n, channel);
}

void stki_convert_block(const stki_convert *convert, const stki_lane *lane, int64_t src_stride, uint8_t *to,
                        const uint8_t *src, int64_t n, int64_t channel)
{
    _Alignas(64) uint64_t raw[STKI_CONVERT_BLOCK];

    if (src_stride != convert->src_size || convert->src_swapped) {
        gather(raw, src, src_stride, convert->src_size, n);
        if (convert->src_swapped)
            swap_block(raw, convert->src_size, n);
        src = (const uint8_t *)raw;
    }
    finish_block(convert, lane, to, src, n, channel);
}

static void one_block(const stki_convert *convert, const stki_axis *run, uint8_t *dst, const uint8_t *src, int64_t n,
                      int64_t channel)
{
    _Alignas(64) uint32_t result[STKI_CONVERT_BLOCK];

    if (run->dst_stride == convert->dst_size) {
        stki_convert_block(convert, &convert->lane, run->src_stride, dst, src, n, channel);
        return;
    }
    stki_convert_block(convert, &convert->lane, run->src_stride, (uint8_t *)result, src, n, channel);
    scatter(dst, run->dst_stride, result, convert->dst_size, n);
}

/* The number of elements in a block. If each element is in a different cache line, blocks are shorter, so that the
 * lines of a block stay in the L1 cache for the next iteration of `beside`. */
static int64_t block_length(const stki_axis *run, const stki_axis *beside)
{
    bool sparse = llabs(run->src_stride) >= 64 || llabs(run->dst_stride) >= 64;

    return beside->n > 1 && sparse ? STKI_CONVERT_BLOCK / 4 : STKI_CONVERT_BLOCK;
}

void stki_convert_blocks(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel)
{
    const stki_axis *run = &axes[0], *beside = &axes[1];
    const int64_t length = block_length(run, beside), period = convert->lane.period;
    /* With streaming stores, blocks must meet at line boundaries. */
    const int64_t over = convert->lane.streaming ? (int64_t)((uintptr_t)dst % LINE) / convert->dst_size : 0;

    for (int64_t first = 0, n; first < run->n; first += n) {
        n = length - (first == 0 ? over : 0);
        n = run->n - first < n ? run->n - first : n;
        int64_t pair = period ? (channel + first) % period : channel;
        for (int64_t k = 0; k < beside->n; k++)
            one_block(convert, run, dst + first * run->dst_stride + k * beside->dst_stride,
                      src + first * run->src_stride + k * beside->src_stride, n, pair + k * beside->channel_step);
    }
}

/* Converts interleaved elements of more than one byte to planes. Each block of pixels is deinterleaved once for all
 * channels. */
void stki_convert_deinterleaved(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                                int64_t channel)
{
    const stki_axis *run = &axes[0], *beside = &axes[1];
    _Alignas(64) uint64_t raw[4][STKI_CONVERT_BLOCK];
    uint8_t *planes[4] = {(uint8_t *)raw[0], (uint8_t *)raw[1], (uint8_t *)raw[2], (uint8_t *)raw[3]};
    const int64_t over = convert->lane.streaming ? (int64_t)((uintptr_t)dst % LINE) / convert->dst_size : 0;

    for (int64_t first = 0, n; first < run->n; first += n) {
        n = STKI_CONVERT_BLOCK - (first == 0 ? over : 0);
        n = run->n - first < n ? run->n - first : n;
        convert->deinterleave(planes, src + first * run->src_stride, n);
        for (int64_t k = 0; k < beside->n; k++) {
            if (convert->src_swapped)
                swap_block(planes[k], convert->src_size, n);
            finish_block(convert, &convert->lane, dst + first * run->dst_stride + k * beside->dst_stride, planes[k], n,
                         channel + k * beside->channel_step);
        }
    }
}
