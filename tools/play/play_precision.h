/* play_precision.h: a sine in each dtype and in int8, and what becomes of it. */
#ifndef STOKER_PLAY_PRECISION_H
#define STOKER_PLAY_PRECISION_H

#include "play_args.h"

/* Prints to stdout, and into `page` if it is not NULL. */
stk_status pl_precision(const struct pl_args *args, FILE *page, stk_error *err);

#endif
