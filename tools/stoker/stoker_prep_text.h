/* stoker_prep_text.h: how a job is getting on, in words, as a line for a terminal, as a line for a log, and as a line
 * of JSON. Pure functions of the figures. */
#ifndef STOKER_PREP_TEXT_H
#define STOKER_PREP_TEXT_H

#include <jansson.h>
#include <stdint.h>

enum st_prep_stage { ST_PREP_READ, ST_PREP_FINISH, ST_PREP_WRITE, ST_PREP_SYNC, ST_PREP_STAGES };
/* "read", "finish", "write", "sync": in JSON and in words. */
extern const char *const st_prep_stage_names[ST_PREP_STAGES];

struct st_prep_figures {
    const char *phase; /* "rows", "statistics", "joining", … */
    int64_t task, tasks;
    int64_t rows, rows_total;    /* of this phase and task; total < 0: not known */
    int64_t bytes_in, bytes_out; /* of this run */
    int64_t failed;              /* samples left out */
    double seconds;              /* since the run began */
    double rows_per_s, in_per_s, out_per_s;
    double left_s; /* < 0: not known */
    int binds;     /* which stage the others wait for; < 0: none stands out */
};

/* "[rows 42%][eta 3m10s][1.2k rows/s][in 12.0GB 120MB/s][out 1.41GB 14.1MB/s][2 bad][read binds]": what matters most
 * stands first, since terminals cut the end off. */
void st_prep_live_text(const struct st_prep_figures *f, char *out, int size);
/* "rows: 42 % (420 of 1000 rows), 1.2k rows/s, …" */
void st_prep_log_text(const struct st_prep_figures *f, char *out, int size);
/* New; {"event": "progress", …}. */
json_t *st_prep_progress_json(const struct st_prep_figures *f);

#endif
