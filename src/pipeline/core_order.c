/* core_order.c: determines the order of a loader's samples from the config and the data sets, and divides it into
 * steps. */
#include "checked.h"
#include "core.h"
#include "error.h"
#include "log.h"
#include "order_print.h"
#include "order_quality.h"
#include "order_shift.h"
#include "sample_windows.h"
#include "selection.h"
#include "token_source.h"
#include <math.h>
#include <string.h>

enum { MOST_UNITS = 64 /* number of units shuffled together with block_window: auto */ };

/* The options of the order, and data that is needed only until the order has been created. */
typedef struct material {
    stki_order_opts opts;
    stki_units units;
    stki_order_source sources[STKI_MAX_SOURCES];
    int64_t *lists[STKI_MAX_SOURCES]; /* lists created by splits; owned */
    double *weights;
    stki_order_starts starts;
    int64_t *start_counts;        /* one per group */
    const stki_window *moving;    /* windows whose starts are chosen by the order; NULL: none */
    int64_t *groups, group_count; /* boundaries that windows do not cross, group_count + 1 sample numbers */
    bool one_each;                /* an epoch has one window per group: groups are selected instead of samples */
    int64_t source_groups[STKI_MAX_SOURCES + 1]; /* with one_each, the number of each data set's first group */
} material;

static void material_free(material *m)
{
    if (!m)
        return;
    for (int d = 0; d < STKI_MAX_SOURCES; d++)
        stki_free(m->lists[d]);
    stki_free(m->units.first);
    stki_free(m->weights);
    stki_free(m->start_counts);
    stki_free(m->groups);
    stki_free(m);
}

/* ---- windows whose starts are chosen by the order ---- */

/* Checks that windows whose starts vary are compatible with the other fields and options. If readers return windows as
 * samples, every possible window is a sample, so every field must have windows. */
static stk_status check_moving(const stki_core *core, const material *m, stk_error *err)
{
    const stki_loader_config *config = core->config;
    bool listed = config->index_list;

    for (int d = 0; d < config->dataset_count; d++)
        listed = listed || config->datasets[d].index_list;
    for (int i = 0; i < config->field_count && !core->over_samples; i++)
        if (config->fields[i].window.length == 0)
            return stki_fail(err, STK_E_CONFIG,
                             "dataset.fields.%s: found one sample for each possible window; unless "
                             "source.window.offsets is fixed, a field without source.window needs one sample for each "
                             "element of the field with windows",
                             config->fields[i].name);
    if (m->one_each && (config->order == STK_ORDER_BLOCK || config->order == STK_ORDER_WEIGHTED))
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "source.window.offsets: random with sample_per_file requires order: sequential or random");
    if (m->moving->offsets == STKI_OFFSETS_SHIFTED &&
        (config->split || listed || config->order == STK_ORDER_BLOCK || config->order == STK_ORDER_WEIGHTED))
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "source.window.offsets: shifted moves windows from epoch to epoch: it requires order: "
                         "sequential or random, without split or indices");
    return STK_OK;
}

/* Numbers the groups for epochs with one window per group. Groups too short for a window are left out. Sets
 * source_groups. */
static void number_groups(const stki_core *core, material *m)
{
    int64_t kept = 0;
    int d = 0;

    for (int64_t g = 0; g < m->group_count; g++) {
        if (m->groups[g + 1] == m->groups[g])
            continue;
        while (d + 1 < core->source_count && m->groups[g] >= core->sources[d + 1].first)
            m->source_groups[++d] = kept;
        m->groups[kept++] = m->groups[g];
    }
    m->groups[kept] = core->dataset->count;
    m->group_count = kept;
    while (d < core->source_count)
        m->source_groups[++d] = kept;
}

static stk_status find_moving(stki_core *core, material *m, stk_error *err)
{
    stk_status status;

    for (int i = 0; i < core->config->field_count; i++) {
        const stki_field_config *field = &core->config->fields[i];

        if (field->window.length > 0 && field->window.offsets != STKI_OFFSETS_FIXED)
            m->moving = &field->window;
    }
    if (!m->moving)
        return STK_OK;
    m->one_each = stki_window_one_each(core->config);
    if ((status = stki_window_of(core->config, &m->moving, err)) != STK_OK ||
        (status = check_moving(core, m, err)) != STK_OK ||
        (status = stki_window_groups(core, &m->groups, &m->group_count, err)) != STK_OK)
        return status;
    if (m->one_each)
        number_groups(core, m);
    return STK_OK;
}

