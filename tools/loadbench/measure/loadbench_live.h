/* loadbench_live.h: the line that shows how a run is going, on terminals only. */
#ifndef LOADBENCH_LIVE_H
#define LOADBENCH_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

struct lb_live {
    bool on, colour, shown;
    const char *name; /* of the config */
    int repeat, repeats;
    int64_t due_ns; /* the next drawing; INT64_MAX where the line is off */
    int64_t last_ns, last_samples, last_bytes, last_wait_ns;
};

/* Off unless stderr is a terminal that can go back to the start of a line. NO_COLOR takes the colour away. */
void lb_live_init(struct lb_live *live, const char *name, int repeats);
/* The next repeat begins. */
void lb_live_repeat(struct lb_live *live, int repeat, int64_t now_ns);

struct lb_progress {
    int64_t now_ns, samples;
    double done;     /* 0 to 1 of the whole repeat; < 0: nobody knows */
    int64_t left_ns; /* of all repeats; < 0: nobody knows */
    bool ramp;
};

/* Call when due_ns has come. The rates are those since the last drawing. */
void lb_live_draw(struct lb_live *live, const struct lb_progress *progress, const stk_loader_stats *stats);
/* Takes the line away before something else is printed. */
void lb_live_clear(struct lb_live *live);

/* The text of the line, `size` bytes at most: for tests. */
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
