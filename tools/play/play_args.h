/* play_args.h: the command line of `stoker play`. */
#ifndef STOKER_PLAY_ARGS_H
#define STOKER_PLAY_ARGS_H

#include <stdio.h>
#include <stoker/tensor.h>

enum pl_action { PL_READ, PL_CHAIN, PL_MEMORY, PL_PRECISION, PL_HELP }; /* PL_READ: reads commands from stdin */

struct pl_args {
    int action;       /* a pl_action */
    char *chain;      /* PL_CHAIN */
    const char *html; /* NULL: no page */
    const char *what; /* PL_MEMORY: a number of parameters, or a shape */
    double amplitude; /* PL_PRECISION */
    double range;     /* range of the int8 with a fixed range; 0: not given */
    int64_t fits;     /* available bytes; 0: not given */
    stk_dtype dtype;  /* dtype in the table of sparse formats; STK_DTYPE_NONE: not given */
};

stk_status pl_args_read(int argc, char **argv, struct pl_args *out, stk_error *err);
void pl_args_fini(struct pl_args *args);
void pl_args_help(FILE *to);

#endif