/* ---- parts ---- */

/* Fails and names the option that excluded all samples. `listed`: number of indices given; -1: none. */
static stk_status empty_subset(const stki_loader_config *config, const char *dataset, int64_t count, int64_t listed,
                               stk_error *err)
{
    const stki_split_config *split = &config->split_config;
    const char *of = dataset ? "data set " : "", *name = dataset ? dataset : "", *behind = dataset ? ": " : "";

    if (listed == 0)
        return stki_fail(err, STK_E_EMPTY,
                         "%s%s%s%s%sindices: the subset is empty: found an empty list; omit indices to use all samples "
                         "(%lld)",
                         of, name, behind, dataset ? "" : config->section, dataset ? "" : ".", (long long)count);
    return stki_fail(
        err, STK_E_EMPTY,
        "%s%s%s%s.split: the subset is empty: part: %s with method: %s and fraction: %g, the share of val, "
        "selects none of %lld %ssample%s%s",
        of, name, behind, config->section, split->part == STKI_SPLIT_VAL ? "val" : "train",
        stki_split_methods[split->method], split->fraction, (long long)(listed > 0 ? listed : count),
        listed > 0 && config->leaves_out ? "remaining " : "", (listed > 0 ? listed : count) == 1 ? "" : "s",
        listed > 0 && !config->leaves_out ? " in indices" : "");
}

/* Selects the subset of one data set: its list, and its part of a split. */
static stk_status select_samples(const stki_core *core, const material *m, int64_t first, int64_t count,
                                 const int64_t **indices, int64_t *index_count, int64_t **list, stk_error *err)
{
    const stki_split_config *split = &core->config->split_config;
    stki_split_groups groups = {0};
    stk_status status = STK_OK;

    if (!core->config->split)
        return STK_OK;
    if (split->method == STKI_SPLIT_CONTIGUOUS && !m->one_each)
        status = stki_window_split(core, &groups, err);
    groups.numbers = m->one_each ? m->groups : NULL;
    groups.of_indices = core->config->leaves_out && *indices;
    if (status == STK_OK)
        status = stki_split_select(core->dataset, first, count, split, &groups, *indices, *index_count, list,
                                   index_count, err);
    stki_free(groups.first);
    *indices = *list;
    return status;
}

static stk_status use_sources(stki_core *core, material *m, stk_error *err)
{
    const stki_loader_config *config = core->config;
    stk_status status = STK_OK;

    for (int d = 0; d < core->source_count && status == STK_OK; d++) {
        const stki_dataset_config *dataset = &config->datasets[d];
        stki_order_source *source = &m->sources[d];

        *source = (stki_order_source){.name = dataset->name,
                                      .count = core->sources[d].count,
                                      .weight = dataset->weight,
                                      .indices = dataset->index_list,
                                      .index_count = dataset->index_count};
        if (m->one_each)
            source->count = m->source_groups[d + 1] - m->source_groups[d];
        status = select_samples(core, m, m->one_each ? m->source_groups[d] : core->sources[d].first, source->count,
                                &source->indices, &source->index_count, &m->lists[d], err);
        if (status == STK_OK && source->indices && source->index_count == 0 && source->count > 0 && source->weight > 0)
            status =
                empty_subset(config, source->name, source->count, dataset->index_list ? dataset->index_count : -1, err);
    }
    m->opts.sources = m->sources;
    m->opts.source_count = core->source_count;
    m->opts.stop = (enum stki_mixture_stop)config->mixture_stop;
    return status;
}

static stk_status use_one(const stki_core *core, material *m, stk_error *err)
{
    const stki_loader_config *config = core->config;
    const stki_dataset_config *named = config->dataset_count == 1 ? &config->datasets[0] : NULL;

    const int64_t *list = named ? named->index_list : config->index_list;
    const int64_t listed = named ? named->index_count : config->index_count;
    const int64_t count = m->one_each ? m->group_count : core->dataset->count;
    stk_status status;

    m->opts.indices = list;
    m->opts.index_count = listed;
    status = select_samples(core, m, 0, count, &m->opts.indices, &m->opts.index_count, &m->lists[0], err);
    if (status == STK_OK && m->opts.indices && m->opts.index_count == 0 && count > 0 && !config->allow_empty)
        status = empty_subset(config, named ? named->name : NULL, count, list ? listed : -1, err);
    return status;
}

