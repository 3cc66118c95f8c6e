/* prep.h: preparation jobs: from a pile of files to records that are ready to train on. A job is a config file
 * (docs/prep.md) that says what is read, what is done to it and what is written; `stoker prep JOB.yaml` runs one, and
 * so does
 *
 *     stk_prep *job;
 *     stk_prep_result result = {.struct_size = sizeof result};
 *     stk_error err;
 *     stk_status status = stk_prep_open_file("job.yaml", NULL, 0, NULL, &job, &err);
 *     if (status == STK_OK && (status = stk_prep_run(job, &err)) == STK_OK) {
 *         stk_prep_get_result(job, &result, NULL);
 *         printf("%lld rows in %s\n", (long long)result.rows, result.manifest_path);
 *     } else {
 *         fprintf(stderr, "%s\n", err.message);
 *     }
 *     stk_prep_destroy(job);
 *
 * The same output bytes come out for any number of workers and of processes, and of interruptions: a job that was
 * stopped in any way, kill -9 included, goes on where it was when it is run again. Nothing stands under a final name
 * before all of it is written and synced.
 *
 * Threads: a job belongs to one thread at a time; stk_prep_cancel may be called from any thread and from handlers of
 * signals.
 */
#ifndef STOKER_PREP_H
#define STOKER_PREP_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_prep stk_prep;

typedef enum stk_prep_phase {
    STK_PREP_OPENING = 0,    /* reading lists and headers, choosing samples */
    STK_PREP_COUNTING = 1,   /* the pass over the data that statistics need first */
    STK_PREP_MAKING = 2,     /* rows are made and written */
    STK_PREP_JOINING = 3,    /* pieces of several tasks, or of a format that is written in one go, become the files */
    STK_PREP_COMMITTING = 4, /* checksums, manifest, final names */
    STK_PREP_DONE = 5
} stk_prep_phase;

/* How far a job is. Times are of the thread that runs it: where it waits longest is what the job is bound by. */
typedef struct stk_prep_progress {
    uint32_t struct_size;
    int32_t phase;           /* stk_prep_phase */
    int64_t rows, row_total; /* positions of this process' share of the phase, what failed and what an earlier run made
                                included */
    int64_t resumed_rows;    /* of rows: made by an earlier run */
    int64_t failed_rows;     /* of rows: left out */
    int64_t bytes_in;        /* read from samples, by this run */
    int64_t bytes_out;       /* handed to the files, by this run */
    int64_t pieces, piece_total;
    int64_t elapsed_ns;     /* of the phase, in this run */
    int64_t wait_rows_ns;   /* for the loader: reading, decoding and transforming bind */
    int64_t wait_finish_ns; /* for encoders and statistics */
    int64_t write_ns;       /* in the format and in write */
    int64_t wait_sync_ns;   /* for the disk: pieces that are not yet synced */
} stk_prep_progress;

/* Zero is the default of every member. */
typedef struct stk_prep_opts {
    uint32_t struct_size; /* set by STK_PREP_OPTS_INIT */
    int32_t unused;
    /* This process makes share `task` of `tasks` into a work folder that all of them see; whoever finds everything made
     * joins it. 0: all of it. */
    int64_t task, tasks;
    bool merge;          /* makes nothing: joins what tasks have made */
    bool no_merge;       /* makes a task's share and leaves joining to others */
    bool force;          /* replaces an output that is there */
    bool restart;        /* throws away what an earlier run has left in the work folder */
    bool no_space_check; /* starts although the disk seems too small */
    /* Called by stk_prep_run, in its thread, a few times a second. It may call stk_prep_cancel and nothing else of the
     * job. */
    void (*progress)(void *context, const stk_prep_progress *now);
    void *progress_context;
    int64_t progress_interval_ns; /* 0: 0.2 s */
} stk_prep_opts;
#define STK_PREP_OPTS_INIT STK_OPTS_INIT(stk_prep_opts)

/* Reads and checks a job; `sets` are assignments such as "prep.seed=7" applied on top of it. No data is opened. opts
 * NULL: all defaults. */
STK_API stk_status stk_prep_open_file(const char *path, const char *const *sets, int set_count,
                                      const stk_prep_opts *opts, stk_prep **out, stk_error *err);
