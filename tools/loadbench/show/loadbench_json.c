/* loadbench_json.c: the result as JSON. Every key of a measured number ends in its unit or names a count. */
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_histogram.h"
#include "loadbench_json_parts.h"
#include "loadbench_step.h"
#include "text_json.h"
#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

bool lb_json_incomplete;

json_t *lb_json_number(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.6g", value);
    return json_real(strtod(text, NULL));
}

void lb_json_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        lb_json_incomplete = true;
}

static json_t *json_summary(struct lb_summary summary)
{
    json_t *json = json_object();

    lb_json_set(json, "median", lb_json_number(summary.median));
    lb_json_set(json, "low", lb_json_number(summary.low));
    lb_json_set(json, "high", lb_json_number(summary.high));
    lb_json_set(json, "spread_percent", lb_json_number(summary.spread_percent));
    return json;
}

/* Returns the value of a figure of `owner`. */
static json_t *figure_json(const struct lb_figure *figure, const void *owner)
{
    const void *member = lb_figure_member(figure, owner);
    const char *text = lb_figure_text(figure, owner);
    double value;

    if (text)
        return stki_text_json(text);
    if (figure->type == LB_STRUCT)
        return lb_json_group(json_object(), (enum lb_figure_group)figure->inner, member);
    if (figure->type == LB_SUMMARY)
        return json_summary(*(const struct lb_summary *)member);
    value = lb_figure_value(figure, owner);
    if ((figure->when == LB_NULL_UNLESS_POSITIVE && !(value > 0)) || (figure->when == LB_NULL_IF_NEGATIVE && value < 0))
        return json_null();
    if (figure->type == LB_BOOL || figure->unit == LB_AS_YES_NO)
        return json_boolean(value != 0);
    return figure->type != LB_DOUBLE && figure->unit == LB_AS_STORED && !figure->over
               ? json_integer(lb_figure_integer(figure, owner))
               : lb_json_number(value);
}

json_t *lb_json_rows(json_t *object, const struct lb_figure *rows, int count, int group, const void *owner)
{
    for (int i = 0; i < count; i++)
        if (rows[i].group == group && lb_figure_is_there(&rows[i], owner))
            lb_json_set(object, rows[i].key, figure_json(&rows[i], owner));
    return object;
}

json_t *lb_json_group(json_t *object, enum lb_figure_group group, const void *owner)
{
    return lb_json_rows(object, lb_figures, lb_figure_count, (int)group, owner);
}

static json_t *gpu_json(const struct lb_gpu *gpu)
{
    json_t *json = lb_json_group(json_object(), LB_OF_GPU, gpu);

    lb_json_set(json, "driver", json_sprintf("%d.%d", gpu->driver_version / 1000, gpu->driver_version % 1000 / 10));
    lb_json_set(json, "runtime", json_sprintf("%d.%d", gpu->runtime_version / 1000, gpu->runtime_version % 1000 / 10));
    return json;
}

static json_t *versions_json(void)
{
    json_t *json = json_object();

    lb_json_set(json, "stoker", json_string(stk_version()));
    lb_json_set(json, "jpeg", json_string(codec_jpeg_version()));
    lb_json_set(json, "deflate", json_string(codec_deflate_version()));
    lb_json_set(json, "hdf5", json_string(codec_hdf5_version()));
    lb_json_set(json, "libc", json_sprintf("glibc %s", gnu_get_libc_version()));
    lb_json_set(json, "compiler",
                json_string(
#if defined(__clang__)
                    "clang " __clang_version__
#else
                    "gcc " __VERSION__
#endif
                    ));
    return json;
}

/* Returns a list of sizes, in which -1 stands for a size that varies. */
static json_t *shape_json(const struct lb_field *field)
{
    json_t *list = json_array();

    for (int i = 0; i < field->ndim; i++)
        json_array_append_new(list, json_integer(field->lengths[i]));
    return list;
}

static json_t *fields_json(const struct lb_facts *facts)
{
    json_t *list = json_array();

    for (int i = 0; i < facts->field_count; i++) {
        const struct lb_field *field = &facts->fields[i];
        json_t *json = json_object();
        lb_json_set(json, "name", stki_text_json(field->name));
        lb_json_set(json, "source_dtype", json_string(stk_dtype_name(field->source_dtype)));
        lb_json_set(json, "dtype", json_string(stk_dtype_name(field->dtype)));
        lb_json_set(json, "shape", shape_json(field));
        lb_json_set(json, "layout", json_string(field->layout));
        lb_json_set(json, "kernel", stki_text_json(field->kernel));
        lb_json_set(json, "access", json_string(field->access));
        lb_json_set(json, "sample_bytes", json_integer(field->sample_bytes));
        json_array_append_new(list, json);
    }
    return list;
}

