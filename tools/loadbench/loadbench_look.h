/* loadbench_look.h: looking at a loader instead of measuring it: what it is going to do, and what it delivers. */
#ifndef LOADBENCH_LOOK_H
#define LOADBENCH_LOOK_H

#include "loadbench_config.h"

/* --explain: the loader's own words, and what this machine's memory would allow. No sample is read. */
stk_status lb_explain(const struct lb_config *config, FILE *to, stk_error *err);
/* --preview: a contact sheet of the first batch, for each field of images; the arithmetic of the transforms is undone,
 * so that colours are those of the stored images. STK_E_UNSUPPORTED: no field holds images. */
stk_status lb_preview(const struct lb_config *config, const char *path, FILE *to, stk_error *err);

#endif
