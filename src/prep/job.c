/* job.c: see job.h. The loader's config is the same document. Options of `loader` with the flag STKI_IN_JOB are also
 * options of `prep`; the loader's code reads and checks them, and its errors name the job's section and lines. */
#include "job.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "filter.h"
#include "finish.h"
#include "option_print.h"
#include "stats_options.h"
#include "thread.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const order_words[] = {"sequential", "random", "block", NULL},
                         *const on_error_words[] = {"fail", "skip", NULL},
                         *const inputs_words[] = {"sizes", "digests", NULL},
                         *const unlimited_words[] = {"unlimited", NULL};

#define MOST (INT64_C(1) << 40)

static const stki_need needs_skip = {.key = "on_error", .words = &on_error_words[STKI_JOB_SKIP]};
static const stki_need needs_output = {.key = "/output"};

static const stki_option prep_rows[] = {
    STKI_NODE(stki_prep_section, filter, "Select samples by label or size (docs/reference/encode.md)",
              .inner = &stki_filter_table),
    STKI_ENUM(stki_prep_section, on_error, fail, on_error_words,
              "What to do if a sample cannot be read or converted: end the job, or skip and list the sample"),
    STKI_INT_WORDS(stki_prep_section, max_errors, unlimited, 0, MOST, unlimited_words, -1, "samples",
                   "With on_error: skip, the job ends if more samples than this fail", .effect = STKI_ON_NOTHING,
                   .need = &needs_skip),
    STKI_DOUBLE(stki_prep_section, max_error_fraction, 0.01, 0, 1, "",
                "With on_error: skip, the job ends if more than this fraction of the samples fails",
                .effect = STKI_ON_NOTHING, .need = &needs_skip),
    STKI_SIZE(stki_prep_section, piece_bytes, 64MiB, 4096, INT64_C(1) << 40,
              "Approximate size of a piece, the unit of output that is redone after an interruption; rows that will be "
              "encoded are counted at their unencoded size",
              .need = &needs_output),
    STKI_ENUM(
        stki_prep_section, inputs, sizes, inputs_words,
        "Whether the manifest records only the size of each input (sizes), or also its XXH3 checksum (digests), for "
        "which all inputs are read once more",
        .need = &needs_output),
    STKI_STRING(stki_prep_section, temporary, NULL, "The work folder; by default OUTPUT.prep next to the output",
                .effect = STKI_ON_NOTHING, .flags = STKI_PATH),
};

/* The loader options that are also options of `prep`. Weights are excluded, because they are only useful for
 * training. */
enum { LOADER_ROWS = 32 };
static stki_option loader_rows[LOADER_ROWS];
static stki_option_table loader_table = {.section = "prep", .rows = loader_rows};

static void choose_rows(void)
{
    const stki_option_table *all = stki_config_sections[0];

    for (int i = 0; i < all->count; i++) {
        stki_option *row = &loader_rows[loader_table.count];

        if (!(all->rows[i].flags & STKI_IN_JOB))
            continue;
        assert(loader_table.count < LOADER_ROWS);
        *row = all->rows[i];
        if (strcmp(row->name, "order") == 0)
            row->words = order_words;
        loader_table.count++;
    }
}

static const stki_option_table *loader_rows_of(int index)
{
    static stki_once once = STKI_ONCE;

    stki_run_once(&once, choose_rows);
    return index == 0 ? &loader_table : NULL;
}

static const stki_option_table prep_table = STKI_OPTION_TABLE_WITH("prep", prep_rows, .choice = loader_rows_of);