/* Returns the fingerprints of data set, order and transforms, as in a saved position. */
static json_t *fingerprints_json(const struct lb_facts *facts)
{
    const json_t *prints = lb_effective_plan(&facts->effective, "fingerprints");

    return prints ? json_deep_copy(prints) : json_null();
}

static json_t *data_json(const struct lb_facts *facts)
{
    json_t *json = lb_json_group(json_object(), LB_OF_DATA, facts);

    lb_json_set(json, "fingerprints", fingerprints_json(facts));
    lb_json_set(json, "fields", fields_json(facts));
    return json;
}

static json_t *cache_json(const struct lb_result *result)
{
    json_t *json = json_object();

    lb_json_set(json, "policy", json_string(lb_cache_words[result->config->bench.cache]));
    return lb_json_group(json, LB_OF_CACHE, &result->facts.data);
}

static json_t *utilization_json(const struct lb_result *result)
{
    const struct lb_bench *bench = &result->config->bench;
    const struct lb_summary au = lb_result_utilization(result);
    json_t *json = lb_json_group(json_object(), LB_OF_UTILIZATION, bench);

    if (au.median < 0)
        return json;
    lb_json_set(json, "au", json_summary(au)); /* a fraction, not a percentage */
    lb_json_set(json, "passed", json_boolean(au.median >= bench->au_required));
    return json;
}

static json_t *config_json(const struct lb_result *result)
{
    json_t *json = json_object();

    lb_json_set(json, "file", stki_text_json(result->config->path));
    lb_json_set(json, "bench", stki_options_json(&lb_bench_table, &result->config->bench));
    lb_json_set(json, "effective", json_deep_copy(result->facts.effective.all));
    return json;
}

static json_t *notes_json(const struct lb_facts *facts, const struct lb_config *config)
{
    json_t *list = json_array();

    for (int i = 0; i < stki_notes_count(&facts->notes); i++)
        json_array_append_new(list, stki_text_json(stki_notes_get(&facts->notes, i)));
    if (config->ramp_left_out)
        json_array_append_new(list, json_string(LB_NO_RAMP));
    if (config->limit_time_unused)
        json_array_append_new(list, json_string(LB_NO_LIMIT_TIME));
    return list;
}

static json_t *steady_json(const struct lb_steady *steady)
{
    json_t *json = lb_json_group(json_object(), LB_OF_STEADY, steady);

    return steady->kind == LB_STEADY_UNKNOWN ? json : lb_json_group(json, LB_OF_TREND, steady);
}

static void set_step(json_t *json, const struct lb_run *run, int64_t step_ns)
{
    const double au = lb_utilization(run->au_steps, step_ns, run->au_span_ns);

    lb_json_group(json, LB_OF_RUN_STEPS, run);
    lb_json_set(json, "au_percent", au < 0 ? json_null() : lb_json_number(100 * au));
}

static void append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) != 0)
        lb_json_incomplete = true;
}

/* Adds the figures of the `count` intervals between consecutive structs, which begin at `first` and are `step` bytes
 * apart. */
static void set_lists(json_t *json, int group, const void *first, size_t step, int count)
{
    for (int k = 0; k < lb_interval_figure_count; k++) {
        const struct lb_figure *figure = &lb_interval_figures[k];
        const char *from = first;
        json_t *list;
        if (figure->group != group || figure->log_only)
            continue;
        list = json_array();
        for (int i = 0; i < count; i++, from += step)
            append(list, json_integer(lb_interval_value(figure, from, from + step)));
        lb_json_set(json, figure->key, list);
    }
}

static json_t *intervals_json(const struct lb_marks *marks)
{
    const int count = marks->count > 0 ? marks->count - 1 : 0;
    json_t *json = json_object(), *ends = json_array(), *workers = json_array();

    for (int i = 0; i < count; i++)
        append(ends, json_integer(marks->marks[i + 1].at_ns - marks->marks[0].at_ns));
    lb_json_set(json, "ramp_interval_count", json_integer(marks->first < 0 ? marks->count - 1 : marks->first));
    lb_json_set(json, "end_ns", ends);
    set_lists(json, LB_INTERVAL_COUNTS, marks->marks, sizeof *marks->marks, count);
    set_lists(json, LB_INTERVAL_FLOW, marks->marks, sizeof *marks->marks, count);
    for (int w = 0; w < marks->worker_count; w++) {
        json_t *worker = json_object();
        set_lists(worker, LB_INTERVAL_WORKER, &marks->workers[w], (size_t)marks->worker_count * sizeof *marks->workers,
                  count);
        append(workers, worker);
    }
    lb_json_set(json, "workers", workers);
    return json;
}

