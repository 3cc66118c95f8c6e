/* decode.c: detects the kind of an image and calls its decoder, jpeg_decode.c or png_decode.c. Both return pixels as
 * stored. image_plan.c determines which pixels are decoded, and how they are viewed upright. */
#include "decode.h"
#include "allocate.h"
#include "checked.h"
#include "counter.h"
#include "error.h"
#include "exif.h"
#include "image_kind.h"
#include "jpeg_cut.h"
#include "jpeg_decode.h"
#include "jpeg_header.h"
#include "log.h"
#include "png_decode.h"
#include "read_clock.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

enum {
    ALIGNMENT = 64,
    SMOOTHING = 3 * 8 /* in pixels; a progressive image with missing scans is smoothed over two blocks */
};

struct room {
    void *data;
    int64_t bytes;
};

struct stki_decoder {
    struct room encoded; /* memory that stki_decoder_room returns */
    struct room cut;     /* a smaller file that is cut from the encoded one */
    struct room rows;    /* additional memory of a decoder */
    struct room turned;  /* an image before it is rotated upright */
    bool warned;
};

bool stki_decoder_warned(const stki_decoder *decoder)
{
    return decoder->warned;
}

/* ---- decoders ---- */

stk_status stki_decoder_create(stki_decoder **out, stk_error *err)
{
    *out = stki_zalloc(sizeof **out);
    stki_log(STKI_LOG_io, "images through libjpeg-turbo %s", stki_jpeg_version());
    return *out ? STK_OK : stki_fail_memory(err, sizeof **out, "an image decoder");
}

static void room_free(struct room *room)
{
    stki_block_free(&stki_heap, room->data, room->bytes, ALIGNMENT);
    *room = (struct room){0};
}

void stki_decoder_destroy(stki_decoder *decoder)
{
    if (!decoder)
        return;
    room_free(&decoder->encoded);
    room_free(&decoder->cut);
    room_free(&decoder->rows);
    room_free(&decoder->turned);
    stki_free(decoder);
}

static stk_status room_reserve(struct room *room, int64_t bytes, stk_error *err)
{
    int64_t wanted = bytes > room->bytes + room->bytes / 2 ? bytes : room->bytes + room->bytes / 2;

    if (bytes <= room->bytes)
        return STK_OK;
    room_free(room);
    room->data = stki_block_alloc(&stki_heap, wanted, ALIGNMENT);
    if (!room->data)
        return stki_fail_memory(err, wanted, "an image");
    room->bytes = wanted;
    return STK_OK;
}

stk_status stki_decoder_room(stki_decoder *decoder, int64_t bytes, void **out, stk_error *err)
{
    stk_status status = room_reserve(&decoder->encoded, bytes > 0 ? bytes : 1, err);

    *out = decoder->encoded.data;
    return status;
}

stk_status stki_decoder_turning(stki_decoder *decoder, int64_t bytes, void **out, stk_error *err)
{
    stk_status status = room_reserve(&decoder->turned, bytes, err);

    *out = decoder->turned.data;
    return status;
}

stk_status stki_scratch_decoder(stki_scratch *scratch, stki_decoder **out, stk_error *err)
{
    stk_status status = scratch->decoder ? STK_OK : stki_decoder_create(&scratch->decoder, err);

    scratch->destroy_decoder = stki_decoder_destroy;
    *out = scratch->decoder;
    return status;
}

/* ---- header ---- */

static stk_status info_of_jpeg(const void *bytes, int64_t count, stki_image_info *out, stk_error *err)
{
    stki_jpeg_header header;
    stk_status status = stki_jpeg_read_header(bytes, count, &header, err);

    if (status != STK_OK)
        return status;
    *out = (stki_image_info){
        .format = "jpeg",
        .stored_height = header.height,
        .stored_width = header.width,
        .channels = header.components,
        .orientation = header.orientation,
        .block_width = (int)stki_jpeg_columns(header.components, header.max_h, 1),
        .margin = header.progressive  ? SMOOTHING * header.max_h
                  : header.subsampled ? 1
                                      : 0,
        .restarts = header.restart > 0 && !header.progressive && !header.arithmetic,
        .least_bytes = stki_jpeg_least_bytes(&header),
    };
    return STK_OK;
}

static stk_status info_of_png(const void *bytes, int64_t count, stki_image_info *out, stk_error *err)
{
    stki_png_header header;
    stk_status status = stki_png_read_header(bytes, count, &header, err);

    if (status != STK_OK)
        return status;
    *out = (stki_image_info){
        .format = "png",
        .stored_height = header.height,
        .stored_width = header.width,
        .channels = header.palette ? 3 : header.channels,
        .orientation = header.orientation,
        .whole_rows = true,
        .whole = header.interlaced,
        .least_bytes = stki_png_least_bytes(&header),
    };
    return STK_OK;
}

