/* stoker_prep_show.c: see stoker_prep_show.h. The library reports totals. Rates are those of the last seconds: a
 * ring buffer of samples is kept, and the newest sample is compared with the oldest. The remaining time is estimated
 * from the mean of that rate, once it is known, and the rate of the whole phase. */
#include "stoker_prep_show.h"
#include "clock.h"
#include "live_line.h"
#include "prep_phase.h"
#include "stoker_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const stage_names[ST_PREP_STAGES] = {"read", "finish", "write", "sync"};

/* 0 to 100; 100 only when everything is done. */
static int percent(const struct st_prep_figures *f)
{
    if (f->rows >= f->rows_total)
        return 100;
    return (int)(99.999 * (double)f->rows / (double)f->rows_total);
}

void st_prep_live_text(const struct st_prep_figures *f, char *out, int size)
{
    int used = 0;

    out[0] = 0;
    if (f->tasks > 1)
        used = live_part(out, size, used, "[task %" PRId64 "/%" PRId64 "]", f->task, f->tasks);
    if (f->rows_total <= 0) { /* a phase without rows */
        live_part(out, size, used, "[%s]", f->phase);
        return;
    }
    used = live_part(out, size, used, "[%s %d%%]", f->phase, percent(f));
    if (f->left_s >= 0)
        used = live_part(out, size, used, "[eta %s]", LIVE_TIME(f->left_s));
    used = live_part(out, size, used, "[%s rows/s][in %sB %sB/s][out %sB %sB/s]", LIVE_SHORT(f->rows_per_s),
                     LIVE_SHORT((double)f->bytes_in), LIVE_SHORT(f->in_per_s), LIVE_SHORT((double)f->bytes_out),
                     LIVE_SHORT(f->out_per_s));
    if (f->failed > 0)
        used = live_part(out, size, used, "[%" PRId64 " bad]", f->failed);
    if (f->bottleneck >= 0)
        live_part(out, size, used, "[bottleneck %s]", stage_names[f->bottleneck]);
}

void st_prep_log_text(const struct st_prep_figures *f, char *out, int size)
{
    int used = 0;

    out[0] = 0;
    if (f->tasks > 1)
        used = live_part(out, size, used, "task %" PRId64 "/%" PRId64 ": ", f->task, f->tasks);
    used = live_part(out, size, used, "%s: ", f->phase);
    if (f->rows_total > 0)
        used = live_part(out, size, used, "%d %%, %" PRId64 " of %" PRId64 " rows", percent(f), f->rows, f->rows_total);
    else
        used = live_part(out, size, used, "%" PRId64 " rows", f->rows);
    used = live_part(out, size, used, ", %s rows/s, in %sB at %sB/s, out %sB at %sB/s", LIVE_SHORT(f->rows_per_s),
                     LIVE_SHORT((double)f->bytes_in), LIVE_SHORT(f->in_per_s), LIVE_SHORT((double)f->bytes_out),
                     LIVE_SHORT(f->out_per_s));
    if (f->failed > 0)
        used = live_part(out, size, used, ", %" PRId64 " bad", f->failed);
    if (f->bottleneck >= 0)
        used = live_part(out, size, used, ", bottleneck %s", stage_names[f->bottleneck]);
    if (f->left_s >= 0)
        live_part(out, size, used, ", %s left", LIVE_TIME(f->left_s));
}

static json_t *known(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

json_t *st_prep_progress_json(const struct st_prep_figures *f)
{
    return json_pack(
        "{s:s, s:f, s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "event", "progress", "elapsed_s",
        f->seconds, "phase", f->phase, "task", (json_int_t)f->task, "tasks", (json_int_t)f->tasks, "rows",
        (json_int_t)f->rows, "rows_total", f->rows_total >= 0 ? json_integer(f->rows_total) : json_null(), "bytes_in",
        (json_int_t)f->bytes_in, "bytes_out", (json_int_t)f->bytes_out, "failed", (json_int_t)f->failed, "rows_per_s",
        f->rows_per_s, "bytes_in_per_s", f->in_per_s, "bytes_out_per_s", f->out_per_s, "left_s", known(f->left_s),
        "bottleneck", f->bottleneck >= 0 ? json_string(stage_names[f->bottleneck]) : json_null());
}

#define LIVE_NS (STKI_SECOND / 4)
#define JSON_NS STKI_SECOND
#define LOG_NS (5 * STKI_SECOND)
#define SAMPLE_NS (STKI_SECOND / 4) /* interval of the ring, which covers eight seconds */

void st_prep_show_init(struct st_prep_show *show, const stki_task *task, bool json, bool quiet)
{
    memset(show, 0, sizeof *show);
    show->task = task;
    show->json = json;
    show->live = !json && !quiet && live_is_terminal(STDERR_FILENO);
    show->log = !json && !quiet && !show->live;
    show->color = live_takes_color(STDERR_FILENO);
    show->phase = -1;
}

static void print_json(json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)) : NULL;

    if (text) {
        puts(text);
        fflush(stdout); /* a program may read the lines as they appear */
    }
    json_decref(line);
    free(text);
}

