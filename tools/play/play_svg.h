/* play_svg.h: drawings of a tensor and of its storage as inline SVG, with the classes of play_page.c. In both, the
 * color of an element encodes its position in row-major order. */
#ifndef STOKER_PLAY_SVG_H
#define STOKER_PLAY_SVG_H

#include <stdio.h>
#include <stoker/tensor.h>

/* Draws the storage, one cell per element, in images of eight cells that wrap on narrow screens. A large storage is
 * drawn as a bar. */
stk_status pl_svg_storage(const stk_tensor *tensor, int hue, FILE *to, stk_error *err);
/* Draws the elements by index, as planes of at most a dozen rows and columns. */
void pl_svg_tensor(const stk_tensor *tensor, int hue, FILE *to);
/* Draws two right-aligned shapes and the shape that they broadcast to. */
void pl_svg_broadcast(const char *const names[2], const int ndims[2], const int64_t *const shapes[2], FILE *to);

#endif
