/* play_memory.h: memory of a model or a batch in each dtype, and of a sparse tensor in each format. */
#ifndef STOKER_PLAY_MEMORY_H
#define STOKER_PLAY_MEMORY_H

#include "play_args.h"

/* Prints to stdout, and to `page` if not NULL. STK_E_CONFIG: args->what is neither a number nor a shape. */
stk_status pl_memory(const struct pl_args *args, FILE *page, stk_error *err);

#endif
