/* prep_commit.c: the commit of a job. All files are on disk under temporary names. The planned renames are first
 * recorded in commit.json; from then on, an interrupted job is not redone; only its files are renamed. Files are
 * renamed one by one, and the manifest last, because it marks the data set as complete. */
#include "allocate.h"
#include "error.h"
#include "output.h"
#include "path.h"
#include "prep_file.h"
#include "prep_inputs.h"
#include "prep_run.h"
#include "stats_options.h"
#include "stays.h"
#include "text_json.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- results of the units ---- */

static stk_status collect_files(const stki_prep_run *run, json_t *files, stk_error *err)
{
    const bool joined = run->mode == STKI_PREP_SPOOLED;
    stk_status status = STK_OK;

    for (int64_t unit = 0; unit < (joined ? 1 : run->units) && status == STK_OK; unit++) {
        char *path = joined ? stki_work_file(run, "join.journal") : stki_work_journal(run, unit);
        json_t *lines = NULL;

        status = path ? stki_journal_read(path, &lines, err) : stki_fail_memory(err, 256, "a path");
        if (status == STK_OK)
            status = stki_outlet_files(lines, files, err);
        json_decref(lines);
        stki_free(path);
    }
    return status;
}

static stk_status add_seen(const stki_prep_run *run, const json_t *piece, stki_seen **seen, stk_error *err)
{
    const json_t *list = json_object_get(piece, "seen");
    stk_status status = STK_OK;

    for (int i = 0; i < run->observer_count && status == STK_OK; i++) {
        const stki_observer *observer = run->observers[i];
        const json_t *saved = json_array_get(list, (size_t)i);
        stki_seen *next = NULL;

        if (!saved || json_is_null(saved))
            continue;
        status = observer->ops->load(observer, saved, &next, err);
        if (status == STK_OK && !seen[i]) {
            seen[i] = next;
            continue;
        }
        if (status == STK_OK)
            status = observer->ops->merge(observer, seen[i], next, err);
        observer->ops->drop(observer, next);
    }
    return status;
}

struct collecting {
    stki_prep_run *run;
    json_t *skipped;
    stki_seen **seen;
    stki_prep_totals *totals;
};

/* Adds a piece from a line of a journal or from a spooled file. */
static stk_status take_piece(void *context, json_t *piece, stk_error *err)
{
    const struct collecting *c = context;
    stk_status status;

    if (!json_object_get(piece, "piece"))
        return STK_OK;
    c->totals->rows += json_integer_value(json_object_get(piece, "rows"));
    if (json_array_extend(c->skipped, json_object_get(piece, "skipped")) != 0)
        return stki_fail_memory(err, 256, "the list of failed samples");
    status = stki_stays_merge(c->run->stays, json_object_get(piece, "stays"), err);
    if (status != STK_OK)
        return status;
    return add_seen(c->run, piece, c->seen, err);
}

static stk_status collect_unit(struct collecting *c, int64_t unit, stk_error *err)
{
    json_t *pieces;
    char *path;
    stk_status status;

    if (c->run->mode != STKI_PREP_SPOOLED) {
        path = stki_work_journal(c->run, unit);
        status = path ? stki_journal_each(path, take_piece, c, err) : stki_fail_memory(err, 256, "a path");
        stki_free(path);
        return status;
    }
    pieces = json_array();
    status = stki_prep_unit_pieces(c->run, unit, pieces, err);
    for (size_t i = 0; status == STK_OK && i < json_array_size(pieces); i++)
        status = take_piece(c, json_array_get(pieces, i), err);
    json_decref(pieces);
    return status;
}

/* Adds a note for each field with images that were kept unchanged instead of encoded. */
static void note_stays(const stki_prep_run *run)
{
    const char *field;
    json_t *of_field;

    json_object_foreach(run->stays, field, of_field)
    {
        char text[300];
        int64_t count;

        (void)stki_stays_text(of_field, &count, text, sizeof text);
        if (run->notes)
            stki_notes_add(run->notes, "output.fields.%s: %" PRId64 " image%s %s kept unchanged: %s", field, count,
                           count == 1 ? "" : "s", count == 1 ? "was" : "were", text);
    }
}

