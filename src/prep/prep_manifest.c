/* prep_manifest.c: NAME.manifest.json, which describes a data set and its origin (docs/reference/prep.md describes the
 * format). It allows checking every part, and comparing data sets: `digest` is the XXH3-128 of the manifest as compact
 * JSON with sorted keys, without `digest` itself and without `run`, which records when and where it was made. */
#include "allocate.h"
#include "clock.h"
#include "digest.h"
#include "error.h"
#include "manifest.h"
#include "path.h"
#include "prep_file.h"
#include "prep_run.h"
#include "stamp.h"
#include "text_json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { LISTED = 1000 }; /* maximum number of skipped samples listed in the manifest */

static void set(json_t *object, const char *key, json_t *value)
{
    (void)json_object_set_new(object, key, value);
}

static void set_sum(json_t *object, const char *key, uint64_t sum)
{
    char text[24];

    snprintf(text, sizeof text, "%016" PRIx64, sum);
    set(object, key, json_string(text));
}

/* ---- inputs ---- */

/* *modified: in ns. */
static stk_status describe_file(const char *path, bool digests, json_t *out, json_t **modified, stk_error *err)
{
    stki_stamp stamp = {.size = -1};
    uint64_t sum;
    stk_status status;

    (void)stki_stamp_take(path, &stamp, NULL);
    status = digests ? stki_prep_digest_file(path, &sum, &stamp.size, err) : STK_OK;
    set(out, "bytes", json_integer(stamp.size));
    if (status == STK_OK && digests)
        set_sum(out, "xxh3", sum);
    *modified = json_integer(stamp.mtime_ns);
    return status;
}

/* Describes samples that are files: their number, total size, and a hash of their names and sizes (and checksums).
 * *modified: a hash of their modification times. */
static stk_status describe_files(const stki_reader *reader, bool digests, json_t *out, json_t **modified,
                                 stk_error *err)
{
    char buffer[STKI_RECORD_PATH];
    stki_u128 names = {0}, sums = {0}, times = {0};
    int64_t total = 0;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        const char *path = stki_reader_path(reader, i, buffer);
        stki_stamp stamp = {.size = -1};
        uint64_t sum;

        (void)stki_stamp_take(path, &stamp, NULL);
        stki_fingerprint_text(&names, stki_prep_name_within(reader->path, path));
        stki_fingerprint_number(&names, stamp.size);
        stki_fingerprint_number(&times, stamp.mtime_ns);
        total += stamp.size > 0 ? stamp.size : 0;
        if (!digests || stamp.size < 0)
            continue;
        status = stki_prep_digest_file(path, &sum, &stamp.size, err);
        stki_fingerprint_number(&sums, (int64_t)sum);
    }
    set(out, "files", json_integer(reader->count));
    set(out, "bytes", json_integer(total));
    set(out, "names", json_string(stki_u128_text(names, buffer)));
    if (digests)
        set(out, "contents", json_string(stki_u128_text(sums, buffer)));
    *modified = json_string(stki_u128_text(times, buffer));
    return status;
}

static bool is_listed(const json_t *inputs, const json_t *path)
{
    for (size_t i = 0; i < json_array_size(inputs); i++)
        if (json_equal(json_object_get(json_array_get(inputs, i), "path"), path))
            return true;
    return false;
}

/* Adds an input, unless it is already listed. */
static stk_status describe_input(const stki_reader *reader, const char *folder, bool digests, json_t *inputs,
                                 json_t *times, stk_error *err)
{
    char *relative = stki_prep_relative(
        folder, reader->path); /* relative, because the manifest may be moved together with the data */
    json_t *path = relative ? stki_text_json(relative) : NULL, *input, *modified = NULL;
    stk_status status;

    stki_free(relative);
    if (path && is_listed(inputs, path)) {
        json_decref(path);
        return STK_OK;
    }
    input =
        json_pack("{s:o, s:s, s:I}", "path", path, "format", reader->ops->format, "samples", (json_int_t)reader->count);
    if (!input || json_array_append_new(inputs, input) != 0)
        return stki_fail_memory(err, 256, "a manifest");
    status = reader->ops->path ? describe_files(reader, digests, input, &modified, err)
                               : describe_file(reader->path, digests, input, &modified, err);
    if (json_array_append_new(times, modified) != 0 && status == STK_OK)
        status = stki_fail_memory(err, 256, "a manifest");
    return status;
}

