/* Tables of text as pandas reads them: unnamed columns, no header, missing cells, several columns as one tensor. The
 * cases are in tables/pandas.tsv. */
#include "io_files.h"
#include "loader_test.h"
#include "sha256.h"

#define FOLDER STKT_TESTS_DIR "/pipeline/tables"

static void check_case(char *const *columns, const char *way)
{
    const int wide = atoi(columns[3]);
    stkt_sha256 sum;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t seen = 0;
    char found[65];

    if (stkt_open(&loader, "dataset: {fields: {x: {path: %s/%s, source: {%s}}}}\nloader: {batch_size: 7, %s}", FOLDER,
                  columns[0], columns[1], way) != STK_OK)
        fail_msg("%s: %s", columns[0], columns[1]);
    stkt_sha256_init(&sum);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t;

        assert_ok(stk_batch_tensor(batch, "x", &t, &err));
        if (t.dtype != stk_dtype_find(columns[2]) || t.ndim != 1 + (wide > 0) || (wide > 0 && t.shape[1] != wide))
            fail_msg("%s, %s: found %s with %d axes", columns[0], columns[1], stk_dtype_name(t.dtype), t.ndim);
        stkt_sha256_add(&sum, t.data, (size_t)stk_tensor_nbytes(&t));
        seen += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s, %s: %s", columns[0], columns[1], err.message);
    stk_loader_destroy(loader);
    stkt_sha256_end(&sum, found);
    if (seen != atoll(columns[4]) || strcmp(found, columns[5]) != 0)
        fail_msg("%s, %s, %s: found %d records, expected %s, or the values differ", columns[0], columns[1], way,
                 (int)seen, columns[4]);
}

static void test_cases(void **state)
{
    static const char *const ways[] = {"num_workers: 0", "num_workers: 2, access: pread"};
    FILE *file = fopen(FOLDER "/pandas.tsv", "r");
    char line[512];
    int cases = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *columns[6], *rest = line;

        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < 6; i++)
            columns[i] = strsep(&rest, "\t");
        for (int i = 0; i < 2; i++)
            check_case(columns, ways[i]);
        cases++;
    }
    fclose(file);
    assert_true(cases > 20);
}

static stk_status open_table(const char *text, const char *source, stk_error *err)
{
    char config[512];
    stk_loader *loader;
    stk_status status;

    stkt_write_file(stkt_path("t.csv"), text, strlen(text));
    snprintf(config, sizeof config, "dataset: {fields: {x: {path: %s, source: {%s}}}}", stkt_path("t.csv"), source);
    status = stk_loader_open_text(config, NULL, NULL, 0, &loader, err);
    if (status == STK_OK)
        stk_loader_destroy(loader);
    return status;
}

static void test_refused(void **state)
{
    stk_error err;

    (void)state;
    /* int64 has no value for it */
    assert_status(open_table("a,b\n1,\n", "name: b, dtype: int64", &err), STK_E_CORRUPT);
    assert_says("line 2, column 2 (b)");
    assert_status(open_table("a,b\n1,\n", "name: b, dtype: int64, missing: 0.5", &err), STK_E_CORRUPT);
    assert_ok(open_table("a,b\n1,\n", "name: b, dtype: int64, missing: 5", &err));
    assert_status(open_table("a,b\n1,2\n3,z\n", "columns: [a, b]", &err), STK_E_MISMATCH);
    assert_says("line 3, column 2 (b)");
    assert_says("source.columns");
    assert_status(open_table("a,b\n1,2\n", "columns: [a, c]", &err), STK_E_NOT_FOUND);
    assert_string_equal(err.found, "c");
    assert_status(open_table("a,b\n1,2\n", "columns: ['x*']", &err), STK_E_NOT_FOUND);
    assert_status(open_table("a,b\n1,2\n", "columns: []", &err), STK_E_CONFIG);
    assert_status(open_table("a,b\n1,2\n", "columns: a", &err), STK_E_CONFIG);
    assert_status(open_table("a,b\n1,2\n", "columns: [a], files: bytes", &err), STK_E_CONFIG);
    assert_status(open_table("a,b\n1,2\n", "name: a, missing: nothing", &err), STK_E_CONFIG);
    assert_status(open_table("a,b\n1,2\n", "name: a, missing_words: NA", &err), STK_E_CONFIG);
    assert_status(open_table("1,2\n3\n", "name: '0', header: false", &err), STK_E_CORRUPT);
    assert_status(open_table(",,\n1,2,3\n", "name: a", &err), STK_E_NOT_FOUND); /* three unnamed columns */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