static stk_status collect_pieces(stki_prep_run *run, json_t *skipped, stki_seen **seen, stki_prep_totals *totals,
                                 stk_error *err)
{
    struct collecting c = {run, skipped, seen, totals};
    stk_status status = STK_OK;

    json_decref(run->stays);
    run->stays = json_object();
    if (!run->stays)
        return stki_fail_memory(err, 256, "a count of rows");
    for (int64_t unit = 0; unit < run->units && status == STK_OK; unit++)
        status = collect_unit(&c, unit, err);
    note_stays(run);
    totals->skipped = (int64_t)json_array_size(skipped);
    return status;
}

/* ---- files next to the data ---- */

static stk_status write_skipped(const stki_prep_run *run, const json_t *skipped, stk_error *err)
{
    char *path = stki_work_file(run, "skipped.jsonl");
    stki_output *output = NULL;
    stk_status status = path ? stki_output_create(path, &output, err) : stki_fail_memory(err, 256, "a path");

    for (size_t i = 0; status == STK_OK && i < json_array_size(skipped); i++) {
        char *line = json_dumps(json_array_get(skipped, i), JSON_COMPACT);

        status = line ? stki_output_append(output, line, (int64_t)strlen(line), err) : stki_fail_memory(err, 256, path);
        if (status == STK_OK)
            status = stki_output_append(output, "\n", 1, err);
        free(line);
    }
    if (output)
        status = stki_output_end(output, status, err);
    stki_free(path);
    return status;
}

/* Creates the report of an observer, even if it received no rows. */
static stk_status report_of(const stki_observer *observer, stki_seen **seen, json_t **out, stk_error *err)
{
    stk_status status = *seen ? STK_OK : observer->ops->begin(observer, seen, err);

    return status == STK_OK ? observer->ops->report(observer, *seen, out, err) : status;
}

/* Adds the results of the passes before the writing one. If the written rows of a field were counted too, its results
 * are those of the written rows, plus the calibration that quantized them; those of the earlier pass are stored
 * under its key `before`. */
static stk_status add_counted(json_t *counted, json_t *fields, stk_error *err)
{
    const char *name;
    json_t *before;
    int failed = 0;

    json_object_foreach(counted, name, before)
    {
        json_t *field = json_object_get(fields, name), *quantize = json_object_get(before, "quantize");

        if (!field) {
            failed |= json_object_set(fields, name, before);
            continue;
        }
        failed |= json_object_set(field, "before", before);
        if (quantize && !json_object_get(field, "quantize"))
            failed |= json_object_set(field, "quantize", quantize);
    }
    return failed ? stki_fail_memory(err, 256, "statistics") : STK_OK;
}

static stk_status write_stats(const stki_prep_run *run, stki_seen **seen, int64_t rows, stk_error *err)
{
    char *path = stki_work_file(run, "stats.json");
    json_t *fields = json_object(), *json = NULL;
    stk_status status = path && fields ? STK_OK : stki_fail_memory(err, 256, "statistics");

    for (int i = 0; i < run->observer_count && status == STK_OK; i++) {
        const stki_observer *observer = run->observers[i];
        json_t *report;

        status = report_of(observer, &seen[i], &report, err);
        if (status == STK_OK)
            stki_classes_report(run->core, observer->field, report);
        if (status == STK_OK && json_object_set_new(fields, run->fields[observer->field].in.name, report) != 0)
            status = stki_fail_memory(err, 256, "statistics");
    }
    if (status == STK_OK)
        status = add_counted(run->job->counted, fields, err);
    if (status == STK_OK) {
        json = stki_stats_document(rows, json_incref(fields));
        status = json ? stki_prep_write_json(path, json, err) : stki_fail_memory(err, 256, "statistics");
    }
    json_decref(json);
    json_decref(fields);
    stki_free(path);
    return status;
}

/* ---- renaming ---- */

/* Renames a file. Succeeds if that has already been done, in which case the target exists with exactly this size. */
static stk_status give_name(const char *from, const char *to, int64_t bytes, stk_error *err)
{
    if (rename(from, to) == 0 || (errno == ENOENT && stki_prep_file_size(to) == bytes))
        return STK_OK;
    return stki_fail_errno(err, errno, to, "cannot rename %s", from);
}

