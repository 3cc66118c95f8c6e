/* play_run.h: runs a session and prints its steps. */
#ifndef STOKER_PLAY_RUN_H
#define STOKER_PLAY_RUN_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Runs a chain, or commands from stdin if NULL: on a terminal with a prompt, where an error only ends its line. Steps
 * are printed to stdout and `page` (NULL: none), errors to stderr. STK_E_CONFIG: syntax error; the message has been
 * printed. */
stk_status pl_run(const char *chain, FILE *page);

#endif
