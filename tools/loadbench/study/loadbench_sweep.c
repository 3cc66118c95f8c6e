/* loadbench_sweep.c: every point is a normal run with additional assignments. A summary of each point is kept: {"set":
 * {KEY: VALUE, …}, "result": {…}, "wait": {…}, "verdict": …} or {"set", "failure"}. Table, JSON and plots are generated
 * from these summaries. Points are run in the order of the table. */
#include "loadbench_sweep.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_foresee.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include "loadbench_statistics.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include "text_json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

stk_status lb_sweep_init(const char *const *texts, int count, struct lb_sweep *out, stk_error *err)
{
    memset(out, 0, sizeof *out);
    out->points = 1;
    out->facts = json_object();
    if (count > LB_SWEEP_KEYS)
        return stki_fail(err, STK_E_CONFIG, "--sweep: found %d keys, expected at most %d", count, LB_SWEEP_KEYS);
    for (int i = 0; i < count; i++) {
        stk_status status = lb_range_read("--sweep", texts[i], &out->ranges[i], err);
        out->count++;
        for (int k = 0; k < i && status == STK_OK; k++)
            if (strcmp(out->ranges[i].key, out->ranges[k].key) == 0)
                status = stki_fail(err, STK_E_CONFIG, "--sweep: %s is given twice; write its values as one list",
                                   out->ranges[i].key);
        if (status != STK_OK)
            return status;
        out->points *= out->ranges[i].count;
        if (out->points > LB_SWEEP_POINTS)
            return stki_fail(err, STK_E_CONFIG, "--sweep: more than %d combinations", LB_SWEEP_POINTS);
    }
    return STK_OK;
}

void lb_sweep_fini(struct lb_sweep *sweep)
{
    for (int i = 0; i < sweep->count; i++)
        lb_range_fini(&sweep->ranges[i]);
    json_decref(sweep->tree);
    json_decref(sweep->facts);
    memset(sweep, 0, sizeof *sweep);
}

/* Returns the value of a key at a point; the last key varies fastest. */
static const char *value_at(const struct lb_sweep *sweep, int64_t point, int key)
{
    for (int i = sweep->count - 1; i > key; i--)
        point /= sweep->ranges[i].count;
    return sweep->ranges[key].values[point % sweep->ranges[key].count];
}

static json_t *set_json(const struct lb_sweep *sweep, int64_t point)
{
    json_t *set = json_object();

    for (int i = 0; i < sweep->count; i++)
        json_object_set_new(set, sweep->ranges[i].key, json_string(value_at(sweep, point, i)));
    return set;
}

