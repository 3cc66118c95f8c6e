/* loadbench_text.c: the result as text: the run, the figures, the stage times, the limits, the verdict. */
#include "live_line.h"
#include "loadbench_consumer.h"
#include "loadbench_result.h"
#include "loadbench_step.h"
#include "loadbench_table.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void print_place(const struct lb_place *place, FILE *to)
{
    if (!place->type[0])
        return;
    fprintf(to, "storage    %s on %s, mounted at %s\n", place->type, place->source, place->mount);
}

static void print_machine(const struct lb_result *result, FILE *to)
{
    const struct lb_machine *machine = &result->machine;

    fprintf(to, "loadbench %s, %s\n", stk_version(), result->config->path);
    fprintf(to, "machine    %s, %" PRId64 " of %" PRId64 " cores allowed, %.1f GiB of memory, %s\n", machine->cpu,
            machine->cores_allowed, machine->cores_online, (double)machine->memory_bytes / (1 << 30), machine->kernel);
    if (machine->cpu_quota > 0)
        fprintf(to, "           its cgroup allows %s of the cores\n", LB_NUMBER(machine->cpu_quota));
    if (machine->memory_limit > 0)
        fprintf(to, "           its cgroup allows %sB of memory\n", LB_SHORT((double)machine->memory_limit));
    print_place(&result->place, to);
    if (result->gpu.bus[0])
        fprintf(to, "gpu        %s, %.1f GiB, %s%s%s\n", result->gpu.model,
                (double)result->gpu.memory_bytes / (1 << 30), result->gpu.bus,
                result->gpu.link_speed[0] ? ", current link " : "", result->gpu.link_speed);
}

static void print_fields(const struct lb_result *result, FILE *to)
{
    const struct lb_facts *facts = &result->facts;

    fprintf(to, "data       %" PRId64 " sample%s, %" PRId64 " batch%s per epoch\n", facts->samples,
            facts->samples == 1 ? "" : "s", facts->steps_per_epoch, facts->steps_per_epoch == 1 ? "" : "es");
    for (int i = 0; i < facts->field_count; i++) {
        const struct lb_field *field = &facts->fields[i];
        fprintf(to, "           %s: %s %s%s%s, by %s, read by %s\n", field->name, stk_dtype_name(field->dtype),
                field->shape, field->layout[0] ? " " : "", field->layout, field->kernel, field->access);
    }
}

/* Prints the order, such as "random, seed 1; an epoch: web 700, books 300". */
static void print_order(const struct lb_result *result, FILE *to)
{
    const json_t *order = lb_effective_plan(&result->facts.effective, "order"), *dataset;
    const json_t *quality = json_object_get(order, "quality"), *split = json_object_get(order, "split");
    const char *bucket = json_string_value(json_object_get(order, "bucket_by"));
    size_t i;

    if (order)
        fprintf(to, "order      %s, seed %lld", json_string_value(json_object_get(order, "kind")),
                (long long)json_integer_value(json_object_get(order, "seed")));
    if (split)
        fprintf(to, ", %s part of %lld samples", json_string_value(json_object_get(split, "part")),
                (long long)json_integer_value(json_object_get(order, "data_set_samples")));
    if (quality)
        fprintf(to, ", mixes %.2f times as well as random", json_real_value(quality));
    if (bucket)
        fprintf(to, ", bucketed by %s", bucket);
    json_array_foreach(json_object_get(order, "datasets"), i, dataset)
    {
        fprintf(to, "%s %s %lld", i ? "," : "; an epoch:", json_string_value(json_object_get(dataset, "name")),
                (long long)json_integer_value(json_object_get(dataset, "positions_per_epoch")));
    }
    if (order)
        fputc('\n', to);
}

