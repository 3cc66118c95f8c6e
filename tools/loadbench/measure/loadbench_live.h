/* loadbench_live.h: the progress line of a run, which is shown only on terminals. */
#ifndef LOADBENCH_LIVE_H
#define LOADBENCH_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

struct lb_live {
    bool on, color, shown;
    const char *name; /* name of the config */
    int repeat, repeats;
    int64_t due_ns; /* time of the next update; INT64_MAX if off */
    int64_t last_ns, last_samples, last_bytes, last_wait_ns;
};

/* The line is off unless stderr is a terminal that supports carriage returns. NO_COLOR turns colors off. */
void lb_live_init(struct lb_live *live, const char *name, int repeats);
/* Starts the next repeat. */
void lb_live_repeat(struct lb_live *live, int repeat, int64_t now_ns);

struct lb_progress {
    int64_t now_ns, samples;
    double done;     /* fraction of the whole repeat; < 0: unknown */
    int64_t left_ns; /* remaining time for all repeats; < 0: unknown */
    bool ramp;
};

/* Call when due_ns has passed. Rates are computed since the last update. */
void lb_live_draw(struct lb_live *live, const struct lb_progress *progress, const stk_loader_stats *stats);
/* Removes the line before other output. */
void lb_live_clear(struct lb_live *live);

/* Formats the line in at most `size` bytes; public for tests. */
struct lb_live_figures {
    const char *name;
    int repeat, repeats;
    int64_t workers, slots, slots_ready;
    double done, samples_per_s, bytes_per_s, wait_share;
    int64_t left_ns;
    bool ramp;
};
void lb_live_text(const struct lb_live_figures *figures, char *out, int size);

#endif
