/* prep.c: the public functions of preparation jobs; see prep.h and prep_run.h. They run a job, or return its plan, an
 * estimate, its result or its config. A handle may be used by only one thread at a time, except for `cancelled`. */
#include "allocate.h"
#include "apart.h"
#include "clock.h"
#include "count_job.h"
#include "error.h"
#include "path.h"
#include "prep_file.h"
#include "prep_inputs.h"
#include "prep_run.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stk_prep {
    stki_job job;
    stk_prep_opts opts;
    stki_name_lock name; /* lock that is held while the job runs */
    _Atomic bool cancelled;
    stk_prep_result result;
    char *manifest_path, *skipped_path, *stats_path, *commit_path;
    stki_notes notes;
    stki_job_clock clock;  /* of the last run */
    stki_inputs_seen seen; /* inputs read by the last run */
};

static stki_prep_run begin_run(stk_prep *prep)
{
    return (stki_prep_run){.job = &prep->job,
                           .name = &prep->name,
                           .opts = &prep->opts,
                           .cancelled = &prep->cancelled,
                           .notes = &prep->notes,
                           .clock = &prep->clock,
                           .seen = &prep->seen,
                           .lock = -1};
}

static void tick(void *context)
{
    (void)stki_prep_tick(context, false, NULL);
}

/* Opens everything except the work folder. The caller must call stki_prep_close even if this fails. */
static stk_status open_run(stk_prep *prep, stki_prep_run *run, stk_error *err)
{
    *run = begin_run(prep);
    run->rows.tick = tick;
    run->rows.tick_context = run;
    stki_prep_phase(run, STK_PREP_OPENING, 0, 0);
    return stki_prep_open(run, err);
}

/* A job with unresolved steps is inspected as a copy with placeholder parameters, which replaces the real one until
 * end_look. Results of earlier runs are then ignored. */
static stk_status begin_look(stk_prep *prep, stki_job *real, stk_error *err)
{
    stki_job look = {0};
    stk_status status;

    *real = prep->job;
    if (!stki_count_needed(&prep->job))
        return STK_OK;
    status = stki_job_read(real->file, real->text, real->base_dir, (const char *const *)real->sets, real->set_count,
                           &look, err);
    if (status == STK_OK)
        status = stki_count_pretend(&look, err);
    if (status == STK_OK)
        prep->job = look;
    else
        stki_job_fini(&look);
    return status;
}

static void end_look(stk_prep *prep, stki_job *real)
{
    if (prep->job.document != real->document)
        stki_job_fini(&prep->job);
    prep->job = *real;
}

#define TICK_NS (STKI_SECOND / 5)

/* ---- open ---- */

static stk_status check_opts(stk_prep *prep, const stk_prep_opts *opts, stk_error *err)
{
    stk_prep_opts *o = &prep->opts;

    if (!opts)
        return STK_OK;
    if (opts->struct_size < sizeof opts->struct_size)
        return stki_fail(err, STK_E_BAD_ARG, "opts.struct_size: found %u, expected that of STK_PREP_OPTS_INIT",
                         opts->struct_size);
    memcpy(o, opts, opts->struct_size < sizeof *o ? opts->struct_size : sizeof *o);
    if (o->tasks < 0 || o->task < 0 || (o->tasks > 0 ? o->task >= o->tasks : o->task > 0))
        return stki_fail(err, STK_E_BAD_ARG,
                         "opts.task: found %lld of %lld, expected a number from 0 to the number of tasks minus 1",
                         (long long)o->task, (long long)o->tasks);
    if (o->restart && o->tasks > 1)
        return stki_fail(
            err, STK_E_BAD_ARG,
            "opts.restart: cannot be combined with %lld tasks, because each would discard the pieces of the "
            "others: remove the work folder before starting them",
            (long long)o->tasks);
    if (o->force && o->tasks > 1)
        return stki_fail(err, STK_E_BAD_ARG,
                         "opts.force: cannot be combined with %lld tasks, because a task that starts late cannot "
                         "distinguish the old output from the new one: remove the old output before starting them",
                         (long long)o->tasks);
    if (o->merge && o->no_merge)
        return stki_fail(err, STK_E_BAD_ARG, "opts.merge: cannot be combined with no_merge");
    if (o->progress_interval_ns <= 0)
        o->progress_interval_ns = TICK_NS;
    return STK_OK;
}