stk_status stki_prep_describe_inputs(const stki_prep_run *run, bool digests, json_t **out, stk_error *err)
{
    const stki_dataset *dataset = run->core->dataset;
    char *folder = stki_folder_of(run->job->path);
    json_t *inputs = json_array(), *times = json_array(),
           *both = json_pack("{s:o, s:o}", "inputs", inputs, "modified", times);
    stk_status status = folder && both ? STK_OK : stki_fail_memory(err, 256, "a manifest");

    for (int f = 0; f < dataset->field_count; f++)
        for (int s = 0; s < dataset->fields[f].shard_count && status == STK_OK; s++)
            if (!run->core->config->fields[f].synthetic)
                status = describe_input(dataset->fields[f].shards[s], folder, digests, inputs, times, err);
    stki_free(folder);
    if (status == STK_OK)
        *out = both;
    else
        json_decref(both);
    return status;
}

/* ---- other parts ---- */

static json_t *describe_fields(const stki_prep_run *run)
{
    static const char *const kinds[] = {"array", "ragged", "image", "bytes"};
    json_t *fields = json_array();

    for (int i = 0; i < run->field_count; i++) {
        const stki_sink_field *out = &run->sink_fields[i];
        const stki_finisher *finisher = run->fields[i].finisher;
        const stki_classes *classes;
        json_t *shape = json_array(), *field = json_pack("{s:s, s:s, s:s}", "name", out->name, "kind", kinds[out->kind],
                                                         "dtype", stk_dtype_name(out->dtype));

        for (int d = 0; d < out->ndim && out->kind != STKI_SINK_IMAGE && out->kind != STKI_SINK_BYTES; d++)
            json_array_append_new(shape,
                                  d == 0 && out->kind == STKI_SINK_RAGGED ? json_null() : json_integer(out->shape[d]));
        if (out->kind == STKI_SINK_ARRAY || out->kind == STKI_SINK_RAGGED)
            json_object_set(field, "shape", shape);
        json_decref(shape);
        if (out->encode)
            set(field, "encode", json_string(out->encode));
        classes = stki_classes_of_rows(run->core, i);
        if (classes && !out->encode)
            set(field, "classes", stki_classes_json(classes));
        if (finisher && finisher->ops->describe)
            set(field, "encoder", finisher->ops->describe(finisher));
        if (json_object_get(run->stays, out->name))
            set(field, "stays", json_incref(json_object_get(run->stays, out->name)));
        json_array_append_new(fields, field);
    }
    return fields;
}

static json_t *describe_parts(const json_t *files)
{
    json_t *parts = json_array();

    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        json_t *part = json_object();

        json_object_set(part, "path", json_object_get(file, "final"));
        json_object_set(part, "rows", json_object_get(file, "rows"));
        json_object_set(part, "bytes", json_object_get(file, "bytes"));
        json_object_set(part, "xxh3", json_object_get(file, "xxh3"));
        json_array_append_new(parts, part);
    }
    return parts;
}

/* Adds the fingerprint that loaders check (manifest.h). */
static stk_status add_fingerprint(json_t *manifest, const json_t *files, stk_error *err)
{
    const size_t count = json_array_size(files);
    stki_manifest_file *parts = stki_zalloc_array((int64_t)count + 1, sizeof *parts);
    char text[STKI_U128_TEXT];

    if (!parts)
        return stki_fail_memory(err, (int64_t)(count * sizeof *parts), "a manifest");
    for (size_t i = 0; i < count; i++) {
        const json_t *file = json_array_get(files, i);

        parts[i] = (stki_manifest_file){
            .name = json_string_value(json_object_get(file, "final")),
            .rows = json_integer_value(json_object_get(file, "rows")),
            .bytes = json_integer_value(json_object_get(file, "bytes")),
            .xxh3 = strtoull(json_string_value(json_object_get(file, "xxh3")), NULL, 16),
        };
    }
    set(manifest, "fingerprint", json_string(stki_u128_text(stki_manifest_fingerprint(parts, (int)count), text)));
    stki_free(parts);
    return STK_OK;
}

