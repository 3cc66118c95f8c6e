/* count_job.c: see count_job.h. Each pass determines the first unresolved step of every field; later unresolved steps
 * of a field need further passes. */
#include "count_job.h"
#include "allocate.h"
#include "document_build.h"
#include "error.h"
#include "prep_file.h"
#include "prep_inputs.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct waiting {
    const char *field;
    int step;              /* index in the field's transforms */
    const stki_node *node; /* its parameters */
    bool quantize;         /* false: normalize */
} waiting;

/* ---- unresolved steps ---- */

static bool waits(const stki_node *step, bool *quantize)
{
    const stki_node *map = step->kind == STKI_NODE_MAP && step->count == 1 ? step->items[0] : NULL, *stats;

    if (!map || map->kind != STKI_NODE_MAP)
        return false;
    *quantize = strcmp(step->keys[0], "quantize") == 0;
    if (*quantize)
        return stki_node_get(map, "calibrate") != NULL;
    stats = stki_node_get(map, "stats");
    return strcmp(step->keys[0], "normalize") == 0 && stats && stats->kind == STKI_NODE_SCALAR &&
           strcmp(stats->text, "job") == 0;
}

/* Finds the first unresolved step of a field; -1: none. */
static int first_waiting(const stki_node *field, waiting *out)
{
    const stki_node *list = stki_node_get(field, "transforms");
    bool quantize;

    for (int k = 0; list && list->kind == STKI_NODE_LIST && k < list->count; k++)
        if (waits(list->items[k], &quantize)) {
            *out = (waiting){field->key, k, list->items[k]->items[0], quantize};
            return k;
        }
    return -1;
}

static const stki_node *fields_of(const stki_node *root)
{
    const stki_node *fields = stki_node_get(stki_node_get(root, "dataset"), "fields");

    return fields && fields->kind == STKI_NODE_MAP ? fields : NULL;
}

/* Lists up to `room` unresolved steps; returns their number. */
static int list_waiting(const stki_node *root, waiting *out, int room)
{
    const stki_node *fields = fields_of(root);
    int count = 0;

    for (int i = 0; fields && i < fields->count && count < room; i++)
        count += first_waiting(fields->items[i], &out[count]) >= 0;
    return count;
}

/* Fails if a step of one of several data sets is unresolved. */
static stk_status check_datasets(const stki_node *root, stk_error *err)
{
    const stki_node *list = stki_node_get(root, "datasets");
    waiting found;

    for (int d = 0; list && list->kind == STKI_NODE_LIST && d < list->count; d++) {
        const stki_node *fields = stki_node_get(list->items[d], "fields");

        for (int i = 0; fields && fields->kind == STKI_NODE_MAP && i < fields->count; i++)
            if (first_waiting(fields->items[i], &found) >= 0)
                return stki_fail_node(err, found.node,
                                      "its statistics cannot be computed for several data sets (datasets); compute "
                                      "them in a separate job and use its file: stats: FILE");
    }
    return STK_OK;
}

bool stki_count_needed(const stki_job *job)
{
    const stki_node *root = stki_document_root(job->document);
    waiting one;

    return list_waiting(root, &one, 1) > 0 || check_datasets(root, NULL) != STK_OK;
}

/* ---- options of a step ---- */

