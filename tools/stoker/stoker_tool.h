/* stoker_tool.h: declarations shared by the subcommands of `stoker`. A subcommand is a function in its own file. It
 * receives its name in argv[0] and returns the exit status. Results go to stdout, messages to stderr. */
#ifndef STOKER_TOOL_H
#define STOKER_TOOL_H

#include "apart.h"
#include <stoker/status.h>

enum { STOKER_FINE = 0, STOKER_FAILED = 1, STOKER_USE = 2 };

int stoker_inspect(int argc, char **argv);
int stoker_play(int argc, char **argv);
int stoker_prep(int argc, char **argv);
int stoker_verify(int argc, char **argv);

/* After this call, files that can crash a library are opened in a separate process (apart.h). Print results only after
 * all files have been opened. */
void stoker_begin_apart(stki_apart_report *report, void *context);

/* "stoker NAME: message" on stderr; returns `code`. */
int stoker_complain(const char *name, const stk_error *err, int code);
/* Flushes stdout; returns `code`, or STOKER_FAILED with a message if writing failed. */
int stoker_finish_output(const char *name, int code);

#endif