/* Stores the summary of a result. */
static void keep(const json_t *tree, json_t *point)
{
    static const char *const parts[] = {"result",       "wait",     "stages",     "verdict",
                                        "repeat_count", "ended_by", "utilization"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (json_object_get(tree, parts[i]))
            json_object_set(point, parts[i], json_object_get(tree, parts[i]));
}

/* Stores the properties common to all points, taken from the first one that ran. All configs are equal except for the
 * swept keys. */
static void keep_facts(const json_t *tree, json_t *facts)
{
    static const char *const parts[] = {"started", "machine", "storage", "versions", "data", "config"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (json_object_get(tree, parts[i]))
            json_object_set(facts, parts[i], json_object_get(tree, parts[i]));
}

static void tell(const struct lb_sweep *sweep, int64_t number, const json_t *point, FILE *to)
{
    const json_t *set = json_object_get(point, "set"), *failure = json_object_get(point, "failure");
    const char *key;
    json_t *value;
    double rate = 0;

    fprintf(to, "loadbench: %lld of %lld:", (long long)number, (long long)sweep->points);
    json_object_foreach((json_t *)(uintptr_t)set, key, value) fprintf(to, " %s=%s", key, json_string_value(value));
    if (failure)
        fprintf(to, ": %s\n", json_string_value(failure));
    else if (lb_scalar_at(point, "result.samples_per_s", &rate))
        fprintf(to, ": %.6g samples/s\n", rate);
    fflush(to);
}

/* STK_END: interrupted before anything was measured. */
static stk_status measure(struct lb_sweep *sweep, const char *path, const char *const *sets, int set_count,
                          const char *const *own, json_t *point, stk_error *err)
{
    /* the limit is a property of the machine, not of the point; --set bench.limit=true measures it anyway */
    static const char *const defaults[] = {"bench.limit=false", NULL};
    struct lb_point *run;
    json_t *tree = NULL;
    stk_status status = lb_point_measure(path, defaults, sets, set_count, own, &run, err);

    if (status == STK_OK && !(tree = lb_result_tree(&run->result, err)))
        status = STK_E_MEMORY;
    if (tree) {
        keep(tree, point);
        if (json_object_size(sweep->facts) == 0)
            keep_facts(tree, sweep->facts);
    }
    json_decref(tree);
    lb_point_destroy(run);
    return status;
}

/* Whether the command or the config is wrong, so that nothing ran. */
static bool is_config_error(stk_status status)
{
    return status == STK_E_CONFIG || status == STK_E_RANGE;
}

static stk_status run_point(struct lb_sweep *sweep, int64_t number, const char *path, const char *const *sets,
                            int set_count, json_t *points, FILE *progress, stk_error *err)
{
    json_t *point = json_pack("{s:o}", "set", set_json(sweep, number));
    char *texts[LB_SWEEP_KEYS + 1] = {0};
    stk_status status = STK_OK;

    for (int i = 0; i < sweep->count && status == STK_OK; i++)
        if (!(texts[i] = stki_format("%s=%s", sweep->ranges[i].key, value_at(sweep, number, i))))
            status = stki_fail_memory(err, 64, "an assignment");
    if (status == STK_OK)
        status = measure(sweep, path, sets, set_count, (const char *const *)texts, point, err);
    if (status < 0)
        json_object_set_new(point, "failure", stki_text_json(err->message));
    if (status != STK_END) {
        json_array_append(points, point);
        if (progress && !is_config_error(status)) /* those are in the table; if there are only those, one is reported */
            tell(sweep, number + 1, point, progress);
    }
    json_decref(point);
    for (int i = 0; i < sweep->count; i++)
        stki_free(texts[i]);
    return status;
}

stk_status lb_sweep_run(struct lb_sweep *sweep, const char *path, const char *const *sets, int set_count,
                        FILE *progress, stk_error *err)
{
    json_t *keys = json_array(), *points = json_array();
    stk_status worst = STK_OK;
    stk_error own, first = {0};
    bool any = false, all_config = true;

    for (int i = 0; i < sweep->count; i++)
        json_array_append_new(keys, json_string(sweep->ranges[i].key));
    for (int64_t i = 0; i < sweep->points && !lb_stop_asked; i++) {
        const stk_status status = run_point(sweep, i, path, sets, set_count, points, progress, &own);
        any = any || status == STK_OK;
        sweep->failed += status < 0;
        if (status < 0 && worst == STK_OK) {
            worst = status;
            first = own;
        }
        /* A value that is out of range at every point is an error in the command, like an unknown key. */
        all_config = all_config && is_config_error(status);
    }
    sweep->tree = json_pack("{s:o, s:o, s:O, s:b}", "keys", keys, "points", points, "first_point", sweep->facts,
                            "stopped", lb_stop_asked != 0);
    if (any || worst == STK_OK)
        return any ? STK_OK : STK_END;
    *err = first;
    return err->status = all_config ? STK_E_CONFIG : worst;
}

/* ---- table ---- */

enum { CELL = 96, FIGURES = LB_SWEEP_COLUMNS, SPREAD = 1, MOST_COLUMNS = LB_SWEEP_KEYS + FIGURES };

const struct lb_sweep_column lb_sweep_columns[LB_SWEEP_COLUMNS] = {
    {"samples/s", "result.samples_per_s"},
    {"spread", "result.samples_per_s.spread_percent"},
    {"wait p99, us", "result.wait_p99_us"},
    {"first batch, ms", "result.first_batch_ms"},
    {"CPU s/GB", "result.cpu_s_per_gb"},
    {"slots, MB", "result.slot_memory_mb"},
    {"used by others", "result.other_processor_count"},
    {"bottleneck", NULL},
};

/* Returns the last part of the key, such as "num_workers", or the whole key if that is ambiguous. */
static const char *short_key(const struct lb_sweep *sweep, int key)
{
    const char *whole = sweep->ranges[key].key, *dot = strrchr(whole, '.'), *last = dot ? dot + 1 : whole;

    for (int i = 0; i < sweep->count; i++) {
        const char *other = sweep->ranges[i].key, *other_dot = strrchr(other, '.');
        if (i != key && strcmp(other_dot ? other_dot + 1 : other, last) == 0)
            return whole;
    }
    return last;
}

static void figure_cell(const json_t *point, int figure, char *out)
{
    double value;

    if (!lb_sweep_columns[figure].path && strcmp(lb_text_at(point, "verdict.bottleneck"), "unknown") == 0)
        snprintf(out, CELL, "unknown"); /* "unknown" has no confidence */
    else if (!lb_sweep_columns[figure].path)
        snprintf(out, CELL, "%s (%s)", lb_text_at(point, "verdict.bottleneck"),
                 lb_text_at(point, "verdict.confidence"));
    else if (!lb_scalar_at(point, lb_sweep_columns[figure].path, &value) || value < 0) /* negative: unknown */
        return;
    else if (figure == SPREAD && json_integer_value(json_object_get(point, "repeat_count")) < 2)
        return;
    else if (figure == SPREAD)
        snprintf(out, CELL, "%.1f %%", value);
    else
        snprintf(out, CELL, "%s", LB_NUMBER(value));
}

/* Writes the text of a cell or, without a point, of the header. */
static void cell(const struct lb_sweep *sweep, const json_t *point, int column, char *out)
{
    const int figure = column - sweep->count;

    out[0] = '\0';
    if (!point)
        snprintf(out, CELL, "%s", figure < 0 ? short_key(sweep, column) : lb_sweep_columns[figure].head);
    else if (figure < 0)
        snprintf(out, CELL, "%.*s", CELL - 1,
                 json_string_value(json_object_get(json_object_get(point, "set"), sweep->ranges[column].key)));
    else if (!json_object_get(point, "failure"))
        figure_cell(point, figure, out);
}

static void print_row(const struct lb_sweep *sweep, const json_t *point, const int *width, FILE *to)
{
    const char *failure = json_string_value(json_object_get(point, "failure"));
    const int columns = failure ? sweep->count : sweep->count + FIGURES;
    char text[CELL];

    for (int i = 0; i < columns; i++) {
        cell(sweep, point, i, text);
        if (i == sweep->count + FIGURES - 1)
            fprintf(to, "  %s", text); /* the last column is text: left-aligned, no trailing blanks */
        else
            fprintf(to, "%s%*s", i > 0 ? "  " : "", width[i], text);
    }
    if (failure)
        fprintf(to, "  failed: %s", failure);
    fputc('\n', to);
}

/* ---- conclusion ---- */

static double spread_of(const json_t *point)
{
    double spread = 0;

    lb_scalar_at(point, "result.samples_per_s.spread_percent", &spread);
    return spread;
}

/* The median rate of a point; 0: it failed. */
static double rate_of(const json_t *point)
{
    double rate = 0;

    lb_scalar_at(point, "result.samples_per_s", &rate);
    return rate;
}

static const json_t *best_of(const json_t *points)
{
    const json_t *best = NULL, *point;
    size_t i;

    json_array_foreach(points, i, point) if (rate_of(point) > rate_of(best)) best = point;
    return best;
}

/* Returns the noise as a fraction: the median over all points of the spread of their repeats. */
static double noise_of(const json_t *points)
{
    double spreads[LB_SWEEP_POINTS];
    const json_t *point;
    int count = 0;
    size_t i;

    json_array_foreach(points, i, point) if (rate_of(point) > 0 && count < LB_SWEEP_POINTS) spreads[count++] =
        spread_of(point) / 100;
    return lb_summarize(spreads, count).median;
}

/* Whether `point` may be as fast as the best: their repeats overlap, or their medians differ by no more than the
 * noise. */
static bool is_within_noise(const json_t *point, const json_t *best, double noise)
{
    double low = rate_of(best), high = rate_of(point);

    noise = fmax(fmax(noise, LB_SAME), fmax(spread_of(point), spread_of(best)) / 100);
    lb_scalar_at(best, "result.samples_per_s.low", &low);
    lb_scalar_at(point, "result.samples_per_s.high", &high);
    return rate_of(point) > 0 && (high >= low || rate_of(point) >= rate_of(best) * (1 - noise));
}

static void print_name(const json_t *keys, const json_t *point, FILE *to)
{
    const json_t *key;
    size_t i;

    json_array_foreach(keys, i, key)
        fprintf(to, "%s%s=%s", i > 0 ? " " : "", lb_text_of(key),
                lb_text_of(json_object_get(json_object_get(point, "set"), lb_text_of(key))));
    fprintf(to, " (%s)", LB_NUMBER(rate_of(point)));
}

static void print_alike(const json_t *keys, const json_t *points, const json_t *best, double noise, FILE *to)
{
    enum { NAMED = 4 };
    const json_t *point;
    int count = 0;
    size_t i;

    json_array_foreach(points, i, point)
    {
        if (point == best || !is_within_noise(point, best, noise) || count++ >= NAMED)
            continue;
        fputs(count == 1 ? "; within the noise of it: " : ", ", to);
        print_name(keys, point, to);
    }
    if (count > NAMED)
        fprintf(to, " and %d more", count - NAMED);
}

char *lb_sweep_conclusion(const json_t *sweep, int *within_noise)
{
    const json_t *keys = json_object_get(sweep, "keys"), *points = json_object_get(sweep, "points"), *point;
    const json_t *best = best_of(points);
    const double noise = noise_of(points);
    double least = rate_of(best);
    int ran = 0, alike = 0;
    char *text = NULL;
    size_t size, i;
    FILE *to = open_memstream(&text, &size);

    json_array_foreach(points, i, point)
    {
        ran += rate_of(point) > 0;
        alike += point != best && is_within_noise(point, best, noise);
        least = rate_of(point) > 0 ? fmin(least, rate_of(point)) : least;
    }
    *within_noise = alike;
    if (!to)
        return NULL;
    if (ran > 1 && alike == ran - 1) {
        fprintf(to, "no difference beyond the noise: %d points from %s to %s samples/s", ran, LB_NUMBER(least),
                LB_NUMBER(rate_of(best)));
    } else if (best) {
        fputs("most samples/s: ", to);
        print_name(keys, best, to);
        print_alike(keys, points, best, noise, to);
    }
    if (ran > 1 && json_integer_value(json_object_get(best, "repeat_count")) < 2)
        fputs("; each point was measured only once: raise bench.repeats to measure the noise", to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

void lb_sweep_print(const struct lb_sweep *sweep, const char *conclusion, FILE *to)
{
    const json_t *points = json_object_get(sweep->tree, "points"), *point;
    int width[MOST_COLUMNS] = {0};
    char text[CELL];
    size_t i;

    for (int k = 0; k < sweep->count + FIGURES; k++) {
        cell(sweep, NULL, k, text);
        width[k] = (int)strlen(text);
        json_array_foreach(points, i, point)
        {
            cell(sweep, point, k, text);
            width[k] = (int)strlen(text) > width[k] ? (int)strlen(text) : width[k];
        }
    }
    print_row(sweep, NULL, width, to);
    json_array_foreach(points, i, point) print_row(sweep, point, width, to);
    if (*conclusion)
        fprintf(to, "\n%s\n", conclusion);
    if (json_is_true(json_object_get(sweep->tree, "stopped")))
        fprintf(to, "note       stopped by a signal: %zu of %lld points were run, the last one incompletely\n",
                json_array_size(points), (long long)sweep->points);
}
