/* loader.c: the public face of a loader: open, next, close, questions. The work is in core.c, fill.c and ring.c. */
#include "allocate.h"
#include "clock.h"
#include "core.h"
#include "device_table.h"
#include "error.h"
#include "failed.h"
#include "feed.h"
#include "loader_handle.h"
#include "parts.h"
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static stk_status forked(stk_error *err)
{
    return stki_fail(err, STK_E_FORKED, "this loader was opened in the parent process: open one in the child");
}

static bool is_forked(const stk_loader *loader)
{
    return loader->fork_generation != stki_fork_generation();
}

/* ---- the echo of everything in effect
 * ---------------------------------------------------------------------------------- */

static int64_t bytes_of(const stki_field *field)
{
    int64_t bytes = stk_dtype_size(field->dtype);

    for (int i = 0; i < field->ndim; i++)
        bytes *= field->shape[i];
    return bytes;
}

/* What the transforms' arithmetic has come to: y = x * multiply + add in each channel; levels have `zero_point` on top.
 */
static json_t *affine_json(const stki_fold *fold)
{
    json_t *json = json_object(), *multiply = json_array(), *add = json_array();

    for (int64_t c = 0; c < fold->channels; c++) {
        json_array_append_new(multiply, json_real(fold->a[c]));
        json_array_append_new(add, json_real(fold->b[c]));
    }
    json_object_set_new(json, "multiply", multiply);
    json_object_set_new(json, "add", add);
    json_object_set_new(json, "zero_point", json_integer(fold->zero_point));
    return json;
}

static json_t *field_json(const stki_core *core, const stki_field_plan *plan)
{
    const stki_field *field = plan->field;
    json_t *json = json_object(), *shape = json_array(), *paths = json_array();
    stki_row_form form;

    stki_plan_form(plan, &form);
    for (int i = 0; i < field->shard_count; i++)
        json_array_append_new(paths, json_string(field->shards[i]->path));
    json_object_set_new(json, "path", paths);
    json_object_set_new(json, "format", json_string(field->shards[0]->ops->format));
    json_object_set_new(json, "access", json_string(field->shards[0]->access));
    json_object_set_new(json, "source_dtype", json_string(stk_dtype_long_name(field->dtype)));
    json_object_set_new(json, "dtype", json_string(stk_dtype_long_name(form.dtype)));
    json_object_set_new(json, "layout", json_string(stki_layout_name(form.layout)));
    json_array_append_new(shape, json_integer(core->max_rows));
    for (int i = 0; i < plan->ndim; i++)
        json_array_append_new(shape, json_integer(form.shape[i]));
    json_object_set_new(json, "batch_shape", shape);
    json_object_set_new(json, "varying", json_boolean(plan->ragged));
    json_object_set_new(json, "row_bytes", json_integer(form.row_bytes));
    if (plan->convert_count)
        json_object_set_new(json, "kernel", json_string(stki_convert_name(plan->converts[0])));
    if (plan->device_convert)
        json_object_set_new(json, "device_kernel", json_string(plan->device_kernel));
    if (!field->variable)
        json_object_set_new(json, "sample_bytes", json_integer(bytes_of(field)));
    if (plan->fold->arithmetic)
        json_object_set_new(json, "affine", affine_json(plan->fold));
    return json;
}

/* What a saved position is compared by. */
static json_t *prints_json(const stki_state *prints)
{
    json_t *json = json_object();
    char text[STKI_U128_TEXT];

    json_object_set_new(json, "dataset", json_string(stki_u128_text(prints->dataset, text)));
    json_object_set_new(json, "order", json_string(stki_u128_text(prints->order_print, text)));
    json_object_set_new(json, "transforms", json_string(stki_u128_text(prints->transforms, text)));
    return json;
}

static json_t *ranks_json(const stki_ranks *ranks)
{
    json_t *json = json_object();

    json_object_set_new(json, "source", json_string(ranks->source));
    json_object_set_new(json, "rank", json_integer(ranks->rank));
    json_object_set_new(json, "world_size", json_integer(ranks->world_size));
    json_object_set_new(json, "data_rank", json_integer(ranks->data_rank));
    json_object_set_new(json, "data_world_size", json_integer(ranks->data_world_size));
    return json;
}