static stk_status remove_if_there(const char *path, stk_error *err)
{
    return !path                                  ? stki_fail_memory(err, 256, "a path")
           : remove(path) == 0 || errno == ENOENT ? STK_OK
                                                  : stki_fail_errno(err, errno, path, "cannot remove");
}

/* Removes files of the previous data set that are not part of the new one. */
static stk_status remove_old(const stki_job *job, const json_t *old, const json_t *files, stk_error *err)
{
    const json_t *parts = json_object_get(old, "parts");
    stk_status status = STK_OK;

    for (size_t i = 0; i < json_array_size(parts) && status == STK_OK; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(parts, i), "path"));
        bool kept = !name || strchr(name, '/');
        char *path;

        for (size_t k = 0; k < json_array_size(files) && !kept; k++)
            kept = strcmp(json_string_value(json_object_get(json_array_get(files, k), "final")), name) == 0;
        if (kept)
            continue;
        path = stki_beside(job->path, name);
        status = remove_if_there(path, err);
        stki_free(path);
    }
    return status;
}

static stk_status rename_all(const stki_job *job, const char *making, const json_t *files, stk_error *err)
{
    stk_status status = STK_OK;

    for (size_t i = 0; i < json_array_size(files) && status == STK_OK; i++) {
        const json_t *file = json_array_get(files, i);
        char *from = stki_format("%s/%s", making, json_string_value(json_object_get(file, "temporary")));
        char *to = stki_beside(job->path, json_string_value(json_object_get(file, "final")));

        status = from && to ? give_name(from, to, json_integer_value(json_object_get(file, "bytes")), err)
                            : stki_fail_memory(err, 256, "a path");
        stki_free(from);
        stki_free(to);
    }
    return status;
}

/* Copies a file of the work folder to NAME.ENDING. If the job did not write one, removes the file of the previous data
 * set, if that had one; any other file of that name does not belong to the job. */
static stk_status place(const stki_job *job, const char *ending, bool wanted, bool had, stk_error *err)
{
    char *from = stki_format("%s/%s", job->work, ending), *to = stki_beside_output(job, ending);
    char *text = NULL;
    int64_t bytes;
    stk_status status = STK_OK;

    if (!from || !to)
        status = stki_fail_memory(err, 256, "a path");
    else if (!wanted)
        status = had ? remove_if_there(to, err) : STK_OK;
    else if (stki_prep_exists(from)) { /* the file is copied, because the work folder may be on another file system */
        status = stki_prep_read_file(from, &text, &bytes, err);
        if (status == STK_OK)
            status = stki_prep_write_final(to, text, bytes, err);
        stki_free(text);
    }
    stki_free(from);
    stki_free(to);
    return status;
}

static stk_status write_manifest(const stki_job *job, const json_t *manifest, stk_error *err)
{
    char *path = stki_beside_output(job, "manifest.json");
    char *dump = json_dumps(manifest, JSON_INDENT(2) | JSON_SORT_KEYS);
    char *text = dump ? stki_format("%s\n", dump) : NULL;
    stk_status status = path && text ? stki_prep_write_final(path, text, (int64_t)strlen(text), err)
                                     : stki_fail_memory(err, 256, "a manifest");

    stki_free(text);
    free(dump);
    stki_free(path);
    return status;
}

static bool is_name(const json_t *name)
{
    return json_string_length(name) > 0 && !strchr(json_string_value(name), '/');
}

/* Validates commit.json: only names that this job could have written are accepted. */
static bool is_whole(const json_t *commit)
{
    const json_t *files = json_object_get(commit, "files");
    bool whole = json_is_object(json_object_get(commit, "manifest")) && json_is_array(files) &&
                 json_is_string(json_object_get(commit, "making"));

    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);

        whole = whole && is_name(json_object_get(file, "temporary")) && is_name(json_object_get(file, "final"));
    }
    return whole;
}

/* Returns the folder of unfinished files: the work folder, or the folder next to the output. */
static char *making_of(const stki_job *job, const json_t *commit)
{
    char *said = stki_text_of_json(json_object_get(commit, "making"));
    const bool same = said && strcmp(said, job->work) == 0;

    stki_free(said);
    return same ? stki_strdup(job->work) : stki_format("%s.prep", job->path);
}