static const stki_option output_rows[] = {
    STKI_STRING(stki_output_section, path, NULL, "Path of the file, or the stem of the names of several files",
                .effect = STKI_ON_NOTHING, .flags = STKI_PATH),
    STKI_STRING(stki_output_section, format, NULL, "File format; by default from the extension of the path",
                .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("npy", "raw")),
    STKI_NODE(stki_output_section, fields, "How fields are encoded: {NAME: {encode: jpeg, quality: 90}}",
              .flags = STKI_NAMED, .inner = &stki_finish_table),
    STKI_INT(stki_output_section, shard_rows, 0, 0, MOST, "rows", "Rows per shard (NAME-00000, …); 0: one file"),
    STKI_SIZE(stki_output_section, shard_bytes, 0, 0, INT64_MAX,
              "Maximum size of a file; a new file is started before it would be exceeded; 0: one file",
              .instead_of = "shard_rows"),
};
static const stki_option_table output_table =
    STKI_OPTION_TABLE_WITH("output", output_rows, .choice = stki_sink_table, .about = stki_finish_about);

const stki_option_table *const stki_job_sections[] = {&prep_table, &output_table, &stki_stats_table, NULL};

/* ---- the document ---- */

static stk_status read_document(const stki_job *job, stki_document **out, stk_error *err)
{
    stk_status status =
        job->file ? stki_document_open(job->file, out, err)
                  : stki_document_parse(job->text, (int64_t)strlen(job->text), "text", job->base_dir, out, err);

    for (int i = 0; i < job->set_count && status == STK_OK; i++) {
        status = stki_document_set(*out, job->sets[i], err);
        if (status != STK_OK) {
            stki_document_destroy(*out);
            *out = NULL;
        }
    }
    return status;
}

/* All sections of a job's document, terminated by NULL. */
typedef struct job_tables {
    const stki_option_table *all[6];
} job_tables;

static job_tables job_sections(void)
{
    return (job_tables){
        {&prep_table, stki_config_sections[1], stki_config_sections[2], &output_table, &stki_stats_table, NULL}};
}

static stk_status check_sections(const job_tables *tables, const stki_node *root, stk_error *err)
{
    const stki_node *loader = stki_node_get(root, "loader");

    if (loader)
        return stki_fail_key(err, loader,
                             "not allowed in a preparation job, where order, split, num_workers and similar options "
                             "are keys of prep: move them there");
    return stki_sections_check(tables->all, NULL, root, err);
}

/* Failed samples are counted by the job instead of the loader, because the count continues across runs. */
static void preset(stki_loader_config *config, const void *job)
{
    config->launcher = STK_LAUNCHER_NONE;
    config->last_batch = STK_LAST_BATCH_PARTIAL;
    config->pin_memory = STK_PIN_FALSE;
    config->consumer_helps = STK_HELPS_FALSE;
    config->timeout = STK_TIMEOUT_INFINITE;
    config->close_timeout = 5 * STKI_SECOND;
    if (((const stki_job *)job)->prep.on_error == STKI_JOB_SKIP) {
        config->on_error = STK_ON_ERROR_SKIP;
        config->max_error_fraction = 1;
    }
}

stk_status stki_job_loader(const stki_job *job,
                           stk_status (*edit)(void *context, stki_document *document, stk_error *err), void *context,
                           stki_loader_config **out, stk_error *err)
{
    const job_tables tables = job_sections();
    stki_prep_section own = {0};
    const stki_config_form form = {.table = loader_rows_of(0),
                                   .other = &prep_table,
                                   .other_values = &own,
                                   .sections = tables.all,
                                   .preset = preset,
                                   .context = job};
    stki_document *document;
    stk_status status = read_document(job, &document, err);

    if (status != STK_OK)
        return status;
    if (edit && (status = edit(context, document, err)) != STK_OK) {
        stki_document_destroy(document);
        return status;
    }
    stki_options_defaults(&prep_table, &own);
    return stki_config_read_as(&form, document, job->base_dir, out, err);
}

