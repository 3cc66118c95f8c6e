/* worker.c: the loader's threads. They live from open to close, over all epochs. */
#include "clock.h"
#include "core.h"
#include "error.h"
#include "log.h"
#include <stdio.h>

static void run(void *context)
{
    stki_worker *worker = context;
    stki_core *core = worker->core;

    stki_ring_run(core->ring, worker->number, &worker->clocks);
    stki_core_release(core);
}

stk_status stki_workers_start(stki_core *core, stk_error *err)
{
    for (int i = 0; i < core->worker_count; i++) {
        char name[32];
        stk_status status;

        snprintf(name, sizeof name, "stoker-%d", i);
        stki_core_retain(core);
        status = stki_thread_start(&core->workers[i].thread, name, run, &core->workers[i], err);
        if (status != STK_OK) {
            stki_core_release(core);
            return status;
        }
    }
    stki_log(STKI_LOG_worker, "%d workers started", core->worker_count);
    return STK_OK;
}

int stki_workers_stop(stki_core *core, int64_t timeout_ns)
{
    int64_t deadline = stki_deadline_ns(timeout_ns);
    int stuck = 0;

    stki_ring_stop(core->ring);
    for (int i = 0; i < core->worker_count; i++) {
        stki_thread *thread = core->workers[i].thread;

        core->workers[i].thread = NULL;
        if (thread && !stki_thread_join(thread, deadline)) {
            stki_log(STKI_LOG_worker, "worker %d is stuck and left behind", i);
            stki_thread_abandon(thread);
            stuck++;
        }
    }
    return stuck;
}

/* Where the record that a worker is at begins in its file; -1: the format does not say. */
static int64_t offset_of(const stki_core *core, const char *path, int64_t record)
{
    for (int f = 0; f < core->dataset->field_count; f++)
        for (int s = 0; s < core->dataset->fields[f].shard_count; s++) {
            const stki_reader *reader = core->dataset->fields[f].shards[s];

            if (reader->path == path && reader->data_offset >= 0 && !reader->variable && reader->sample_stride > 0 &&
                record >= 0 && record < reader->count)
                return reader->data_offset + record * reader->sample_stride;
        }
    return -1;
}

void stki_workers_report(const stki_core *core, char *to, int size)
{
    static const char *const stages[] = {"idle", "choosing samples", "reading", "converting"};
    int64_t now = stki_now_ns();
    int used = 0;

    to[0] = '\0';
    for (int i = 0; i < (core->worker_count ? core->worker_count : 1) && used < size; i++) {
        const stki_worker *worker = &core->workers[i];
        int stage = atomic_load_explicit(&worker->stage, memory_order_relaxed);
        const char *path = atomic_load_explicit(&worker->path, memory_order_relaxed);
        int64_t record, offset;

        if (stage == STKI_STAGE_IDLE)
            continue;
        record = stki_counted(&worker->record);
        offset = path ? offset_of(core, path, record) : -1;
        used += snprintf(to + used, (size_t)(size - used), "%sworker %d: %s %s record %lld", used ? "; " : "", i,
                         stages[stage], path ? path : "order", (long long)record);
        if (offset >= 0 && used < size)
            used += snprintf(to + used, (size_t)(size - used), " offset %lld", (long long)offset);
        if (used < size)
            used += snprintf(to + used, (size_t)(size - used), " for %.1f s",
                             (double)(now - stki_counted(&worker->since_ns)) * 1e-9);
    }
    if (!to[0])
        snprintf(to, (size_t)size, "no worker is busy");
}
