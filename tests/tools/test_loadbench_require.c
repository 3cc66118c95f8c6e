/* Tests of --require: numbers of a result are found by their names or parts of them, and compared with required values
 * in any unit. */
#include "loadbench_require.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static json_t *result(void)
{
    json_t *tree =
        json_loads("{\"schema\": 3,"
                   " \"machine\": {\"memory_bytes\": 1000000},"
                   " \"result\": {\"samples_per_s\": {\"median\": 1200.0, \"low\": 1, \"high\": 2},"
                   "              \"wait_p99_us\": {\"median\": 41.0}, \"slot_memory_mb\": {\"median\": 2.5},"
                   "              \"cpu_s_per_gb\": {\"median\": 0.5}, \"batch_mb_per_s\": {\"median\": 250}},"
                   " \"wait\": {\"p50_us\": 10.0, \"p99_us\": 40.0},"
                   " \"batch_interval\": {\"p50_us\": 70.0},"
                   " \"stages\": {\"consumer_wait_percent\": 25.0},"
                   " \"utilization\": {\"au\": {\"median\": 0.93}},"
                   " \"runs\": [{\"samples_per_s\": 5}], \"text\": \"no number\"}",
                   0, NULL);
    assert_non_null(tree);
    return tree;
}

static void names_are_found(void **state)
{
    static const struct {
        const char *name, *path;
        double value;
    } cases[] = {
        {"result.samples_per_s", "result.samples_per_s", 1200},
        {"samples_per_s", "result.samples_per_s", 1200},
        {"wait.p99_us", "wait.p99_us", 40},
        {"wait.p99", "wait.p99_us", 40},
        {"p99_us", "wait.p99_us", 40},
        {"p99_wait", "wait.p99_us", 40},
        {"p99_us_wait", "wait.p99_us", 40},
        {"wait_p99", "result.wait_p99_us", 41},
        {"au", "utilization.au", 0.93},
        {"slot_memory", "result.slot_memory_mb", 2.5},
        {"consumer_wait", "stages.consumer_wait_percent", 25},
        {"schema", "schema", 3},
    };
    json_t *tree = result();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lb_scalar found;
        stk_error err;
        if (lb_scalar_find(tree, cases[i].name, &found, &err) != STK_OK)
            fail_msg("%s", err.message);
        assert_string_equal(found.path, cases[i].path);
        assert_true(found.value == cases[i].value);
    }
    json_decref(tree);
}

static void unknown_names_are_suggested(void **state)
{
    json_t *tree = result();
    struct lb_scalar found;
    stk_error err;

    (void)state;
    assert_int_equal(lb_scalar_find(tree, "samples_per_sec", &found, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "did you mean samples_per_s?"));
    assert_int_equal(lb_scalar_find(tree, "zzzzzzzzzz", &found, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "which has samples_per_s, wait_p99_us, slot_memory_mb, "));
    assert_int_equal(lb_scalar_find(tree, "p50_us", &found, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "several"));
    assert_non_null(strstr(err.message, "wait.p50_us"));
    assert_non_null(strstr(err.message, "batch_interval.p50_us"));
    assert_int_equal(lb_scalar_find(tree, "text", &found, &err), STK_E_CONFIG);
    json_decref(tree);
}

static void requirements_are_met_or_not(void **state)
{
    static const struct {
        const char *text;
        bool holds;
    } cases[] = {
        {"samples_per_s>=1200", true},
        {"samples_per_s>1200", false},
        {"samples_per_s>=1.2k", true},
        {"samples_per_s<=1199", false},
        {"samples_per_s==1200", true},
        {"samples_per_s==1201", false},
        {" samples_per_s >= 1.2 k", true},
        {"wait.p99<=40us", true},
        {"wait.p99<=0.04ms", true},
        {"wait.p99<0.04ms", false},
        {"wait.p99<=39", false},
        {"wait.p99<=5s", true},
        {"au>=0.9", true},
        {"au>=93%", true},
        {"au>=94%", false},
        {"consumer_wait<=25%", true},
        {"consumer_wait_percent<=25", true},
        {"consumer_wait_percent<=0.25", false},
        {"slot_memory<=2.5MB", true},
        {"slot_memory<=2MiB", false},
        {"slot_memory>=2500kB", true},
        {"memory_bytes==1MB", true},
        {"cpu_s_per_gb<1", true},
        {"batch_mb_per_s>=200MB", true},
    };
    json_t *tree = result();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lb_require require;
        struct lb_scalar found;
        stk_error err;
        bool holds = !cases[i].holds;
        if (lb_require_read(cases[i].text, &require, &err) != STK_OK ||
            lb_require_check(&require, tree, &found, &holds, &err) != STK_OK)
            fail_msg("%s: %s", cases[i].text, err.message);
        if (holds != cases[i].holds)
            fail_msg("%s", cases[i].text);
    }
    json_decref(tree);
}

