/* prep.h: preparation jobs, which convert files into records for training. A job is a config file
 * (docs/reference/prep.md) that says what to read, how to transform it and what to write. `stoker prep JOB.yaml` runs a
 * job, as does this code:
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
 * The output bytes do not depend on the number of workers, processes or interruptions. A job that was stopped in any
 * way, even by SIGKILL, resumes when it is run again. Files get their final names only after everything has been
 * written and synced.
 *
 * Threads: a job may be used by one thread at a time; stk_prep_cancel may be called from any thread and from signal
 * handlers.
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
    STK_PREP_COUNTING = 1,   /* a pass over the data for statistics that transforms need */
    STK_PREP_MAKING = 2,     /* computing and writing rows */
    STK_PREP_JOINING = 3,    /* joining the pieces of several tasks, or of a format whose files are written in one go */
    STK_PREP_COMMITTING = 4, /* checksums, manifest, final names */
    STK_PREP_DONE = 5
} stk_prep_phase;

/* Progress of a job. The numbers are those of the current phase. At STK_PREP_DONE, rows, bytes_out, pieces and
 * elapsed_ns are totals of the whole job; all but elapsed_ns include earlier runs. Waits are those of the thread that
 * runs the job; the longest one shows the bottleneck. */
typedef struct stk_prep_progress {
    uint32_t struct_size; /* set by the library */
    int32_t phase;        /* stk_prep_phase */
    /* Positions in this process's share of the phase: the number done, including failed ones and those of earlier runs,
     * and the total. */
    int64_t rows, row_total;
    int64_t resumed_rows;        /* how many of `rows` an earlier run completed */
    int64_t failed_rows;         /* how many of `rows` were skipped because their samples failed */
    int64_t bytes_in;            /* bytes of samples read by this run */
    int64_t bytes_out;           /* bytes written to files by this run */
    int64_t pieces, piece_total; /* pieces completed by this run in the phase, and the total number of pieces */
    int64_t elapsed_ns;          /* duration of the phase in this run */
    int64_t wait_rows_ns;        /* waiting for the loader: reading, decoding, transforming */
    int64_t wait_finish_ns;      /* waiting for encoders and statistics */
    int64_t write_ns;            /* formatting and writing */
    int64_t wait_sync_ns;        /* waiting for pieces to be synced to disk */
} stk_prep_progress;

/* Members that are 0 or NULL take their default values. */
typedef struct stk_prep_opts {
    uint32_t struct_size; /* set by STK_PREP_OPTS_INIT */
    int32_t unused;
    /* This process computes share `task` (counted from 0) of `tasks` in a work folder that all tasks can access; the
     * task that finishes last joins the pieces. tasks 0: this process does the whole job. */
    int64_t task, tasks;
    bool merge;          /* only join the pieces that the tasks have written */
    bool no_merge;       /* compute this task's share, but do not join the pieces */
    bool force;          /* replace an existing output */
    bool restart;        /* delete what an earlier run left in the work folder */
    bool no_space_check; /* start even if there seems to be too little disk space */
    /* Called by stk_prep_run in its thread, a few times per second. It may only call stk_prep_cancel on the job. */
    void (*progress)(void *context, const stk_prep_progress *now);
    void *progress_context;
    int64_t progress_interval_ns; /* time between calls to `progress`, in ns; 0: 0.2 s */
} stk_prep_opts;
#define STK_PREP_OPTS_INIT STK_OPTS_INIT(stk_prep_opts)

/* Reads and checks a job without opening data. `sets` are assignments that override values of the file, such as
 * "prep.seed=7". `opts` may be NULL (all defaults). */
STK_API stk_status stk_prep_open_file(const char *path, const char *const *sets, int set_count,
                                      const stk_prep_opts *opts, stk_prep **out, stk_error *err);
/* The same for a job given as text. Relative paths in it are relative to `base_dir` (NULL: the working directory). */
STK_API stk_status stk_prep_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                                      const stk_prep_opts *opts, stk_prep **out, stk_error *err);
/* Frees the job. The work folder of an unfinished run is kept. NULL is allowed. */
STK_API void stk_prep_destroy(stk_prep *job);

/* The plan of a run. */
typedef struct stk_prep_plan {
    uint32_t struct_size; /* set by the caller */
    int32_t spooled;      /* 1: rows are written to pieces in the work folder, then joined; 0: to the output files */
    int64_t samples;      /* number of samples in the data set */
    int64_t positions;    /* number of positions in the job, after filter, split and indices */
    int64_t batch_rows;   /* number of rows computed at once */
    int64_t pieces, piece_rows; /* number of pieces, and maximum number of rows in one */
    int64_t shards;       /* number of output files, or groups of files; -1: not known before the end (shard_bytes) */
    int64_t output_bytes; /* approximate size of the output, exact if output_exact is set */
    int64_t work_bytes;   /* approximate maximum size of the work folder, in addition to the output */
    bool output_exact;    /* all rows have the same size */
    bool output_exists;   /* there is an output already, which is not replaced without `force` */
    int64_t resumed_rows; /* number of rows that earlier runs have written */
} stk_prep_plan;