/* Reads the options of `prep` that are not loader options. */
static stk_status read_prep(stki_job *job, const stki_node *prep, stk_error *err)
{
    stki_loader_config *loaders = stki_zalloc(sizeof *loaders);
    const stki_option_part parts[] = {{&prep_table, &job->prep, NULL}, {loader_rows_of(0), loaders, NULL}};
    stk_status status;

    if (!loaders)
        return stki_fail_memory(err, sizeof *loaders, "options");
    stki_options_defaults(&prep_table, &job->prep);
    stki_options_defaults(loader_rows_of(0), loaders);
    status = stki_options_read_parts(parts, 2, prep, NULL, err);
    stki_free(loaders);
    return status;
}

/* ---- output ---- */

/* Reads the common options and those of the format. */
static stk_status read_output(stki_job *job, const stki_node *node, stk_error *err)
{
    const stki_option_table *own = job->format->table;

    stki_options_defaults(&output_table, &job->output);
    if (own) {
        job->format_options = stki_zalloc(job->format->options_bytes);
        if (!job->format_options)
            return stki_fail_memory(err, job->format->options_bytes, "output options");
        stki_options_defaults(own, job->format_options);
    }
    return stki_options_read_parts(
        (stki_option_part[]){{&output_table, &job->output, NULL}, {own, job->format_options, NULL}}, own ? 2 : 1, node,
        NULL, err);
}

static const char *text_of(const stki_node *map, const char *key)
{
    const stki_node *node = stki_node_get(map, key);

    return node && node->kind == STKI_NODE_SCALAR && !stki_node_is_null(node) ? node->text : NULL;
}

/* In a job that only computes statistics, their file is the result. */
static stk_status without_output(stki_job *job, const stki_node *stats, stk_error *err)
{
    if (!text_of(stats, "path"))
        return stki_fail(err, STK_E_CONFIG,
                         "%s: no output is configured; add `output: {path: FILE}`, or `stats: {path: FILE}` to compute "
                         "statistics only",
                         job->file ? job->file : "text");
    return STK_OK;
}

static stk_status find_format(stki_job *job, const stki_node *node, stk_error *err)
{
    const char *path = text_of(node, "path"), *format = text_of(node, "format");
    stk_error cause;
    stk_status status;

    if (node && node->kind != STKI_NODE_MAP)
        return stki_fail_key(err, node, "expected {path: FILE} for the result");
    if (!node)
        return stki_fail(err, STK_E_CONFIG, "%s: output: found nothing, expected {path: FILE} for the result",
                         job->file ? job->file : "text");
    if (!path || !*path)
        return stki_fail_key(err, node, "found no path, expected path: FILE for the result");
    status = stki_sink_find(format, path, &job->format, &cause);
    if (status != STK_OK)
        return stki_fail_node(err, stki_node_get(node, format ? "format" : "path"), "%s", cause.message);
    return STK_OK;
}

/* Splits "a/train.beton" into "a/train" and ".beton". */
static stk_status name_parts(stki_job *job, stk_error *err)
{
    size_t length = strlen(job->path), cut = length;
    const char *name = strrchr(job->path, '/'), *dot = strrchr(job->path, '.');

    name = name ? name + 1 : job->path;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){job->path, -1, -1, "no file name", "a file name"},
                            "output.path");
    if (dot && dot > name)
        cut = (size_t)(dot - job->path);
    job->stem = stki_format("%.*s", (int)cut, job->path);
    job->ending = stki_strdup(job->path + cut);
    return job->stem && job->ending ? STK_OK : stki_fail_memory(err, (int64_t)length, "a path");
}

static stk_status copy_path(const char *path, char **out, stk_error *err)
{
    *out = stki_strdup(path);
    return *out ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path), "a path");
}

/* Sets the paths of the output and of the work folder. Also checks the config of the loader. */
static stk_status find_paths(stki_job *job, stk_error *err)
{
    const stki_node *stats = stki_node_get(job->stats, "path");
    const char *path = job->output.path;
    stki_loader_config *config;
    stk_status status = stki_job_loader(job, NULL, NULL, &config, err);

    if (status != STK_OK)
        return status;
    stki_config_destroy(config);
    if (!job->format)
        status = stki_node_file(stats, &path, err);
    if (status == STK_OK)
        status = copy_path(path, &job->path, err);
    if (status == STK_OK && job->prep.temporary)
        status = copy_path(job->prep.temporary, &job->work, err);
    if (status == STK_OK)
        status = name_parts(job, err);
    if (status == STK_OK && !job->work && !(job->work = stki_format("%s.prep", job->path)))
        status = stki_fail_memory(err, (int64_t)strlen(job->path), "a path");
    return status;
}