static stk_status open_job(const char *file, const char *text, const char *base_dir, const char *const *sets,
                           int set_count, const stk_prep_opts *opts, stk_prep **out, stk_error *err)
{
    stk_prep *prep;
    stk_status status;

    if (set_count < 0 || (set_count > 0 && !sets))
        return stki_fail(err, STK_E_BAD_ARG, "sets: found %s and a count of %d", sets ? "an array" : "NULL", set_count);
    if ((status = stki_check_given(out, "out", err)) != STK_OK)
        return status;
    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = stki_check_given(sets[i], "sets[i]", err);
    if (status != STK_OK)
        return status;
    prep = stki_zalloc(sizeof *prep);
    if (!prep)
        return stki_fail_memory(err, sizeof *prep, "a job");
    prep->clock.fd = -1;
    status = check_opts(prep, opts, err);
    if (status == STK_OK)
        status = stki_job_read(file, text, base_dir, sets, set_count, &prep->job, err);
    if (status == STK_OK) {
        prep->manifest_path = stki_beside_output(&prep->job, "manifest.json");
        prep->skipped_path = stki_beside_output(&prep->job, "skipped.jsonl");
        prep->stats_path =
            prep->job.format ? stki_beside_output(&prep->job, "stats.json") : stki_strdup(prep->job.path);
        prep->commit_path = stki_format("%s/commit.json", prep->job.work);
        if (!prep->manifest_path || !prep->skipped_path || !prep->stats_path || !prep->commit_path)
            status = stki_fail_memory(err, 256, "a path");
    }
    if (status == STK_OK)
        *out = prep;
    else
        stk_prep_destroy(prep);
    return status;
}

stk_status stk_prep_open_file(const char *path, const char *const *sets, int set_count, const stk_prep_opts *opts,
                              stk_prep **out, stk_error *err)
{
    stk_status status = stki_check_given(path, "path", err);

    return status == STK_OK ? open_job(path, NULL, NULL, sets, set_count, opts, out, err) : status;
}

stk_status stk_prep_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                              const stk_prep_opts *opts, stk_prep **out, stk_error *err)
{
    stk_status status = stki_check_given(text, "text", err);

    return status == STK_OK ? open_job(NULL, text, base_dir, sets, set_count, opts, out, err) : status;
}

void stk_prep_destroy(stk_prep *prep)
{
    if (!prep)
        return;
    stki_job_fini(&prep->job);
    stki_notes_fini(&prep->notes);
    stki_free(prep->manifest_path);
    stki_free(prep->skipped_path);
    stki_free(prep->stats_path);
    stki_free(prep->commit_path);
    stki_free(prep);
}

void stk_prep_cancel(stk_prep *prep)
{
    if (prep)
        atomic_store_explicit(&prep->cancelled, true, memory_order_relaxed);
}

/* ---- notes ---- */

int stk_prep_note_count(const stk_prep *prep)
{
    return prep ? stki_notes_count(&prep->notes) : 0;
}

const char *stk_prep_note(const stk_prep *prep, int index)
{
    return prep ? stki_notes_get(&prep->notes, index) : NULL;
}

/* ---- run ---- */

/* Finds the first file of the manifest that does not exist with its recorded size. *out: its name in the manifest; NULL
 * if there is none. */
static stk_status find_missing(const stk_prep *prep, const json_t *manifest, const char **out, stk_error *err)
{
    const json_t *parts = json_object_get(manifest, "parts");
    stk_status status = STK_OK;

    *out = NULL;
    for (size_t i = 0; i < json_array_size(parts) && status == STK_OK && !*out; i++) {
        const json_t *part = json_array_get(parts, i);
        const char *found = json_string_value(json_object_get(part, "path")), *name = found ? found : "";
        char *path = stki_beside(prep->job.path, name);

        if (!path)
            status = stki_fail_memory(err, 256, "a path");
        else if (stki_prep_file_size(path) != json_integer_value(json_object_get(part, "bytes")))
            *out = name;
        stki_free(path);
    }
    return status;
}

/* Returns whether all files of the manifest exist with their recorded sizes. */
static bool outputs_stand(const stk_prep *prep)
{
    json_t *manifest = NULL;
    const char *missing;
    const bool stand = stki_prep_read_json(prep->manifest_path, &manifest, NULL) == STK_OK &&
                       find_missing(prep, manifest, &missing, NULL) == STK_OK && !missing;

    json_decref(manifest);
    return stand;
}

