/* color_rows.h: makes rows whose colors change. A few lines of a window at a time are converted to f32 planes, the
 * steps drawn for the sample are applied, and the result is converted into the row. A step that needs the mean of the
 * image costs another pass over the bytes. */
#ifndef STKI_COLOR_ROWS_H
#define STKI_COLOR_ROWS_H

#include "resample.h"

/* `window`: address of the first byte of the placement's window. `strides`: along the sample's axes. */
stk_status stki_color_store(const stki_field_plan *plan, stki_resampler *resampler, const uint8_t *window,
                            const int64_t *strides, void *row, stk_error *err);

#endif
