/* jpeg_cut.h: makes a smaller JPEG file from the restart intervals needed for a part of an image. Pure functions;
 * thread-safe. */
#ifndef STKI_JPEG_CUT_H
#define STKI_JPEG_CUT_H

#include "jpeg_header.h"

/* Pixels of the stored image, at full size. */
typedef struct stki_jpeg_box {
    int64_t top, left, height, width;
} stki_jpeg_box;

/* Makes a file of the smallest box that covers `box` and consists of whole restart intervals, at `to`, which has room
 * for `count` bytes. *box is set to the box of the file; *made to its size. Decoding the file yields the same pixels as
 * decoding the whole image, except next to edges, where upsampling differs. False: no file is made and *box is
 * unchanged, because decoding the whole image costs no more, or the image has no usable intervals (no restart markers,
 * or missing, misordered or additional restart markers, several scans, or anything unusual in the header). Errors in
 * these images are reported by the decoder of the whole image. */
bool stki_jpeg_cut(const void *bytes, int64_t count, const stki_jpeg_header *header, stki_jpeg_box *box, uint8_t *to,
                   int64_t *made);

#endif
