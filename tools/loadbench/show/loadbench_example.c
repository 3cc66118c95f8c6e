/* loadbench_example.c: see loadbench_example.h. The example result has every optional part and is printed like any
 * other, so no separate list of names is needed. */
#include "loadbench_example.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_json_parts.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include <string.h>

/* Optional parts of a repeat. */
struct parts {
    struct lb_config config;
    struct lb_result result;
    struct lb_run run;
    struct lb_limit limit;
    struct lb_transfer transfer;
    struct lb_marks marks, *list[1];
};

static void fill_run(struct lb_run *run, bool device)
{
    run->elapsed_ns = run->au_span_ns = 1000000000;
    run->batches = run->samples = run->epochs = run->au_steps = 100;
    run->stats.workers = 1;
    run->stats.slots = 1;
    run->stats.tiles = 1;
    run->stats.bytes_read = run->stats.bytes_written = run->stats.batch_bytes = 100;
    run->before.known = run->after.known = true;
    run->others = (struct lb_others){.known = true, .processors = 1, .span_ns = 1};
    run->steady.kind = LB_STEADY_DRIFTS;
    if (!device)
        return;
    run->stats.device_slots = run->stats.device_batches = run->stats.device_bytes = 1;
    run->stats.device_copy_ns = 1;
}

static void fill_limits(struct parts *parts)
{
    const struct lb_limit_rate rate = {1, "plain"};

    parts->limit = (struct lb_limit){.memcpy = rate, .gather = rate, .write = rate, .threads = 1};
    parts->result.limit_count = 1;
    parts->result.once.measured = true;
    if (parts->run.stats.packed_bytes > 0)
        parts->result.once.inflate.samples_per_s = 1e-9; /* the lowest limit, which makes it the binding one */
}

/* Only chunks of HDF5 files can be compressed. */
static bool may_be_packed(const struct lb_facts *facts)
{
    for (int i = 0; i < facts->field_count; i++)
        if (strcmp(lb_text_at(lb_effective_field(&facts->effective, facts->fields[i].name), "format"), "hdf5") == 0)
            return true;
    return false;
}

static void fill(struct parts *parts, const struct lb_facts *facts, bool all)
{
    struct lb_result *result = &parts->result;

    if (all) {
        parts->config.bench.limit = true;
        if (parts->config.bench.consumer != LB_CONSUMER_DEVICE)
            parts->config.bench.consumer = LB_CONSUMER_STEP;
    }
    fill_run(&parts->run, all || facts->effective.device[0]);
    if (all || may_be_packed(facts))
        parts->run.stats.unpacked_bytes = parts->run.stats.packed_bytes = 1;
    result->config = &parts->config;
    result->facts = *facts; /* owned by the caller */
    result->machine.cpu_quota = 1;
    result->machine.memory_limit = 1;
    result->run_count = 1;
    result->runs = &parts->run;
    result->limits = &parts->limit;
    result->transfers = &parts->transfer;
    parts->list[0] = &parts->marks;
    result->marks = parts->list;
    if (parts->config.bench.limit)
        fill_limits(parts);
    if (all || facts->effective.device[0]) {
        result->gpu = (struct lb_gpu){.model = "a device", .link_width = 1};
        result->transfer_count = parts->config.bench.limit;
    }
    stki_histogram_init(&result->waits);
    stki_histogram_init(&result->gaps);
}

json_t *lb_example_tree(const struct lb_config *config, const struct lb_facts *facts, bool all, stk_error *err)
{
    struct parts *parts = stki_zalloc(sizeof *parts);
    json_t *tree;

    if (!parts) {
        stki_fail_memory(err, sizeof *parts, "an example of a result");
        return NULL;
    }
    parts->config = *config;
    fill(parts, facts, all);
    tree = lb_result_tree(&parts->result, err);
    /* the facts come from a loader without workers, but the run will have workers */
    json_object_set_new(json_object_get(json_object_get(json_object_get(tree, "config"), "effective"), "loader"),
                        "num_workers", json_integer(1));
    stki_free(parts);
    return tree;
}