static void print_method(const struct lb_result *result, FILE *to)
{
    const struct lb_run *last = &result->runs[result->run_count - 1];
    const struct lb_bench *bench = &result->config->bench;
    const uint32_t workers = last->stats.workers;

    fprintf(to, "run        %d", result->run_count);
    if (result->run_count < bench->repeats)
        fprintf(to, " of %" PRId64, bench->repeats);
    fprintf(to, " repeat%s of %s s", bench->repeats == 1 ? "" : "s", LB_NUMBER((double)last->elapsed_ns / 1e9));
    if (result->from_open && bench->cache == LB_CACHE_COLD)
        fputs(" (cold: start and first batch are included)", to);
    else if (result->from_open)
        fprintf(to, " (the data ended within the ramp%s: start and first batch are included%s)",
                result->run_count > 1 ? " of at least one repeat" : "", result->run_count > 1 ? " in all repeats" : "");
    else if (bench->ramp > 0)
        fprintf(to, " after %s s of ramp", LB_NUMBER((double)last->ramp_ns / 1e9));
    fprintf(to, "; consumer %s; ", lb_consumers[bench->consumer].name);
    if (result->config->source)
        fputs("workers: the source's own", to);
    else if (workers > 0)
        fprintf(to, "%" PRIu32 " worker%s, %" PRId64 " slot%s", workers, workers == 1 ? "" : "s", last->stats.slots,
                last->stats.slots == 1 ? "" : "s");
    else
        fputs("no workers: the consumer's thread does the work", to);
    fprintf(to, "; ended by %s\n", lb_ending_text(last->ending));
    for (int i = 0; i < stki_notes_count(&result->facts.notes); i++)
        fprintf(to, "note       %s\n", stki_notes_get(&result->facts.notes, i));
    if (result->config->ramp_left_out)
        fprintf(to, "note       %s\n", LB_NO_RAMP);
    if (result->config->limit_time_unused)
        fprintf(to, "note       %s\n", LB_NO_LIMIT_TIME);
    if (last->stats.errors > 0)
        fprintf(to, "note       %" PRId64 " sample%s failed\n", last->stats.errors, last->stats.errors == 1 ? "" : "s");
    if (last->stats.warnings > 0)
        fprintf(to, "note       %" PRId64 " sample%s decoded despite warnings\n", last->stats.warnings,
                last->stats.warnings == 1 ? " was" : "s were");
}

/* With fewer than 100 or 1000 calls, p99 or p99.9 is the maximum. */
static void print_few(const struct lb_result *result, FILE *to)
{
    int64_t fewest = INT64_MAX;

    for (int i = 0; i < result->run_count; i++)
        fewest = result->runs[i].waits.count < fewest ? result->runs[i].waits.count : fewest;
    if (fewest < 1000)
        fprintf(to, "note       %sp99.9 %s longest wait: a repeat had only %" PRId64 " wait%s\n",
                fewest < 100 ? "p99 and " : "", fewest < 100 ? "are the" : "is the", fewest, fewest == 1 ? "" : "s");
}

static void print_figures(const struct lb_result *result, FILE *to)
{
    static const char *const one[] = {"", "result"}, *const several[] = {"", "median", "low", "high", "spread"};
    const bool single = result->run_count == 1;
    struct lb_table *table = malloc(sizeof *table);

    if (!table)
        return;
    lb_table_init(table, single ? 2 : 5);
    lb_table_row(table, single ? one : several, single ? 2 : 5);
    for (int i = 0; i < lb_figure_count; i++) {
        if (!lb_figures[i].label)
            continue;
        const struct lb_summary summary = lb_result_figure(result, &lb_figures[i]);
        char label[LB_TABLE_TEXT];
        const char *const name = label;
        const double scale = lb_figure_scale(&lb_figures[i], summary.high, label, sizeof label);
        lb_table_row(table, &name, 1);
        if (summary.low < 0) {
            lb_table_cell(table, 1, "unknown");
            continue;
        }
        lb_table_cell(table, 1, "%s", LB_NUMBER(scale * summary.median));
        if (single)
            continue;
        lb_table_cell(table, 2, "%s", LB_NUMBER(scale * summary.low));
        lb_table_cell(table, 3, "%s", LB_NUMBER(scale * summary.high));
        lb_table_cell(table, 4, "%.1f %%", summary.spread_percent);
    }
    fputc('\n', to);
    lb_table_print(table, to);
    free(table);
    print_few(result, to);
}

