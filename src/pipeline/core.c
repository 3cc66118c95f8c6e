/* core.c: builds the running part of a loader from its config, and destroys it. See core.h. */
#include "core.h"
#include "batch_tensors.h"
#include "cgroup.h"
#include "checked.h"
#include "clock.h"
#include "convert.h"
#include "convert_choice.h"
#include "core_files.h"
#include "device_choice.h"
#include "device_table.h"
#include "error.h"
#include "failed.h"
#include "first_steps.h"
#include "help.h"
#include "late_rows.h"
#include "log.h"
#include "partners.h"
#include "row_maker.h"
#include "sample_windows.h"
#include "token_source.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS_LEAST = 4, SLOTS_MOST = 16 }; /* prefetch: auto */

#define DEFAULT_TILE (INT64_C(512) << 10)

/* ---- the data set ---- */

static stk_status open_synthetic(const stki_field_config *field, stki_shards *all, stk_error *err)
{
    stki_synthetic_opts synthetic;
    stki_reader *reader;
    stk_status status = stki_config_synthetic(field->synthetic, &synthetic, err);

    if (status == STK_OK)
        status = stki_source_check_synthetic(field->source.source, synthetic.min_length >= 0, err);
    if (status == STK_OK)
        status = stki_synthetic_open(&synthetic, &reader, err);
    if (status == STK_OK)
        status = stki_token_source_pack(field, reader, &reader, err);
    return status == STK_OK ? stki_shards_add(all, reader, err) : status;
}

static void note_windows(stki_core *core, const stki_field_config *field, const stki_reader *reader)
{
    if (field->window.length == 0)
        return;
    core->in_place = core->in_place || reader->windows;
    core->over_samples = core->over_samples || !stki_windows_in_place(field, reader);
}

/* Rejects text in a field that converts its samples, because its character codes are not the numbers that it spells.
 * Tables reject it earlier, with the cell. */
static stk_status refuse_text(const stki_field_config *field, const stki_reader *reader, stk_error *err)
{
    if (!reader->ending || strcmp(reader->ending, "bin") == 0 || reader->count == 0)
        return STK_OK;
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){reader->path, -1, -1, "strings", "numbers"},
                        "field %s has a dtype or transforms, which would convert character codes; store numbers, "
                        "tokenize the text, or set dtype: uint8 to get the characters",
                        field->name);
}

/* Opens the files of a field in one data set and appends their readers to `all`. */
static stk_status open_readers(stki_core *core, int source, int number, const stki_field_config *field,
                               stki_shards *all, stk_error *err)
{
    stki_reader_opts opts = field->source;
    int before = all->count;
    stk_status status;

    opts.access = (enum stki_access)core->config->access;
    if (!core->config->sigbus_guard)
        opts.access = opts.access == STKI_ACCESS_PREAD ? STKI_ACCESS_UNWATCHED : STKI_ACCESS_UNGUARDED;
    opts.pattern = core->config->order == STK_ORDER_SEQUENTIAL ? STKI_PATTERN_SEQUENTIAL : STKI_PATTERN_RANDOM;
    opts.by_units = core->config->order == STK_ORDER_BLOCK;
    opts.prefer = field->name;
    opts.numbers = (field->dtype != STK_DTYPE_NONE || field->transforms) && !stki_first_steps_call(field->transforms) &&
                   !all->asked->classes.node;
    opts.integers = stki_core_integers(all->asked);
    opts.cache_bytes = core->config->cache_bytes;
    if (core->over_samples)
        opts.window_length = 0;
    status = field->synthetic ? open_synthetic(field, all, err)
                              : stki_core_open_files(core, source, number, field, &opts, all, err);
    for (int i = before; status == STK_OK && i < all->count; i++) {
        note_windows(core, field, all->readers[i]);
        if (opts.numbers && field->dtype != STK_U8 && opts.alias_dtype == STK_DTYPE_NONE)
            status = refuse_text(field, all->readers[i], err);
    }
    if (status == STK_OK)
        status = stki_core_check_partners(core, source, number, all, before, err);
    for (int i = before; status == STK_OK && core->config->wrap_reader && i < all->count; i++)
        status = core->config->wrap_reader(core->config->wrap_context, field->name, &all->readers[i], err);
    for (int i = before; status == STK_OK && i < all->count; i++)
        status = stki_first_steps_wrap(field->transforms, &all->readers[i], err);
    return status;
}