/* The same of a text; relative paths in it start from `base_dir` (NULL: the working directory). */
STK_API stk_status stk_prep_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                                      const stk_prep_opts *opts, stk_prep **out, stk_error *err);
/* Frees. What an unfinished run has made stays in the work folder. NULL is fine. */
STK_API void stk_prep_destroy(stk_prep *job);

/* What a run would do. */
typedef struct stk_prep_plan {
    uint32_t struct_size;
    int32_t spooled;    /* rows are kept as pieces first and joined then */
    int64_t samples;    /* of the data set */
    int64_t positions;  /* of the job: after filter, split and indices */
    int64_t batch_rows; /* made at once */
    int64_t pieces, piece_rows;
    int64_t shards;       /* files, or groups of them; -1: known at the end (shard_bytes) */
    int64_t output_bytes; /* about */
    int64_t work_bytes;   /* about: of the work folder beside that, at most */
    bool output_exact;    /* all rows have one size */
    bool output_exists;   /* and is not replaced without `force` */
    int64_t resumed_rows; /* an earlier run has made already */
} stk_prep_plan;

/* Opens the data and works it out, without writing anything. */
STK_API stk_status stk_prep_get_plan(stk_prep *job, stk_prep_plan *out, stk_error *err);

/* How large the output becomes and how long it takes, by rows that were really made. */
typedef struct stk_prep_estimate {
    uint32_t struct_size;
    int32_t unused;
    int64_t sampled_rows, failed_rows; /* made and thrown away; that could not be made */
    int64_t output_bytes;              /* of all positions of the job */
    int64_t total_ns; /* of all positions, by this process, without waiting for the disk; -1: not known */
} stk_prep_estimate;

/* Opens the data and makes some rows, spread over the job, for about `most_ns` (0: two seconds), without writing
 * anything. STK_E_CANCELLED; an error of a row where the job's on_error is fail. */
STK_API stk_status stk_prep_get_estimate(stk_prep *job, int64_t most_ns, stk_prep_estimate *out, stk_error *err);

/* Runs the job, or its task's share. STK_E_CANCELLED: stk_prep_cancel was called; run it again to go on, in this
 * process or another. STK_E_BUSY: another process works in the work folder. STK_E_MISMATCH: the work folder is of
 * another job. STK_E_IO: the output exists (`force`), the disk is full, … Whatever went wrong: nothing stands under a
 * final name, and when the cause is removed the next run goes on. */
STK_API stk_status stk_prep_run(stk_prep *job, stk_error *err);
/* Asks the running job to stop soon. Any thread, and handlers of signals. NULL is fine. */
STK_API void stk_prep_cancel(stk_prep *job);

/* What a run came to. Texts live as long as the job. */
typedef struct stk_prep_result {
    uint32_t struct_size;
    bool complete;             /* the output stands under its name; else other tasks' pieces are missing */
    int64_t rows, skipped;     /* in the output; left out */
    int64_t files, bytes;      /* of the output */
    int64_t missing_pieces;    /* not made yet, by any task */
    int64_t resumed_rows;      /* taken over from earlier runs */
    const char *manifest_path; /* NAME.manifest.json */
    const char *skipped_path;  /* NAME.skipped.jsonl; NULL: nothing was left out */
    const char *stats_path;    /* NAME.stats.json; NULL: no statistics were asked for */
    const char *work_folder;
} stk_prep_result;

STK_API stk_status stk_prep_get_result(const stk_prep *job, stk_prep_result *out, stk_error *err);
/* The job as YAML that means the same from any folder: includes, variables and assignments are applied, and paths are
 * absolute. Free with stk_text_free. NULL: no memory, or the working directory has no path in UTF-8. */
STK_API char *stk_prep_job_text(const stk_prep *job);
/* The tables of a job's keys, for people. Free with stk_text_free. NULL: no memory. */
STK_API char *stk_prep_options_help(void);
/* The same as JSON, as stk_loader_options_tables. */
STK_API char *stk_prep_options_tables(void);
/* What is worth knowing of the job, one sentence each, as stk_loader_note. */
STK_API int stk_prep_note_count(const stk_prep *job);
STK_API const char *stk_prep_note(const stk_prep *job, int index);

#ifdef __cplusplus
}
#endif
#endif