/* Removes the bulk of the work folder early. The last process of the job removes the rest, including what other
 * processes create in the meantime. */
static void remove_pieces(const stki_job *job)
{
    char *pieces = stki_format("%s/pieces", job->work);
    stk_error ignored;

    if (pieces)
        (void)stki_prep_remove_folder(pieces, NULL, &ignored);
    stki_free(pieces);
}

/* Carries out commit.json; may be repeated after an interruption. */
static stk_status carry_out(const stki_job *job, const json_t *commit, stk_error *err)
{
    const json_t *manifest = json_object_get(commit, "manifest"), *files = json_object_get(commit, "files"),
                 *old = json_object_get(commit, "old");
    char *path, *making;
    stk_status status = STK_OK;

    if (!is_whole(commit))
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){job->work, -1, -1, "a damaged commit.json", NULL},
                            "start again with the option restart");
    path = stki_beside_output(job, "manifest.json");
    making = making_of(job, commit);
    if (!path || !making)
        status = stki_fail_memory(err, 256, "a path");
    if (status == STK_OK && (status = remove_if_there(path, err)) == STK_OK &&
        (status = remove_old(job, old, files, err)) == STK_OK &&
        (status = rename_all(job, making, files, err)) == STK_OK &&
        (status = place(job, "skipped.jsonl", json_is_true(json_object_get(commit, "skipped")),
                        stki_prep_had_skipped(old), err)) == STK_OK &&
        (status = place(job, "stats.json", json_is_true(json_object_get(commit, "stats")), stki_prep_had_stats(old),
                        err)) == STK_OK &&
        (status = stki_sync_folder_of(job->path, err)) == STK_OK)
        status = write_manifest(job, manifest, err);
    if (status == STK_OK)
        remove_pieces(job);
    stki_free(path);
    stki_free(making);
    return status;
}

void stki_prep_read_totals(const json_t *manifest, stki_prep_totals *out)
{
    const json_t *totals = json_object_get(manifest, "totals");

    *out = (stki_prep_totals){.rows = json_integer_value(json_object_get(totals, "rows")),
                              .skipped = json_integer_value(json_object_get(totals, "skipped")),
                              .files = json_integer_value(json_object_get(totals, "files")),
                              .bytes = json_integer_value(json_object_get(totals, "bytes"))};
}

/* Fails if another job has created outputs of the same name since the interruption. `now`: its manifest. */
static stk_status check_old(const stki_job *job, json_t *now, bool force, json_t *commit, stk_error *err)
{
    if (json_is_null(now) || json_equal(now, json_object_get(commit, "old")))
        return STK_OK;
    if (force)
        return json_object_set(commit, "old", now) == 0 ? STK_OK : stki_fail_memory(err, 256, "a manifest");
    return stki_fail_at(err, STK_E_IO, (stki_place){job->stem, -1, -1, "the manifest of another job", NULL},
                        "after this job was interrupted, another job completed an output of the same name; the option "
                        "force replaces it");
}

/* Reads commit.json (NULL: there is none) and the current manifest. *done: whether it is that of the commit. */
static stk_status read_commit(const stki_job *job, json_t **commit, json_t **now, bool *done, stk_error *err)
{
    char *path = stki_format("%s/commit.json", job->work);
    stk_status status = path ? stki_name_manifest(job, now, err) : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && stki_prep_exists(path))
        status = stki_prep_read_json(path, commit, err);
    *done = *commit && json_equal(*now, json_object_get(*commit, "manifest"));
    stki_free(path);
    return status;
}

stk_status stki_prep_finish_commit(const stki_job *job, bool force, bool *found, stki_prep_totals *out, stk_error *err)
{
    json_t *commit = NULL, *now = NULL;
    bool done;
    stk_status status = read_commit(job, &commit, &now, &done, err);

    *found = !done;
    if (status == STK_OK) {
        stki_prep_read_totals(json_object_get(commit, "manifest"), out);
        if (!done && (status = check_old(job, now, force, commit, err)) == STK_OK)
            status = carry_out(job, commit, err);
    }
    json_decref(commit);
    json_decref(now);
    return status;
}