/* ---- whole job ---- */

static stk_status check_fields(const stki_job *job, stk_error *err)
{
    if (job->output.fields && job->output.fields->kind != STKI_NODE_MAP)
        return stki_fail_value(err, job->output.fields, "a map of fields, {NAME: {…}}");
    for (int i = 0; job->output.fields && i < job->output.fields->count; i++)
        if (job->output.fields->items[i]->kind != STKI_NODE_MAP)
            return stki_fail_value(err, job->output.fields->items[i], "a map such as {encode: jpeg}");
    return STK_OK;
}

static stk_status copy_origin(stki_job *job, const char *file, const char *text, const char *base_dir,
                              const char *const *sets, int set_count, stk_error *err)
{
    bool fits = true;

    job->file = file ? stki_strdup(file) : NULL;
    job->text = text ? stki_strdup(text) : NULL;
    job->base_dir = base_dir ? stki_strdup(base_dir) : NULL;
    fits = (!file || job->file) && (!text || job->text) && (!base_dir || job->base_dir);
    job->sets = stki_zalloc_array(set_count + 1, sizeof *job->sets);
    for (int i = 0; i < set_count && fits && job->sets; i++) {
        job->sets[i] = stki_strdup(sets[i]);
        fits = job->sets[i] != NULL;
        job->set_count = i + 1;
    }
    return fits && job->sets ? STK_OK : stki_fail_memory(err, 0, "a job");
}

/* Reads `output` and `stats`, at least one of which is required. */
static stk_status read_what(stki_job *job, const stki_node *root, stk_error *err)
{
    const stki_node *output = stki_node_get(root, "output");
    stk_status status;

    job->stats = stki_node_get(root, "stats");
    if (!output && job->stats)
        return without_output(job, job->stats, err);
    if (stki_node_get(job->stats, "path"))
        return stki_fail_key(err, stki_node_get(job->stats, "path"),
                             "cannot be used with output, which writes the statistics to NAME.stats.json next to the "
                             "data: remove it");
    status = find_format(job, output, err);
    return status == STK_OK ? read_output(job, output, err) : status;
}

stk_status stki_job_read(const char *file, const char *text, const char *base_dir, const char *const *sets,
                         int set_count, stki_job *job, stk_error *err)
{
    const job_tables tables = job_sections();
    const stki_node *root;
    stk_status status = copy_origin(job, file, text, base_dir, sets, set_count, err);

    if (status == STK_OK)
        status = read_document(job, &job->document, err);
    if (status != STK_OK)
        return status;
    root = stki_document_root(job->document);
    if ((status = check_sections(&tables, root, err)) != STK_OK ||
        (status = stki_sections_prepare(tables.all, job->document, job->base_dir, err)) != STK_OK ||
        (status = read_prep(job, stki_node_get(root, "prep"), err)) != STK_OK ||
        (status = read_what(job, root, err)) != STK_OK || (status = check_fields(job, err)) != STK_OK ||
        (status = stki_filter_check(job->prep.filter, err)) != STK_OK)
        return status;
    return find_paths(job, err);
}

