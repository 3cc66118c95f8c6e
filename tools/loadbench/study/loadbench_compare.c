/* loadbench_compare.c: compares two results. The confidence intervals are computed from the repeats of both runs. */
#include "loadbench_compare.h"
#include "error.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include "loadbench_statistics.h"
#include "loadbench_table.h"
#include "text_json.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN = 12, LEAST_REPEATS = 5 };

#define KEPT "a result saved with loadbench CONFIG.yaml --format=json >RESULT.json"

/* Reports invalid JSON. The parser's message is not used, because it quotes the file. */
static stk_status fail_json(const char *path, const json_error_t *wrong, stk_error *err)
{
    struct stat about;

    if (stat(path, &about) != 0)
        return stki_fail(err, STK_E_CONFIG, "%s: %s: expected " KEPT, path, strerror(errno));
    if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode))
        return stki_fail(err, STK_E_CONFIG, "%s: is not a file: expected " KEPT, path);
    if (json_error_code(wrong) == json_error_cannot_open_file)
        return stki_fail(err, STK_E_CONFIG, "%s: cannot be read: expected " KEPT, path);
    if (about.st_size == 0 && S_ISREG(about.st_mode))
        return stki_fail(err, STK_E_CONFIG, "%s: is empty: expected " KEPT, path);
    if (json_error_code(wrong) == json_error_premature_end_of_input)
        return stki_fail(err, STK_E_CONFIG, "%s: the JSON ends at line %d, so it is incomplete: measure again", path,
                         wrong->line);
    return stki_fail(err, STK_E_CONFIG, "%s: not valid JSON at line %d, column %d: expected " KEPT, path, wrong->line,
                     wrong->column);
}

/* Whether the tree is a result: it has repeats, each with its rate. */
static bool has_runs(const json_t *tree)
{
    const json_t *runs = json_object_get(tree, "runs"), *run;
    size_t i;

    json_array_foreach(runs, i, run) if (!json_is_number(json_object_get(run, "samples_per_s"))) return false;
    return json_array_size(runs) > 0 && json_is_object(json_object_get(tree, "result"));
}

stk_status lb_result_check(const char *path, const json_t *tree, stk_error *err)
{
    const json_t *schema = json_object_get(tree, "schema");
    const char *program = lb_text_at(tree, "program");

    if (strncmp(program, "loadbench", 9) != 0 || !json_is_integer(schema))
        return stki_fail(err, STK_E_CONFIG, "%s: is JSON, but not a result of loadbench: expected " KEPT, path);
    if (strcmp(program, "loadbench") != 0)
        return stki_fail(err, STK_E_CONFIG, "%s: is a result of %.40s, not of one run: expected " KEPT, path, program);
    if (json_integer_value(schema) != LB_SCHEMA)
        return stki_fail(err, STK_E_CONFIG, "%s: has schema %lld, expected %d: measure again with this version", path,
                         (long long)json_integer_value(schema), LB_SCHEMA);
    if (!has_runs(tree))
        return stki_fail(err, STK_E_CONFIG,
                         "%s: is a result of loadbench without its repeats (\"runs\", each with a number "
                         "\"samples_per_s\"): measure again",
                         path);
    return STK_OK;
}

stk_status lb_result_load(const char *path, json_t **out, stk_error *err)
{
    json_error_t wrong;
    json_t *tree = json_load_file(path, 0, &wrong);
    const stk_status status = tree ? lb_result_check(path, tree, err) : fail_json(path, &wrong, err);

    *out = status == STK_OK ? tree : NULL;
    if (!*out)
        json_decref(tree);
    return status;
}

/* Returns the values of a figure, one per repeat. */
static int values_of(const json_t *tree, const char *key, double *out, int most)
{
    const json_t *run;
    size_t i;
    int count = 0;

    json_array_foreach(json_object_get(tree, "runs"), i,
                       run) if (count < most && json_is_number(json_object_get(run, key))) out[count++] =
        json_number_value(json_object_get(run, key));
    return count;
}

static const char *word_for(const struct lb_ratio_interval *interval)
{
    if (!interval->known)
        return "too few repeats";
    if (interval->low <= 1 && interval->high >= 1)
        return "not significant";
    return interval->ratio > 1 ? "more" : "less";
}

static void compare_figure(const json_t *before, const json_t *now, const struct lb_figure *figure,
                           struct lb_table *table, json_t *out)
{
    double old[LB_BOOTSTRAP_VALUES], own[LB_BOOTSTRAP_VALUES], old_median, own_median;
    const int old_count = values_of(before, figure->key, old, LB_BOOTSTRAP_VALUES);
    const int own_count = values_of(now, figure->key, own, LB_BOOTSTRAP_VALUES);
    const struct lb_ratio_interval interval = lb_bootstrap(old, old_count, own, own_count);

    if (old_count == 0 || own_count == 0)
        return;
    old_median = lb_summarize(old, old_count).median;
    own_median = lb_summarize(own, own_count).median;
    if (old_median < 0 || own_median < 0 || (old_median <= 0 && own_median <= 0)) /* unknown or zero */
        return;
    lb_table_row(table, &figure->label, 1);
    lb_table_cell(table, 1, "%s", LB_NUMBER(old_median));
    lb_table_cell(table, 2, "%s", LB_NUMBER(own_median));
    if (old_median > 0)
        lb_table_cell(table, 3, "%.3f", interval.ratio);
    if (interval.known)
        lb_table_cell(table, 4, "%.3f to %.3f", interval.low, interval.high);
    lb_table_cell(table, 5, "%s", old_median > 0 ? word_for(&interval) : "was 0");
    json_object_set_new(out, figure->key,
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:b}", "before", old_median, "now", own_median, "ratio",
                                  interval.ratio, "low", interval.low, "high", interval.high, "difference_shown",
                                  interval.known && (interval.low > 1 || interval.high < 1)));
}

