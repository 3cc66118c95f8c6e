/* loadbench_look.h: inspects a loader instead of measuring it: what it will do, and what it delivers. */
#ifndef LOADBENCH_LOOK_H
#define LOADBENCH_LOOK_H

#include "loadbench_config.h"

/* --explain: the loader's description, and the limit set by this machine's memory bandwidth. No sample is read. */
stk_status lb_explain(const struct lb_config *config, FILE *to, stk_error *err);
/* --preview: a contact sheet of the first batch for each image field. The arithmetic of the transforms is inverted, so
 * that colors are those of the stored images. STK_E_UNSUPPORTED: no image field. */
stk_status lb_preview(const struct lb_config *config, const char *path, FILE *to, stk_error *err);

#endif
