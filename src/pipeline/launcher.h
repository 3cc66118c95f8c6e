/* launcher.h: which of how many processes this one is: from the options, or from the environment that launchers leave
 * (torchrun, Open MPI, MPICH, Slurm). Read once when a loader is opened. */
#ifndef STKI_LAUNCHER_H
#define STKI_LAUNCHER_H

#include <stdint.h>
#include <stoker/status.h>

/* What a launcher says. */
typedef struct stki_launcher_ranks {
    const char *name; /* "torchrun"; NULL: no launcher */
    const char *rank_variable, *size_variable, *local_rank_variable;
    int64_t rank, world_size, local_size; /* local_size: processes on this machine; 0: not said */
    int64_t local_rank;                   /* among those of this machine; -1: not said */
} stki_launcher_ranks;

/* The first launcher of the table whose two variables are set; an inner one (torchrun) stands before an outer one
 * (Slurm). STK_E_CONFIG: they are no numbers, or the rank is not one of the size. */
stk_status stki_launch_find(stki_launcher_ranks *out, stk_error *err);

/* Where a process stands among those that read different data. */
typedef struct stki_ranks {
    int64_t rank, world_size;           /* of all processes */
    int64_t data_rank, data_world_size; /* of the groups that `replication` makes */
    int64_t local_size;                 /* processes on this machine; 0: not known */
    int64_t local_rank;                 /* among those of this machine; -1: not known */
    const char *local_rank_variable;    /* which says it */
    const char *source;                 /* "torchrun", …, "options" or "alone" */
} stki_ranks;

/* Of `replication` neighbouring ranks each reads the same data (tensor parallel), and so do the ranks at the same place
 * of `blocks` equal blocks of ranks (pipeline parallel): data rank (rank / replication) mod data_world_size, of
 * world_size / (replication * blocks). STK_E_CONFIG: they do not divide the ranks. */
stk_status stki_ranks_replicate(stki_ranks *ranks, int64_t replication, int64_t blocks, stk_error *err);

/* Worker threads of one of `local_size` processes of this machine: its share of the processors, and not more than it
 * may use. */
int stki_ranks_workers(const stki_ranks *ranks);

#endif