/* What comes in which order, in numbers. */
static json_t *order_json(const stki_core *core)
{
    static const char *const kinds[] = {"sequential", "random", "block", "weighted"};
    json_t *json = json_object(), *sources = json_array();
    stki_order_print print;
    char hash[17];

    stki_order_fingerprint(core->order, &print);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)print.whole);
    json_object_set_new(json, "kind", json_string(kinds[print.kind]));
    json_object_set_new(json, "seed", json_integer(core->config->seed));
    json_object_set_new(json, "version", json_integer(print.version));
    json_object_set_new(json, "fingerprint", json_string(hash));
    json_object_set_new(json, "positions_per_epoch", json_integer(print.length));
    json_object_set_new(json, "data_set_samples", json_integer(core->dataset->count));
    if (core->config->split)
        json_object_set_new(json, "split", stki_options_json(&stki_split_table, &core->config->split_config));
    if (core->config->bucket_by)
        json_object_set_new(json, "bucket_by", json_string(core->config->bucket_by));
    if (core->quality.batch > 0) {
        json_object_set_new(json, "quality", json_real(core->quality.quality));
        json_object_set_new(json, "quality_classes_per_batch", json_real(core->quality.classes));
        json_object_set_new(json, "quality_classes_shuffled", json_real(core->quality.shuffled));
    }
    for (int d = 0; d < core->source_count; d++)
        json_array_append_new(sources, json_pack("{s:s, s:f, s:I, s:I}", "name", core->sources[d].name, "weight",
                                                 core->sources[d].weight, "samples", (json_int_t)core->sources[d].count,
                                                 "positions_per_epoch", (json_int_t)core->sources[d].share));
    json_object_set_new(json, "datasets", sources);
    return json;
}

static stk_status make_json(stk_loader *loader, stk_error *err)
{
    const stki_core *core = loader->core;
    json_t *json = json_object(), *fields = json_object(), *plan = json_object(),
           *section = stki_config_json(core->config);
    char *text;

    for (int i = 0; i < core->plan_count; i++)
        json_object_set_new(fields, core->plans[i].name, field_json(core, &core->plans[i]));
    json_object_set_new(json, "fields", fields);
    if (section)
        json_object_set_new(json, "loader", section);
    json_object_set_new(plan, "order", order_json(core));
    json_object_set_new(plan, "samples", json_integer(core->batching.length));
    json_object_set_new(plan, "steps_per_epoch", json_integer(core->steps));
    json_object_set_new(plan, "global_batch_rows", json_integer(core->batching.global_batch));
    json_object_set_new(plan, "slots", json_integer(core->slot_count));
    json_object_set_new(plan, "slot_bytes", json_integer(core->layout.bytes));
    json_object_set_new(plan, "workers", json_integer(core->worker_count));
    json_object_set_new(plan, "rows_per_tile", json_integer(core->rows_per_tile));
    json_object_set_new(plan, "parts_per_row", json_integer(core->parts_per_row));
    json_object_set_new(plan, "pinned", json_boolean(core->pinned_slots == core->slot_count));
    json_object_set_new(plan, "pinned_slots", json_integer(core->pinned_slots));
    json_object_set_new(plan, "pinned_reason", json_string(core->pin_reason));
    if (core->device) {
        json_object_set_new(plan, "device", json_string(core->device->name));
        json_object_set_new(plan, "device_slots", json_integer(core->config->device_prefetch));
        json_object_set_new(plan, "device_slot_bytes", json_integer(core->device_slot_bytes));
    }
    json_object_set_new(plan, "isa", json_string(stki_isa_name(stki_isa())));
    json_object_set_new(plan, "ranks", ranks_json(&core->config->ranks));
    json_object_set_new(plan, "fingerprints", prints_json(&core->prints));
    json_object_set_new(json, "plan", plan);
    text = json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    if (text) {
        loader->options_json = stki_strdup(text);
        free(text);
    }
    return loader->options_json ? STK_OK : stki_fail_memory(err, 0, "the options in effect");
}

