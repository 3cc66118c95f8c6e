/* stki-threads */
/* The names of the numbers in a result are known before a run: every number of a run must be in the example result for
 * its config, and numbers that the run cannot have must not be in it. */
#include "allocate.h"
#include "loadbench_example.h"
#include "loadbench_json_parts.h"
#include "loadbench_prepare.h"
#include "loadbench_require.h"
#include "loadbench_scalars.h"
#include "stk_test.h"

static const char *folder;

static const char *config_of(const char *loader, const char *bench)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/config.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "dataset: {fields: {x: {path: %s/data/digits_images.npy}}}\nloader: {batch_size: 64, %s}\n"
            "bench: {ramp: 0, batches: 30, repeats: 2, limit_time: 1ms, %s}\n",
            STKT_TESTS_DIR, loader, bench);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Compares numbers and strings that stand for one; lists have no names. */
static void compare(const json_t *tree, const json_t *example, const char *path)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)tree, key, value)
    {
        char own[300];
        const json_t *there = json_object_get(example, key);
        snprintf(own, sizeof own, "%s.%s", path, key);
        if (json_is_number(value) && !json_is_number(there))
            fail_msg("%s is in the result but not in its example", own);
        if (json_is_object(value))
            compare(value, there, own);
    }
}

static void check(const char *loader, const char *bench)
{
    struct lb_result *result = stki_zalloc(sizeof *result);
    struct lb_facts *facts = stki_zalloc(sizeof *facts);
    struct lb_config config;
    stk_error err;

    assert_ok(lb_config_open(config_of(loader, bench), NULL, 0, false, &config, &err));
    assert_ok(lb_prepare_facts(&config, facts, &err));
    json_t *example = lb_example_tree(&config, facts, false, &err), *all = lb_example_tree(&config, facts, true, &err);
    assert_non_null(example);
    assert_non_null(all);
    assert_ok(lb_result_measure(&config, result, &err));
    json_t *tree = lb_result_tree(result, &err);
    assert_non_null(tree);
    compare(tree, example, "");
    compare(example, all, "");
    json_decref(tree);
    json_decref(example);
    json_decref(all);
    lb_result_fini(result);
    lb_facts_fini(facts);
    lb_config_close(&config);
    stki_free(result);
    stki_free(facts);
}

static void every_number_is_in_the_example(void **state)
{
    (void)state;
    check("num_workers: 2", "limit: true");
    check("num_workers: 0", "limit: false, consumer: touch");
    check("num_workers: 1", "limit: true, step: 1ms");
    check("num_workers: 1, device: host", "limit: true, consumer: device, step_time: 1ms");
}

static stk_status foresee(const char *bench, const char *text, stk_error *err)
{
    struct lb_require require;
    struct lb_config config;
    stk_status status;

    assert_int_equal(lb_require_read(text, &require, err), STK_OK);
    assert_int_equal(lb_config_open(config_of("num_workers: 2", bench), NULL, 0, false, &config, err), STK_OK);
    status = lb_require_foresee(&require, 1, &config, err);
    lb_config_close(&config);
    return status;
}

static void impossible_numbers_are_rejected(void **state)
{
    static const struct {
        const char *bench, *require, *says; /* NULL: accepted */
    } cases[] = {
        {"limit: true", "samples_per_s>=1", NULL},
        {"limit: true", "wait.p99<=1h", NULL},
        {"limit: true", "gather_bytes_per_s>=1GB", NULL},
        {"limit: true", "num_workers==2", NULL},
        {"limit: true", "others.used_processor_count<=0.5", NULL},
        {"limit: true", "chunk_unpacked_times_count<=1", "requires data in compressed chunks"},
        {"step: 1ms", "au>=90%", NULL},
        {"preset: unet3d-h100", "utilization.au>=0.9", NULL},
        {"limit: true", "au>=0.9", "requires a training step: set bench.step"},
        {"limit: false", "gather_bytes_per_s>=1GB", "not measured with bench.limit: false"},
        {"limit: true", "device.hidden_percent>=90", "set loader.device"},
        {"limit: true", "samples_per_sec>=1", "did you mean samples_per_s?"},
        {"limit: true", "zzzzzzzzzzzz>=1", "which has samples_per_s, batches_per_s, "},
        {"limit: true", "samples_per_s>=1ms", "is a plain number, but the given number is a time"},
        {"limit: true", "p50_us<=1", "several numbers"},
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const stk_status status = foresee(cases[i].bench, cases[i].require, &err);
        if (!cases[i].says && status != STK_OK)
            fail_msg("%s: %s", cases[i].require, err.message);
        if (!cases[i].says)
            continue;
        if (status != STK_E_CONFIG)
            fail_msg("%s: rejected with %s, expected STK_E_CONFIG", cases[i].require, stk_status_name(status));
        assert_says(cases[i].says);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_is_in_the_example),
                                       cmocka_unit_test(impossible_numbers_are_rejected)};

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
