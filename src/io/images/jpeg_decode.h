/* jpeg_decode.h: pixels of a JPEG image through libjpeg-turbo. Any thread. */
#ifndef STKI_JPEG_DECODE_H
#define STKI_JPEG_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

/* How and which pixels. The part is one of the image scaled by 1 / scale; `left` is a multiple of the columns that are
 * decoded together (stki_jpeg_columns) or 0. */
typedef struct stki_jpeg_how {
    int64_t stored_height, stored_width; /* of the whole image, as its header says */
    int scale;                           /* 1, 2, 4 or 8 */
    bool fast_dct, plain_upsampling;     /* other bits than without */
    bool gray;                           /* one byte a pixel, else RGB */
    bool accept_warnings;
    int64_t top, left, height, width;
} stki_jpeg_how;

/* "2.1.5": of libjpeg-turbo, when this was compiled. */
const char *stki_jpeg_version(void);

/* Pixels of the scaled image that are decoded together in a row. */
int64_t stki_jpeg_columns(int components, int max_h, int scale);

/* Rows of `row_bytes` at `to`. `rows4` is room for how->width * 4 bytes, only used for images of four components; may
 * be NULL for others. `warnings` counts those that were accepted. STK_E_TRUNCATED, STK_E_CORRUPT, STK_E_UNSUPPORTED,
 * STK_E_LIMIT, STK_E_MEMORY; the message has libjpeg's own words and no place. */
stk_status stki_jpeg_decode(const void *bytes, int64_t count, const stki_jpeg_how *how, uint8_t *to, int64_t row_bytes,
                            uint8_t *rows4, int64_t *warnings, stk_error *err);

#endif
