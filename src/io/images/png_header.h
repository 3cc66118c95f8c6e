/* png_header.h: the header of a PNG image before its pixels. Pure functions; thread-safe. */
#ifndef STKI_PNG_HEADER_H
#define STKI_PNG_HEADER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_png_header {
    int64_t height, width; /* 1 to 2^31 - 1 */
    int bits;              /* bits per channel */
    int channels;          /* stored channels: 1 (gray, palette), 2 (gray and alpha), 3 (RGB) or 4 (RGBA) */
    bool palette, interlaced;
    int orientation; /* EXIF orientation, 1 to 8; from an eXIf chunk before the pixels */
} stki_png_header;

/* Parses the header. STK_E_TRUNCATED: the bytes end before the pixels. Errors state the offset in the image, but not
 * the file. */
stk_status stki_png_read_header(const void *bytes, int64_t count, stki_png_header *out, stk_error *err);

/* Returns the minimum number of bytes of the compressed pixels. */
int64_t stki_png_least_bytes(const stki_png_header *header);

#endif
