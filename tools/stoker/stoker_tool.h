/* stoker_tool.h: what the subcommands of the program `stoker` share. A subcommand is one function in a file of its own;
 * its argv[0] is its name, and what it returns is the exit status. Results go to stdout, messages to stderr.
 */
#ifndef STOKER_TOOL_H
#define STOKER_TOOL_H

#include "apart.h"
#include <stoker/status.h>

enum { STOKER_FINE = 0, STOKER_FAILED = 1, STOKER_USE = 2 };

int stoker_inspect(int argc, char **argv);
int stoker_play(int argc, char **argv);
int stoker_prep(int argc, char **argv);
int stoker_verify(int argc, char **argv);

/* From now on files that can crash a library are opened in a process of their own (apart.h). Results are not to be
 * printed before all files are open. */
void stoker_begin_apart(stki_apart_report *report, void *context);

/* "stoker NAME: message" on stderr; returns `code`. */
int stoker_complain(const char *name, const stk_error *err, int code);
/* What was printed must also have arrived: `code`, or STOKER_FAILED with a message if stdout could not be written. */
int stoker_finish_output(const char *name, int code);

#endif
