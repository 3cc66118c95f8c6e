/* prep_run.h: an open job: its loader, fields and pieces, and functions shared by its source files. In the order of a
 * run:
 *
 *     prep_open.c     the loader, fields, finishers, observers, pieces; choice of the work folder
 *     prep_size.c     sizes of rows and files in advance; free space
 *     prep_name.c     the lock of the output's name
 *     prep_targets.c  checks of the files that a job writes or replaces
 *     prep_work.c     the work folder: identity, locks, progress
 *     prep_make.c     rows → finishers and observers → outlet or spool, piece by piece
 *     prep_sample.c   estimates from some rows
 *     prep_join.c     spooled pieces → outlet
 *     prep_commit.c   manifest, final names
 *     prep.c          the public functions
 *
 * A unit is the part of a job that is produced and recorded separately: the whole job, a shard, or (spooled) a piece. A
 * task produces a run of units. Any number of tasks can produce any units at any time. The journal of a shard is locked
 * by its writer. A piece is not: if two tasks produce it, both write the same bytes, and the last rename wins. */
#ifndef STKI_PREP_RUN_H
#define STKI_PREP_RUN_H

#include "cuts.h"
#include "filter.h"
#include "finish_pool.h"
#include "job.h"
#include "job_clock.h"
#include "loader_handle.h"
#include "outlet.h"
#include "row_feed.h"

enum { STKI_PREP_IDENTITY = 3 }; /* version of job.json in a work folder; incremented like STKI_STATE_VERSION */

enum stki_prep_mode {
    STKI_PREP_WHOLE,  /* one unit: a single data set, or shards limited in bytes */
    STKI_PREP_SHARDS, /* one unit per shard */
    STKI_PREP_SPOOLED /* one unit per piece; joined at the end */
};

enum { STKI_PREP_DEPTH = 4 /* batches being encoded at a time, if memory allows */ };

/* A field of the job: rows of the loader and rows for the sink. */
typedef struct stki_prep_field {
    const stki_field_plan *plan;
    stki_sink_field in, out;
    stki_finisher *finisher; /* NULL: rows are passed to the sink unchanged */
} stki_prep_field;

typedef struct stki_inputs_seen stki_inputs_seen;

/* The lock that prevents other jobs from writing outputs of this NAME (prep_name.c). */
typedef struct stki_name_lock {
    char *path;
    int fd;      /* -1: not acquired */
    bool fresh;  /* the work folder did not exist when the first of these processes started */
    json_t *old; /* the manifest at the time of locking; null: none */
} stki_name_lock;

typedef struct stki_prep_run {
    const stki_job *job;
    const stki_name_lock *name;
    const stk_prep_opts *opts;
    const _Atomic bool *cancelled;
    stki_job_clock *clock;
    stki_inputs_seen *seen; /* prep_inputs.h */
    stki_notes *notes;      /* notes of the job; those of the loader are added before it is closed */

    stk_loader *loader;
    stki_core *core;
    stki_row_feed rows;
    int field_count;
    stki_prep_field *fields;
    stki_sink_field *sink_fields; /* the member `out` of each field */
    stki_observer **observers;
    int observer_count;
    int64_t batch_rows;
    /* Set by prep_size.c: the estimated size of many rows in the files (`typical`: assuming that encoding does not
     * change the size of a row; `least`: assuming the smallest plausible size), and the size of one unencoded row in a
     * spooled piece. */
    stki_sink_size typical, least;
    int64_t spooled_row;
    stki_filter_counts filter; /* results of prep.filter */
    stki_cuts cuts;
    enum stki_prep_mode mode;
    int64_t units;
    int threads, depth; /* depth: batches being encoded at a time */
    json_t *stays;      /* rows that were not encoded (stays.h), known at the end */
    json_t *identity;   /* content of job.json in the work folder */
    bool rewrites;      /* job.json has equivalent content and will be rewritten */

    char *work, *making; /* folders */
    int lock;            /* shared lock of the work folder; -1: none */
    bool began;          /* rows of a unit have been requested from the loader */

    stki_flusher *flusher;
    stki_finish_pool *pool;
    stk_prep_progress progress;
    int64_t began_ns, ticked_ns; /* start of the phase, last report */
    int64_t loader_bytes;        /* bytes read by the loader so far */
} stki_prep_run;

/* prep_open.c: opens everything except the work folder. `run` must be zeroed except for job, opts, cancelled and notes.
 */
stk_status stki_prep_open(stki_prep_run *run, stk_error *err);
void stki_prep_close(stki_prep_run *run); /* a partly opened run is allowed */
/* Adds the loader's notes to the job's and closes the loader, if there is one. */
void stki_prep_close_loader(stki_prep_run *run);
/* Describes a loader's field as a field of a sink. */
void stki_prep_describe(const stki_field_plan *plan, stki_sink_field *out);

