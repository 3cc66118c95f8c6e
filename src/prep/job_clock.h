/* job_clock.h: measures how long all processes of a job have worked on it, including interrupted runs. Each process
 * keeps its own time in a file of the work folder, WORK/seconds-XXXXXX, and updates it every second, so that SIGKILL
 * loses no more than a second. Used by one thread at a time. */
#ifndef STKI_JOB_CLOCK_H
#define STKI_JOB_CLOCK_H

#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_job_clock {
    int fd;              /* descriptor of this process's file; -1: none */
    int64_t began_ns;    /* when this process began */
    int64_t recorded_ns; /* time until which the file includes its work */
} stki_job_clock;

/* The prefix of the names of the files. */
#define STKI_JOB_CLOCK_FILES "seconds-"

/* Creates this process's file in the work folder, unless it exists. */
stk_status stki_job_clock_open(stki_job_clock *clock, const char *work, stk_error *err);
/* Records the time until now if the last record is older than a second. A full disk is not an error: the time is
 * recorded later. */
void stki_job_clock_tick(stki_job_clock *clock);
/* Returns the seconds of all processes until now. */
stk_status stki_job_clock_sum(stki_job_clock *clock, const char *work, double *seconds, stk_error *err);
void stki_job_clock_close(stki_job_clock *clock);

#endif
