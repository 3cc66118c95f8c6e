/* task.h: which of how many tasks of a preparation job this process is: from the command line, or from the environment
 * that launchers leave (pipeline/launcher.h: torchrun, Open MPI, MPICH, Slurm steps), an array of Slurm or an indexed
 * Job of Kubernetes. What is said twice must agree. */
#ifndef STKI_TASK_H
#define STKI_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_task {
    int64_t task, tasks;
    const char *source; /* "--task", "Slurm array", "torchrun", …, "alone" */
    char why[160];      /* the variables that said so, for a note; "" where there were none */
} stki_task;

typedef struct stki_task_opts {
    const char *task;     /* "i/N", as a person wrote it; NULL: not said */
    int64_t tasks;        /* N alone, for launchers that say only which; 0: not said */
    bool ignore_launcher; /* the environment is left alone */
} stki_task_opts;

/* Inside an array of Slurm a launcher's ranks are counted on: rank r of W in element e of E is task e W + r of E W.
 * STK_E_CONFIG: no numbers, a task that is none of its number, two sources that do not agree, an array of which nobody
 * can say how many elements it has before this one. */
stk_status stki_task_find(const stki_task_opts *opts, stki_task *out, stk_error *err);

#endif