/* Replaces the boundaries between blocks, which are sample numbers, with numbers of windows. A window belongs to the
 * block in which it begins. */
static void window_units(const stki_windows *windows, stki_units *units)
{
    int64_t kept = 0;

    for (int64_t u = 0; u < units->count; u++) {
        const int64_t first = stki_windows_before(windows, units->first[u]);

        if (first < windows->count && (kept == 0 || first > units->first[kept - 1]))
            units->first[kept++] = first;
    }
    units->first[kept] = windows->count;
    units->count = kept;
}

static stk_status use_units(const stki_core *core, material *m, stk_error *err)
{
    stki_loader_config *config = core->config;
    stki_units *units = &m->units;
    stk_status status;

    if (m->opts.kind != STKI_ORDER_BLOCK)
        return STK_OK;
    m->opts.in_order = config->block_rows == STK_BLOCK_ROWS_IN_ORDER;
    if (m->opts.in_order && config->block_window != 0)
        return stki_fail(err, STK_E_CONFIG,
                         "%s.block_window: block_window and block_rows: in_order are mutually exclusive: in_order does "
                         "not shuffle the rows of several blocks together",
                         config->section);
    status = stki_dataset_units(core->dataset, units, err);
    if (status != STK_OK)
        return status;
    if (core->dataset->windows)
        window_units(core->dataset->windows, units);
    m->opts.unit_first = units->first;
    m->opts.unit_count = units->count;
    if (m->opts.in_order)
        config->block_window = 1;
    if (config->block_window == 0) { /* half of the cache per window, because samples of two windows are in use where
                                        one window ends and the next begins */
        config->block_window = units->largest_bytes > 0 ? config->cache_bytes / 2 / units->largest_bytes : MOST_UNITS;
        config->block_window = config->block_window > MOST_UNITS ? MOST_UNITS
                               : config->block_window < 1        ? 1
                                                                 : config->block_window;
    }
    m->opts.window = config->block_window;
    stki_log(STKI_LOG_order, "%lld blocks of field %s, %lld shuffled together", (long long)units->count, units->field,
             (long long)m->opts.window);
    return STK_OK;
}

/* ---- windows that begin at any token ---- */

/* Returns the number of windows `stride` apart in a group with this many possible starts. */
static int64_t fixed_windows(int64_t starts, int64_t stride)
{
    return starts > 0 ? (starts - 1) / stride + 1 : 0;
}

/* Replaces the numbers of possible starts, in total and per data set, with the numbers of windows in an epoch. */
static stk_status use_starts(stki_core *core, material *m, int64_t stride, stk_error *err)
{
    const int64_t *groups = m->groups, group_count = m->group_count;
    int d = 0;

    m->start_counts = stki_zalloc_array(group_count + 1, sizeof *m->start_counts);
    if (!m->start_counts)
        return stki_fail_memory(err, group_count * (int64_t)sizeof *m->start_counts, "the starts of windows");
    m->opts.count = 0;
    for (int i = 0; i < core->source_count; i++)
        m->sources[i].count = 0;
    for (int64_t g = 0; g < group_count; g++) {
        const int64_t starts = groups[g + 1] - groups[g], windows = stki_shift_windows(starts, stride);

        while (d + 1 < core->source_count && groups[g] >= core->sources[d + 1].first && starts > 0)
            d++;
        m->start_counts[g] = starts;
        m->opts.count += windows;
        if (core->source_count > 0)
            m->sources[d].count += windows;
    }
    m->starts = (stki_order_starts){group_count, m->start_counts, stride};
    m->opts.starts = &m->starts;
    return STK_OK;
}

/* Sets the length of an epoch with windows at random places: as many as with fixed offsets. If only a subset of the
 * starts is used, the number is proportionally smaller. */
