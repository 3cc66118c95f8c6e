/* loadbench_config.c: the option table of the section `bench`, and the rules between its options. The file is read
 * twice: here for this section, and by the library, which ignores this section. */
#include "loadbench_config.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_cache.h"
#include "loadbench_step.h"
#include "path.h"
#include <inttypes.h>
#include <stdlib.h>
#include <stoker/loader.h>
#include <string.h>
#include <unistd.h>

#define DAY (24 * 3600 * 1e9)

/* Indexes of the option rows. */
enum {
    CONSUMER,
    PRESET,
    STEP_TIME,
    STEP,
    AU,
    RAMP,
    RUN_TIME,
    EPOCHS,
    BATCHES,
    SAMPLES,
    REPEATS,
    CACHE,
    INTERVAL,
    LIMIT,
    LIMIT_TIME,
    ROW_COUNT
};

static const char *const auto_words[] = {"auto", NULL};

static const stki_option rows[ROW_COUNT] = {
    [CONSUMER] = STKI_ENUM(struct lb_bench, consumer, null, lb_consumer_words,
                           "Consumer of the batches: null (counts them), touch (reads every byte), device (keeps a "
                           "stream of loader.device busy for a step), or step (sleeps for the duration of a "
                           "step, as if an accelerator were computing)"),
    [PRESET] = STKI_ENUM(struct lb_bench, preset, none, lb_preset_words,
                         "A workload of MLPerf Storage, which sets the step, the batch size unless the config sets "
                         "one, and the required accelerator utilization"),
    [STEP_TIME] =
        STKI_TIME(struct lb_bench, step_time, 1ms, 0, DAY, "Duration of a step, for the consumers device and step"),
    [STEP] = STKI_ALIAS(step, step_time, STKI_OPT_TIME,
                        "Duration of a step; sets consumer: step unless a consumer is given"),
    [AU] = STKI_DOUBLE(struct lb_bench, au_required, 0.9, 0, 1, "",
                       "Required accelerator utilization, for the consumer step"),
    [RAMP] =
        STKI_TIME(struct lb_bench, ramp, 0.5s, 0, DAY,
                  "Time before the measurement begins; 0 if epochs, batches or samples is given, or with cache: cold"),
    [RUN_TIME] = STKI_TIME(struct lb_bench, run_time, 3s, 0, 365 * DAY,
                           "Duration of each measurement, 0 for no limit; no limit if epochs, batches or samples is "
                           "given, or with cache: cold"),
    [EPOCHS] =
        STKI_INT(struct lb_bench, epochs, 0, 0, 1000000000, "epochs", "Number of epochs to measure, 0 for no limit"),
    [BATCHES] = STKI_INT(struct lb_bench, batches, 0, 0, 1000000000000, "batches",
                         "Number of batches to measure, 0 for no limit"),
    [SAMPLES] = STKI_INT(struct lb_bench, samples, 0, 0, 1000000000000, "samples",
                         "Number of samples to measure, in whole batches, 0 for no limit"),
    [REPEATS] = STKI_INT(struct lb_bench, repeats, 3, 1, LB_REPEATS, "repeats",
                         "Number of measurements, each with a new loader; the result is their median"),
    [CACHE] = {.name = "cache",
               .type = STKI_OPT_ENUM,
               .offset = offsetof(struct lb_bench, cache), /* not STKI_ENUM, because clang-format would write as - is */
               .fallback = "as-is",
               .words = lb_cache_words,
               .unit = "",
               .help =
                   "State of the page cache before each measurement: as-is (unchanged), warm (all files loaded), or "
                   "cold (all files evicted; at most one epoch is measured)"},
    [INTERVAL] = STKI_TIME_WORDS(struct lb_bench, interval, auto, 1e6, 3600e9, auto_words, -1,
                                 "Length of the intervals in which throughput over time is recorded"),
    [LIMIT] = STKI_BOOL(struct lb_bench, limit, true, "Measure this machine's limits as well"),
    [LIMIT_TIME] = STKI_TIME(struct lb_bench, limit_time, 0.1s, 1e6, 60e9, "Duration of each measurement of a limit"),
};
const stki_option_table lb_bench_table = STKI_OPTION_TABLE("bench", rows);