void st_prep_show_begin(struct st_prep_show *show)
{
    show->began_ns = stki_now_ns();
    show->due_ns = show->began_ns + (show->log ? LOG_NS : 0);
    if (show->json) {
        print_json(json_pack("{s:s, s:i, s:s, s:I, s:I, s:s}", "event", "start", "schema", 2, "version", stk_version(),
                             "task", (json_int_t)show->task->task, "tasks", (json_int_t)show->task->tasks,
                             "task_source", show->task->source));
    } else if (show->log && show->task->tasks > 1) {
        fprintf(stderr, "stoker prep: task %lld of %lld: %s%s%s%s\n", (long long)show->task->task,
                (long long)show->task->tasks, show->task->source, *show->task->why ? " (" : "", show->task->why,
                *show->task->why ? ")" : "");
    }
}

/* ---- figures ---- */

static struct st_prep_sample sample_of(const stk_prep_progress *now, int64_t now_ns)
{
    return (struct st_prep_sample){
        .ns = now_ns,
        .rows = now->rows,
        .bytes_in = now->bytes_in,
        .bytes_out = now->bytes_out,
        .stage_ns = {now->wait_rows_ns, now->wait_finish_ns, now->write_ns, now->wait_sync_ns}};
}

/* Returns the oldest sample of the last seconds; adds the new one if the interval has passed. */
static struct st_prep_sample compare_with(struct st_prep_show *show, const struct st_prep_sample *now)
{
    struct st_prep_sample *newest = &show->samples[(show->count + ST_PREP_SAMPLES - 1) % ST_PREP_SAMPLES];
    const int oldest = show->count > ST_PREP_SAMPLES ? show->count % ST_PREP_SAMPLES : 0;
    const struct st_prep_sample before = show->count ? show->samples[oldest] : *now;

    if (show->count == 0 || now->ns - newest->ns >= SAMPLE_NS) {
        show->samples[show->count % ST_PREP_SAMPLES] = *now;
        show->count++;
    }
    return before;
}

static double rate(int64_t difference, int64_t ns)
{
    return ns > 0 && difference > 0 ? (double)difference * 1e9 / (double)ns : 0;
}

/* The bottleneck is the stage in which the main thread spent most of its time, and at least 40 % of it. */
static int bottleneck_of(const struct st_prep_sample *now, const struct st_prep_sample *before)
{
    const int64_t passed = now->ns - before->ns;
    int most = 0;

    for (int i = 1; i < ST_PREP_STAGES; i++)
        if (now->stage_ns[i] - before->stage_ns[i] > now->stage_ns[most] - before->stage_ns[most])
            most = i;
    return passed > 0 && (now->stage_ns[most] - before->stage_ns[most]) * 5 >= passed * 2 ? most : -1;
}

static double seconds_left(const stk_prep_progress *now, double recent_rows_per_s)
{
    const int64_t made = now->rows - now->resumed_rows, left = now->row_total - now->rows;
    const double whole = now->elapsed_ns > 0 ? (double)made * 1e9 / (double)now->elapsed_ns : 0;
    const double expected = recent_rows_per_s > 0 ? (whole + recent_rows_per_s) / 2 : whole;

    if (now->row_total <= 0 || left < 0 || made <= 0 || now->elapsed_ns < STKI_SECOND / 2)
        return -1;
    return expected > 0 ? (double)left / expected : -1;
}

void st_prep_show_figures(struct st_prep_show *show, const stk_prep_progress *now, int64_t now_ns,
                          struct st_prep_figures *out)
{
    const struct st_prep_sample sample = sample_of(now, now_ns);
    struct st_prep_sample before;
    int64_t passed;

    if (now->phase != show->phase)
        show->count = 0;
    show->phase = now->phase;
    before = compare_with(show, &sample);
    passed = now_ns - before.ns;
    *out = (struct st_prep_figures){
        .phase = stki_prep_phase_name(now->phase),
        .task = show->task->task,
        .tasks = show->task->tasks,
        .rows = now->rows,
        .rows_total = now->row_total > 0 ? now->row_total : -1,
        .bytes_in = now->bytes_in,
        .bytes_out = now->bytes_out,
        .failed = now->failed_rows,
        .seconds = (double)(now_ns - show->began_ns) / 1e9,
        .rows_per_s = rate(sample.rows - before.rows, passed),
        .in_per_s = rate(sample.bytes_in - before.bytes_in, passed),
        .out_per_s = rate(sample.bytes_out - before.bytes_out, passed),
        .bottleneck = bottleneck_of(&sample, &before),
    };
    out->left_s = seconds_left(now, out->rows_per_s);
}

/* ---- drawing ---- */

void st_prep_show_progress(void *context, const stk_prep_progress *now)
{
    struct st_prep_show *show = context;
    struct st_prep_figures figures;
    const int64_t now_ns = stki_now_ns();
    const bool new_phase = now->phase != show->phase;
    char line[256];

    if (now->phase == STK_PREP_DONE && !show->json) /* the result is printed separately */
        return;
    st_prep_show_figures(show, now, now_ns, &figures);
    if (now_ns < show->due_ns && !(new_phase && !show->log))
        return;
    show->due_ns = now_ns + (show->live ? LIVE_NS : show->json ? JSON_NS : LOG_NS);
    if (show->json) {
        print_json(st_prep_progress_json(&figures));
    } else if (show->live) {
        st_prep_live_text(&figures, line, sizeof line);
        live_line_draw(line, live_columns(), show->color);
        show->shown = true;
    } else if (show->log) {
        st_prep_log_text(&figures, line, sizeof line);
        fprintf(stderr, "stoker prep: %s\n", line);
    }
}

void st_prep_show_end(struct st_prep_show *show)
{
    if (show->shown)
        live_line_clear();
    show->shown = false;
}
