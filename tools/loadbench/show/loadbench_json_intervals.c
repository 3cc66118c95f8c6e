/* loadbench_json_intervals.c: what happened between the marks of a repeat, a list per figure. */
#include "loadbench_json_parts.h"

static void append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) != 0)
        lb_json_incomplete = true;
}

/* Of `count` intervals between structs that lie `step` bytes apart, the first at `first`. */
static void set_lists(json_t *json, int group, const void *first, size_t step, int count)
{
    for (int k = 0; k < lb_interval_figure_count; k++) {
        const struct lb_figure *figure = &lb_interval_figures[k];
        const char *from = first;
        json_t *list;
        if (figure->group != group || figure->log_only)
            continue;
        list = json_array();
        for (int i = 0; i < count; i++, from += step)
            append(list, json_integer(lb_interval_value(figure, from, from + step)));
        lb_json_set(json, figure->key, list);
    }
}

json_t *lb_json_intervals(const struct lb_marks *marks)
{
    const int count = marks->count > 0 ? marks->count - 1 : 0;
    json_t *json = json_object(), *ends = json_array(), *workers = json_array();

    for (int i = 0; i < count; i++)
        append(ends, json_integer(marks->marks[i + 1].at_ns - marks->marks[0].at_ns));
    lb_json_set(json, "ramp_interval_count", json_integer(marks->first < 0 ? marks->count - 1 : marks->first));
    lb_json_set(json, "end_ns", ends);
    set_lists(json, LB_INTERVAL_COUNTS, marks->marks, sizeof *marks->marks, count);
    set_lists(json, LB_INTERVAL_FLOW, marks->marks, sizeof *marks->marks, count);
    for (int w = 0; w < marks->worker_count; w++) {
        json_t *worker = json_object();
        set_lists(worker, LB_INTERVAL_WORKER, &marks->workers[w], (size_t)marks->worker_count * sizeof *marks->workers,
                  count);
        append(workers, worker);
    }
    lb_json_set(json, "workers", workers);
    return json;
}
