/* loadbench_result.c: runs all repeats, each followed by a measurement of the machine's limit, and computes their
 * figures. */
#include "loadbench_result.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_apart.h"
#include "loadbench_consumer.h"
#include "loadbench_output.h"
#include "loadbench_prepare.h"
#include "loadbench_shares.h"
#include "loadbench_step.h"
#include "loadbench_stop.h"
#include "text_json.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static double moved_bytes_per_s(const struct lb_run *run)
{
    return lb_ratio((double)(run->stats.bytes_read + run->stats.bytes_written), seconds(run->elapsed_ns));
}

struct lb_summary lb_result_figure(const struct lb_result *result, const struct lb_figure *figure)
{
    double values[LB_REPEATS];
    int count = 0;

    for (; count < result->run_count && count < LB_REPEATS; count++)
        values[count] = lb_figure_value(figure, &result->runs[count]);
    return lb_summarize(values, count);
}

double lb_result_samples_per_s(const struct lb_result *result)
{
    return lb_result_figure(result, &lb_figures[0]).median;
}

struct lb_limit_summary lb_result_limits(const struct lb_result *result)
{
    double gather[LB_REPEATS], plain[LB_REPEATS], of_gather[LB_REPEATS], of_plain[LB_REPEATS];
    int count = 0;

    for (; count < result->limit_count && count < LB_REPEATS; count++) {
        const double moved = moved_bytes_per_s(&result->runs[count]);
        gather[count] = result->limits[count].gather.bytes_per_s;
        plain[count] = result->limits[count].memcpy.bytes_per_s;
        of_gather[count] = 100 * lb_ratio(moved, gather[count]);
        of_plain[count] = 100 * lb_ratio(moved, plain[count]);
    }
    return (struct lb_limit_summary){
        .gather_bytes_per_s = lb_summarize(gather, count),
        .memcpy_bytes_per_s = lb_summarize(plain, count),
        .share_of_gather_percent = lb_summarize(of_gather, count),
        .share_of_memcpy_percent = lb_summarize(of_plain, count),
        .first = count > 0 ? result->limits[0] : (struct lb_limit){.threads = 0},
    };
}

struct lb_device_summary lb_result_device(const struct lb_result *result)
{
    struct lb_device_summary out = {.step_ns = result->config->bench.step_time};
    double copy[LB_REPEATS], hidden[LB_REPEATS], convert[LB_REPEATS], step[LB_REPEATS], pinned[LB_REPEATS],
        pageable[LB_REPEATS], share[LB_REPEATS];
    int count = 0, plain = 0;

    snprintf(out.name, sizeof out.name, "%s", result->facts.effective.device);
    for (; out.name[0] && count < result->run_count && count < LB_REPEATS; count++) {
        const struct lb_run *run = &result->runs[count];
        const stk_loader_stats *stats = &run->stats;
        const double moving = (double)(stats->device_copy_ns + stats->device_convert_ns);
        out.batch_bytes = lb_ratio((double)stats->device_bytes, (double)stats->device_batches);
        copy[count] = 1e9 * lb_ratio((double)stats->device_bytes, (double)stats->device_copy_ns);
        hidden[count] = moving > 0 ? 100 * fmax(0, 1 - (double)stats->device_exposed_ns / moving) : 0;
        convert[count] = 100 * lb_ratio((double)stats->device_convert_ns, (double)run->elapsed_ns);
        step[count] = 100 * lb_step_share(run, result->config->bench.step_time);
        if (count >= result->transfer_count)
            continue;
        pinned[plain] = result->transfers[count].pinned_bytes_per_s;
        pageable[plain] = result->transfers[count].pageable_bytes_per_s;
        share[plain] = 100 * lb_ratio(copy[count], pinned[plain]);
        plain++;
    }
    out.copy_bytes_per_s = lb_summarize(copy, count);
    out.hidden_percent = lb_summarize(hidden, count);
    out.convert_percent = lb_summarize(convert, count);
    out.step_percent = lb_summarize(step, count);
    out.pinned_bytes_per_s = lb_summarize(pinned, plain);
    out.pageable_bytes_per_s = lb_summarize(pageable, plain);
    out.share_of_pinned_percent = lb_summarize(share, plain);
    return out;
}