static json_t *run_json(const struct lb_result *result, int index)
{
    const struct lb_run *run = &result->runs[index];
    const struct lb_bench *bench = &result->config->bench;
    json_t *json = json_object();

    lb_json_group(json, LB_OF_RUN, run);
    lb_json_group(json, LB_OF_MOVED, run);
    lb_json_group(json, LB_OF_REPEAT, run);
    lb_json_group(json, LB_OF_PROCESS, run);
    if (bench->consumer == LB_CONSUMER_STEP)
        set_step(json, run, bench->step_time);
    lb_json_group(json, LB_OF_RUN_CACHE, run);
    lb_json_set(json, "steady", steady_json(&run->steady));
    lb_json_set(json, "intervals", intervals_json(result->marks[index]));
    lb_json_set(json, "stages", lb_json_group(json_object(), LB_OF_RUN_STAGES, &run->stats));
    if (run->stats.device_slots > 0)
        lb_json_set(json, "device", lb_json_group(json_object(), LB_OF_RUN_DEVICE, &run->stats));
    if (bench->consumer == LB_CONSUMER_TOUCH)
        lb_json_set(json, "checksum", json_sprintf("%016" PRIx64, run->checksum));
    if (run->digest.end_step >= 0)
        lb_json_group(json, LB_OF_RUN_DIGEST, run);
    if (index < result->limit_count)
        lb_json_group(json, LB_OF_RUN_LIMIT, &result->limits[index]);
    return json;
}

/* Adds summaries of per-repeat figures over all repeats. */
static void set_summaries(json_t *json, const struct lb_result *result, int group)
{
    for (int i = 0; i < lb_figure_count; i++)
        if (lb_figures[i].group == group)
            lb_json_set(json, lb_figures[i].key, json_summary(lb_result_figure(result, &lb_figures[i])));
}

static json_t *result_json(const struct lb_result *result)
{
    json_t *json = json_object();

    set_summaries(json, result, LB_OF_REPEAT);
    set_summaries(json, result, LB_OF_MOVED);
    return json;
}

static json_t *wait_json(const stki_histogram *histogram)
{
    const struct lb_waits waits = lb_waits_of(histogram);

    return lb_json_group(json_object(), LB_OF_WAITS, &waits);
}

static json_t *limit_json(const struct lb_result *result)
{
    const struct lb_limit_summary summary = lb_result_limits(result);
    json_t *json = json_object();

    if (result->limit_count > 0)
        return lb_json_group(json, LB_OF_LIMIT, &summary);
    lb_json_set(json, "missing",
                stki_text_json(result->limit_missing[0] ? result->limit_missing : "not measured (bench.limit: false)"));
    return json;
}

static json_t *bound_json(const struct lb_bound *bound)
{
    return lb_json_group(json_object(), LB_OF_BOUND, bound);
}

/* Returns all limits, lowest first; the binding limit; and the reasons for missing limits. */
static json_t *limits_json(const struct lb_result *result)
{
    struct lb_bound bounds[LB_BOUND_KINDS];
    const int count = lb_result_bounds(result, bounds);
    const struct lb_bound *binding = lb_bound_binding(bounds, count);
    const struct lb_once *once = &result->once;
    struct lb_quiet quiet;
    json_t *json = json_object(), *list = json_array(), *missing = json_object();
    const struct {
        const char *name, *why;
    } reasons[] = {{"page_cache", once->read.cached_missing},
                   {"disk", once->read.cold_missing},
                   {"decode", once->decode.missing},
                   {"inflate", once->inflate.missing}};

    for (int i = 0; i < count; i++)
        json_array_append_new(list, bound_json(&bounds[i]));
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].why[0])
            lb_json_set(missing, reasons[i].name, stki_text_json(reasons[i].why));
    lb_json_set(json, "list", list);
    lb_json_set(json, "binding", binding ? bound_json(binding) : json_null());
    lb_json_set(json, "missing", missing);
    lb_result_quiet(result, &quiet);
    if (*lb_bound_excess(binding, quiet.loud == 0))
        lb_json_set(json, "excess", json_string(lb_bound_excess(binding, quiet.loud == 0)));
    return once->measured ? lb_json_group(json, LB_OF_ONCE, once) : json;
}

static json_t *device_json(const struct lb_result *result)
{
    const struct lb_device_summary device = lb_result_device(result);
    json_t *json = lb_json_group(json_object(), LB_OF_DEVICE, &device);

    if (result->config->bench.consumer == LB_CONSUMER_DEVICE)
        lb_json_group(json, LB_OF_DEVICE_STEP, &device);
    return result->transfer_count > 0 ? lb_json_group(json, LB_OF_PLAIN_COPY, &device) : json;
}

static json_t *verdict_json(const struct lb_result *result)
{
    struct lb_verdict verdict;
    json_t *json = json_object();

    lb_result_verdict(result, &verdict);
    lb_json_group(json, LB_OF_VERDICT, &verdict);
    lb_json_set(json, "predictions", lb_predict_json(&result->predictions));
    if (result->predictions.missing[0])
        lb_json_set(json, "predictions_missing", json_string(result->predictions.missing));
    return json;
}

