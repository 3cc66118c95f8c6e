/* loadbench_json.c: the result for programs. Every key of a measured number ends in its unit or names a count. */
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_result.h"
#include "text_check.h"
#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A part was left out for lack of memory: better no result than one with holes. */
static bool incomplete;

/* Rounded to what was measured: nobody needs 17 digits. */
static json_t *number(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.6g", value);
    return json_real(strtod(text, NULL));
}

/* A text from outside, a path above all, may be no UTF-8, which JSON has to be: such bytes become U+FFFD. */
static json_t *outer_text(const char *text)
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

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        incomplete = true;
}

static json_t *summary_json(struct lb_summary summary)
{
    json_t *json = json_object();

    set(json, "median", number(summary.median));
    set(json, "low", number(summary.low));
    set(json, "high", number(summary.high));
    set(json, "spread_percent", number(summary.spread_percent));
    return json;
}

static json_t *machine_json(const struct lb_machine *machine)
{
    json_t *json = json_object();

    set(json, "cpu", outer_text(machine->cpu));
    set(json, "architecture", json_string(machine->architecture));
    set(json, "cores_allowed", json_integer(machine->cores_allowed));
    set(json, "cores_online", json_integer(machine->cores_online));
    set(json, "last_level_cache_bytes", json_integer(machine->cache_bytes));
    set(json, "memory_bytes", json_integer(machine->memory_bytes));
    set(json, "memory_available_bytes", json_integer(machine->memory_available_bytes));
    set(json, "transparent_huge_pages", json_string(machine->huge_pages));
    set(json, "kernel", outer_text(machine->kernel));
    return json;
}

static json_t *versions_json(void)
{
    json_t *json = json_object();

    set(json, "stoker", json_string(stk_version()));
    set(json, "libc", json_sprintf("glibc %s", gnu_get_libc_version()));
    set(json, "compiler",
        json_string(
#if defined(__clang__)
            "clang " __clang_version__
#else
            "gcc " __VERSION__
#endif
            ));
    return json;
}

/* -1 where it varies. */
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
        set(json, "name", outer_text(field->name));
        set(json, "source_dtype", json_string(stk_dtype_name(field->source_dtype)));
        set(json, "dtype", json_string(stk_dtype_name(field->dtype)));
        set(json, "shape", shape_json(field));
        set(json, "layout", json_string(field->layout));
        set(json, "kernel", outer_text(field->kernel));
        set(json, "access", json_string(field->access));
        set(json, "sample_bytes", json_integer(field->sample_bytes));
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *data_json(const struct lb_facts *facts)
{
    json_t *json = json_object();

    set(json, "sample_count", json_integer(facts->samples));
    set(json, "batches_per_epoch", json_integer(facts->steps_per_epoch));
    set(json, "fields", fields_json(facts));
    return json;
}

static json_t *config_json(const struct lb_result *result)
{
    json_t *json = json_object();

    set(json, "file", outer_text(result->config->path));
    set(json, "bench", stki_options_json(&lb_bench_table, &result->config->bench));
    set(json, "effective", json_loads(result->facts.options_json, 0, NULL));
    return json;
}

static json_t *notes_json(const struct lb_facts *facts)
{
    json_t *list = json_array();

    for (int i = 0; i < facts->note_count; i++)
        json_array_append_new(list, outer_text(facts->notes[i]));
    return list;
}

static json_t *run_stages_json(const stk_loader_stats *stats)
{
    json_t *json = json_object();

    set(json, "order_work_ns", json_integer(stats->order_ns));
    set(json, "read_work_ns", json_integer(stats->read_ns));
    set(json, "convert_work_ns", json_integer(stats->convert_ns));
    set(json, "wait_for_slot_ns", json_integer(stats->wait_slot_ns));
    set(json, "wait_for_work_ns", json_integer(stats->wait_work_ns));
    set(json, "consumer_wait_ns", json_integer(stats->wait_next_ns));
    return json;
}

static json_t *run_device_json(const stk_loader_stats *stats)
{
    json_t *json = json_object();

    set(json, "batch_count", json_integer(stats->device_batches));
    set(json, "copied_bytes", json_integer(stats->device_bytes));
    set(json, "copy_ns", json_integer(stats->device_copy_ns));
    set(json, "convert_ns", json_integer(stats->device_convert_ns));
    set(json, "exposed_ns", json_integer(stats->device_exposed_ns));
    set(json, "wait_for_batch_ns", json_integer(stats->device_wait_batch_ns));
    set(json, "wait_for_slot_ns", json_integer(stats->device_wait_slot_ns));
    set(json, "slot_count", json_integer(stats->device_slots));
    set(json, "slot_memory_bytes", json_integer(stats->device_slot_bytes));
    return json;
}

