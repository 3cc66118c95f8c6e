/* jpeg_header.h: what a JPEG image says before its first scan: size, components, EXIF orientation. Pure; any thread. */
#ifndef STKI_JPEG_HEADER_H
#define STKI_JPEG_HEADER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_jpeg_header {
    int64_t height, width; /* 1 to 65535 */
    int components;        /* 1, 3 or 4 */
    int max_h, max_v;      /* largest sampling factors, 1 to 4 */
    bool subsampled;       /* a component has smaller ones */
    bool progressive, arithmetic;
    int restart;         /* MCUs from one restart marker to the next; 0: there are none */
    int orientation;     /* 1 to 8 */
    int64_t scan_offset; /* of the marker of the first scan */
    const char *special; /* what stoker does not decode: "lossless compression"; NULL: it does */
    int64_t frame_offset;
} stki_jpeg_header;

/* STK_E_TRUNCATED: the bytes end before the first scan. STK_E_UNSUPPORTED names what stoker does not decode. Errors
 * name the offset in the image, but no file. */
stk_status stki_jpeg_read_header(const void *bytes, int64_t count, stki_jpeg_header *out, stk_error *err);
/* The same, but a special image is no error. */
stk_status stki_jpeg_look(const void *bytes, int64_t count, stki_jpeg_header *out, stk_error *err);

/* Bytes that a scan of this image has at least, however well it is compressed. */
int64_t stki_jpeg_least_bytes(const stki_jpeg_header *header);

#endif
