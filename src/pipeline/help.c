/* help.c: see help.h. */
#include "help.h"
#include "clock.h"
#include "file.h"
#include "row_maker.h"
#include <signal.h>
#include <string.h>

enum { SHORT_TILE_NS = 200000 /* with consumer_helps: auto, longer tiles are left to the workers */ };

#define ANY_TILE_NS (INT64_C(3600) * STKI_SECOND)

static const char *obstacle_of_shard(const stki_reader *shard)
{
    if (!shard->base && !shard->unit_base)
        return "is read or decoded";
    if (shard->copies || shard->draws)
        return "is read or decoded";
    if (!shard->file && strcmp(shard->access, "mmap") == 0)
        return "is in several files";
    if (shard->file && shard->file->map && !stki_file_is_local(shard->file))
        return "is on a network, or in a file system in user space (FUSE)";
    return NULL;
}

static const char *obstacle_of_plan(const stki_field_plan *plan)
{
    const char *obstacle = NULL;

    if (!plan->maker->placement)
        return "is not converted directly from samples in memory";
    for (int i = 0; i < plan->field->shard_count && !obstacle; i++)
        obstacle = obstacle_of_shard(plan->field->shards[i]);
    return obstacle;
}

const char *stki_help_obstacle(const stki_core *core, char *buffer, int size)
{
    int shards = 0;

    if (core->config->consumer_helps == STK_HELPS_FALSE)
        return "loader.consumer_helps is false";
    if (core->worker_count == 0)
        return "there are no workers";
    if (core->device)
        return "batches go to a device";
    if (core->settles)
        return "failed samples are skipped or replaced";
    if (core->config->digest == STK_DIGEST_BYTES)
        return "rows are hashed (loader.digest: bytes)";
    for (int i = 0; i < core->plan_count; i++) {
        const char *obstacle = obstacle_of_plan(&core->plans[i]);

        shards += core->plans[i].field->shard_count;
        if (!obstacle)
            continue;
        snprintf(buffer, (size_t)size, "%s %s", core->plans[i].name, obstacle);
        return buffer;
    }
    return shards > STKI_HELP_SHARDS ? "there are many files" : NULL;
}

/* With SIGBUS blocked in the caller's thread, an access to a missing page would kill the process. */
static bool survives_faults(void)
{
    sigset_t blocked;

    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGBUS) == 0;
}

/* Returns whether the consumer may make rows now. All mapped files must be unchanged and, with consumer_helps: auto,
 * must have been in memory at the last check. If there are mapped files, the thread must not block SIGBUS. */
static bool may_help(void *context)
{
    const stki_core *core = context;
    const bool always = core->config->consumer_helps == STK_HELPS_TRUE;
    bool mapped = false;

    for (int i = 0; i < core->plan_count; i++)
        for (int s = 0; s < core->plans[i].field->shard_count; s++) {
            const stki_file *file = core->plans[i].field->shards[s]->file;

            if (!file || !file->map)
                continue;
            if (stki_file_known_changed(file) || !(always || stki_file_was_resident(file)))
                return false;
            mapped = true;
        }
    return !mapped || survives_faults();
}

/* Only workers open steps whose order table has not been built. */
static bool may_open(void *context, int64_t step)
{
    const stki_core *core = context;
    const stki_batch_rows rows = stki_batching_rows(&core->batching, step % core->steps);

    return rows.rows == 0 || stki_order_is_ready(core->order, step / core->steps, rows.first % core->batching.length);
}

void stki_help_begin(stki_core *core, const _Atomic bool *leave)
{
    stki_worker *consumer = &core->workers[core->worker_count];

    core->leave = core->device ? NULL : leave;
    if (!core->helps)
        return;
    stki_ring_let_help(
        core->ring,
        &(stki_ring_help){.worker = consumer->number,
                          .clocks = &consumer->clocks,
                          .processors = stki_cpu_count(),
                          .longest_ns = core->config->consumer_helps == STK_HELPS_TRUE ? ANY_TILE_NS : SHORT_TILE_NS,
                          .may = may_help,
                          .may_open = may_open,
                          .leave = leave});
}
