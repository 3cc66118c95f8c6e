/* png_decode.h: decodes PNG images with libspng. Thread-safe. */
#ifndef STKI_PNG_DECODE_H
#define STKI_PNG_DECODE_H

#include "png_header.h"

typedef struct stki_png_how {
    bool gray;           /* one byte per pixel; false: RGB */
    bool index;          /* with gray: the stored samples of 1 to 8 bits of an image with one channel or a palette */
    bool deep;           /* u16 samples of a 16-bit image, which must not have colors if `gray` is set */
    int64_t top, height; /* whole rows of the image; all rows if it is interlaced */
} stki_png_how;

/* Returns the size in bytes of the `room` that stki_png_decode needs in addition to the result; may be 0. */
int64_t stki_png_room(const stki_png_header *header, const stki_png_how *how);

/* Stores how->height contiguous rows. Alpha is discarded, only the upper 8 of 16 bits are used unless how->deep is set,
 * and gray from colors is (19595 R + 38470 G + 7471 B + 32768) >> 16. STK_E_TRUNCATED, STK_E_CORRUPT, STK_E_MEMORY; the
 * message contains libspng's text and no location. */
stk_status stki_png_decode(const void *bytes, int64_t count, const stki_png_header *header, const stki_png_how *how,
                           uint8_t *to, uint8_t *room, stk_error *err);

#endif
