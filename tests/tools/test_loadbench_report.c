/* Reports of whatever a kept result may hold: every member taken out or replaced by something else in turn, and the
 * page is still one. Waiting times come into the bins that they belong to. */
#include "io_files.h"
#include "loadbench_histogram.h"
#include "html.h"
#include "loadbench_report.h"
#include "loadbench_result.h"
#include "loadbench_svg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The whole page. */
static char *page_of(const json_t *tree)
{
    static char page[1 << 20];
    const char *path = stkt_path("page.html");
    stk_error err;
    FILE *file;
    size_t bytes;

    if (lb_report_write(path, tree, &err) != STK_OK)
        fail_msg("%s", err.message);
    file = fopen(path, "r");
    assert_non_null(file);
    bytes = fread(page, 1, sizeof page - 1, file);
    fclose(file);
    page[bytes] = '\0';
    assert_true(bytes < sizeof page - 1);
    return page;
}

static void assert_page(const json_t *tree, const char *what)
{
    const char *page = page_of(tree), *body = strstr(page, "<body>");

    if (!body || strcmp(page + strlen(page) - 22, "</main></body></html>\n") != 0 || strstr(body, "(null)") ||
        strstr(body, "\"nan") || strstr(body, ",nan") || strstr(body, "\"-nan"))
        fail_msg("%s: no page", what);
}

static json_t *measured(void)
{
    static const char config_text[] =
        "dataset: {fields: {x: {synthetic: {count: 1000, shape: [8], dtype: u8, read_time: 200us}}}}\n"
        "loader: {batch_size: 2, num_workers: 2}\n"
        "bench: {batches: 100, repeats: 2, limit_time: 1ms}\n";
    struct lb_result *result = calloc(1, sizeof *result);
    const char *path = stkt_path("config.yaml");
    struct lb_config config;
    json_t *tree = NULL;
    stk_error err;

    stkt_write_file(path, config_text, strlen(config_text));
    if (lb_config_open(path, NULL, 0, false, &config, &err) != STK_OK ||
        lb_result_measure(&config, result, &err) != STK_OK || !(tree = lb_result_tree(result, &err)))
        fail_msg("%s", err.message);
    lb_result_fini(result);
    lb_config_close(&config);
    free(result);
    return tree;
}

/* Replaces each member below `node` in turn, up to some depth; of lists the first item stands for all. */
static void replace_each(const json_t *whole, json_t *node, int depth)
{
    static const char *const others[] = {"null", "\"<text>\"", "-1e300", "0", "[]", "{}", "[[1], {\"a\": 2}]"};
    const char *key;
    void *next;
    json_t *value;

    if (json_is_array(node) && json_array_size(node) > 0 && depth > 0)
        replace_each(whole, json_array_get(node, 0), depth - 1);
    if (!json_is_object(node) || depth == 0)
        return;
    json_object_foreach_safe(node, next, key, value)
    {
        char name[64];
        snprintf(name, sizeof name, "%s", key);
        json_incref(value);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            json_object_set_new(node, name, json_loads(others[i], JSON_DECODE_ANY, NULL));
            assert_page(whole, name);
        }
        json_object_set(node, name, value);
        if (strcmp(name, "config") != 0)
            replace_each(whole, value, depth - 1);
        json_decref(value);
    }
}

static void any_result_makes_a_page(void **state)
{
    json_t *tree = measured();

    (void)state;
    assert_page(tree, "as it is");
    assert_non_null(strstr(page_of(tree), "<h2>Who was busy when</h2>"));
    replace_each(tree, tree, 3);
    json_decref(tree);
    tree = json_object();
    assert_page(tree, "nothing");
    json_decref(tree);
}

static void any_sweep_makes_a_page(void **state)
{
    json_t *tree =
        json_loads("{\"program\": \"loadbench --sweep\", \"file\": \"x.yaml\", \"best\": \"a=1\", \"sweep\": "
                   "{\"keys\": [\"l.a\", \"l.b\"],"
                   " \"points\": [{\"set\": {\"l.a\": \"1\", \"l.b\": \"x\"}, \"result\": {\"samples_per_s\": "
                   "{\"median\": 5, \"low\": 4,"
                   " \"high\": 6}}, \"verdict\": {\"binds\": \"ring\"}},"
                   " {\"set\": {\"l.a\": \"64KiB\", \"l.b\": \"x\"}, \"result\": {\"samples_per_s\": {\"median\": 7}}},"
                   " {\"set\": {\"l.a\": \"3\", \"l.b\": \"y\"}, \"failure\": \"<no>\"},"
                   " {\"set\": {\"l.a\": \"9\", \"l.b\": \"y\"}, \"result\": {\"samples_per_s\": {\"median\": 7}}}]}}",
                   0, NULL);

    (void)state;
    assert_non_null(tree);
    assert_page(tree, "as it is");
    assert_non_null(strstr(page_of(tree), "&lt;no&gt;"));
    replace_each(tree, tree, 6);
    json_decref(tree);
}

static void what_could_be_markup_is_none(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    (void)state;
    html_text(to, "a<b>&\"'\x01\n\xc3\xa4");
    fclose(to);
    assert_string_equal(text, "a&lt;b&gt;&amp;&quot;&#39;\xef\xbf\xbd\n\xc3\xa4");
    free(text);
}

static void ticks_are_short(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},     {1, "1"},     {0.05, "0.05"}, {2500, "2.5k"},   {40e6, "40M"},
                 {999, "999"}, {1000, "1k"}, {1e9, "1G"},    {1.5e12, "1.5T"}, {1e-15, "0"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(lb_tick_text(text, sizeof text, cases[i].value), cases[i].text);
}

/* Against bins counted from the values themselves. A value may have moved by the width of the fine histogram's bucket,
 * which is below 1 %: values that near an end are not used. */
static void values_come_into_their_bins(void **state)
{
    static stki_histogram histogram;
    int64_t expected[200] = {0}, all = 0, counted = 0;
    uint64_t random = 3;

    (void)state;
    stki_histogram_init(&histogram);
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const double place =
            (double)(random >> 11) * 0x1p-53 * 80 + 20; /* of a tenth of a power of ten: 100 ns to 10 s */
        if (place - floor(place) < 0.06 || place - floor(place) > 0.94)
            continue;
        stki_histogram_add(&histogram, (int64_t)pow(10, place / 10));
        expected[(int)ceil(place)]++;
        all++;
    }
    json_t *json = lb_histogram_json(&histogram);
    const json_t *ends = json_object_get(json, "up_to_us"), *counts = json_object_get(json, "call_count");
    assert_int_equal(json_array_size(ends), json_array_size(counts));
    for (size_t i = 0; i < json_array_size(ends); i++) {
        const double end_ns = 1e3 * json_real_value(json_array_get(ends, i));
        const int64_t count = json_integer_value(json_array_get(counts, i));
        assert_int_equal(count, expected[(int)lround(10 * log10(end_ns))]);
        counted += count;
    }
    assert_int_equal(counted, all);
    json_decref(json);
    stki_histogram_init(&histogram);
    json = lb_histogram_json(&histogram);
    assert_int_equal(json_array_size(json_object_get(json, "call_count")), 0);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_result_makes_a_page),      cmocka_unit_test(any_sweep_makes_a_page),
        cmocka_unit_test(what_could_be_markup_is_none), cmocka_unit_test(ticks_are_short),
        cmocka_unit_test(values_come_into_their_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