/* Fails because a file with the name of the manifest exists; the error describes that file. */
static stk_status fail_present(const stk_prep *prep, stk_error *err)
{
    const stki_place place = {prep->manifest_path, -1, -1, NULL, NULL};
    json_t *manifest = NULL;
    const char *kind, *missing;
    stk_status status = stki_prep_read_json(prep->manifest_path, &manifest, err);

    if (status != STK_OK && status != STK_E_CORRUPT)
        return status;
    kind = json_string_value(json_object_get(manifest, "kind"));
    if (!kind || strcmp(kind, "stoker manifest") != 0)
        status = stki_fail_at(
            err, STK_E_IO, place,
            "a file of this name exists and is not a manifest: remove it, choose another output.path, or replace "
            "it with the option force");
    else if ((status = find_missing(prep, manifest, &missing, err)) == STK_OK)
        status =
            missing
                ? stki_fail_at(err, STK_E_IO, place,
                               "a data set of this name exists, but its file %s is missing or has another "
                               "size; the option force replaces it, including all files that this manifest lists, "
                               "when the new one is complete",
                               missing)
                : stki_fail_at(err, STK_E_IO, place,
                               "a complete data set of this name exists; the option force replaces it, including all "
                               "files that this manifest lists, when the new one is complete");
    json_decref(manifest);
    return status;
}

/* Returns whether the files are being renamed, by another process or by one that was interrupted. */
static bool is_committing(const stk_prep *prep)
{
    return stki_prep_exists(prep->commit_path);
}

/* Fails if there is a manifest of this name. The other files are checked when their names are known. */
static stk_status check_output(const stk_prep *prep, stk_error *err)
{
    return prep->opts.force || !stki_prep_exists(prep->manifest_path) ? STK_OK : fail_present(prep, err);
}

static const char *unit_name(const stki_prep_run *run)
{
    return run->mode == STKI_PREP_SHARDS ? "shard" : "piece";
}

/* Returns the number of positions of a range of units. */
static int64_t positions_of(const stki_prep_run *run, int64_t first, int64_t end)
{
    int64_t from, to, p, q;

    if (first >= end)
        return 0;
    if (run->mode == STKI_PREP_SPOOLED) {
        stki_cut(&run->cuts, first, &from, &p);
        stki_cut(&run->cuts, end - 1, &p, &to);
        return to - from;
    }
    if (run->mode == STKI_PREP_WHOLE)
        return run->cuts.positions;
    stki_cut_of_shard(&run->cuts, first, &from, &p, &q, &p);
    stki_cut_of_shard(&run->cuts, end - 1, &p, &to, &q, &p);
    return to - from;
}

/* Returns whether the existing output belongs to this job, without checking the data. */
static bool is_made(stk_prep *prep, stki_prep_totals *out)
{
    json_t *manifest = NULL, *mine;
    bool same;

    if (stki_prep_read_json(prep->manifest_path, &manifest, NULL) != STK_OK)
        return false;
    mine = stki_job_json(&prep->job);
    same = mine && json_equal(mine, json_object_get(manifest, stki_count_needed(&prep->job) ? "requested" : "job"));
    if (same)
        stki_prep_read_totals(manifest, out);
    json_decref(mine);
    json_decref(manifest);
    return same;
}

/* Returns whether another process has completed the output of this job since this one started: another task, or a
 * second run. */
static bool others_are_done(stk_prep *prep, stki_prep_totals *out)
{
    stk_error ignored;

    return !prep->opts.force && prep->job.format && stki_name_check(&prep->name, &prep->job, &ignored) == STK_E_BUSY &&
           is_made(prep, out);
}

/* A process that completes the output removes the pieces after it has written the manifest, so the manifest is looked
 * for after the pieces have been counted. */
static stk_status make(stk_prep *prep, stki_prep_run *run, stk_error *err)
{
    stki_prep_missing missing;
    stki_prep_totals ignored;
    int64_t first, end, left;
    stk_status status;

    stki_prep_share(run, &first, &end);
    left = positions_of(run, first, end);
    stki_prep_phase(run, STK_PREP_MAKING, left, run->cuts.pieces);
    status = stki_prep_count_missing(run, first, end, &missing, &left, err);
    run->progress.rows = run->progress.resumed_rows = run->progress.row_total - left;
    if (status != STK_OK || missing.count == 0 || others_are_done(prep, &ignored))
        return status;
    status = stki_prep_space(run, err);
    return status == STK_OK ? stki_prep_make(run, first, end, err) : status;
}

/* Acquires the lock for joining. If another process is joining, a task returns STK_E_BUSY; a process without tasks
 * waits until the other one has finished or was killed. */
