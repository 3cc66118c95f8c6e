/* loadbench_json.c: the result for programs. Every key of a measured number ends in its unit or names a count. */
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_histogram.h"
#include "loadbench_json_parts.h"
#include "loadbench_step.h"
#include "text_check.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool lb_json_incomplete;

json_t *lb_json_number(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.6g", value);
    return json_real(strtod(text, NULL));
}

json_t *lb_json_text(const char *text)
{
    const int64_t length = (int64_t)strlen(text);
    json_t *json = json_string(text);
    char *clean = json ? NULL : malloc(3 * (size_t)length + 1);
    size_t used = 0;

    for (int64_t at = 0; clean && at < length;) {
        uint32_t code;
        const int bytes = stki_utf8_next(text + at, length - at, &code);
        memcpy(clean + used, bytes > 0 ? text + at : "\xef\xbf\xbd", (size_t)(bytes > 0 ? bytes : 3));
        used += (size_t)(bytes > 0 ? bytes : 3);
        at += bytes > 0 ? bytes : 1;
    }
    if (clean)
        json = json_stringn(clean, used);
    free(clean);
    return json;
}

void lb_json_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        lb_json_incomplete = true;
}

json_t *lb_json_summary(struct lb_summary summary)
{
    json_t *json = json_object();

    lb_json_set(json, "median", lb_json_number(summary.median));
    lb_json_set(json, "low", lb_json_number(summary.low));
    lb_json_set(json, "high", lb_json_number(summary.high));
    lb_json_set(json, "spread_percent", lb_json_number(summary.spread_percent));
    return json;
}

static json_t *cache_json(const struct lb_result *result)
{
    const struct lb_files *files = &result->facts.data;
    json_t *json = json_object();

    lb_json_set(json, "policy", json_string(lb_cache_words[result->config->bench.cache]));
    lb_json_set(json, "file_count", json_integer(files->count));
    lb_json_set(json, "data_bytes", json_integer(files->bytes));
    return json;
}

static json_t *utilisation_json(const struct lb_result *result)
{
    const struct lb_bench *bench = &result->config->bench;
    const struct lb_summary au = lb_result_utilisation(result);
    json_t *json = json_object();

    lb_json_set(json, "step_ns", json_integer(bench->step_time));
    lb_json_set(json, "preset", json_string(lb_presets[bench->preset].name));
    lb_json_set(json, "required_percent", lb_json_number(100 * bench->au_required));
    if (au.median < 0)
        return json;
    lb_json_set(json, "au", lb_json_summary(au)); /* a share of 1 */
    lb_json_set(json, "passed", json_boolean(au.median >= bench->au_required));
    return json;
}

static json_t *config_json(const struct lb_result *result)
{
    json_t *json = json_object();

    lb_json_set(json, "file", lb_json_text(result->config->path));
    lb_json_set(json, "bench", stki_options_json(&lb_bench_table, &result->config->bench));
    lb_json_set(json, "effective", json_deep_copy(result->facts.effective.all));
    return json;
}

static json_t *notes_json(const struct lb_facts *facts, bool no_ramp)
{
    json_t *list = json_array();

    for (int i = 0; i < stki_notes_count(&facts->notes); i++)
        json_array_append_new(list, lb_json_text(stki_notes_get(&facts->notes, i)));
    if (no_ramp)
        json_array_append_new(list, json_string(LB_NO_RAMP));
    return list;
}

static json_t *run_stages_json(const stk_loader_stats *stats)
{
    json_t *json = json_object();

    lb_json_set(json, "order_work_ns", json_integer(stats->order_ns));
    lb_json_set(json, "read_work_ns", json_integer(stats->read_ns));
    lb_json_set(json, "decode_work_ns", json_integer(stats->decode_ns));
    lb_json_set(json, "inflate_work_ns", json_integer(stats->inflate_ns));
    lb_json_set(json, "call_work_ns", json_integer(stats->call_ns));
    lb_json_set(json, "page_wait_ns", json_integer(stats->page_ns));
    lb_json_set(json, "convert_work_ns", json_integer(stats->convert_ns));
    lb_json_set(json, "wait_for_slot_ns", json_integer(stats->wait_slot_ns));
    lb_json_set(json, "wait_for_work_ns", json_integer(stats->wait_work_ns));
    lb_json_set(json, "consumer_wait_ns", json_integer(stats->wait_next_ns));
    return json;
}

