/* prep_run.h: a job that is open: its loader, fields and pieces, and what its files share. In the order of a run:
 *
 *     prep_open.c     the loader, fields, finishers, observers, pieces; which work folder
 *     prep_size.c     bytes of rows and files before they are made; free space
 *     prep_name.c     the lock of the output's name
 *     prep_work.c     the work folder: whose it is, locks, what is made already
 *     prep_make.c     rows → finishers and observers → outlet or spool, piece by piece
 *     prep_sample.c   some rows, to tell how long all take
 *     prep_join.c     spooled pieces → outlet
 *     prep_commit.c   manifest, final names
 *     prep.c          the public calls
 *
 * What is made at once and recorded by itself is a unit: the whole job, a shard, or (spooled) a piece. A task makes a
 * run of units; any number of tasks, at any time, make any units, each under the lock of the unit.
 */
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

enum { STKI_PREP_IDENTITY = 3 }; /* version of job.json in a work folder; raised as STKI_STATE_VERSION is */

enum stki_prep_mode {
    STKI_PREP_WHOLE,  /* one unit, one data set, or shards by bytes */
    STKI_PREP_SHARDS, /* a unit a shard */
    STKI_PREP_SPOOLED /* a unit a piece; joined then */
};

enum { STKI_PREP_DEPTH = 4 /* batches that are encoded at a time, where memory allows it */ };

/* A field of the job: what the loader makes and what goes into the sink. */
typedef struct stki_prep_field {
    const stki_field_plan *plan;
    stki_sink_field in, out;
    stki_finisher *finisher; /* NULL: rows go into the sink as they are */
} stki_prep_field;

typedef struct stki_inputs_seen stki_inputs_seen;

/* That no other job makes outputs of this NAME (prep_name.c). */
typedef struct stki_name_lock {
    char *path;
    int fd;      /* -1: not taken */
    json_t *old; /* the manifest that was there when it was taken; null: none */
} stki_name_lock;

typedef struct stki_prep_run {
    const stki_job *job;
    const stki_name_lock *name;
    const stk_prep_opts *opts;
    const _Atomic bool *cancelled;
    stki_job_clock *clock;
    stki_inputs_seen *seen; /* prep_inputs.h */
    stki_notes *notes;      /* of the job, which the loader's are added to before it is closed */

    stk_loader *loader;
    stki_core *core;
    stki_row_feed rows;
    int field_count;
    stki_prep_field *fields;
    stki_sink_field *sink_fields; /* the fields' `out` */
    stki_observer **observers;
    int observer_count;
    int64_t batch_rows;
    /* prep_size.c: many rows in the files, about: with encoded ones as large as before, and as small as they may
     * become; and one row in a spooled piece, as large as before. */
    stki_sink_size typical, least;
    int64_t spooled_row;
    stki_filter_counts filter; /* what prep.filter left out */
    stki_cuts cuts;
    enum stki_prep_mode mode;
    int64_t units;
    int threads, depth; /* depth: batches that are encoded at a time */
    json_t *stays;      /* what stayed as it was, when all is made (stays.h) */
    json_t *identity;   /* what job.json of the work folder holds */
    bool rewrites;      /* it holds something else, which is as good */

    char *work, *making; /* folders */
    int lock;            /* of the work folder, shared; -1: none */

    stki_flusher *flusher;
    stki_finish_pool *pool;
    stk_prep_progress progress;
    int64_t began_ns, ticked_ns; /* the phase, the last report */
    int64_t loader_bytes;        /* read by the loader so far */
} stki_prep_run;

/* prep_open.c: everything but the work folder. `run` begins zeroed with job, opts, cancelled and notes set. */
stk_status stki_prep_open(stki_prep_run *run, stk_error *err);
void stki_prep_close(stki_prep_run *run); /* fine on a half open one */
/* Adds the loader's notes to the job's and closes it; fine where there is none. */
void stki_prep_close_loader(stki_prep_run *run);
/* A loader's field as a field of a sink. */
void stki_prep_describe(const stki_field_plan *plan, stki_sink_field *out);

