/* loader.c: the public calls open, next and close. The work is done in core.c, fill.c and ring.c; queries are in
 * loader_queries.c. */
#include "allocate.h"
#include "batch_tensors.h"
#include "clock.h"
#include "core.h"
#include "device_table.h"
#include "error.h"
#include "failed.h"
#include "feed.h"
#include "help.h"
#include "loader_handle.h"
#include "log.h"
#include "open_lists.h"
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- open ---- */

stk_status stki_loader_open_config(stki_loader_config *config, stk_loader **out, stk_error *err)
{
    stk_loader *loader = stki_zalloc(sizeof *loader);
    stk_status status;

    if (!loader) {
        stki_config_destroy(config);
        return stki_fail_memory(err, sizeof *loader, "a loader");
    }
    loader->fork_generation = stki_fork_generation();
    status = stki_core_create(config, &loader->core, err);
    if (status == STK_OK && stki_isa_note())
        stki_config_note(config, "%s", stki_isa_note());
    if (status == STK_OK)
        status = stki_loader_resume(loader, err);
    if (status == STK_OK && loader->core->device)
        status = stki_feed_create(loader->core, &loader->core->feed, err);
    if (status == STK_OK)
        status = stki_loader_echo(loader, err);
    if (status == STK_OK)
        stki_help_begin(loader->core, &loader->cancelled);
    if (status == STK_OK && !config->idle)
        status = stki_workers_start(loader->core, err);
    if (status != STK_OK) {
        stk_loader_destroy(loader);
        return status;
    }
    *out = loader;
    return STK_OK;
}

static stk_status check_out(const void *out, stk_error *err)
{
    return out ? STK_OK : stki_fail(err, STK_E_BAD_ARG, "out: found NULL, expected a pointer to the result");
}

stk_status stk_loader_open(const stk_loader_opts *opts, stk_loader **out, stk_error *err)
{
    stki_loader_config *config;
    stk_status status = check_out(out, err);

    if (status == STK_OK)
        status = stki_config_from_opts(opts, &config, err);
    return status != STK_OK ? status : stki_loader_open_config(config, out, err);
}

static stk_status check_arguments(const char *text, const char *name, const char *const *sets, int set_count,
                                  stk_error *err)
{
    if (!text)
        return stki_fail(err, STK_E_BAD_ARG, "%s: found NULL, expected a string", name);
    if (set_count < 0 || (set_count > 0 && !sets))
        return stki_fail(err, STK_E_BAD_ARG, "sets: found %s and a count of %d", sets ? "an array" : "NULL", set_count);
    for (int i = 0; i < set_count; i++)
        if (!sets[i])
            return stki_fail(err, STK_E_BAD_ARG,
                             "sets[%d]: found NULL, expected an assignment such as loader.batch_size=256", i);
    return STK_OK;
}

/* Applies the assignments and reads the document. Takes ownership of the document. */
static stk_status read_document(stki_document *document, const char *base_dir, const char *const *sets, int set_count,
                                stki_loader_config **out, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = stki_document_set(document, sets[i], err);
    if (status != STK_OK) {
        stki_document_destroy(document);
        return status;
    }
    return stki_config_read(document, base_dir, out, err);
}

static stk_status read_file(const char *path, const char *const *sets, int set_count, stki_loader_config **out,
                            stk_error *err)
{
    stki_document *document;
    stk_status status = check_arguments(path, "path", sets, set_count, err);

    if (status == STK_OK)
        status = stki_document_open(path, &document, err);
    return status != STK_OK ? status : read_document(document, NULL, sets, set_count, out, err);
}

stk_status stk_loader_open_file(const char *path, const char *const *sets, int set_count, stk_loader **out,
                                stk_error *err)
{
    stki_loader_config *config;
    stk_status status = check_out(out, err);

    if (status == STK_OK)
        status = read_file(path, sets, set_count, &config, err);
    return status != STK_OK ? status : stki_loader_open_config(config, out, err);
}

stk_status stk_loader_check_file(const char *path, const char *const *sets, int set_count, stk_error *err)
{
    stki_loader_config *config;
    stk_status status = read_file(path, sets, set_count, &config, err);

    if (status == STK_OK)
        stki_config_destroy(config);
    return status;
}

