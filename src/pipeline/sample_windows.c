/* sample_windows.c: see sample_windows.h. Everything here runs once, at open. */
#include "sample_windows.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "selection.h"
#include "sums.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- config ---- */

static bool same_window(const stki_window *a, const stki_window *b)
{
    return a->length == b->length && a->stride == b->stride && a->dilation == b->dilation && a->offsets == b->offsets &&
           a->take == b->take && strcmp(a->group_by, b->group_by) == 0;
}

/* Returns field `number` of data set `d`. */
static const stki_field_config *field_of(const stki_loader_config *config, int d, int number)
{
    return config->dataset_count > 0 ? &config->datasets[d].fields[number] : &config->fields[number];
}

stk_status stki_window_of(const stki_loader_config *config, const stki_window **out, stk_error *err)
{
    const stki_field_config *first = NULL;
    const bool several = config->dataset_count > 0;
    bool others = false;
    int first_in = 0;

    *out = NULL;
    for (int i = 0; i < config->field_count; i++) {
        for (int d = 0; d < (config->dataset_count > 0 ? config->dataset_count : 1); d++) {
            const stki_field_config *field = field_of(config, d, i);

            if (field->derived)
                continue;
            if ((field->window.length > 0) != (config->fields[i].window.length > 0))
                return stki_fail(err, STK_E_CONFIG,
                                 "data set %s: field %s: source.window is given in one data set but not in another; "
                                 "specify the same one in all",
                                 config->datasets[d].name, field->name);
            others = others || field->window.length == 0;
            if (field->window.length == 0)
                continue;
            first_in = first ? first_in : d;
            first = first ? first : field;
            if (!same_window(&field->window, &first->window))
                return stki_fail(
                    err, STK_E_CONFIG,
                    "%s%s%sfield %s: its source.window differs from that of %s%s%sfield %s; all windows of a "
                    "loader must have the same length, stride, dilation, offsets, group_by and take",
                    several ? "data set " : "", several ? config->datasets[d].name : "", several ? ": " : "",
                    field->name, several ? "data set " : "", several ? config->datasets[first_in].name : "",
                    several ? ", " : "", first->name);
        }
    }
    if (first && !others && first->window.take != STKI_TAKE_FIRST)
        return stki_fail(err, STK_E_CONFIG,
                         "field %s: source.window.take has no effect: it is for fields without a window, and every "
                         "field has one; remove it",
                         first->name);
    *out = first ? &first->window : NULL;
    return STK_OK;
}

bool stki_windows_need_samples(const stki_loader_config *config)
{
    bool others = false, asked = false;

    for (int i = 0; i < config->field_count; i++) {
        const stki_window *window = &config->fields[i].window;

        others = others || (window->length == 0 && !config->fields[i].derived);
        asked = asked || (window->length > 0 && window->take != STKI_TAKE_FIRST);
        if (window->length > 0 && strcmp(window->group_by, "files") != 0)
            return true;
    }
    return others && asked;
}

bool stki_window_one_each(const stki_loader_config *config)
{
    bool is = false;

    for (int i = 0; i < config->field_count; i++)
        is = is || (config->fields[i].window.length > 0 && config->fields[i].sample_per_file &&
                    config->fields[i].window.offsets == STKI_OFFSETS_RANDOM);
    return is;
}

bool stki_windows_in_place(const stki_field_config *field, const stki_reader *reader)
{
    if (!reader->windows)
        return false;
    return !(field->source_layout && reader->ndim == 4); /* a layout describes a sample with three axes */
}

/* ---- groups ---- */

typedef struct cut_list {
    int64_t *at;
    int64_t count, room;
} cut_list;

static stk_status cut(cut_list *cuts, int64_t at, stk_error *err)
{
    stk_status status =
        stki_grow(&cuts->at, &cuts->room, cuts->count + 1, sizeof *cuts->at, "the groups of windows", err);

    if (status == STK_OK)
        cuts->at[cuts->count++] = at;
    return status;
}

/* For samples that are files: starts a group wherever the folder changes. */
static stk_status cut_folders(cut_list *cuts, const stki_reader *reader, int64_t first, stk_error *err)
{
    char paths[2][STKI_RECORD_PATH];
    stk_status status = STK_OK;
    size_t length = 0;

    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        char *path = paths[i % 2];
        const char *end;

        if (!reader->ops->path(reader, i, path, STKI_RECORD_PATH))
            return STK_OK;
        end = strrchr(path, '/');
        if (i > 0 && ((size_t)(end ? end - path : 0) != length || memcmp(path, paths[1 - i % 2], length) != 0))
            status = cut(cuts, first + i, err);
        length = (size_t)(end ? end - path : 0);
    }
    return status;
}