static stk_status lock_merge(const stk_prep *prep, stki_prep_run *run, const char *path, int *fd, stk_error *err)
{
    return prep->opts.tasks > 1 ? stki_prep_lock_file(path, fd, err) : stki_prep_wait_lock(run, path, fd, err);
}

/* Joins the pieces and commits the output. If another process was killed after it had written commit.json, only
 * finishes the commit. The caller holds merge.lock. */
static stk_status complete(stk_prep *prep, stki_prep_run *run, stki_prep_totals *totals, stk_error *err)
{
    bool found;
    stk_status status = STK_OK;

    if (is_committing(prep))
        return stki_prep_finish_commit(&prep->job, prep->opts.force, &found, totals, err);
    if (run->mode == STKI_PREP_SPOOLED) {
        stki_prep_phase(run, STK_PREP_JOINING, run->cuts.positions, run->cuts.pieces);
        status = stki_prep_join(run, err);
    }
    if (status == STK_OK) {
        stki_prep_phase(run, STK_PREP_COMMITTING, 0, 0);
        status = stki_prep_commit(run, totals, err);
    }
    return status;
}

static stk_status merge(stk_prep *prep, stki_prep_run *run, stki_prep_totals *totals, stk_error *err)
{
    char *path = stki_work_file(run, "merge.lock");
    stki_prep_missing missing;
    int64_t rows = 0;
    int fd = -1;
    stk_status status = stki_prep_count_missing(run, 0, run->units, &missing, &rows, err);

    prep->result.missing_pieces = missing.count;
    if (status == STK_OK && missing.count > 0 && prep->opts.merge)
        status = stki_fail(
            err, STK_E_NOT_FOUND,
            "%s: missing %ss: %lld of %lld (%s): run their tasks first, or run the job without the option merge",
            run->work, unit_name(run), (long long)missing.count, (long long)run->units, missing.text);
    if (status != STK_OK || missing.count > 0 || prep->opts.no_merge) {
        stki_free(path);
        return status;
    }
    status = path ? lock_merge(prep, run, path, &fd, err) : stki_fail_memory(err, 256, "a path");
    stki_free(path);
    if (status == STK_E_BUSY && !prep->opts.merge)
        return STK_OK; /* another task is joining */
    if (status != STK_OK)
        return status;
    status = complete(prep, run, totals, err);
    (void)close(fd);
    prep->result.complete = status == STK_OK;
    return status;
}

static void set_result(stk_prep *prep, const stki_prep_totals *totals)
{
    stk_prep_result *r = &prep->result;

    r->rows = totals->rows;
    r->skipped = totals->skipped;
    r->files = totals->files;
    r->bytes = totals->bytes;
    r->manifest_path = prep->job.format ? prep->manifest_path : NULL;
    r->skipped_path = totals->skipped > 0 ? prep->skipped_path : NULL;
    r->stats_path = prep->job.stats || prep->job.counted ? prep->stats_path : NULL;
    r->work_folder = prep->job.work;
}

static void note_complete(stk_prep *prep)
{
    stki_notes_add(&prep->notes,
                   "the output of this job is already complete: nothing was done (the option force rebuilds it)");
    prep->result.complete = true;
}

/* Fails because a file with the name of the statistics exists; the error describes that file. */
static stk_status fail_statistics_present(const stk_prep *prep, stk_error *err)
{
    const stki_place place = {prep->stats_path, -1, -1, NULL, NULL};
    json_t *stats = NULL;
    stk_status status = stki_prep_read_json(prep->stats_path, &stats, err);

    if (status != STK_OK && status != STK_E_CORRUPT)
        return status;
    if (json_is_integer(json_object_get(stats, "rows")))
        status = stki_fail_at(
            err, STK_E_IO, place,
            "complete statistics of this name exist; the option force replaces them when the new ones are complete");
    else
        status = stki_fail_at(
            err, STK_E_IO, place,
            "a file of this name exists and does not contain statistics: remove it, choose another stats.path, or "
            "replace it with the option force");
    json_decref(stats);
    return status;
}

/* Checks whether the existing statistics are those of this job and of the current data, in which case nothing needs to
 * be done. STK_E_IO: a different file exists. */