stk_status stk_loader_config_text(const char *path, const char *const *sets, int set_count, char **out, stk_error *err)
{
    stki_loader_config *config;
    char *text = NULL;
    size_t length = 0;
    FILE *memory;
    stk_status status;

    if (!out)
        return stki_fail(err, STK_E_BAD_ARG, "out: found NULL");
    *out = NULL;
    if ((status = read_file(path, sets, set_count, &config, err)) != STK_OK)
        return status;
    memory = open_memstream(&text, &length);
    status = memory ? stki_document_write_absolute(config->document, memory, err) : STK_OK;
    if (!memory || fclose(memory) != 0 || (status == STK_OK && !(*out = stki_strdup(text))))
        status = stki_fail_memory(err, 4096, "a config");
    free(text); /* allocated by open_memstream; *out is a copy, because strings that the library returns are counted
                   allocations */
    stki_config_destroy(config);
    return status;
}

static stk_status read_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                            stki_loader_config **out, stk_error *err)
{
    stki_document *document;
    stk_status status = check_arguments(text, "text", sets, set_count, err);

    if (status == STK_OK)
        status = stki_document_parse(text, (int64_t)strlen(text), "text", base_dir, &document, err);
    return status != STK_OK ? status : read_document(document, base_dir, sets, set_count, out, err);
}

stk_status stk_loader_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                                stk_loader **out, stk_error *err)
{
    stki_loader_config *config;
    stk_status status = check_out(out, err);

    if (status == STK_OK)
        status = read_text(text, base_dir, sets, set_count, &config, err);
    return status != STK_OK ? status : stki_loader_open_config(config, out, err);
}

/* Replaces the list at `out` with a copy. */
static stk_status replace_list(const void *list, int64_t count, int64_t size, void **out, int64_t *out_count,
                               stk_error *err)
{
    void *copy;

    if (!list)
        return STK_OK;
    copy = stki_zalloc_array(count ? count : 1, size);
    if (!copy)
        return stki_fail_memory(err, count * size, "a list of numbers");
    memcpy(copy, list, (size_t)(count * size));
    stki_free(*out);
    *out = copy;
    *out_count = count;
    return STK_OK;
}

static stk_status put_lists(stki_loader_config *config, const stki_open_lists *lists, stk_error *err)
{
    void *indices = config->index_list, *weights = config->weight_list;
    stk_status status =
        replace_list(lists->indices, lists->index_count, (int64_t)sizeof(int64_t), &indices, &config->index_count, err);

    config->index_list = indices;
    if (status == STK_OK)
        status = replace_list(lists->weights, lists->weight_count, (int64_t)sizeof(double), &weights,
                              &config->weight_count, err);
    config->weight_list = weights;
    return status;
}

static stk_status read_either(const char *path, const char *text, const char *base_dir, const char *const *sets,
                              int set_count, stki_loader_config **out, stk_error *err)
{
    return path ? read_file(path, sets, set_count, out, err) : read_text(text, base_dir, sets, set_count, out, err);
}

stk_status stki_loader_open_lists(const char *path, const char *text, const char *base_dir, const char *const *sets,
                                  int set_count, const stki_open_lists *lists, stk_loader **out, stk_error *err)
{
    const int ranks = lists->rank_sets;
    stki_loader_config *config;
    stk_status status = read_either(path, text, base_dir, sets + ranks, set_count - ranks, &config, err);

    if (ranks > 0 && (status != STK_OK || config->launcher == STK_LAUNCHER_AUTO)) {
        if (status == STK_OK)
            stki_config_destroy(config);
        status = read_either(path, text, base_dir, sets, set_count, &config, err);
    }
    if (status != STK_OK)
        return status;
    status = put_lists(config, lists, err);
    if (status == STK_OK)
        return stki_loader_open_config(config, out, err);
    stki_config_destroy(config);
    return status;
}

/* ---- close ---- */

/* Closes the feed after the workers, in the remaining time, but waits at least 50 ms for a thread that is about to end.
 * Without workers, the copying thread also reads and converts, so the error reports what it is doing. */
static void close_feed(stk_loader *loader)
{
    const int64_t least = STKI_SECOND / 20, left = stki_left_ns(loader->close_deadline_ns);
    stki_core *core = loader->core;
    char report[320];
    stk_error cause;

    loader->feed_status =
        stki_feed_close(core->feed, left == STK_TIMEOUT_INFINITE || left > least ? left : least, &cause);
    if (loader->feed_status == STK_OK)
        return;
    loader->feed_error = cause;
    if (core->worker_count > 0)
        return;
    stki_workers_report(core, report, sizeof report);
    (void)stki_fail(&loader->feed_error, loader->feed_status, "%s: %s", cause.message, report);
}

