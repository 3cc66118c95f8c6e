/* loadbench_marks.c: see loadbench_marks.h. Marks are totals since the loader was opened, so removing a mark merges
 * the intervals before and after it. */
#include "loadbench_marks.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_clocks.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

stk_status lb_marks_create(int worker_count, int64_t period_ns, struct lb_marks **out, stk_error *err)
{
    struct lb_marks *marks = stki_zalloc(sizeof *marks);

    *out = NULL;
    if (!marks)
        return stki_fail_memory(err, sizeof *marks, "the intervals");
    marks->worker_count = worker_count > 0 ? worker_count : 1;
    marks->first = -1;
    marks->period_ns = period_ns;
    marks->marks = stki_zalloc_array(LB_MARKS, sizeof *marks->marks);
    marks->workers = stki_zalloc_array(LB_MARKS, marks->worker_count * (int64_t)sizeof *marks->workers);
    if (!marks->marks || !marks->workers) {
        lb_marks_destroy(marks);
        return stki_fail_memory(err, LB_MARKS * (int64_t)sizeof *marks->marks, "the intervals");
    }
    *out = marks;
    return STK_OK;
}

void lb_marks_destroy(struct lb_marks *marks)
{
    if (!marks)
        return;
    stki_free(marks->marks);
    stki_free(marks->workers);
    stki_free(marks);
}

static void move(struct lb_marks *marks, int to, int from)
{
    const size_t bytes = (size_t)marks->worker_count * sizeof *marks->workers;

    if (to == from)
        return;
    marks->marks[to] = marks->marks[from];
    memcpy(marks->workers + (int64_t)to * marks->worker_count, marks->workers + (int64_t)from * marks->worker_count,
           bytes);
}

/* Removes every second mark, but keeps the first, the last and the start of the measurement. */
static void thin(struct lb_marks *marks)
{
    int kept = 0, first = marks->first;

    for (int i = 0; i < marks->count; i++) {
        const int place =
            i <= marks->first ? i : i - marks->first; /* index within its phase (before or after mark `first`) */
        if (place % 2 != 0 && i != marks->first && i != marks->count - 1)
            continue;
        if (i == marks->first)
            first = kept;
        move(marks, kept++, i);
    }
    marks->count = kept;
    marks->first = first;
    marks->period_ns *= 2;
}

void lb_marks_add(struct lb_marks *marks, const struct lb_mark *mark, const stk_worker_stats *workers, bool begins)
{
    if (marks->count == LB_MARKS)
        thin(marks);
    marks->marks[marks->count] = *mark;
    memcpy(marks->workers + (int64_t)marks->count * marks->worker_count, workers,
           (size_t)marks->worker_count * sizeof *workers);
    if (begins)
        marks->first = marks->count;
    marks->count++;
    marks->due_ns = mark->at_ns + marks->period_ns;
}

void lb_marks_ask(const stk_loader *loader, int worker_count, stk_worker_stats *out)
{
    for (int i = 0; i < worker_count; i++) {
        out[i] = (stk_worker_stats){.struct_size = sizeof *out};
        if (stk_loader_worker(loader, i, &out[i], NULL) != STK_OK)
            out[i] = (stk_worker_stats){.struct_size = sizeof *out};
    }
}

#define COUNT(member) .group = LB_INTERVAL_COUNTS, LB_MEMBER(struct lb_mark, member)
#define FLOW(member) .group = LB_INTERVAL_FLOW, LB_MEMBER(struct lb_mark, member)
#define DEVICE(member) .group = LB_INTERVAL_DEVICE, LB_MEMBER(struct lb_mark, stats.member)
#define WORKER(member, key) {key, .group = LB_INTERVAL_WORKER, LB_MEMBER(stk_worker_stats, member)},

