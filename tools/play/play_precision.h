/* play_precision.h: the error of a sine stored in each dtype and in int8. */
#ifndef STOKER_PLAY_PRECISION_H
#define STOKER_PLAY_PRECISION_H

#include "play_args.h"

/* Prints to stdout, and to `page` if not NULL. */
stk_status pl_precision(const struct pl_args *args, FILE *page, stk_error *err);

#endif