/* Checks a field of a data set: its dtype and shape must be those in the first data set, and its number of samples that
 * of the data set's first field. */
static stk_status count_source(stki_core *core, int number, bool first_field, const stki_shards *all, int first_shard,
                               const char *field, stk_error *err)
{
    struct stki_core_source *source = &core->sources[number];
    int64_t count = 0;

    for (int i = first_shard; i < all->count; i++) {
        stk_status status = number == 0 ? STK_OK
                                        : stki_dataset_go_together(field, core->sources[0].name, all->readers[0],
                                                                   source->name, all->readers[i], err);

        if (status != STK_OK)
            return status;
        count += all->readers[i]->count;
    }
    if (first_field) {
        source->count = count;
        source->first = number > 0 ? source[-1].first + source[-1].count : 0;
    } else if (count != source->count) {
        return stki_fail(err, STK_E_MISMATCH,
                         "data set %s: field %s: found %lld samples, expected %lld, as in field %s", source->name,
                         field, (long long)count, (long long)source->count, core->config->fields[0].name);
    }
    return STK_OK;
}

/* Opens the segments or positions of the previous field's windows. */
static stk_status open_derived(stki_core *core, const stki_field_config *field, stki_shards *all, stk_error *err)
{
    const stki_field *packed = &core->dataset->fields[field->derived_from];
    stk_status status = STK_OK;

    for (int i = 0; i < packed->shard_count && status == STK_OK; i++) {
        stki_reader *reader;

        status = stki_packed_tensor_open(packed->shards[i], field->derived_part, &reader, err);
        if (status == STK_OK)
            status = stki_shards_add(all, reader, err);
    }
    return status;
}

/* Checks that the readers from index `from` on are listed in the manifest of their data set. Derived fields have no
 * files. */
static stk_status check_listed(const stki_manifest *list, const stki_shards *all, int from, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = from; list->count > 0 && i < all->count && status == STK_OK; i++)
        status = stki_manifest_has(list, all->readers[i]->path, err);
    return status;
}

static stk_status open_field(stki_core *core, int number, stk_error *err)
{
    const stki_field_config *field = &core->config->fields[number];
    stki_shards all = {.asked = field};
    int first[STKI_MAX_SOURCES] = {0}; /* the first shard of each data set */
    stk_status status = STK_OK;

    if (field->derived)
        status = open_derived(core, field, &all, err);
    else if (core->source_count == 0 && (status = open_readers(core, 0, number, field, &all, err)) == STK_OK)
        status = check_listed(&core->lists[0], &all, 0, err);
    for (int d = 0; d < core->source_count && !field->derived && status == STK_OK; d++) {
        first[d] = all.count;
        status = open_readers(core, d, number, &core->config->datasets[d].fields[number], &all, err);
        if (status == STK_OK)
            status = check_listed(&core->lists[d], &all, first[d], err);
        if (status == STK_OK)
            status = count_source(core, d, number == 0, &all, first[d], field->name, err);
    }
    if (status == STK_OK && !field->derived)
        status = stki_classes_settle(core, number, &all.classes, all.readers, all.count, first, err);
    stki_class_shards_fini(&all.classes);
    if (status != STK_OK)
        while (all.count > 0)
            stki_reader_destroy(all.readers[--all.count]);
    else
        status = stki_dataset_add(core->dataset, field->name, all.readers, all.count,
                                  err); /* takes ownership of the readers */
    stki_free(all.readers);
    return status;
}

/* Combines several data sets into one: the shards of each follow those of the previous one, and samples are numbered
 * accordingly. */
