/* loadbench_report_sweep.c: a sweep as a plot and a table. The key with the most values that are numbers lies along the
 * plot, the combinations of the others are a line each, named at its end; the best of them is drawn strongly. */
#include "html.h"
#include "loadbench_report_parts.h"
#include "loadbench_scalars.h"
#include "loadbench_svg.h"
#include "loadbench_table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 12, VALUES = 64, NAME = 96 };

struct series {
    char name[NAME];
    int count;
    double x[VALUES], y[VALUES], low[VALUES], high[VALUES];
};

static const char *value_of(const json_t *point, const char *key)
{
    return lb_text_of(json_object_get(json_object_get(point, "set"), key));
}

/* A number at the beginning of the text; units are the same along a range, and stay away. */
static bool number_of(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},        {"k", 1e3},      {"M", 1e6},      {"Ki", 1024}, {"KiB", 1024},
                 {"Mi", 0x1p20}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"kB", 1e3},  {"MB", 1e6},
                 {"us", 1e-6},   {"ms", 1e-3},    {"s", 1}};
    char *end;

    *out = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *out *= units[i].factor;
            return isfinite(*out);
        }
    return false;
}

static int different_numbers(const json_t *points, const char *key)
{
    const json_t *point;
    double seen[VALUES], value;
    int count = 0;
    size_t i;

    json_array_foreach(points, i, point)
    {
        bool known = false;
        if (!number_of(value_of(point, key), &value))
            return 0;
        for (int k = 0; k < count; k++)
            known = known || !(seen[k] < value || seen[k] > value);
        if (!known && count < VALUES)
            seen[count++] = value;
    }
    return count;
}