/* ---- open
 * ----------------------------------------------------------------------------------------------------------------- */

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
        status = make_json(loader, err);
    if (status == STK_OK)
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
    return out ? STK_OK : stki_fail(err, STK_E_BAD_ARG, "out: found NULL, expected where the result goes");
}

static stk_status check_loader(const stk_loader *loader, stk_error *err)
{
    return loader ? STK_OK : stki_fail(err, STK_E_BAD_ARG, "loader: found NULL, expected one that was opened");
}

stk_status stki_loader_check(const stk_loader *loader, stk_error *err)
{
    stk_status status = check_loader(loader, err);

    return status == STK_OK && is_forked(loader) ? forked(err) : status;
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
        return stki_fail(err, STK_E_BAD_ARG, "%s: found NULL, expected a text", name);
    if (set_count < 0 || (set_count > 0 && !sets))
        return stki_fail(err, STK_E_BAD_ARG, "sets: found %s and a count of %d", sets ? "an array" : "NULL", set_count);
    for (int i = 0; i < set_count; i++)
        if (!sets[i])
            return stki_fail(err, STK_E_BAD_ARG,
                             "sets[%d]: found NULL, expected an assignment such as loader.batch_size=256", i);
    return STK_OK;
}

/* Applies the assignments and reads the document, which it takes over. */
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

stk_status stk_loader_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                                stk_loader **out, stk_error *err)
{
    stki_document *document;
    stki_loader_config *config;
    stk_status status = check_out(out, err);

    if (status == STK_OK)
        status = check_arguments(text, "text", sets, set_count, err);
    if (status == STK_OK)
        status = stki_document_parse(text, (int64_t)strlen(text), "text", base_dir, &document, err);
    if (status != STK_OK)
        return status;
    status = read_document(document, base_dir, sets, set_count, &config, err);
    return status != STK_OK ? status : stki_loader_open_config(config, out, err);
}

/* ---- close
 * ---------------------------------------------------------------------------------------------------------------- */

/* Behind the workers, in what they have left of the time, and in any case long enough for a thread that is only about
 * to end. Without workers the copying thread reads and converts too, so what it is stuck in may be that. */
static void close_feed(stk_loader *loader, int64_t deadline)
{
    const int64_t least = STKI_SECOND / 20, left = deadline - stki_now_ns();
    stki_core *core = loader->core;
    char report[320];
    stk_error cause;

    loader->feed_status = stki_feed_close(core->feed,
                                          deadline == INT64_MAX ? STK_TIMEOUT_INFINITE
                                          : left > least        ? left
                                                                : least,
                                          &cause);
    if (loader->feed_status == STK_OK)
        return;
    loader->feed_error = cause;
    if (core->worker_count > 0)
        return;
    stki_workers_report(core, report, sizeof report);
    (void)stki_fail(&loader->feed_error, loader->feed_status, "%s: %s", cause.message, report);
}

stk_status stk_loader_close(stk_loader *loader, stk_error *err)
{
    char report[512];
    stk_status status = check_loader(loader, err);

    if (status != STK_OK)
        return status;
    if (is_forked(loader))
        return forked(err);
    if (!loader->closed) {
        int64_t deadline = stki_deadline_ns(loader->core->config->close_timeout);

        loader->closed = true;
        loader->stuck = stki_workers_stop(loader->core, loader->core->config->close_timeout);
        if (loader->core->feed)
            close_feed(loader, deadline);
    }
    if (loader->stuck == 0 && err && loader->feed_status != STK_OK)
        *err = loader->feed_error;
    if (loader->stuck == 0)
        return loader->feed_status;
    stki_workers_report(loader->core, report, sizeof report);
    return stki_fail(err, STK_E_TIMEOUT, "%d of %d workers did not stop within %.1f s and were left behind: %s",
                     loader->stuck, loader->core->worker_count, (double)loader->core->config->close_timeout * 1e-9,
                     report);
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
    if (!is_forked(loader) && loader->core) { /* a child may not touch locks that a thread of the parent held */
        (void)stk_loader_close(loader, NULL);
        stki_core_release(loader->core);
    }
    stki_free(loader->options_json);
    stki_free(loader);
}

/* ---- next
 * ------------------------------------------------------------------------------------------------------------------ */

