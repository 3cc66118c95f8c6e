/* jpeg_transcode.h: a JPEG image stored in another way, without a loss: baseline, with restart markers. Any thread,
 * each with its own room. */
#ifndef STKI_JPEG_TRANSCODE_H
#define STKI_JPEG_TRANSCODE_H

#include "jpeg_encode.h"

/* Writes an image of the same coefficients, quantisation and sampling into `room`: one scan of Huffman codes of the
 * image's own, with an interval of stki_jpeg_interval(…, restart). All application segments and comments are kept, byte
 * for byte and in order; what follows the end of the image is not. *height, *width and *components are of the image.
 * Where *stays is not NULL on return, nothing was written, since the image is of a kind that stays as it is, and *stays
 * says which: "arithmetic coding", "12 bits per sample". Otherwise the file is *made bytes at room->data, until the
 * room is used again. Errors are those of stki_jpeg_decode: whatever libjpeg warns of is one. */
typedef struct stki_jpeg_transcoded {
    int64_t height, width;
    int components;
    const char *stays;
    int64_t bytes;
} stki_jpeg_transcoded;
stk_status stki_jpeg_transcode(const void *bytes, int64_t count, int64_t restart, stki_jpeg_room *room,
                               stki_jpeg_transcoded *out, stk_error *err);

#endif
