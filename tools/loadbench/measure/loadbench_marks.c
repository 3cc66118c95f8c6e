/* loadbench_marks.c: see loadbench_marks.h. Marks hold sums since the opening, so that leaving one out joins its two
 * intervals and nothing else is to be done. */
#include "loadbench_marks.h"
#include "allocate.h"
#include "error.h"
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

/* Every second one goes, but for the ends, and the one at which the measurement begins. */
static void thin(struct lb_marks *marks)
{
    int kept = 0, first = marks->first;

    for (int i = 0; i < marks->count; i++) {
        const int place = i <= marks->first ? i : i - marks->first; /* counted from the beginning of its own part */
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

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void log_worker(FILE *to, int number, const stk_worker_stats *a, const stk_worker_stats *b)
{
    fprintf(to,
            "%s{\"tile_count\": %" PRId64 ", \"order_work_ns\": %" PRId64 ", \"read_work_ns\": %" PRId64
            ", \"decode_work_ns\": %" PRId64 ", \"inflate_work_ns\": %" PRId64 ", \"call_work_ns\": %" PRId64
            ", \"page_wait_ns\": %" PRId64 ", \"convert_work_ns\": %" PRId64 ", \"wait_for_slot_ns\": %" PRId64
            ", \"wait_for_work_ns\": %" PRId64 "}",
            number > 0 ? ", " : "", b->tiles - a->tiles, b->order_ns - a->order_ns, b->read_ns - a->read_ns,
            b->decode_ns - a->decode_ns, b->inflate_ns - a->inflate_ns, b->call_ns - a->call_ns,
            b->page_ns - a->page_ns, b->convert_ns - a->convert_ns, b->wait_slot_ns - a->wait_slot_ns,
            b->wait_work_ns - a->wait_work_ns);
}

stk_status lb_log_open(struct lb_log *log, const char *path, stk_error *err)
{
    *log = (struct lb_log){.path = path, .to = fopen(path, "we")};
    return log->to ? STK_OK : stki_fail_errno(err, errno, path, "opening it for interval records");
}

/* The rest of it is of no use either. */
static void give_up(struct lb_log *log, int failed)
{
    stki_fail_errno(&log->failed, failed ? failed : EIO, log->path,
                    "writing interval records, of which the last are missing");
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
    const int64_t length = until->at_ns - from->at_ns, samples = until->samples - from->samples;
    const stk_loader_stats *a = &from->stats, *b = &until->stats;

    fprintf(to,
            "{\"repeat\": %d, \"phase\": \"%s\", \"end_ns\": %" PRId64 ", \"length_ns\": %" PRId64
            ", \"batch_count\": %" PRId64 ", \"sample_count\": %" PRId64 ", \"samples_per_s\": %.6g",
            repeat, ramp ? "ramp" : "measure", until->at_ns - open_ns, length, until->batches - from->batches, samples,
            1e9 * ratio(samples, length));
    fprintf(to,
            ", \"batch_bytes\": %" PRId64 ", \"read_bytes\": %" PRId64 ", \"written_bytes\": %" PRId64
            ", \"disk_read_bytes\": %" PRId64 ", \"next_ns\": %" PRId64 ", \"consume_ns\": %" PRId64
            ", \"consumer_wait_ns\": %" PRId64,
            b->batch_bytes - a->batch_bytes, b->bytes_read - a->bytes_read, b->bytes_written - a->bytes_written,
            until->usage.disk_bytes < 0 ? -1 : until->usage.disk_bytes - from->usage.disk_bytes,
            until->next_ns - from->next_ns, until->consume_ns - from->consume_ns, b->wait_next_ns - a->wait_next_ns);
    fprintf(to, ", \"slot_count\": %" PRId64 ", \"slots_ready_count\": %" PRId64 ", \"slots_leased_count\": %" PRId64,
            b->slots, b->slots_ready, b->slots_leased);
    fputs(", \"workers\": [", to);
    for (int i = 0; i < worker_count; i++)
        log_worker(to, i, &workers_from[i], &workers_until[i]);
    fputc(']', to);
    if (b->device_slots > 0)
        fprintf(to,
                ", \"device\": {\"copied_bytes\": %" PRId64 ", \"copy_ns\": %" PRId64 ", \"convert_ns\": %" PRId64
                ", \"exposed_ns\": %" PRId64 ", \"slots_ready_count\": %" PRId64 "}",
                b->device_bytes - a->device_bytes, b->device_copy_ns - a->device_copy_ns,
                b->device_convert_ns - a->device_convert_ns, b->device_exposed_ns - a->device_exposed_ns,
                b->device_slots_ready);
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