static json_t *describe_skipped(const json_t *skipped)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(skipped) && i < LISTED; i++)
        json_array_append(list, json_array_get(skipped, i));
    return list;
}

static stk_status describe_run(const stki_prep_run *run, json_t *modified, json_t **out, stk_error *err)
{
    char host[256] = "", when[40];
    const time_t now = time(NULL);
    struct tm utc;
    double seconds;
    stk_status status = stki_job_clock_sum(run->clock, run->work, &seconds, err);

    if (status != STK_OK)
        return status;
    (void)gethostname(host, sizeof host - 1);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    *out = json_pack("{s:s, s:f, s:s, s:i, s:I, s:O}", "finished", when, "seconds", seconds, "host", host, "threads",
                     run->threads, "resumed_rows", (json_int_t)run->progress.resumed_rows, "inputs_modified", modified);
    return *out ? STK_OK : stki_fail_memory(err, 256, "a manifest");
}

static void add_digest(json_t *manifest)
{
    char text[STKI_U128_TEXT], *dump = json_dumps(manifest, JSON_COMPACT | JSON_SORT_KEYS);

    if (dump)
        set(manifest, "digest", json_string(stki_u128_text(stki_digest(dump, (int64_t)strlen(dump)), text)));
    free(dump);
}

stk_status stki_prep_manifest(const stki_prep_run *run, const json_t *files, const stki_prep_totals *totals,
                              const json_t *skipped, json_t **out, stk_error *err)
{
    json_t *inputs = NULL, *about = NULL, *m = NULL;
    stk_status status = stki_prep_describe_inputs(run, run->job->prep.inputs == STKI_INPUTS_DIGESTS, &inputs, err);

    if (status == STK_OK)
        status = describe_run(run, json_object_get(inputs, "modified"), &about, err);
    if (status == STK_OK) {
        m = json_pack(
            "{s:s, s:i, s:s, s:s, s:O, s:O, s:O, s:I, s:o, s:o, s:O, s:o, s:{s:I, s:I, s:I, s:I}, s:{s:s, s:s, s:s}}",
            "kind", "stoker manifest", "version", 1, "format", run->job->format->format, "sums", "XXH3-64", "job",
            json_object_get(run->identity, "job"), "dataset", json_object_get(run->identity, "dataset"), "order",
            json_object_get(run->identity, "order"), "positions", (json_int_t)run->cuts.positions, "fields",
            describe_fields(run), "parts", describe_parts(files), "inputs", json_object_get(inputs, "inputs"),
            "skipped", describe_skipped(skipped), "totals", "rows", (json_int_t)totals->rows, "skipped",
            (json_int_t)totals->skipped, "files", (json_int_t)totals->files, "bytes", (json_int_t)totals->bytes,
            "versions", "stoker", stk_version(), "jansson", jansson_version_str(), "xxhash",
            STKI_TEXT("%u", XXH_versionNumber()));
        status = m ? add_fingerprint(m, files, err) : stki_fail_memory(err, 1024, "a manifest");
    }
    if (status == STK_OK && run->job->requested)
        set(m, "requested", json_incref(run->job->requested));
    if (status == STK_OK && run->filter.rule_count > 0)
        set(m, "filter", stki_filter_json(&run->filter));
    if (status == STK_OK) {
        add_digest(m);
        set(m, "run", json_incref(about));
        *out = m;
    } else {
        json_decref(m);
    }
    json_decref(about);
    json_decref(inputs);
    return status;
}