static stk_status close_once(stk_loader *loader, stk_error *err)
{
    char report[512];

    if (!loader->closed) {
        loader->closed = true;
        loader->close_deadline_ns = stki_deadline_ns(loader->core->config->close_timeout);
        loader->stuck = stki_workers_stop(loader->core, loader->core->config->close_timeout);
        if (loader->core->feed)
            close_feed(loader);
    }
    if (loader->stuck == 0 && err && loader->feed_status != STK_OK)
        *err = loader->feed_error;
    if (loader->stuck == 0)
        return loader->feed_status;
    stki_workers_report(loader->core, report, sizeof report);
    return stki_fail(err, STK_E_TIMEOUT, "%d of %d workers did not stop within %.1f s and were abandoned: %s",
                     loader->stuck, loader->core->worker_count, (double)loader->core->config->close_timeout * 1e-9,
                     report);
}

stk_status stk_loader_close(stk_loader *loader, stk_error *err)
{
    stk_status status = stki_loader_given(loader, err);

    if (status != STK_OK)
        return status;
    if (stki_loader_is_forked(loader))
        return stki_loader_fail_forked(err);
    return close_once(loader, err);
}

void stk_loader_cancel(stk_loader *loader)
{
    if (loader)
        atomic_store_explicit(&loader->cancelled, true, memory_order_relaxed);
}

void stk_loader_destroy(stk_loader *loader)
{
    if (!loader)
        return;
    if (!stki_loader_is_forked(loader) &&
        loader->core) { /* a child process must not use locks that a thread of the parent may have held */
        (void)close_once(loader, NULL);
        stki_core_release_by(loader->core, loader->close_deadline_ns);
    }
    stki_free(loader->options_json);
    stki_free(loader);
}

/* ---- next ---- */

/* Writes "no batch within 1.5 s (loader.timeout)". The time counts from the first call that timed out, so a consumer
 * that waits in short slices gets the total; `waited` is the time of the current call in ns. The consumer's own clock
 * started slightly earlier, so a total just below loader.timeout still counts as loader.timeout. */
static const char *waited_text(stk_loader *loader, int64_t waited, char *buffer, int size)
{
    const int64_t limit = loader->core->config->timeout, now = stki_now_ns();

    if (loader->waits_since_ns == 0)
        loader->waits_since_ns = now - waited;
    waited = now - loader->waits_since_ns;
    return stki_text(buffer, size, "no batch within %.3g s%s", (double)(waited / 1000000) * 1e-3,
                     limit > 0 && waited >= limit - limit / 64 ? " (loader.timeout)" : "");
}

static stk_status timed_out(stk_loader *loader, int64_t waited, stk_error *err)
{
    stki_ring_view view;
    char within[64], report[448];

    waited_text(loader, waited, within, sizeof within);
    stki_ring_look(loader->core->ring, &view);
    if (view.leased == view.slots && view.slots == 1)
        return stki_fail(err, STK_E_TIMEOUT,
                         "%s: the only slot is held by a batch that has not been released (loader.prefetch)", within);
    if (view.leased == view.slots)
        return stki_fail(err, STK_E_TIMEOUT,
                         "%s: all %d slots are held by batches that have not been released (loader.prefetch)", within,
                         view.slots);
    stki_workers_report(loader->core, report, sizeof report);
    return stki_fail(err, STK_E_TIMEOUT, "%s: waiting for step %lld (%d slots filling, %d held): %s", within,
                     (long long)view.next_step, view.filling, view.leased, report);
}

/* Reports why the copying thread had no batch to deliver: all slots are held, or what the workers are doing. */
static stk_status timed_out_on_device(stk_loader *loader, int64_t waited, const stk_error *cause, stk_error *err)
{
    stki_prefetch_stats now;
    stki_totals totals;
    char within[64], report[320];
    int64_t step;

    waited_text(loader, waited, within, sizeof within);
    stki_feed_stats(loader->core->feed, &now);
    if (now.held == now.slots)
        return stki_fail(err, STK_E_TIMEOUT, "%s: %s (loader.device_prefetch)", within, cause->message);
    stki_workers_report(loader->core, report, sizeof report);
    stki_progress_delivered(loader->core->progress, &step, &totals);
    return stki_fail(err, STK_E_TIMEOUT, "%s: waiting for step %lld: %s; %s", within, (long long)step, cause->message,
                     report);
}