static stk_status look_for_statistics(stk_prep *prep, bool *made, stk_error *err)
{
    stki_prep_run run = begin_run(prep);
    stki_job real;
    json_t *stats = NULL, *mine;
    stk_status status = STK_OK;

    *made = false;
    if (prep->opts.force || !stki_prep_exists(prep->stats_path))
        return STK_OK;
    mine = stki_job_json(&prep->job);
    *made = stki_prep_read_json(prep->stats_path, &stats, NULL) == STK_OK && mine &&
            json_equal(mine, json_object_get(stats, "job"));
    if (*made && (status = begin_look(prep, &real, err)) == STK_OK) {
        status = stki_count_same(&prep->job, &run, stats, err);
        end_look(prep, &real);
    }
    if (status == STK_OK && !*made)
        status = fail_statistics_present(prep, err);
    prep->result.rows = json_integer_value(json_object_get(stats, "rows"));
    json_decref(stats);
    json_decref(mine);
    return status;
}

/* Runs a job without output. */
static stk_status count_alone(stk_prep *prep, stk_error *err)
{
    stki_prep_run run = begin_run(prep);
    stk_prep_result *r = &prep->result;
    bool made = false;
    stk_status status = look_for_statistics(prep, &made, err);

    if (status != STK_OK)
        return status;
    if (made)
        note_complete(prep);
    else
        status = stki_count_alone(&prep->job, &run, &r->rows, err);
    r->complete = status == STK_OK;
    r->files = r->complete;
    r->bytes = r->complete ? stki_prep_file_size(prep->stats_path) : 0;
    r->stats_path = prep->stats_path;
    r->work_folder = prep->job.work;
    return status;
}

/* Determines the parameters of unresolved steps. The job is first opened with placeholders, so that errors in the rest
 * are reported before all data is read. */
static stk_status count(stk_prep *prep, stk_error *err)
{
    stki_prep_run run = {.lock = -1};
    stki_job real;
    stk_status status;

    if (!stki_count_needed(&prep->job))
        return STK_OK;
    status = begin_look(prep, &real, err);
    if (status == STK_OK) {
        if ((status = open_run(prep, &run, err)) == STK_OK && /* checked before hours of counting */
            (status = stki_prep_check_targets(&run, NULL, err)) == STK_OK)
            status = stki_prep_space(&run, err);
        stki_prep_close(&run);
    }
    end_look(prep, &real);
    run = begin_run(prep);
    return status == STK_OK ? stki_count_job(&prep->job, &run, err) : status;
}

/* Fails if no work folder exists. */
static stk_status check_merge(stk_prep *prep, const stki_prep_run *run, stk_error *err)
{
    if (!prep->opts.merge || stki_prep_exists(prep->job.work))
        return STK_OK;
    /* Tasks would divide the job into pieces even if it has none when run as a whole. */
    prep->result.missing_pieces = run->mode == STKI_PREP_WHOLE ? run->cuts.pieces : run->units;
    return stki_fail(err, STK_E_NOT_FOUND, "%s: no such work folder (missing %ss: all %lld): run the tasks first",
                     prep->job.work, unit_name(run), (long long)prep->result.missing_pieces);
}

/* Checks whether the output of this job exists and was made from the current data, in which case nothing needs to be
 * done. */
static stk_status look_for_output(stk_prep *prep, bool *made, stki_prep_totals *out, stk_error *err)
{
    stki_prep_run run = {.lock = -1};
    stki_job real;
    json_t *manifest = NULL;
    stk_status status;

    *made = !prep->opts.force && stki_prep_exists(prep->manifest_path) && is_made(prep, out) && outputs_stand(prep);
    if (!*made || (status = begin_look(prep, &real, err)) != STK_OK)
        return *made ? status : STK_OK;
    if ((status = open_run(prep, &run, err)) == STK_OK &&
        (status = stki_prep_read_json(prep->manifest_path, &manifest, err)) == STK_OK)
        status = stki_prep_inputs_same(&run, manifest, prep->manifest_path, err);
    json_decref(manifest);
    stki_prep_close(&run);
    end_look(prep, &real);
    return status;
}

/* Adds to the error of a full disk that the job can be resumed, if any of its work is complete. */
static stk_status say_resumes(const stk_prep *prep, const stki_prep_run *run, stk_status status, stk_error *err)
{
    const stk_error full = *err;
    stki_prep_missing missing;
    stk_error ignored;
    int64_t rows = 0;

    if (status != STK_E_IO || strcmp(full.expected, STKI_FREE_SPACE) != 0 || prep->opts.restart)
        return status;
    if (run->lock >= 0)
        (void)stki_prep_count_missing(run, 0, run->units, &missing, &rows, &ignored);
    if (rows == 0 && !is_committing(prep))
        return status;
    (void)stki_fail(err, status, "%s; run the job again when there is: it resumes", full.message);
    stki_error_facts(err, (stki_place){full.file, full.record, full.offset, full.found, full.expected});
    return status;
}

