/* outlet.h: the destination of a run of rows: the sink of a shard (of consecutive shards, if these are limited in
 * bytes), its journal, and the thread that syncs written data while the next rows are produced. */
#ifndef STKI_OUTLET_H
#define STKI_OUTLET_H

#include "job.h"
#include "journal.h"
#include "sink.h"
#include "thread.h"

typedef struct stki_flusher stki_flusher;

/* Creates a thread that runs tasks in order, with at most `depth` of them queued. */
stk_status stki_flusher_create(int depth, stki_flusher **out, stk_error *err);
/* Waits for queued tasks. */
void stki_flusher_destroy(stki_flusher *flusher); /* NULL is allowed */

/* A task; it is freed after it has run. */
typedef struct stki_flush {
    stk_status (*run)(struct stki_flush *flush, stk_error *err); /* not called after an earlier one failed */
    void (*drop)(struct stki_flush *flush);                      /* frees the task */
} stki_flush;

/* Queues a task; blocks while the queue is full. Takes ownership, even on failure. Fails only with the error of an
 * earlier task. */
stk_status stki_flusher_put(stki_flusher *flusher, stki_flush *flush, stk_error *err);
/* Waits for all tasks; returns the first error. */
stk_status stki_flusher_wait(stki_flusher *flusher, stk_error *err);
/* Returns the total time for which stki_flusher_put and stki_flusher_wait have blocked. */
int64_t stki_flusher_waited_ns(const stki_flusher *flusher);

typedef struct stki_outlet_opts {
    const stki_job *job;
    const stki_sink_field *fields;
    int field_count;
    const char *making;  /* folder of unfinished files */
    int64_t shard;       /* its number; -1: a single data set, whose name has no number */
    int64_t shard_bytes; /* maximum size of a shard's files; 0: unlimited */
    int64_t shard_most;  /* maximum number of rows of a shard, if shard_bytes > 0 */
    int64_t most_rows, first_row;
    bool may_skip;
    int threads;
    const char *journal; /* its path */
} stki_outlet_opts;

typedef struct stki_outlet stki_outlet;

/* Opens the journal and the sink; resumes an unfinished one at the end of its journal, or restarts it if the format
 * cannot resume (or with `restart`). *lines: the lines of its journal, as a new JSON array; if they include {"done":
 * true}, the outlet is complete, and *out is NULL. */
stk_status stki_outlet_open(const stki_outlet_opts *opts, bool restart, stki_flusher *flusher, stki_outlet **out,
                            json_t **lines, stk_error *err);
stk_status stki_outlet_append(stki_outlet *outlet, const stki_sink_value *values, int64_t rows, stk_error *err);
/* Returns the number of bytes added to the files since the outlet was opened, including the ends of files. */
int64_t stki_outlet_written(const stki_outlet *outlet);
/* Ends a piece: `line` (takes ownership), with the sink's mark, is added to the journal once everything is on disk. */
stk_status stki_outlet_mark(stki_outlet *outlet, json_t *line, stk_error *err);
/* Called after all rows: passes the rest to the flusher. Frees the outlet, also on failure. */
stk_status stki_outlet_finish(stki_outlet *outlet, stk_error *err);
/* Frees the outlet and leaves its files unchanged. The flusher must have no tasks of the outlet left. NULL is allowed.
 */
void stki_outlet_drop(stki_outlet *outlet);

/* Returns the final path of a shard, or, if `shard` is -1, of a single data set. Free with stki_free. */
char *stki_outlet_path(const stki_job *job, int64_t shard);
/* Lists the files of a complete outlet: appends {"temporary", "final", "rows", "bytes", "xxh3"} of each to `files`. */
stk_status stki_outlet_files(const json_t *lines, json_t *files, stk_error *err);
bool stki_outlet_done(const json_t *lines);

#endif
