/* loader_queries.c: queries on a loader: sizes, fields, notes, statistics. Thread-safe. */
#include "allocate.h"
#include "batch_tensors.h"
#include "clock.h"
#include "core.h"
#include "error.h"
#include "feed.h"
#include "loader_handle.h"
#include "open_lists.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return loader->core->tensor_count;
}

stk_status stk_loader_tensor_name(const stk_loader *loader, int index, char *name, int size, stk_error *err)
{
    const stki_core *core = loader->core;
    const char *found;

    if (index < 0 || index >= core->tensor_count)
        return stki_fail(err, STK_E_RANGE, "no tensor %d: a batch has %d", index, core->tensor_count);
    found = core->tensors[index].name;
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
    const stki_field_plan *plan, *sample;
    stki_row_form form;

    if (index < 0 || index >= core->plan_count)
        return stki_fail(err, STK_E_RANGE, "no field %d: the loader has %d", index, core->plan_count);
    plan = &core->plans[index];
    sample = stki_plan_of_sample(plan);
    stki_plan_form(plan, &form);
    *out = (stk_field_info){
        .name = plan->name,
        .source_dtype = plan->field->dtype,
        .dtype = form.dtype,
        .ndim = plan->ndim + 1,
        .layout = stki_layout_name(form.layout),
        .kernel = plan->device.convert    ? plan->device.kernel
                  : sample->convert.count ? stki_convert_name(stki_plan_kernel(sample, 0))
                                          : "copy",
        .access = plan->field->shards[0]->access,
    };
    out->shape[0] = core->max_rows;
    for (int i = 0; i < plan->ndim; i++)
        out->shape[i + 1] = plan->varies && i == 0 ? -1 : form.shape[i];
    return STK_OK;
}

stk_status stk_loader_classes(const stk_loader *loader, int index, const char *const **names, int64_t *count,
                              stk_error *err)
{
    const stki_core *core = loader->core;

    if (index < 0 || index >= core->plan_count)
        return stki_fail(err, STK_E_RANGE, "no field %d: the loader has %d", index, core->plan_count);
    if (!names || !count)
        return stki_check_given(names ? (const void *)count : (const void *)names, names ? "count" : "names", err);
    *names = core->classes[index].list;
    *count = core->classes[index].names.count;
    return STK_OK;
}

const char *stk_loader_options_json(const stk_loader *loader)
{
    return loader->options_json;
}

int stk_loader_note_count(const stk_loader *loader)
{
    return stki_notes_count(&loader->core->config->notes);
}

const char *stk_loader_note(const stk_loader *loader, int index)
{
    return stki_notes_get(&loader->core->config->notes, index);
}

bool stki_loader_note_is_fact(const stk_loader *loader, int index)
{
    const stki_notes *notes = &loader->core->config->notes;

    return index >= 0 && index < notes->count && notes->facts[index];
}

/* Returns a copy that stk_text_free can free. */
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
    stki_sections_help(stki_config_sections, to);
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
    const stki_counter *counts = loader->core->failed_for;
    int64_t all = 0;

    if (reason != STK_OK)
        return reason < 0 && reason > -STKI_REASONS ? stki_counted(&counts[-reason]) : 0;
    for (int i = 0; i < STKI_REASONS; i++)
        all += stki_counted(&counts[i]);
    return all;
}

stk_status stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out, stk_error *err)
{
    stk_status status = stki_loader_check(loader, err);
    const stki_core *core = status == STK_OK ? loader->core : NULL;
    stk_loader_stats stats = {.workers = core ? (uint32_t)core->worker_count : 0};
    uint32_t size = out->struct_size;
    const int64_t now = stki_now_ns();
    stki_ring_view view;

    if (status != STK_OK)
        return status;
    if (size < sizeof(uint32_t) * 2)
        return stki_fail(err, STK_E_BAD_ARG, "struct_size: found %u, expected sizeof(stk_loader_stats) = %zu", size,
                         sizeof stats);
    for (int i = 0; i < core->worker_slots; i++) {
        const stki_worker *worker = &core->workers[i];

        stats.tiles += stki_counted(&worker->clocks.tiles);
        stats.wait_slot_ns += stki_ring_wait_slot_ns(&worker->clocks, now);
        stats.wait_work_ns += stki_counted(&worker->clocks.wait_work_ns);
        stats.order_ns += stki_counted(&worker->order_ns);
        stats.read_ns += stki_counted(&worker->read_ns);
        stats.convert_ns += stki_counted(&worker->convert_ns);
        stats.decode_ns += stki_counted(&worker->parts.ns[STKI_READ_DECODE]);
        stats.inflate_ns += stki_counted(&worker->parts.ns[STKI_READ_INFLATE]);
        stats.call_ns += stki_counted(&worker->parts.ns[STKI_READ_CALL]);
        stats.page_ns += stki_counted(&worker->parts.page_ns);
        stats.unpacked_bytes += stki_counted(&worker->parts.unpacked_bytes);
        stats.packed_bytes += stki_counted(&worker->parts.wanted_bytes);
        stats.bytes_read += stki_counted(&worker->bytes_read);
        stats.bytes_written += stki_counted(&worker->bytes_written);
        stats.warnings += stki_counted(&worker->scratch.warnings);
        if (core->helps && i == core->worker_count)
            stats.helped_ns =
                stki_counted(&worker->order_ns) + stki_counted(&worker->read_ns) + stki_counted(&worker->convert_ns);
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

stk_status stk_loader_worker(const stk_loader *loader, int index, stk_worker_stats *out, stk_error *err)
{
    const stk_status status = stki_loader_check(loader, err);
    const stki_core *core = status == STK_OK ? loader->core : NULL;
    const int count = core && core->worker_count > 0 ? core->worker_count : 1;
    uint32_t size;

    if (status != STK_OK || !out)
        return status != STK_OK ? status : stki_check_given(out, "out", err);
    size = out->struct_size;
    if (size < sizeof(uint32_t) * 2)
        return stki_fail(err, STK_E_BAD_ARG, "struct_size: found %u, expected sizeof(stk_worker_stats) = %zu", size,
                         sizeof *out);
    if (index < 0 || index >= count)
        return stki_fail(err, STK_E_RANGE, "no worker %d: the loader has %d", index, count);
    const stki_worker *worker = &core->workers[index];
    const stk_worker_stats stats = {
        .struct_size = size,
        .order_ns = stki_counted(&worker->order_ns),
        .read_ns = stki_counted(&worker->read_ns),
        .decode_ns = stki_counted(&worker->parts.ns[STKI_READ_DECODE]),
        .inflate_ns = stki_counted(&worker->parts.ns[STKI_READ_INFLATE]),
        .call_ns = stki_counted(&worker->parts.ns[STKI_READ_CALL]),
        .page_ns = stki_counted(&worker->parts.page_ns),
        .convert_ns = stki_counted(&worker->convert_ns),
        .wait_slot_ns = stki_ring_wait_slot_ns(&worker->clocks, stki_now_ns()),
        .wait_work_ns = stki_counted(&worker->clocks.wait_work_ns),
        .tiles = stki_counted(&worker->clocks.tiles),
    };
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    return STK_OK;
}
