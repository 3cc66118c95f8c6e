/* stoker_prep_text.c: see stoker_prep_text.h. */
#include "stoker_prep_text.h"
#include "live_line.h"
#include "stoker_json.h"
#include <inttypes.h>
#include <stdio.h>

const char *const st_prep_stage_names[ST_PREP_STAGES] = {"read", "finish", "write", "sync"};

/* 0 to 100, and 100 only when all is done. */
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
    if (f->rows_total <= 0) { /* a phase that has no rows to count */
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
    if (f->binds >= 0)
        live_part(out, size, used, "[%s binds]", st_prep_stage_names[f->binds]);
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
    if (f->binds >= 0)
        used = live_part(out, size, used, ", %s binds", st_prep_stage_names[f->binds]);
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
        "binds", f->binds >= 0 ? json_string(st_prep_stage_names[f->binds]) : json_null());
}