static stk_status make_sources(stki_core *core, stk_error *err)
{
    const stki_loader_config *config = core->config;

    if (config->dataset_count < 2)
        return STK_OK;
    core->sources = stki_zalloc_array(config->dataset_count, sizeof *core->sources);
    if (!core->sources)
        return stki_fail_memory(err, config->dataset_count * (int64_t)sizeof *core->sources, "data sets");
    core->source_count = config->dataset_count;
    for (int d = 0; d < core->source_count; d++)
        core->sources[d] =
            (struct stki_core_source){.name = config->datasets[d].name, .weight = config->datasets[d].weight};
    return STK_OK;
}

/* Opens the manifests named in the config and compares the sizes of their files before any of these is opened. */
static stk_status open_lists(stki_core *core, stk_error *err)
{
    const stki_loader_config *config = core->config;
    const int count = config->dataset_count > 0 ? config->dataset_count : 1;
    stk_status status = STK_OK;

    core->lists = stki_zalloc_array(count, sizeof *core->lists);
    if (!core->lists)
        return stki_fail_memory(err, count * (int64_t)sizeof *core->lists, "manifests");
    for (core->list_count = 0; core->list_count < count && status == STK_OK; core->list_count++) {
        const char *path = config->dataset_count > 0 ? config->datasets[core->list_count].manifest : config->manifest;

        if (path && (status = stki_manifest_open(path, &core->lists[core->list_count], err)) == STK_OK)
            status = stki_manifest_check(&core->lists[core->list_count], err);
    }
    return status;
}

static void close_lists(stki_core *core)
{
    while (core->list_count > 0)
        stki_manifest_fini(&core->lists[--core->list_count]);
    stki_free(core->lists);
    core->lists = NULL;
}

static void end_classes(stki_core *core)
{
    for (int i = 0; core->classes && i < core->config->field_count; i++)
        stki_field_classes_fini(&core->classes[i]);
    stki_free(core->classes);
    stki_free(core->left_out);
    core->classes = NULL;
    core->left_out = NULL;
}

/* Replaces earlier classes, because fields may be opened twice (open_windows). */
static stk_status begin_classes(stki_core *core, stk_error *err)
{
    end_classes(core);
    core->classes = stki_zalloc_array(core->config->field_count, sizeof *core->classes);
    return core->classes ? STK_OK
                         : stki_fail_memory(err, core->config->field_count * (int64_t)sizeof *core->classes, "classes");
}

static stk_status open_fields(stki_core *core, stk_error *err)
{
    stk_status status = stki_dataset_create(&core->dataset, err);

    core->in_place = false;
    if (status == STK_OK)
        status = begin_classes(core, err);
    core->pairing = (stki_u128){0};
    for (int i = 0; i < core->config->field_count && status == STK_OK; i++)
        status = open_field(core, i, err);
    stki_core_forget_names(core);
    return status == STK_OK ? stki_dataset_finish(core->dataset, err) : status;
}

/* Opens the fields. If only some of their readers can return windows as samples, or if the fields then differ in their
 * number of samples, opens them again and builds the windows from samples. */
static stk_status open_windows(stki_core *core, stk_error *err)
{
    stk_error first = {0};
    stk_status status;

    core->over_samples = stki_windows_need_samples(core->config);
    status = open_fields(core, &first);
    if (core->in_place && (status == STK_OK ? core->over_samples : status == STK_E_MISMATCH)) {
        core->over_samples = true;
        stki_dataset_destroy(core->dataset);
        core->dataset = NULL;
        status = open_fields(core, &first);
    }
    if (status != STK_OK && err)
        *err = first;
    if (status == STK_OK && core->over_samples)
        return stki_windows_over_samples(core, err);
    if (status == STK_OK)
        stki_window_short_files(core);
    return status;
}

