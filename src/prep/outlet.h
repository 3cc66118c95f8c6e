/* outlet.h: where a run of rows goes: the sink of one shard, or of one after the other where shards end by their bytes;
 * its journal; and the thread that brings what was written to the disk while the next rows are made.
 */
#ifndef STKI_OUTLET_H
#define STKI_OUTLET_H

#include "job.h"
#include "journal.h"
#include "sink.h"
#include "thread.h"

typedef struct stki_flusher stki_flusher;

/* A thread that carries tasks out in order, at most `depth` of them waiting. */
stk_status stki_flusher_create(int depth, stki_flusher **out, stk_error *err);
/* Waits for the tasks that are there. */
void stki_flusher_destroy(stki_flusher *flusher); /* NULL is fine */

/* Something to be done in order, and then freed. */
typedef struct stki_flush {
    stk_status (*run)(struct stki_flush *flush, stk_error *err); /* not called when one before it failed */
    void (*drop)(struct stki_flush *flush);                      /* frees it */
} stki_flush;

/* Waits for room. Takes the task, also when it fails: with the error of one before it. */
stk_status stki_flusher_put(stki_flusher *flusher, stki_flush *flush, stk_error *err);
/* All are done; the first error. */
stk_status stki_flusher_wait(stki_flusher *flusher, stk_error *err);
/* How long the two calls above have waited. */
int64_t stki_flusher_waited_ns(const stki_flusher *flusher);

typedef struct stki_outlet_opts {
    const stki_job *job;
    const stki_sink_field *fields;
    int field_count;
    const char *making;  /* where files in the making lie */
    int64_t shard;       /* its number; -1: the one data set, whose name has none */
    int64_t shard_bytes; /* > 0: further shards follow this one where its files would have more bytes … */
    int64_t shard_most;  /* … or it would have more rows */
    int64_t most_rows, first_row;
    bool may_skip, force;
    int threads;
    const char *journal; /* its path */
} stki_outlet_opts;

typedef struct stki_outlet stki_outlet;

/* Opens the journal and the sink; an unfinished one goes on where its journal ends, or from its beginning where the
 * format cannot (or `anew`). *lines: those of its journal, new JSON; with a line {"done": true} the outlet is complete,
 * and *out NULL. STK_E_IO: a final name is there and `force` is not. */
stk_status stki_outlet_open(const stki_outlet_opts *opts, bool anew, stki_flusher *flusher, stki_outlet **out,
                            json_t **lines, stk_error *err);
stk_status stki_outlet_append(stki_outlet *outlet, const stki_sink_value *values, int64_t rows, stk_error *err);
/* Bytes that came to the files since the outlet was opened, with what ends them. */
int64_t stki_outlet_written(const stki_outlet *outlet);
/* A piece is complete: `line` (taken over), with the sink's mark, goes to the journal once everything is on the disk.
 */
stk_status stki_outlet_mark(stki_outlet *outlet, json_t *line, stk_error *err);
/* All rows are there: hands the rest over to the flusher. The outlet is freed, also when it fails. */
stk_status stki_outlet_finish(stki_outlet *outlet, stk_error *err);
/* Leaves everything as it is on the disk. The flusher must have nothing of it left. NULL is fine. */
void stki_outlet_drop(stki_outlet *outlet);

/* The final path of a shard's data set; -1: of the only one. stki_free. */
char *stki_outlet_path(const stki_job *job, int64_t shard);
/* Where a complete outlet's files are: appends {"temporary", "final", "rows", "bytes", "xxh3"} of each to `files`. */
stk_status stki_outlet_files(const json_t *lines, json_t *files, stk_error *err);
bool stki_outlet_done(const json_t *lines);

#endif
