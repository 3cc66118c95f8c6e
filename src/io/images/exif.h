/* exif.h: the image orientation recorded by a camera. Pure functions; thread-safe. */
#ifndef STKI_EXIF_H
#define STKI_EXIF_H

#include <stdbool.h>
#include <stdint.h>

/* `tiff`: the EXIF data, starting with its TIFF header. Returns 1 to 8, or 1 if there is no orientation or it is
 * invalid. */
int stki_exif_orientation(const void *tiff, int64_t length);

/* The transformation to the upright image: its pixel (y, x) is pixel (sy, sx) of the stored image, where (sy, sx) is
 * (y, x), first swapped if `swap` is set, then mirrored along the axes whose flip is set. */
typedef struct stki_turn {
    bool swap, flip_rows, flip_columns; /* flips are along axes of the stored image */
} stki_turn;

stki_turn stki_exif_turn(int orientation);

#endif