/* Removes commit.json last, because it records that only the folder remains to be removed. */
stk_status stki_prep_clean_up(const stki_job *job, stk_error *err)
{
    json_t *commit = NULL, *now = NULL;
    char *making = NULL;
    bool done;
    stk_status status = read_commit(job, &commit, &now, &done, err);

    if (status == STK_OK && done) {
        making = making_of(job, commit);
        status = making ? STK_OK : stki_fail_memory(err, 256, "a path");
        if (status == STK_OK && strcmp(making, job->work) != 0)
            status = stki_prep_remove_folder(making, NULL, err);
    }
    if (status == STK_OK && (done || (!json_is_null(now) && stki_prep_folder_is_empty(job->work))))
        status = stki_prep_remove_folder(job->work, "commit.json", err);
    stki_free(making);
    json_decref(commit);
    json_decref(now);
    return status;
}

/* ---- whole commit ---- */

static stk_status write_commit(const stki_prep_run *run, json_t *files, const json_t *skipped,
                               const stki_prep_totals *totals, stk_error *err)
{
    char *path = stki_work_file(run, "commit.json");
    json_t *manifest = NULL, *commit = NULL;
    stk_status status =
        path ? stki_prep_manifest(run, files, totals, skipped, &manifest, err) : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK) {
        commit = json_pack("{s:o, s:O, s:o, s:b, s:b, s:o}", "manifest", manifest, "files", files, "making",
                           stki_text_json(run->making), "skipped", totals->skipped > 0, "stats",
                           run->observer_count > 0 || run->job->counted, "old", json_incref(run->name->old));
        status = commit ? stki_prep_write_json(path, commit, err) : stki_fail_memory(err, 256, "a manifest");
    }
    if (status == STK_OK)
        status = carry_out(run->job, commit, err);
    json_decref(commit);
    stki_free(path);
    return status;
}

stk_status stki_prep_commit(stki_prep_run *run, stki_prep_totals *out, stk_error *err)
{
    json_t *files = json_array(), *skipped = json_array();
    stki_seen **seen = stki_zalloc_array(run->observer_count + 1, sizeof(stki_seen *));
    stk_status status = files && skipped && seen ? STK_OK : stki_fail_memory(err, 256, "a manifest");

    *out = (stki_prep_totals){0};
    if (status == STK_OK && (status = stki_name_check(run->name, run->job, err)) == STK_OK &&
        (status = stki_prep_inputs_check(run, err)) == STK_OK && (status = collect_files(run, files, err)) == STK_OK &&
        (status = stki_prep_check_targets(run, files, err)) == STK_OK)
        status = collect_pieces(run, skipped, seen, out, err);
    if (status == STK_OK && out->rows == 0)
        status = stki_fail(err, STK_E_EMPTY, "%s: all %lld samples failed and were skipped", run->job->path,
                           (long long)run->cuts.positions);
    if (status == STK_OK && out->skipped > stki_prep_allowed(run)) /* each task has only counted its own failures */
        status = stki_fail_at(err, STK_E_LIMIT,
                              (stki_place){run->job->path, -1, -1, STKI_TEXT("%" PRId64, out->skipped),
                                           STKI_TEXT("at most %" PRId64, stki_prep_allowed(run))},
                              "failed samples of all tasks together (prep.max_errors, prep.max_error_fraction); raise "
                              "the limits and run the job again: the other samples are done");
    out->files = (int64_t)json_array_size(files);
    for (size_t i = 0; i < json_array_size(files); i++)
        out->bytes += json_integer_value(json_object_get(json_array_get(files, i), "bytes"));
    if (status == STK_OK && out->skipped > 0)
        status = write_skipped(run, skipped, err);
    if (status == STK_OK && (run->observer_count > 0 || run->job->counted))
        status = write_stats(run, seen, out->rows, err);
    if (status == STK_OK)
        status = write_commit(run, files, skipped, out, err);
    for (int i = 0; seen && i < run->observer_count; i++)
        run->observers[i]->ops->drop(run->observers[i], seen[i]);
    stki_free(seen);
    json_decref(files);
    json_decref(skipped);
    return status;
}