/* For masks of class numbers: rejects images whose values cannot be class numbers. */
static stk_status check_index(const void *bytes, int64_t count, enum stki_image_kind kind, stk_error *err)
{
    stki_png_header header;
    const char *found = "a JPEG image";

    if (kind == STKI_KIND_PNG) {
        stk_status status = stki_png_read_header(bytes, count, &header, err);

        if (status != STK_OK || header.palette || (header.channels == 1 && header.bits <= 8))
            return status;
        found = header.channels == 1   ? "16 bits of gray"
                : header.channels == 2 ? "gray and alpha"
                                       : "colors without a palette";
    }
    return stki_fail_at(err, STK_E_UNSUPPORTED,
                        (stki_place){NULL, -1, -1, found, "a PNG image with a palette, or gray of at most 8 bits"},
                        "source.color: index");
}

/* Implements source.depth: 16. Samples of fewer bits are rejected, because they would have to be scaled, and a field
 * has only one scale. */
static stk_status check_deep(const void *bytes, int64_t count, enum stki_image_kind kind, const stki_decode_opts *opts,
                             stk_error *err)
{
    stki_png_header header = {.bits = 8};
    stk_status status = kind == STKI_KIND_PNG ? stki_png_read_header(bytes, count, &header, err) : STK_OK;

    if (status != STK_OK || (header.bits == 16 && !(opts->gray && header.channels >= 3)))
        return status;
    return header.bits == 16
               ? stki_fail_at(err, STK_E_UNSUPPORTED,
                              (stki_place){NULL, -1, -1, "a PNG image of 3 channels", "gray images (or color: rgb)"},
                              "source.depth: 16 with color: gray")
               : stki_fail_at(err, STK_E_UNSUPPORTED,
                              (stki_place){NULL, -1, -1, STKI_TEXT("an image of %d bits", header.bits),
                                           "a PNG image of 16 bits per sample"},
                              "source.depth: 16");
}

bool stki_image_is_cut(const void *bytes, int64_t count, const stki_decode_opts *opts)
{
    const char *what;
    stki_png_header header;

    if (opts->none || opts->deep || stki_image_kind_of(bytes, count, &what) != STKI_KIND_PNG)
        return false;
    (void)stki_png_read_header(bytes, count, &header, NULL); /* `bytes` may end after the first chunk */
    return header.bits == 16;
}

static stk_status check_limit(const stki_image_info *info, const stki_decode_opts *opts, stk_error *err)
{
    int64_t most = opts->max_bytes > 0 ? opts->max_bytes : STKI_IMAGE_MOST_BYTES, bytes;

    if (stki_mul(info->stored_height, info->stored_width, &bytes) &&
        stki_mul(bytes, stki_image_channels(opts) * stk_dtype_size(stki_image_dtype(opts)), &bytes) && bytes <= most)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){NULL, -1, -1,
                                     STKI_TEXT("%" PRId64 " x %" PRId64 " pixels of %d bytes", info->stored_height,
                                               info->stored_width, stki_image_channels(opts) << opts->deep),
                                     STKI_TEXT("at most %" PRId64 " bytes (max_bytes)", most)},
                        "the image is too large");
}

stk_status stki_image_info_of(const void *bytes, int64_t count, const stki_decode_opts *opts, stki_image_info *out,
                              stk_error *err)
{
    const char *what;
    enum stki_image_kind kind = stki_image_kind_of(bytes, count, &what);
    stki_image_info info;
    stk_status status;

    if (count == 0)
        return stki_fail_at(err, STK_E_TRUNCATED, (stki_place){NULL, -1, -1, "no bytes", "a JPEG or PNG image"},
                            "the file is empty");
    if (kind == STKI_KIND_OTHER)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){NULL, -1, -1, what, "a JPEG or PNG image"},
                            "cannot be decoded");
    status = kind == STKI_KIND_JPEG ? info_of_jpeg(bytes, count, &info, err) : info_of_png(bytes, count, &info, err);
    if (status == STK_OK && opts->index)
        status = check_index(bytes, count, kind, err);
    if (status == STK_OK && opts->deep)
        status = check_deep(bytes, count, kind, opts, err);
    if (status == STK_OK)
        status = check_limit(&info, opts, err);
    if (status != STK_OK)
        return status;
    info.swapped = opts->upright && stki_exif_turn(info.orientation).swap;
    info.height = info.swapped ? info.stored_width : info.stored_height;
    info.width = info.swapped ? info.stored_height : info.stored_width;
    *out = info;
    return STK_OK;
}