static void use_random(stki_core *core, material *m, int64_t stride)
{
    const int64_t *groups = m->groups, group_count = m->group_count;
    const int sources = core->source_count > 0 ? core->source_count : 1;
    int64_t g = 0, length = 0;

    for (int d = 0; d < sources; d++) {
        const bool several = core->source_count > 0, part = several ? m->sources[d].indices : m->opts.indices;
        const int64_t first = several ? core->sources[d].first : 0,
                      count = several ? core->sources[d].count : m->opts.count;
        const int64_t chosen = several ? m->sources[d].index_count : m->opts.index_count;
        int64_t windows = 0;

        for (; g < group_count && groups[g] < first + count; g++)
            windows += fixed_windows(groups[g + 1] - groups[g], stride);
        if (part && count > 0) {
            const int64_t share = llrint((double)windows * ((double)chosen / (double)count));

            windows = chosen == 0 ? 0 : share > 0 ? share : 1;
        }
        length += windows;
    }
    core->config->epoch_length = m->opts.length = length;
}

static stk_status use_windows(stki_core *core, material *m, stk_error *err)
{
    if (!m->moving)
        return STK_OK;
    if (m->one_each)
        return use_starts(core, m, INT64_MAX, err);
    if (m->moving->offsets == STKI_OFFSETS_SHIFTED)
        return use_starts(core, m, m->moving->stride, err);
    if (m->opts.length == 0)
        use_random(core, m, m->moving->stride);
    return STK_OK;
}

/* Returns the length of a sample in the field by which buckets are sorted. Thread-safe. */
static int64_t length_of(void *context, int64_t sample)
{
    const stki_core *core = context;
    int64_t within, shape[STK_MAX_DIMS], elements = 1;
    const stki_reader *shard =
        stki_field_locate(core->bucket_field, stki_dataset_sample(core->dataset, sample), &within);

    if (stki_reader_shape(shard, within, shape, NULL) != STK_OK)
        return -1;
    for (int i = 0; i < shard->ndim; i++)
        elements *= shape[i];
    return elements;
}

static stk_status use_buckets(stki_core *core, material *m, int64_t global, stk_error *err)
{
    const char *name = core->config->bucket_by;
    const stki_field *field = name ? stki_dataset_field(core->dataset, name) : NULL;

    if (!name)
        return STK_OK;
    if (!field)
        return stki_fail(err, STK_E_CONFIG, "loader.bucket_by: found %s, expected the name of a field, such as %s",
                         name, core->dataset->fields[0].name);
    if (!field->variable)
        return stki_fail(err, STK_E_CONFIG,
                         "loader.bucket_by: found %s, whose samples have equal length, expected a ragged field", name);
    if (m->opts.starts)
        return stki_fail(
            err, STK_E_UNSUPPORTED,
            "loader.bucket_by: the windows of another field differ from epoch to epoch (source.window.offsets)");
    m->opts.bucket_window = core->config->bucket_window;
    m->opts.bucket_batch = global;
    m->opts.length_of = length_of;
    m->opts.length_context = core;
    core->bucket_field = field;
    return STK_OK;
}

/* ---- the order ---- */

static void say_quality(stki_core *core, int64_t global)
{
    const stki_loader_config *config = core->config;
    char better[128];

    if (config->block_rows == STK_BLOCK_ROWS_IN_ORDER)
        snprintf(better, sizeof better, "%s.block_rows: shuffled mixes better", config->section);
    else
        snprintf(better, sizeof better, "a larger %s.block_window (now %lld) mixes better", config->section,
                 (long long)config->block_window);
    if (!stki_order_measure(core->order, core->dataset->count, global, &core->quality))
        return;
    stki_config_fact(core->config,
                     "order: block mixes %.2f times as well as random: if the samples were sorted by class, a batch of "
                     "%lld would have %.1f different classes instead of %.1f; %s",
                     core->quality.quality, (long long)core->quality.batch, core->quality.classes,
                     core->quality.shuffled, better);
}

static void say_packing(stki_core *core)
{
    for (int i = 0; i < core->dataset->field_count; i++) {
        const stki_field *field = &core->dataset->fields[i];
        double filled = stki_token_source_filled(field);

        if (filled >= 0)
            stki_config_fact(core->config, "%s: %lld packed window%s of %lld elements, %.1f %% of which are used",
                             field->name, (long long)core->dataset->count, core->dataset->count == 1 ? "" : "s",
                             (long long)field->shape[0], 100 * filled);
    }
}

