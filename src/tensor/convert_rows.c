/* convert_rows.c: the inner functions over two axes, rows and the elements of a row. Pixels are converted plane by
 * plane in pieces that stay in the L1 cache. Short rows with streaming stores are assembled into whole lines first. */
#include "convert_assembly.h"
#include "convert_internal.h"
#include "float_control.h"
#include <stdlib.h>

enum { LINE = 64, PIECE_STREAMING = 2048 }; /* bytes per plane of a piece */

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void stki_convert_assembled(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                            int64_t channel)
{
    const stki_axis *row = &axes[0], *run = &axes[1];
    const int64_t bytes = run->n * convert->dst_size;
    struct stki_assembly assembly;

    stki_assembly_begin(&assembly, dst);
    for (int64_t r = 0; r < row->n; r++) {
        const uint8_t *from = src + r * row->src_stride;
        if (convert->run)
            convert->run(&convert->cached, stki_assembly_room(&assembly), from, run->n,
                         channel + r * row->channel_step);
        else
            memcpy(stki_assembly_room(&assembly), from, (size_t)bytes);
        stki_assembly_add(&assembly, bytes, convert->copy);
    }
    stki_assembly_end(&assembly);
}

/* ---- pixels ---- */

/* Mirrored rows are read in descending order, which the hardware prefetcher does not recognize in short rows. Reading
 * one byte of each line in ascending order first makes it prefetch them. */
static void read_upwards(const stki_lane *lane, const uint8_t *src, const stki_rows *rows)
{
    const int64_t reach = (rows->n - 1) * lane->pixel_step;

    for (int64_t r = 0; r < rows->rows; r++) {
        const volatile uint8_t *low = src + r * rows->src_row + reach;
        for (int64_t i = 0; i < -reach; i += LINE)
            (void)low[i];
    }
}

/* Prefetches a share of the rows that come next. Without it, memory would idle while the planes after the first one are
 * computed from the cache. */
static void fetch_share(const stki_lane *lane, const uint8_t *src, const stki_rows *rows, int share)
{
    const int64_t bytes = rows->n * llabs(lane->pixel_step), part = (bytes + lane->channels - 1) / lane->channels;
    const uint8_t *low = lane->pixel_step < 0 ? src + (rows->n - 1) * lane->pixel_step : src;

    for (int64_t r = 0; r < rows->rows; r++)
        stki_fetch(low + r * rows->src_row + share * part, least(part, bytes - share * part));
}

/* Converts rows that form one piece. `next`: the rows that follow them; 0 rows: none. */
static void one_piece(const stki_convert *convert, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                      const uint8_t *next_src, const stki_rows *next)
{
    const stki_lane *lane = &convert->lane;

    if (lane->pixel_step < 0 && !lane->downwards)
        read_upwards(lane, src, rows);
    for (int c = 0; c < lane->channels; c++) {
        if (convert->fetches_ahead)
            fetch_share(lane, next_src, next, c);
        convert->plane(lane, dst + c * lane->plane_stride, src, rows, c);
    }
}

/* Converts a long row in parts that end at line boundaries of plane 0. */
static void long_row(const stki_convert *convert, int64_t n, int64_t piece, uint8_t *dst, const uint8_t *src)
{
    for (int64_t first = 0, count; first < n; first += count) {
        uint8_t *to = dst + first * convert->dst_size;
        int64_t over = (int64_t)((uintptr_t)to % LINE) / convert->dst_size;
        count = least(n - first, piece - over);
        stki_rows rows = {.n = count, .rows = 1, .ahead = n - first - count};
        stki_rows next = {.n = least(piece, rows.ahead), .rows = rows.ahead > 0};
        one_piece(convert, to, src + first * convert->lane.pixel_step, &rows,
                  src + (first + count) * convert->lane.pixel_step, &next);
    }
}

/* Measured with bench_convert. Longer pieces suit the hardware prefetcher, which fetches the planes' lines for writing;
 * with shorter ones, the loads of the next source bytes overlap with the stores sooner. With streaming stores only the
 * latter matters; with four bytes per element the former matters most. */
static int64_t piece_pixels(const stki_convert *convert)
{
    if (convert->lane.streaming)
        return PIECE_STREAMING / convert->dst_size;
    return convert->dst_size == 4 ? 2048 : 1024;
}