/* prep_size.c */
/* Behind check of the format and before rows are cut into pieces. STK_E_CONFIG: output.shard_bytes is too small. */
stk_status stki_prep_find_sizes(stki_prep_run *run, stk_error *err);
/* All rows have one size, in the files too. */
bool stki_prep_is_exact(const stki_prep_run *run);
/* The files are compressed. */
bool stki_prep_is_packed(const stki_prep_run *run);
/* Of a file for so many rows of the job, without its folder. */
stki_sink_opts stki_prep_sink_opts(const stki_prep_run *run, int64_t rows);
/* Bytes of all files when they are complete, if the rows are like those of `like`. */
int64_t stki_prep_files_bytes(const stki_prep_run *run, const stki_sink_size *like);
/* Bytes of all spooled pieces; 0: there are none. */
int64_t stki_prep_spool_bytes(const stki_prep_run *run);
/* Of one row, in what a piece of it goes to; 1 at least. */
int64_t stki_prep_row_bytes(const stki_prep_run *run);
/* output.shard_bytes: more rows are never put into a shard, since a file has room for them from its beginning. */
int64_t stki_prep_shard_most(const stki_prep_run *run);
/* What `to` come to if `of` come to `sum`; 0 where there are none. */
int64_t stki_prep_scale(int64_t sum, int64_t of, int64_t to);
/* STK_E_LIMIT: the disks have less free space than what is still to be written takes. */
stk_status stki_prep_space(const stki_prep_run *run, stk_error *err);

/* prep_name.c */
/* NAME.ENDING beside the output. */
char *stki_beside_output(const stki_job *job, const char *ending);
/* Takes NAME.prep.lock beside the output, which the processes of one job share. STK_E_BUSY names it and a process of
 * the other job that has it. stki_name_release in every case. */
stk_status stki_name_take(const stki_job *job, stki_name_lock *out, stk_error *err);
/* Before names are given. STK_E_BUSY: the lock is not what it was, or another manifest has the name by now. */
stk_status stki_name_check(const stki_name_lock *name, const stki_job *job, stk_error *err);
void stki_name_release(stki_name_lock *name);
/* The work folder, by whatever path it was named; it need not be there yet. stki_free; NULL: no memory. */
char *stki_name_of_work(const stki_job *job);
/* prep_work.c */
/* STK_E_IO: the output's folder is none, or the output is a folder. */
stk_status stki_work_check_target(const stki_job *job, stk_error *err);
/* Makes the folders, takes the shared lock, writes or compares job.json; `restart` empties them first. */
stk_status stki_work_open(stki_prep_run *run, stk_error *err);
/* Looks without changing anything: STK_E_MISMATCH, or *found. */
stk_status stki_work_look(stki_prep_run *run, bool *found, stk_error *err);
void stki_work_close(stki_prep_run *run);
/* Makes the work folder. STK_E_CONFIG: it is the output's, or is there with files of others in it, which would go with
 * it at the end. */
stk_status stki_work_claim(const stki_job *job, stk_error *err);
/* With all in it, unless it is of others. */
stk_status stki_work_remove(const char *folder, stk_error *err);
/* Paths inside; stki_free, NULL: no memory. */
char *stki_work_journal(const stki_prep_run *run, int64_t unit);
char *stki_work_piece(const stki_prep_run *run, int64_t piece);
char *stki_work_file(const stki_prep_run *run, const char *name);
/* STK_E_CONFIG: the file is one that the job reads. */
stk_status stki_prep_check_target(const stki_prep_run *run, const char *path, stk_error *err);
/* Is the unit complete? *rows: positions that are done. */
stk_status stki_prep_unit_done(const stki_prep_run *run, int64_t unit, bool *done, int64_t *rows, stk_error *err);
/* The lines of pieces, in order, of a complete unit: appended to `pieces`. */
stk_status stki_prep_unit_pieces(const stki_prep_run *run, int64_t unit, json_t *pieces, stk_error *err);
/* Units that are not complete: how many, and which, as far as a message holds them. */
typedef struct stki_prep_missing {
    int64_t count, from; /* from: the first of the run that is being looked at; -1: none */
    char text[160];      /* "0 to 3, 7, 9 to 12, …" */
} stki_prep_missing;
/* Of units [first, end). *rows: less the positions that are made. */
stk_status stki_prep_count_missing(const stki_prep_run *run, int64_t first, int64_t end, stki_prep_missing *out,
                                   int64_t *rows, stk_error *err);