static json_t *run_json(const struct lb_result *result, int index)
{
    const struct lb_run *run = &result->runs[index];
    json_t *json = json_object();

    set(json, "ended_by", json_string(lb_ending_name(run->ending)));
    set(json, "within_ramp", json_boolean(run->within_ramp));
    set(json, "ramp_ns", json_integer(run->ramp_ns));
    set(json, "elapsed_ns", json_integer(run->elapsed_ns));
    set(json, "batch_count", json_integer(run->batches));
    set(json, "sample_count", json_integer(run->samples));
    set(json, "epoch_count", json_integer(run->epochs));
    set(json, "failed_sample_count", json_integer(run->stats.errors));
    set(json, "warned_sample_count", json_integer(run->stats.warnings));
    set(json, "tile_count", json_integer(run->stats.tiles));
    set(json, "batch_bytes", json_integer(run->stats.batch_bytes));
    set(json, "read_bytes", json_integer(run->stats.bytes_read));
    set(json, "written_bytes", json_integer(run->stats.bytes_written));
    set(json, "moved_bytes_per_s", number(lb_run_moved_bytes_per_s(run)));
    for (int i = 0; i < lb_figure_count; i++)
        set(json, lb_figures[i].key, number(lb_figures[i].of(run)));
    set(json, "cpu_user_ns", json_integer(run->usage.user_ns));
    set(json, "cpu_system_ns", json_integer(run->usage.system_ns));
    set(json, "anonymous_memory_bytes", json_integer(run->memory.anonymous_bytes));
    set(json, "file_memory_bytes", json_integer(run->memory.file_bytes));
    set(json, "pinned_bytes", json_integer(run->stats.pinned_bytes));
    set(json, "slot_count", json_integer(run->stats.slots));
    set(json, "worker_count", json_integer(run->stats.workers));
    set(json, "next_ns", json_integer(run->next_ns));
    set(json, "stages", run_stages_json(&run->stats));
    if (run->stats.device_slots > 0)
        set(json, "device", run_device_json(&run->stats));
    if (result->config->bench.consumer == LB_CONSUMER_TOUCH)
        set(json, "checksum", json_sprintf("%016" PRIx64, run->checksum));
    if (run->digest.end_step >= 0) {
        set(json, "digest", json_string(run->digest.text));
        set(json, "digest_first_step", json_integer(run->digest.first_step));
        set(json, "digest_end_step", json_integer(run->digest.end_step));
    }
    if (index < result->limit_count) {
        set(json, "limit_gather_bytes_per_s", number(result->limits[index].gather.bytes_per_s));
        set(json, "limit_memcpy_bytes_per_s", number(result->limits[index].memcpy.bytes_per_s));
    }
    return json;
}

static json_t *result_json(const struct lb_result *result)
{
    json_t *json = json_object();
    double moved[LB_REPEATS];
    int count = 0;

    for (int i = 0; i < lb_figure_count; i++)
        set(json, lb_figures[i].key, summary_json(lb_result_figure(result, &lb_figures[i])));
    for (; count < result->run_count && count < LB_REPEATS; count++)
        moved[count] = lb_run_moved_bytes_per_s(&result->runs[count]);
    set(json, "moved_bytes_per_s", summary_json(lb_summarise(moved, count)));
    return json;
}