static stk_status open_dataset(stki_core *core, stk_error *err)
{
    stk_status status = make_sources(core, err);

    if (status == STK_OK)
        status = open_lists(core, err);
    if (status == STK_OK)
        status = open_windows(core, err);
    if (status == STK_OK)
        stki_core_note_pairs(core);
    if (status == STK_OK)
        status = stki_classes_leave_out(core, err);
    close_lists(core);
    for (int i = 0; status == STK_OK && i < core->dataset->field_count; i++) {
        const stki_field *field = &core->dataset->fields[i];

        for (int k = 0; k < field->shard_count; k++)
            if (field->shards[k]->note)
                stki_config_note(core->config, "%s: %s", field->shards[k]->path, field->shards[k]->note);
    }
    return status;
}

/* ---- memory ---- */

/* Returns the machine's free memory, limited by the control group. */
static int64_t free_memory(void)
{
    stki_cgroup_memory group;
    FILE *file = fopen("/proc/meminfo", "re");
    int64_t available = INT64_C(1) << 20; /* KiB */
    char line[256];

    while (file && fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %" SCNd64, &available) != 1)
        ;
    if (file)
        fclose(file);
    stki_cgroup_memory_read(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT, &group);
    available *= 1024;
    return group.free >= 0 && group.free < available ? group.free : available;
}

/* Returns the size of the readers' indexes of samples and of the class names. */
static int64_t held_bytes(const stki_core *core)
{
    const stki_dataset *dataset = core->dataset;
    int64_t bytes = 0;

    for (int f = 0; f < core->config->field_count; f++)
        bytes += stki_classes_bytes(&core->classes[f].names);
    for (int f = 0; f < dataset->field_count; f++)
        for (int s = 0; s < dataset->fields[f].shard_count; s++)
            bytes += dataset->fields[f].shards[s]->held_bytes;
    return bytes;
}

/* Implements prefetch: auto. A small batch takes less time than waking a thread, so small batches get more slots, as
 * many as fit in half of the caches. */
static int64_t auto_slots(int64_t slot_bytes, int64_t room)
{
    const int64_t caches = stki_level2_bytes() * stki_cpu_count(), last = stki_cache_bytes();
    int64_t most = (caches < last ? caches : last) / 2, slots;

    most = most < room ? most : room;
    slots = slot_bytes > 0 ? most / slot_bytes : SLOTS_MOST;
    return slots < SLOTS_LEAST ? SLOTS_LEAST : slots > SLOTS_MOST ? SLOTS_MOST : slots;
}

/* Chooses the number of slots that the budget allows. Called after the readers have allocated their memory, so that the
 * free memory excludes it. */
static stk_status choose_slots(stki_core *core, stk_error *err)
{
    stki_loader_config *config = core->config;
    const int64_t held = config->memory_budget ? held_bytes(core) : 0, aside = held + config->aside_bytes,
                  slot_bytes = core->layout.bytes;
    int64_t budget = config->memory_budget ? config->memory_budget : free_memory() / 2, slots;
    char more[160] = "";

    config->memory_budget = budget;
    if (held > 0)
        snprintf(more, sizeof more, " in addition to %lld for indexes of samples", (long long)held);
    if (config->aside_bytes > 0)
        snprintf(more + strlen(more), sizeof more - strlen(more), "%s %lld for encoding rows",
                 held > 0 ? " and" : " in addition to", (long long)config->aside_bytes);
    if (slot_bytes > budget - aside && config->arrange) /* a preparation job, which chooses its batch size itself */
        return stki_fail(
            err, STK_E_LIMIT,
            "the %lld rows made at a time need %lld bytes%s, but %s.memory_budget is %lld: raise or remove it",
            (long long)core->max_rows, (long long)slot_bytes, more, config->section, (long long)budget);
    if (slot_bytes > budget - aside)
        return stki_fail(err, STK_E_LIMIT,
                         "a batch of %lld rows needs %lld bytes%s, but loader.memory_budget is %lld: raise it or lower "
                         "loader.batch_size",
                         (long long)core->max_rows, (long long)slot_bytes, more, (long long)budget);
    if (config->prefetch == 0)
        config->prefetch = auto_slots(slot_bytes, budget - aside);
    slots = config->prefetch;
    if (slot_bytes > 0 && slots > (budget - aside) / slot_bytes) {
        slots = (budget - aside) / slot_bytes;
        if (!config->arrange)
            stki_config_note(config,
                             "loader.prefetch lowered from %lld to %lld: a slot needs %lld bytes%s, and "
                             "loader.memory_budget is %lld",
                             (long long)config->prefetch, (long long)slots, (long long)slot_bytes, more,
                             (long long)budget);
    }
    config->prefetch = slots;
    core->slot_count = (int)slots;
    stki_log(STKI_LOG_memory, "%lld slots of %lld bytes%s, budget %lld", (long long)slots, (long long)slot_bytes, more,
             (long long)budget);
    return STK_OK;
}

/* Returns the cost of making a row, in bytes. If samples are copied or decoded, that is the size of the largest sample:
 * a small crop of a large image costs as much as the image. */
static int64_t cost_of_row(const stki_field_plan *plan)
{
    int64_t cost = plan->row_bytes;

    for (int i = 0; i < plan->field->shard_count; i++) {
        const stki_reader *shard = plan->field->shards[i];

        if (shard->copies && shard->max_bytes > cost)
            cost = shard->max_bytes;
    }
    return cost;
}

static void choose_tiles(stki_core *core)
{
    int64_t tile = core->config->tile_bytes, row = 1;

    core->config->tile_bytes = tile = tile ? tile : DEFAULT_TILE;
    for (int i = 0; i < core->plan_count; i++)
        row += cost_of_row(&core->plans[i]);
    core->rows_per_tile = tile / row < 1 ? 1 : tile / row;
    if (core->rows_per_tile > core->max_rows && core->max_rows > 0)
        core->rows_per_tile = core->max_rows;
    core->tiles_per_row = 1;
    if (core->layout.pairs) /* even, so that both rows of a pair are usually in the same tile */
        core->rows_per_tile += core->rows_per_tile % 2;
    if (core->measures || core->layout.pairs || row < 4 * tile)
        return; /* dividing rows only pays off if a row is many tiles long */
    for (int i = 0; i < core->plan_count; i++) {
        const stki_field_plan *plan = &core->plans[i];
        int64_t parts = plan->row_bytes / tile;

        if (!plan->may_split)
            continue;
        parts = parts < plan->convert.units ? parts : plan->convert.units;
        core->tiles_per_row = parts > core->tiles_per_row ? parts : core->tiles_per_row;
    }
}

/* Notes that a field is normalized and then stored as integers. Integers that are only shifted keep their precision. */
static void note_integers(stki_core *core, const stki_field_plan *plan)
{
    const stki_fold *fold = plan->fold;

    if (fold && fold->normalized && !fold->quantized && stki_is_whole(plan->dtype) &&
        (stki_is_real(plan->field->dtype) || fabs(fold->a[0]) < 1))
        stki_config_note(core->config,
                         "dataset.fields.%s: normalized values, usually -2 to 2, lose their precision in %s: add a "
                         "quantize step, or use a floating-point dtype",
                         plan->config->name, stk_dtype_long_name(plan->dtype));
}

static stk_status make_plans(stki_core *core, stk_error *err)
{
    int n = core->dataset->field_count;
    stk_status status = STK_OK;
    int64_t in_flight;

    core->plans = stki_zalloc_array(n, sizeof *core->plans);
    if (!core->plans)
        return stki_fail_memory(err, n * (int64_t)sizeof *core->plans, "plans");
    for (int i = 0; i < n && status == STK_OK; i++) {
        core->plan_count = i + 1;
        status = stki_plan_resolve(&core->config->fields[i], &core->dataset->fields[i], &core->plans[i], err);
        core->measures = core->measures || core->plans[i].rows->measured;
        if (status == STK_OK)
            status = stki_classes_check_rows(core, i, err);
        if (status == STK_OK)
            note_integers(core, &core->plans[i]);
    }
    if (status != STK_OK || (status = stki_partners_check(core, err)) != STK_OK ||
        (status = stki_plans_link(core->plans, n, err)) != STK_OK)
        return status;
    for (int i = 0; i < n; i++)
        stki_row_makers_set(&core->plans[i]);
    if ((status = stki_views_make(core->plans, n, &core->views, &core->view_count, err)) != STK_OK ||
        (status = stki_choose_convert(core, err)) != STK_OK ||
        (status = stki_slot_plan(core->plans, n, core->max_rows, &core->layout, err)) != STK_OK ||
        (status = stki_batch_tensors_make(core, err)) != STK_OK || (status = choose_slots(core, err)) != STK_OK)
        return status;
    in_flight = core->layout.bytes * core->slot_count;
    for (int i = 0; i < n && status == STK_OK; i++) {
        status = stki_plan_compile(&core->plans[i], (enum stki_stores)core->config->stores, in_flight, err);
        for (int k = 0; status == STK_OK && k < core->plans[i].convert.count; k++)
            core->streams = core->streams || stki_convert_streams(stki_plan_kernel(&core->plans[i], k));
    }
    if (status == STK_OK)
        choose_tiles(core);
    for (int i = 0; i < n && status == STK_OK; i++)
        stki_log(STKI_LOG_plan, "%s: %s, rows of %lld bytes, %lld rows per tile, %lld parts per row",
                 core->plans[i].name,
                 core->plans[i].convert.count ? stki_convert_name(stki_plan_kernel(&core->plans[i], 0)) : "copy",
                 (long long)core->plans[i].row_bytes, (long long)core->rows_per_tile, (long long)core->tiles_per_row);
    return status;
}

/* Pinned memory is scarce. With pin_memory: auto, slots are in ordinary memory if there is no pinned memory left. */
static stk_status make_slot(stki_core *core, int number, stk_error *err)
{
    stk_error cause = {0};
    stk_status status;

    if (core->pin) {
        status = stki_slot_create(core, &core->layout, core->pin, &core->slots[number], &cause);
        core->pinned_slots += status == STK_OK;
        if (status == STK_OK)
            return status;
        if (core->config->pin_memory == STK_PIN_TRUE)
            return stki_fail(err, status, "loader.pin_memory: %s; use auto, or a smaller prefetch or batch_size",
                             cause.message);
        snprintf(core->pin_reason, sizeof core->pin_reason, "%d of %d slots are pinned: %.100s", number,
                 core->slot_count, cause.message);
        stki_config_note(core->config, "loader.pin_memory: %s", core->pin_reason);
        core->pin = NULL;
    }
    return stki_slot_create(core, &core->layout, NULL, &core->slots[number], err);
}

static stk_status make_slots(stki_core *core, stk_error *err)
{
    stki_ring_slot *ring_slots[STKI_MAX_SLOTS];
    int64_t epochs = core->config->num_epochs;
    stk_status status = STK_OK;

    core->slots = stki_zalloc_array(core->slot_count, sizeof *core->slots);
    if (!core->slots)
        return stki_fail_memory(err, core->slot_count * (int64_t)sizeof *core->slots, "slots");
    for (int i = 0; i < core->slot_count && status == STK_OK; i++) {
        status = make_slot(core, i, err);
        if (status == STK_OK)
            ring_slots[i] = &core->slots[i]->ring;
    }
    if (status == STK_OK)
        status = stki_progress_create(core->slot_count + (int)core->config->device_prefetch, 0, &core->progress, err);
    if (status != STK_OK)
        return status;
    if (core->steps == 0)
        core->end = 0;
    else if (epochs == 0 || !stki_mul(epochs, core->steps, &core->end))
        core->end = INT64_MAX;
    return stki_ring_create(ring_slots, core->slot_count, core->end,
                            &(stki_ring_work){core, stki_fill_work.begin, stki_fill_work.tile, stki_fill_work.phase_end,
                                              stki_fill_work.is_clear},
                            &core->ring, err);
}

static stk_status make_workers(stki_core *core, stk_error *err)
{
    int64_t wanted = core->config->num_workers;
    const int64_t together =
        core->layout.windows && core->rows_per_tile < STKI_WINDOW_TOGETHER ? STKI_WINDOW_TOGETHER : core->rows_per_tile;
    char buffer[160];
    int count;

    if (wanted == STK_WORKERS_AUTO)
        wanted = stki_ranks_workers(&core->config->ranks);
    core->worker_count = wanted == STK_WORKERS_INLINE ? 0 : (int)wanted;
    core->config->num_workers = core->worker_count ? core->worker_count : STK_WORKERS_INLINE;
    core->helps = stki_help_obstacle(core, buffer, sizeof buffer) == NULL;
    core->worker_slots = count = (core->worker_count ? core->worker_count : 1) + core->helps;
    core->workers = stki_block_alloc(NULL, count * (int64_t)sizeof *core->workers, _Alignof(stki_worker));
    if (!core->workers)
        return stki_fail_memory(err, count * (int64_t)sizeof *core->workers, "workers");
    memset(core->workers, 0, (size_t)count * sizeof *core->workers);
    for (int i = 0; i < count; i++) {
        stki_worker *worker = &core->workers[i];

        worker->core = core;
        worker->number = i;
        stki_scratch_init(&worker->scratch);
        stki_scratch_init(&worker->mixed);
        worker->pointers = stki_zalloc_array(together, sizeof *worker->pointers);
        worker->converts = stki_zalloc_array(core->rows_per_tile, sizeof *worker->converts);
        worker->resamplers = stki_zalloc_array(core->plan_count, sizeof *worker->resamplers);
        if (!worker->pointers || !worker->converts || !worker->resamplers)
            return stki_fail_memory(err, core->rows_per_tile * (int64_t)sizeof *worker->pointers, "a worker");
    }
    return STK_OK;
}

/* Runs the job's `arrange`, then releases the containers, which own class names that `arrange` may read. */
static stk_status arrange(stki_core *core, stk_error *err)
{
    stki_loader_config *config = core->config;
    stk_status status = config->arrange ? config->arrange(config->job_context, core, err) : STK_OK;

    stki_core_forget_containers(core);
    return status;
}

static stk_status find_device(stki_core *core, stk_error *err)
{
    stk_error cause = {0};
    stk_status status = stki_find_device(core->config, core->config->device, &core->device, &cause);

    if (status != STK_OK)
        return stki_fail(err, status, "loader.device: %s", cause.message);
    if (core->device->host_memory) /* the slots are already in its memory */
        core->device = NULL;
    return STK_OK;
}

/* Without a target device, memory is pinned only if pin_memory is true (for copies that the caller makes): looking for
 * a GPU would initialize it. */
static void choose_pinning(stki_core *core)
{
    stk_device_properties properties = {.struct_size = sizeof properties};
    stk_device *device = core->device;
    stk_error err = {0};
    enum { WORDS = sizeof core->pin_reason };

    if (core->config->pin_memory == STK_PIN_FALSE) {
        snprintf(core->pin_reason, WORDS, "loader.pin_memory is false");
        return;
    }
    if (!device && core->config->pin_memory == STK_PIN_AUTO) {
        snprintf(core->pin_reason, WORDS, "loader.device is cpu");
        return;
    }
    if (!device && stki_find_device(core->config, "cuda", &device, &err) != STK_OK) {
        snprintf(core->pin_reason, WORDS, "no GPU is available: %.180s", err.message);
    } else if (stk_device_get_properties(device, &properties, &err) != STK_OK || !properties.pins) {
        snprintf(core->pin_reason, WORDS, "%s cannot pin memory", device->name);
    } else {
        core->pin = device;
        snprintf(core->pin_reason, WORDS, "for copies to %s", device->name);
        return;
    }
    if (core->config->pin_memory == STK_PIN_TRUE)
        stki_config_note(core->config, "loader.pin_memory: slots are in ordinary memory, because %s", core->pin_reason);
}

/* ---- creation and destruction ---- */

static void core_destroy(stki_core *core)
{
    int workers = core->worker_slots;

    stki_core_forget_containers(core);
    stki_print_fini(&core->print);
    if (core->feed)
        core->destroy_feed(core->feed);
    stki_ring_destroy(core->ring);
    stki_progress_destroy(core->progress);
    for (int i = 0; core->workers && i < workers; i++) {
        stki_scratch_fini(&core->workers[i].scratch);
        stki_scratch_fini(&core->workers[i].mixed);
        stki_free(core->workers[i].pointers);
        stki_free(core->workers[i].converts);
        for (int f = 0; core->workers[i].resamplers && f < core->plan_count; f++)
            stki_resampler_fini(&core->workers[i].resamplers[f]);
        stki_free(core->workers[i].resamplers);
    }
    stki_block_free(NULL, core->workers, workers * (int64_t)sizeof *core->workers, _Alignof(stki_worker));
    stki_failed_close(core);
    for (int i = 0; core->slots && i < core->slot_count; i++)
        stki_slot_destroy(core->slots[i], &core->layout);
    stki_free(core->slots);
    for (int i = 0; i < core->plan_count; i++)
        stki_plan_fini(&core->plans[i]);
    stki_free(core->plans);
    stki_free(core->views);
    stki_batch_tensors_fini(core);
    stki_order_destroy(core->order);
    stki_free(core->sources);
    stki_dataset_destroy(core->dataset);
    end_classes(core);
    stki_config_destroy(core->config);
    stki_free(core);
}

void stki_core_retain(stki_core *core)
{
    stki_ref(&core->refs);
}

/* Waits until the deadline for streams to finish using slots, in host memory and on the device. Returns whether all
 * have finished. */
static bool has_passed(const stki_core *core, int64_t deadline_ns)
{
    bool passed = !core->feed || core->feed_has_passed(core->feed, deadline_ns);

    for (int i = 0; i < core->slot_count; i++)
        passed = stki_slot_has_passed(core->slots[i], deadline_ns) && passed;
    return passed;
}

static void destroy_late(void *context)
{
    (void)has_passed(context, INT64_MAX);
    core_destroy(context);
}

void stki_core_release_by(stki_core *core, int64_t deadline_ns)
{
    stki_thread *thread;

    if (!core || !stki_unref(&core->refs))
        return;
    if (!has_passed(core, deadline_ns) &&
        stki_thread_start(&thread, "stoker-late", destroy_late, core, NULL) == STK_OK) {
        stki_log(STKI_LOG_memory, "streams still use the memory of a loader, which is freed when they have finished");
        stki_thread_abandon(thread);
        return;
    }
    core_destroy(core);
}

void stki_core_release(stki_core *core)
{
    stki_core_release_by(core, 0);
}

stk_status stki_core_create(stki_loader_config *config, stki_core **out, stk_error *err)
{
    stki_core *core = stki_zalloc(sizeof *core);
    stk_status status;

    if (!core) {
        stki_config_destroy(config);
        return stki_fail_memory(err, sizeof *core, "a loader");
    }
    core->refs = 1;
    core->config = config;
    core->opened_ns = stki_now_ns();
    core->fork_generation = stki_fork_generation();
    if ((status = find_device(core, err)) == STK_OK && (status = open_dataset(core, err)) == STK_OK &&
        (status = arrange(core, err)) == STK_OK && (status = stki_core_make_order(core, err)) == STK_OK &&
        (status = make_plans(core, err)) == STK_OK &&
        (choose_pinning(core), status = make_slots(core, err)) == STK_OK &&
        (status = make_workers(core, err)) == STK_OK && (status = stki_failed_open(core, err)) == STK_OK &&
        (status = stki_core_print(core, &core->print, err)) == STK_OK) {
        *out = core;
        return STK_OK;
    }
    core_destroy(core);
    return status;
}
