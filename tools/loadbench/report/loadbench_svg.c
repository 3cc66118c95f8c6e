/* loadbench_svg.c: see loadbench_svg.h. Colours are the style sheet's: shapes only have classes. */
#include "loadbench_svg.h"
#include "html.h"
#include <math.h>
#include <string.h>

#define WIDE 980.0
#define NARROW 350.0
#define BELOW 26.0 /* pixels for the labels of the x axis */

void lb_plot_begin(struct lb_plot *plot, FILE *to, int which, double height, double left, const char *label)
{
    *plot = (struct lb_plot){.to = to, .narrow = which == 1, .width = which == 1 ? NARROW : WIDE, .height = height};
    plot->left = left;
    plot->right = plot->width - 8;
    plot->top = 22;
    plot->bottom = height - BELOW;
    plot->x1 = plot->y1 = 1;
    fprintf(to, "<svg class=\"%s\" viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", plot->narrow ? "narrow" : "wide",
            plot->width, height);
    html_text(to, label);
    fputs("\">\n", to);
}

void lb_plot_end(struct lb_plot *plot)
{
    fputs("</svg>\n", plot->to);
}

double lb_plot_x(const struct lb_plot *plot, double x)
{
    const double at =
        plot->log_x ? log(x / plot->x0) / log(plot->x1 / plot->x0) : (x - plot->x0) / (plot->x1 - plot->x0);
    return plot->left + (plot->right - plot->left) * fmin(1, fmax(0, at));
}

double lb_plot_y(const struct lb_plot *plot, double y)
{
    const double at = (y - plot->y0) / (plot->y1 - plot->y0);
    return plot->bottom - (plot->bottom - plot->top) * fmin(1, fmax(0, at));
}

const char *lb_tick_text(char *buffer, int size, double value)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int i = 0;

    while (fabs(value) >= 999.9995 && i < 4) {
        value /= 1000;
        i++;
    }
    snprintf(buffer, (size_t)size, "%.4g%s", fabs(value) < 1e-12 ? 0 : value, prefixes[i]);
    return buffer;
}

double lb_tick_step(double span, int count)
{
    const double least = span / count, power = pow(10, floor(log10(least))), times = least / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

void lb_plot_text(const struct lb_plot *plot, double px, double py, const char *anchor, const char *css,
                  const char *text)
{
    fprintf(plot->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", px, py, anchor, css);
    html_text(plot->to, text);
    fputs("</text>\n", plot->to);
}

void lb_plot_rect(const struct lb_plot *plot, double px, double py, double width, double height, const char *css)
{
    fprintf(plot->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", px, py,
            fmax(0, width), fmax(0, height), css);
}

static void line(const struct lb_plot *plot, double x1, double y1, double x2, double y2, const char *css)
{
    fprintf(plot->to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, css);
}

void lb_plot_y_axis(struct lb_plot *plot, double highest, const char *unit)
{
    const double step = lb_tick_step(highest > 0 ? highest : 1, 4);
    char text[64], number[32];

    plot->y0 = 0;
    plot->y1 = step * ceil((highest > 0 ? highest : 1) / step - 1e-9);
    for (int i = 0; step * i <= plot->y1 * (1 + 1e-9); i++) {
        const double y = lb_plot_y(plot, step * i);
        line(plot, plot->left, y, plot->right, y, i == 0 ? "axis" : "grid");
        lb_tick_text(number, sizeof number, step * i);
        lb_plot_text(plot, plot->left - 8, y + 4, "end", "tick", number);
    }
    snprintf(text, sizeof text, "%s", unit);
    lb_plot_text(plot, plot->left, 12, "start", "tick", text);
}

void lb_plot_x_axis(struct lb_plot *plot, const char *format)
{
    const double span = plot->x1 - plot->x0, step = lb_tick_step(span > 0 ? span : 1, plot->narrow ? 4 : 8);
    char text[64], number[32];

    for (double x = step * ceil(plot->x0 / step - 1e-9); x <= plot->x1 + step * 1e-6; x += step) {
        const double px = lb_plot_x(plot, x);
        const bool last = px > plot->right - 14;
        lb_tick_text(number, sizeof number, x);
        snprintf(text, sizeof text, "%s%s", number, format);
        line(plot, px, plot->bottom, px, plot->bottom + 4, "axis");
        lb_plot_text(plot, last ? plot->right : px, plot->bottom + 19, last ? "end" : "middle", "tick", text);
    }
}

void lb_plot_x_times(struct lb_plot *plot)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    const int first = (int)ceil(log10(plot->x0) - 1e-9), last = (int)floor(log10(plot->x1) + 1e-9);
    const int every = plot->narrow && last - first > 4 ? 2 : 1;
    char text[32];

    line(plot, plot->left, plot->bottom, plot->right, plot->bottom, "axis");
    for (int power = first; power <= last; power++) {
        const int of_ns = power + 3, unit = of_ns < 0 ? 0 : of_ns / 3 > 3 ? 3 : of_ns / 3;
        const double px = lb_plot_x(plot, pow(10, power));
        line(plot, px, plot->bottom, px, plot->bottom + 4, "axis");
        if ((power - first) % every != 0)
            continue;
        snprintf(text, sizeof text, "%g %s", pow(10, of_ns - 3 * unit), units[unit]);
        lb_plot_text(plot, px, plot->bottom + 19,
                     px < plot->left + 14    ? "start"
                     : px > plot->right - 20 ? "end"
                                             : "middle",
                     "tick", text);
    }
}

void lb_plot_line(const struct lb_plot *plot, const double *x, const double *y, int count, const char *css)
{
    if (count < 1)
        return;
    fprintf(plot->to, "<polyline class=\"%s\" points=\"", css);
    for (int i = 0; i < count; i++)
        fprintf(plot->to, "%s%.1f,%.1f", i ? " " : "", lb_plot_x(plot, x[i]), lb_plot_y(plot, y[i]));
    fputs("\"/>\n", plot->to);
}

void lb_plot_steps(const struct lb_plot *plot, const double *x, const double *y, int count, double base,
                   const char *css)
{
    double from = plot->left;

    if (count < 1)
        return;
    fprintf(plot->to, "<path class=\"%s\" d=\"M%.1f %.1f", css, from, lb_plot_y(plot, base));
    for (int i = 0; i < count; i++)
        fprintf(plot->to, "V%.1fH%.1f", lb_plot_y(plot, y[i]), lb_plot_x(plot, x[i]));
    fprintf(plot->to, "V%.1fZ\"/>\n", lb_plot_y(plot, base));
}