/* Applies the defaults that depend on other options. With epochs, batches or samples, the measurement has a fixed first
 * batch and a fixed end, so there is no ramp and no time limit. A file is cold only the first time that it is read. */
static void settle(struct lb_bench *bench, const bool *seen)
{
    const bool cold = bench->cache == LB_CACHE_COLD;
    const bool counted = bench->epochs > 0 || bench->batches > 0 || bench->samples > 0;

    if (cold && bench->epochs == 0)
        bench->epochs = 1;
    if ((counted || cold) && !seen[RUN_TIME])
        bench->run_time = 0;
    if (cold || (counted && !seen[RAMP])) /* data that a ramp has read is no longer cold */
        bench->ramp = 0;
}

static const stki_node *key(const stki_node *section, int row)
{
    return stki_node_get(section, rows[row].name);
}

/* Applies the preset to options that were not given. Options for steps are errors for a consumer without steps. */
static stk_status settle_step(const stki_node *section, struct lb_bench *bench, bool *seen, stk_error *err)
{
    const struct lb_preset *preset = &lb_presets[bench->preset];

    if (!seen[CONSUMER] && (seen[STEP] || bench->preset > 0))
        bench->consumer = LB_CONSUMER_STEP;
    if (bench->preset > 0 && !seen[STEP] && !seen[STEP_TIME])
        bench->step_time = preset->step_ns;
    if (bench->preset > 0 && !seen[AU])
        bench->au_required = preset->au;
    if (bench->consumer == LB_CONSUMER_STEP || bench->consumer == LB_CONSUMER_DEVICE)
        return STK_OK;
    /* defaults are accepted, because --show-config prints these options for every consumer */
    struct lb_bench usual;
    stki_options_defaults(&lb_bench_table, &usual);
    const bool changed[] = {[PRESET] = bench->preset != usual.preset,
                            [STEP_TIME] = bench->step_time != usual.step_time,
                            [STEP] = true,
                            [AU] = bench->au_required < usual.au_required || bench->au_required > usual.au_required};
    for (int row = PRESET; row <= AU; row++)
        if (seen[row] && changed[row])
            return stki_fail_key(err, key(section, row), "has no effect with bench.consumer: %s",
                                 lb_consumers[bench->consumer].name);
    return STK_OK;
}

static stk_status check_cold(const stki_node *section, const struct lb_bench *bench, stk_error *err)
{
    if (bench->cache != LB_CACHE_COLD)
        return STK_OK;
    if (bench->epochs > 1)
        return stki_fail_key(err, key(section, EPOCHS),
                             "found %" PRId64 ": with cache: cold, only the first epoch is read from the device; use 1",
                             bench->epochs);
    return STK_OK;
}

static stk_status copy_sets(const char *const *sets, int count, struct lb_config *out, stk_error *err)
{
    out->loader_sets = stki_zalloc_array(count + LB_MORE_SETS, sizeof *out->loader_sets);
    if (!out->loader_sets)
        return stki_fail_memory(err, (count + LB_MORE_SETS) * (int64_t)sizeof *out->loader_sets, "the assignments");
    for (int i = 0; i < count; i++)
        out->loader_sets[out->loader_set_count++] = sets[i];
    out->given_set_count = count;
    if (out->batch_set[0])
        out->loader_sets[out->loader_set_count++] = out->batch_set;
    if (out->endless)
        out->loader_sets[out->loader_set_count++] = "loader.num_epochs=0";
    return STK_OK;
}

