/* loadbench_look.h: the actions that describe a loader, or show what it delivers, instead of measuring it. */
#ifndef LOADBENCH_LOOK_H
#define LOADBENCH_LOOK_H

#include "loadbench_config.h"

/* --explain: prints the loader's description and the limit set by this machine's memory bandwidth. No samples are
 * read. */
stk_status lb_explain(const struct lb_config *config, FILE *to, stk_error *err);
/* --preview: writes a contact sheet of the first batch, with all image fields. The arithmetic of the transforms is
 * inverted, so that the colors are those of the stored images. STK_E_UNSUPPORTED: no image fields, or too many. */
stk_status lb_preview(const struct lb_config *config, const char *path, FILE *to, stk_error *err);

#endif
