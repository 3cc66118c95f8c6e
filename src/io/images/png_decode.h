/* png_decode.h: pixels of a PNG image through libspng. Any thread. */
#ifndef STKI_PNG_DECODE_H
#define STKI_PNG_DECODE_H

#include "png_header.h"

typedef struct stki_png_how {
    bool gray;           /* one byte a pixel, else RGB */
    bool index;          /* with gray: the stored samples of 1 to 8 bits, of an image with one channel or a palette */
    bool deep;           /* samples of 16 bits, u16, of an image that has them; with gray: of one without colors */
    int64_t top, height; /* whole rows of the image; all of them where it is interlaced */
} stki_png_how;

/* Bytes of `room` that stki_png_decode needs beside the result; may be 0. */
int64_t stki_png_room(const stki_png_header *header, const stki_png_how *how);

/* `to` gets how->height rows, close together. Alpha is left out, of 16 bits the upper 8 are taken unless how->deep,
 * gray of colors is (19595 R + 38470 G + 7471 B + 32768) >> 16. STK_E_TRUNCATED, STK_E_CORRUPT, STK_E_MEMORY; the
 * message has libspng's own words and no place. */
stk_status stki_png_decode(const void *bytes, int64_t count, const stki_png_header *header, const stki_png_how *how,
                           uint8_t *to, uint8_t *room, stk_error *err);

#endif