stk_status stki_job_settle(stki_job *job, char *const *sets, int count, stk_error *err)
{
    const char **all = stki_zalloc_array(job->set_count + count, sizeof *all);
    stki_job fresh = {0};
    stk_status status;

    if (!all)
        return stki_fail_memory(err, (job->set_count + count) * (int64_t)sizeof *all, "a job");
    for (int i = 0; i < job->set_count + count; i++)
        all[i] = i < job->set_count ? job->sets[i] : sets[i - job->set_count];
    status = stki_job_read(job->file, job->text, job->base_dir, all, job->set_count + count, &fresh, err);
    stki_free(all);
    if (status == STK_OK) {
        fresh.counted = json_incref(job->counted);
        fresh.requested = json_incref(job->requested);
        stki_job_fini(job);
        *job = fresh;
    } else {
        stki_job_fini(&fresh);
    }
    return status;
}

void stki_job_fini(stki_job *job)
{
    for (int i = 0; i < job->set_count; i++)
        stki_free(job->sets[i]);
    stki_free(job->sets);
    stki_free(job->file);
    stki_free(job->text);
    stki_free(job->base_dir);
    stki_free(job->format_options);
    json_decref(job->counted);
    json_decref(job->requested);
    stki_free(job->path);
    stki_free(job->stem);
    stki_free(job->ending);
    stki_free(job->work);
    if (job->document)
        stki_document_destroy(job->document);
    *job = (stki_job){0};
}

const stki_node *stki_job_field(const stki_job *job, const char *name)
{
    return stki_node_get(job->output.fields, name);
}

/* ---- comparison ---- */

static void print_section(stki_print *print, const stki_option_table *table, const stki_node *root)
{
    const stki_node *node = stki_node_get(root, table->section);

    if (!node || node->kind != STKI_NODE_LIST)
        stki_print_map(print, table, node, table->section);
    for (int i = 0; node && node->kind == STKI_NODE_LIST && i < node->count; i++)
        stki_print_map(print, table, node->items[i], STKI_TEXT("%s.%d", table->section, i));
}

json_t *stki_job_json(const stki_job *job)
{
    stki_print print = {.failures = true, .written = true};
    const stki_node *root = stki_document_root(job->document);
    json_t *json = NULL;

    for (int i = 0; stki_config_sections[i]; i++)
        print_section(&print, stki_config_sections[i], root);
    for (int i = 0; stki_job_sections[i]; i++)
        print_section(&print, stki_job_sections[i], root);
    if (job->stats)
        stki_print_json(&print, "stats", "stats", "stats", json_object());
    if (job->format && stki_node_is_null(stki_node_get(stki_node_get(root, "output"), "format")))
        stki_print_text(&print, "format", "output.format", "%s", job->format->format);
    if (stki_print_end(&print, NULL) == STK_OK)
        json = stki_print_object(&print);
    stki_print_fini(&print);
    return json;
}

static void say_value(const json_t *value, char *text, size_t size)
{
    char *dump = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

    snprintf(text, size, "%.60s", dump ? dump : "nothing or the default");
    free(dump);
}

/* Appends the path of the first difference to `where`. */
static bool differs(const json_t *a, const json_t *b, char *where, size_t room, char *text, int size)
{
    char found[64], expected[64];
    const char *key;
    size_t length = strlen(where);
    json_t *value, *both;

    if (json_equal(a, b))
        return false;
    if (!json_is_object(a) || !json_is_object(b)) {
        say_value(a, found, sizeof found);
        say_value(b, expected, sizeof expected);
        snprintf(text, (size_t)size, "%s: %s instead of %s", where, found, expected);
        return true;
    }
    both = json_copy((json_t *)(uintptr_t)a);
    json_object_update_missing(both, (json_t *)(uintptr_t)b);
    json_object_foreach(both, key, value)
    {
        bool found_one;

        snprintf(where + length, room - length, "%s%s", length ? "." : "", key);
        found_one = differs(json_object_get(a, key), json_object_get(b, key), where, room, text, size);
        if (found_one) {
            json_decref(both);
            return true;
        }
        where[length] = '\0';
    }
    json_decref(both);
    return false;
}

bool stki_job_differs(const json_t *a, const json_t *b, char *text, int size)
{
    char where[512] = "";

    return differs(a, b, where, sizeof where, text, size);
}
