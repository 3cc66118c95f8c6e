/* worker.c: the loader's threads. They run from open to close, over all epochs. */
#include "clock.h"
#include "core.h"
#include "error.h"
#include "log.h"
#include <stdio.h>

static bool ring_has_stopped(const void *context)
{
    return stki_ring_stopping(context);
}

/* A worker waits for free file descriptors as long as next waits for a batch. */
static stki_patience patience_of(const stki_core *core)
{
    return (stki_patience){core->config->timeout, ring_has_stopped, core->ring};
}

static void run(void *context)
{
    stki_worker *worker = context;
    stki_core *core = worker->core;
    const stki_patience patience = patience_of(core);

    stki_patience_set(&patience);
    stki_ring_run(core->ring, worker->number, &worker->clocks);
    stki_patience_set(NULL);
    stki_core_release(core);
}

/* Also checks the cancel flag, because without workers the thread that would stop the ring is doing the work. */
static bool is_told_to_stop(const void *context)
{
    const stki_core *core = context;

    return stki_ring_stopping(core->ring) || (core->leave && atomic_load_explicit(core->leave, memory_order_relaxed));
}

void stki_core_work(const stki_core *core, int64_t deadline_ns)
{
    const stki_patience patience = {core->config->timeout, is_told_to_stop, core};

    stki_patience_set(&patience);
    stki_ring_run_inline(core->ring, 0, &core->workers[0].clocks, deadline_ns);
    stki_patience_set(NULL);
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
            stki_log(STKI_LOG_worker, "worker %d is stuck and was abandoned", i);
            stki_thread_abandon(thread);
            stuck++;
        }
    }
    return stuck;
}

/* Returns the offset of a record in its file; -1: unknown for the format. */
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

/* Reads the activity that the worker has published. Returns false if the worker changed it meanwhile, so that the
 * values may be inconsistent. */
static bool look_once(const stki_worker *worker, stki_doing *out, int64_t *since)
{
    *since = atomic_load_explicit(&worker->since_ns, memory_order_acquire);
    out->stage = (enum stki_stage)atomic_load_explicit(&worker->stage, memory_order_acquire);
    out->path = atomic_load_explicit(&worker->path, memory_order_acquire);
    out->record = atomic_load_explicit(&worker->record, memory_order_acquire);
    return *since >= 0 && *since == stki_counted(&worker->since_ns);
}

void stki_worker_look(const stki_worker *worker, stki_doing *out)
{
    enum { TRIES = 1000 };
    const stki_read_clocks *parts = &worker->parts;
    int64_t since, now;
    int tries = 0;

    while (!look_once(worker, out, &since) && ++tries < TRIES)
        ;
    out->part = -1;
    if (out->stage == STKI_STAGE_READ) {
        out->part = atomic_load_explicit(&parts->running, memory_order_acquire) - 1;
        /* `since` may be from the coarse clock, which lags */
        if (out->part >= 0 && stki_counted(&parts->running_since) > since)
            since = stki_counted(&parts->running_since);
    }
    now = stki_now_ns(); /* read last, so that it is not earlier than `since` */
    out->ns = since >= 0 && now > since ? now - since : 0;
}

/* Appends the activity to the text. */
static int add_report(const stki_core *core, const stki_doing *doing, char *to, int size)
{
    static const char *const stages[] = {"idle",       "choosing the samples", "reading", "reading and converting",
                                         "converting", "finishing the rows"};
    static const char *const parts[STKI_READ_WAIT + 1] = {
        "decoding", "unpacking", "in a custom transform:", "waiting for a free descriptor (ulimit -n) to read"};
    const char *what = doing->part >= 0 ? parts[doing->part] : stages[doing->stage];
    const int64_t offset = doing->path ? offset_of(core, doing->path, doing->record) : -1;
    char at[40] = "";

    if (offset >= 0)
        snprintf(at, sizeof at, " offset %lld", (long long)offset);
    if (doing->path)
        return snprintf(to, (size_t)size, "%s %s record %lld%s for %.1f s", what, doing->path, (long long)doing->record,
                        at, (double)doing->ns * 1e-9);
    return snprintf(to, (size_t)size, "%s of step %lld for %.1f s", what, (long long)doing->record,
                    (double)doing->ns * 1e-9);
}

void stki_workers_report(const stki_core *core, char *to, int size)
{
    int used = 0;

    to[0] = '\0';
    for (int i = 0; i < core->worker_slots && used < size; i++) {
        stki_doing doing;
        char name[32];

        stki_worker_look(&core->workers[i], &doing);
        if (doing.stage == STKI_STAGE_IDLE)
            continue;
        used += snprintf(to + used, (size_t)(size - used), "%s%s", used ? "; " : "",
                         core->helps && i == core->worker_count ? "the thread in next: "
                                                                : stki_text(name, sizeof name, "worker %d: ", i));
        if (used < size)
            used += add_report(core, &doing, to + used, size - used);
    }
    if (!to[0])
        snprintf(to, (size_t)size, "no worker is busy");
}
