/* play_memory.h: what a model, or a batch, takes in each dtype, and a sparse tensor in each form. */
#ifndef STOKER_PLAY_MEMORY_H
#define STOKER_PLAY_MEMORY_H

#include "play_args.h"

/* Prints to stdout, and into `page` if it is not NULL. STK_E_CONFIG: args->what is neither a number nor a shape. */
stk_status pl_memory(const struct pl_args *args, FILE *page, stk_error *err);

#endif
