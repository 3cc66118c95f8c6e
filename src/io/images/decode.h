/* decode.h: decodes JPEG and PNG images from memory into the caller's buffer. Readers of encoded images (folder, tar,
 * beton) only call stki_image_shape and stki_image_sample. Thread-safe with one decoder per thread. */
#ifndef STKI_DECODE_H
#define STKI_DECODE_H

#include "reader.h"
#include "source.h"

#define STKI_IMAGE_MOST_BYTES (INT64_C(1) << 30) /* maximum size of a decoded image if opts->max_bytes is 0 */

typedef struct stki_decoder stki_decoder; /* handles and buffers of one thread */

typedef struct stki_image_info {
    const char *format;    /* "jpeg", "png" */
    int64_t height, width; /* size of the decoded image, upright if requested */
    int64_t stored_height, stored_width;
    int channels;    /* stored channels: 1 to 4 */
    int orientation; /* EXIF orientation, 1 to 8 */
    /* The members below are for decoding parts. */
    bool swapped; /* the upright height is the stored width */
    int block_width,
        margin;    /* JPEG: number of columns decoded together; columns next to a part on which its pixels depend */
    bool restarts; /* JPEG: parts can be cut from the file at restart markers */
    bool whole_rows, whole; /* PNG: only whole rows can be decoded; only the whole image can be decoded */
    int64_t least_bytes;    /* minimum number of bytes of an image of this size */
} stki_image_info;

stk_status stki_decoder_create(stki_decoder **out, stk_error *err);
void stki_decoder_destroy(stki_decoder *decoder); /* NULL is allowed */
/* Returns the decoder of a worker's scratch, which is created at first use. */
stk_status stki_scratch_decoder(stki_scratch *scratch, stki_decoder **out, stk_error *err);
/* Returns a buffer for encoded bytes read from a file. Its content is lost when it grows. */
stk_status stki_decoder_room(stki_decoder *decoder, int64_t bytes, void **out, stk_error *err);
/* Returns a buffer for an image that is rotated upright afterwards. */
stk_status stki_decoder_turning(stki_decoder *decoder, int64_t bytes, void **out, stk_error *err);

/* Reads only the header. Errors have no location; the caller adds the file and the record (stki_fail_place).
 * STK_E_UNSUPPORTED: the file is of another kind, which the message names ("a WebP image", "a gzip file").
 * STK_E_TRUNCATED: more bytes are needed; the first 4 KiB are enough for most images. STK_E_LIMIT: the image is larger
 * than opts->max_bytes. */
stk_status stki_image_info_of(const void *bytes, int64_t count, const stki_decode_opts *opts, stki_image_info *out,
                              stk_error *err);

/* Checks that an encoded image of `count` bytes is large enough for its dimensions. Call this before allocating memory
 * for pixels. STK_E_TRUNCATED: it is too small. */
stk_status stki_image_check(const stki_image_info *info, int64_t count, stk_error *err);

/* The part to decode: a box of the (upright) image in pixels, and the minimum size of the box after scaling. */
typedef struct stki_image_part {
    int64_t top, left, height, width;    /* height 0: the whole image */
    int64_t enough_height, enough_width; /* minimum size after scaling; 0: no scaling. Only with opts->fast */
} stki_image_part;

/* The result: rows [top, top + height) and columns [left, left + width) of the (upright) image scaled by 1 / scale. It
 * covers the requested box and may be larger. If scale is 1, each pixel has the same value as when the whole image is
 * decoded. */
typedef struct stki_image_pixels {
    int64_t top, left, height, width, scale; /* scale: 1, 2, 4 or 8 */
    int64_t whole_height, whole_width;       /* size of the whole scaled image */
    int channels;                            /* 1 with opts->gray, otherwise 3 */
    int64_t bytes;                           /* size of the buffer for decoding */
    /* Pixel (y, x) of the part, with its channels consecutive, is at byte offset + y * row_stride + x * column_stride
     * of the buffer. For an image that is rotated upright, the strides are swapped or negative. */
    int64_t offset, row_stride, column_stride;
    int64_t stored_top, stored_left, stored_height, stored_width; /* the decoded part of the stored image, scaled */
} stki_image_pixels;

/* Computes which pixels are decoded for this part, and the size of the buffer. STK_E_RANGE: the box extends beyond the
 * image. */
stk_status stki_image_plan(const stki_image_info *info, const stki_decode_opts *opts, const stki_image_part *part,
                           stki_image_pixels *out, stk_error *err);
/* Decodes pixels (u8, or u16 with opts->deep) into the part->bytes bytes at `to`. STK_E_TRUNCATED, STK_E_CORRUPT: the
 * image is damaged. With opts->accept_warnings, libjpeg's warnings are only counted (stki_scratch.warnings). After a
 * failure, the decoder can be used for the next image. */
stk_status stki_image_decode(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                             const stki_decode_opts *opts, const stki_image_pixels *part, void *to, stk_error *err);
static inline int stki_image_channels(const stki_decode_opts *opts) /* number of channels of the result */
{
    return opts->gray ? 1 : 3;
}

static inline stk_dtype stki_image_dtype(const stki_decode_opts *opts)
{
    return opts->deep ? STK_U16 : STK_U8;
}

enum { STKI_PNG_HEAD_BYTES = 33 };
/* Whether decoding the image that starts with these bytes (at least STKI_PNG_HEAD_BYTES) discards bits of its samples.
 */
bool stki_image_is_cut(const void *bytes, int64_t count, const stki_decode_opts *opts);
/* The warning for such an image: a printf format whose argument is the name of the image. */
#define STKI_IMAGE_CUT \
    "%s has 16 bits per sample, but only the upper 8 bits are read; source.depth: 16 reads all of them"

/* Options in `source` for all images, for those that may have EXIF data, and for JPEG images. */
extern const stki_source_group stki_image_source, stki_exif_source, stki_jpeg_source;
#define STKI_IMAGE_GROUPS &stki_image_source, &stki_exif_source, &stki_jpeg_source
/* Returns the decoding options of a reader. max_bytes applies to one sample. */
stki_decode_opts stki_image_opts(const stki_reader_opts *opts);

bool stki_decoder_warned(const stki_decoder *decoder); /* whether the last image was decoded despite warnings */

/* ---- for readers ---- */

/* Returns the height, width and channels (1 or 3) of the result of stki_image_sample. */
stk_status stki_image_shape(const void *bytes, int64_t count, const stki_decode_opts *opts, int64_t shape[3],
                            stk_error *err);
/* Decodes the part requested by `want` (NULL: the whole image) into the scratch and sets `out` to a read-only HWC view.
 * The pixels of a row are contiguous; the rows may not be. `bytes` must not be in scratch->data. Errors name the file
 * and the record. */
stk_status stki_image_sample(const void *bytes, int64_t count, const stki_decode_opts *opts, const stki_want *want,
                             stki_scratch *scratch, const char *path, int64_t record, stk_tensor *out, stk_error *err);

#endif