/* ---- decoding ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Replaces the file with one that contains only the restart intervals that the part needs, and adjusts `how`. The new
 * file also contains the rows above and below the part that upsampling needs; the part already includes the neighboring
 * columns. */
static stk_status cut_jpeg(stki_decoder *decoder, const void **bytes, int64_t *count, int64_t margin,
                           stki_jpeg_how *how, stk_error *err)
{
    const int64_t scale = how->scale, around = how->plain_upsampling ? 0 : margin;
    const int64_t top = how->top * scale, bottom = (how->top + how->height) * scale + around;
    const int64_t left = how->left * scale, right = (how->left + how->width) * scale;
    stki_jpeg_box box = {.top = top - smaller(top, around), .left = left};
    stki_jpeg_header header;
    stk_status status = stki_jpeg_read_header(*bytes, *count, &header, err);

    if (status == STK_OK)
        status = room_reserve(&decoder->cut, *count, err);
    if (status != STK_OK)
        return status;
    box.height = smaller(bottom, header.height) - box.top;
    box.width = smaller(right, header.width) - box.left;
    if (!stki_jpeg_cut(*bytes, *count, &header, &box, decoder->cut.data, count))
        return STK_OK;
    *bytes = decoder->cut.data;
    how->stored_height = box.height;
    how->stored_width = box.width;
    how->top -= box.top / scale;
    how->left -= box.left / scale;
    return STK_OK;
}

static bool begins_whole(const stki_jpeg_how *how)
{
    return how->top == 0 && how->width * how->scale >= how->stored_width;
}

static stk_status decode_jpeg(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                              const stki_decode_opts *opts, const stki_image_pixels *part, void *to, stk_error *err)
{
    stki_jpeg_how how = {.stored_height = info->stored_height,
                         .stored_width = info->stored_width,
                         .scale = (int)part->scale,
                         .fast_dct = opts->fast,
                         .plain_upsampling = opts->fast,
                         .gray = opts->gray,
                         .accept_warnings = opts->accept_warnings,
                         .top = part->stored_top,
                         .left = part->stored_left,
                         .height = part->stored_height,
                         .width = part->stored_width};
    int64_t warnings = 0;
    stk_status status = info->channels == 4 ? room_reserve(&decoder->rows, how.width * 4, err) : STK_OK;

    if (status == STK_OK && info->restarts && !begins_whole(&how))
        status = cut_jpeg(decoder, &bytes, &count, info->margin, &how, err);
    if (status != STK_OK)
        return status;
    status = stki_jpeg_decode(bytes, count, &how, to, part->stored_width * part->channels, decoder->rows.data,
                              &warnings, err);
    decoder->warned = status == STK_OK && warnings > 0;
    return status;
}

static stk_status decode_png(stki_decoder *decoder, const void *bytes, int64_t count, const stki_decode_opts *opts,
                             const stki_image_pixels *part, void *to, stk_error *err)
{
    stki_png_how how = {.gray = opts->gray,
                        .index = opts->index,
                        .deep = opts->deep,
                        .top = part->stored_top,
                        .height = part->stored_height};
    stki_png_header header;
    stk_status status = stki_png_read_header(bytes, count, &header, err);

    if (status == STK_OK)
        status = room_reserve(&decoder->rows, stki_png_room(&header, &how), err);
    return status != STK_OK ? status : stki_png_decode(bytes, count, &header, &how, to, decoder->rows.data, err);
}

stk_status stki_image_check(const stki_image_info *info, int64_t count, stk_error *err)
{
    if (count >= info->least_bytes)
        return STK_OK;
    return stki_fail_at(err, STK_E_TRUNCATED,
                        (stki_place){NULL, -1, -1, STKI_TEXT("%" PRId64 " bytes", count),
                                     STKI_TEXT("at least %" PRId64 " for %" PRId64 "x%" PRId64 " pixels",
                                               info->least_bytes, info->stored_width, info->stored_height)},
                        "the encoded image is too short for its dimensions");
}

stk_status stki_image_decode(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                             const stki_decode_opts *opts, const stki_image_pixels *part, void *to, stk_error *err)
{
    stk_status status = stki_image_check(info, count, err);
    int64_t began;

    decoder->warned = false;
    if (status != STK_OK)
        return status;
    began = stki_read_work_begin(STKI_READ_DECODE, true);
    status = info->whole_rows ? decode_png(decoder, bytes, count, opts, part, to, err)
                              : decode_jpeg(decoder, bytes, count, info, opts, part, to, err);
    stki_read_work_end(STKI_READ_DECODE, began);
    return status;
}