/* Opens the data and computes the plan, without writing anything. Damaged HDF5 files may crash libhdf5, so if the job
 * reads HDF5 files, the `stoker` program computes the plan first, in a child process; if that crashes, STK_E_CORRUPT is
 * returned. The environment variable STOKER_HELPER names the program; by default it is the one installed with the
 * library. If there is no such program, the plan is computed in this process only. STK_E_IO: the job would replace an
 * existing file and `force` is not set, as in stk_prep_run; an output that this job has already completed is not an
 * error. */
STK_API stk_status stk_prep_get_plan(stk_prep *job, stk_prep_plan *out, stk_error *err);

/* Size of the output and duration, estimated by computing some of the rows. */
typedef struct stk_prep_estimate {
    uint32_t struct_size; /* set by the caller */
    int32_t unused;
    int64_t sampled_rows, failed_rows; /* number of rows computed for the estimate, and of further ones that failed */
    int64_t output_bytes;              /* estimated size of the whole output */
    int64_t total_ns; /* estimated time for this process to compute all rows, without disk waits; -1: unknown */
} stk_prep_estimate;

/* Opens the data and computes rows spread over the job for about `most_ns` nanoseconds (0: two seconds), without
 * writing anything. If a row or sample exceeds 256 MiB, nothing is computed: sampled_rows and output_bytes are 0,
 * total_ns is -1. STK_E_CANCELLED: stk_prep_cancel was called. With `on_error: fail`, if a row fails, its error
 * is returned. STK_E_LIMIT: with `on_error: skip`, more rows failed than the job allows; `out` is set. */
STK_API stk_status stk_prep_get_estimate(stk_prep *job, int64_t most_ns, stk_prep_estimate *out, stk_error *err);

/* Runs the job, or this task's share of it. STK_E_CANCELLED: stk_prep_cancel was called; run it again to resume, in
 * this or another process. STK_E_BUSY: another process uses the work folder. STK_E_MISMATCH: the work folder belongs to
 * another job. STK_E_IO: the output exists (see `force`), one of its files belongs to a data set with another name, the
 * disk is full, … After any failure no file has its final name, and once the cause has been removed, the next run
 * resumes. */
STK_API stk_status stk_prep_run(stk_prep *job, stk_error *err);
/* Asks the running job to stop soon. May be called from any thread and from signal handlers. NULL is allowed. */
STK_API void stk_prep_cancel(stk_prep *job);

/* The result of a run. Strings are valid until the job is destroyed. */
typedef struct stk_prep_result {
    uint32_t struct_size;      /* set by the caller */
    bool complete;             /* the output is complete; false only with several tasks or no_merge */
    int64_t rows, skipped;     /* number of rows in the output, and of rows that were skipped */
    int64_t files, bytes;      /* number of output files, and their total size */
    int64_t missing_pieces;    /* number of pieces that no task has written yet */
    int64_t resumed_rows;      /* number of rows that earlier runs had written */
    const char *manifest_path; /* NAME.manifest.json */
    const char *skipped_path;  /* NAME.skipped.jsonl; NULL: nothing was skipped */
    const char *stats_path;    /* NAME.stats.json; NULL: no statistics were requested */
    const char *work_folder;   /* path of the work folder */
} stk_prep_result;

STK_API stk_status stk_prep_get_result(const stk_prep *job, stk_prep_result *out, stk_error *err);
/* Returns the job as YAML that has the same meaning in any folder: includes, variables and assignments are applied, and
 * paths are absolute. Free with stk_text_free. NULL: out of memory, or the path of the working directory is not UTF-8.
 */
STK_API char *stk_prep_job_text(const stk_prep *job);
/* Returns the tables of all keys of a job, as text. Free with stk_text_free. NULL: out of memory. */
STK_API char *stk_prep_options_help(void);
/* The same as JSON, in the form of stk_loader_options_tables. */
STK_API char *stk_prep_options_tables(void);
/* Notes about the job, one sentence each, like stk_loader_note. */
STK_API int stk_prep_note_count(const stk_prep *job);
STK_API const char *stk_prep_note(const stk_prep *job, int index);

#ifdef __cplusplus
}
#endif
#endif
