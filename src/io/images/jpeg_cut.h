/* jpeg_cut.h: a smaller JPEG file out of the restart intervals of a larger one that a part of the image needs. Pure;
 * any thread. */
#ifndef STKI_JPEG_CUT_H
#define STKI_JPEG_CUT_H

#include "jpeg_header.h"

/* Pixels of the stored image, at full size. */
typedef struct stki_jpeg_box {
    int64_t top, left, height, width;
} stki_jpeg_box;

/* Makes a file of the smallest box that covers `box` and consists of whole restart intervals, at `to`, which has room
 * for `count` bytes. *box becomes what the file holds; *made is its length. Decoding it gives the pixels that decoding
 * the whole gives there, apart from those next to an edge that upsampling smooths over. False: nothing is made and *box
 * is as it was. Either decoding the whole costs no more, or the image has no usable intervals: no restart markers, ones
 * that are missing, out of order or too many, several scans, or anything unusual in the header. What is wrong with such
 * a file is for the decoder of the whole to say. */
bool stki_jpeg_cut(const void *bytes, int64_t count, const stki_jpeg_header *header, stki_jpeg_box *box, uint8_t *to,
                   int64_t *made);

#endif