static stk_status create_order(stki_core *core, int64_t global, stk_error *err)
{
    static const enum stki_order_kind kinds[] = {STKI_ORDER_SEQUENTIAL, STKI_ORDER_RANDOM, STKI_ORDER_BLOCK,
                                                 STKI_ORDER_WEIGHTED};
    stki_loader_config *config = core->config;
    material *m = stki_zalloc(sizeof *m);
    stk_status status;

    if (!m)
        return stki_fail_memory(err, sizeof *m, "the order");
    m->opts = (stki_order_opts){.kind = kinds[config->order],
                                .count = core->dataset->count,
                                .seed = (uint64_t)config->seed,
                                .length = config->epoch_length};
    status = find_moving(core, m, err);
    if (status == STK_OK)
        status = core->source_count > 0 ? use_sources(core, m, err) : use_one(core, m, err);
    if (status == STK_OK && m->opts.kind == STKI_ORDER_WEIGHTED)
        status = stki_weights_read(core->dataset, config, &m->weights, err);
    m->opts.weights = m->weights;
    m->opts.data_digest = stki_token_source_digest(core->dataset);
    if (core->dataset->windows) {
        const stki_windows *w = core->dataset->windows;

        m->opts.data_digest =
            stki_order_hash(m->opts.data_digest, w->first, w->group_count * (int64_t)sizeof *w->first);
        m->opts.data_digest =
            stki_order_hash(m->opts.data_digest, w->number, (w->group_count + 1) * (int64_t)sizeof *w->number);
    }
    if (status == STK_OK)
        status = use_windows(core, m, err);
    if (status == STK_OK && (status = use_units(core, m, err)) == STK_OK &&
        (status = use_buckets(core, m, global, err)) == STK_OK)
        status = stki_order_create(&m->opts, &core->order, err);
    for (int d = 0; d < core->source_count && status == STK_OK; d++)
        core->sources[d].share = stki_order_share(core->order, d);
    material_free(m);
    say_packing(core);
    stki_window_leaks(core);
    if (status == STK_OK && config->order == STK_ORDER_BLOCK)
        say_quality(core, global);
    return status;
}

stk_status stki_core_make_order(stki_core *core, stk_error *err)
{
    stki_loader_config *config = core->config;
    int64_t global = config->global_batch_size;
    stk_status status;

    if (!global && !stki_mul(config->batch_size, config->ranks.data_world_size, &global))
        return stki_fail(err, STK_E_CONFIG, "loader.batch_size: found %lld, too large for %lld ranks",
                         (long long)config->batch_size, (long long)config->ranks.data_world_size);
    status = create_order(core, global, err);
    if (status != STK_OK)
        return status;
    core->batching = (stki_batching){
        .length = stki_order_length(core->order),
        .global_batch = global,
        .rank = config->ranks.data_rank,
        .world_size = config->ranks.data_world_size,
        .last = config->last_batch == STK_LAST_BATCH_DROP  ? STKI_LAST_DROP
                : config->last_batch == STK_LAST_BATCH_PAD ? STKI_LAST_PAD
                                                           : STKI_LAST_PARTIAL,
    };
    core->steps = stki_batching_steps(&core->batching);
    stki_log(STKI_LOG_order, "%lld positions per epoch, %lld steps of %lld rows over %lld ranks",
             (long long)core->batching.length, (long long)core->steps, (long long)global,
             (long long)config->world_size);
    core->max_rows = stki_batching_max_rows(&core->batching);
    if (core->dataset->count == 0 && !config->allow_empty && stki_windows_fail(core, err) != STK_OK)
        return STK_E_EMPTY;
    if (core->dataset->count == 0 && !config->allow_empty)
        return stki_fail_at(err, STK_E_EMPTY,
                            (stki_place){.file = core->dataset->fields[0].shards[0]->path, .record = -1, .offset = -1},
                            "no samples in field %s%s", core->dataset->fields[0].name,
                            config->arrange ? "" : "; allow_empty: true accepts that");
    if (core->steps == 0 && !config->allow_empty)
        return stki_fail(
            err, STK_E_EMPTY,
            "an epoch has no batch: it has %lld sample%s, and the global batch size is %lld%s; use a smaller batch, "
            "last_batch: partial, or allow_empty: true",
            (long long)core->batching.length, core->batching.length == 1 ? "" : "s", (long long)global,
            config->last_batch == STK_LAST_BATCH_DROP ? " (last_batch: drop)" : "");
    return STK_OK;
}
