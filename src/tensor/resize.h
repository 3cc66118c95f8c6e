/* resize.h: resizes images of 8-bit pixels, bit-equal to Image.resize of Pillow 13 (reducing_gap None): two passes with
 * fixed-point coefficients of 22 fraction bits and an intermediate result rounded to 8 bits. The horizontal pass comes
 * first, unless the height shrinks by more than twice as many pixels as the width (of the whole image, not of the box).
 * A resizer holds the coefficients for one input size, box, output size and filter, and a buffer for the rows between
 * the passes. The coefficients are reused while these parameters do not change. One thread at a time. */
#ifndef STKI_RESIZE_H
#define STKI_RESIZE_H

#include "convert.h"
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum stki_filter {
    STKI_FILTER_NEAREST,
    STKI_FILTER_BOX,
    STKI_FILTER_BILINEAR,
    STKI_FILTER_HAMMING,
    STKI_FILTER_BICUBIC,
    STKI_FILTER_LANCZOS,
    STKI_FILTERS
};

enum { STKI_RESIZE_MOST = 65535, STKI_RESIZE_MAX_CHANNELS = 4 };

extern const char *const stki_filter_words[]; /* indexed by STKI_FILTER_…; terminated by NULL */

typedef struct stki_resizer stki_resizer; /* tables and row buffers grow and are reused */

/* The input, the output, and the part of the output to compute. */
typedef struct stki_resize_job {
    int64_t in_height, in_width; /* 1 to 65535; the same for the output */
    int channels;                /* bytes per pixel, 1 to 4 */
    double box[4];               /* left, top, right, bottom in input pixels; may be fractions */
    int64_t out_height, out_width;
    enum stki_filter filter;
    /* Only this part of the result is computed; it equals that part of the whole result. window_height 0: everything.
     */
    int64_t window_top, window_left, window_height, window_width;
} stki_resize_job;

/* The part of the input that the result depends on, in pixels. */
typedef struct stki_resize_support {
    int64_t top, left, height, width;
} stki_resize_support;

/* STK_E_BAD_SHAPE: a size is out of range, or the box is empty or not inside the input. */
stk_status stki_resize_check(const stki_resize_job *job, stk_error *err);

stk_status stki_resizer_create(stki_resizer **out, stk_error *err);
/* For tests and benchmarks: uses the kernels of the given instruction set instead of the selected one. */
stk_status stki_resizer_create_isa(enum stki_isa isa, stki_resizer **out, stk_error *err);
void stki_resizer_destroy(stki_resizer *resizer); /* NULL is allowed */

/* Recomputes only the tables whose parameters have changed. STK_E_BAD_SHAPE: as for stki_resize_check. After a failure,
 * set must succeed before the resizer is used. */
stk_status stki_resizer_set(stki_resizer *resizer, const stki_resize_job *job, stk_error *err);
const stki_resize_support *stki_resizer_support(const stki_resizer *resizer);
/* Resizes an image. `in` is the address of the support's first pixel (support->top, support->left); only the support is
 * read. Pixel (y, x) relative to it is at in + y * in_row + x * channels; likewise for the output (the window). The
 * buffers must not overlap. */
void stki_resizer_run(stki_resizer *resizer, const uint8_t *in, int64_t in_row, uint8_t *out, int64_t out_row);
/* Like stki_resizer_run, but a few rows at a time, for callers that use the rows while they are in the cache: call
 * begin, then next for `count` rows (of the window) until all have been produced. Until then `in` must not change.
 * Multiples of four rows are the most efficient. */
void stki_resizer_begin(stki_resizer *resizer, const uint8_t *in, int64_t in_row);
void stki_resizer_next(stki_resizer *resizer, uint8_t *out, int64_t out_row, int64_t count);

#endif
