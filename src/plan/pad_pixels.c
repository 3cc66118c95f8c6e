/* pad_pixels.c: see pad_pixels.h. A row consists of rectangles, which are converted from different sources:
 *
 *     lines above and below the image     a line of fill pixels, repeatedly
 *     columns to its left and right       the same
 *     columns in mixed cache lines        a copy of the image's pixels with their padding. Only for non-temporal
 *                                         stores, which need whole cache lines
 *     the rest                            the sample
 *
 * Converting a rectangle has a cost per line, so short lines are left to pad_lines.h. */
#include "pad_pixels.h"
#include "tensor_internal.h"
#include <string.h>

enum { LINE = 64, SHORTEST = 8 * LINE };

/* The pixels [first, end) along an axis of the row that show the image; empty if the window lies outside it. */
typedef struct span {
    int64_t first, end;
} span;

static span pixels_of(const stki_pad_axis *axis, bool flip)
{
    const struct stki_pad_run *run = axis->runs;

    if (axis->count == 0)
        return (span){0, 0};
    return flip ? (span){axis->length - run->to - run->length, axis->length - run->to}
                : (span){run->to, run->to + run->length};
}

bool stki_pads_pixels(const stki_field_plan *plan, const stki_placement *placement, const stki_convert *convert,
                      const int64_t *strides)
{
    const int64_t channels = plan->image.sample_shape[plan->image.channel_axis];
    const int64_t line = stki_plan_line_stride(plan);
    const span x = pixels_of(&placement->pad_x, false);

    return plan->image.fill && !placement->orientation.transpose && stki_convert_takes_rectangles(convert) &&
           strides[plan->image.width_axis] == channels && line % LINE == 0 &&
           (x.end - x.first) * stk_dtype_size(plan->dtype) >= SHORTEST;
}

int64_t stki_pad_pixels_read(const stki_field_plan *plan, const stki_placement *placement)
{
    const span y = pixels_of(&placement->pad_y, false), x = pixels_of(&placement->pad_x, false);

    return (y.end - y.first) * (x.end - x.first) * plan->image.sample_shape[plan->image.channel_axis];
}

/* The row being made. Line 0 and pixel 0 of the image are those that come first in the row. */
typedef struct padded {
    const stki_field_plan *plan;
    const stki_convert *convert;
    span y, x;
    int64_t pixel, line; /* bytes in the image from one pixel or line of the row to the next */
    const uint8_t *image;
    uint8_t *row;
    uint8_t *fill, *copy; /* a line of fill pixels; the columns of mixed cache lines */
} padded;

/* Converts a rectangle of the row. `from`: its pixels in the order of the sample. `line`: bytes from one line to the
 * next. */
static void convert_block(const padded *p, int64_t y, int64_t x, int64_t lines, int64_t pixels, const uint8_t *from,
                          int64_t line)
{
    const int64_t stride = stki_plan_line_stride(p->plan);

    stki_convert_run_rectangle(p->convert, p->row + y * stride + x * stk_dtype_size(p->plan->dtype), stride,
                               p->pixel < 0 ? from - (pixels - 1) * p->pixel : from, line, lines, pixels);
}

/* Returns the address of these columns in the image's first line: the pixel that comes first in the order of the
 * sample. */
static const uint8_t *image_at(const padded *p, int64_t first, int64_t end)
{
    return p->image + ((p->pixel < 0 ? end - 1 : first) - p->x.first) * p->pixel;
}

static void fill_pixels(const padded *p, uint8_t *to, int64_t pixels)
{
    const size_t channels = (size_t)p->plan->image.sample_shape[p->plan->image.channel_axis];

    if (p->plan->image.fill_is_bytes)
        memset(to, p->plan->image.fill[0], (size_t)pixels * channels);
    else
        for (int64_t i = 0; i < pixels; i++, to += channels)
            memcpy(to, p->plan->image.fill, channels);
}

/* Converts columns [first, end), only some of which show the image. */
static void convert_mixed(const padded *p, int64_t first, int64_t end)
{
    const int64_t lines = p->y.end - p->y.first, n = end - first, channels = p->pixel < 0 ? -p->pixel : p->pixel;
    const span own = {first > p->x.first ? first : p->x.first, end < p->x.end ? end : p->x.end};
    const int64_t before = p->pixel < 0 ? end - own.end : own.first - first; /* padding, in the order of the sample */
    const uint8_t *from = image_at(p, own.first, own.end);
    uint8_t *to = p->copy;

    for (int64_t i = 0; n > 0 && i < lines; i++, from += p->line, to += n * channels) {
        memcpy(to, p->fill, (size_t)(n * channels));
        memcpy(to + before * channels, from, (size_t)((own.end - own.first) * channels));
    }
    convert_block(p, p->y.first, first, lines, n, p->copy, n * channels);
}

stk_status stki_pad_pixels(const stki_field_plan *plan, const stki_placement *placement, const stki_convert *convert,
                           const char *sample, const int64_t *strides, void *row, stki_scratch *scratch, stk_error *err)
{
    const stki_orientation o = placement->orientation;
    const int64_t height = placement->pad_y.length, width = placement->pad_x.length;
    const int64_t line = strides[plan->image.height_axis], pixel = strides[plan->image.width_axis];
    const int64_t whole = stki_convert_streams(convert) ? LINE / stk_dtype_size(plan->dtype) : 1;
    padded p = {.plan = plan,
                .convert = convert,
                .y = pixels_of(&placement->pad_y, o.flip_u),
                .x = pixels_of(&placement->pad_x, o.flip_v),
                .pixel = o.flip_v ? -pixel : pixel,
                .line = o.flip_u ? -line : line,
                .row = row};
    const int64_t lines = p.y.end - p.y.first, pixels = p.x.end - p.x.first;
    const span direct = {(p.x.first + whole - 1) / whole * whole, p.x.end / whole * whole};
    const span shown = {p.x.first / whole * whole, (p.x.end + whole - 1) / whole * whole};
    stk_status status = stki_scratch_reserve(scratch, (width + (whole > 1 ? lines * whole : 0)) * pixel, err);

    if (status != STK_OK)
        return status;
    p.image = (const uint8_t *)sample + placement->top * line + placement->left * pixel +
              (o.flip_u ? (lines - 1) * line : 0) + (o.flip_v ? (pixels - 1) * pixel : 0);
    p.fill = scratch->data;
    p.copy = p.fill + width * pixel;
    fill_pixels(&p, p.fill, width);
    convert_block(&p, 0, 0, p.y.first, width, p.fill, 0);
    convert_block(&p, p.y.first, direct.first, lines, direct.end - direct.first, image_at(&p, direct.first, direct.end),
                  p.line);
    convert_mixed(&p, shown.first, direct.first); /* after the direct columns, which bring these lines into the cache */
    convert_mixed(&p, direct.end, shown.end);
    convert_block(&p, p.y.first, 0, lines, shown.first, p.fill, 0);
    convert_block(&p, p.y.first, shown.end, lines, width - shown.end, p.fill, 0);
    convert_block(&p, p.y.end, 0, height - p.y.end, width, p.fill, 0);
    return STK_OK;
}
