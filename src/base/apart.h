/* apart.h: isolates libraries that may crash on damaged files in a child process.
 *
 * A program that displays or checks files calls stki_apart_begin first. The first time that one of these libraries is
 * about to open a file, the program re-executes itself with the same arguments (posix_spawn instead of fork, because
 * other threads may be running). The child does all the work and prints the results; the parent waits for it and exits
 * with the same status. If the child was killed by a signal, the parent reports the file as corrupt and names the
 * operation that crashed.
 *
 * Other programs that use the library are not re-executed. When they only examine data (to compute the plan of a job),
 * a trial is run instead: before one of these libraries opens a file, the `stoker` program computes the plan in a child
 * process. If the child is killed by a signal or ends early, stki_apart_need fails. STOKER_HELPER names the program; by
 * default it is the one installed with the library. If there is none, no trial is run.
 *
 * In all other cases these functions do nothing. Thread-safe. */
#ifndef STKI_APART_H
#define STKI_APART_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

/* Reports the error in the program's usual way and returns the exit status. */
typedef int stki_apart_report(void *context, const stk_error *err);

/* `argv` is the one passed to main. It and the context must remain valid until the process exits. */
void stki_apart_begin(char **argv, stki_apart_report *report, void *context);
/* A trial: a child runs `stoker prep JOB --dry-run` until it has computed the plan. */
typedef struct stki_apart_trial {
    const char *job;                  /* the text of the job; NULL: no trial */
    void (*wait)(void *context);      /* called every 100 ms or more often while the child runs; may be NULL */
    bool (*cancelled)(void *context); /* true: kill the child and fail with STK_E_CANCELLED */
    void *context;
    bool made; /* set by the first stki_apart_need, even if `job` is NULL */
} stki_apart_trial;

/* Sets the trial of the calling thread; NULL removes it. The trial is run once, by the first stki_apart_need. */
void stki_apart_try(stki_apart_trial *trial);
/* Exits if this process is the child of a trial, whose work is then done; otherwise does nothing. */
void stki_apart_end_trial(void);

/* Call before `library` (a static string) opens `path`. Does not return in a parent that called stki_apart_begin. Fails
 * if the trial failed. */
stk_status stki_apart_need(const char *path, const char *library, stk_error *err);

/* In the child: marks the calling thread as inside a library that may crash, one thread at a time. The process exits if
 * the thread spends more than a few seconds of CPU time in it, or if all calls together take a few seconds longer than
 * their number and amount of data justify. Not nested. */
void stki_apart_enter(void);
void stki_apart_leave(void);
/* Call between enter and leave: sets the current operation for the report, "FILE: NAME: libhdf5 crashed while DOING".
 * `bytes`: the amount of data involved (0: only metadata), which determines the time allowed. `name` may be NULL. */
void stki_apart_note(const char *path, const char *name, const char *doing, int64_t bytes);

#endif
