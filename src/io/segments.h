/* segments.h: a reader over another whose samples differ in length: its samples are windows along their first axis, or
 * single rows of it. A window never extends beyond its sample. */
#ifndef STKI_SEGMENTS_H
#define STKI_SEGMENTS_H

#include "reader.h"

typedef struct stki_segments_opts {
    int64_t length;   /* rows of a window; 0: samples are single rows, without the axis */
    int64_t dilation; /* from one row of a window to the next */
    int64_t step;     /* rows from one window to the next */
    int64_t missing;  /* how many samples, all failing, replace one whose shape is not known; at least 1 */
} stki_segments_opts;

/* Takes over `inner` (also when this fails), whose samples must be row-major. A sample whose axes after the first
 * differ from those of the largest one fails. */
stk_status stki_segments_open(stki_reader *inner, const stki_segments_opts *opts, stki_reader **out, stk_error *err);

#endif
