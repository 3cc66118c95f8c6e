/* resize.h: images of 8-bit pixels to another size, bit-equal to Pillow's Image.resize (reducing_gap None): two passes,
 * horizontal then vertical, coefficients in fixed point of 22 bits, the intermediate rounded to 8 bits. A plan holds
 * the coefficients of one (input box, output size, filter); it is reused while these stay the same. A plan and a
 * worker's memory belong to one thread at a time.
 */
#ifndef STKI_RESIZE_H
#define STKI_RESIZE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum stki_filter {
    STKI_FILTER_NEAREST,
    STKI_FILTER_BOX,
    STKI_FILTER_BILINEAR,
    STKI_FILTER_HAMMING,
    STKI_FILTER_BICUBIC,
    STKI_FILTER_LANCZOS
};

/* STKI_FILTER_… of "nearest", …; -1: unknown. */
int stki_filter_find(const char *name);

typedef struct stki_resize stki_resize; /* reusable: tables and rows grow and stay */

stk_status stki_resize_create(stki_resize **out, stk_error *err);
void stki_resize_destroy(stki_resize *resize); /* NULL is fine */

/* Prepares for an input of in_height x in_width pixels of `channels` bytes (1 to 4), of which the box (left, top,
 * right, bottom; in pixels, may be fractions) becomes out_height x out_width. Cheap when nothing changed since the last
 * call. STK_E_BAD_SHAPE: a box outside the input or without area; sizes outside 1 to 65535. */
stk_status stki_resize_set(stki_resize *resize, int64_t in_height, int64_t in_width, int channels, const double box[4],
                           int64_t out_height, int64_t out_width, enum stki_filter filter, stk_error *err);
/* The rows and columns of the input that the result depends on. */
void stki_resize_support(const stki_resize *resize, int64_t *top, int64_t *bottom, int64_t *left, int64_t *right);
/* in: pixel (y, x) at in + y * in_row + x * channels (strides of pixels are fixed). out likewise. Buffers must not
 * overlap. */
void stki_resize_run(stki_resize *resize, const uint8_t *in, int64_t in_row, uint8_t *out, int64_t out_row);

#endif
