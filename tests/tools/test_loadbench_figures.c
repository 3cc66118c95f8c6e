/* stki-threads */
/* Iterates over the table of figures. Each row must be in the JSON, each number common to all repeats must be accepted
 * by --require, and each row with a label must be in the text and in the report and must be compared by --compare. */
#include "allocate.h"
#include "loadbench_compare.h"
#include "loadbench_example.h"
#include "loadbench_figures.h"
#include "loadbench_prepare.h"
#include "loadbench_report.h"
#include "loadbench_require.h"
#include "loadbench_result.h"
#include "stk_test.h"

static const char *folder;

/* The path of each group of rows in the JSON. */
static const char *const paths[] = {
    [LB_OF_REPEAT] = "runs",
    [LB_OF_RUN] = "runs",
    [LB_OF_PROCESS] = "runs",
    [LB_OF_RUN_STEPS] = "runs",
    [LB_OF_RUN_CACHE] = "runs",
    [LB_OF_RUN_DIGEST] = "runs",
    [LB_OF_RUN_LIMIT] = "runs",
    [LB_OF_MOVED] = "runs",
    [LB_OF_USAGE] = "runs.usage",
    [LB_OF_OTHERS] = "runs.others",
    [LB_OF_RESIDENCY] = "runs.cache_before",
    [LB_OF_STEADY] = "runs.steady",
    [LB_OF_TREND] = "runs.steady",
    [LB_OF_RUN_STAGES] = "runs.stages",
    [LB_OF_RUN_DEVICE] = "runs.device",
    [LB_OF_WAITS] = "wait",
    [LB_OF_QUIET] = "others",
    [LB_OF_SHARES] = "stages",
    [LB_OF_QUEUE] = "queue",
    [LB_OF_LIMIT] = "limit",
    [LB_OF_BOUND] = "limits.binding",
    [LB_OF_ONCE] = "limits",
    [LB_OF_DEVICE] = "device",
    [LB_OF_DEVICE_STEP] = "device",
    [LB_OF_PLAIN_COPY] = "device",
    [LB_OF_UTILIZATION] = "utilization",
    [LB_OF_VERDICT] = "verdict",
    [LB_OF_MACHINE] = "machine",
    [LB_OF_STORAGE] = "storage",
    [LB_OF_GPU] = "gpu",
    [LB_OF_TIMER] = "timer",
    [LB_OF_DATA] = "data",
    [LB_OF_CACHE] = "cache",
};

static const char *config_of(const char *loader, const char *bench)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/config.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "dataset: {fields: {x: {path: %s/data/digits_images.npy}}}\nloader: {batch_size: 64, %s}\n"
            "bench: {ramp: 0, batches: 30, repeats: 2, limit: false, %s}\n",
            STKT_TESTS_DIR, loader, bench);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* A result with everything that this consumer can report. */
static json_t *example(const char *loader, const char *bench)
{
    struct lb_facts *facts = stki_zalloc(sizeof *facts);
    struct lb_config config;
    stk_error err;

    assert_ok(lb_config_open(config_of(loader, bench), NULL, 0, false, &config, &err));
    assert_ok(lb_prepare_facts(&config, facts, &err));
    json_t *tree = lb_example_tree(&config, facts, true, &err);
    assert_non_null(tree);
    lb_facts_fini(facts);
    stki_free(facts);
    lb_config_close(&config);
    return tree;
}

/* The object with the rows of a group; NULL: this result has none. */
static json_t *place_of(json_t *tree, int group)
{
    const char *path = paths[group];

    if (strncmp(path, "runs", 4) != 0)
        return (json_t *)(uintptr_t)lb_tree_at(tree, path);
    tree = json_array_get(json_object_get(tree, "runs"), 0);
    return path[4] ? json_object_get(tree, path + 5) : tree;
}

static void each_is_in_the_json(void **state)
{
    json_t *step = example("num_workers: 2", "step: 1ms"), *device = example("device: host", "consumer: device");

    (void)state;
    for (int i = 0; i < lb_figure_count; i++) {
        const struct lb_figure *figure = &lb_figures[i];
        if (figure->when == LB_IF_TEXT || figure->when == LB_IF_UNKNOWN) /* reasons, which an example does not have */
            continue;
        if (!json_object_get(place_of(step, figure->group), figure->key) &&
            !json_object_get(place_of(device, figure->group), figure->key))
            fail_msg("no result has %s.%s in its JSON", paths[figure->group], figure->key);
    }
    json_decref(step);
    json_decref(device);
}