/* Called when a batch has failed. From now on, each call to next returns its error. */
static stk_status deliver_error(stk_loader *loader, stk_batch *batch, stk_error *err)
{
    loader->failed = true;
    loader->error = batch->error;
    stki_failed_list(loader->core, batch);
    stki_ring_finish(loader->core->ring, &batch->ring);
    stki_ring_release(loader->core->ring, &batch->ring);
    if (err)
        *err = loader->error;
    return loader->error.status;
}

static void deliver(stk_loader *loader, stk_batch *batch, const stki_totals *after)
{
    stki_core *core = loader->core;

    batch->lease = stki_progress_deliver(core->progress, batch->ring.step, after);
    stki_count_set(&batch->holds, 1);
    atomic_store_explicit(&batch->used, false, memory_order_relaxed);
    stki_core_retain(core);
    if (stki_counted(&loader->batches) == 0)
        stki_count_set(&loader->first_batch_ns, stki_now_ns() - core->opened_ns);
    loader->waits_since_ns = 0;
    stki_count_own(&loader->batches, 1);
    stki_count_own(&loader->rows, batch->rows);
    for (int i = 0; i < core->plan_count; i++)
        stki_count_own(&loader->batch_bytes, stki_plan_bytes(batch, &core->plans[i]));
    stki_log(STKI_LOG_ring, "epoch %lld step %lld is delivered", (long long)batch->epoch, (long long)batch->step);
}

/* Computes the totals up to and including this batch. Fails if too many samples have failed. */
static stk_status add_up(stki_core *core, stk_batch *batch, stki_totals *after, stk_error *err)
{
    int64_t step;

    stki_progress_delivered(core->progress, &step, after);
    after->digest = stki_u128_add(after->digest, batch->digest);
    return core->settles ? stki_failed_deliver(core, batch, after, err) : STK_OK;
}

#define SLICE_NS (STKI_SECOND / 10) /* maximum time until stk_loader_cancel takes effect, ns */

/* Waits in slices, because stk_loader_cancel may run in a signal handler and therefore cannot wake a thread. */
static stk_status wait_for_slot(stk_loader *loader, int64_t deadline, stki_ring_slot **slot, int64_t *waited)
{
    const stki_core *core = loader->core;

    for (;;) {
        int64_t slice = deadline == 0 ? 0 : stki_coarse_ns() + SLICE_NS;
        stk_status status;

        if (atomic_load_explicit(&loader->cancelled, memory_order_relaxed)) {
            stki_ring_stop(core->ring);
            return STK_E_CANCELLED;
        }
        slice = slice < deadline ? slice : deadline;
        if (core->worker_count == 0)
            stki_core_work(core, slice);
        status = stki_ring_next(core->ring, core->worker_count ? slice : 0, slot, waited);
        if (status != STK_E_TIMEOUT ||
            (slice >= deadline && !atomic_load_explicit(&loader->cancelled, memory_order_relaxed)))
            return status;
        if (core->worker_count == 0 && stki_now_ns() < slice)
            return status; /* stki_core_work returned early: this thread can do nothing to complete a batch */
    }
}

/* Takes the next device batch of the current generation, and discards batches that were in flight when the ring was
 * restarted. */
static stk_status take_from_feed(stk_loader *loader, stk_stream *stream, int64_t deadline, stk_batch **out,
                                 stk_error *cause)
{
    const stki_core *core = loader->core;

    for (;;) {
        int64_t now = stki_now_ns(), left = deadline > now ? deadline - now : 0;
        stk_status status;

        if (atomic_load_explicit(&loader->cancelled, memory_order_relaxed)) {
            stki_ring_stop(core->ring);
            return stki_fail(cause, STK_E_CANCELLED, "the loader was cancelled");
        }
        status = stki_feed_next(core->feed, stream, left < SLICE_NS ? left : SLICE_NS, out, cause);
        if (status == STK_E_TIMEOUT && left > SLICE_NS)
            continue;
        if (status != STK_OK || (*out)->ring.generation == loader->generation)
            return status;
        stki_feed_release(*out);
    }
}