static json_t *run_device_json(const stk_loader_stats *stats)
{
    json_t *json = json_object();

    lb_json_set(json, "batch_count", json_integer(stats->device_batches));
    lb_json_set(json, "copied_bytes", json_integer(stats->device_bytes));
    lb_json_set(json, "copy_ns", json_integer(stats->device_copy_ns));
    lb_json_set(json, "convert_ns", json_integer(stats->device_convert_ns));
    lb_json_set(json, "exposed_ns", json_integer(stats->device_exposed_ns));
    lb_json_set(json, "wait_for_batch_ns", json_integer(stats->device_wait_batch_ns));
    lb_json_set(json, "wait_for_slot_ns", json_integer(stats->device_wait_slot_ns));
    lb_json_set(json, "slot_count", json_integer(stats->device_slots));
    lb_json_set(json, "slot_memory_bytes", json_integer(stats->device_slot_bytes));
    return json;
}

static json_t *run_json(const struct lb_result *result, int index)
{
    const struct lb_run *run = &result->runs[index];
    json_t *json = json_object();

    lb_json_set(json, "ended_by", json_string(lb_ending_name(run->ending)));
    lb_json_set(json, "within_ramp", json_boolean(run->within_ramp));
    lb_json_set(json, "ramp_ns", json_integer(run->ramp_ns));
    lb_json_set(json, "elapsed_ns", json_integer(run->elapsed_ns));
    lb_json_set(json, "batch_count", json_integer(run->batches));
    lb_json_set(json, "sample_count", json_integer(run->samples));
    lb_json_set(json, "epoch_count", json_integer(run->epochs));
    lb_json_set(json, "failed_sample_count", json_integer(run->stats.errors));
    lb_json_set(json, "warned_sample_count", json_integer(run->stats.warnings));
    lb_json_set(json, "tile_count", json_integer(run->stats.tiles));
    lb_json_set(json, "batch_bytes", json_integer(run->stats.batch_bytes));
    lb_json_set(json, "read_bytes", json_integer(run->stats.bytes_read));
    lb_json_set(json, "unpacked_bytes", json_integer(run->stats.unpacked_bytes));
    lb_json_set(json, "packed_bytes", json_integer(run->stats.packed_bytes));
    lb_json_set(json, "written_bytes", json_integer(run->stats.bytes_written));
    lb_json_set(json, "moved_bytes_per_s", lb_json_number(lb_run_moved_bytes_per_s(run)));
    for (int i = 0; i < lb_figure_count; i++)
        lb_json_set(json, lb_figures[i].key, lb_json_number(lb_figures[i].of(run)));
    lb_json_set(json, "usage", lb_json_usage(&run->usage));
    lb_json_set(json, "others", lb_json_others(&run->others));
    lb_json_set(json, "anonymous_memory_bytes", json_integer(run->memory.anonymous_bytes));
    lb_json_set(json, "file_memory_bytes", json_integer(run->memory.file_bytes));
    lb_json_set(json, "pinned_bytes", json_integer(run->stats.pinned_bytes));
    lb_json_set(json, "slot_count", json_integer(run->stats.slots));
    lb_json_set(json, "worker_count", json_integer(run->stats.workers));
    lb_json_set(json, "next_ns", json_integer(run->next_ns));
    lb_json_set(json, "consume_ns", json_integer(run->consume_ns));
    lb_json_set(json, "release_ns", json_integer(run->release_ns));
    lb_json_set(json, "record_ns", json_integer(run->record_ns));
    lb_json_set(json, "own_ns", json_integer(run->own_ns));
    if (result->config->bench.consumer == LB_CONSUMER_STEP) {
        const double au = lb_utilisation(run->au_steps, result->config->bench.step_time, run->au_span_ns);
        lb_json_set(json, "au_step_count", json_integer(run->au_steps));
        lb_json_set(json, "au_span_ns", json_integer(run->au_span_ns));
        lb_json_set(json, "au_percent", au < 0 ? json_null() : lb_json_number(100 * au));
    }
    lb_json_set(json, "cache_before", lb_json_residency(&run->before));
    lb_json_set(json, "cache_after", lb_json_residency(&run->after));
    lb_json_set(json, "steady", lb_json_steady(&run->steady));
    lb_json_set(json, "intervals", lb_json_intervals(result->marks[index]));
    lb_json_set(json, "stages", run_stages_json(&run->stats));
    if (run->stats.device_slots > 0)
        lb_json_set(json, "device", run_device_json(&run->stats));
    if (result->config->bench.consumer == LB_CONSUMER_TOUCH)
        lb_json_set(json, "checksum", json_sprintf("%016" PRIx64, run->checksum));
    if (run->digest.end_step >= 0) {
        lb_json_set(json, "digest", json_string(run->digest.text));
        lb_json_set(json, "digest_first_step", json_integer(run->digest.first_step));
        lb_json_set(json, "digest_end_step", json_integer(run->digest.end_step));
    }
    if (index < result->limit_count) {
        lb_json_set(json, "limit_gather_bytes_per_s", lb_json_number(result->limits[index].gather.bytes_per_s));
        lb_json_set(json, "limit_memcpy_bytes_per_s", lb_json_number(result->limits[index].memcpy.bytes_per_s));
    }
    return json;
}

