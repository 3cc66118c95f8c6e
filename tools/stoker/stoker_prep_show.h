/* stoker_prep_show.h: a job's progress while it runs: a line on a terminal, a line every few seconds in a log, or JSON
 * Lines. */
#ifndef STOKER_PREP_SHOW_H
#define STOKER_PREP_SHOW_H

#include "stoker_prep_text.h"
#include "task.h"
#include <stdbool.h>
#include <stoker/prep.h>

enum { ST_PREP_SAMPLES = 32 };

/* What the rates are taken from: the last seconds' figures, one every PERIOD. */
struct st_prep_sample {
    int64_t ns, rows, bytes_in, bytes_out, stage_ns[ST_PREP_STAGES];
};

struct st_prep_show {
    bool json, live, log, colour, shown;
    const stki_task *task;
    int64_t began_ns, due_ns;
    int32_t phase;
    struct st_prep_sample samples[ST_PREP_SAMPLES]; /* of this phase, a ring */
    int count;
};

void st_prep_show_init(struct st_prep_show *show, const stki_task *task, bool json, bool quiet);
/* Right before stk_prep_run. */
void st_prep_show_begin(struct st_prep_show *show);
/* opts.progress; its context is the struct. */
void st_prep_show_progress(void *context, const stk_prep_progress *now);
/* Takes the live line away. */
void st_prep_show_end(struct st_prep_show *show);

/* What the figures of a moment are, `now_ns` being its time: for tests. */
void st_prep_show_figures(struct st_prep_show *show, const stk_prep_progress *now, int64_t now_ns,
                          struct st_prep_figures *out);

#endif
