/* color_rows.h: rows whose colours change: from the bytes of a window to f32 planes, some lines at a time, through the
 * steps that were drawn for the sample, and through the conversion into the row. A step that needs the mean of the
 * image costs another pass over the bytes. */
#ifndef STKI_COLOR_ROWS_H
#define STKI_COLOR_ROWS_H

#include "resample.h"

/* `window`: the first byte of the placing's window, `strides` along the sample's axes. */
stk_status stki_color_store(const stki_field_plan *plan, stki_resampler *resampler, const uint8_t *window,
                            const int64_t *strides, void *row, stk_error *err);

#endif
