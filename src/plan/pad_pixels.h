/* pad_pixels.h: converts padded windows of samples of interleaved bytes to planar rows. Pixels are converted directly
 * from the sample, and padding is converted from a line of fill pixels. */
#ifndef STKI_PAD_PIXELS_H
#define STKI_PAD_PIXELS_H

#include "plan.h"

/* Whether stki_pad_pixels can make the row, and is faster than converting a copy of the window. `strides`: along the
 * sample's axes. */
bool stki_pads_pixels(const stki_field_plan *plan, const stki_placement *placement, const stki_convert *convert,
                      const int64_t *strides);
/* Returns the number of bytes of the sample that such a row shows. */
int64_t stki_pad_pixels_read(const stki_field_plan *plan, const stki_placement *placement);
/* `convert`: the conversion of the sample's shard in the placement's orientation. `sample`: address of its first
 * element. */
stk_status stki_pad_pixels(const stki_field_plan *plan, const stki_placement *placement, const stki_convert *convert,
                           const char *sample, const int64_t *strides, void *row, stki_scratch *scratch,
                           stk_error *err);

#endif