static char *name_of(const char *path)
{
    const char *name = stki_base_name(path), *dot = strrchr(name, '.');
    return stki_format("%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

/* Returns the default of limit_time. A limit_time with this value is never reported as unused, because --show-config
 * prints it. */
static int64_t usual_limit_time(void)
{
    struct lb_bench usual;

    stki_options_defaults(&lb_bench_table, &usual);
    return usual.limit_time;
}

/* With `digest`, the run ends after whole epochs or a number of batches or samples, so that its end is reproducible. */
static stk_status read_bench(struct lb_config *out, bool digest, stk_error *err)
{
    const stki_node *root = stki_document_root(out->document), *section = stki_node_get(root, "bench"), *num_epochs;
    bool seen[ROW_COUNT] = {false};
    stk_status status;

    stki_options_defaults(&lb_bench_table, &out->bench);
    status = stki_options_read(&lb_bench_table, section, &out->bench, seen, err);
    if (status != STK_OK)
        return status;
    num_epochs = stki_node_get(stki_node_get(root, "loader"), "num_epochs");
    out->endless = !num_epochs;
    if ((status = settle_step(section, &out->bench, seen, err)) != STK_OK ||
        (status = check_cold(section, &out->bench, err)) != STK_OK)
        return status;
    if (out->bench.preset > 0 && !stki_node_get(stki_node_get(root, "loader"), "batch_size") &&
        !stki_node_get(stki_node_get(root, "loader"), "global_batch_size"))
        snprintf(out->batch_set, sizeof out->batch_set, "loader.batch_size=%" PRId64,
                 lb_presets[out->bench.preset].batch_size);
    if (digest && (!num_epochs || strcmp(num_epochs->text, "0") == 0) && out->bench.batches == 0 &&
        out->bench.epochs == 0 && out->bench.samples == 0)
        out->bench.epochs = 1;
    out->ramp_left_out = out->bench.cache == LB_CACHE_COLD && seen[RAMP] && out->bench.ramp > 0;
    out->limit_time_unused = seen[LIMIT_TIME] && !out->bench.limit && out->bench.limit_time != usual_limit_time();
    settle(&out->bench, seen);
    if (digest) /* a time limit would end the run at a different batch each time */
        out->bench.run_time = out->bench.ramp = 0;
    if (out->endless && out->bench.run_time == 0 && out->bench.epochs == 0 && out->bench.batches == 0 &&
        out->bench.samples == 0)
        return stki_fail_node(
            err, section ? section : root,
            "this run would never end: set bench.run_time, bench.epochs, bench.batches, bench.samples "
            "or loader.num_epochs");
    return STK_OK;
}

/* Fails with a better message than the library's if a key of `bench` is in another section. */
static stk_status check_elsewhere(const stki_node *node, stk_error *err)
{
    for (int i = 0; node->kind == STKI_NODE_MAP && i < node->count; i++) {
        const bool section = !node->parent && node->items[i]->kind == STKI_NODE_MAP;
        stk_status status = STK_OK;

        if (section && strcmp(node->keys[i], "bench") != 0)
            status = check_elsewhere(node->items[i], err);
        else if (!section && stki_options_find(&lb_bench_table, node->keys[i]))
            status = stki_fail_key(err, node->items[i], "unknown key, did you mean bench.%s?", node->keys[i]);
        if (status != STK_OK)
            return status;
    }
    return STK_OK;
}

/* Finds the section of the library's options that has a key of this name. */
static bool find_elsewhere(const char *key, char *section, size_t size)
{
    char *text = stk_loader_options_tables();
    json_t *tables = text ? json_loads(text, 0, NULL) : NULL, *table, *option;
    size_t t, o;

    section[0] = '\0';
    json_array_foreach(tables, t, table) json_array_foreach(
        json_object_get(table, "options"), o,
        option) if (!section[0] && strcmp(json_string_value(json_object_get(option, "name")), key) == 0)
        snprintf(section, size, "%s", json_string_value(json_object_get(table, "section")));
    json_decref(tables);
    stk_text_free(text);
    return section[0] != '\0';
}

/* Fails if a key of the library is in the section `bench`. */
static stk_status check_bench_keys(const stki_node *bench, stk_error *err)
{
    char section[128];

    for (int i = 0; bench && bench->kind == STKI_NODE_MAP && i < bench->count; i++)
        if (!stki_options_find(&lb_bench_table, bench->keys[i]) &&
            find_elsewhere(bench->keys[i], section, sizeof section))
            return stki_fail_key(err, bench->items[i], "unknown key, did you mean %s.%s?", section, bench->keys[i]);
    return STK_OK;
}

stk_status lb_config_open(const char *path, const char *const *sets, int set_count, bool digest, struct lb_config *out,
                          stk_error *err)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    out->name = name_of(path);
    if (!out->name)
        return stki_fail_memory(err, 64, "a name");
    stk_status status = stki_document_open(path, &out->document, err);
    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = stki_document_set(out->document, sets[i], err);
    if (status == STK_OK)
        status = check_bench_keys(stki_node_get(stki_document_root(out->document), "bench"), err);
    if (status == STK_OK && (status = stk_loader_check_file(path, sets, set_count, err)) == STK_E_CONFIG)
        (void)check_elsewhere(stki_document_root(out->document), err);
    if (status == STK_OK)
        status = read_bench(out, digest, err);
    return status == STK_OK ? copy_sets(sets, set_count, out, err) : status;
}

/* Rejects options that require a loader, and turns off the measurement of limits. */
static stk_status check_source(struct lb_bench *bench, const stki_node *section, stk_error *err)
{
    if (bench->consumer != LB_CONSUMER_NULL && bench->consumer != LB_CONSUMER_STEP)
        return stki_fail_key(err, key(section, CONSUMER),
                             "found %s, expected null or step: the other consumers require a stoker loader",
                             lb_consumers[bench->consumer].name);
    if (bench->cache != LB_CACHE_AS_IS)
        return stki_fail_key(err, key(section, CACHE), "found %s, expected as-is: the files of an iterable are unknown",
                             lb_cache_words[bench->cache]);
    bench->limit = false;
    return STK_OK;
}

stk_status lb_config_open_source(struct lb_source *source, const char *name, const char *const *sets, int set_count,
                                 struct lb_config *out, stk_error *err)
{
    static const char empty[] = "bench: {}\n";

    memset(out, 0, sizeof *out);
    out->path = name;
    out->source = source;
    out->name = stki_format("%s", name);
    if (!out->name)
        return stki_fail_memory(err, 64, "a name");
    stk_status status =
        stki_document_parse(empty, (int64_t)sizeof empty - 1, name, STKI_NO_INCLUDE, &out->document, err);
    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = strncmp(sets[i], "bench.", 6) == 0
                     ? stki_document_set(out->document, sets[i], err)
                     : stki_fail(err, STK_E_CONFIG, "--set %s: only keys of bench apply to %s", sets[i], name);
    if (status == STK_OK)
        status = check_bench_keys(stki_node_get(stki_document_root(out->document), "bench"), err);
    if (status == STK_OK)
        status = read_bench(out, false, err);
    if (status == STK_OK)
        status = check_source(&out->bench, stki_node_get(stki_document_root(out->document), "bench"), err);
    return status == STK_OK ? copy_sets(sets, 0, out, err) : status;
}

void lb_config_close(struct lb_config *config)
{
    stki_free(config->name);
    stki_free(config->loader_sets);
    stki_document_destroy(config->document);
    memset(config, 0, sizeof *config);
}

char *lb_path_place(const char *path)
{
    char folder[4096];
    const char *from = path[0] == '/' || !getcwd(folder, sizeof folder) ? "" : folder;
    char *out = stki_format("%s/%s", from, path);
    size_t used = 0;

    for (const char *part = out; part && *part;) { /* rewritten in place, because the result is never longer */
        const size_t length = strcspn(part, "/");
        const char *next = part + length + (part[length] == '/');
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            while (used > 0 && out[--used] != '/')
                continue;
        } else if (length > 0 && !(length == 1 && part[0] == '.')) {
            out[used++] = '/';
            memmove(out + used, part, length);
            used += length;
        }
        part = next;
    }
    if (out)
        out[used] = '\0';
    return out;
}

/* ---- --show-config ---- */

static stk_status set_bench(const struct lb_config *config, stki_document *document, stk_error *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    stk_status status;

    if (memory)
        stki_options_write(&lb_bench_table, &config->bench, 0, memory);
    if (!memory || fclose(memory) != 0)
        status = stki_fail_memory(err, 4096, "the options in effect");
    else
        status = stki_document_set_value(document, "bench", text, "the options in effect", err);
    free(text);
    return status;
}

stk_status lb_config_show(const struct lb_config *config, FILE *to, stk_error *err)
{
    stki_document *document = NULL;
    char *text;
    stk_status status = stk_loader_config_text(config->path, config->loader_sets, config->given_set_count, &text, err);

    if (status != STK_OK)
        return status;
    status = stki_document_parse(text, (int64_t)strlen(text), config->path, STKI_NO_INCLUDE, &document, err);
    stk_text_free(text);
    if (status == STK_OK)
        status = set_bench(config, document, err);
    if (status == STK_OK)
        stki_document_write(document, to);
    stki_document_destroy(document);
    return status;
}
