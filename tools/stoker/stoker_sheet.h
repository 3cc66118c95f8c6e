/* stoker_sheet.h: a contact sheet of the first images of a member, as a PNG. */
#ifndef STOKER_SHEET_H
#define STOKER_SHEET_H

#include "container.h"

/* Two-dimensional samples are gray; three-dimensional ones are [H, W, 1 or 3] or [1 or 3, H, W]. u8 is shown as is,
 * unless all values are so small that the image would be nearly black. Other dtypes are scaled from their minimum to
 * their maximum. Sets *shown to the number of images on the sheet. STK_E_UNSUPPORTED: the samples have a different
 * shape. */
stk_status st_sheet_write(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                          const char *path, int64_t *shown, stk_error *err);

#endif
