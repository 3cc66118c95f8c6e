/* exif.h: the orientation recorded by a camera. Pure functions; thread-safe. */
#ifndef STKI_EXIF_H
#define STKI_EXIF_H

#include <stdbool.h>
#include <stdint.h>

/* `tiff`: the EXIF data from its TIFF header on. Returns 1 to 8; 1 also if there is no orientation or it is invalid. */
int stki_exif_orientation(const void *tiff, int64_t length);

/* The transformation to upright: pixel (y, x) of the upright image is pixel (sy, sx) of the stored one, where (sy, sx)
 * is (y, x), first swapped if `swap`, then mirrored as given by the flips. */
typedef struct stki_turn {
    bool swap, flip_rows, flip_columns; /* of the stored image */
} stki_turn;

stki_turn stki_exif_turn(int orientation);

#endif
