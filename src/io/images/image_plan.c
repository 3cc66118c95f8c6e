/* image_plan.c: computes which pixels of the stored image to decode for a box of the upright image, and where these
 * pixels are in the result. Columns next to the box are decoded if upsampling needs them, but are not part of the
 * result. */
#include "checked.h"
#include "decode.h"
#include "error.h"
#include "exif.h"
#include <inttypes.h>

enum { NARROW = 5 }; /* in pixels; libjpeg does not smooth rows of only one or two chroma samples */

struct range { /* range of rows or columns */
    int64_t first, count;
};

struct box {
    struct range rows, columns;
};

static struct range mirrored(struct range range, int64_t size)
{
    return (struct range){size - range.first - range.count, range.count};
}

static stki_turn turn_of(const stki_image_info *info, const stki_decode_opts *opts)
{
    return stki_exif_turn(opts->upright ? info->orientation : 1);
}

/* Converts a box of the upright image to the corresponding box of the stored image. */
static struct box to_stored(struct box box, stki_turn turn, int64_t height, int64_t width)
{
    struct box stored = turn.swap ? (struct box){box.columns, box.rows} : box;

    if (turn.flip_rows)
        stored.rows = mirrored(stored.rows, height);
    if (turn.flip_columns)
        stored.columns = mirrored(stored.columns, width);
    return stored;
}

/* The inverse of to_stored. */
static struct box to_upright(struct box box, stki_turn turn, int64_t height, int64_t width)
{
    if (turn.flip_rows)
        box.rows = mirrored(box.rows, height);
    if (turn.flip_columns)
        box.columns = mirrored(box.columns, width);
    return turn.swap ? (struct box){box.columns, box.rows} : box;
}

static int64_t scaled_up(int64_t size, int64_t scale)
{
    return (size + scale - 1) / scale;
}

/* Returns the pixels of the scaled image that cover `range` of `size` pixels, plus `more` on either side. */
static struct range range_scaled(struct range range, int64_t scale, int64_t more, int64_t size)
{
    int64_t first = range.first / scale - more, end = scaled_up(range.first + range.count, scale) + more;

    first = first > 0 ? first : 0;
    end = end < scaled_up(size, scale) ? end : scaled_up(size, scale);
    return (struct range){first, end - first};
}

/* A scaled image is aligned to the first stored pixel. If it is flipped and the size is not a multiple of the scale,
 * pixels are shifted by a fraction, which one additional pixel covers. */
static struct box box_scaled(struct box box, int64_t scale, stki_turn turn, const stki_image_info *info)
{
    return (struct box){range_scaled(box.rows, scale, scale > 1 && turn.flip_rows, info->stored_height),
                        range_scaled(box.columns, scale, scale > 1 && turn.flip_columns, info->stored_width)};
}

/* Returns the largest scale that keeps enough pixels of the box. */
static int64_t scale_of(const stki_image_info *info, const stki_decode_opts *opts, const struct box *box,
                        const stki_image_part *part)
{
    int64_t scale = 1;

    if (!opts->fast || part->enough_height <= 0 || part->enough_width <= 0 || info->whole_rows)
        return 1;
    while (scale < 8 && box->rows.count / (2 * scale) >= part->enough_height &&
           box->columns.count / (2 * scale) >= part->enough_width)
        scale *= 2;
    return scale;
}

/* Extends `wanted` by the columns needed to decode it exactly; the left edge becomes a multiple of `step`. */
static struct range columns_decoded(struct range wanted, int64_t margin, int64_t step, int64_t width)
{
    int64_t first = wanted.first > margin ? wanted.first - margin : 0, last = wanted.first + wanted.count + margin;

    first -= first % step;
    last = last < first + step ? first + step : last; /* narrower images are upsampled differently */
    last = last < width ? last : width;
    if (margin > 0 && last - first < NARROW && first >= step) /* the same applies at the right edge */
        first -= step;
    return (struct range){first, last - first};
}

static stk_status check_part(const stki_image_info *info, const stki_image_part *part, stk_error *err)
{
    if (part->height > 0 && part->width > 0 && stki_inside(part->top, part->height, info->height) &&
        stki_inside(part->left, part->width, info->width))
        return STK_OK;
    return stki_fail_at(err, STK_E_RANGE,
                        (stki_place){NULL, -1, -1,
                                     STKI_TEXT("%" PRId64 "x%" PRId64 " from row %" PRId64 ", column %" PRId64,
                                               part->height, part->width, part->top, part->left),
                                     STKI_TEXT("a part of %" PRId64 "x%" PRId64 " pixels", info->height, info->width)},
                        "the part extends beyond the image");
}

/* Sets the offset and strides of the result, which is the box `kept` of the stored image; the buffer contains the
 * columns `decoded`. */
static void set_place(stki_image_pixels *out, struct box kept, struct range decoded, stki_turn turn)
{
    int64_t row = decoded.count * out->channels, column = out->channels;
    int64_t first_row = turn.flip_rows ? kept.rows.count - 1 : 0;
    int64_t first_column = kept.columns.first - decoded.first + (turn.flip_columns ? kept.columns.count - 1 : 0);

    out->offset = first_row * row + first_column * column;
    row = turn.flip_rows ? -row : row;
    column = turn.flip_columns ? -column : column;
    out->row_stride = turn.swap ? column : row;
    out->column_stride = turn.swap ? row : column;
}

stk_status stki_image_plan(const stki_image_info *info, const stki_decode_opts *opts, const stki_image_part *part,
                           stki_image_pixels *out, stk_error *err)
{
    const int64_t size = stk_dtype_size(stki_image_dtype(opts));
    stki_turn turn = turn_of(info, opts);
    stki_image_part all = {.height = info->height, .width = info->width};
    struct box box;
    struct range decoded;
    int64_t scale, height, width;
    stk_status status;

    if (part->height == 0) {
        all.enough_height = part->enough_height;
        all.enough_width = part->enough_width;
        part = &all;
    }
    status = check_part(info, part, err);
    if (status != STK_OK)
        return status;
    box = to_stored((struct box){{part->top, part->height}, {part->left, part->width}}, turn, info->stored_height,
                    info->stored_width);
    scale = scale_of(info, opts, &box, part);
    height = scaled_up(info->stored_height, scale);
    width = scaled_up(info->stored_width, scale);
    box = box_scaled(box, scale, turn, info);
    if (info->whole)
        box.rows = (struct range){0, height};
    if (info->whole_rows)
        decoded = box.columns = (struct range){0, width};
    else
        decoded = columns_decoded(box.columns, scaled_up(info->margin, scale), info->block_width / scale, width);
    *out = (stki_image_pixels){.scale = scale,
                               .channels = stki_image_channels(opts),
                               .stored_top = box.rows.first,
                               .stored_left = decoded.first,
                               .stored_height = box.rows.count,
                               .stored_width = decoded.count,
                               .bytes = box.rows.count * decoded.count * stki_image_channels(opts)};
    set_place(out, box, decoded, turn);
    out->bytes *= size;
    out->offset *= size;
    out->row_stride *= size;
    out->column_stride *= size;
    box = to_upright(box, turn, height, width);
    out->top = box.rows.first;
    out->left = box.columns.first;
    out->height = box.rows.count;
    out->width = box.columns.count;
    out->whole_height = turn.swap ? width : height;
    out->whole_width = turn.swap ? height : width;
    return STK_OK;
}