struct lb_summary lb_result_utilization(const struct lb_result *result)
{
    const int64_t step_ns = result->config->bench.step_time;
    double values[LB_REPEATS];
    int count = 0;

    if (result->config->bench.consumer != LB_CONSUMER_STEP)
        return (struct lb_summary){.median = -1, .low = -1, .high = -1};
    for (int i = 0; i < result->run_count && i < LB_REPEATS; i++) {
        const double au = lb_utilization(result->runs[i].au_steps, step_ns, result->runs[i].au_span_ns);
        if (au >= 0)
            values[count++] = au;
    }
    return count > 0 ? lb_summarize(values, count) : (struct lb_summary){.median = -1, .low = -1, .high = -1};
}

/* If the ratio of threads that wait for a processor to running threads is above this, the process lacks processors. */
#define HUNGRY 0.2

/* Whether threads often waited for a processor because they were preempted, and not only because they had just woken
 * up. That is the case if they were preempted more often than they went to sleep. */
static bool lacks_processors(const struct lb_run *runs, int count, double own)
{
    int64_t put_aside = 0, slept = 0;
    double queued = 0, span = 0;

    for (int i = 0; i < count; i++) {
        put_aside += runs[i].usage.involuntary_switches;
        slept += runs[i].usage.voluntary_switches;
        if (runs[i].others.known && runs[i].others.queued >= 0) {
            queued += runs[i].others.queued * (double)runs[i].others.span_ns;
            span += (double)runs[i].others.span_ns;
        }
    }
    return lb_ratio(queued, span) > HUNGRY * own && put_aside > slept;
}

/* Processors available to this process: those that it may use (by affinity or quota) minus those used by others, but at
 * least as many as it used. If its threads did not lack processors, more were available: at least half of those that it
 * may use. */
static double cores_of(const struct lb_machine *machine, const struct lb_run *runs, int count, double own)
{
    const double allowed = (double)machine->cores_allowed;
    const double most = machine->cpu_quota > 0 && machine->cpu_quota < allowed ? machine->cpu_quota : allowed;
    double others = 0, span = 0;

    for (int i = 0; i < count; i++)
        if (runs[i].others.known) {
            others += runs[i].others.used * (double)runs[i].others.span_ns;
            span += (double)runs[i].others.span_ns;
        }
    return fmax(most - lb_ratio(others, span), lacks_processors(runs, count, own) ? own : fmax(own, most / 2));
}

/* Fraction of the disk's limit that was reached; 0: not applicable. */
static double disk_share(const struct lb_result *result)
{
    struct lb_bound bounds[LB_BOUND_KINDS];
    const int count = lb_result_bounds(result, bounds);

    for (int i = 0; i < count; i++)
        if (bounds[i].kind == LB_BOUND_DISK && bounds[i].applies)
            return bounds[i].share_percent / 100;
    return 0;
}

static struct lb_shares shares_of(const struct lb_result *result, int first, int count)
{
    const struct lb_bench *bench = &result->config->bench;
    struct lb_shares shares =
        lb_shares_of(&result->runs[first], count, bench->consumer == LB_CONSUMER_DEVICE, bench->step_time);
    double ready = 0;