static json_t *result_json(const struct lb_result *result)
{
    json_t *json = json_object();
    double moved[LB_REPEATS];
    int count = 0;

    for (int i = 0; i < lb_figure_count; i++)
        lb_json_set(json, lb_figures[i].key, lb_json_summary(lb_result_figure(result, &lb_figures[i])));
    for (; count < result->run_count && count < LB_REPEATS; count++)
        moved[count] = lb_run_moved_bytes_per_s(&result->runs[count]);
    lb_json_set(json, "moved_bytes_per_s", lb_json_summary(lb_summarise(moved, count)));
    return json;
}

static json_t *stages_json(const struct lb_shares *shares)
{
    json_t *json = json_object();

    lb_json_set(json, "order_work_percent", lb_json_number(100 * shares->order));
    lb_json_set(json, "storage_work_percent", lb_json_number(100 * shares->storage));
    lb_json_set(json, "page_wait_percent", lb_json_number(100 * shares->page));
    lb_json_set(json, "decode_work_percent", lb_json_number(100 * shares->decode));
    lb_json_set(json, "inflate_work_percent", lb_json_number(100 * shares->inflate));
    lb_json_set(json, "call_work_percent", lb_json_number(100 * shares->call));
    lb_json_set(json, "convert_work_percent", lb_json_number(100 * shares->convert));
    lb_json_set(json, "hand_over_work_percent", lb_json_number(100 * shares->hand_over));
    lb_json_set(json, "wait_for_slot_percent", lb_json_number(100 * shares->wait_slot));
    lb_json_set(json, "wait_for_work_percent", lb_json_number(100 * shares->wait_work));
    lb_json_set(json, "consumer_wait_percent", lb_json_number(100 * shares->wait_next));
    if (shares->copy > 0)
        lb_json_set(json, "copy_work_percent", lb_json_number(100 * shares->copy));
    if (shares->unpacked > 0)
        lb_json_set(json, "chunk_unpacked_times_count", lb_json_number(shares->unpacked));
    lb_json_set(json, "worker_time_s", lb_json_number(shares->worker_s));
    lb_json_set(json, "elapsed_s", lb_json_number(shares->elapsed_s));
    return json;
}

/* What others used of the processors, in all repeats together. */
static json_t *others_json(const struct lb_result *result)
{
    struct lb_quiet quiet;
    json_t *json = json_object();

    lb_result_quiet(result, &quiet);
    lb_json_set(json, "known", json_boolean(quiet.known));
    if (!quiet.known)
        lb_json_set(json, "why", lb_json_text(quiet.why));
    else
        lb_json_set(json, "quiet", json_boolean(quiet.loud == 0));
    lb_json_set(json, "allowed_processor_count", json_integer(quiet.processors));
    lb_json_set(json, "loud_repeat_count", json_integer(quiet.loud));
    if (!quiet.known)
        return json;
    lb_json_set(json, "used_processor_count", lb_json_number(quiet.used));
    lb_json_set(json, "stolen_processor_count", lb_json_number(quiet.stolen));
    if (quiet.queued >= 0)
        lb_json_set(json, "queued_thread_count", lb_json_number(quiet.queued));
    return json;
}

