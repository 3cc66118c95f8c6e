/* play_run.h: a session from its commands to its outputs. */
#ifndef STOKER_PLAY_RUN_H
#define STOKER_PLAY_RUN_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Runs a chain, or what comes on stdin (NULL): at a terminal with a prompt, where a failure only ends its line. Steps
 * go to stdout and `page` (NULL: none), failures to stderr. STK_E_CONFIG: not of the language. The message is printed
 * already. */
stk_status pl_run(const char *chain, FILE *page);

#endif