    for (int i = first; i < first + count; i++)
        ready += lb_ready_share(result->marks[i]);
    shares.ready = lb_ratio(ready, count);
    shares.limit = lb_result_limits(result).share_of_gather_percent.median / 100;
    shares.disk = disk_share(result);
    for (int i = first; i < first + count; i++)
        shares.cpu_s += seconds(result->runs[i].usage.user_ns + result->runs[i].usage.system_ns);
    shares.cores = cores_of(&result->machine, &result->runs[first], count, lb_ratio(shares.cpu_s, shares.elapsed_s));
    for (int i = first; i < first + count; i++)
        shares.throttled += result->runs[i].others.throttled / count;
    shares.device_slots = result->runs[first].stats.device_slots;
    shares.random = result->facts.effective.random;
    return shares;
}

struct lb_shares lb_result_shares(const struct lb_result *result)
{
    return shares_of(result, 0, result->run_count);
}

void lb_result_quiet(const struct lb_result *result, struct lb_quiet *out)
{
    struct lb_others each[LB_REPEATS];
    int count = 0;

    for (; count < result->run_count && count < LB_REPEATS; count++)
        each[count] = result->runs[count].others;
    lb_quiet_of(each, count, out);
}

void lb_result_verdict(const struct lb_result *result, struct lb_verdict *out)
{
    const struct lb_shares all = lb_result_shares(result);
    struct lb_shares each[LB_REPEATS];
    struct lb_quiet quiet;
    int count = 0;

    for (; count < result->run_count && count < LB_REPEATS; count++)
        each[count] = shares_of(result, count, 1);
    lb_verdict(&all, out);
    lb_verdict_agree(each, count, out);
    lb_result_quiet(result, &quiet);
    lb_verdict_quiet(&quiet, out);
}

/* Returns the path of a field's first file as it was opened, to be freed with stki_free; NULL: there is none. */
static char *field_path(const struct lb_result *result, const char *name)
{
    const json_t *field = lb_effective_field(&result->facts.effective, name);

    return stki_text_of_json(json_array_get(json_object_get(field, "path"), 0));
}

/* Counts a measurement that succeeded, or records why it is missing. */
static void note_missing(struct lb_result *result, stk_status status, int *count, const stk_error *err)
{
    if (status == STK_OK)
        ++*count;
    else
        snprintf(result->limit_missing, sizeof result->limit_missing, "%.255s",
                 status == STK_END ? LB_STOPPED : err->message);
}

/* Measures the limit for the field with the largest samples, which moves nearly all of the bytes. */
static void measure_limit(struct lb_result *result, const struct lb_run *run)
{
    const struct lb_field *largest = &result->facts.fields[0];
    stk_error err;

    for (int i = 1; i < result->facts.field_count; i++)
        if (result->facts.fields[i].sample_bytes > largest->sample_bytes)
            largest = &result->facts.fields[i];
    char *path = field_path(result, largest->name);
    const struct lb_limit_ask ask = {
        .threads = run->stats.workers > 0 ? (int)run->stats.workers : 1,
        .row_bytes = largest->sample_bytes > 0 ? largest->sample_bytes
                                               : run->stats.bytes_read / (run->samples > 0 ? run->samples : 1),
        .row_count = result->facts.samples,
        .slot_bytes = run->stats.slot_bytes,
        .random = result->facts.effective.random,
        .path = path,
        .time_ns = result->config->bench.limit_time,
    };
    struct lb_limit *limit = &result->limits[result->limit_count];

    note_missing(result, lb_apart_limit(&ask, limit, &err), &result->limit_count, &err);
    stki_free(path);
}

/* Measures plain copies of the size of a batch, after the repeat. */
static void measure_transfer(struct lb_result *result, const struct lb_run *run)
{
    const stk_loader_stats *stats = &run->stats;
    const char *device = result->facts.effective.device;
    stk_error err;

    if (!device[0] || stats->device_batches == 0)
        return;
    note_missing(result,
                 lb_transfer_measure(device, stats->device_bytes / stats->device_batches,
                                     (int)(stats->slots > stats->device_slots ? stats->slots : stats->device_slots),
                                     result->config->bench.limit_time, &result->transfers[result->transfer_count],
                                     &err),
                 &result->transfer_count, &err);
}