static void wrong_requirements_are_rejected(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"samples_per_s", "expected NAME, one of >= <= > < =="},
        {">=5", "expected NAME"},
        {"samples_per_s=5", "expected NAME"},
        {"samples_per_s>=", "expected a number"},
        {"samples_per_s>=x", "expected a number"},
        {"samples_per_s>=5parsec", "found the unit \"parsec\""},
        {"samples_per_s>=inf", "expected a number"},
        {"wait.p99<=5MB", "wait.p99_us is a time"},
        {"slot_memory<=5ms", "slot_memory_mb is a size"},
        {"samples_per_s>=5ms", "is a plain number"},
        {"nothing_like_it>=1", "no such number"},
        {"consumer_wait<=0.25", "0.25% or 25%"},
    };
    json_t *tree = result();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lb_require require;
        struct lb_scalar found;
        stk_error err;
        bool holds;
        stk_status status = lb_require_read(cases[i].text, &require, &err);
        if (status == STK_OK)
            status = lb_require_check(&require, tree, &found, &holds, &err);
        assert_int_equal(status, STK_E_CONFIG);
        if (strncmp(err.message, "--require: ", 11) != 0 || !strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
    json_decref(tree);
}

/* A missing utilization has two reasons: there is no training step, or none after the first was measured. */
static void missing_steps_are_explained(void **state)
{
    static const struct {
        const char *tree, *text, *message;
    } cases[] = {
        {"{\"wait\": {}}", "au>=0.9", "set bench.step"},
        {"{\"wait\": {}}", "utilization.au>=0.9", "set bench.step"},
        {"{\"utilization\": {\"required_percent\": 90}}", "au>=0.9", "only one was measured: raise bench.run_time"},
        {"{\"utilization\": {\"required_percent\": 90}}", "utilization.au>=90%", "only one was measured"},
        {"{\"utilization\": {\"au\": {\"median\": 0.93}}}", "aux>=0.9", "no such number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *tree = json_loads(cases[i].tree, 0, NULL);
        struct lb_require require;
        struct lb_scalar found;
        stk_error err;
        bool holds;

        assert_int_equal(lb_require_read(cases[i].text, &require, &err), STK_OK);
        assert_int_equal(lb_require_check(&require, tree, &found, &holds, &err), STK_E_CONFIG);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, err.message);
        json_decref(tree);
    }
}

static void all_of_them(void **state)
{
    struct lb_require each[2];
    json_t *tree = result();
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    stk_error err;
    int failed = -1;

    (void)state;
    assert_int_equal(lb_require_read("au>=0.9", &each[0], &err), STK_OK);
    assert_int_equal(lb_require_read("wait.p99<=1us", &each[1], &err), STK_OK);
    assert_int_equal(lb_require_all(each, 2, tree, to, &failed, &err), STK_OK);
    fclose(to);
    assert_int_equal(failed, 1);
    assert_string_equal(
        text, "holds      au>=0.9: utilization.au is 0.930\nFAILED     wait.p99<=1us: wait.p99_us is 40.00\n");
    assert_int_equal(json_array_size(json_object_get(tree, "required")), 2);
    assert_true(json_is_false(json_object_get(json_array_get(json_object_get(tree, "required"), 1), "holds")));
    free(text);
    json_decref(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(unknown_names_are_suggested),
        cmocka_unit_test(requirements_are_met_or_not),
        cmocka_unit_test(wrong_requirements_are_rejected),
        cmocka_unit_test(missing_steps_are_explained),
        cmocka_unit_test(all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