/* Samples that failed, in units of [first, end) that are done or in the making. */
stk_status stki_prep_count_failed(const stki_prep_run *run, int64_t first, int64_t end, int64_t *failed,
                                  stk_error *err);
/* The units of this task. */
void stki_prep_share(const stki_prep_run *run, int64_t *first, int64_t *end);

/* prep_make.c: makes the units [first, end) that are not made yet. */
stk_status stki_prep_make(stki_prep_run *run, int64_t first, int64_t end, stk_error *err);
/* How many samples of the job may be left out. */
int64_t stki_prep_allowed(const stki_prep_run *run);
/* Threads that finish the job's rows, `depth` batches at a time, and where `observed` show them to the job's observers.
 * path_of is given the run; NULL: messages name no file. */
stk_status stki_prep_finish_pool(stki_prep_run *run, int depth, bool observed, stki_finish_path *path_of,
                                 stki_finish_pool **out, stk_error *err);
/* Where a batch's rows lie, field by field; `sources` has room for all fields. */
void stki_prep_sources(const stki_prep_run *run, const stki_run_of_rows *rows, stki_finish_source *sources);

/* prep_sample.c: makes some rows for about `most_ns` and throws them away. */
stk_status stki_prep_sample(stki_prep_run *run, int64_t most_ns, stk_prep_estimate *out, stk_error *err);

/* prep_join.c: all spooled pieces, which must be there, into the files. */
stk_status stki_prep_join(stki_prep_run *run, stk_error *err);

/* prep_commit.c */
typedef struct stki_prep_totals {
    int64_t rows, skipped, files, bytes;
} stki_prep_totals;
/* prep_progress.c: reports the phase STK_PREP_DONE, with the totals of the whole job. */
void stki_prep_done(stki_prep_run *run, const stki_prep_totals *totals);
void stki_prep_read_totals(const json_t *manifest, stki_prep_totals *out);
/* Manifest and final names. Everything must be made (and joined). */
stk_status stki_prep_commit(stki_prep_run *run, stki_prep_totals *out, stk_error *err);
/* A commit that was interrupted is finished. *found: there was one. Needs no open job, only its paths. */
stk_status stki_prep_finish_commit(const stki_job *job, const stki_name_lock *name, bool force, bool *found,
                                   stki_prep_totals *out, stk_error *err);

/* prep_manifest.c */
/* What a manifest says of the job's inputs, new JSON: {"inputs": an object each, with the XXH3 of the contents if
 * `digests`, "modified": when each was modified, in ns, or of several files the checksum of their times}. Needs the
 * loader alone. */
stk_status stki_prep_describe_inputs(const stki_prep_run *run, bool digests, json_t **out, stk_error *err);
/* The manifest but for its files and totals; new JSON. */
stk_status stki_prep_manifest(const stki_prep_run *run, const json_t *files, const stki_prep_totals *totals,
                              const json_t *skipped, json_t **out, stk_error *err);

/* Calls the progress function when it is time (or `now`), and says whether the job was cancelled. */
stk_status stki_prep_tick(stki_prep_run *run, bool now, stk_error *err);
void stki_prep_phase(stki_prep_run *run, stk_prep_phase phase, int64_t row_total, int64_t piece_total);

#endif