/* prep_size.c */
/* Called after the format's check and before rows are divided into pieces. STK_E_CONFIG: output.shard_bytes is too
 * small. */
stk_status stki_prep_find_sizes(stki_prep_run *run, stk_error *err);
/* Returns whether all rows have the same size in the files: their shape is fixed, and they are neither encoded nor
 * compressed. */
bool stki_prep_is_exact(const stki_prep_run *run);
/* Returns whether the files are compressed. */
bool stki_prep_is_packed(const stki_prep_run *run);
/* Returns the sink options for a file with this many rows of the job; `folder` is not set. */
stki_sink_opts stki_prep_sink_opts(const stki_prep_run *run, int64_t rows);
/* Returns the size of all complete files, assuming that rows are like those of `like`. */
int64_t stki_prep_files_bytes(const stki_prep_run *run, const stki_sink_size *like);
/* Returns the size of all spooled pieces; 0: none. */
int64_t stki_prep_spool_bytes(const stki_prep_run *run);
/* Returns the size of one row in the file of a piece; at least 1. */
int64_t stki_prep_row_bytes(const stki_prep_run *run);
/* Returns the maximum number of rows of a shard, for which its sink is opened; INT64_MAX: no output.shard_bytes. */
int64_t stki_prep_shard_most(const stki_prep_run *run);
/* Returns sum / of * to, without overflow; 0 if `of` is 0. */
int64_t stki_prep_scale(int64_t sum, int64_t of, int64_t to);
/* STK_E_LIMIT: there is less free disk space than is still needed. */
stk_status stki_prep_space(const stki_prep_run *run, stk_error *err);

/* prep_name.c */
/* Returns the path NAME.ENDING next to the output. */
char *stki_beside_output(const stki_job *job, const char *ending);
/* Returns whether the data set of a manifest (null: none) has a list of failed samples, or statistics. */
bool stki_prep_had_skipped(const json_t *manifest);
bool stki_prep_had_stats(const json_t *manifest);
/* Acquires NAME.prep.lock next to the output, which is shared by the processes of one job. STK_E_BUSY: another job
 * holds it; the message names the file and a process of that job. The caller must call stki_name_leave and
 * stki_name_release even if this fails. */
stk_status stki_name_take(const stki_job *job, stki_name_lock *out, stk_error *err);
/* Reads the manifest of the name; null: there is none, or it cannot be read. */
stk_status stki_name_manifest(const stki_job *job, json_t **out, stk_error *err);
/* Called before files are renamed. STK_E_BUSY: the lock was lost, or the manifest of that name has changed. */
stk_status stki_name_check(const stki_name_lock *name, const stki_job *job, stk_error *err);
/* Called when this process has created its last file. Returns whether it is the last process of the job. It then holds
 * the lock exclusively, so that no other one can start before stki_name_release. */
bool stki_name_leave(stki_name_lock *name);
/* Called after stki_name_leave. */
void stki_name_release(stki_name_lock *name);
/* Returns a canonical name of the work folder, which need not exist. Free with stki_free; NULL: out of memory. */
char *stki_name_of_work(const stki_job *job);
/* prep_targets.c */
/* Checks every file that the job would write, replace or remove next to its output. `files`: the list of its output
 * files; NULL: unknown, so their names are computed in advance, if the job is open. STK_E_CONFIG: the job reads the
 * file: its data, its config, or a file that the config names. STK_E_IO: the file exists, and belongs to a data set of
 * another NAME or may only be replaced with `force`. */
stk_status stki_prep_check_targets(const stki_prep_run *run, const json_t *files, stk_error *err);

/* prep_work.c */
/* STK_E_IO: the output's parent is not a folder, or the output is one. */
stk_status stki_work_check_target(const stki_job *job, stk_error *err);
/* Creates the folders, acquires the shared lock, and writes or compares job.json; with `restart`, empties the folders
 * first. */
stk_status stki_work_open(stki_prep_run *run, stk_error *err);
/* Checks the work folder without changing anything. *found: whether it has a job.json. STK_E_MISMATCH: it belongs to
 * another job, version or data. */
stk_status stki_work_look(stki_prep_run *run, bool *found, stk_error *err);
/* Removes the folders if they hold no rows. Called by the last process of the job. */
void stki_work_drop(stki_prep_run *run);
void stki_work_close(stki_prep_run *run);
/* Creates the work folder. STK_E_CONFIG: it contains the output or unrelated files, which would be removed with it at
 * the end. */
