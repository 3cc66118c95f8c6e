/* stoker_prep_show.h: progress of a running job: a line on a terminal, a line every few seconds in a log, or JSON
 * Lines. */
#ifndef STOKER_PREP_SHOW_H
#define STOKER_PREP_SHOW_H

#include "task.h"
#include <jansson.h>
#include <stdbool.h>
#include <stoker/prep.h>

enum st_prep_stage { ST_PREP_READ, ST_PREP_FINISH, ST_PREP_WRITE, ST_PREP_SYNC, ST_PREP_STAGES };

struct st_prep_figures {
    const char *phase; /* "rows", "statistics", "joining", … */
    int64_t task, tasks;
    int64_t rows, rows_total;    /* in this phase and task; total < 0: unknown */
    int64_t bytes_in, bytes_out; /* read and written by this run */
    int64_t failed;              /* samples that failed */
    double seconds;              /* time since the start of the run */
    double rows_per_s, in_per_s, out_per_s;
    double left_s;  /* < 0: unknown */
    int bottleneck; /* a stage; < 0: unclear */
};

/* "[rows 42%][eta 3m10s][1.2k rows/s][in 12.0GB 120MB/s][out 1.41GB 14.1MB/s][2 bad][bottleneck read]": in order of
 * importance, since terminals cut off the end. */
void st_prep_live_text(const struct st_prep_figures *f, char *out, int size);
/* "rows: 42 %, 420 of 1000 rows, 1.2k rows/s, …" */
void st_prep_log_text(const struct st_prep_figures *f, char *out, int size);
/* {"event": "progress", …}; a new reference. */
json_t *st_prep_progress_json(const struct st_prep_figures *f);

enum { ST_PREP_SAMPLES = 32 };

/* Rates are computed from a window of samples that are a quarter of a second apart. */
struct st_prep_sample {
    int64_t ns, rows, bytes_in, bytes_out, stage_ns[ST_PREP_STAGES];
};

struct st_prep_show {
    bool json, live, log, color, shown;
    const stki_task *task;
    int64_t began_ns, due_ns;
    int32_t phase;
    struct st_prep_sample samples[ST_PREP_SAMPLES]; /* ring buffer, of this phase */
    int count;
};

void st_prep_show_init(struct st_prep_show *show, const stki_task *task, bool json, bool quiet);
/* Call right before stk_prep_run. */
void st_prep_show_begin(struct st_prep_show *show);
/* For opts.progress, with the struct as context. */
void st_prep_show_progress(void *context, const stk_prep_progress *now);
/* Erases the live line. */
void st_prep_show_end(struct st_prep_show *show);

/* For tests: the figures at time `now_ns`. */
void st_prep_show_figures(struct st_prep_show *show, const stk_prep_progress *now, int64_t now_ns,
                          struct st_prep_figures *out);

#endif
