/* loadbench_live.c: the line is drawn four times per second by the consuming thread, because another thread could
 * disturb the measurement. The width is queried each time, because the terminal may be resized. */
#include "loadbench_live.h"
#include "clock.h"
#include "live_line.h"
#include "loadbench_statistics.h"
#include "loadbench_table.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_NS (STKI_SECOND / 4)

void lb_live_init(struct lb_live *live, const char *name, int repeats)
{
    memset(live, 0, sizeof *live);
    live->on = live_is_terminal(STDERR_FILENO);
    live->color = live_takes_color(STDERR_FILENO);
    live->name = name;
    live->repeats = repeats;
    live->due_ns = INT64_MAX;
}

void lb_live_repeat(struct lb_live *live, int repeat, int64_t now_ns)
{
    live->repeat = repeat;
    live->last_ns = now_ns;
    live->last_samples = live->last_bytes = live->last_wait_ns = 0;
    live->due_ns = live->on ? now_ns + PERIOD_NS : INT64_MAX;
}

void lb_live_text(const struct lb_live_figures *figures, char *out, int size)
{
    int used = live_part(out, size, 0, "%s: ", figures->name);

    if (figures->repeats > 1)
        used = live_part(out, size, used, "[run %d/%d]", figures->repeat, figures->repeats);
    if (figures->slots > 0) /* 0: not a loader */
        used = live_part(out, size, used, "[W%" PRId64 "][ring %" PRId64 "/%" PRId64 "]", figures->workers,
                         figures->slots_ready, figures->slots);
    if (figures->ramp)
        used = live_part(out, size, used, "[ramp]");
    else if (figures->done >= 0)
        used = live_part(out, size, used, "[%.0f%%]", 100 * (figures->done > 1 ? 1 : figures->done));
    used = live_part(out, size, used, "[%s samples/s][%sB/s][consumer waits %.1f%%]", LB_SHORT(figures->samples_per_s),
                     LB_SHORT(figures->bytes_per_s), 100 * figures->wait_share);
    if (figures->left_ns >= 0)
        live_part(out, size, used, "[eta %.0fs]", (double)figures->left_ns / 1e9);
}

void lb_live_draw(struct lb_live *live, const struct lb_progress *progress, const stk_loader_stats *stats)
{
    const double seconds = (double)(progress->now_ns - live->last_ns) / 1e9;
    char line[256];

    live->due_ns = progress->now_ns + PERIOD_NS;
    const struct lb_live_figures figures = {
        .name = live->name,
        .repeat = live->repeat,
        .repeats = live->repeats,
        .workers = stats->workers,
        .slots = stats->slots,
        .slots_ready = stats->slots_ready,
        .done = progress->done,
        .samples_per_s = lb_ratio((double)(progress->samples - live->last_samples), seconds),
        .bytes_per_s = lb_ratio((double)(stats->batch_bytes - live->last_bytes), seconds),
        .wait_share = lb_ratio((double)(stats->wait_next_ns - live->last_wait_ns) / 1e9, seconds),
        .left_ns = progress->left_ns,
        .ramp = progress->ramp,
    };
    lb_live_text(&figures, line, sizeof line);
    live_line_draw(line, live_columns(), live->color);
    live->shown = true;
    live->last_ns = progress->now_ns;
    live->last_samples = progress->samples;
    live->last_bytes = stats->batch_bytes;
    live->last_wait_ns = stats->wait_next_ns;
}

void lb_live_clear(struct lb_live *live)
{
    if (!live->shown)
        return;
    live_line_clear();
    live->shown = false;
}