/* ---- other differences ---- */

struct differences {
    json_t *list;
    FILE *to;
    int count;
};

/* Whether the property differs even between two runs of the same config, so that its difference is not listed. */
static bool passes(const char *path)
{
    static const char *const words[] = {"available", "free", "started", "resident", "cached", "memory_budget"};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(dot ? dot : path, words[i]))
            return true;
    return false;
}

static void note_difference(const char *path, const json_t *before, const json_t *now, struct differences *out)
{
    char *old = before ? json_dumps(before, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char *own = now ? json_dumps(now, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char text[400];

    snprintf(text, sizeof text, "%s: %.100s before, %.100s now", path, old ? old : "missing", own ? own : "missing");
    free(old);
    free(own);
    json_array_append_new(out->list, stki_text_json(text));
    if (out->count++ < SHOWN)
        fprintf(out->to, "warning    %s\n", text);
}

/* Compares numbers with a tolerance, because stored numbers are rounded to 15 digits. */
static bool same_value(const json_t *a, const json_t *b)
{
    const double x = json_number_value(a), y = json_number_value(b);
    size_t i;
    const json_t *one;

    if (json_is_number(a) && json_is_number(b))
        return fabs(x - y) <= 1e-12 * fmax(fabs(x), fabs(y));
    if (!json_is_array(a) || !json_is_array(b) || json_array_size(a) != json_array_size(b))
        return a && b && json_equal(a, b);
    json_array_foreach(a, i, one) if (!same_value(one, json_array_get(b, i))) return false;
    return true;
}

static void differ(const char *path, const json_t *before, const json_t *now, struct differences *out)
{
    const char *key;
    json_t *value;

    if (passes(path) || same_value(before, now))
        return;
    if (!json_is_object(before) || !json_is_object(now)) {
        note_difference(path, before, now, out);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)before, key, value)
    {
        char own[300];
        if (snprintf(own, sizeof own, "%s.%s", path, key) < (int)sizeof own)
            differ(own, value, json_object_get(now, key), out);
    }
    json_object_foreach((json_t *)(uintptr_t)now, key, value)
    {
        char own[300];
        if (!json_object_get(before, key) && snprintf(own, sizeof own, "%s.%s", path, key) < (int)sizeof own)
            differ(own, NULL, value, out);
    }
}

/* Warns that other programs used CPU time during one of the runs, which could look like a difference between the
 * runs. */
static void note_others(const json_t *before, const json_t *now, FILE *to)
{
    const json_t *const trees[] = {before, now};

    for (int i = 0; i < 2; i++) {
        double loud = 0, used = 0;
        if (lb_scalar_at(trees[i], "others.loud_repeat_count", &loud) && loud > 0 &&
            lb_scalar_at(trees[i], "others.used_processor_count", &used))
            fprintf(to, "note       %s was not quiet: other programs used %.2f processors\n",
                    i == 0 ? "the earlier run" : "this run", used);
    }
}

stk_status lb_compare(const json_t *before, const char *path, json_t *now, FILE *to, stk_error *err)
{
    static const char *const head[] = {"", "before", "now", "ratio", "95 % interval", "difference"};
    static const char *const parts[] = {"machine", "versions", "config", "data", "consumer"};
    struct lb_table *table = malloc(sizeof *table);
    json_t *figures = json_object();
    struct differences differences = {json_array(), to, 0};
    double repeats[LB_BOOTSTRAP_VALUES];

    if (!table || !figures || !differences.list) {
        free(table);
        json_decref(figures);
        json_decref(differences.list);
        return stki_fail_memory(err, sizeof *table, "a comparison");
    }
    lb_table_init(table, 6);
    table->left[5] = true;
    lb_table_row(table, head, 6);
    for (int i = 0; i < lb_figure_count; i++)
        if (lb_figures[i].label)
            compare_figure(before, now, &lb_figures[i], table, figures);
    fprintf(to, "\ncompared   with %s of %s\n\n", path, lb_text_at(before, "started"));
    lb_table_print(table, to);
    free(table);
    fputc('\n', to);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const json_t *old = json_object_get(before, parts[i]), *own = json_object_get(now, parts[i]);
        if (old && own) /* the result of an iterable has neither config nor data */
            differ(parts[i], old, own, &differences);
    }
    if (differences.count > SHOWN)
        fprintf(to, "warning    and %d more differences\n", differences.count - SHOWN);
    if (values_of(before, "samples_per_s", repeats, LB_BOOTSTRAP_VALUES) < LEAST_REPEATS ||
        values_of(now, "samples_per_s", repeats, LB_BOOTSTRAP_VALUES) < LEAST_REPEATS)
        fprintf(to, "note       an interval from fewer than %d repeats is too narrow (bench.repeats)\n", LEAST_REPEATS);
    note_others(before, now, to);
    json_object_set_new(now, "compared",
                        json_pack("{s:o, s:s, s:o, s:o}", "file", stki_text_json(path), "started",
                                  lb_text_at(before, "started"), "figures", figures, "differences", differences.list));
    return STK_OK;
}
