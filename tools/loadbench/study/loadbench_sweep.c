/* loadbench_sweep.c: every point is a run like any other, of a config with some more assignments, and is kept as a
 * short form of its result: {"set": {KEY: VALUE, …}, "result": {…}, "wait": {…}, "verdict": …} or {"set", "failure"}.
 * Table, JSON and plots are made from that. Points are run in the order of the table; whoever wants to see drift sweeps
 * bench.repeats too. */
#include "loadbench_sweep.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include "loadbench_stop.h"
#include <string.h>

stk_status lb_sweep_init(const char *const *texts, int count, struct lb_sweep *out, stk_error *err)
{
    memset(out, 0, sizeof *out);
    out->points = 1;
    out->facts = json_object();
    if (count > LB_SWEEP_KEYS)
        return stki_fail(err, STK_E_CONFIG, "--sweep: found %d keys, expected at most %d", count, LB_SWEEP_KEYS);
    for (int i = 0; i < count; i++) {
        stk_status status = lb_range_read("--sweep", texts[i], &out->ranges[i], err);
        out->count++;
        for (int k = 0; k < i && status == STK_OK; k++)
            if (strcmp(out->ranges[i].key, out->ranges[k].key) == 0)
                status = stki_fail(err, STK_E_CONFIG, "--sweep: %s is given twice; write its values as one list",
                                   out->ranges[i].key);
        if (status != STK_OK)
            return status;
        out->points *= out->ranges[i].count;
        if (out->points > LB_SWEEP_POINTS)
            return stki_fail(err, STK_E_CONFIG, "--sweep: more than %d combinations", LB_SWEEP_POINTS);
    }
    return STK_OK;
}

void lb_sweep_fini(struct lb_sweep *sweep)
{
    for (int i = 0; i < sweep->count; i++)
        lb_range_fini(&sweep->ranges[i]);
    json_decref(sweep->tree);
    json_decref(sweep->facts);
    memset(sweep, 0, sizeof *sweep);
}

/* The value of a key at a point; the last key changes fastest. */
static const char *value_at(const struct lb_sweep *sweep, int64_t point, int key)
{
    for (int i = sweep->count - 1; i > key; i--)
        point /= sweep->ranges[i].count;
    return sweep->ranges[key].values[point % sweep->ranges[key].count];
}

static json_t *set_json(const struct lb_sweep *sweep, int64_t point)
{
    json_t *set = json_object();

    for (int i = 0; i < sweep->count; i++)
        json_object_set_new(set, sweep->ranges[i].key, json_string(value_at(sweep, point, i)));
    return set;
}

/* What of a result a point keeps. */
static void keep(const json_t *tree, json_t *point)
{
    static const char *const parts[] = {"result",       "wait",     "stages",     "verdict",
                                        "repeat_count", "ended_by", "utilisation"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (json_object_get(tree, parts[i]))
            json_object_set(point, parts[i], json_object_get(tree, parts[i]));
}

/* What holds for all points: of the first that ran. Its config is that of the others, but for the keys of the sweep. */
static void keep_facts(const json_t *tree, json_t *facts)
{
    static const char *const parts[] = {"started", "machine", "storage", "versions", "data", "config"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (json_object_get(tree, parts[i]))
            json_object_set(facts, parts[i], json_object_get(tree, parts[i]));
}

/* STK_END: a signal came before anything was measured. */
static stk_status measure(const char *path, const char *const *sets, int count, json_t *point, json_t *facts,
                          stk_error *err)
{
    struct lb_point *run;
    json_t *tree = NULL;
    stk_status status = lb_point_measure(path, sets, count, &run, err);

    if (status == STK_OK && !(tree = lb_result_tree(&run->result, err)))
        status = STK_E_MEMORY;
    if (tree) {
        keep(tree, point);
        if (json_object_size(facts) == 0)
            keep_facts(tree, facts);
    }
    json_decref(tree);
    lb_point_destroy(run);
    return status;
}

static void tell(const struct lb_sweep *sweep, int64_t number, const json_t *point, FILE *to)
{
    const json_t *set = json_object_get(point, "set"), *failure = json_object_get(point, "failure");
    const char *key;
    json_t *value;
    double rate = 0;

    fprintf(to, "loadbench: %lld of %lld:", (long long)number, (long long)sweep->points);
    json_object_foreach((json_t *)(uintptr_t)set, key, value) fprintf(to, " %s=%s", key, json_string_value(value));
    if (failure)
        fprintf(to, ": %s\n", json_string_value(failure));
    else if (lb_scalar_at(point, "result.samples_per_s", &rate))
        fprintf(to, ": %.6g samples/s\n", rate);
    fflush(to);
}

static stk_status run_point(struct lb_sweep *sweep, int64_t number, const char *path, const char **sets, int count,
                            json_t *points, FILE *progress, stk_error *err)
{
    json_t *point = json_pack("{s:o}", "set", set_json(sweep, number));
    stk_status status = STK_OK;
    char *texts[LB_SWEEP_KEYS] = {0};

    for (int i = 0; i < sweep->count; i++) {
        texts[i] = stki_format("%s=%s", sweep->ranges[i].key, value_at(sweep, number, i));
        if (!texts[i])
            status = stki_fail_memory(err, 64, "an assignment");
        sets[count + i] = texts[i];
    }
    if (status == STK_OK)
        status = measure(path, sets, count + sweep->count, point, sweep->facts, err);
    if (status < 0)
        json_object_set_new(point, "failure", json_string(err->message));
    if (status != STK_END) {
        json_array_append(points, point);
        if (progress)
            tell(sweep, number + 1, point, progress);
    }
    json_decref(point);
    for (int i = 0; i < sweep->count; i++)
        stki_free(texts[i]);
    return status;
}

stk_status lb_sweep_run(struct lb_sweep *sweep, const char *path, const char *const *sets, int set_count,
                        FILE *progress, stk_error *err)
{
    const char **all = stki_zalloc_array(set_count + 1 + LB_SWEEP_KEYS, sizeof *all);
    json_t *keys = json_array(), *points = json_array();
    stk_status worst = STK_OK;
    stk_error own, first = {0};
    bool any = false, all_config = true;

    if (!all) {
        json_decref(keys);
        json_decref(points);
        return stki_fail_memory(err, set_count, "the assignments");
    }
    all[0] =
        "bench.limit=false"; /* of the machine, not of the point; --set bench.limit=true measures it all the same */
    memcpy(all + 1, sets, (size_t)set_count * sizeof *all);
    for (int i = 0; i < sweep->count; i++)
        json_array_append_new(keys, json_string(sweep->ranges[i].key));
    for (int64_t i = 0; i < sweep->points && !lb_stop_asked; i++) {
        const stk_status status = run_point(sweep, i, path, all, set_count + 1, points, progress, &own);
        any = any || status == STK_OK;
        if (status < 0 && worst == STK_OK) {
            worst = status;
            first = own;
        }
        /* A value out of its range is no different from a key that isn't there, if it is so for all of them. */
        all_config = all_config && (status == STK_E_CONFIG || status == STK_E_RANGE);
    }
    stki_free(all);
    sweep->tree = json_pack("{s:o, s:o, s:O, s:b}", "keys", keys, "points", points, "first_point", sweep->facts,
                            "stopped", lb_stop_asked != 0);
    if (any || worst == STK_OK)
        return any ? STK_OK : STK_END;
    *err = first;
    return err->status = all_config ? STK_E_CONFIG : worst;
}
