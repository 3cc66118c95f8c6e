/* launcher.c: see launcher.h. A table lists the environment variables of each launcher. Several may be set, because
 * launchers start each other (srun starts torchrun, mpirun runs inside a Slurm allocation). The table is ordered from
 * the innermost launcher outward; the first match is used. */
#include "launcher.h"
#include "error.h"
#include "thread.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct launcher {
    const char *name, *rank, *size, *size_first, *local_size, *local_rank;
} launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", NULL, "LOCAL_WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", NULL, "MV2_COMM_WORLD_LOCAL_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE", "SLURM_LOCALID"},
};

/* Returns NULL if the variable is not set or empty. */
static const char *variable(const char *name)
{
    const char *text = name ? getenv(name) : NULL;

    return text && *text ? text : NULL;
}

static stk_status read_number(const char *name, int64_t least, int64_t *out, stk_error *err)
{
    const char *text = variable(name);
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (*end || errno || value < least)
        return stki_fail(err, STK_E_CONFIG,
                         "%s in the environment: found \"%s\", expected %lld or more; loader.launcher: none "
                         "ignores the environment",
                         name, text, (long long)least);
    *out = value;
    return STK_OK;
}

/* A Slurm batch script is a single process, but its environment contains the number of tasks of the allocation. Tasks
 * started by srun have a step number. */
static bool is_batch_script(const struct launcher *launcher)
{
    const char *environment = getenv("ENVIRONMENT");

    return strcmp(launcher->name, "Slurm") == 0 && environment && strcmp(environment, "BATCH") == 0 &&
           !variable("SLURM_STEP_ID") && !variable("SLURM_STEPID");
}

stk_status stki_launch_find(stki_launcher_ranks *out, stk_error *err)
{
    *out = (stki_launcher_ranks){.local_rank = -1};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const struct launcher *launcher = &launchers[i];
        const char *size = variable(launcher->size_first) ? launcher->size_first : launcher->size;
        stk_status status;

        if (!variable(launcher->rank) || !variable(size) || is_batch_script(launcher))
            continue;
        if ((status = read_number(launcher->rank, 0, &out->rank, err)) != STK_OK ||
            (status = read_number(size, 1, &out->world_size, err)) != STK_OK)
            return status;
        if (out->rank >= out->world_size)
            return stki_fail(err, STK_E_CONFIG,
                             "%s and %s in the environment: found rank %lld of %lld, expected 0 to %lld; "
                             "loader.launcher: none ignores the environment",
                             launcher->rank, size, (long long)out->rank, (long long)out->world_size,
                             (long long)out->world_size - 1);
        if (variable(launcher->local_size) && read_number(launcher->local_size, 1, &out->local_size, NULL) != STK_OK)
            out->local_size = 0; /* only a hint, because Slurm also uses values such as "2(x4),1" */
        if (variable(launcher->local_rank) &&
            (status = read_number(launcher->local_rank, 0, &out->local_rank, err)) != STK_OK)
            return status;
        out->local_rank_variable = launcher->local_rank;
        out->name = launcher->name;
        out->rank_variable = launcher->rank;
        out->size_variable = size;
        return STK_OK;
    }
    return STK_OK;
}

static bool is_loopback(const char *address)
{
    return address &&
           (strncmp(address, "127.", 4) == 0 || strcmp(address, "localhost") == 0 || strcmp(address, "::1") == 0);
}

stk_status stki_ranks_complete(stki_ranks *ranks, stk_error *err)
{
    static const char local_rank[] = "LOCAL_RANK";

    if (ranks->world_size == 1)
        return STK_OK;
    if (ranks->local_size == 0 && is_loopback(variable("MASTER_ADDR")))
        ranks->local_size = ranks->world_size;
    if (ranks->local_rank_variable || !variable(local_rank))
        return STK_OK;
    ranks->local_rank_variable = local_rank;
    return read_number(local_rank, 0, &ranks->local_rank, err);
}

stk_status stki_ranks_replicate(stki_ranks *ranks, int64_t replication, int64_t blocks, stk_error *err)
{
    int64_t groups = ranks->world_size / replication;

    if (ranks->world_size % replication != 0 || groups % blocks != 0)
        return stki_fail(err, STK_E_CONFIG,
                         "loader.replication: found %lld rank%s, expected a multiple of replication (%lld) times "
                         "replication_blocks (%lld)",
                         (long long)ranks->world_size, ranks->world_size == 1 ? "" : "s", (long long)replication,
                         (long long)blocks);
    ranks->data_world_size = groups / blocks;
    ranks->data_rank = ranks->rank / replication % ranks->data_world_size;
    return STK_OK;
}

int stki_ranks_workers(const stki_ranks *ranks)
{
    int64_t mine = stki_cpu_count(), local = ranks->local_size > 0 ? ranks->local_size : 1;
    int64_t share = sysconf(_SC_NPROCESSORS_ONLN) / local;

    /* A launcher that binds its processes has already divided the processors. */
    share = share < 1 ? 1 : share;
    return (int)(mine < share ? mine : share);
}