static stk_status timed_out(const stk_loader *loader, int64_t timeout_ns, stk_error *err)
{
    stki_ring_view view;
    char report[448];

    stki_ring_look(loader->core->ring, &view);
    if (view.leased == view.slots)
        return stki_fail(
            err, STK_E_TIMEOUT,
            "no batch within %g s: all %d slots are held by batches that have not been released (loader.prefetch)",
            (double)timeout_ns * 1e-9, view.slots);
    stki_workers_report(loader->core, report, sizeof report);
    return stki_fail(err, STK_E_TIMEOUT, "no batch within %g s: waiting for step %lld (%d slots filling, %d held): %s",
                     (double)timeout_ns * 1e-9, (long long)view.next_step, view.filling, view.leased, report);
}

/* The copying thread has no batch to hand on: say who holds what, and what the workers do. */
static stk_status timed_out_on_device(const stk_loader *loader, int64_t timeout_ns, const stk_error *cause,
                                      stk_error *err)
{
    const char *colon = strstr(cause->message, ": "), *what = colon ? colon + 2 : cause->message;
    double seconds = (double)timeout_ns * 1e-9;
    stki_prefetch_stats now;
    char report[320];

    stki_feed_stats(loader->core->feed, &now);
    if (now.held == now.slots)
        return stki_fail(err, STK_E_TIMEOUT, "no batch within %g s: %s (loader.device_prefetch)", seconds, what);
    stki_workers_report(loader->core, report, sizeof report);
    return stki_fail(err, STK_E_TIMEOUT, "no batch within %g s: %s; %s", seconds, what, report);
}

/* The batch failed: its error is what the consumer gets from now on. */
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
    stki_core_retain(core);
    if (stki_counted(&loader->batches) == 0)
        stki_count_set(&loader->first_batch_ns, stki_now_ns() - core->opened_ns);
    stki_count(&loader->batches, 1);
    stki_count(&loader->rows, batch->rows);
    for (int i = 0; i < core->plan_count; i++) {
        stki_count(&loader->batch_bytes, stki_plan_bytes(batch, &core->plans[i]));
    }
}

/* What all steps up to this batch add up to. Not STK_OK: too many of its samples have failed. */
static stk_status add_up(stki_core *core, stk_batch *batch, stki_totals *after, stk_error *err)
{
    int64_t step;

    stki_progress_delivered(core->progress, &step, after);
    after->digest = stki_u128_add(after->digest, batch->digest);
    return core->settles ? stki_failed_deliver(core, batch, after, err) : STK_OK;
}

#define SLICE_NS (STKI_SECOND / 10) /* how late stk_loader_cancel may be noticed */

/* Waits in slices, since who cancels can wake nobody. */
static stk_status wait_for_slot(stk_loader *loader, int64_t deadline, stki_ring_slot **slot, int64_t *waited)
{
    const stki_core *core = loader->core;

    for (;;) {
        int64_t slice = deadline == 0 ? 0 : stki_deadline_ns(SLICE_NS);
        stk_status status;

        if (atomic_load_explicit(&loader->cancelled, memory_order_relaxed)) {
            stki_ring_stop(core->ring);
            return STK_E_CANCELLED;
        }
        slice = slice < deadline ? slice : deadline;
        if (core->worker_count == 0)
            stki_ring_run_inline(core->ring, 0, &core->workers[0].clocks, deadline == 0 ? INT64_MAX : slice);
        status = stki_ring_next(core->ring, core->worker_count ? slice : 0, slot, waited);
        if (status != STK_E_TIMEOUT || slice >= deadline)
            return status;
        if (core->worker_count == 0 && stki_now_ns() < slice)
            return status; /* there is nothing that this thread could do */
    }
}

