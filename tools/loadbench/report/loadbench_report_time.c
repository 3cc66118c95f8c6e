/* loadbench_report_time.c: throughput, workers and queue over the time of a repeat, and how long the consumer waited.
 * The repeat that stands for all is the one with the median rate; the others are drawn faintly behind it. */
#include "html.h"
#include "loadbench_report_parts.h"
#include "loadbench_scalars.h"
#include "loadbench_statistics.h"
#include "loadbench_svg.h"
#include "loadbench_table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 256, SHOWN_WORKERS = 16, SHOWN_RUNS = 12 };

static double item(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

/* The run whose rate is the median of all. */
static const json_t *median_run(const json_t *tree)
{
    const json_t *runs = json_object_get(tree, "runs"), *run, *best = NULL;
    double middle = 0, rate;
    size_t i;

    lb_scalar_at(tree, "result.samples_per_s", &middle);
    json_array_foreach(runs, i, run)
    {
        double best_rate = 0;
        if (best)
            lb_scalar_at(best, "samples_per_s", &best_rate);
        if (lb_scalar_at(run, "samples_per_s", &rate) && (!best || fabs(rate - middle) < fabs(best_rate - middle)))
            best = run;
    }
    return best;
}

/* A last interval that was cut short says little: it is left out. */
static int interval_count(const json_t *run)
{
    const json_t *lengths = lb_tree_at(run, "intervals.length_ns");
    const size_t all = json_array_size(lengths), count = all < POINTS ? all : POINTS;

    return (int)(count > 2 && item(lengths, count - 1) < item(lengths, count - 2) / 3 ? count - 1 : count);
}

/* Ends of the intervals in seconds. Returns how many. */
static int times_of(const json_t *run, double *out)
{
    const json_t *ends = lb_tree_at(run, "intervals.end_ns");
    const int count = interval_count(run);

    for (int i = 0; i < count; i++)
        out[i] = item(ends, (size_t)i) / 1e9;
    return count;
}

static int rates_of(const json_t *run, double *times, double *rates)
{
    const json_t *samples = lb_tree_at(run, "intervals.sample_count"),
                 *lengths = lb_tree_at(run, "intervals.length_ns");
    const int count = times_of(run, times);

    for (int i = 0; i < count; i++)
        rates[i] = 1e9 * lb_ratio(item(samples, (size_t)i), item(lengths, (size_t)i));
    return count;
}

/* The end of the ramp; 0: there is none. */
static double ramp_s(const json_t *run)
{
    double ramp = 0;

    lb_scalar_at(run, "ramp_ns", &ramp);
    return ramp / 1e9;
}

static void shade_ramp(const struct lb_plot *plot, double ramp)
{
    if (ramp <= plot->x0 || ramp >= plot->x1)
        return;
    lb_plot_rect(plot, plot->left, plot->top, lb_plot_x(plot, ramp) - plot->left, plot->bottom - plot->top, "track");
    if (lb_plot_x(plot, ramp) - plot->left > 40)
        lb_plot_text(plot, plot->left + 8, plot->top + 16, "start", "tick", "ramp");
}

void lb_report_throughput(FILE *to, const json_t *tree)
{
    const json_t *main = median_run(tree), *runs = json_object_get(tree, "runs"), *run;
    double times[POINTS], rates[POINTS], highest = 0, last = 0, middle = 0;
    size_t i;

    if (!main || rates_of(main, times, rates) < 2)
        return;
    json_array_foreach(runs, i, run) if (i < SHOWN_RUNS)
    {
        const int count = rates_of(run, times, rates);
        for (int k = 0; k < count; k++)
            highest = fmax(highest, rates[k]);
        last = count > 0 ? fmax(last, times[count - 1]) : last;
    }
    lb_scalar_at(tree, "result.samples_per_s", &middle);
    lb_report_section(to, "Throughput",
                      json_array_size(runs) > 1
                          ? "Samples a second over the time of a repeat. The repeat with the median "
                            "rate is drawn strongly, the others faintly."
                          : "Samples a second over the time of the repeat.");
    for (int which = 0; which < LB_PLOT_SIZES; which++) {
        struct lb_plot plot;
        lb_plot_begin(&plot, to, which, which ? 210 : 280, 52, "samples a second over time");
        plot.x1 = last;
        plot.y1 = highest;
        shade_ramp(&plot, ramp_s(main));
        lb_plot_y_axis(&plot, highest, "samples/s");
        lb_plot_x_axis(&plot, " s");
        json_array_foreach(runs, i, run) if (i < SHOWN_RUNS && run != main)
            lb_plot_line(&plot, times, rates, rates_of(run, times, rates), "other-line");
        lb_plot_line(&plot, times, rates, rates_of(main, times, rates), "main-line");
        lb_plot_end(&plot);
    }
    fputs("</section>\n", to);
}

/* ---- who was busy when --------------------------------------------------------------------------------------------
 */

static int busy_of_worker(const json_t *run, const json_t *worker, double *busy)
{
    static const char *const keys[] = {"order_work_ns", "read_work_ns", "convert_work_ns"};
    const json_t *lengths = lb_tree_at(run, "intervals.length_ns");
    const int count = interval_count(run);

    for (int i = 0; i < count; i++) {
        busy[i] = 0;
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
            busy[i] += item(json_object_get(worker, keys[k]), (size_t)i);
        busy[i] = fmin(1, lb_ratio(busy[i], item(lengths, (size_t)i)));
    }
    return count;
}

static int busy_of_consumer(const json_t *run, double *busy)
{
    const json_t *lengths = lb_tree_at(run, "intervals.length_ns"), *used = lb_tree_at(run, "intervals.consume_ns");
    const int count = interval_count(run);

    for (int i = 0; i < count; i++)
        busy[i] = fmin(1, lb_ratio(item(used, (size_t)i), item(lengths, (size_t)i)));
    return count;
}

static void lane(const struct lb_plot *whole, int row, double row_height, const char *name, const double *times,
                 const double *busy, int count)
{
    struct lb_plot plot = *whole;
    double sum = 0;
    char text[32];

    plot.top = whole->top + row * row_height;
    plot.bottom = plot.top + row_height - 9;
    plot.y0 = 0;
    plot.y1 = 1;
    lb_plot_rect(&plot, plot.left, plot.top, plot.right - plot.left, plot.bottom - plot.top, "track");
    lb_plot_steps(&plot, times, busy, count, 0, "area");
    for (int i = 0; i < count; i++)
        sum += busy[i] * (times[i] - (i > 0 ? times[i - 1] : 0));
    snprintf(text, sizeof text, "%.0f %%", 100 * lb_ratio(sum, count > 0 ? times[count - 1] : 0));
    lb_plot_text(&plot, 0, (plot.top + plot.bottom) / 2 + 4, "start", "name", name);
    lb_plot_text(&plot, plot.left - 10, (plot.top + plot.bottom) / 2 + 4, "end", "tick", text);
}

void lb_report_workers(FILE *to, const json_t *tree)
{
    const json_t *run = median_run(tree), *workers = lb_tree_at(run, "intervals.workers"), *worker;
    const int all = (int)json_array_size(workers), shown = all < SHOWN_WORKERS ? all : SHOWN_WORKERS;
    double times[POINTS], busy[POINTS], own_threads = 0;
    const int count = run ? times_of(run, times) : 0;
    char lead[256];
    size_t i;

    if (count < 2 || all < 1)
        return;
    lb_scalar_at(run, "worker_count", &own_threads);
    snprintf(
        lead, sizeof lead,
        "Filled: at work. Empty: waiting, for a free slot, for a tile, or for a batch. The number is the share of the "
        "repeat's time.%s",
        all > shown ? " The first 16 workers are shown." : "");
    lb_report_section(to, "Who was busy when", lead);
    for (int which = 0; which < LB_PLOT_SIZES; which++) {
        const double row_height = which ? 30 : 34;
        struct lb_plot plot;
        lb_plot_begin(&plot, to, which, 2 + (shown + 1) * row_height + 26 - 3, which ? 112 : 124,
                      "busy time of each thread");
        plot.top = 2;
        plot.x1 = times[count - 1];
        json_array_foreach(workers, i, worker) if ((int)i < shown)
        {
            char name[32];
            snprintf(name, sizeof name, own_threads > 0 ? "worker %d" : "its loading", (int)i);
            busy_of_worker(run, worker, busy);
            lane(&plot, (int)i, row_height, name, times, busy, count);
        }
        busy_of_consumer(run, busy);
        lane(&plot, shown, row_height, strcmp(lb_text_at(tree, "consumer"), "device") == 0 ? "host thread" : "consumer",
             times, busy, count);
        lb_plot_x_axis(&plot, " s");
        lb_plot_end(&plot);
    }
    fputs("</section>\n", to);
}

void lb_report_queue(FILE *to, const json_t *tree)
{
    const json_t *run = median_run(tree), *ready = lb_tree_at(run, "intervals.slots_ready_count");
    double times[POINTS], depth[POINTS], slots = 0;
    const int count = run ? times_of(run, times) : 0;

    if (count < 2 || !ready || !lb_scalar_at(run, "slot_count", &slots) || slots < 1)
        return;
    for (int i = 0; i < count; i++)
        depth[i] = item(ready, (size_t)i);
    lb_report_section(
        to, "Batches that were ready",
        "How many slots held a finished batch when looked at. Full: the consumer is the slower side. Empty: "
        "the loader is.");
    for (int which = 0; which < LB_PLOT_SIZES; which++) {
        struct lb_plot plot;
        lb_plot_begin(&plot, to, which, 150, 52, "slots that were ready over time");
        plot.x1 = times[count - 1];
        plot.y1 = slots;
        shade_ramp(&plot, ramp_s(run));
        plot.y1 = slots;
        lb_plot_y_axis(&plot, slots, "slots");
        lb_plot_x_axis(&plot, " s");
        lb_plot_steps(&plot, times, depth, count, 0, "area-soft");
        lb_plot_end(&plot);
    }
    fputs("</section>\n", to);
}

/* ---- latency ------------------------------------------------------------------------------------------------------
 */

static void mark_time(const struct lb_plot *plot, double us, double top, const char *name)
{
    const double x = lb_plot_x(plot, us);
    char text[64];

    fprintf(plot->to, "<line class=\"mark\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, top + 4, x,
            plot->bottom);
    snprintf(text, sizeof text, us < 1000 ? "%s %s us" : "%s %s ms", name, LB_NUMBER(us < 1000 ? us : us / 1000));
    lb_plot_text(plot, x > plot->right - 110 ? x - 5 : x + 5, top + 12, x > plot->right - 110 ? "end" : "start", "name",
                 text);
}

void lb_report_latency(FILE *to, const json_t *tree)
{
    static const struct {
        const char *path, *name;
    } marks[] = {{"wait.max_us", "max"}, {"wait.p99_us", "p99"}, {"wait.p50_us", "p50"}};
    const json_t *ends = lb_tree_at(tree, "wait.histogram.up_to_us"),
                 *counts = lb_tree_at(tree, "wait.histogram.call_count");
    const size_t bins = json_array_size(ends);
    double most = 0, all = 0;

    for (size_t i = 0; i < bins; i++) {
        most = fmax(most, item(counts, i));
        all += item(counts, i);
    }
    if (bins < 2 || all <= 0 || !(item(ends, 0) > 0) || !(item(ends, 1) > item(ends, 0)) ||
        !(item(ends, bins - 1) > item(ends, 0)))
        return;
    lb_report_section(to, "How long the consumer waited for a batch",
                      "Share of its calls by their length, on a logarithmic scale; all repeats together.");
    for (int which = 0; which < LB_PLOT_SIZES; which++) {
        struct lb_plot plot;
        lb_plot_begin(&plot, to, which, which ? 230 : 260, 52, "histogram of waiting times");
        plot.top = 72;
        plot.log_x = true;
        plot.x0 = item(ends, 0) / (item(ends, 1) / item(ends, 0));
        plot.x1 = item(ends, bins - 1);
        lb_plot_y_axis(&plot, 100 * most / all, "");
        lb_plot_text(&plot, 0, plot.top - 14, "start", "tick", "% of calls");
        lb_plot_x_times(&plot);
        for (size_t i = 0; i < bins; i++) {
            const double from = lb_plot_x(&plot, i > 0 ? item(ends, i - 1) : plot.x0),
                         until = lb_plot_x(&plot, item(ends, i));
            const double y = lb_plot_y(&plot, 100 * item(counts, i) / all);
            if (item(counts, i) > 0)
                lb_plot_rect(&plot, from + 0.5, fmin(y, plot.bottom - 1), until - from - 1, fmax(1, plot.bottom - y),
                             "area");
        }
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
            double us;
            if (lb_scalar_at(tree, marks[i].path, &us) && us > plot.x0)
                mark_time(&plot, us, 16.0 * (double)i, marks[i].name);
        }
        lb_plot_end(&plot);
    }
    fputs("</section>\n", to);
}