static json_t *limit_json(const struct lb_result *result)
{
    const struct lb_limit_summary summary = lb_result_limits(result);
    const struct lb_limit *limit = &result->limits[0];
    json_t *json = json_object();

    if (result->limit_count == 0) {
        lb_json_set(
            json, "missing",
            lb_json_text(result->limit_missing[0] ? result->limit_missing : "not measured (bench.limit: false)"));
        return json;
    }
    lb_json_set(json, "thread_count", json_integer(limit->threads));
    lb_json_set(json, "gather_bytes_per_s", lb_json_summary(summary.gather_bytes_per_s));
    lb_json_set(json, "gather_way", json_string(limit->gather.way));
    lb_json_set(json, "gather_order", json_string(limit->random ? "random" : "sequential"));
    lb_json_set(json, "gather_from", json_string(limit->from_file ? "file" : "memory"));
    lb_json_set(json, "gather_row_bytes", json_integer(limit->row_bytes));
    lb_json_set(json, "gather_source_bytes", json_integer(limit->source_bytes));
    lb_json_set(json, "gather_target_bytes", json_integer(limit->target_bytes));
    lb_json_set(json, "memcpy_bytes_per_s", lb_json_summary(summary.memcpy_bytes_per_s));
    lb_json_set(json, "write_bytes_per_s", lb_json_number(limit->write.bytes_per_s));
    lb_json_set(json, "memcpy_way", json_string(limit->memcpy.way));
    lb_json_set(json, "share_of_gather_percent", lb_json_summary(summary.share_of_gather_percent));
    lb_json_set(json, "share_of_memcpy_percent", lb_json_summary(summary.share_of_memcpy_percent));
    return json;
}

static json_t *bound_json(const struct lb_bound *bound)
{
    json_t *json = json_object();

    lb_json_set(json, "name", json_string(lb_bound_name(bound->kind)));
    lb_json_set(json, "samples_per_s", lb_json_number(bound->samples_per_s));
    lb_json_set(json, "share_percent", lb_json_number(bound->share_percent));
    lb_json_set(json, "applies", json_boolean(bound->applies));
    lb_json_set(json, "basis", json_string(bound->basis));
    if (bound->unpacked > 0)
        lb_json_set(json, "unpacked_times_count", lb_json_number(bound->unpacked));
    return json;
}

/* Every limit, the lowest first; the one that binds; and why others are not there. */
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
            lb_json_set(missing, reasons[i].name, lb_json_text(reasons[i].why));
    lb_json_set(json, "list", list);
    lb_json_set(json, "binding", binding ? bound_json(binding) : json_null());
    lb_json_set(json, "missing", missing);
    lb_result_quiet(result, &quiet);
    if (*lb_bound_excess(binding, quiet.loud == 0))
        lb_json_set(json, "excess", json_string(lb_bound_excess(binding, quiet.loud == 0)));
    if (once->measured) {
        lb_json_set(json, "page_cache_read_bytes_per_s", lb_json_number(once->read.cached_bytes_per_s));
        lb_json_set(json, "disk_read_bytes_per_s", lb_json_number(once->read.cold_bytes_per_s));
        lb_json_set(json, "disk_sample_bytes", json_integer(once->read.cold_bytes));
        lb_json_set(json, "thread_count", json_integer(once->read.threads));
    }
    return json;
}

static json_t *device_json(const struct lb_result *result)
{
    const struct lb_device_summary device = lb_result_device(result);
    json_t *json = json_object();

    lb_json_set(json, "name", json_string(device.name));
    lb_json_set(json, "batch_bytes", lb_json_number(device.batch_bytes));
    lb_json_set(json, "copy_bytes_per_s", lb_json_summary(device.copy_bytes_per_s));
    lb_json_set(json, "hidden_percent", lb_json_summary(device.hidden_percent));
    lb_json_set(json, "convert_percent", lb_json_summary(device.convert_percent));
    if (result->config->bench.consumer == LB_CONSUMER_DEVICE) {
        lb_json_set(json, "step_ns", json_integer(result->config->bench.step_time));
        lb_json_set(json, "step_percent", lb_json_summary(device.step_percent));
    }
    if (result->transfer_count > 0) {
        lb_json_set(json, "plain_pinned_bytes_per_s", lb_json_summary(device.pinned_bytes_per_s));
        lb_json_set(json, "plain_pageable_bytes_per_s", lb_json_summary(device.pageable_bytes_per_s));
        lb_json_set(json, "share_of_pinned_percent", lb_json_summary(device.share_of_pinned_percent));
    }
    return json;
}