static json_t *waits_json(const stki_histogram *waits)
{
    static const struct {
        const char *key;
        double fraction;
    } points[] = {{"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}, {"p999_us", 0.999}};
    json_t *json = json_object();

    set(json, "call_count", json_integer(stki_counted(&waits->count)));
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        set(json, points[i].key, number((double)stki_histogram_quantile(waits, points[i].fraction) / 1e3));
    set(json, "max_us", number((double)stki_counted(&waits->max) / 1e3));
    return json;
}

static json_t *stages_json(const struct lb_shares *shares)
{
    json_t *json = json_object();

    set(json, "order_work_percent", number(100 * shares->order));
    set(json, "read_work_percent", number(100 * shares->read));
    set(json, "convert_work_percent", number(100 * shares->convert));
    set(json, "hand_over_work_percent", number(100 * shares->hand_over));
    set(json, "wait_for_slot_percent", number(100 * shares->wait_slot));
    set(json, "wait_for_work_percent", number(100 * shares->wait_work));
    set(json, "consumer_wait_percent", number(100 * shares->wait_next));
    set(json, "worker_time_s", number(shares->worker_s));
    set(json, "elapsed_s", number(shares->elapsed_s));
    return json;
}

static json_t *limit_json(const struct lb_result *result)
{
    const struct lb_limit_summary summary = lb_result_limits(result);
    const struct lb_limit *limit = &result->limits[0];
    json_t *json = json_object();

    if (result->limit_count == 0) {
        set(json, "missing",
            outer_text(result->limit_missing[0] ? result->limit_missing : "not measured (bench.limit: false)"));
        return json;
    }
    set(json, "thread_count", json_integer(limit->threads));
    set(json, "gather_bytes_per_s", summary_json(summary.gather_bytes_per_s));
    set(json, "gather_way", json_string(limit->gather.way));
    set(json, "gather_order", json_string(limit->random ? "random" : "sequential"));
    set(json, "gather_from", json_string(limit->from_file ? "file" : "memory"));
    set(json, "gather_row_bytes", json_integer(limit->row_bytes));
    set(json, "gather_source_bytes", json_integer(limit->source_bytes));
    set(json, "gather_target_bytes", json_integer(limit->target_bytes));
    set(json, "memcpy_bytes_per_s", summary_json(summary.memcpy_bytes_per_s));
    set(json, "memcpy_way", json_string(limit->memcpy.way));
    set(json, "share_of_gather_percent", summary_json(summary.share_of_gather_percent));
    set(json, "share_of_memcpy_percent", summary_json(summary.share_of_memcpy_percent));
    return json;
}

static json_t *device_json(const struct lb_result *result)
{
    const struct lb_device_summary device = lb_result_device(result);
    json_t *json = json_object();

    set(json, "name", json_string(device.name));
    set(json, "batch_bytes", number(device.batch_bytes));
    set(json, "copy_bytes_per_s", summary_json(device.copy_bytes_per_s));
    set(json, "hidden_percent", summary_json(device.hidden_percent));
    set(json, "convert_percent", summary_json(device.convert_percent));
    if (result->config->bench.consumer == LB_CONSUMER_DEVICE) {
        set(json, "step_ns", json_integer(result->config->bench.step_time));
        set(json, "step_percent", summary_json(device.step_percent));
    }
    if (result->transfer_count > 0) {
        set(json, "plain_pinned_bytes_per_s", summary_json(device.pinned_bytes_per_s));
        set(json, "plain_pageable_bytes_per_s", summary_json(device.pageable_bytes_per_s));
        set(json, "share_of_pinned_percent", summary_json(device.share_of_pinned_percent));
    }
    return json;
}

static json_t *verdict_json(const struct lb_shares *shares)
{
    char text[400];
    const enum lb_binding binding = lb_verdict(shares, text, sizeof text);
    json_t *json = json_object();

    set(json, "binds", json_string(lb_binding_name(binding)));
    set(json, "text", json_string(text));
    return json;
}

stk_status lb_print_json(const struct lb_result *result, FILE *to, stk_error *err)
{
    const struct lb_shares shares = lb_result_shares(result);
    json_t *json = json_object(), *runs = json_array();
    char *text;

    set(json, "schema", json_integer(LB_SCHEMA));
    set(json, "program", json_string("loadbench"));
    set(json, "started", json_string(result->started));
    set(json, "versions", versions_json());
    set(json, "machine", machine_json(&result->machine));
    set(json, "config", config_json(result));
    set(json, "data", data_json(&result->facts));
    set(json, "notes", notes_json(&result->facts));
    set(json, "consumer", json_string(lb_consumers[result->config->bench.consumer].name));
    set(json, "ended_by", json_string(lb_ending_name(result->runs[result->run_count - 1].ending)));
    set(json, "repeat_count", json_integer(result->run_count));
    set(json, "counted_from", json_string(result->from_open ? "open" : "ramp"));
    set(json, "result", result_json(result));
    set(json, "wait", waits_json(&result->waits));
    set(json, "stages", stages_json(&shares));
    set(json, "limit", limit_json(result));
    if (result->runs[0].stats.device_slots > 0)
        set(json, "device", device_json(result));
    set(json, "verdict", verdict_json(&shares));
    for (int i = 0; i < result->run_count; i++)
        json_array_append_new(runs, run_json(result, i));
    set(json, "runs", runs);
    text = incomplete ? NULL : json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    if (!text)
        return stki_fail_memory(err, 65536, "the JSON of the result");
    const int failed = fprintf(to, "%s\n", text) < 0 ? errno : 0;
    free(text);
    return failed ? stki_fail_errno(err, failed, "the result", "writing") : STK_OK;
}
