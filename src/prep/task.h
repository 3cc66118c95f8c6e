/* task.h: the task number of this process and the number of tasks of a preparation job: from the command line, or from
 * the environment set by launchers (pipeline/launcher.h: torchrun, Open MPI, MPICH, Slurm steps), a Slurm array or an
 * indexed Job of Kubernetes. Several sources must agree. */
#ifndef STKI_TASK_H
#define STKI_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_task {
    int64_t task, tasks;
    const char *source; /* "--task", "Slurm array", "torchrun", …, "alone" */
    char why[160];      /* the variables used, for a note; "" if none */
} stki_task;

typedef struct stki_task_opts {
    const char *task;     /* "i/N" as given by the user; NULL: not given */
    int64_t tasks;        /* only N, for launchers that only provide the task number; 0: not given */
    bool ignore_launcher; /* do not use the environment */
} stki_task_opts;

/* Inside a Slurm array the ranks of a launcher are combined: rank r of W in element e of E is task e W + r of E W.
 * STK_E_CONFIG: invalid numbers, a task number out of range, conflicting sources, or an array whose number of
 * preceding elements cannot be determined. */
stk_status stki_task_find(const stki_task_opts *opts, stki_task *out, stk_error *err);

#endif
