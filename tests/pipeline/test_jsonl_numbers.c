/* test_jsonl_numbers.c: numbers and lists of numbers in lines of JSON, against Python's json and NumPy
 * (texts/numbers.tsv). */
#include "io_files.h"
#include "loader_test.h"
#include "sha256.h"

#define FOLDER STKT_TESTS_DIR "/pipeline/texts"

static void check_case(char *const *c, const char *way)
{
    const int axes = atoi(c[2]);
    const int64_t length = atoll(c[3]), records = atoll(c[4]);
    stkt_sha256 values, offsets;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;
    char sum[65];

    if (stkt_open(&loader,
                  "dataset: {fields: {x: {path: %s/numbers.jsonl, source: {key: %s}}}}\n"
                  "loader: {batch_size: 50, %s}",
                  FOLDER, c[0], way) != STK_OK)
        fail_msg("%s", c[0]);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_rows(batch), records);
    assert_ok(stk_batch_tensor(batch, length < 0 ? "x.values" : "x", &t, &err));
    assert_int_equal(t.dtype, stk_dtype_find(c[1]));
    if (length >= 0) {
        assert_int_equal(t.ndim, 1 + axes);
        if (axes)
            assert_int_equal(t.shape[1], length);
    }
    stkt_sha256_init(&values);
    stkt_sha256_add(&values, t.data, (size_t)stk_tensor_nbytes(&t));
    stkt_sha256_end(&values, sum);
    if (strcmp(sum, c[5]) != 0)
        fail_msg("%s, %s: other values", c[0], way);
    if (length < 0) {
        assert_ok(stk_batch_tensor(batch, "x.offsets", &t, &err));
        stkt_sha256_init(&offsets);
        stkt_sha256_add(&offsets, t.data, 8 * (size_t)(records + 1));
        stkt_sha256_end(&offsets, sum);
        if (strcmp(sum, c[6]) != 0)
            fail_msg("%s, %s: other offsets", c[0], way);
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void test_cases(void **state)
{
    static const char *const ways[] = {"num_workers: 0", "num_workers: 2, access: pread"};
    FILE *file = fopen(FOLDER "/numbers.tsv", "r");
    char line[512];
    int cases = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *c[7], *rest = line;

        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < 7; i++)
            c[i] = strsep(&rest, "\t");
        for (int i = 0; i < 2; i++)
            check_case(c, ways[i]);
        cases++;
    }
    fclose(file);
    assert_int_equal(cases, 11);
}

static stk_status open_lines(const char *text, const char *field, const char *source, stk_dtype *dtype, stk_error *err)
{
    char config[512];
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_status status;

    stkt_write_file(stkt_path("n.jsonl"), text, strlen(text));
    snprintf(config, sizeof config,
             "dataset: {fields: {%s: {path: %s, source: {%s}}}}\nloader: {batch_size: 2, num_workers: 0}", field,
             stkt_path("n.jsonl"), source);
    status = stk_loader_open_text(config, NULL, NULL, 0, &loader, err);
    if (status != STK_OK)
        return status;
    status = stk_loader_next(loader, &batch, err);
    if (status != STK_OK) {
        stk_loader_destroy(loader);
        return status;
    }
    *dtype = STK_U8;
    if (stk_batch_tensor(batch, field, &t, NULL) == STK_OK)
        *dtype = t.dtype;
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    return STK_OK;
}

/* The field's own key, if the first record has it; else "text". */
static void test_which_key(void **state)
{
    static const char lines[] = "{\"text\": \"a\", \"label\": 3}\n{\"text\": \"b\", \"label\": 4}\n";
    stk_dtype dtype;
    stk_error err;

    (void)state;
    assert_ok(open_lines(lines, "label", "", &dtype, &err));
    assert_int_equal(dtype, STK_I64);
    assert_ok(open_lines(lines, "other", "", &dtype, &err));
    assert_int_equal(dtype, STK_U8);
    assert_ok(open_lines(lines, "label", "key: text", &dtype, &err));
    assert_int_equal(dtype, STK_U8);
}

static void test_refused(void **state)
{
    static const struct {
        const char *lines, *source, *says;
    } cases[] = {
        {"{\"a\":1}\n{\"a\":\"x\"}\n", "key: a", "line 2"},
        {"{\"a\":1}\n\n{\"a\":[1]}\n", "key: a", "line 3"},
        {"{\"a\":1}\n{\"a\":null}\n", "key: a", "line 2"},
        {"{\"a\":1}\n{\"b\":1}\n", "key: a", "line 2"},
        {"{\"a\":[1]}\n{\"a\":[1,\"x\"]}\n", "key: a", "line 2"},
        {"{\"a\":[1]}\n{\"a\":[[1]]}\n", "key: a", "line 2"},
        {"{\"a\":1}\n{\"a\":9223372036854775808}\n", "key: a", "line 2"},
        {"{\"a\":{\"b\":1}}\n{\"a\":{\"c\":1}}\n", "key: a.b", "line 2"},
    };
    stk_dtype dtype;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_status(open_lines(cases[i].lines, "x", cases[i].source, &dtype, &err), STK_E_MISMATCH);
        assert_says(cases[i].says);
    }
}

/* Numbers are 8 bytes each. */
static void test_max_bytes(void **state)
{
    static const char lists[] = "{\"a\":[1,2]}\n{\"a\":[1,2,3]}\n", same[] = "{\"a\":[1,2,3]}\n{\"a\":[4,5,6]}\n";
    stk_dtype dtype;
    stk_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_ok(open_lines(i ? same : lists, "x", "key: a, max_bytes: 24", &dtype, &err));
        assert_status(open_lines(i ? same : lists, "x", "key: a, max_bytes: 23", &dtype, &err), STK_E_LIMIT);
        assert_says("24 bytes");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_which_key),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_max_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
