/* launcher.h: finds the rank of this process and the number of processes in the options or in the environment set by a
 * launcher (torchrun, Open MPI, MPICH, Slurm). This is done once, when a loader is opened. */
#ifndef STKI_LAUNCHER_H
#define STKI_LAUNCHER_H

#include <stdint.h>
#include <stoker/status.h>

/* The values set by a launcher. The names are those of its variables; the last one need not be set. */
typedef struct stki_launcher_ranks {
    const char *name; /* "torchrun"; NULL: no launcher */
    const char *rank_variable, *size_variable, *local_rank_variable;
    int64_t rank, world_size, local_size; /* local_size: processes on this machine; 0: unknown */
    int64_t local_rank;                   /* among the processes of this machine; -1: unknown */
} stki_launcher_ranks;

/* Finds the first launcher in the table whose rank and size variables are both set. Inner launchers (torchrun) precede
 * outer ones (Slurm). STK_E_CONFIG: a value is not a number, or the rank is not below the size. */
stk_status stki_launch_find(stki_launcher_ranks *out, stk_error *err);

/* The rank of a process, and its rank among the groups that read different data. */
typedef struct stki_ranks {
    int64_t rank, world_size;           /* among all processes */
    int64_t data_rank, data_world_size; /* among the groups formed by `replication` */
    int64_t local_size;                 /* processes on this machine; 0: unknown */
    int64_t local_rank;                 /* among the processes of this machine; -1: unknown */
    const char *local_rank_variable;    /* the environment variable that contains local_rank */
    const char *source;                 /* "torchrun", …, "options" or "alone" */
} stki_ranks;

/* Fills in unknown members from other variables of torch.distributed, because Lightning's launcher and programs that
 * start their own processes do not set RANK or LOCAL_WORLD_SIZE. If no launcher was found, local_rank is LOCAL_RANK;
 * a launcher has its own variable for that. If local_size is unknown and MASTER_ADDR, the address at which the ranks
 * meet, is a loopback address, all ranks are on this machine. STK_E_CONFIG: LOCAL_RANK is not a number. */
stk_status stki_ranks_complete(stki_ranks *ranks, stk_error *err);

/* Computes data_rank and data_world_size. Each run of `replication` adjacent ranks reads the same data (tensor
 * parallel). The ranks are divided into `blocks` blocks of equal size, and ranks at the same place in their blocks also
 * read the same data (pipeline parallel). data_rank is (rank / replication) mod data_world_size, where data_world_size
 * is world_size / (replication * blocks). STK_E_CONFIG: replication * blocks does not divide the number of ranks. */
stk_status stki_ranks_replicate(stki_ranks *ranks, int64_t replication, int64_t blocks, stk_error *err);

/* Returns the number of worker threads for one of `local_size` processes on this machine: its share of the processors,
 * but not more than the process may use. */
int stki_ranks_workers(const stki_ranks *ranks);

#endif