/* Converts the step's keys to statistics options. */
static stk_status read_step(const waiting *step, stki_stats_opts *out, stk_error *err)
{
    static const char *const keys[] = {"stats", "per"}, *const calibrated[] = {"calibrate", "percentile", "dtype",
                                                                               "symmetric", "per",        "histogram"};
    const stki_node *per = stki_node_get(step->node, "per");
    stk_status status;

    if (!step->quantize) {
        if ((status = stki_node_known_keys(step->node, keys, 2, err)) != STK_OK ||
            (status = stki_stats_opts_read(NULL, out, err)) != STK_OK)
            return status;
        return per ? stki_node_word(per, (const char *const[]){"auto", "tensor", "channel", NULL}, &out->per, err)
                   : STK_OK;
    }
    if ((status = stki_node_known_keys(step->node, calibrated, 6, err)) != STK_OK ||
        (status = stki_stats_opts_read(step->node, out, err)) != STK_OK)
        return status;
    if (!stki_stats_only_method(out))
        return stki_fail_value(err, stki_node_get(step->node, "calibrate"), "one of minmax, percentile and mse");
    if (out->methods == 1U << STKI_CALIBRATE_MINMAX && stki_node_get(step->node, "histogram"))
        return stki_fail_key(err, stki_node_get(step->node, "histogram"),
                             "has no effect with calibrate: minmax, which uses no bins: remove it");
    if (out->per == STKI_PER_CHANNEL && stki_stats_scheme(out) != STK_QUANT_SYMMETRIC)
        return stki_fail_value(
            err, per, "tensor, or symmetric: true, because rows are quantized with one zero point for all channels");
    return STK_OK;
}

/* ---- the loader of a pass ---- */

static void remove_entry(stki_node *map, int at)
{
    for (int i = at; i + 1 < map->count; i++) {
        map->items[i] = map->items[i + 1];
        map->keys[i] = map->keys[i + 1];
    }
    map->count--;
}

static void remove_key(stki_node *map, const char *key)
{
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0) {
            remove_entry(map, i);
            return;
        }
}