static void write_time(char *out, int size)
{
    const time_t now = time(NULL);
    struct tm parts;

    if (!gmtime_r(&now, &parts) || strftime(out, (size_t)size, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        out[0] = '\0';
}

static stk_status make_room(const struct lb_config *config, struct lb_result *out, stk_error *err)
{
    const int repeats = (int)config->bench.repeats;

    memset(out, 0, sizeof *out);
    out->config = config;
    stki_histogram_init(&out->waits);
    stki_histogram_init(&out->whole_waits);
    stki_histogram_init(&out->gaps);
    stki_histogram_init(&out->whole_gaps);
    out->runs = stki_zalloc_array(repeats, sizeof *out->runs);
    out->whole_runs = stki_zalloc_array(repeats, sizeof *out->whole_runs);
    out->limits = stki_zalloc_array(repeats, sizeof *out->limits);
    out->transfers = stki_zalloc_array(repeats, sizeof *out->transfers);
    out->repeat = stki_zalloc(sizeof *out->repeat);
    out->marks = stki_zalloc_array(repeats, sizeof(struct lb_marks *));
    if (!out->runs || !out->whole_runs || !out->limits || !out->transfers || !out->repeat || !out->marks)
        return stki_fail_memory(err, repeats * (int64_t)(2 * sizeof *out->runs), "the results");
    return STK_OK;
}

/* Stores the repeat. A repeat that was interrupted during its ramp cannot be compared, and is only stored if there is
 * no other. */
static bool keep(struct lb_result *result)
{
    struct lb_repeat *repeat = result->repeat;

    if (repeat->steady.within_ramp && repeat->steady.ending == LB_END_SIGNAL && result->run_count > 0)
        return false;
    result->runs[result->run_count] = repeat->steady;
    result->whole_runs[result->run_count] = repeat->whole;
    result->marks[result->run_count] = repeat->marks;
    repeat->marks = NULL;
    result->run_count++;
    /* a cold start includes reads while the loader is opened */
    result->from_open = result->from_open || repeat->steady.within_ramp || result->config->bench.cache == LB_CACHE_COLD;
    stki_histogram_merge(&result->waits, &repeat->steady_waits);
    stki_histogram_merge(&result->whole_waits, &repeat->whole_waits);
    stki_histogram_merge(&result->gaps, &repeat->steady_gaps);
    stki_histogram_merge(&result->whole_gaps, &repeat->whole_gaps);
    return true;
}

/* Uses the same span for all repeats, because otherwise their median would be meaningless. */
static void decide_span(struct lb_result *result)
{
    if (!result->from_open)
        return;
    memcpy(result->runs, result->whole_runs, (size_t)result->run_count * sizeof *result->runs);
    stki_histogram_init(&result->waits);
    stki_histogram_merge(&result->waits, &result->whole_waits);
    stki_histogram_init(&result->gaps);
    stki_histogram_merge(&result->gaps, &result->whole_gaps);
}

static stk_status run_repeats(const struct lb_config *config, struct lb_live *live, struct lb_result *out,
                              stk_error *err)
{
    while (out->run_count < (int)config->bench.repeats && !lb_stop_asked) {
        lb_live_repeat(live, out->run_count + 1, stki_now_ns());
        lb_marks_destroy(out->repeat->marks);
        out->repeat->marks = NULL;
        const stk_status status =
            lb_run(config, live, &out->facts, out->run_count + 1, &out->intervals, out->repeat, err);
        if (status != STK_OK)
            return status == STK_END ? STK_OK : status;
        if (!keep(out))
            break;
        if (config->bench.limit && !lb_stop_asked && out->limit_count == out->run_count - 1)
            measure_limit(out, &out->repeat->steady);
        if (config->bench.limit && !lb_stop_asked && out->transfer_count == out->run_count - 1)
            measure_transfer(out, &out->repeat->steady);
    }
    return STK_OK;
}

static void look_around(struct lb_result *result)
{
    const char *device = result->facts.effective.device;

    if (result->facts.data.count > 0)
        lb_place_read(result->facts.data.paths[0], "/proc/self/mountinfo", &result->place);
    if (device[0])
        lb_gpu_read(device, "/sys", &result->gpu);
}

/* Opens the file of intervals before anything is measured. It is checked before it is truncated, because it may be a
 * data file. */
static stk_status open_intervals(const struct lb_config *config, struct lb_result *out, stk_error *err)
{
    stk_status status = STK_OK;

    if (!config->intervals)
        return STK_OK;
    if (!config->source)
        status = lb_prepare_files(config, &out->facts, err);
    if (status == STK_OK)
        status = lb_output_check("--intervals", config->intervals, &out->facts.data, err);
    return status == STK_OK ? lb_log_open(&out->intervals, config->intervals, err) : status;
}

stk_status lb_result_measure(const struct lb_config *config, struct lb_result *out, stk_error *err)
{
    struct lb_live live;
    stk_status status = make_room(config, out, err);

    if (status != STK_OK)
        return status;
    lb_machine_read(&out->machine);
    out->timer = lb_timer_measure();
    write_time(out->started, sizeof out->started);
    lb_live_init(&live, config->name, (int)config->bench.repeats);
    status = open_intervals(config, out, err);
    if (status == STK_OK)
        status = run_repeats(config, &live, out, err);
    (void)lb_log_close(&out->intervals); /* missing lines are reported together with the result */
    if (status != STK_OK)
        return status;
    look_around(out);
    if (out->run_count > 0 && config->bench.limit && !lb_stop_asked)
        lb_once_measure(out);
    decide_span(out);
    if (out->run_count > 0 && !config->source)
        lb_predict(out, &out->predictions);
    return out->run_count > 0 ? STK_OK : STK_END;
}

void lb_result_fini(struct lb_result *result)
{
    lb_facts_fini(&result->facts);
    stki_free(result->runs);
    stki_free(result->whole_runs);
    stki_free(result->limits);
    stki_free(result->transfers);
    for (int i = 0; result->marks && i < result->run_count; i++)
        lb_marks_destroy(result->marks[i]);
    stki_free(result->marks);
    if (result->repeat)
        lb_marks_destroy(result->repeat->marks);
    stki_free(result->repeat);
    memset(result, 0, sizeof *result);
}

/* Adds the strings of a NULL-terminated list. */
static void add_texts(const char **all, int *count, const char *const *texts)
{
    for (int i = 0; texts[i]; i++)
        all[(*count)++] = texts[i];
}

static int length_of(const char *const *texts)
{
    int length = 0;

    while (texts[length])
        length++;
    return length;
}

stk_status lb_point_measure(const char *path, const char *const *defaults, const char *const *sets, int set_count,
                            const char *const *own, struct lb_point **out, stk_error *err)
{
    const char **all = stki_zalloc_array(length_of(defaults) + set_count + length_of(own) + 1, sizeof *all);
    struct lb_point *point = stki_zalloc(sizeof *point);
    stk_status status = all && point ? STK_OK : stki_fail_memory(err, sizeof *point, "the result");
    int count = 0;

    *out = NULL;
    if (status == STK_OK) {
        add_texts(all, &count, defaults);
        for (int i = 0; i < set_count; i++)
            all[count++] = sets[i];
        add_texts(all, &count, own);
        status = lb_config_open(path, all, count, false, &point->config, err);
    }
    if (status == STK_OK)
        status = lb_result_measure(&point->config, &point->result, err);
    stki_free(all);
    if (status == STK_OK)
        *out = point;
    else
        lb_point_destroy(point);
    return status;
}

void lb_point_destroy(struct lb_point *point)
{
    if (!point)
        return;
    lb_result_fini(&point->result);
    lb_config_close(&point->config);
    stki_free(point);
}
