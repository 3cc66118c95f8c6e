/* loadbench_accelerators.c: the search for the number of accelerators, and its output. */
#include "loadbench_accelerators.h"
#include "error.h"
#include "live_line.h"
#include "loadbench_feed.h"
#include "loadbench_json_parts.h"
#include "loadbench_prepare.h"
#include "loadbench_step.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Shows progress on terminals, because a search takes a while. */
static void show(const char *text)
{
    if (!live_is_terminal(STDERR_FILENO))
        return;
    if (text)
        live_line_draw(text, live_columns(), live_takes_color(STDERR_FILENO));
    else
        live_line_clear();
}

static stk_status try_count(lb_feed_try try_one, void *context, int count, struct lb_feed_search *out, bool *passed,
                            stk_error *err)
{
    struct lb_feed *feed = &out->tries[out->count];
    char text[120];

    snprintf(text, sizeof text, "%d accelerator%s; passed so far: %d", count, count == 1 ? "" : "s", out->passed);
    show(text);
    const stk_status status = try_one(context, count, feed, err);
    show(NULL);

    *passed = false;
    if (status == STK_E_EMPTY && out->count > 0) { /* the data was enough for a smaller number */
        out->data_end = true;
        return STK_OK;
    }
    if (status != STK_OK)
        return status;
    if (feed->cut && out->searches)
        return STK_END;
    out->count++;
    *passed = feed->passed;
    if (feed->passed && count > out->passed)
        out->passed = count;
    if (!feed->passed && (out->failed == 0 || count < out->failed))
        out->failed = count;
    return STK_OK;
}

stk_status lb_feed_search(lb_feed_try try_one, void *context, int most, struct lb_feed_search *out, stk_error *err)
{
    const int room = (int)(sizeof out->tries / sizeof out->tries[0]);
    int low = 0,
        high = most + 1; /* the largest number that passed; the smallest number that failed or cannot be tried */
    bool passed = true;
    stk_status status = STK_OK;

    memset(out, 0, sizeof *out);
    out->searches = true;
    for (int count = 1; count <= most && passed && status == STK_OK && out->count < room;) {
        status = try_count(try_one, context, count, out, &passed, err);
        low = passed ? count : low;
        high = passed ? high : count;
        count = count < most && 2 * count > most ? most : 2 * count;
    }
    while (status == STK_OK && high - low > 1 && out->count < room) {
        const int count = low + (high - low) / 2;
        status = try_count(try_one, context, count, out, &passed, err);
        low = passed ? count : low;
        high = passed ? high : count;
    }
    out->data_end = out->data_end && out->failed == 0;
    return status == STK_END && out->count > 0 ? STK_OK : status;
}

/* ---- output ---- */

static void print_tries(const struct lb_feed_search *search, FILE *to)
{
    fprintf(to, "\n%12s  %8s  %8s  %12s  %s\n", "accelerators", "mean AU", "least AU", "samples/s", "");
    for (int i = 0; i < search->count; i++) {
        const struct lb_feed *feed = &search->tries[i];
        fprintf(to, "%12d  %6.1f %%  %6.1f %%  %12s  %s\n", feed->accelerators, 100 * feed->mean, 100 * feed->least,
                LB_NUMBER(feed->samples_per_s), feed->passed ? "passes" : "does not pass");
    }
}

static void print_result(const struct lb_feed_search *search, bool searched, FILE *to)
{
    const struct lb_feed *last = &search->tries[search->count - 1];

    if (!searched) {
        fprintf(to, "\nresult     %s at %d accelerator%s: %.1f %%%s\n", last->passed ? "passes" : "does not pass",
                last->accelerators, last->accelerators == 1 ? "" : "s", 100 * last->mean,
                last->cut ? ", until a signal stopped the measurement" : "");
        return;
    }
    if (search->passed == 0)
        fputs("\nresult     does not pass with a single accelerator", to);
    else
        fprintf(to, "\nresult     passes at %d accelerator%s", search->passed, search->passed == 1 ? "" : "s");
    if (search->failed > 0 && search->passed > 0)
        fprintf(to, ", not at %d", search->failed);
    else if (search->data_end)
        fputs("; the data is too small for more: each accelerator needs a batch", to);
    else if (search->failed == 0)
        fputs("; more were not tried", to);
    if (lb_stop_asked)
        fputs("; a signal stopped the search", to);
    fputc('\n', to);
}

/* Warns if batches are smaller than configured, which makes them faster to deliver. That happens if a rank's part of
 * the data is smaller than a batch. */
