/* segments.h: wraps a reader with samples of varying length: the new samples are windows along their first axis, or
 * single rows. A window does not extend beyond its sample. */
#ifndef STKI_SEGMENTS_H
#define STKI_SEGMENTS_H

#include "reader.h"

typedef struct stki_segments_opts {
    int64_t length;   /* rows per window; 0: samples are single rows, without the axis */
    int64_t dilation; /* distance between the rows of a window */
    int64_t step;     /* number of rows from one window to the next */
    int64_t missing;  /* number of failing samples that replace an inner sample of unknown shape; at least 1 */
} stki_segments_opts;

/* Takes ownership of `inner` (even on failure), whose samples must be row-major. A sample whose axes after the first
 * differ from those of the largest one fails. */
stk_status stki_segments_open(stki_reader *inner, const stki_segments_opts *opts, stki_reader **out, stk_error *err);

#endif