/* Finishes an interrupted commit. *found: whether there was one. STK_E_BUSY: another process is committing. If only the
 * work folder remains to be removed, --force removes it, because a new one will be needed. */
static stk_status finish_commit(const stk_prep *prep, bool *found, stki_prep_totals *out, stk_error *err)
{
    char *path;
    int fd;
    stk_status status;

    *found = is_committing(prep);
    if (!*found)
        return STK_OK;
    path = stki_format("%s/merge.lock", prep->job.work);
    status = path ? stki_prep_lock_file(path, &fd, err) : stki_fail_memory(err, 256, "a path");
    stki_free(path);
    if (status != STK_OK)
        return status;
    status = stki_prep_finish_commit(&prep->job, prep->opts.force, found, out, err);
    if (status == STK_OK && !*found && prep->opts.force)
        status = stki_prep_clean_up(&prep->job, err);
    (void)close(fd);
    return status;
}

static stk_status run_once(stk_prep *prep, stki_prep_run *run, stk_error *err)
{
    stki_prep_totals totals = {0};
    bool found = false;
    stk_status status = STK_OK;

    if (!prep->job.format)
        return count_alone(prep, err);
    if (!prep->opts.restart)
        status = finish_commit(prep, &found, &totals, err);
    if (found) {
        if (status == STK_E_BUSY && prep->opts.tasks > 1) /* another task is merging */
            return STK_OK;
        prep->result.complete = status == STK_OK && is_made(prep, &totals);
        if (status != STK_OK || prep->result.complete) {
            set_result(prep, &totals);
            return status;
        }
        /* it belonged to another job of this name, which was interrupted at the very end, and has its manifest now */
        json_decref(prep->name.old);
        if ((status = stki_name_manifest(&prep->job, &prep->name.old, err)) == STK_OK)
            status = stki_prep_clean_up(&prep->job, err);
    }
    totals = (stki_prep_totals){0};
    if (status == STK_OK && (status = look_for_output(prep, &found, &totals, err)) == STK_OK && found) {
        note_complete(prep);
        set_result(prep, &totals);
        return STK_OK;
    }
    if (status == STK_OK && (status = check_output(prep, err)) == STK_OK && (status = count(prep, err)) == STK_OK &&
        (status = open_run(prep, run, err)) == STK_OK && (status = check_merge(prep, run, err)) == STK_OK)
        status = stki_work_open(run, err);
    if (status == STK_OK && !prep->opts.merge)
        status = make(prep, run, err);
    prep->result.resumed_rows = run->progress.resumed_rows;
    if (status == STK_OK)
        status = merge(prep, run, &totals, err);
    if (status == STK_OK && prep->result.complete)
        stki_prep_done(run, &totals);
    set_result(prep, &totals);
    return status;
}

static stk_status run_named(stk_prep *prep, stki_prep_run *run, stk_error *err)
{
    stki_prep_totals totals;
    stk_status status = run_once(prep, run, err);

    if (status != STK_E_CANCELLED && !prep->result.complete && others_are_done(prep, &totals)) {
        prep->result.complete = true;
        prep->result.missing_pieces = 0;
        set_result(prep, &totals);
        return STK_OK;
    }
    return say_resumes(prep, run, status, err);
}

/* Removes the work folder if the output is complete, or if the job created the folder and has failed before it read
 * rows. Called by the last process of the job. A failure is no error, because the next run of the job tries again. */
static void tidy(stk_prep *prep, stki_prep_run *run, bool failed)
{
    stk_status status = STK_OK;
    stk_error err;

    if (prep->job.format)
        status = stki_prep_clean_up(&prep->job, &err);
    else if (prep->result.complete)
        status = stki_work_remove(prep->job.work, &err);
    if (status != STK_OK)
        stki_notes_add(&prep->notes, "the work folder cannot be removed: %s", err.message);
    if (failed && prep->name.fresh && !run->began && !prep->job.counted)
        stki_work_drop(run);
}

stk_status stk_prep_run(stk_prep *prep, stk_error *err)
{
    stki_prep_run run = {.lock = -1};
    stk_error cause;
    stk_status status = stki_check_given(prep, "job", err);

    if (status != STK_OK)
        return status;
    prep->result = (stk_prep_result){.struct_size = sizeof prep->result};
    prep->clock = (stki_job_clock){.fd = -1, .began_ns = stki_now_ns()};
    if ((status = stki_work_check_target(&prep->job, &cause)) == STK_OK) {
        status = stki_name_take(&prep->job, &prep->name, &cause);
        if (status == STK_OK)
            status = run_named(prep, &run, &cause);
        stki_job_clock_close(&prep->clock);
        if (stki_name_leave(&prep->name))
            tidy(prep, &run, status != STK_OK && status != STK_E_CANCELLED);
        stki_prep_close(&run);
        stki_inputs_seen_fini(&prep->seen);
        stki_name_release(&prep->name);
    }
    if (status != STK_OK && err)
        *err = cause;
    return status;
}