static void print_stage(struct lb_table *table, const char *name, double whole_s, double work, double wait,
                        const char *reason)
{
    lb_table_row(table, &name, 1);
    if (work >= 0) {
        lb_table_cell(table, 1, "%s", LB_NUMBER(work * whole_s));
        lb_table_cell(table, 2, "%.1f %%", 100 * work);
    }
    if (wait >= 0) {
        lb_table_cell(table, 3, "%s", LB_NUMBER(wait * whole_s));
        lb_table_cell(table, 4, "%.1f %%", 100 * wait);
        lb_table_cell(table, 5, "%s", reason);
    }
}

#define PRINT_WORK(name, member, label, always, ...) \
    if ((always) || shares.member > 0)               \
        print_stage(table, #member, shares.worker_s, shares.member, -1, "");

static void print_stages(const struct lb_result *result, FILE *to)
{
    static const char *const head[] = {"stage", "working, s", "share", "waiting, s", "share", "for"};
    const struct lb_shares shares = lb_result_shares(result);
    const double own = 1 - shares.wait_next - (shares.workers ? 0 : lb_busy(&shares));
    struct lb_table *table = malloc(sizeof *table);

    if (!table)
        return;
    lb_table_init(table, 6);
    table->left[5] = true;
    lb_table_row(table, head, 6);
    LB_STAGES(PRINT_WORK)
    if (shares.workers > 0) {
        print_stage(table, "hand over", shares.worker_s, shares.hand_over, shares.wait_slot, "a free slot");
        print_stage(table, "", shares.worker_s, -1, shares.wait_work, "work");
    }
    if (shares.copy > 0)
        print_stage(table, "copy", shares.elapsed_s, shares.copy, shares.copy_wait, "a batch");
    print_stage(table, "consumer", shares.elapsed_s, own > 0 ? own : 0, shares.wait_next, "a batch");
    fputc('\n', to);
    lb_table_print(table, to);
    free(table);
}

static void print_limit(const struct lb_result *result, FILE *to)
{
    const struct lb_limit_summary summary = lb_result_limits(result);
    const struct lb_limit *limit = &result->limits[0];

    if (result->limit_count == 0) {
        fprintf(to, "limit      %s\n",
                result->limit_missing[0] ? result->limit_missing : "not measured (bench.limit: false)");
        return;
    }
    fprintf(to, "limit      gather %s GB/s (rows of %" PRId64 " byte%s %s %s, %s), memcpy %s GB/s (%s)\n",
            LB_NUMBER(summary.gather_bytes_per_s.median / 1e9), limit->row_bytes, limit->row_bytes == 1 ? "" : "s",
            limit->random ? "at random offsets in" : "sequentially from", limit->from_file ? "the file" : "memory",
            limit->gather.way, LB_NUMBER(summary.memcpy_bytes_per_s.median / 1e9), limit->memcpy.way);
    fprintf(to, "           read + written, %d thread%s, measured after each repeat\n", limit->threads,
            limit->threads == 1 ? "" : "s");
    fprintf(to, "share      %s of gather, %s of memcpy: bytes that the loader itself read + wrote\n",
            LB_PERCENT(summary.share_of_gather_percent.median), LB_PERCENT(summary.share_of_memcpy_percent.median));
}

/* Explains a limit that is low only because the run decompresses chunks repeatedly. */
static void print_unpacked(const struct lb_bound *bounds, int count, FILE *to)
{
    const struct lb_bound *again = NULL, *once = NULL;

    for (int i = 0; i < count; i++) {
        again = bounds[i].kind == LB_BOUND_INFLATE ? &bounds[i] : again;
        once = bounds[i].kind == LB_BOUND_INFLATE_ONCE ? &bounds[i] : once;
    }
    if (again && once)
        fprintf(to,
                "note       each chunk was decompressed %s times on average, which the limit `inflate` includes: if "
                "each chunk were decompressed once, it would be %s samples/s instead of %s (order: block, or a larger "
                "loader.cache_bytes)\n",
                LB_SHORT(again->unpacked), LB_SHORT(once->samples_per_s), LB_SHORT(again->samples_per_s));
}

/* Prints all limits in samples/s and the fraction reached; the lowest applicable one is the headline. */
static void print_bounds(const struct lb_result *result, FILE *to)
{
    struct lb_bound bounds[LB_BOUND_KINDS];
    const int count = lb_result_bounds(result, bounds);
    const struct lb_bound *binding = lb_bound_binding(bounds, count);
    struct lb_quiet quiet;

    if (count == 0)
        return;
    fprintf(to, "%-12s %9s  %8s  %s\n", "limits", "samples/s", "reached", "measured as");
    for (int i = 0; i < count; i++)
        fprintf(to, "%-12s %9s  %8s  %s\n", lb_bound_words[bounds[i].kind], LB_SHORT(bounds[i].samples_per_s),
                LB_PERCENT(bounds[i].share_percent), bounds[i].basis);
    for (int i = 0; i < count; i++)
        if (bounds[i].kind == LB_BOUND_DISK && bounds[i].share_percent > 100)
            fprintf(to, "note       the rate exceeds that of the disk (%s samples/s): %s\n",
                    LB_SHORT(bounds[i].samples_per_s),
                    bounds[i].applies ? "part of the data came from memory" : "the data came from memory");
    if (binding)
        fprintf(to, "headline   %s of the binding limit, %s: at most %s samples/s (%s)\n",
                LB_PERCENT(binding->share_percent), lb_bound_words[binding->kind], LB_SHORT(binding->samples_per_s),
                binding->basis);
    lb_result_quiet(result, &quiet);
    if (*lb_bound_excess(binding, quiet.loud == 0))
        fprintf(to, "note       %s\n", lb_bound_excess(binding, quiet.loud == 0));
    print_unpacked(bounds, count, to);
}

static void print_device(const struct lb_result *result, FILE *to)
{
    const struct lb_device_summary device = lb_result_device(result);

    if (!device.name[0])
        return;
    fprintf(to, "device     %s: copies of %sB at %sB/s, %.1f %% of their time hidden", device.name,
            LB_SHORT(device.batch_bytes), LB_SHORT(device.copy_bytes_per_s.median), device.hidden_percent.median);
    if (device.convert_percent.median > 0)
        fprintf(to, "; converts %.1f %% of the time", device.convert_percent.median);
    if (result->config->bench.consumer == LB_CONSUMER_DEVICE)
        fprintf(to, "; in a step of %s ms %.1f %% of the time",
                LB_NUMBER((double)result->config->bench.step_time / 1e6), device.step_percent.median);
    fputc('\n', to);
    if (result->transfer_count > 0)
        fprintf(to, "transfer   plain copies of that size: pinned %sB/s (%s of it reached), pageable %sB/s\n",
                LB_SHORT(device.pinned_bytes_per_s.median), LB_PERCENT(device.share_of_pinned_percent.median),
                LB_SHORT(device.pageable_bytes_per_s.median));
}

/* Prints where the bytes came from, because rates from the page cache differ from those of the disk. */
static void print_cache(const struct lb_result *result, FILE *to)
{
    const struct lb_run *first = &result->runs[0], *last = &result->runs[result->run_count - 1];
    const struct lb_files *files = &result->facts.data;
    int64_t disk_bytes = 0;

    fprintf(to, "cache      %s: ", lb_cache_words[result->config->bench.cache]);
    if (files->count == 0) {
        fputs("the data is not in files\n", to);
        return;
    }
    fprintf(to, "%" PRId64 " file%s, %sB; ", files->count, files->count == 1 ? "" : "s",
            LB_SHORT((double)files->bytes));
    if (!first->before.known)
        fprintf(to, "it is unknown how much of them is in memory (%s)", first->before.why);
    else if (!last->after.known)
        fprintf(to, "%.1f %% of them in memory before, unknown afterwards (%s)",
                100 * lb_residency_share(&first->before), last->after.why);
    else
        fprintf(to, "%.1f %% of them in memory before the first repeat, %.1f %% after the last",
                100 * lb_residency_share(&first->before), 100 * lb_residency_share(&last->after));
    if (first->before.known && first->before.asked < first->before.files)
        fprintf(to, " (of %" PRId64 " of the files)", first->before.asked);
    for (int i = 0; i < result->run_count; i++)
        disk_bytes =
            disk_bytes < 0 || result->runs[i].usage.disk_bytes < 0 ? -1 : disk_bytes + result->runs[i].usage.disk_bytes;
    if (disk_bytes == 0)
        fputs("; nothing was read from a disk during the measurement, so the rate is that of memory", to);
    else if (disk_bytes > 0)
        fprintf(to, "; %sB read from a disk during the measurement%s", LB_SHORT((double)disk_bytes),
                result->run_count > 1 ? " in all repeats together" : "");
    fputc('\n', to);
}

/* Reports the worst repeat. */
static void print_steady(const struct lb_result *result, FILE *to)
{
    static const int badness[] = {
        [LB_STEADY_SETTLED] = 0, [LB_STEADY_UNKNOWN] = 1, [LB_STEADY_NOISY] = 2, [LB_STEADY_DRIFTS] = 3};
    const struct lb_steady *worst = &result->runs[0].steady;
    char text[160];
    int settled = 0;

    for (int i = 0; i < result->run_count; i++) {
        const struct lb_steady *one = &result->runs[i].steady;
        settled += one->kind == LB_STEADY_SETTLED;
        worst = badness[one->kind] > badness[worst->kind] ? one : worst;
    }
    if (worst->kind == LB_STEADY_UNKNOWN) {
        fprintf(to, "steady     unknown: %d interval%s, at least %d are needed\n", worst->intervals,
                worst->intervals == 1 ? "" : "s", LB_STEADY_LEAST);
        return;
    }
    fprintf(to, "steady     %d of %d repeat%s settled; ", settled, result->run_count,
            result->run_count == 1 ? "" : "s");
    if (worst->kind != LB_STEADY_SETTLED)
        fprintf(to, worst->kind == LB_STEADY_DRIFTS ? "one drifts: " : "one varies too much to decide: ");
    lb_steady_text(worst, text, sizeof text);
    fputs(text, to);
    if (worst->kind == LB_STEADY_DRIFTS && worst->settled_after_s >= 0)
        fprintf(to, "; it settled after %s s: raise bench.ramp by that", LB_NUMBER(worst->settled_after_s));
    else if (worst->kind == LB_STEADY_DRIFTS)
        fputs("; raise bench.ramp and bench.run_time", to);
    fputc('\n', to);
}

static void print_utilization(const struct lb_result *result, FILE *to)
{
    const struct lb_bench *bench = &result->config->bench;
    const struct lb_preset *preset = &lb_presets[bench->preset];
    const struct lb_summary au = lb_result_utilization(result);
    const struct lb_run *last = &result->runs[result->run_count - 1];

    if (bench->consumer != LB_CONSUMER_STEP)
        return;
    if (au.median < 0) {
        fputs("AU         unknown: there was only the first step, which does not count\n", to);
        return;
    }
    fprintf(to, "AU         %.1f %% accelerator utilization, %.1f %% required: %s; steps of %s ms", 100 * au.median,
            100 * bench->au_required, au.median >= bench->au_required ? "passes" : "does not pass",
            LB_NUMBER((double)bench->step_time / 1e6));
    if (bench->preset > 0)
        fprintf(to, " (MLPerf Storage %s, %s)", preset->name, preset->edition);
    fputc('\n', to);
    const double taken = lb_ratio((double)last->consume_ns, (double)last->batches);
    if (taken > 1.05 * (double)bench->step_time)
        fprintf(to,
                "note       steps took %s ms instead of %s: their thread was woken late, because other programs or the "
                "workers used the processors; the excess counts as waiting\n",
                LB_NUMBER(taken / 1e6), LB_NUMBER((double)bench->step_time / 1e6));
    if (bench->preset == 0 || last->batches == 0)
        return;
    const double batch = (double)last->samples / (double)last->batches;
    if (batch < 0.999 * (double)preset->batch_size || batch > 1.001 * (double)preset->batch_size)
        fprintf(to, "note       %s has batches of %" PRId64 " samples, these have %s\n", preset->name,
                preset->batch_size, LB_NUMBER(batch));
    const double record = lb_ratio((double)result->facts.data.bytes, (double)result->facts.samples);
    if (record < 0.9 * preset->record_bytes || record > 1.1 * preset->record_bytes)
        fprintf(to,
                "note       %s has records of %sB, these have %sB: the result is not comparable with the workload\n",
                preset->name, LB_SHORT(preset->record_bytes), LB_SHORT(record));
}

/* Stage times are wall-clock times, in which waiting for a processor looks like work. */
static void print_others(const struct lb_result *result, FILE *to)
{
    struct lb_quiet quiet;
    char text[120];

    lb_result_quiet(result, &quiet);
    if (!quiet.known && quiet.loud == 0) {
        fprintf(to, "others     the CPU usage of other programs is unknown: %s\n", quiet.why);
        return;
    }
    lb_quiet_text(&quiet, text, sizeof text);
    fprintf(to, "others     %s while measured", text);
    if (quiet.loud == 0)
        fputs(": the run was quiet\n", to);
    else if (quiet.repeats == 1)
        fputs(": the run was not quiet, so its rates are too low and conclusions are less certain\n", to);
    else
        fprintf(to, ": %d of %d repeats %s not quiet, so rates are too low and conclusions are less certain\n",
                quiet.loud, quiet.repeats, quiet.loud == 1 ? "was" : "were");
}

static void print_timer(const struct lb_result *result, FILE *to)
{
    int64_t record_ns = 0, elapsed_ns = 0;

    for (int i = 0; i < result->run_count; i++) {
        record_ns += result->runs[i].record_ns;
        elapsed_ns += result->runs[i].elapsed_ns;
    }
    fprintf(to,
            "clock      a reading takes %s ns, its resolution is %" PRId64
            " ns; recording the intervals took %.2f %% of the time\n",
            LB_NUMBER(result->timer.overhead_ns), result->timer.resolution_ns,
            100 * lb_ratio((double)record_ns, (double)elapsed_ns));
}

void lb_print_text(const struct lb_result *result, FILE *to)
{
    const struct lb_run *last = &result->runs[result->run_count - 1];
    const bool color = live_takes_color(fileno(to));
    struct lb_verdict verdict;

    print_machine(result, to);
    if (result->config->source) { /* only the batches and their times are known */
        print_method(result, to);
        print_figures(result, to);
        fputc('\n', to);
        print_timer(result, to);
        print_others(result, to);
        print_steady(result, to);
        print_utilization(result, to);
        return;
    }
    print_fields(result, to);
    print_order(result, to);
    print_method(result, to);
    print_figures(result, to);
    print_stages(result, to);
    if (result->config->bench.consumer == LB_CONSUMER_TOUCH)
        fprintf(to, "\nchecksum   %016" PRIx64 " of every byte of the last repeat\n",
                result->runs[result->run_count - 1].checksum);
    if (last->digest.end_step >= 0)
        fprintf(to, "%sdigest     %s of the last repeat, steps %" PRId64 " to %" PRId64 "\n",
                result->config->bench.consumer == LB_CONSUMER_TOUCH ? "" : "\n", last->digest.text,
                last->digest.first_step, last->digest.end_step - 1);
    fputc('\n', to);
    print_timer(result, to);
    print_cache(result, to);
    print_others(result, to);
    print_steady(result, to);
    print_utilization(result, to);
    print_device(result, to);
    print_limit(result, to);
    print_bounds(result, to);
    lb_result_verdict(result, &verdict);
    fprintf(to, "verdict    %s%s%s", color ? "\033[1m" : "", verdict.text, color ? "\033[0m" : "");
    if (verdict.bottleneck != LB_BOTTLENECK_UNKNOWN)
        fprintf(to, " (confidence: %s%s%s)", lb_confidence_words[verdict.confidence], verdict.doubt[0] ? ": " : "",
                verdict.doubt);
    fputc('\n', to);
    lb_predict_print(&result->predictions, to);
}