static json_t *verdict_json(const struct lb_result *result)
{
    struct lb_verdict verdict;
    json_t *json = json_object();

    lb_result_verdict(result, &verdict);
    lb_json_set(json, "binds", json_string(lb_binding_name(verdict.binds)));
    lb_json_set(json, "confidence", json_string(lb_confidence_name(verdict.confidence)));
    lb_json_set(json, "busy_percent", lb_json_number(100 * verdict.busy));
    lb_json_set(json, "text", json_string(verdict.text));
    if (verdict.doubt[0])
        lb_json_set(json, "doubt", json_string(verdict.doubt));
    lb_json_set(json, "predictions", lb_predict_json(&result->predictions));
    return json;
}

json_t *lb_result_tree(const struct lb_result *result, stk_error *err)
{
    const struct lb_shares shares = lb_result_shares(result);
    json_t *json = json_object(), *runs = json_array();

    lb_json_incomplete = false;
    lb_json_set(json, "schema", json_integer(LB_SCHEMA));
    lb_json_set(json, "program", json_string("loadbench"));
    lb_json_set(json, "started", json_string(result->started));
    lb_json_set(json, "versions", lb_json_versions());
    lb_json_set(json, "machine", lb_json_machine(&result->machine));
    lb_json_set(json, "storage", lb_json_storage(&result->place));
    if (result->gpu.model[0])
        lb_json_set(json, "gpu", lb_json_gpu(&result->gpu));
    lb_json_set(json, "timer", lb_json_timer(&result->timer));
    lb_json_set(json, "config", config_json(result));
    lb_json_set(json, "data", lb_json_data(&result->facts));
    lb_json_set(json, "cache", cache_json(result));
    lb_json_set(json, "notes", notes_json(&result->facts, result->config->ramp_left_out));
    lb_json_set(json, "consumer", json_string(lb_consumers[result->config->bench.consumer].name));
    lb_json_set(json, "ended_by", json_string(lb_ending_name(result->runs[result->run_count - 1].ending)));
    lb_json_set(json, "repeat_count", json_integer(result->run_count));
    lb_json_set(json, "counted_from", json_string(result->from_open ? "open" : "ramp"));
    lb_json_set(json, "result", result_json(result));
    lb_json_set(json, "wait", lb_json_waits(&result->waits));
    lb_json_set(json_object_get(json, "wait"), "histogram", lb_histogram_json(&result->waits));
    lb_json_set(json, "batch_interval", lb_json_waits(&result->gaps));
    lb_json_set(json, "others", others_json(result));
    lb_json_set(json, "stages", stages_json(&shares));
    lb_json_set(json, "queue",
                json_pack("{s:I, s:o}", "slot_count", (json_int_t)shares.slots, "ready_percent",
                          lb_json_number(100 * fmax(0, shares.ready))));
    lb_json_set(json, "limit", limit_json(result));
    lb_json_set(json, "limits", limits_json(result));
    if (result->runs[0].stats.device_slots > 0)
        lb_json_set(json, "device", device_json(result));
    if (result->config->bench.consumer == LB_CONSUMER_STEP)
        lb_json_set(json, "utilisation", utilisation_json(result));
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

/* Where the list that begins at `at` holds numbers alone: its end. NULL: it does not. A line break outside of texts,
 * which have none, is always the dump's own. */
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
                to = (char *)memcpy(to, ", ", 2) + 2; /* there was a line break and more */
            else if (*from != '\n' && *from != ' ')
                *to++ = *from;
        *to++ = *from++;
    }
    if (text)
        *to = '\0';
    return text;
}

stk_status lb_print_json(const struct lb_result *result, FILE *to, stk_error *err)
{
    json_t *json = lb_result_tree(result, err);
    char *text;

    if (!json)
        return STK_E_MEMORY;
    text = lb_json_dump(json);
    json_decref(json);
    if (!text)
        return stki_fail_memory(err, 65536, "the JSON of the result");
    const int failed = fprintf(to, "%s\n", text) < 0 ? errno : 0;
    free(text);
    return failed ? stki_fail_errno(err, failed, "the result", "writing") : STK_OK;
}
