/* pad_lines.h: writes windows that extend past the edges of an image: its pixels with padding around them. */
#ifndef STKI_PAD_LINES_H
#define STKI_PAD_LINES_H

#include "plan.h"

/* The destination of the padded lines; strides are along the sample's axes. */
typedef struct stki_block {
    const int64_t *strides;
    int64_t bytes; /* size of the whole window */
} stki_block;

/* Writes `count` lines of the window, starting at line `first`. `view`: the pixels of the image that the window needs.
 */
void stki_pad_lines(const stki_field_plan *plan, const stki_block *block, const stki_placement *placement,
                    const stk_tensor *view, int64_t first, int64_t count, uint8_t *to);

#endif