static stk_status next_on_device(stk_loader *loader, stk_stream *stream, int64_t timeout_ns, stk_batch **out,
                                 stk_error *err)
{
    const stki_core *core = loader->core;
    int64_t next_step;
    stki_totals after;
    stk_batch *batch;
    stk_error cause = {0};
    const int64_t before = stki_now_ns();
    stk_status status;

    if (stream && stk_stream_device(stream) != core->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "the loader delivers batches on %s, but the stream belongs to %s",
                         core->device->name, stk_device_name(stk_stream_device(stream)));
    stki_progress_delivered(core->progress, &next_step, &after);
    if (next_step >= core->end && !loader->closed) {
        status = stki_feed_settle(core->feed, timeout_ns, &cause); /* a failed copy does not end the run */
        status = status == STK_OK ? STK_END : status;
    } else {
        status = take_from_feed(loader, stream, timeout_ns == 0 ? 0 : stki_deadline_ns(timeout_ns), &batch, &cause);
    }
    if (status == STK_E_TIMEOUT)
        return timed_out_on_device(loader, stki_now_ns() - before, &cause, err);
    if (status == STK_OK && batch->error_row < 0 && add_up(loader->core, batch, &after, &batch->error) != STK_OK)
        batch->error_row = 0;
    if (status == STK_OK && batch->error_row >= 0) {
        status = batch->error.status;
        cause = batch->error;
        stki_failed_list(loader->core, batch);
        stki_feed_release(batch);
    }
    if (status == STK_OK) {
        deliver(loader, batch, &after);
        *out = batch;
        return STK_OK;
    }
    if (status < 0 && status != STK_E_CLOSED && status != STK_E_CANCELLED) {
        loader->failed = true;
        loader->error = cause;
    }
    if (status < 0 && err)
        *err = cause;
    return status;
}

stk_status stk_loader_next_timeout(stk_loader *loader, int64_t timeout_ns, stk_batch **out, stk_error *err)
{
    return stk_loader_next_on(loader, NULL, timeout_ns, out, err);
}

stk_status stk_loader_next_on(stk_loader *loader, stk_stream *stream, int64_t timeout_ns, stk_batch **out,
                              stk_error *err)
{
    stki_core *core;
    stki_ring_slot *slot = NULL;
    int64_t deadline, waited = 0;
    stk_batch *batch;
    stki_totals after;
    stk_status status;

    if ((status = stki_loader_given(loader, err)) != STK_OK || (status = check_out(out, err)) != STK_OK)
        return status;
    core = loader->core;
    if (stki_loader_is_forked(loader))
        return stki_loader_fail_forked(err);
    if (timeout_ns < STK_TIMEOUT_INFINITE)
        return stki_fail(err, STK_E_BAD_ARG, "timeout_ns: found %lld, expected 0 or more, or STK_TIMEOUT_INFINITE (-1)",
                         (long long)timeout_ns);
    if (loader->failed) {
        if (err)
            *err = loader->error;
        return loader->error.status;
    }
    if (core->feed)
        return next_on_device(loader, stream, timeout_ns, out, err);
    deadline = timeout_ns == 0 ? 0 : stki_deadline_ns(timeout_ns);
    status = wait_for_slot(loader, deadline, &slot, &waited);
    stki_count_own(&loader->wait_next_ns, waited);
    if (status == STK_E_CANCELLED)
        return stki_fail(err, status, "the loader was cancelled");
    if (status == STK_E_TIMEOUT)
        return timed_out(loader, waited > timeout_ns ? waited : timeout_ns, err);
    if (status == STK_E_CLOSED)
        return stki_fail(err, STK_E_CLOSED, "the loader is closed");
    if (status != STK_OK)
        return status;
    batch = (stk_batch *)(void *)slot;
    if (batch->error_row < 0 && add_up(core, batch, &after, &batch->error) != STK_OK)
        batch->error_row = 0;
    if (batch->error_row >= 0)
        return deliver_error(loader, batch, err);
    deliver(loader, batch, &after);
    *out = batch;
    return STK_OK;
}

stk_status stk_loader_next(stk_loader *loader, stk_batch **out, stk_error *err)
{
    return stk_loader_next_timeout(loader, loader ? loader->core->config->timeout : 0, out, err);
}
