/* prep_targets.c: checks the files that a job writes, replaces or removes next to its output: in a dry run, before the
 * job starts, and again before files are renamed, because others may have been created in the meantime. */
#include "allocate.h"
#include "error.h"
#include "path.h"
#include "prep_file.h"
#include "prep_run.h"
#include "stamp.h"
#include <string.h>

static bool is_input(const stki_prep_run *run, const char *path)
{
    const stki_dataset *dataset = run->core->dataset;
    const stki_node *root = stki_document_root(run->job->document);
    const stki_node *const outputs[] = {stki_node_get(stki_node_get(root, "output"), "path"),
                                        stki_node_get(stki_node_get(root, "stats"), "path")};
    stki_stamp target;

    if (stki_stamp_take(path, &target, NULL) != STK_OK)
        return false;
    for (int f = 0; f < dataset->field_count; f++)
        for (int s = 0; s < dataset->fields[f].shard_count; s++)
            if (stki_stamp_is_of(&target, dataset->fields[f].shards[s]->path))
                return true;
    return stki_document_uses(run->job->document, path, outputs, 2);
}

/* Returns whether the files are being renamed, by another process or by one that was interrupted. */
static bool is_committing(const stki_job *job)
{
    char *path = stki_format("%s/commit.json", job->work);
    const bool exists = path && stki_prep_exists(path);

    stki_free(path);
    return exists;
}

/* Returns whether the data set of a manifest has a file of this name, of which the first `stem` bytes are its NAME. */
static bool has_file(const json_t *manifest, const char *name, size_t stem)
{
    const json_t *parts = json_object_get(manifest, "parts");
    bool found = (stki_prep_had_stats(manifest) && strcmp(name + stem, ".stats.json") == 0) ||
                 (stki_prep_had_skipped(manifest) && strcmp(name + stem, ".skipped.jsonl") == 0);

    for (size_t i = 0; i < json_array_size(parts) && !found; i++) {
        const char *part = json_string_value(json_object_get(json_array_get(parts, i), "path"));

        found = part && strcmp(part, name) == 0;
    }
    return found;
}

/* Fails if the file belongs to a data set with another NAME. The names of its files begin with that NAME. */
static stk_status check_owner(const stki_job *job, const char *path, stk_error *err)
{
    const size_t folder = strlen(path) - strlen(stki_base_name(path)), own = job->format ? strlen(job->stem) : 0;
    stk_status status = STK_OK;

    for (size_t end = strlen(path); end > folder && status == STK_OK; end--) {
        json_t *manifest = NULL;
        char *other;

        if ((path[end] && path[end] != '.' && path[end] != '-') || (end == own && !strncmp(path, job->stem, own)))
            continue;
        other = stki_format("%.*s.manifest.json", (int)end, path);
        if (!other)
            status = stki_fail_memory(err, 256, "a path");
        else if (stki_prep_exists(other) && stki_prep_read_json(other, &manifest, NULL) == STK_OK &&
                 has_file(manifest, path + folder, end - folder))
            status = stki_fail_at(
                err, STK_E_IO, (stki_place){path, -1, -1, NULL, NULL},
                "it belongs to another data set, %s, and is not replaced, even with the option force: choose "
                "another %s.path, or remove that data set",
                other, job->format ? "output" : "stats");
        json_decref(manifest);
        stki_free(other);
    }
    return status;
}

static stk_status check(const stki_prep_run *run, const char *path, stk_error *err)
{
    const stki_job *job = run->job;
    stk_status status;

    if (!path)
        return stki_fail_memory(err, 256, "a path");
    if (!stki_prep_exists(path))
        return STK_OK;
    if (is_input(run, path))
        return stki_fail(err, STK_E_CONFIG,
                         "%s.path: %s is read by the job, and would be replaced by its output: choose another name",
                         job->format ? "output" : "stats", path);
    status = check_owner(job, path, err);
    /* Of a job without output, prep.c checks the only file. */
    if (status != STK_OK || run->opts->force || !job->format || (!run->opts->restart && is_committing(job)))
        return status;
    return stki_fail_at(err, STK_E_IO, (stki_place){path, -1, -1, NULL, NULL},
                        "it already exists; the option force replaces it when the new one is complete");
}

static stk_status check_beside(const stki_prep_run *run, const char *ending, stk_error *err)
{
    char *path = stki_beside_output(run->job, ending);
    stk_status status = check(run, path, err);

    stki_free(path);
    return status;
}

/* Checks the files whose names are in a list of objects, under this key. */
static stk_status check_list(const stki_prep_run *run, const json_t *files, const char *key, stk_error *err)
{
    stk_status status = STK_OK;

    for (size_t i = 0; i < json_array_size(files) && status == STK_OK; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(files, i), key));
        char *path = stki_beside(run->job->path, name ? name : "");

        status = check(run, path, err);
        stki_free(path);
    }
    return status;
}

/* Checks the files of all shards, or with output.shard_bytes of those that are certainly written. */
static stk_status check_shards(const stki_prep_run *run, stk_error *err)
{
    const stki_job *job = run->job;
    const bool bytes = job->output.shard_bytes > 0, numbered = bytes || job->output.shard_rows > 0;
    const int64_t most = bytes && run->cuts.shards > 0 ? stki_prep_shard_most(run) : INT64_MAX,
                  count = bytes ? stki_ceil_div(run->cuts.positions, most) : run->cuts.shards;
    stki_sink_opts opts = stki_prep_sink_opts(run, 1);
    stk_status status = STK_OK;

    for (int64_t shard = 0; shard < count && status == STK_OK; shard++) {
        char *path = stki_outlet_path(job, numbered ? shard : -1), *file;

        opts.path = path;
        if (!path)
            status = stki_fail_memory(err, 256, "a path");
        for (int i = 0; status == STK_OK && (file = stki_sink_name(job->format, &opts, i)) != NULL; i++) {
            status = check(run, file, err);
            stki_free(file);
        }
        stki_free(path);
    }
    return status;
}

stk_status stki_prep_check_targets(const stki_prep_run *run, const json_t *files, stk_error *err)
{
    const stki_job *job = run->job;
    const json_t *old = run->name->old;
    stk_status status;

    if (!job->format)
        return check(run, job->path, err);
    status = check_beside(run, "manifest.json", err);
    if (status == STK_OK && (job->stats || job->counted || stki_prep_had_stats(old)))
        status = check_beside(run, "stats.json", err);
    if (status == STK_OK && (job->prep.on_error == STKI_JOB_SKIP || stki_prep_had_skipped(old)))
        status = check_beside(run, "skipped.jsonl", err);
    if (status == STK_OK)
        status = files ? check_list(run, files, "final", err) : check_shards(run, err);
    return status == STK_OK ? check_list(run, json_object_get(old, "parts"), "path", err) : status;
}