static stki_node *child(stki_node *map, const char *key)
{
    for (int i = 0; map && map->kind == STKI_NODE_MAP && i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return map->items[i];
    return NULL;
}

/* Returns whether there is a split or a filter, which may refer to fields that are not counted. */
static bool needs_all_fields(const stki_document *document)
{
    const stki_node *prep = stki_node_get(document->root, "prep");

    return stki_node_get(prep, "split") || stki_node_get(prep, "filter");
}

/* Counts rows sequentially: sums do not depend on the order, but the rounding in blocks of floats does, and sequential
 * reads are faster. */
static stk_status in_order(stki_document *document, stk_error *err)
{
    const stki_node *order = stki_node_get(stki_node_get(document->root, "loader"), "order");

    if (!order || order->kind != STKI_NODE_SCALAR || strcmp(order->text, "random") != 0)
        return STK_OK;
    return stki_document_set_value(document, "loader.order", "sequential", "prep", err);
}

/* Truncates the transforms before the unresolved step, and removes keys that describe their result. Fields that are not
 * counted are removed. */
static stk_status cut_transforms(void *context, stki_document *document, stk_error *err)
{
    stki_node *fields = child(child(document->root, "dataset"), "fields");
    const bool all = needs_all_fields(document);
    waiting found;

    (void)context;
    for (int i = 0; fields && i < fields->count;) {
        stki_node *field = fields->items[i];
        const int step = first_waiting(field, &found);

        if (step < 0 && !all) {
            remove_entry(fields, i);
            continue;
        }
        if (step >= 0) {
            child(field, "transforms")->count = step;
            remove_key(field, "dtype");
            remove_key(field, "views");
            remove_key(field, "pad");
        }
        i++;
    }
    return in_order(document, err);
}

/* ---- results of a pass ---- */

/* Builds "dataset.fields.NAME.transforms.K={…}". */
static char *assignment(const waiting *step, json_t *parameters)
{
    json_t *json = json_pack("{s:o}", step->quantize ? "quantize" : "normalize", parameters);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL, *out = NULL;

    if (text)
        out = stki_format("dataset.fields.%s.transforms.%d=%s", step->field, step->step, text);
    free(text);
    json_decref(json);
    return out;
}

static json_t *parameters_of(const waiting *step, const json_t *report)
{
    const json_t *quantize = json_object_get(report, "quantize");
    const json_t *method = quantize ? json_object_iter_value(json_object_iter((json_t *)(uintptr_t)quantize)) : NULL;

    if (!step->quantize)
        return json_pack("{s:O, s:O, s:i}", "mean", json_object_get(report, "mean"), "std",
                         json_object_get(report, "std"), "scale", 1);
    return json_pack("{s:O, s:O, s:O}", "scale", json_object_get(method, "scale"), "zero_point",
                     json_object_get(method, "zero_point"), "dtype", json_object_get(method, "dtype"));
}

/* Fails if no finite value was found for a parameter. */
static stk_status check_found(const waiting *step, const json_t *report, stk_error *err)
{
    const json_t *std = json_object_get(report, "std"), *value = std;
    const size_t count = json_is_array(std) ? json_array_size(std) : 1;

    for (size_t i = 0; !step->quantize && i < count; i++) {
        value = json_is_array(std) ? json_array_get(std, i) : std;
        if (!json_is_number(value))
            return stki_fail_node(err, step->node, "the field %s has no finite element in channel %zu", step->field, i);
        if (!(json_number_value(value) > 0))
            return stki_fail_node(err, step->node,
                                  "all values of the field %s in channel %zu are equal, so their std is 0, and "
                                  "normalize divides by it; per: tensor uses the std of all channels",
                                  step->field, i);
    }
    return STK_OK;
}

static stk_status settle(stki_job *job, const waiting *steps, int count, const json_t *reports, stk_error *err)
{
    char **sets = stki_zalloc_array(count, sizeof *sets);
    stk_status status = sets ? STK_OK : stki_fail_memory(err, count * (int64_t)sizeof *sets, "statistics");

    for (int i = 0; i < count && status == STK_OK; i++) {
        const json_t *report = json_object_get(reports, steps[i].field);

        status = check_found(&steps[i], report, err);
        if (status == STK_OK && !(sets[i] = assignment(&steps[i], parameters_of(&steps[i], report))))
            status = stki_fail_memory(err, 256, "statistics");
    }
    if (status == STK_OK)
        status = stki_job_settle(job, sets, count, err); /* this invalidates the nodes of the steps */
    for (int i = 0; sets && i < count; i++)
        stki_free(sets[i]);
    stki_free(sets);
    return status;
}

/* ---- passes ---- */

static stk_status one_pass(const stki_job *job, stki_prep_run *run, const waiting *steps, int count, json_t **reports,
                           stk_error *err)
{
    stki_count_field *fields = stki_zalloc_array(count, sizeof *fields);
    json_t *document = stki_job_json(job);
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    stki_loader_config *config;
    stk_status status = fields && text ? STK_OK : stki_fail_memory(err, 256, "statistics");

    for (int i = 0; i < count && status == STK_OK; i++) {
        fields[i] = (stki_count_field){.name = steps[i].field, .node = steps[i].node};
        status = read_step(&steps[i], &fields[i].opts, err);
    }
    if (status == STK_OK)
        status = stki_job_loader(job, cut_transforms, NULL, &config, err);
    if (status == STK_OK)
        status = stki_count_pass(run, config, fields, count, text, STKI_COUNT_UNIT_BYTES, NULL, reports, err);
    for (int i = 0; i < count && status == STK_OK; i++) {
        json_t *report = json_object_get(*reports, steps[i].field);
        char *of = stki_format("rows before step %d of the job's transforms, %s", steps[i].step + 1,
                               steps[i].quantize ? "quantize" : "normalize");

        if (!of || json_object_set_new(report, "of", json_string(of)) != 0)
            status = stki_fail_memory(err, 256, "statistics");
        stki_free(of);
    }
    free(text);
    json_decref(document);
    stki_free(fields);
    return status;
}

stk_status stki_count_job(stki_job *job, stki_prep_run *run, stk_error *err)
{
    const stki_node *fields = fields_of(stki_document_root(job->document));
    waiting *steps;
    int room, count;
    stk_status status = check_datasets(stki_document_root(job->document), err);

    if (status != STK_OK || !fields)
        return status;
    room = fields->count;
    steps = stki_zalloc_array(room + 1, sizeof *steps);
    if (!steps)
        return stki_fail_memory(err, room, "statistics");
    if (!job->requested && stki_count_needed(job) && !(job->requested = stki_job_json(job)))
        status = stki_fail_memory(err, 256, "a job");
    if (!job->counted && !(job->counted = json_object()))
        status = stki_fail_memory(err, 256, "statistics");
    while (status == STK_OK && (count = list_waiting(stki_document_root(job->document), steps, room)) > 0) {
        json_t *reports = NULL;

        status = one_pass(job, run, steps, count, &reports, err);
        if (status == STK_OK && json_object_update(job->counted, reports) != 0)
            status = stki_fail_memory(err, 256, "statistics");
        if (status == STK_OK)
            status = settle(job, steps, count, reports, err);
        json_decref(reports);
    }
    stki_free(steps);
    return status;
}

stk_status stki_count_pretend(stki_job *job, stk_error *err)
{
    const stki_node *fields = fields_of(stki_document_root(job->document));
    stk_status status = check_datasets(stki_document_root(job->document), err);
    waiting step;

    if (status == STK_OK && !job->counted && !(job->counted = json_object()))
        status = stki_fail_memory(err, 256, "statistics");
    while (status == STK_OK && fields && list_waiting(stki_document_root(job->document), &step, 1) > 0) {
        stki_stats_opts opts;
        char *set = NULL;

        if ((status = read_step(&step, &opts, err)) != STK_OK)
            break;
        set = assignment(&step, step.quantize ? json_pack("{s:i, s:s}", "scale", 1, "dtype",
                                                          stki_stats_qdtype(&opts) == STK_QINT8 ? "int8" : "uint8")
                                              : json_pack("{s:i, s:i, s:i}", "mean", 0, "std", 1, "scale", 1));
        status = set ? stki_job_settle(job, &set, 1, err) : stki_fail_memory(err, 256, "statistics");
        stki_free(set);
    }
    return status;
}

/* ---- statistics only ---- */

static stk_status list_fields(const stki_job *job, const stki_node *all, stki_count_field *out, int *count,
                              stk_error *err)
{
    stki_stats_section section;
    stk_status status = stki_stats_section_read(job->stats, &section, err);
    const stki_node *map = status == STK_OK && !stki_node_is_null(section.fields) ? section.fields : all;

    if (status == STK_OK && map != all)
        status = stki_node_known_keys(map, all->keys, all->count, err);
    for (int i = 0; status == STK_OK && i < map->count; i++) {
        const stki_node *node = map == all ? NULL : map->items[i];

        out[i] = (stki_count_field){.name = map->keys[i], .node = node};
        status = stki_stats_opts_read(node, &out[i].opts, err);
        *count = i + 1;
    }
    return status;
}

/* Removes fields that are not counted, so that they are not read. */
static stk_status leave_out(void *context, stki_document *document, stk_error *err)
{
    const stki_node *wanted = context;
    stki_node *fields = child(child(document->root, "dataset"), "fields");

    for (int i = 0; wanted && !needs_all_fields(document) && fields && i < fields->count;)
        if (stki_node_get(wanted, fields->keys[i]))
            i++;
        else
            remove_entry(fields, i);
    return in_order(document, err);
}

static stk_status open_config(const stki_job *job, stki_loader_config **config, stk_error *err)
{
    const stki_node *map = stki_node_get(job->stats, "fields");

    return stki_job_loader(job, leave_out, (void *)(uintptr_t)map, config, err);
}

static stk_status count_fields(const stki_job *job, stki_prep_run *run, stki_count_field *fields, int count,
                               json_t **inputs, json_t **reports, stk_error *err)
{
    json_t *document = stki_job_json(job);
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    stki_loader_config *config;
    stk_status status = text ? STK_OK : stki_fail_memory(err, 256, "statistics");

    if (status == STK_OK)
        status = open_config(job, &config, err);
    if (status == STK_OK)
        status = stki_count_pass(run, config, fields, count, text, STKI_COUNT_UNIT_BYTES, inputs, reports, err);
    free(text);
    json_decref(document);
    return status;
}

/* Returns whether another task has written the statistics file. */
static bool is_written(const stki_job *job)
{
    json_t *stats = NULL, *mine = job->requested ? json_incref(job->requested) : stki_job_json(job);
    const bool same = stki_prep_read_json(job->path, &stats, NULL) == STK_OK && mine &&
                      json_equal(mine, json_object_get(stats, "job"));

    json_decref(stats);
    json_decref(mine);
    return same;
}

/* Writes the statistics file, which also identifies the job and its data. The caller holds merge.lock, because all
 * tasks use the same temporary name. */
static stk_status write_file(const stki_job *job, const json_t *inputs, json_t *reports, int64_t rows, stk_error *err)
{
    json_t *document = stki_stats_document(rows, json_incref(reports)),
           *text = job->requested ? json_incref(job->requested) : stki_job_json(job);
    char *dump = NULL, *file = NULL;
    stk_status status;

    if (document && text && json_object_set(document, "job", text) == 0 &&
        json_object_set(document, "inputs", json_object_get(inputs, "inputs")) == 0 &&
        json_object_set_new(document, "run",
                            json_pack("{s:O}", "inputs_modified", json_object_get(inputs, "modified"))) == 0 &&
        (dump = json_dumps(document, JSON_INDENT(2) | JSON_SORT_KEYS)) != NULL)
        file = stki_format("%s\n", dump);
    status = file ? stki_prep_write_final(job->path, file, (int64_t)strlen(file), err)
                  : stki_fail_memory(err, 256, "statistics");
    stki_free(file);
    free(dump);
    json_decref(text);
    json_decref(document);
    return status;
}

stk_status stki_count_alone(stki_job *job, stki_prep_run *run, int64_t *rows, stk_error *err)
{
    const stki_node *all;
    stki_count_field *fields;
    json_t *reports = NULL, *inputs = NULL;
    char *path;
    int count = 0, lock = -1;
    stk_status status = stki_count_job(job, run, err);

    if (status != STK_OK)
        return status;
    all = fields_of(stki_document_root(job->document));
    if (!all)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "a job without output requires dataset: {fields: …}, a single data set");
    fields = stki_zalloc_array(all->count + 1, sizeof *fields);
    if (!fields)
        status = stki_fail_memory(err, (all->count + 1) * (int64_t)sizeof *fields, "statistics");
    if (status == STK_OK && (status = list_fields(job, all, fields, &count, err)) == STK_OK)
        status = count_fields(job, run, fields, count, &inputs, &reports, err);
    if (status == STK_OK) {
        *rows = json_integer_value(json_object_get(json_object_iter_value(json_object_iter(reports)), "rows"));
        path = stki_format("%s/merge.lock", job->work);
        status = path ? stki_prep_wait_lock(run, path, &lock, err) : stki_fail_memory(err, 256, "a path");
        if (status == STK_OK)
            status = stki_name_check(run->name, job, err);
        if (status == STK_OK && (run->opts->force || !is_written(job)))
            status = write_file(job, inputs, reports, *rows, err);
        if (lock >= 0)
            (void)close(lock);
        stki_free(path);
        json_decref(reports);
    }
    json_decref(inputs);
    stki_free(fields);
    return status;
}

stk_status stki_count_same(const stki_job *job, stki_prep_run *run, const json_t *stats, stk_error *err)
{
    stki_loader_config *config;
    stk_status status = open_config(job, &config, err);

    if (status == STK_OK)
        config->idle = true;
    if (status == STK_OK && (status = stki_loader_open_config(config, &run->loader, err)) == STK_OK) {
        run->core = run->loader->core;
        status = stki_prep_inputs_same(run, stats, job->path, err);
    }
    stki_prep_close_loader(run);
    return status;
}
