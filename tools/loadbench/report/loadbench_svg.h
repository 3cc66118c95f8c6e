/* loadbench_svg.h: plots as inline SVG. Every plot is drawn twice, for wide pages and for narrow ones, so that its text
 * keeps its size; the style sheet shows one of them. */
#ifndef LOADBENCH_SVG_H
#define LOADBENCH_SVG_H

#include <stdbool.h>
#include <stdio.h>

struct lb_plot {
    FILE *to;
    bool narrow;
    double width, height;
    double left, right, top, bottom; /* the area of the data within it, in pixels */
    double x0, x1, y0, y1;           /* what lies at its edges */
    bool log_x;
};

/* Which of the two: 0 wide, 1 narrow. `label`: what it shows, for those who can't see it. */
enum { LB_PLOT_SIZES = 2 };
void lb_plot_begin(struct lb_plot *plot, FILE *to, int which, double height, double left, const char *label);
void lb_plot_end(struct lb_plot *plot);

/* Rounds y1 up to a whole tick, and draws lines and labels: from 0, four to six of them. `unit` stands on the topmost.
 */
void lb_plot_y_axis(struct lb_plot *plot, double highest, const char *unit);
/* The same below, within x0 to x1. `format` is of a tick: "%s s". */
void lb_plot_x_axis(struct lb_plot *plot, const char *format);
/* Powers of ten from x0 to x1, in microseconds, as "1 us", "10 ms". */
void lb_plot_x_times(struct lb_plot *plot);

double lb_plot_x(const struct lb_plot *plot, double x);
double lb_plot_y(const struct lb_plot *plot, double y);

/* Through `count` points. */
void lb_plot_line(const struct lb_plot *plot, const double *x, const double *y, int count, const char *css);
/* Steps: y[i] from x[i - 1] (the first: from x0) to x[i], filled down to `base` (in data). */
void lb_plot_steps(const struct lb_plot *plot, const double *x, const double *y, int count, double base,
                   const char *css);
/* anchor: "start", "middle", "end". */
void lb_plot_text(const struct lb_plot *plot, double px, double py, const char *anchor, const char *css,
                  const char *text);
void lb_plot_rect(const struct lb_plot *plot, double px, double py, double width, double height, const char *css);

/* A number for the label of an axis: "0", "2.5k", "40M", "0.05". */
const char *lb_tick_text(char *buffer, int size, double value);
/* 1, 2 or 5 times a power of ten: the distance of about `count` ticks over `span`. */
double lb_tick_step(double span, int count);

#endif