/* ---- queries ---- */

/* Checks the arguments of a query. `size`: the first member of the caller's struct; NULL: no struct. */
static stk_status check_asked(const stk_prep *prep, const uint32_t *size, const char *type, stk_error *err)
{
    if (!prep || !size)
        return stki_check_given(prep ? (const void *)size : prep, prep ? "out" : "job", err);
    if (*size < sizeof *size)
        return stki_fail(err, STK_E_BAD_ARG, "out.struct_size: found %u, expected sizeof(%s)", *size, type);
    return STK_OK;
}

/* Copies as much of the answer as the caller's struct has room for. */
static void give(void *out, uint32_t size, const void *answer, size_t bytes)
{
    memcpy(out, answer, size < bytes ? size : bytes);
    memcpy(out, &size, sizeof size);
}

stk_status stk_prep_get_result(const stk_prep *prep, stk_prep_result *out, stk_error *err)
{
    stk_status status = check_asked(prep, out ? &out->struct_size : NULL, "stk_prep_result", err);

    if (status == STK_OK)
        give(out, out->struct_size, &prep->result, sizeof *out);
    return status;
}

/* `made`: the output is complete, so that no file will be written. */
static stk_status fill_plan(stk_prep *prep, stki_prep_run *run, bool pretended, bool made, stk_prep_plan *plan,
                            stk_error *err)
{
    stki_prep_missing missing;
    int64_t first, end, left = 0;
    bool found = false;
    stk_status status = made ? STK_OK : stki_prep_check_targets(run, NULL, err);

    if (status == STK_OK && !pretended)
        status = stki_work_look(run, &found, err);
    if (status != STK_OK)
        return status;
    stki_prep_share(run, &first, &end);
    if (found && !prep->opts.restart)
        status = stki_prep_count_missing(run, first, end, &missing, &left, err);
    plan->resumed_rows = -left;
    plan->spooled = run->mode == STKI_PREP_SPOOLED;
    plan->samples = run->core->dataset->count;
    plan->positions = run->cuts.positions;
    plan->batch_rows = run->batch_rows;
    plan->pieces = run->cuts.pieces;
    plan->piece_rows = run->cuts.piece_rows;
    plan->shards = prep->job.output.shard_bytes > 0 ? -1 : run->cuts.shards;
    plan->output_bytes = stki_prep_files_bytes(run, &run->typical);
    plan->output_exact = stki_prep_is_exact(run);
    plan->work_bytes = stki_prep_spool_bytes(run);
    plan->output_exists = stki_prep_exists(prep->manifest_path);
    return status;
}

/* Fills the plan of a job without output. */
static stk_status fill_plan_alone(stk_prep *prep, stk_prep_plan *plan, stk_error *err)
{
    stki_loader_config *config;
    stki_prep_run run = begin_run(prep);
    stk_status status = stki_job_loader(&prep->job, NULL, NULL, &config, err);

    if (status == STK_OK)
        config->idle = true;
    if (status == STK_OK && (status = stki_loader_open_config(config, &run.loader, err)) == STK_OK) {
        plan->samples = run.loader->core->dataset->count;
        plan->positions = stk_loader_samples(run.loader);
        plan->output_exists = stki_prep_exists(prep->stats_path);
        run.core = run.loader->core;
        status = stki_prep_check_targets(&run, NULL, err);
    }
    stki_prep_close_loader(&run);
    return status;
}

/* *made: whether the output is complete. Fails if it is that of another job, or of other data. */
static stk_status look_for_any(stk_prep *prep, bool *made, stk_error *err)
{
    stki_prep_totals totals;
    stk_status status;

    if (!prep->job.format)
        return look_for_statistics(prep, made, err);
    *made = false;
    if (!prep->opts.restart && is_committing(prep)) /* its files may already have their names */
        return STK_OK;
    status = look_for_output(prep, made, &totals, err);
    return status == STK_OK && !*made ? check_output(prep, err) : status;
}

