/* convert_blocks.c: the inner functions of a compiled conversion. Those for runs and pixels only call a kernel; the one
 * for blocks brings any strides to kernels that know contiguous elements only:
 *
 *     strided source ─gather→ raw block ─load→ f32 block ─run→ dst, or result block ─scatter→ strided dst
 *
 * leaving out each step that a side does not need. The blocks stay in the first-level cache.
 */
#include "convert_internal.h"
#include "tensor_internal.h"
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, PIECE_CACHED = 8192, PIECE_STREAMING = 2048 }; /* bytes of a plane */

void stki_convert_runs(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                       int64_t channel)
{
    convert->run(&convert->lane, dst, src, axes->n, channel);
}

/* Mirrored rows are read downwards, which the hardware does not foresee where they are short; reading a byte of each
 * line upwards first has it fetch them ahead. */
static void read_upwards(const stki_lane *lane, const uint8_t *src, const stki_rows *rows)
{
    const int64_t reach = (rows->n - 1) * lane->pixel_step;

    for (int64_t r = 0; r < rows->rows; r++) {
        const volatile uint8_t *low = src + r * rows->src_row + reach;
        for (int64_t i = 0; i < -reach; i += LINE)
            (void)low[i];
    }
}

/* As many whole rows as make a piece, or a part of one, plane after plane: the source bytes stay in the cache
 * meanwhile. Pieces of a row end where plane 0 has a line boundary. Long pieces suit stores into the cache (each plane
 * is a stream that the hardware sees coming); past the cache short ones do, since the next source bytes are then on
 * their way while planes are written. */
void stki_convert_pixels(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel)
{
    const stki_axis *row = &axes[0], *pixel = &axes[1];
    const stki_lane *lane = &convert->lane;
    const int64_t size = convert->dst_size;
    const int64_t piece = (lane->streaming ? PIECE_STREAMING : PIECE_CACHED) / size;
    const int64_t together = pixel->n < piece ? piece / pixel->n : 1;

    (void)channel;
    for (int64_t r = 0; r < row->n; r += together) {
        uint8_t *to = dst + r * row->dst_stride;
        const uint8_t *from = src + r * row->src_stride;
        stki_rows rows = {.rows = row->n - r < together ? row->n - r : together,
                          .src_row = row->src_stride,
                          .dst_row = row->dst_stride};
        for (int64_t first = 0; first < pixel->n; first += rows.n) {
            int64_t over = (int64_t)((uintptr_t)(to + first * size) % LINE) / size, left = pixel->n - first;
            rows.n = together > 1 || left < piece - over ? left : piece - over;
            rows.ahead = left - rows.n;
            if (lane->pixel_step < 0 && !lane->streaming)
                read_upwards(lane, from + first * lane->pixel_step, &rows);
            for (int c = 0; c < lane->channels; c++)
                convert->plane(lane, to + c * lane->plane_stride + first * size, from + first * lane->pixel_step, &rows,
                               c);
        }
    }
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

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

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

static void one_block(const stki_convert *convert, const stki_axis *run, uint8_t *dst, const uint8_t *src, int64_t n,
                      int64_t channel)
{
    _Alignas(64) uint64_t raw[STKI_CONVERT_BLOCK];
    _Alignas(64) float wide[STKI_CONVERT_BLOCK];
    _Alignas(64) uint32_t result[STKI_CONVERT_BLOCK];
    const uint8_t *from = src;
    uint8_t *to = run->dst_stride == convert->dst_size ? dst : (uint8_t *)result;

    if (run->src_stride != convert->src_size || convert->src_swapped) {
        gather(raw, src, run->src_stride, convert->src_size, n);
        if (convert->src_swapped)
            swap_block(raw, convert->src_size, n);
        from = (const uint8_t *)raw;
    }
    if (convert->load) {
        convert->load(wide, from, n);
        from = (const uint8_t *)wide;
    }
    convert->run(&convert->lane, to, from, n, channel);
    if (to != dst)
        scatter(dst, run->dst_stride, result, convert->dst_size, n);
}

/* Elements of a block so that, with an element in each cache line, a block leaves room in the first-level cache. */
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

    for (int64_t first = 0; first < run->n; first += length) {
        int64_t n = run->n - first < length ? run->n - first : length;
        int64_t pair = period ? (channel + first) % period : channel;
        for (int64_t k = 0; k < beside->n; k++)
            one_block(convert, run, dst + first * run->dst_stride + k * beside->dst_stride,
                      src + first * run->src_stride + k * beside->src_stride, n, pair + k * beside->channel_step);
    }
}
