/* segments.h: a reader over another whose samples differ in length: its samples are windows along their first axis, or
 * single rows of it. Windows never leave the sample that they lie in. */
#ifndef STKI_SEGMENTS_H
#define STKI_SEGMENTS_H

#include "reader.h"

typedef struct stki_segments_opts {
    int64_t length;   /* rows of a window; 0: samples are single rows, without the axis */
    int64_t dilation; /* from one row of a window to the next */
    int64_t step;     /* rows from one window to the next */
    int64_t missing;  /* samples that stand for one whose shape is not known, and fail; at least 1 */
} stki_segments_opts;

/* Takes over `inner`, also when this fails, whose samples are row-major. A sample with other axes behind the first than
 * the largest has is one that fails. */
stk_status stki_segments_open(stki_reader *inner, const stki_segments_opts *opts, stki_reader **out, stk_error *err);

#endif
