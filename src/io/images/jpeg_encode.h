/* jpeg_encode.h: JPEG images of pixels, through libjpeg-turbo. The same pixels and options give the same bytes, on any
 * thread. Any thread, each with its own room. */
#ifndef STKI_JPEG_ENCODE_H
#define STKI_JPEG_ENCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum {
    STKI_JPEG_MOST_SIDE = 65500, /* what libjpeg writes */
    STKI_JPEG_MOST_RESTART = 65535
};

/* Of the two chroma channels: every pixel, every second in a row, every second in a row and in a column. Without effect
 * on gray images. */
enum stki_jpeg_subsampling { STKI_JPEG_444, STKI_JPEG_422, STKI_JPEG_420 };

typedef struct stki_jpeg_form {
    int quality;                            /* 1 to 100, as libjpeg scales its tables */
    enum stki_jpeg_subsampling subsampling; /* where there are three channels */
    bool optimize;                          /* Huffman tables of the image's own: a few percent smaller, slower */
    bool progressive;                       /* which implies that */
    int64_t restart;                        /* see stki_jpeg_interval; 0: no restart markers */
} stki_jpeg_form;

/* u8, row by row, the channels of a pixel close together. */
typedef struct stki_jpeg_pixels {
    const uint8_t *pixels;
    int64_t height, width;
    int channels; /* 1: gray; 3: RGB */
    int64_t row_bytes;
} stki_jpeg_pixels;

/* Memory that images are written into; it is kept from one to the next and grows to the largest. Starts as {0}. */
typedef struct stki_jpeg_room {
    uint8_t *data;
    int64_t bytes;
} stki_jpeg_room;

/* MCUs from one restart marker to the next: as many as fit a row of `columns` MCUs without a rest, at most `most` (1
 * and more). Then a part can be cut out at any row and interval (jpeg_cut.h). */
int stki_jpeg_interval(int64_t columns, int64_t most);

/* The file is *bytes bytes at room->data, until the room is used again. STK_E_BAD_SHAPE: no side may be 0.
 * STK_E_LIMIT: or above STKI_JPEG_MOST_SIDE. STK_E_MEMORY. The message has no place. */
stk_status stki_jpeg_encode(const stki_jpeg_pixels *image, const stki_jpeg_form *form, stki_jpeg_room *room,
                            int64_t *bytes, stk_error *err);
void stki_jpeg_room_fini(stki_jpeg_room *room);

#endif