static void each_can_be_required(void **state)
{
    json_t *trees[] = {example("num_workers: 2", "step: 1ms"), example("device: host", "consumer: device")};
    stk_error err;

    (void)state;
    for (int i = 0; i < lb_figure_count; i++) {
        const struct lb_figure *figure = &lb_figures[i];
        const bool repeated = figure->group == LB_OF_REPEAT || figure->group == LB_OF_MOVED;
        const char *path = repeated ? "result" : paths[figure->group];
        struct lb_require require;
        struct lb_scalar found;
        char text[200];
        bool holds;
        if (strncmp(path, "runs", 4) == 0 || figure->type >= LB_TEXT || figure->type == LB_BOOL || figure->words ||
            figure->unit == LB_AS_YES_NO)
            continue;
        snprintf(text, sizeof text, "%s.%s>=0", path, figure->key);
        assert_ok(lb_require_read(text, &require, &err));
        if (lb_require_check(&require, trees[0], &found, &holds, &err) != STK_OK)
            assert_ok(lb_require_check(&require, trees[1], &found, &holds, &err));
    }
    json_decref(trees[0]);
    json_decref(trees[1]);
}

static char *all_of(FILE *file)
{
    static char text[1 << 18];

    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void each_labeled_one_is_compared(void **state)
{
    json_t *tree = example("num_workers: 2", "step: 1ms"), *figures;
    FILE *to = tmpfile();
    stk_error err;

    (void)state;
    for (int i = 0; i < lb_figure_count; i++)
        if (lb_figures[i].label)
            json_object_set_new(place_of(tree, LB_OF_REPEAT), lb_figures[i].key, json_real(2 + i));
    json_t *before = json_deep_copy(tree);
    assert_ok(lb_compare(before, "before.json", tree, to, &err));
    const char *text = all_of(to);
    figures = json_object_get(json_object_get(tree, "compared"), "figures");
    for (int i = 0; i < lb_figure_count; i++) {
        if (!lb_figures[i].label)
            continue;
        assert_true(json_number_value(json_object_get(json_object_get(figures, lb_figures[i].key), "now")) == 2 + i);
        if (!strstr(text, lb_figures[i].label))
            fail_msg("%s is not in the comparison", lb_figures[i].label);
    }
    json_decref(before);
    json_decref(tree);
}

/* Searches for labels without their units, which depend on the value. */
static void assert_has_labels(const char *text)
{
    for (int i = 0; i < lb_figure_count; i++) {
        char label[64];
        if (!lb_figures[i].label)
            continue;
        snprintf(label, sizeof label, "%.*s", (int)strcspn(lb_figures[i].label, ",/"), lb_figures[i].label);
        if (!strstr(text, label))
            fail_msg("%s is not shown", label);
    }
}

static void each_labeled_one_is_shown(void **state)
{
    struct lb_result *result = stki_zalloc(sizeof *result);
    struct lb_config config;
    FILE *to = tmpfile();
    char path[600];
    stk_error err;

    (void)state;
    assert_ok(lb_config_open(config_of("num_workers: 2", "consumer: touch"), NULL, 0, false, &config, &err));
    assert_ok(lb_result_measure(&config, result, &err));
    lb_print_text(result, to);
    assert_has_labels(all_of(to));
    /* the report omits what is unknown */
    json_t *tree = lb_result_tree(result, &err), *figures = json_object_get(tree, "result"), *figure;
    const char *key;
    json_object_foreach(figures, key, figure) json_object_set_new(figure, "low", json_real(1));
    snprintf(path, sizeof path, "%s/page.html", folder);
    assert_ok(lb_report_write(path, tree, &err));
    assert_has_labels(all_of(fopen(path, "r")));
    json_decref(tree);
    lb_result_fini(result);
    lb_config_close(&config);
    stki_free(result);
}

static int make_folder(void **state)
{
    (void)state;
    folder = stkt_make_dir();
    return folder ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    stkt_remove_dir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_in_the_json), cmocka_unit_test(each_can_be_required),
                                       cmocka_unit_test(each_labeled_one_is_compared),
                                       cmocka_unit_test(each_labeled_one_is_shown)};

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