/* The next batch on the device that is of the present generation: what had been on its way when the ring was restarted
 * is dropped. */
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
    stk_status status;

    if (stream && stk_stream_device(stream) != core->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "the loader delivers on %s, found a stream of %s", core->device->name,
                         stk_device_name(stk_stream_device(stream)));
    stki_progress_delivered(core->progress, &next_step, &after);
    if (next_step >= core->end && !loader->closed) {
        status = stki_feed_settle(core->feed, timeout_ns, &cause); /* a copy that failed is no end */
        status = status == STK_OK ? STK_END : status;
    } else {
        status = take_from_feed(loader, stream, timeout_ns == 0 ? 0 : stki_deadline_ns(timeout_ns), &batch, &cause);
    }
    if (status == STK_E_TIMEOUT)
        return timed_out_on_device(loader, timeout_ns, &cause, err);
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

    if ((status = check_loader(loader, err)) != STK_OK || (status = check_out(out, err)) != STK_OK)
        return status;
    core = loader->core;
    if (is_forked(loader))
        return forked(err);
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
    stki_count(&loader->wait_next_ns, waited);
    if (status == STK_E_CANCELLED)
        return stki_fail(err, status, "the loader was cancelled");
    if (status == STK_E_TIMEOUT)
        return timed_out(loader, timeout_ns, err);
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

/* ---- questions
 * ------------------------------------------------------------------------------------------------------------- */

int64_t stk_loader_samples(const stk_loader *loader)
{
    return loader->core->batching.length;
}

int64_t stk_loader_steps_per_epoch(const stk_loader *loader)
{
    return loader->core->steps;
}

int stk_loader_field_count(const stk_loader *loader)
{
    return loader->core->plan_count;
}

int stk_loader_tensor_count(const stk_loader *loader)
{
    return stki_part_count(loader->core);
}

stk_status stk_loader_tensor_name(const stk_loader *loader, int index, char *name, int size, stk_error *err)
{
    stki_part part;
    char found[512];

    if (index < 0 || index >= stki_part_count(loader->core))
        return stki_fail(err, STK_E_RANGE, "no tensor %d: a batch has %d", index, stki_part_count(loader->core));
    stki_part_at(loader->core, index, &part, found, sizeof found);
    if (!name || (int)strlen(found) >= size)
        return stki_fail(err, STK_E_BAD_ARG, "name: found room for %d bytes, expected at least %zu", name ? size : 0,
                         strlen(found) + 1);
    memcpy(name, found, strlen(found) + 1);
    return STK_OK;
}

int stk_loader_dataset_count(const stk_loader *loader)
{
    return loader->core->source_count ? loader->core->source_count : 1;
}

stk_status stk_loader_dataset(const stk_loader *loader, int index, stk_dataset_info *out, stk_error *err)
{
    const stki_core *core = loader->core;

    if (index < 0 || index >= stk_loader_dataset_count(loader))
        return stki_fail(err, STK_E_RANGE, "no data set %d: the loader has %d", index,
                         stk_loader_dataset_count(loader));
    if (core->source_count > 0)
        *out = (stk_dataset_info){core->sources[index].name, core->sources[index].weight, core->sources[index].count,
                                  core->sources[index].first, core->sources[index].share};
    else
        *out = (stk_dataset_info){core->config->dataset_count ? core->config->datasets[0].name : "", 1,
                                  core->dataset->count, 0, core->batching.length};
    return STK_OK;
}

stk_status stk_loader_field(const stk_loader *loader, int index, stk_field_info *out, stk_error *err)
{
    const stki_core *core = loader->core;
    const stki_field_plan *plan;
    stki_row_form form;

    if (index < 0 || index >= core->plan_count)
        return stki_fail(err, STK_E_RANGE, "no field %d: the loader has %d", index, core->plan_count);
    plan = &core->plans[index];
    stki_plan_form(plan, &form);
    *out = (stk_field_info){
        .name = plan->name,
        .source_dtype = plan->field->dtype,
        .dtype = form.dtype,
        .ndim = plan->ndim + 1,
        .layout = stki_layout_name(form.layout),
        .kernel = plan->device_convert  ? plan->device_kernel
                  : plan->convert_count ? stki_convert_name(plan->converts[0])
                                        : "copy",
        .access = plan->field->shards[0]->access,
    };
    out->shape[0] = core->max_rows;
    for (int i = 0; i < plan->ndim; i++)
        out->shape[i + 1] = plan->ragged && i == 0 && plan->pad.to == 0 ? -1 : form.shape[i];
    return STK_OK;
}

const char *stk_loader_options_json(const stk_loader *loader)
{
    return loader->options_json;
}