const struct lb_figure lb_interval_figures[] = {
    {"length_ns", COUNT(at_ns)},
    {"batch_count", COUNT(batches)},
    {"sample_count", COUNT(samples)},
    {"batch_bytes", FLOW(stats.batch_bytes)},
    {"read_bytes", FLOW(stats.bytes_read), .log_only = true},
    {"written_bytes", FLOW(stats.bytes_written), .log_only = true},
    {"disk_read_bytes", FLOW(usage.disk_bytes)},
    {"next_ns", FLOW(next_ns)},
    {"consume_ns", FLOW(consume_ns)},
    {"consumer_wait_ns", FLOW(stats.wait_next_ns)},
    {"slot_count", FLOW(stats.slots), .level = true, .log_only = true},
    {"slots_ready_count", FLOW(stats.slots_ready), .level = true},
    {"slots_leased_count", FLOW(stats.slots_leased), .level = true, .log_only = true},
    {"tile_count", .group = LB_INTERVAL_WORKER, LB_MEMBER(stk_worker_stats, tiles), .log_only = true},
    LB_WORKER_CLOCKS(WORKER){"copied_bytes", DEVICE(device_bytes)},
    {"copy_ns", DEVICE(device_copy_ns)},
    {"convert_ns", DEVICE(device_convert_ns)},
    {"exposed_ns", DEVICE(device_exposed_ns)},
    {"slots_ready_count", DEVICE(device_slots_ready), .level = true},
};
const int lb_interval_figure_count = sizeof lb_interval_figures / sizeof lb_interval_figures[0];

int64_t lb_interval_value(const struct lb_figure *figure, const void *from, const void *until)
{
    const int64_t end = lb_figure_integer(figure, until);

    return figure->level ? end : end < 0 ? -1 : end - lb_figure_integer(figure, from);
}

/* Writes the figures of a group as members of a JSON object. `before` is written before the first one. */
static void log_group(FILE *to, int group, const void *from, const void *until, const char *before)
{
    for (int i = 0; i < lb_interval_figure_count; i++) {
        const struct lb_figure *figure = &lb_interval_figures[i];
        if (figure->group != group)
            continue;
        fprintf(to, "%s\"%s\": %" PRId64, before, figure->key, lb_interval_value(figure, from, until));
        before = ", ";
    }
}

stk_status lb_log_open(struct lb_log *log, const char *path, stk_error *err)
{
    *log = (struct lb_log){.path = path, .to = fopen(path, "we")};
    return log->to ? STK_OK : stki_fail_errno(err, errno, path, "opening it for interval records");
}

/* Stops logging after a failure. */
static void give_up(struct lb_log *log, int failed)
{
    stki_fail_errno(&log->failed, failed ? failed : EIO, log->path,
                    "the last interval records are missing, because writing failed");
    if (log->to)
        fclose(log->to);
    log->to = NULL;
}

stk_status lb_log_close(struct lb_log *log)
{
    FILE *to = log->to;

    log->to = NULL;
    if (to && fclose(to) != 0)
        give_up(log, errno);
    return log->failed.status;
}

static void write_record(FILE *to, int repeat, bool ramp, int64_t open_ns, const struct lb_mark *from,
                         const struct lb_mark *until, int worker_count, const stk_worker_stats *workers_from,
                         const stk_worker_stats *workers_until)
{
    fprintf(to, "{\"repeat\": %d, \"phase\": \"%s\", \"end_ns\": %" PRId64, repeat, ramp ? "ramp" : "measure",
            until->at_ns - open_ns);
    log_group(to, LB_INTERVAL_COUNTS, from, until, ", ");
    fprintf(to, ", \"samples_per_s\": %.6g",
            1e9 * lb_ratio((double)(until->samples - from->samples), (double)(until->at_ns - from->at_ns)));
    log_group(to, LB_INTERVAL_FLOW, from, until, ", ");
    fputs(", \"workers\": [", to);
    for (int i = 0; i < worker_count; i++) {
        log_group(to, LB_INTERVAL_WORKER, &workers_from[i], &workers_until[i], i > 0 ? ", {" : "{");
        fputc('}', to);
    }
    fputc(']', to);
    if (until->stats.device_slots > 0) {
        log_group(to, LB_INTERVAL_DEVICE, from, until, ", \"device\": {");
        fputc('}', to);
    }
    fputs("}\n", to);
}

void lb_marks_log(struct lb_log *log, int repeat, bool ramp, int64_t open_ns, const struct lb_mark *from,
                  const struct lb_mark *until, int worker_count, const stk_worker_stats *workers_from,
                  const stk_worker_stats *workers_until)
{
    if (!log->to)
        return;
    errno = 0;
    write_record(log->to, repeat, ramp, open_ns, from, until, worker_count, workers_from, workers_until);
    if (ferror(log->to))
        give_up(log, errno);
}