stk_status stki_work_claim(const stki_job *job, stk_error *err);
/* Removes the folder with its contents. STK_E_CONFIG: it contains unrelated files, and nothing is removed. */
stk_status stki_work_remove(const char *folder, stk_error *err);
/* Paths inside the work folder; free with stki_free. NULL: out of memory. */
char *stki_work_journal(const stki_prep_run *run, int64_t unit);
char *stki_work_piece(const stki_prep_run *run, int64_t piece);
char *stki_work_file(const stki_prep_run *run, const char *name);
/* Sets *done to whether the unit is complete, and *rows to the number of its finished positions. */
stk_status stki_prep_unit_done(const stki_prep_run *run, int64_t unit, bool *done, int64_t *rows, stk_error *err);
/* Appends the lines of a complete unit's pieces, in order, to `pieces`. */
stk_status stki_prep_unit_pieces(const stki_prep_run *run, int64_t unit, json_t *pieces, stk_error *err);
/* Incomplete units: their number, and a list for messages, truncated if necessary. */
typedef struct stki_prep_missing {
    int64_t count, from; /* from: first of the current run; -1: none */
    char text[160];      /* "0 to 3, 7, 9 to 12, …" */
} stki_prep_missing;
/* Counts incomplete units of [first, end). Subtracts the number of finished positions from *rows. */
stk_status stki_prep_count_missing(const stki_prep_run *run, int64_t first, int64_t end, stki_prep_missing *out,
                                   int64_t *rows, stk_error *err);
/* Counts failed samples in finished and unfinished units of [first, end). */
stk_status stki_prep_count_failed(const stki_prep_run *run, int64_t first, int64_t end, int64_t *failed,
                                  stk_error *err);
/* Determines the units of this task, [*first, *end). */
void stki_prep_share(const stki_prep_run *run, int64_t *first, int64_t *end);

/* prep_make.c: produces the missing units of [first, end). */
stk_status stki_prep_make(stki_prep_run *run, int64_t first, int64_t end, stk_error *err);
/* Returns the maximum number of skipped samples of the job. */
int64_t stki_prep_allowed(const stki_prep_run *run);
/* STK_E_LIMIT: that many failed samples are not allowed; `last`: the error of the last one. */
stk_status stki_prep_check_failed(const stki_prep_run *run, int64_t failed, const stk_error *last, stk_error *err);
/* Creates the pool that encodes the job's rows, `depth` batches at a time, and with `observed` passes them to the job's
 * observers. */
stk_status stki_prep_finish_pool(stki_prep_run *run, int depth, bool observed, stki_finish_pool **out, stk_error *err);
/* Sets the location of a batch's rows for each field; `sources` has room for all fields. */
void stki_prep_sources(const stki_prep_run *run, const stki_run_of_rows *rows, stki_finish_source *sources);

/* prep_sample.c: produces rows for about `most_ns` and discards them. */
stk_status stki_prep_sample(stki_prep_run *run, int64_t most_ns, stk_prep_estimate *out, stk_error *err);

/* prep_join.c: joins all spooled pieces, which must exist, into the files. */
stk_status stki_prep_join(stki_prep_run *run, stk_error *err);

/* prep_commit.c */
typedef struct stki_prep_totals {
    int64_t rows, skipped, files, bytes;
} stki_prep_totals;
/* prep_progress.c: reports the phase STK_PREP_DONE, with the totals of the whole job. */
void stki_prep_done(stki_prep_run *run, const stki_prep_totals *totals);
void stki_prep_read_totals(const json_t *manifest, stki_prep_totals *out);
/* Writes the manifest and renames the files. All units must be complete (and joined). */
stk_status stki_prep_commit(stki_prep_run *run, stki_prep_totals *out, stk_error *err);
/* Finishes the commit recorded in commit.json. *found: whether there was anything left to do. The caller holds
 * merge.lock. Needs only the job's paths, not an open job. */
stk_status stki_prep_finish_commit(const stki_job *job, bool force, bool *found, stki_prep_totals *out, stk_error *err);
/* Removes the folders of a complete output. Called by the last process of the job. */
stk_status stki_prep_clean_up(const stki_job *job, stk_error *err);

/* prep_manifest.c */
/* Creates the manifest's entries for the job's inputs, as a new JSON object: {"inputs": one object each, with the XXH3
 * of the contents if `digests`, "modified": modification time in ns, or for several files the checksum of their times}.
 * Needs only the loader. */
stk_status stki_prep_describe_inputs(const stki_prep_run *run, bool digests, json_t **out, stk_error *err);
/* Creates the manifest, as a new JSON object. */
stk_status stki_prep_manifest(const stki_prep_run *run, const json_t *files, const stki_prep_totals *totals,
                              const json_t *skipped, json_t **out, stk_error *err);

/* Acquires the lock of a file that another process may hold for a while (merge.lock); blocks until then. */
stk_status stki_prep_wait_lock(stki_prep_run *run, const char *path, int *fd, stk_error *err);
/* Calls the progress function at intervals (or `now`), and fails if the job was cancelled. */
stk_status stki_prep_tick(stki_prep_run *run, bool now, stk_error *err);
void stki_prep_phase(stki_prep_run *run, stk_prep_phase phase, int64_t row_total, int64_t piece_total);

#endif
