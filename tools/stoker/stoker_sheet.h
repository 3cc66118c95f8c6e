/* stoker_sheet.h: a contact sheet: the first images of a member as one PNG. */
#ifndef STOKER_SHEET_H
#define STOKER_SHEET_H

#include "container.h"

/* Samples of two axes are grey, of three [H, W, 1 or 3] or [1 or 3, H, W]; u8 is shown as it is, other dtypes from
 * their smallest to their largest value. *shown: how many images fit. STK_E_UNSUPPORTED: samples of another shape. */
stk_status st_sheet_write(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                          const char *path, int64_t *shown, stk_error *err);

#endif
