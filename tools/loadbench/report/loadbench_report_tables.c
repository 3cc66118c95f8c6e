/* loadbench_report_tables.c: what is read rather than seen: figures of all repeats, comparisons, requirements, machine,
 * data and config. */
#include "html.h"
#include "loadbench_report_parts.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include "loadbench_table.h"
#include <inttypes.h>
#include <string.h>

static void cell(FILE *to, const char *css, const char *text)
{
    fprintf(to, "<td%s%s%s>", *css ? " class=\"" : "", css, *css ? "\"" : "");
    html_text(to, text);
    fputs("</td>", to);
}

void lb_report_figures(FILE *to, const json_t *tree)
{
    double repeats = 1, value, low, high, spread;

    if (!json_object_get(tree, "result"))
        return;
    lb_scalar_at(tree, "repeat_count", &repeats);
    lb_report_section(to, "Figures", repeats > 1 ? "Medians of all repeats, beside the lowest and the highest." : NULL);
    fputs("<div class=\"scroll\"><table><thead><tr><th></th><th>median</th>", to);
    fputs(repeats > 1 ? "<th>low</th><th>high</th><th>spread</th>" : "", to);
    fputs("</tr></thead><tbody>\n", to);
    for (int i = 0; i < lb_figure_count; i++) {
        const json_t *figure = json_object_get(json_object_get(tree, "result"), lb_figures[i].key);
        if (!lb_figures[i].label || !lb_scalar_at(figure, "median", &value) || !lb_scalar_at(figure, "low", &low) ||
            low < 0)
            continue;
        fputs("<tr>", to);
        double most = value;
        char label[64];
        lb_scalar_at(figure, "high", &most);
        const double scale = lb_figure_scale(&lb_figures[i], most, label, sizeof label);
        cell(to, "", label);
        cell(to, "", LB_NUMBER(scale * value));
        if (repeats > 1 && lb_scalar_at(figure, "high", &high) && lb_scalar_at(figure, "spread_percent", &spread)) {
            char text[32];
            cell(to, "quiet", LB_NUMBER(scale * low));
            cell(to, "quiet", LB_NUMBER(scale * high));
            snprintf(text, sizeof text, "%.1f %%", spread);
            cell(to, "quiet", text);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

void lb_report_required(FILE *to, const json_t *tree)
{
    const json_t *list = json_object_get(tree, "required"), *one;
    char text[128];
    double value = 0;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    lb_report_section(to, "What was required", NULL);
    fputs("<div class=\"scroll\"><table><thead><tr><th>required</th><th>found</th><th "
          "class=\"text\"></th></tr></thead><tbody>\n",
          to);
    json_array_foreach(list, i, one)
    {
        const bool holds = json_is_true(json_object_get(one, "holds"));
        lb_scalar_at(one, "value", &value);
        fputs("<tr>", to);
        cell(to, "", lb_text_at(one, "require"));
        snprintf(text, sizeof text, "%.80s %s", lb_text_at(one, "name"), LB_NUMBER(value));
        cell(to, "", text);
        cell(to, holds ? "text" : "text failed", holds ? "holds" : "does not hold");
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

void lb_report_compared(FILE *to, const json_t *tree)
{
    const json_t *compared = json_object_get(tree, "compared"), *differences = json_object_get(compared, "differences"),
                 *one;
    char text[64], lead[400];
    size_t i;

    if (!compared)
        return;
    snprintf(lead, sizeof lead,
             "With %.200s of %.40s. The interval is one of 95 %%, by a bootstrap over the repeats of both.",
             lb_text_at(compared, "file"), lb_text_at(compared, "started"));
    lb_report_section(to, "Compared", lead);
    fputs("<div class=\"scroll\"><table><thead><tr><th></th><th>before</th><th>now</th><th>ratio</th><th>95&nbsp;%"
          "</th><th class=\"text\"></th></tr></thead><tbody>\n",
          to);
    for (int k = 0; k < lb_figure_count; k++) {
        const json_t *figure = json_object_get(json_object_get(compared, "figures"), lb_figures[k].key);
        double before, now, ratio, low, high;
        if (!lb_figures[k].label || !lb_scalar_at(figure, "before", &before) || !lb_scalar_at(figure, "now", &now) ||
            !lb_scalar_at(figure, "ratio", &ratio) || !lb_scalar_at(figure, "low", &low) ||
            !lb_scalar_at(figure, "high", &high))
            continue;
        const bool shown = json_is_true(json_object_get(figure, "difference_shown"));
        fputs(shown ? "<tr class=\"best\">" : "<tr>", to);
        cell(to, "", lb_figures[k].label);
        cell(to, "", LB_NUMBER(before));
        cell(to, "", LB_NUMBER(now));
        snprintf(text, sizeof text, "%.3f", ratio);
        cell(to, "", text);
        snprintf(text, sizeof text, "%.3f to %.3f", low, high);
        cell(to, "quiet", text);
        cell(to, shown ? "text" : "text quiet", !shown ? "no difference shown" : ratio > 1 ? "more" : "less");
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
    if (json_array_size(differences) > 0)
        fputs("<p class=\"lead\" style=\"margin:22px 0 8px\">What else differs:</p><ul class=\"notes\">\n", to);
    json_array_foreach(differences, i, one)
    {
        fputs("<li>", to);
        html_text(to, lb_text_of(one));
        fputs("</li>\n", to);
    }
    fputs(json_array_size(differences) > 0 ? "</ul></section>\n" : "</section>\n", to);
}

/* ---- names and values ---------------------------------------------------------------------------------------------
 */

static void value_text(const json_t *value, char *out, int size)
{
    if (json_is_string(value))
        snprintf(out, (size_t)size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(out, (size_t)size, "%" PRId64, (int64_t)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(out, (size_t)size, "%.6g", json_real_value(value));
    else
        snprintf(out, (size_t)size, "%s", json_is_true(value) ? "true" : json_is_false(value) ? "false" : "–");
}

static bool is_flat(const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) if (json_is_object(one) || json_is_array(one)) return false;
    return true;
}

static void print_fact(FILE *to, const char *path, const json_t *value)
{
    const json_t *one;
    char text[512];
    size_t i;

    fputs("<dt>", to);
    html_text(to, path);
    fputs("</dt><dd>", to);
    if (json_is_array(value)) {
        json_array_foreach(value, i, one)
        {
            value_text(one, text, sizeof text);
            html_textf(to, "%s%s", i > 0 ? ", " : "", text);
        }
    } else {
        value_text(value, text, sizeof text);
        html_text(to, *text ? text : "–");
    }
    fputs("</dd>\n", to);
}

static void walk(FILE *to, const char *path, const json_t *value)
{
    const char *key;
    char own[256];
    json_t *one;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, one)
        {
            snprintf(own, sizeof own, "%s%s%s", path, *path ? "." : "", key);
            walk(to, own, one);
        }
    } else if (json_is_array(value) && !is_flat(value)) {
        json_array_foreach(value, i, one)
        {
            snprintf(own, sizeof own, "%s.%d", path, (int)i);
            walk(to, own, one);
        }
    } else {
        print_fact(to, path, value);
    }
}

void lb_report_facts(FILE *to, const char *title, const json_t *member)
{
    if (!member || (json_is_array(member) && json_array_size(member) == 0))
        return;
    lb_report_section(to, title, NULL);
    fputs("<dl class=\"facts\">\n", to);
    walk(to, "", member);
    fputs("</dl></section>\n", to);
}
