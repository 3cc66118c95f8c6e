/* decode.h: images in memory become pixels in the caller's buffer. What JPEG, PNG and raw images have in common; a
 * reader that holds encoded images (folder, tar, beton) calls this. Any thread, each with its own decoder.
 */
#ifndef STKI_DECODE_H
#define STKI_DECODE_H

#include "reader.h"

typedef struct stki_decoder stki_decoder; /* handles and buffers of one thread */

typedef struct stki_image_info {
    const char *format;    /* "jpeg", "png" */
    int64_t height, width; /* of the decoded image: upright where that was asked for */
    int64_t stored_height, stored_width;
    int channels;    /* of what is stored: 1, 3, 4 */
    int orientation; /* EXIF, 1 to 8 */
} stki_image_info;

stk_status stki_decoder_create(stki_decoder **out, stk_error *err);
void stki_decoder_destroy(stki_decoder *decoder); /* NULL is fine */

/* From the header alone. Errors carry no place: the caller adds file and record (stki_image_place). What is no image is
 * named for what it is (STK_E_UNSUPPORTED: "a PNG image", "a gzip file"). */
stk_status stki_image_info_of(const void *bytes, int64_t count, const stki_decode_opts *opts, stki_image_info *out,
                              stk_error *err);

/* What to decode: a box of the (upright) image in pixels, and the size that is enough. */
typedef struct stki_image_part {
    int64_t top, left, height, width;    /* height 0: the whole image */
    int64_t enough_height, enough_width; /* of the box after scaling; 0: no scaling. Only with opts->fast */
} stki_image_part;

/* What came out: `scale` is 1, 2, 4 or 8; the pixels are rows [top, top + height) and columns [left, left + width) of
 * the image scaled by 1 / scale; they cover the box asked for, perhaps with more around it. */
typedef struct stki_image_pixels {
    int64_t top, left, height, width, scale;
    int channels;      /* 1 with opts->gray, else 3 */
    int64_t row_bytes; /* of the result */
} stki_image_pixels;

/* How large a buffer decoding this part needs, and what will come out. */
stk_status stki_image_plan(const stki_image_info *info, const stki_decode_opts *opts, const stki_image_part *part,
                           stki_image_pixels *out, stk_error *err);
/* Height rows of row_bytes at `to`, HWC u8. STK_E_TRUNCATED, STK_E_CORRUPT: opts->accept_warnings turns libjpeg's
 * warnings into a count (stki_decode_warnings). */
stk_status stki_image_decode(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                             const stki_decode_opts *opts, const stki_image_pixels *part, void *to, stk_error *err);
int64_t stki_decode_warnings(void); /* accepted since start, all threads */

#endif
