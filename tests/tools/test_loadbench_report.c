/* Tests of the page of a report: it contains the result, with any strings in it, and assigns waiting times to the right
 * bins. tests/cli/report_browser.test checks what the page draws. */
#include "html.h"
#include "io_files.h"
#include "loadbench_histogram.h"
#include "loadbench_json_parts.h"
#include "loadbench_report.h"
#include "loadbench_result.h"
#include "loadbench_sweep.h"
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

/* The result that the page contains as JSON in a script element. */
static json_t *carried_by(const char *page)
{
    static const char begin[] = "<script type=\"application/json\" id=\"carried\">", end[] = "</script>";
    const char *at = strstr(page, begin), *until = at ? strstr(at, end) : NULL;
    json_t *carried;

    assert_non_null(until);
    at += strlen(begin);
    assert_null(memchr(at, '<', (size_t)(until - at)));
    carried = json_loadb(at, (size_t)(until - at), 0, NULL);
    assert_non_null(carried);
    return carried;
}

/* Numbers must be those that --format=json prints. */
static void assert_carries(const json_t *tree, const char *key)
{
    char *text = lb_json_dump(tree);
    json_t *carried = carried_by(page_of(tree)), *kept = json_loads(text, 0, NULL);

    free(text);
    assert_non_null(kept);
    if (!json_equal(json_object_get(carried, key), kept))
        fail_msg("the page does not contain the %s", key);
    json_decref(kept);
    assert_true(json_array_size(json_object_get(carried, "figures")) > 0);
    assert_true(json_array_size(json_object_get(carried, "stages")) > 0);
    assert_int_equal(json_array_size(json_object_get(carried, "columns")), LB_SWEEP_COLUMNS);
    json_decref(carried);
}

static void a_page_contains_its_result(void **state)
{
    json_t *tree = measured();

    (void)state;
    assert_carries(tree, "result");
    json_decref(tree);
}

/* Strings that could end the element early, or look like markup, must come back unchanged. */
static void any_text_is_preserved(void **state)
{
    static const char *const texts[] = {
        "</script><script>alert(1)</script>", "<!--<script>", "]]>",  "\"\\'`${1}", "@CARRIED@",
        "\xe2\x80\xa8\xe2\x80\xa9",           "\x01\t\n",     "a & b"};
    json_t *tree = json_pack("{s:{}}", "sweep");

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_object_set_new(tree, "file", json_string(texts[i]));
        json_object_set_new(tree, texts[i], json_integer(INT64_MAX));
        assert_carries(tree, "sweep");
    }
    json_decref(tree);
}

static void markup_in_values_is_escaped(void **state)
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

/* Compares with bins counted from the values. A value may be off by a bucket of the fine histogram, less than 1 %, so
 * values near a boundary are not used. */
static void values_are_in_the_right_bins(void **state)
{
    static stki_histogram histogram;
    int64_t expected[200] = {0}, all = 0, counted = 0;
    uint64_t random = 3;

    (void)state;
    stki_histogram_init(&histogram);
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const double place =
            (double)(random >> 11) * 0x1p-53 * 80 + 20; /* in tenths of a power of ten: 100 ns to 10 s */
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
        cmocka_unit_test(a_page_contains_its_result),
        cmocka_unit_test(any_text_is_preserved),
        cmocka_unit_test(markup_in_values_is_escaped),
        cmocka_unit_test(values_are_in_the_right_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
