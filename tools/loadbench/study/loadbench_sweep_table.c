/* loadbench_sweep_table.c: the points of a sweep as a table: the keys, what came, what binds; and the best of them. */
#include "loadbench_scalars.h"
#include "loadbench_sweep.h"
#include "loadbench_table.h"
#include <string.h>

enum { CELL = 96, FIGURES = 7, SPREAD = 1, MOST_COLUMNS = LB_SWEEP_KEYS + FIGURES };

static const struct {
    const char *head, *path; /* NULL: a text */
} figures[FIGURES] = {
    {"samples/s", "result.samples_per_s"},
    {"spread", "result.samples_per_s.spread_percent"},
    {"wait p99, us", "wait.p99_us"},
    {"first batch, ms", "result.first_batch_ms"},
    {"CPU s/GB", "result.cpu_s_per_gb"},
    {"slots, MB", "result.slot_memory_mb"},
    {"binds", NULL},
};

/* "num_workers"; the whole key where another one ends in the same. */
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

    if (!figures[figure].path && strcmp(lb_text_at(point, "verdict.binds"), "unknown") == 0)
        snprintf(out, CELL, "unknown"); /* which has no confidence */
    else if (!figures[figure].path)
        snprintf(out, CELL, "%s (%s)", lb_text_at(point, "verdict.binds"), lb_text_at(point, "verdict.confidence"));
    else if (!lb_scalar_at(point, figures[figure].path, &value))
        return;
    else if (figure == SPREAD && json_integer_value(json_object_get(point, "repeat_count")) < 2)
        return;
    else if (figure == SPREAD)
        snprintf(out, CELL, "%.1f %%", value);
    else
        snprintf(out, CELL, "%s", LB_NUMBER(value));
}

/* The text of a cell; without a point that of the head. */
static void cell(const struct lb_sweep *sweep, const json_t *point, int column, char *out)
{
    const int figure = column - sweep->count;

    out[0] = '\0';
    if (!point)
        snprintf(out, CELL, "%s", figure < 0 ? short_key(sweep, column) : figures[figure].head);
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
            fprintf(to, "  %s", text); /* the last column is text: flush left, no blanks at the end */
        else
            fprintf(to, "%s%*s", i > 0 ? "  " : "", width[i], text);
    }
    if (failure)
        fprintf(to, "  failed: %s", failure);
    fputc('\n', to);
}

static const json_t *best_of(const json_t *points, double *rate)
{
    const json_t *best = NULL, *point;
    double own;
    size_t i;

    json_array_foreach(points, i,
                       point) if (lb_scalar_at(point, "result.samples_per_s", &own) && (!best || own > *rate))
    {
        best = point;
        *rate = own;
    }
    return best;
}

void lb_sweep_print(const struct lb_sweep *sweep, FILE *to)
{
    const json_t *points = json_object_get(sweep->tree, "points"), *point;
    int width[MOST_COLUMNS] = {0};
    char text[CELL], line[512];
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
    lb_sweep_best(sweep, line, sizeof line);
    if (*line)
        fprintf(to, "\nmost samples/s: %s\n", line);
    if (json_is_true(json_object_get(sweep->tree, "stopped")))
        fprintf(to, "note       ended by a signal: %zu of %lld points were run, the last one for a part of its time\n",
                json_array_size(points), (long long)sweep->points);
}

void lb_sweep_best(const struct lb_sweep *sweep, char *out, int size)
{
    double rate = 0;
    const json_t *best = best_of(json_object_get(sweep->tree, "points"), &rate);
    int used = 0;

    out[0] = '\0';
    for (int k = 0; best && k < sweep->count && used < size; k++)
        used += snprintf(out + used, (size_t)(size - used), "%s%s=%s", k > 0 ? " " : "", sweep->ranges[k].key,
                         json_string_value(json_object_get(json_object_get(best, "set"), sweep->ranges[k].key)));
    if (best && used < size)
        snprintf(out + used, (size_t)(size - used), " (%s)", LB_NUMBER(rate));
}
