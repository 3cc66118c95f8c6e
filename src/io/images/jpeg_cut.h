/* jpeg_cut.h: makes a smaller JPEG file from the restart intervals needed for a part of an image. Pure functions;
 * thread-safe. */
#ifndef STKI_JPEG_CUT_H
#define STKI_JPEG_CUT_H

#include "jpeg_header.h"

/* Pixels of the stored image, at full size. */
typedef struct stki_jpeg_box {
    int64_t top, left, height, width;
} stki_jpeg_box;

/* Writes a file with the smallest box that covers `box` and consists of whole restart intervals to `to`, which has room
 * for `count` bytes. Sets *box to the box of the file and *made to its size in bytes. Decoding the file yields the same
 * pixels as decoding the whole image, except next to edges, where upsampling differs. Returns false, without changing
 * *box, if decoding the whole image costs no more, or if the image has no usable intervals (no restart markers, or
 * missing, misordered or additional ones, several scans, or anything unusual in the header). Errors in these images are
 * reported by the decoder of the whole image. */
bool stki_jpeg_cut(const void *bytes, int64_t count, const stki_jpeg_header *header, stki_jpeg_box *box, uint8_t *to,
                   int64_t *made);

#endif