int stk_loader_note_count(const stk_loader *loader)
{
    return loader->core->config->note_count;
}

const char *stk_loader_note(const stk_loader *loader, int index)
{
    return index >= 0 && index < loader->core->config->note_count ? loader->core->config->notes[index] : NULL;
}

/* As stk_text_free frees it. */
static char *take_text(FILE *to, char **text)
{
    char *counted;

    fclose(to);
    counted = stki_strdup(*text);
    free(*text);
    return counted;
}

char *stk_loader_options_help(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return NULL;
    stki_config_help(to);
    return take_text(to, &text);
}

char *stk_loader_explain(const stk_loader *loader)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = loader ? open_memstream(&text, &size) : NULL;

    if (!to)
        return NULL;
    stki_explain(loader->core, to);
    return take_text(to, &text);
}

static void add_device_stats(const stki_core *core, stk_loader_stats *stats)
{
    stki_prefetch_stats device;

    stki_feed_stats(core->feed, &device);
    stats->wait_next_ns = device.wait_next_ns;
    stats->device_batches = device.batches;
    stats->device_bytes = device.bytes;
    stats->device_copy_ns = device.copy_ns;
    stats->device_convert_ns = device.convert_ns;
    stats->device_exposed_ns = device.exposed_ns;
    stats->device_wait_batch_ns = device.wait_upstream_ns;
    stats->device_wait_slot_ns = device.wait_slot_ns;
    stats->device_slots = device.slots;
    stats->device_slots_ready = device.queued;
    stats->device_slots_held = device.held;
    stats->device_slot_bytes = core->device_slot_bytes * device.slots;
}

int64_t stk_loader_failed(const stk_loader *loader, stk_status reason)
{
    const stki_core *core = loader->core;

    if (reason == STK_OK)
        return stki_counted(&core->skipped) + stki_counted(&core->substituted);
    return reason < 0 && reason > -STKI_REASONS ? stki_counted(&core->failed_for[-reason]) : 0;
}

stk_status stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out, stk_error *err)
{
    const stki_core *core = loader->core;
    stk_loader_stats stats = {.workers = (uint32_t)core->worker_count};
    uint32_t size = out->struct_size;
    stki_ring_view view;

    if (is_forked(loader))
        return forked(err);
    if (size < sizeof(uint32_t) * 2)
        return stki_fail(err, STK_E_BAD_ARG, "struct_size: found %u, expected sizeof(stk_loader_stats) = %zu", size,
                         sizeof stats);
    for (int i = 0; i < (core->worker_count ? core->worker_count : 1); i++) {
        const stki_worker *worker = &core->workers[i];

        stats.tiles += stki_counted(&worker->clocks.tiles);
        stats.wait_slot_ns += stki_counted(&worker->clocks.wait_slot_ns);
        stats.wait_work_ns += stki_counted(&worker->clocks.wait_work_ns);
        stats.order_ns += stki_counted(&worker->order_ns);
        stats.read_ns += stki_counted(&worker->read_ns);
        stats.convert_ns += stki_counted(&worker->convert_ns);
        stats.bytes_read += stki_counted(&worker->bytes_read);
        stats.bytes_written += stki_counted(&worker->bytes_written);
        stats.warnings += stki_counted(&worker->scratch.warnings);
    }
    stki_ring_look(core->ring, &view);
    stats.batches = stki_counted(&loader->batches);
    stats.rows = stki_counted(&loader->rows);
    stats.batch_bytes = stki_counted(&loader->batch_bytes);
    stats.wait_next_ns = stki_counted(&loader->wait_next_ns);
    stats.first_batch_ns = stki_counted(&loader->first_batch_ns);
    stats.slots = view.slots;
    stats.slots_ready = view.ready;
    stats.slots_leased = view.leased;
    stats.slot_bytes = core->layout.bytes * core->slot_count;
    stats.pinned_bytes = core->layout.bytes * core->pinned_slots;
    if (core->feed)
        add_device_stats(core, &stats);
    stats.errors = stki_counted(&core->failed_samples);
    stats.skipped = stki_counted(&core->skipped);
    stats.substituted = stki_counted(&core->substituted);
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    out->struct_size = size;
    return STK_OK;
}