static void print_rows(const struct lb_feed_search *search, FILE *to)
{
    const struct lb_feed *least = NULL;

    for (int i = 0; i < search->count; i++) {
        const struct lb_feed *feed = &search->tries[i];
        if (feed->steps > 0 && feed->rows < 0.9 * feed->batch_size &&
            (!least || feed->accelerators < least->accelerators))
            least = feed;
    }
    if (least)
        fprintf(to,
                "note       batches of %.3g rows instead of %.0f at %d accelerator%s: too little data per rank for "
                "full batches; measure with more data, or drop short batches with loader.last_batch=drop\n",
                least->rows, least->batch_size, least->accelerators, least->accelerators == 1 ? "" : "s");
}

/* Residency of the data before the first measurement and after the last. */
struct residencies {
    struct lb_residency before, after;
};

static void print_cache(const struct lb_config *config, const struct residencies *cache, FILE *to)
{
    fprintf(to, "cache      %s: ", lb_cache_words[config->bench.cache]);
    if (!cache->before.known || !cache->after.known)
        fprintf(to, "it is unknown how much of the data is in memory (%s)\n",
                cache->before.known ? cache->after.why : cache->before.why);
    else
        fprintf(to, "%.1f %% of the data in memory before, %.1f %% after\n", 100 * lb_residency_share(&cache->before),
                100 * lb_residency_share(&cache->after));
}

static void print_text(const struct lb_config *config, const struct lb_feed_search *search, bool searched,
                       const struct residencies *cache, FILE *to)
{
    const struct lb_bench *bench = &config->bench;
    const struct lb_feed *first = &search->tries[0];

    fprintf(to, "loadbench %s, %s\n", stk_version(), config->path);
    fprintf(to, "run        steps of %s ms", LB_NUMBER((double)bench->step_time / 1e6));
    if (bench->preset > 0)
        fprintf(to, " (MLPerf Storage %s)", lb_presets[bench->preset].name);
    fprintf(
        to,
        ", %.1f %% accelerator utilization required; each measured for %s s after its first step and %s s of ramp\n",
        100 * bench->au_required, LB_NUMBER((double)bench->run_time / 1e9), LB_NUMBER((double)bench->ramp / 1e9));
    fprintf(to,
            "           one process; each accelerator has its own loader, a rank of the same data, with %" PRId64
            " worker%s in the first measurement\n",
            first->workers, first->workers == 1 ? "" : "s");
    print_cache(config, cache, to);
    print_tries(search, to);
    print_result(search, searched, to);
    print_rows(search, to);
}

#define TRY(member) LB_MEMBER(struct lb_feed, member)

static const struct lb_figure try_rows[] = {
    {"accelerator_count", TRY(accelerators)},
    {"mean_au_percent", TRY(mean), LB_PERCENT},
    {"least_au_percent", TRY(least), LB_PERCENT},
    {"samples_per_s", TRY(samples_per_s)},
    {"step_count", TRY(steps)},
    {"rows_per_batch_count", TRY(rows)},
    {"batch_size_count", TRY(batch_size), .when = LB_NULL_UNLESS_POSITIVE},
    {"worker_count", TRY(workers)},
    {"passed", TRY(passed)},
};
enum { TRY_ROWS = sizeof try_rows / sizeof try_rows[0] };

/* Returns the measurement that is reported as the result: the requested one or, for a search, the one with the most
 * accelerators that passed, or else the first. */
static const struct lb_feed *deciding(const struct lb_feed_search *search)
{
    for (int i = 0; i < search->count; i++)
        if (search->tries[i].accelerators == search->passed)
            return &search->tries[i];
    return &search->tries[0];
}

static json_t *tree_of(const struct lb_config *config, const struct lb_feed_search *search,
                       const struct residencies *cache, stk_error *err)
{
    json_t *json = json_object(), *tries = json_array();

    for (int i = 0; i < search->count; i++)
        json_array_append_new(tries, lb_json_rows(json_object(), try_rows, TRY_ROWS, 0, &search->tries[i]));
    lb_json_set(json, "schema", json_integer(LB_SCHEMA));
    lb_json_set(json, "program", json_string("loadbench --accelerators"));
    lb_json_set(json, "file", stki_text_json(config->path));
    lb_json_set(json, "bench", stki_options_json(&lb_bench_table, &config->bench));
    lb_json_set(json, "step_ns", json_integer(config->bench.step_time));
    lb_json_set(json, "required_percent", lb_json_number(100 * config->bench.au_required));
    lb_json_set(json, "cache_before", lb_json_group(json_object(), LB_OF_RESIDENCY, &cache->before));
    lb_json_set(json, "cache_after", lb_json_group(json_object(), LB_OF_RESIDENCY, &cache->after));
    lb_json_set(json, "tries", tries);
    lb_json_set(json, "result", lb_json_rows(json_object(), try_rows, TRY_ROWS, 0, deciding(search)));
    lb_json_set(json, "passed_count", json_integer(search->passed));
    lb_json_set(json, "failed_count", search->failed > 0 ? json_integer(search->failed) : json_null());
    lb_json_set(json, "data_end", json_boolean(search->data_end));
    lb_json_set(json, "stopped", json_boolean(lb_stop_asked != 0));
    if (!lb_json_incomplete)
        return json;
    json_decref(json);
    stki_fail_memory(err, 65536, "the JSON of the result");
    return NULL;
}

