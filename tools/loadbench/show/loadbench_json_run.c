/* loadbench_json_run.c: the parts of the JSON result that are of one repeat. */
#include "loadbench_json_parts.h"
#include <stdlib.h>
#include <string.h>

static void append(json_t *list, int64_t value)
{
    if (json_array_append_new(list, json_integer(value)) != 0)
        lb_json_incomplete = true;
}

static json_t *worker_json(const struct lb_marks *marks, int worker)
{
    static const char *const keys[] = {"order_work_ns",   "read_work_ns",     "decode_work_ns",
                                       "inflate_work_ns", "call_work_ns",     "page_wait_ns",
                                       "convert_work_ns", "wait_for_slot_ns", "wait_for_work_ns"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    json_t *json = json_object(), *lists[KEYS];

    for (int k = 0; k < KEYS; k++)
        lists[k] = json_array();
    for (int i = 0; i + 1 < marks->count; i++) {
        const stk_worker_stats *a = &marks->workers[(int64_t)i * marks->worker_count + worker];
        const stk_worker_stats *b = a + marks->worker_count;
        const int64_t values[KEYS] = {
            b->order_ns - a->order_ns,     b->read_ns - a->read_ns,           b->decode_ns - a->decode_ns,
            b->inflate_ns - a->inflate_ns, b->call_ns - a->call_ns,           b->page_ns - a->page_ns,
            b->convert_ns - a->convert_ns, b->wait_slot_ns - a->wait_slot_ns, b->wait_work_ns - a->wait_work_ns};
        for (int k = 0; k < KEYS; k++)
            append(lists[k], values[k]);
    }
    for (int k = 0; k < KEYS; k++)
        lb_json_set(json, keys[k], lists[k]);
    return json;
}

json_t *lb_json_intervals(const struct lb_marks *marks)
{
    static const char *const keys[] = {"end_ns",           "length_ns",        "batch_count", "sample_count",
                                       "batch_bytes",      "disk_read_bytes",  "next_ns",     "consume_ns",
                                       "consumer_wait_ns", "slots_ready_count"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    json_t *json = json_object(), *lists[KEYS], *workers = json_array();

    for (int k = 0; k < KEYS; k++)
        lists[k] = json_array();
    for (int i = 0; i + 1 < marks->count; i++) {
        const struct lb_mark *a = &marks->marks[i], *b = a + 1;
        const int64_t values[KEYS] = {b->at_ns - marks->marks[0].at_ns,
                                      b->at_ns - a->at_ns,
                                      b->batches - a->batches,
                                      b->samples - a->samples,
                                      b->stats.batch_bytes - a->stats.batch_bytes,
                                      b->usage.disk_bytes < 0 ? -1 : b->usage.disk_bytes - a->usage.disk_bytes,
                                      b->next_ns - a->next_ns,
                                      b->consume_ns - a->consume_ns,
                                      b->stats.wait_next_ns - a->stats.wait_next_ns,
                                      b->stats.slots_ready};
        for (int k = 0; k < KEYS; k++)
            append(lists[k], values[k]);
    }
    lb_json_set(json, "ramp_interval_count", json_integer(marks->first < 0 ? marks->count - 1 : marks->first));
    for (int k = 0; k < KEYS; k++)
        lb_json_set(json, keys[k], lists[k]);
    for (int w = 0; w < marks->worker_count; w++)
        if (json_array_append_new(workers, worker_json(marks, w)) != 0)
            lb_json_incomplete = true;
    lb_json_set(json, "workers", workers);
    return json;
}
