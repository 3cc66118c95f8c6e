/* apart.h: libraries that cannot be trusted with damaged files, in a process of their own.
 *
 * A program that shows or checks files calls stki_apart_begin first. The first time that such a library is about to
 * open a file, the program starts itself again with the same arguments (posix_spawn, never fork: there may be threads).
 * The second process does all the work and prints the results; the first one waits and ends as the second one did. If
 * that was by a signal, the first one reports the file as corrupt, with what the second was doing.
 *
 * Without stki_apart_begin, as in every program that uses the library, all of this does nothing. Any thread.
 */
#ifndef STKI_APART_H
#define STKI_APART_H

#include <stdint.h>
#include <stoker/status.h>

/* Reports the error as the program does with others, and returns the exit status. */
typedef int stki_apart_report(void *context, const stk_error *err);

/* `argv` is that of main. What it and the context point to must stay. */
void stki_apart_begin(char **argv, stki_apart_report *report, void *context);
/* Before a library of this name, a static text, opens `path`. In the first process it does not return. */
void stki_apart_need(const char *path, const char *library);

/* In the second process: the calling thread is inside such a library, and ends the process when it has spent some
 * seconds of processor time in it without leaving. Not nested. */
void stki_apart_enter(void);
void stki_apart_leave(void);
/* Between them: what is being done, for the report, with how many bytes of data (0: with metadata alone), which decides
 * how long it may take: "FILE: NAME: libhdf5 crashed while DOING". `name` may be NULL. */
void stki_apart_note(const char *path, const char *name, const char *doing, int64_t bytes);

#endif
