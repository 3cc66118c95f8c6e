/* exif.h: the orientation that a camera wrote into an image. Pure; any thread. */
#ifndef STKI_EXIF_H
#define STKI_EXIF_H

#include <stdbool.h>
#include <stdint.h>

/* `tiff`: the EXIF data, from its TIFF header on. 1 to 8; 1 also where there is none, or anything about it is wrong. */
int stki_exif_orientation(const void *tiff, int64_t length);

/* How an image is turned upright: pixel (y, x) of the upright image is pixel (sy, sx) of the stored one, where (sy, sx)
 * is (y, x), swapped first, then counted from the end where a flip says so. */
typedef struct stki_turn {
    bool swap, flip_rows, flip_columns; /* of the stored image */
} stki_turn;

stki_turn stki_exif_turn(int orientation);

#endif