void stki_convert_pixels(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel)
{
    const stki_axis *row = &axes[0], *pixel = &axes[1];
    const int64_t piece = piece_pixels(convert);
    const int64_t together = piece / pixel->n;
    stki_rows rows = {.n = pixel->n, .src_row = row->src_stride, .dst_row = row->dst_stride};

    (void)channel;
    if (together < 2)
        for (int64_t r = 0; r < row->n; r++)
            long_row(convert, pixel->n, piece, dst + r * row->dst_stride, src + r * row->src_stride);
    else
        for (int64_t r = 0; r < row->n; r += together) {
            stki_rows next = rows;
            rows.rows = least(row->n - r, together);
            next.rows = least(row->n - r - rows.rows, together);
            one_piece(convert, dst + r * row->dst_stride, src + r * row->src_stride, &rows,
                      src + (r + rows.rows) * row->src_stride, &next);
        }
}

/* Like stki_convert_pixels, with an assembly buffer for each plane. */
void stki_convert_pixels_assembled(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                                   int64_t channel)
{
    const stki_axis *row = &axes[0], *pixel = &axes[1];
    const stki_lane *lane = &convert->cached;
    const int64_t bytes = pixel->n * convert->dst_size;
    const int64_t together = bytes < PIECE_STREAMING ? PIECE_STREAMING / bytes : 1;
    struct stki_assembly planes[4];
    stki_rows rows = {.n = pixel->n, .src_row = row->src_stride, .dst_row = bytes};

    (void)channel;
    for (int c = 0; c < lane->channels; c++)
        stki_assembly_begin(&planes[c], dst + c * lane->plane_stride);
    for (int64_t r = 0; r < row->n; r += together) {
        const uint8_t *from = src + r * row->src_stride;
        rows.rows = least(row->n - r, together);
        for (int c = 0; c < lane->channels; c++) {
            convert->plane(lane, stki_assembly_room(&planes[c]), from, &rows, c);
            stki_assembly_add(&planes[c], rows.rows * bytes, convert->copy);
        }
    }
    for (int c = 0; c < lane->channels; c++)
        stki_assembly_end(&planes[c]);
}

bool stki_convert_takes_rectangles(const stki_convert *convert)
{
    return convert->inner == stki_convert_pixels;
}

void stki_convert_run_rectangle(const stki_convert *convert, void *dst, int64_t dst_line, const void *src,
                                int64_t src_line, int64_t lines, int64_t pixels)
{
    const stki_axis axes[] = {{.n = lines, .src_stride = src_line, .dst_stride = dst_line},
                              {.n = pixels, .src_stride = convert->lane.pixel_step, .dst_stride = convert->dst_size}};
    stki_float_control control;

    if (lines <= 0 || pixels <= 0)
        return;
    control = stki_float_enter();
    stki_convert_pixels(convert, axes, dst, src, 0);
    stki_float_leave(control);
}

/* ---- planes to pixels ---- */

/* Converts a block of each channel, then interleaves the blocks into the destination. */
void stki_convert_interleaved(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                              int64_t channel)
{
    const stki_axis *run = &axes[0], *beside = &axes[1];
    const int64_t pixel = beside->n * convert->dst_size;
    const int64_t block = least(STKI_CONVERT_BLOCK, STKI_ASSEMBLY_ROW / pixel) / 16 * 16;
    _Alignas(64) uint32_t result[4][STKI_CONVERT_BLOCK];
    const uint8_t *planes[4] = {(uint8_t *)result[0], (uint8_t *)result[1], (uint8_t *)result[2], (uint8_t *)result[3]};
    struct stki_assembly assembly;

    if (convert->copy)
        stki_assembly_begin(&assembly, dst);
    for (int64_t first = 0, n; first < run->n; first += n) {
        n = least(run->n - first, block);
        for (int64_t k = 0; k < beside->n; k++)
            stki_convert_block(convert, &convert->cached, run->src_stride, (uint8_t *)result[k],
                               src + first * run->src_stride + k * beside->src_stride, n,
                               channel + k * beside->channel_step);
        convert->interleave(convert->copy ? stki_assembly_room(&assembly) : dst + first * pixel, planes, n);
        if (convert->copy)
            stki_assembly_add(&assembly, n * pixel, convert->copy);
    }
    if (convert->copy)
        stki_assembly_end(&assembly);
}