static stk_status look_at(stk_prep *prep, bool pretended, bool made, stk_prep_plan *plan, stk_error *err)
{
    stki_prep_run run;
    stk_status status;

    if (!prep->job.format)
        return fill_plan_alone(prep, plan, err);
    status = open_run(prep, &run, err);
    if (status == STK_OK)
        status = fill_plan(prep, &run, pretended, made, plan, err);
    stki_prep_close(&run);
    return status;
}

static void during_trial(void *context)
{
    const stk_prep *prep = context;
    const stk_prep_progress now = {.struct_size = sizeof now, .phase = STK_PREP_OPENING};

    if (prep->opts.progress)
        prep->opts.progress(prep->opts.progress_context, &now);
}

static bool is_cancelled(void *context)
{
    return ((const stk_prep *)context)->cancelled;
}

stk_status stk_prep_get_plan(stk_prep *prep, stk_prep_plan *out, stk_error *err)
{
    stki_apart_trial trial = {.wait = during_trial, .cancelled = is_cancelled, .context = prep};
    char *text;
    bool made;
    stki_job real;
    stk_prep_plan plan = {0};
    stk_status status = check_asked(prep, out ? &out->struct_size : NULL, "stk_prep_plan", err);

    if (status == STK_OK)
        status = stki_work_check_target(&prep->job, err);
    if (status != STK_OK)
        return status;
    trial.job = text = stk_prep_job_text(prep);
    stki_apart_try(&trial);
    status = look_for_any(prep, &made, err);
    if (status == STK_OK && (status = begin_look(prep, &real, err)) == STK_OK) {
        if (stki_prep_exists(prep->manifest_path)) /* its files would be replaced */
            (void)stki_prep_read_json(prep->manifest_path, &prep->name.old, NULL);
        status = look_at(prep, prep->job.document != real.document, made, &plan, err);
        json_decref(prep->name.old);
        prep->name.old = NULL;
        end_look(prep, &real);
    }
    stki_apart_try(NULL);
    stki_apart_end_trial();
    if (trial.made && !text)
        stki_notes_add(&prep->notes,
                       "the test read of HDF5 files was skipped, because the job has a path that is not UTF-8");
    stk_text_free(text);
    give(out, out->struct_size, &plan, sizeof plan);
    return status;
}

static stk_status sample_job(stk_prep *prep, int64_t most_ns, stk_prep_estimate *out, stk_error *err)
{
    stki_prep_run run;
    stk_status status = open_run(prep, &run, err);

    if (status == STK_OK)
        status = stki_prep_sample(&run, most_ns, out, err);
    stki_prep_close(&run);
    return status;
}

stk_status stk_prep_get_estimate(stk_prep *prep, int64_t most_ns, stk_prep_estimate *out, stk_error *err)
{
    stk_prep_estimate estimate = {.total_ns = -1};
    stki_job real;
    stk_status status = check_asked(prep, out ? &out->struct_size : NULL, "stk_prep_estimate", err);

    if (status != STK_OK)
        return status;
    if (!prep->job.format)
        return stki_fail(err, STK_E_UNSUPPORTED, "a job without output produces no rows to sample");
    status = begin_look(prep, &real, err);
    if (status == STK_OK)
        status = sample_job(prep, most_ns > 0 ? most_ns : 2 * STKI_SECOND, &estimate, err);
    end_look(prep, &real);
    give(out, out->struct_size, &estimate, sizeof estimate);
    return status;
}

static stk_status write_job(const stk_prep *prep, FILE *to)
{
    return stki_document_write_absolute(prep->job.document, to, NULL);
}

static stk_status write_help(const stk_prep *prep, FILE *to)
{
    (void)prep;
    stki_sections_help(stki_job_sections, to);
    return STK_OK;
}

static char *text_by(stk_status (*write)(const stk_prep *prep, FILE *to), const stk_prep *prep)
{
    char *text = NULL, *copy = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    stk_status status;

    if (!to)
        return NULL;
    status = write(prep, to);
    if (fclose(to) == 0 && status == STK_OK)
        copy = stki_strdup(text);
    free(text);
    return copy;
}

char *stk_prep_job_text(const stk_prep *prep)
{
    return prep ? text_by(write_job, prep) : NULL;
}

char *stk_prep_options_help(void)
{
    return text_by(write_help, NULL);
}

char *stk_prep_options_tables(void)
{
    json_t *json = stki_sections_json(stki_job_sections);
    char *text = json_dumps(json, JSON_COMPACT), *counted = text ? stki_strdup(text) : NULL;

    json_decref(json);
    free(text);
    return counted;
}
