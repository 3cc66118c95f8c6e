/* pad_lines.h: windows that reach over the edge of an image: its pixels with padding around them. */
#ifndef STKI_PAD_LINES_H
#define STKI_PAD_LINES_H

#include "plan.h"

/* What the lines are put together in, along the sample's axes. */
typedef struct stki_block {
    const int64_t *strides;
    int64_t bytes; /* of the whole window */
} stki_block;

/* `count` lines from line `first` of the window on, from a view of the pixels that it needs. */
void stki_pad_lines(const stki_field_plan *plan, const stki_block *block, const stki_placing *placing,
                    const stk_tensor *view, int64_t first, int64_t count, uint8_t *to);

#endif
