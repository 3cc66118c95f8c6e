/* jpeg_encode.h: encodes JPEG images with libjpeg-turbo. The same pixels and options produce the same bytes in any
 * thread. Thread-safe with one room per thread. */
#ifndef STKI_JPEG_ENCODE_H
#define STKI_JPEG_ENCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum {
    STKI_JPEG_MOST_SIDE = 65500, /* limit of libjpeg */
    STKI_JPEG_MOST_RESTART = 65535
};

/* Chroma subsampling: none, horizontal, or both horizontal and vertical. It has no effect on gray images. */
enum stki_jpeg_subsampling { STKI_JPEG_444, STKI_JPEG_422, STKI_JPEG_420 };

typedef struct stki_jpeg_form {
    int quality;                            /* 1 to 100, as in libjpeg */
    enum stki_jpeg_subsampling subsampling; /* applies to three channels */
    bool optimize;                          /* optimized Huffman tables: a few percent smaller, slower */
    bool progressive;                       /* implies optimize */
    int64_t restart;                        /* see stki_jpeg_interval; 0: no restart markers */
} stki_jpeg_form;

/* u8 pixels, row by row, with the channels of a pixel contiguous. */
typedef struct stki_jpeg_pixels {
    const uint8_t *pixels;
    int64_t height, width;
    int channels; /* 1: gray; 3: RGB */
    int64_t row_bytes;
} stki_jpeg_pixels;

/* Output buffer for images, which is reused and grows to the size of the largest one. Initialize with {0}. */
typedef struct stki_jpeg_room {
    uint8_t *data;
    int64_t bytes;
} stki_jpeg_room;

/* Returns the restart interval in MCUs: the largest number up to `most` (at least 1) that divides a row of `columns`
 * MCUs, so that parts can be cut out at any row and interval (jpeg_cut.h). */
int stki_jpeg_interval(int64_t columns, int64_t most);

/* Encodes an image. The result is *bytes bytes at room->data, valid until the room is used again. STK_E_BAD_SHAPE: the
 * height or width is 0. STK_E_LIMIT: the height or width exceeds STKI_JPEG_MOST_SIDE. STK_E_MEMORY. The message has no
 * location. */
stk_status stki_jpeg_encode(const stki_jpeg_pixels *image, const stki_jpeg_form *form, stki_jpeg_room *room,
                            int64_t *bytes, stk_error *err);
void stki_jpeg_room_fini(stki_jpeg_room *room);

#endif