/* The key that lies along the plot; NULL: none has three values or more. */
static const char *along(const json_t *keys, const json_t *points)
{
    const char *best = NULL;
    const json_t *key;
    int most = 2;
    size_t i;

    json_array_foreach(keys, i, key)
    {
        const int count = different_numbers(points, lb_text_of(key));
        if (count > most) {
            most = count;
            best = lb_text_of(key);
        }
    }
    return best;
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

static void name_series(const json_t *keys, const json_t *point, const char *x_key, char *out)
{
    const json_t *key;
    int used = 0;
    size_t i;

    out[0] = '\0';
    json_array_foreach(keys, i, key) if (strcmp(lb_text_of(key), x_key) != 0 && used < NAME) used +=
        snprintf(out + used, (size_t)(NAME - used), "%s%s %s", used ? ", " : "", last_part(lb_text_of(key)),
                 value_of(point, lb_text_of(key)));
}

static struct series *series_of(struct series *all, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    if (*count == LINES)
        return NULL;
    memset(&all[*count], 0, sizeof all[0]);
    snprintf(all[*count].name, NAME, "%s", name);
    return &all[(*count)++];
}

/* In the order of x, whatever that of the list was. */
static void insert(struct series *s, double x, double y, double low, double high)
{
    int at = s->count;

    if (s->count == VALUES)
        return;
    for (; at > 0 && s->x[at - 1] > x; at--) {
        s->x[at] = s->x[at - 1];
        s->y[at] = s->y[at - 1];
        s->low[at] = s->low[at - 1];
        s->high[at] = s->high[at - 1];
    }
    s->x[at] = x, s->y[at] = y, s->low[at] = low, s->high[at] = high;
    s->count++;
}

static int collect(const json_t *keys, const json_t *points, const char *x_key, struct series *all)
{
    const json_t *point;
    int count = 0;
    size_t i;

    json_array_foreach(points, i, point)
    {
        double x, y, low, high;
        char name[NAME];
        struct series *s;
        name_series(keys, point, x_key, name);
        if (!number_of(value_of(point, x_key), &x) || !lb_scalar_at(point, "result.samples_per_s", &y) ||
            !(s = series_of(all, &count, name)))
            continue;
        low = high = y;
        lb_scalar_at(point, "result.samples_per_s.low", &low);
        lb_scalar_at(point, "result.samples_per_s.high", &high);
        insert(s, x, y, low, high);
    }
    return count;
}

static double highest_of(const struct series *s)
{
    double highest = 0;

    for (int i = 0; i < s->count; i++)
        highest = fmax(highest, s->high[i]);
    return highest;
}

static void draw_series(const struct lb_plot *plot, const struct series *s, bool strong)
{
    lb_plot_line(plot, s->x, s->y, s->count, strong ? "main-line" : "other-line");
    for (int i = 0; i < s->count && strong; i++) {
        const double x = lb_plot_x(plot, s->x[i]);
        if (s->high[i] > s->low[i])
            fprintf(plot->to, "<line class=\"whisker\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x,
                    lb_plot_y(plot, s->low[i]), x, lb_plot_y(plot, s->high[i]));
        fprintf(plot->to, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", x, lb_plot_y(plot, s->y[i]));
    }
}

/* Names stand at the ends of the lines, from the top down, each at least a line of text below the one before. */
static void name_lines(const struct lb_plot *plot, const struct series *all, int count, int best)
{
    bool done[LINES] = {false};
    double below = plot->top - 4;

    for (int n = 0; n < count; n++) {
        int next = -1;
        for (int i = 0; i < count; i++)
            if (!done[i] && (next < 0 || all[i].y[all[i].count - 1] > all[next].y[all[next].count - 1]))
                next = i;
        done[next] = true;
        below = fmax(below + 16, lb_plot_y(plot, all[next].y[all[next].count - 1]) + 4);
        lb_plot_text(plot, plot->right + 10, below, "start", next == best ? "strong" : "tick", all[next].name);
    }
}

/* A tick under every value: they are few, and not evenly apart. */
static void x_values(const struct lb_plot *plot, const struct series *s)
{
    double free_from = -1e9;
    char number[32];

    for (int i = 0; i < s->count; i++) {
        const double x = lb_plot_x(plot, s->x[i]);
        if (x < free_from)
            continue;
        lb_plot_text(plot, x, plot->bottom + 19, "middle", "tick", lb_tick_text(number, sizeof number, s->x[i]));
        free_from = x + 34;
    }
}

static void draw(FILE *to, const struct series *all, int count, const char *x_key)
{
    double highest = 0, x0 = all[0].x[0], x1 = x0;
    int best = 0, longest = 0;
    size_t widest = 0;

    for (int i = 0; i < count; i++) {
        if (highest_of(&all[i]) > highest_of(&all[best]))
            best = i;
        if (all[i].count > all[longest].count)
            longest = i;
        highest = fmax(highest, highest_of(&all[i]));
        widest = strlen(all[i].name) > widest ? strlen(all[i].name) : widest;
        x0 = fmin(x0, all[i].x[0]);
        x1 = fmax(x1, all[i].x[all[i].count - 1]);
    }
    for (int which = 0; which < LB_PLOT_SIZES; which++) {
        struct lb_plot plot;
        lb_plot_begin(&plot, to, which, which ? 260 : 320, 52, "samples a second by the values of the sweep");
        plot.right -= count > 1 ? fmin(which ? 128 : 260, 18 + 7.3 * (double)widest) : 12;
        plot.bottom -= 18;
        plot.log_x = x0 > 0 && x1 / x0 > 20;
        plot.x0 = plot.log_x ? x0 : x0 - (x1 - x0) * 0.03;
        plot.x1 = x1 > x0 ? x1 : x0 + 1;
        lb_plot_y_axis(&plot, highest, "samples/s");
        x_values(&plot, &all[longest]);
        lb_plot_text(&plot, (plot.left + plot.right) / 2, plot.bottom + 38, "middle", "tick", last_part(x_key));
        for (int i = 0; i < count; i++)
            if (i != best)
                draw_series(&plot, &all[i], false);
        draw_series(&plot, &all[best], true);
        if (count > 1)
            name_lines(&plot, all, count, best);
        lb_plot_end(&plot);
    }
}

/* ---- the table ----------------------------------------------------------------------------------------------------
 */

static const json_t *best_point(const json_t *points)
{
    const json_t *best = NULL, *point;
    double most = 0, own;
    size_t i;

    json_array_foreach(points, i, point) if (lb_scalar_at(point, "result.samples_per_s", &own) && own > most)
    {
        most = own;
        best = point;
    }
    return best;
}

static void print_point(FILE *to, const json_t *keys, const json_t *point, bool best)
{
    static const char *const figures[] = {"result.samples_per_s", "wait.p99_us", "result.cpu_s_per_gb",
                                          "result.slot_memory_mb"};
    const char *failure = json_string_value(json_object_get(point, "failure"));
    const json_t *key;
    double value;
    size_t i;

    fputs(best ? "<tr class=\"best\">" : "<tr>", to);
    json_array_foreach(keys, i, key)
    {
        fputs("<td>", to);
        html_text(to, value_of(point, lb_text_of(key)));
        fputs("</td>", to);
    }
    if (failure) {
        fprintf(to, "<td class=\"text failed\" colspan=\"%d\">", (int)(sizeof figures / sizeof figures[0]) + 2);
        html_text(to, failure);
        fputs("</td></tr>\n", to);
        return;
    }
    for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++) {
        fputs("<td>", to);
        html_text(to, lb_scalar_at(point, figures[k], &value) ? LB_NUMBER(value) : "–");
        fputs("</td>", to);
        if (k == 0) {
            fputs("<td class=\"quiet\">", to);
            if (lb_scalar_at(point, "result.samples_per_s.spread_percent", &value) && value > 0)
                html_textf(to, "%.1f %%", value);
            fputs("</td>", to);
        }
    }
    fputs("<td class=\"text\">", to);
    html_text(to, lb_text_at(point, "verdict.binds"));
    fputs("</td></tr>\n", to);
}

void lb_report_sweep(FILE *to, const json_t *tree)
{
    const json_t *sweep = json_object_get(tree, "sweep"), *keys = json_object_get(sweep, "keys"),
                 *points = json_object_get(sweep, "points"), *one;
    const char *x_key = sweep ? along(keys, points) : NULL;
    struct series *all = calloc(LINES, sizeof *all);
    size_t i;

    if (!sweep || !all) {
        free(all);
        return;
    }
    if (x_key) {
        const int count = collect(keys, points, x_key, all);
        lb_report_section(to, "Throughput",
                          count > 1 ? "Samples a second. The line that reaches the most is drawn strongly."
                                    : "Samples a second; lines across a point reach from its lowest to "
                                      "its highest repeat.");
        if (count > 0)
            draw(to, all, count, x_key);
        fputs("</section>\n", to);
    }
    free(all);
    lb_report_section(to, "Every point", NULL);
    fputs("<div class=\"scroll\"><table><thead><tr>", to);
    json_array_foreach(keys, i, one)
    {
        fputs("<th>", to);
        html_text(to, last_part(lb_text_of(one)));
        fputs("</th>", to);
    }
    fputs("<th>samples/s</th><th>spread</th><th>wait p99, us</th><th>CPU s/GB</th><th>slots, MB</th>"
          "<th class=\"text\">binds</th></tr></thead><tbody>\n",
          to);
    json_array_foreach(points, i, one) print_point(to, keys, one, one == best_point(points));
    fputs("</tbody></table></div></section>\n", to);
}