/* Checks before measuring, with an example result, that the result will have the required figures. */
static stk_status foresee(const struct lb_config *config, const struct lb_require *each, int count, stk_error *err)
{
    const struct lb_feed_search search = {.tries = {{.accelerators = 1, .batch_size = 1}}, .count = 1, .failed = 1};
    const struct residencies cache = {{.known = true}, {.known = true}};
    json_t *tree = tree_of(config, &search, &cache, err);
    stk_status status = tree ? STK_OK : STK_E_MEMORY;
    struct lb_scalar found;
    bool holds;

    for (int i = 0; i < count && status == STK_OK; i++)
        status = lb_require_check(&each[i], tree, &found, &holds, err);
    json_decref(tree);
    return status;
}

/* Rejects options of a normal run that do not apply here. */
static stk_status check(const struct lb_config *config, stk_error *err)
{
    const struct lb_bench *bench = &config->bench;
    const stki_node *loader = stki_node_get(stki_document_root(config->document), "loader");

    if (stki_node_get(loader, "rank") || stki_node_get(loader, "world_size"))
        return stki_fail(err, STK_E_CONFIG,
                         "--accelerators: each accelerator is a rank: remove loader.rank and loader.world_size");
    if (bench->consumer != LB_CONSUMER_STEP || bench->step_time == 0)
        return stki_fail(err, STK_E_CONFIG,
                         "--accelerators needs a training step: set bench.step (12ms) or bench.preset (unet3d-h100)");
    if (bench->cache == LB_CACHE_COLD)
        return stki_fail(
            err, STK_E_CONFIG,
            "--accelerators: found cache: cold, but files are cold only on the first read, and accelerators "
            "read them repeatedly: use more data than fits in memory, or --cache=warm");
    if (bench->run_time == 0)
        return stki_fail(err, STK_E_CONFIG, "--accelerators measures for a fixed time: set bench.run_time");
    if (bench->epochs > 0 || bench->batches > 0 || bench->samples > 0)
        return stki_fail(
            err, STK_E_CONFIG,
            "--accelerators measures for bench.run_time: bench.epochs, batches and samples have no effect");
    return STK_OK;
}

static stk_status measure(const struct lb_config *config, int count, struct lb_feed_search *search, stk_error *err)
{
    void *context = (void *)(uintptr_t)config;
    bool passed;

    if (count == LB_ACCELERATORS_SEARCH)
        return lb_feed_search(lb_feed_run, context, LB_ACCELERATORS_MOST, search, err);
    memset(search, 0, sizeof *search);
    return try_count(lb_feed_run, context, count, search, &passed, err);
}

stk_status lb_accelerators(const struct lb_config *config, int count, const struct lb_require *each, int require_count,
                           bool json, FILE *to, bool *passed, stk_error *err)
{
    struct lb_feed_search search;
    struct residencies cache;
    struct lb_facts facts = {0};
    json_t *tree = NULL;
    int failed = 0;
    stk_status status = check(config, err);

    if (status == STK_OK)
        status = foresee(config, each, require_count, err);
    if (status == STK_OK)
        status = lb_prepare_files(config, &facts, err);
    if (status == STK_OK)
        status = lb_prepare_cache(config, &facts, &cache.before, err);
    if (status == STK_OK)
        status = measure(config, count, &search, err);
    if (status == STK_OK)
        status = lb_residency_read(&facts.data, &cache.after, err);
    lb_facts_fini(&facts);
    if (status == STK_END)
        return stki_fail(err, STK_E_CLOSED, "stopped by a signal before anything was measured");
    if (status == STK_OK && !(tree = tree_of(config, &search, &cache, err)))
        status = STK_E_MEMORY;
    if (status == STK_OK && !json)
        print_text(config, &search, count == LB_ACCELERATORS_SEARCH, &cache, to);
    if (status == STK_OK)
        status = lb_require_all(each, require_count, tree, json ? stderr : to, &failed, err);
    if (status == STK_OK && json)
        status = lb_json_print(tree, to, err);
    json_decref(tree);
    *passed = status == STK_OK && search.passed > 0 && failed == 0;
    return status;
}