json_t *lb_result_tree(const struct lb_result *result, stk_error *err)
{
    const bool of_loader = !result->config->source;
    struct lb_shares shares = {0};
    struct lb_quiet quiet;
    json_t *json = json_object(), *runs = json_array();

    if (of_loader)
        shares = lb_result_shares(result);

    lb_json_incomplete = false;
    lb_json_set(json, "schema", json_integer(LB_SCHEMA));
    lb_json_set(json, "program", json_string("loadbench"));
    lb_json_set(json, "started", json_string(result->started));
    lb_json_set(json, "versions", versions_json());
    lb_json_set(json, "machine", lb_json_group(json_object(), LB_OF_MACHINE, &result->machine));
    lb_json_set(json, "storage", lb_json_group(json_object(), LB_OF_STORAGE, &result->place));
    if (result->gpu.model[0])
        lb_json_set(json, "gpu", gpu_json(&result->gpu));
    lb_json_set(json, "timer", lb_json_group(json_object(), LB_OF_TIMER, &result->timer));
    if (of_loader) {
        lb_json_set(json, "config", config_json(result));
        lb_json_set(json, "data", data_json(&result->facts));
        lb_json_set(json, "cache", cache_json(result));
    } else {
        lb_json_set(json, "source", stki_text_json(result->config->path));
    }
    lb_json_set(json, "notes", notes_json(&result->facts, result->config));
    lb_json_set(json, "consumer", json_string(lb_consumers[result->config->bench.consumer].name));
    lb_json_set(json, "ended_by", json_string(lb_ending_words[result->runs[result->run_count - 1].ending]));
    lb_json_set(json, "repeat_count", json_integer(result->run_count));
    lb_json_set(json, "counted_from", json_string(result->from_open ? "open" : "ramp"));
    lb_json_set(json, "result", result_json(result));
    lb_json_set(json, "wait", wait_json(&result->waits));
    lb_json_set(json_object_get(json, "wait"), "histogram", lb_histogram_json(&result->waits));
    lb_json_set(json, "batch_interval", wait_json(&result->gaps));
    lb_result_quiet(result, &quiet);
    lb_json_set(json, "others", lb_json_group(json_object(), LB_OF_QUIET, &quiet));
    if (of_loader) {
        lb_json_set(json, "stages", lb_json_group(json_object(), LB_OF_SHARES, &shares));
        lb_json_set(json, "queue", lb_json_group(json_object(), LB_OF_QUEUE, &shares));
        lb_json_set(json, "limit", limit_json(result));
        lb_json_set(json, "limits", limits_json(result));
    }
    if (result->runs[0].stats.device_slots > 0)
        lb_json_set(json, "device", device_json(result));
    if (result->config->bench.consumer == LB_CONSUMER_STEP)
        lb_json_set(json, "utilization", utilization_json(result));
    if (of_loader)
        lb_json_set(json, "verdict", verdict_json(result));
    for (int i = 0; i < result->run_count; i++)
        json_array_append_new(runs, run_json(result, i));
    lb_json_set(json, "runs", runs);
    if (!lb_json_incomplete)
        return json;
    json_decref(json);
    stki_fail_memory(err, 65536, "the JSON of the result");
    return NULL;
}

/* Returns the end of the list at `at` if it contains only numbers, otherwise NULL. All line breaks come from the
 * serializer, because strings contain none. */
static char *end_of_numbers(char *at)
{
    char *end = at + 1;

    if (*at != '[' || end[0] != '\n')
        return NULL;
    end += strspn(end, "\n 0123456789+-.eE,");
    return *end == ']' ? end : NULL;
}

char *lb_json_dump(const json_t *tree)
{
    char *text = json_dumps(tree, JSON_INDENT(2) | JSON_REAL_PRECISION(15)), *to = text;

    for (char *from = text; from && *from;) {
        char *const end = end_of_numbers(from);
        for (; end && from < end; from++)
            if (*from == ',')
                to = (char *)memcpy(to, ", ", 2) + 2; /* replaces a line break and indentation */
            else if (*from != '\n' && *from != ' ')
                *to++ = *from;
        *to++ = *from++;
    }
    if (text)
        *to = '\0';
    return text;
}

stk_status lb_json_print(const json_t *tree, FILE *to, stk_error *err)
{
    char *text = lb_json_dump(tree);

    if (!text)
        return stki_fail_memory(err, 65536, "the JSON of the result");
    const int failed = fprintf(to, "%s\n", text) < 0 ? errno : 0;
    free(text);
    return failed ? stki_fail_errno(err, failed, "the result", "writing") : STK_OK;
}
