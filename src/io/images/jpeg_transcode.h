/* jpeg_transcode.h: losslessly rewrites a JPEG image as baseline with restart markers. Thread-safe with one room per
 * thread. */
#ifndef STKI_JPEG_TRANSCODE_H
#define STKI_JPEG_TRANSCODE_H

#include "jpeg_encode.h"

/* Writes an image with the same coefficients, quantization and sampling to `room`: a single scan with optimized Huffman
 * tables and an interval of stki_jpeg_interval(…, restart). All application segments and comments are kept byte for
 * byte and in order; data after the end of the image is discarded. If images of this kind are kept unchanged, nothing
 * is written, and out->stays is the reason, such as "arithmetic coding" or "12 bits per sample". Otherwise out->stays
 * is NULL, and the file is out->bytes bytes at room->data, valid until the room is used again. Errors are those of
 * stki_jpeg_decode, and every warning of libjpeg is an error. */
typedef struct stki_jpeg_transcoded {
    int64_t height, width;
    int components;
    const char *stays;
    int64_t bytes;
} stki_jpeg_transcoded;
stk_status stki_jpeg_transcode(const void *bytes, int64_t count, int64_t restart, stki_jpeg_room *room,
                               stki_jpeg_transcoded *out, stk_error *err);

#endif
