/* sheet.h: a contact sheet: images in square cells of one PNG, for `stoker inspect --image` and `loadbench --preview`.
 */
#ifndef SHEET_H
#define SHEET_H

#include <stoker/tensor.h>

enum { SHEET_MOST = 64 /* images */ };

struct sheet;

/* Creates a sheet for `images` images, 1 to SHEET_MOST. Call sheet_destroy(*out) even after a failure. */
stk_status sheet_create(int64_t images, struct sheet **out, stk_error *err);
void sheet_destroy(struct sheet *sheet); /* NULL is allowed */
/* Two-dimensional images are gray; three-dimensional ones are [H, W, 1 or 3] or [1 or 3, H, W]. u8 is shown as is,
 * unless all values are so small that the image would be nearly black. Other dtypes are scaled from their minimum to
 * their maximum. `path` is used in messages. STK_E_UNSUPPORTED: the image has a different shape. */
stk_status sheet_draw(struct sheet *sheet, const stk_tensor *image, const char *path, int64_t cell, stk_error *err);
stk_status sheet_save(const struct sheet *sheet, const char *path, stk_error *err);

#endif