static stk_status cut_field(cut_list *cuts, const stki_field *field, stk_error *err)
{
    stk_status status = STK_OK;
    int64_t first = 0;

    for (int k = 0; k < field->shard_count && status == STK_OK; k++) {
        const stki_reader *reader = field->shards[k];

        status = cut(cuts, first, err);
        if (status == STK_OK && reader->ops->path && !reader->group_first)
            status = cut_folders(cuts, reader, first, err);
        for (int64_t g = 1; g < reader->group_count && status == STK_OK; g++)
            status = cut(cuts, first + reader->group_first[g], err);
        first += reader->count;
    }
    return status;
}

/* Starts a group wherever the field's value changes. */
static stk_status cut_values(cut_list *cuts, const stki_field *field, stk_error *err)
{
    stk_status status = STK_OK;
    stki_scratch scratch;
    uint64_t before = 0;
    int64_t at = 0;

    stki_scratch_init(&scratch);
    for (int k = 0; k < field->shard_count && status == STK_OK; k++) {
        const stki_reader *reader = field->shards[k];

        for (int64_t i = 0; i < reader->count && status == STK_OK; i++, at++) {
            stk_tensor sample;
            uint64_t value;

            status = reader->ops->read(reader, i, NULL, &scratch, &sample, err);
            if (status != STK_OK)
                break;
            value = stki_sums_of(&sample);
            stki_reader_done(reader, &sample);
            if (at > 0 && value != before)
                status = cut(cuts, at, err);
            before = value;
        }
    }
    stki_scratch_fini(&scratch);
    return status;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static stk_status find_cuts(const stki_core *core, const stki_window *window, cut_list *cuts, stk_error *err)
{
    const stki_dataset *dataset = core->dataset;
    const bool none = strcmp(window->group_by, "none") == 0, files = strcmp(window->group_by, "files") == 0;
    const stki_field *field = none || files ? NULL : stki_dataset_field(dataset, window->group_by);
    stk_status status;
    int64_t kept = 0;

    if (!none && !files && !field)
        return stki_no_such_field(dataset, "source.window.group_by", window->group_by, "files, none or ", err);
    if ((status = cut(cuts, 0, err)) != STK_OK || (status = cut(cuts, dataset->count, err)) != STK_OK)
        return status;
    for (int d = 1; d < core->source_count && status == STK_OK; d++)
        status = cut(cuts, core->sources[d].first, err);
    for (int i = 0; i < dataset->field_count && status == STK_OK && !none; i++)
        if (core->config->fields[i].window.length > 0)
            status = cut_field(cuts, &dataset->fields[i], err);
    if (status == STK_OK && field)
        status = cut_values(cuts, field, err);
    if (status != STK_OK)
        return status;
    qsort(cuts->at, (size_t)cuts->count, sizeof *cuts->at, by_number);
    for (int64_t i = 0; i < cuts->count; i++)
        if (kept == 0 || cuts->at[i] != cuts->at[kept - 1])
            cuts->at[kept++] = cuts->at[i];
    cuts->count = kept;
    return STK_OK;
}

/* ---- the data set ---- */

static void note_short_groups(stki_core *core, const stki_windows *windows)
{
    if (windows->short_groups > 0)
        stki_config_note(core->config,
                         "source.window: a window of %" PRId64 " samples from first to last does not fit in %" PRId64
                         " of %" PRId64 " groups, which leaves out %" PRId64 " sample%s",
                         stki_window_span(windows->length, windows->dilation), windows->short_groups,
                         windows->short_groups + windows->group_count, windows->short_samples,
                         windows->short_samples == 1 ? "" : "s");
}

/* Sets which samples of a window each field delivers. */
static void set_field_windows(stki_core *core, const stki_window *window)
{
    for (int i = 0; i < core->dataset->field_count; i++) {
        stki_field_config *config = &core->config->fields[i];

        if (config->window.length > 0 || window->take == STKI_TAKE_ALL) {
            config->row_samples = window->length;
            config->window.dilation = window->dilation;
        } else if (window->take == STKI_TAKE_LAST) {
            stki_field_look_ahead(&core->dataset->fields[i], (window->length - 1) * window->dilation);
        }
    }
}

static void number_sources(stki_core *core, const stki_windows *windows)
{
    for (int d = 0; d < core->source_count; d++) {
        struct stki_core_source *source = &core->sources[d];
        const int64_t end = source->first + source->count;

        source->first = stki_windows_before(windows, source->first);
        source->count = stki_windows_before(windows, end) - source->first;
    }
}

stk_status stki_windows_over_samples(stki_core *core, stk_error *err)
{
    const stki_window *window;
    stki_windows *windows;
    cut_list cuts = {0};
    stk_status status = stki_window_of(core->config, &window, err);

    if (status == STK_OK)
        status = find_cuts(core, window, &cuts, err);
    if (status == STK_OK)
        status = stki_windows_create(cuts.at, cuts.count - 1, window->length, window->dilation,
                                     stki_window_step(window), &windows, err);
    stki_free(cuts.at);
    if (status != STK_OK)
        return status;
    note_short_groups(core, windows);
    number_sources(core, windows);
    set_field_windows(core, window);
    stki_dataset_use_windows(core->dataset, windows);
    return STK_OK;
}

/* Returns the number of samples in the longest group of a field; 0: unknown. */
static int64_t longest_group(const stki_core *core, int number)
{
    const stki_field *field = &core->dataset->fields[number];
    int64_t longest = 0;

    if (core->dataset->windows)
        return core->dataset->windows->longest_group;
    for (int k = 0; k < field->shard_count; k++)
        if (field->shards[k]->longest_group > longest)
            longest = field->shards[k]->longest_group;
    return longest;
}

stk_status stki_windows_fail(const stki_core *core, stk_error *err)
{
    for (int i = 0; i < core->dataset->field_count; i++) {
        const stki_window *window = &core->config->fields[i].window;
        const int64_t longest = longest_group(core, i);
        char found[32];

        if (window->length == 0)
            continue;
        snprintf(found, sizeof found, "%" PRId64, longest);
        return stki_fail_at(
            err, STK_E_EMPTY,
            (stki_place){core->dataset->fields[i].shards[0]->path, -1, -1, longest > 0 ? found : NULL,
                         STKI_TEXT("%" PRId64 " or more", stki_window_span(window->length, window->dilation))},
            "no window fits: field %s: source.window: {length: %" PRId64 ", dilation: %" PRId64 ", group_by: %s}: "
            "samples of the longest group",
            core->dataset->fields[i].name, window->length, window->dilation, window->group_by);
    }
    return STK_OK;
}

void stki_window_short_files(stki_core *core)
{
    int64_t files = 0, none = 0;

    for (int i = 0; i < core->dataset->field_count && files == 0; i++)
        for (int k = 0; core->config->fields[i].window.length > 0 && k < core->dataset->fields[i].shard_count; k++) {
            const stki_reader *reader = core->dataset->fields[i].shards[k];

            files += reader->group_count;
            for (int64_t g = 0; g < reader->group_count; g++)
                none += reader->group_first[g + 1] == reader->group_first[g];
        }
    if (none > 0)
        stki_config_note(core->config, "source.window: a window does not fit in %" PRId64 " of %" PRId64 " files", none,
                         files);
}

/* Finds the groups for windows in place, which do not cross the boundaries of shards or of groups within a shard. */
static stk_status cut_in_place(const stki_core *core, cut_list *cuts, stk_error *err)
{
    stk_status status = STK_OK;
    bool windowed = false;

    for (int i = 0; i < core->dataset->field_count && status == STK_OK && !windowed; i++) {
        windowed = core->config->fields[i].window.length > 0;
        if (windowed)
            status = cut_field(cuts, &core->dataset->fields[i], err);
    }
    if (status == STK_OK && !windowed)
        status = cut(cuts, 0, err);
    for (int d = 1; d < core->source_count && status == STK_OK && !windowed; d++)
        status = cut(cuts, core->sources[d].first, err);
    return status == STK_OK ? cut(cuts, core->dataset->count, err) : status;
}

stk_status stki_window_groups(const stki_core *core, int64_t **out, int64_t *count, stk_error *err)
{
    const stki_windows *windows = core->dataset->windows;
    cut_list cuts = {0};
    stk_status status = STK_OK;

    for (int64_t g = 0; windows && g <= windows->group_count && status == STK_OK; g++)
        status = cut(&cuts, windows->number[g], err);
    if (!windows)
        status = cut_in_place(core, &cuts, err);
    if (status != STK_OK) {
        stki_free(cuts.at);
        return status;
    }
    *out = cuts.at;
    *count = cuts.count - 1;
    return STK_OK;
}

static const stki_window *first_window(const stki_loader_config *config)
{
    for (int i = 0; i < config->field_count; i++)
        if (config->fields[i].window.length > 0)
            return &config->fields[i].window;
    return NULL;
}

stk_status stki_window_split(const stki_core *core, stki_split_groups *out, stk_error *err)
{
    const stki_window *window = first_window(core->config);

    out->step = window ? stki_window_step(window) : 1;
    out->span = window ? stki_window_span(window->length, window->dilation) : 1;
    return stki_window_groups(core, &out->first, &out->count, err);
}

void stki_window_leaks(stki_core *core)
{
    const stki_window *window = first_window(core->config);
    const stki_split_config *split = &core->config->split_config;
    /* A split by the values of a field need not divide overlapping windows, so no note is added. */
    const bool by_field =
        split->method == STKI_SPLIT_HASH && strcmp(split->key, "index") != 0 && strcmp(split->key, "path") != 0;
    int64_t span;

    if (!core->config->split || !window || split->method == STKI_SPLIT_CONTIGUOUS || by_field ||
        stki_window_one_each(core->config))
        return;
    span = stki_window_span(window->length, window->dilation);
    if (span > stki_window_step(window))
        stki_config_note(core->config,
                         "loader.split: windows of %" PRId64 " samples, %" PRId64
                         " apart, overlap, so most samples of val are also in train; method: contiguous avoids that",
                         span, stki_window_step(window));
}
