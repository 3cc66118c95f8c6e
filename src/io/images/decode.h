/* decode.h: images in memory become pixels in the caller's buffer. What JPEG and PNG images have in common; a reader
 * that holds encoded images (folder, tar, beton) calls stki_image_shape and stki_image_sample, which do all of it. Any
 * thread, each with its own decoder.
 */
#ifndef STKI_DECODE_H
#define STKI_DECODE_H

#include "reader.h"
#include "source.h"

#define STKI_IMAGE_MOST_BYTES (INT64_C(1) << 30) /* of a decoded image, where opts->max_bytes is 0 */

typedef struct stki_decoder stki_decoder; /* handles and buffers of one thread */

typedef struct stki_image_info {
    const char *format;    /* "jpeg", "png" */
    int64_t height, width; /* of the decoded image: upright where that was asked for */
    int64_t stored_height, stored_width;
    int channels;    /* of what is stored: 1 to 4 */
    int orientation; /* EXIF, 1 to 8 */
    /* What decoding a part needs to know. */
    bool swapped;            /* upright height is stored width */
    int block_width, margin; /* JPEG: columns decoded together, and beside a part that its pixels depend on */
    bool restarts;           /* JPEG: parts may be cut out of the file at restart markers */
    bool whole_rows, whole;  /* PNG: parts are whole rows; the whole image */
    int64_t least_bytes;     /* an image of this size that has fewer is cut */
} stki_image_info;

stk_status stki_decoder_create(stki_decoder **out, stk_error *err);
void stki_decoder_destroy(stki_decoder *decoder); /* NULL is fine */
/* The decoder of a worker's scratch, made at first use. */
stk_status stki_scratch_decoder(stki_scratch *scratch, stki_decoder **out, stk_error *err);
/* Room for encoded bytes that are read from a file before they are decoded; the content is lost when it grows. */
stk_status stki_decoder_room(stki_decoder *decoder, int64_t bytes, void **out, stk_error *err);
/* The same for an image that is turned upright afterwards. */
stk_status stki_decoder_turning(stki_decoder *decoder, int64_t bytes, void **out, stk_error *err);

/* From the header alone. Errors carry no place: the caller adds file and record (stki_fail_place). What is no image is
 * named for what it is (STK_E_UNSUPPORTED: "a WebP image", "a gzip file"). STK_E_TRUNCATED: more bytes would tell more;
 * enough for most images are 4 KiB of their beginning. STK_E_LIMIT: larger than opts->max_bytes. */
stk_status stki_image_info_of(const void *bytes, int64_t count, const stki_decode_opts *opts, stki_image_info *out,
                              stk_error *err);

/* `count` is all the bytes of the image: STK_E_TRUNCATED, where an image of this size has more. Ask before making room.
 */
stk_status stki_image_check(const stki_image_info *info, int64_t count, stk_error *err);

/* What to decode: a box of the (upright) image in pixels, and the size that is enough. */
typedef struct stki_image_part {
    int64_t top, left, height, width;    /* height 0: the whole image */
    int64_t enough_height, enough_width; /* of the box after scaling; 0: no scaling. Only with opts->fast */
} stki_image_part;

/* What comes out: rows [top, top + height) and columns [left, left + width) of the (upright) image scaled by 1 / scale.
 * They cover the box asked for, perhaps with more around it; with scale 1 each has the value that a decode of the whole
 * image gives. */
typedef struct stki_image_pixels {
    int64_t top, left, height, width, scale; /* scale: 1, 2, 4 or 8 */
    int64_t whole_height, whole_width;       /* of the whole scaled image */
    int channels;                            /* 1 with opts->gray, else 3 */
    int64_t bytes;                           /* of the buffer that decoding needs */
    /* Pixel (y, x) of the part, its channels one after the other, lies in the buffer at byte offset + y * row_stride +
     * x * column_stride. Of an image that is turned upright the strides are swapped or negative. */
    int64_t offset, row_stride, column_stride;
    int64_t stored_top, stored_left, stored_height, stored_width; /* what is decoded, of the stored image, scaled */
} stki_image_pixels;

/* Which pixels decoding this part gives, and how large a buffer it needs. STK_E_RANGE: a box outside the image. */
stk_status stki_image_plan(const stki_image_info *info, const stki_decode_opts *opts, const stki_image_part *part,
                           stki_image_pixels *out, stk_error *err);
/* Pixels, u8 or with opts->deep u16, into the part->bytes bytes at `to`. STK_E_TRUNCATED, STK_E_CORRUPT:
 * opts->accept_warnings turns libjpeg's warnings into a count (stki_scratch.warnings). After a failure the decoder is
 * good for the next image. */
stk_status stki_image_decode(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                             const stki_decode_opts *opts, const stki_image_pixels *part, void *to, stk_error *err);
static inline int stki_image_channels(const stki_decode_opts *opts) /* of what comes out */
{
    return opts->gray ? 1 : 3;
}

static inline stk_dtype stki_image_dtype(const stki_decode_opts *opts)
{
    return opts->deep ? STK_U16 : STK_U8;
}

enum { STKI_PNG_HEAD_BYTES = 33 };
/* Whether decoding the image that begins with these bytes (at least so many) leaves out bits of its samples. */
bool stki_image_is_cut(const void *bytes, int64_t count, const stki_decode_opts *opts);
/* What to say of it, with the name of an image (printf). */
#define STKI_IMAGE_CUT "%s has samples of 16 bits, of which the upper 8 are read; source.depth: 16 reads all"

/* Options in `source`: of all images, of those that may have EXIF data, and of JPEG images. */
extern const stki_source_group stki_image_source, stki_exif_source, stki_jpeg_source;
#define STKI_IMAGE_GROUPS &stki_image_source, &stki_exif_source, &stki_jpeg_source
/* How a reader opened with these decodes: max_bytes is of a sample. */
stki_decode_opts stki_image_opts(const stki_reader_opts *opts);

bool stki_decoder_warned(const stki_decoder *decoder); /* the last image was decoded in spite of warnings */

/* ---- for readers ---- */

/* Height, width and channels (1 or 3) of the sample that stki_image_sample makes of these bytes. */
stk_status stki_image_shape(const void *bytes, int64_t count, const stki_decode_opts *opts, int64_t shape[3],
                            stk_error *err);
/* Decodes what `want` can use (NULL: the whole image) into the scratch and points `out` at it: HWC, read-only; the
 * pixels of a row lie close together, the rows perhaps not. `bytes` must not lie in scratch->data. Errors name file and
 * record. */
stk_status stki_image_sample(const void *bytes, int64_t count, const stki_decode_opts *opts, const stki_want *want,
                             stki_scratch *scratch, const char *path, int64_t record, stk_tensor *out, stk_error *err);

#endif
