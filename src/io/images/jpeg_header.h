/* jpeg_header.h: the header of a JPEG image before its first scan: size, components, EXIF orientation. Pure functions;
 * thread-safe. */
#ifndef STKI_JPEG_HEADER_H
#define STKI_JPEG_HEADER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_jpeg_header {
    int64_t height, width; /* 1 to 65535 */
    int components;        /* 1, 3 or 4 */
    int max_h, max_v;      /* largest sampling factors, 1 to 4 */
    bool subsampled;       /* at least one component has smaller factors */
    bool progressive, arithmetic;
    int restart;         /* restart interval in MCUs; 0: none */
    int orientation;     /* EXIF orientation, 1 to 8 */
    int64_t scan_offset; /* offset of the marker of the first scan */
    const char *special; /* an unsupported feature: "lossless compression"; NULL: none */
    int64_t frame_offset;
} stki_jpeg_header;

/* Parses the header. STK_E_TRUNCATED: the bytes end before the first scan. STK_E_UNSUPPORTED names the unsupported
 * feature. Errors state the offset in the image, but not the file. */
stk_status stki_jpeg_read_header(const void *bytes, int64_t count, stki_jpeg_header *out, stk_error *err);
/* Like stki_jpeg_read_header, but unsupported features are not an error. */
stk_status stki_jpeg_look(const void *bytes, int64_t count, stki_jpeg_header *out, stk_error *err);

/* Returns a lower bound of the image's size in bytes, whatever its content. */
int64_t stki_jpeg_least_bytes(const stki_jpeg_header *header);

#endif
