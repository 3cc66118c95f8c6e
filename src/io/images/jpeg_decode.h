/* jpeg_decode.h: decodes JPEG images with libjpeg-turbo. Thread-safe. */
#ifndef STKI_JPEG_DECODE_H
#define STKI_JPEG_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

/* The options, and the part to decode. The part refers to the image scaled by 1 / scale; `left` is 0 or a multiple of
 * the columns that are decoded together (stki_jpeg_columns). */
typedef struct stki_jpeg_how {
    int64_t stored_height, stored_width; /* size of the whole image, from its header */
    int scale;                           /* 1, 2, 4 or 8 */
    bool fast_dct, plain_upsampling;     /* these change the result */
    bool gray;                           /* one byte per pixel; false: RGB */
    bool accept_warnings;
    int64_t top, left, height, width;
} stki_jpeg_how;

/* Returns the version of libjpeg-turbo at compile time, such as "2.1.5". */
const char *stki_jpeg_version(void);

/* Returns the number of pixels of a row of the scaled image that are decoded together. */
int64_t stki_jpeg_columns(int components, int max_h, int scale);

/* Decodes rows of `row_bytes` into `to`. `rows4`: buffer of how->width * 4 bytes, which is used only for images with
 * four components and may otherwise be NULL. `warnings`: number of warnings that were accepted. STK_E_TRUNCATED,
 * STK_E_CORRUPT, STK_E_UNSUPPORTED, STK_E_LIMIT, STK_E_MEMORY; the message contains libjpeg's text and no location. */
stk_status stki_jpeg_decode(const void *bytes, int64_t count, const stki_jpeg_how *how, uint8_t *to, int64_t row_bytes,
                            uint8_t *rows4, int64_t *warnings, stk_error *err);

#endif
