/* play_svg.h: drawings of a tensor and of its storage as inline SVG, in the classes of play_page.c. The
 * colour of an element grows with its place in reading order, in both drawings.
 */
#ifndef STOKER_PLAY_SVG_H
#define STOKER_PLAY_SVG_H

#include <stdio.h>
#include <stoker/tensor.h>

/* The storage: cells by themselves, eight in a picture so that they wrap on narrow screens; a bar for large ones. */
stk_status pl_svg_storage(const stk_tensor *tensor, int hue, FILE *to, stk_error *err);
/* The elements at their indices: planes of rows and columns, the first dozen of each. */
void pl_svg_tensor(const stk_tensor *tensor, int hue, FILE *to);
/* Shapes aligned from the right, and the shape that they have in common. */
void pl_svg_broadcast(const char *const names[2], const int ndims[2], const int64_t *const shapes[2], FILE *to);

#endif
