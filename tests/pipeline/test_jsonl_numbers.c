/* Tests of numbers and lists of numbers in JSON Lines files, against Python's json and NumPy (texts/numbers.tsv). */
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
        fail_msg("%s, %s: the values differ", c[0], way);
    if (length < 0) {
        assert_ok(stk_batch_tensor(batch, "x.offsets", &t, &err));
        stkt_sha256_init(&offsets);
        stkt_sha256_add(&offsets, t.data, 8 * (size_t)(records + 1));
        stkt_sha256_end(&offsets, sum);
        if (strcmp(sum, c[6]) != 0)
            fail_msg("%s, %s: the offsets differ", c[0], way);
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

/* Each field of a file has its own key. Spaces around values, which json.dumps can write, are ignored. */
static void test_space(void **state)
{
    static const char lines[] = "{\"a\" : [1 , 2] , \"n\" : 5 , \"b\" : 0}\n{\"a\" : [ ] , \"n\" : 6\t}\n";
    static const char *const fields[] = {"a.values", "a.offsets", "n"};
    static const int64_t expected[3][3] = {{1, 2}, {0, 2, 2}, {5, 6}};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    stkt_write_file(stkt_path("n.jsonl"), lines, strlen(lines));
    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {a: {path: %s}, n: {path: %s}}}\nloader: {batch_size: 2, num_workers: 0}",
                        stkt_path("n.jsonl"), stkt_path("n.jsonl")));
    assert_ok(stk_loader_next(loader, &batch, &err));
    for (int i = 0; i < 3; i++) {
        stk_tensor t;

        assert_ok(stk_batch_tensor(batch, fields[i], &t, &err));
        assert_memory_equal(t.data, expected[i], i == 1 ? 24 : 16);
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* The field's name is the key if the first record has it; otherwise the key is "text". */
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
        {"{\"a\":1}\n{\"a\":null}\n", "key: a, dtype: int64", "int64"}, /* NaN does not fit in int64 */
        {"{\"a\":[1]}\n{\"a\":[null]}\n", "key: a", "line 2"},
        {"{\"a\":1}\n{\"a\":true}\n", "key: a", "a boolean"},
        {"{\"a\":1}\n{\"b\":1}\n", "key: a", "line 2"},
        {"{\"a\":[1]}\n{\"a\":[1,\"x\"]}\n", "key: a", "line 2"},
        {"{\"a\":[1]}\n{\"a\":[[1]]}\n", "key: a", "line 2"},
        {"{\"a\":1}\n{\"a\":9223372036854775808}\n", "key: a", "float64"},
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

/* A number takes 8 bytes. */
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

/* Reads one batch with all rows of n0.jsonl and so on: the values as doubles, and the length of each row. */
static stk_status read_files(const char *const *files, int count, const char *source, double *values, int64_t *lengths,
                             stk_error *err)
{
    char config[2048] = "dataset: {fields: {a: {path: [";
    const char *names[2][2] = {{"a", NULL}, {"a.values", "a.offsets"}};
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_status status;

    for (int i = 0; i < count; i++) {
        char name[32];

        snprintf(name, sizeof name, "n%d.jsonl", i);
        stkt_write_file(stkt_path(name), files[i], strlen(files[i]));
        sprintf(config + strlen(config), "%s%s", i ? ", " : "", stkt_path(name));
    }
    sprintf(config + strlen(config), "], source: {key: a%s}}}}\nloader: {batch_size: 100, num_workers: 0}", source);
    status = stk_loader_open_text(config, NULL, NULL, 0, &loader, err);
    if (status != STK_OK)
        return status;
    if (stk_loader_next(loader, &batch, err) != STK_OK)
        fail_msg("%s", err->message);
    for (int k = 0; k < 2; k++) {
        if (stk_batch_tensor(batch, names[k][0], &t, NULL) != STK_OK)
            continue;
        for (int64_t i = 0; i < stk_tensor_nbytes(&t) / 8; i++)
            values[i] = t.dtype == STK_F64 ? ((double *)t.data)[i] : (double)((int64_t *)t.data)[i];
        for (int64_t i = 0; i < stk_batch_rows(batch); i++)
            lengths[i] = k == 0 && t.ndim == 2 ? t.shape[1] : -1;
        if (k == 1 && stk_batch_tensor(batch, names[k][1], &t, NULL) == STK_OK)
            for (int64_t i = 0; i < stk_batch_rows(batch); i++)
                lengths[i] = ((int64_t *)t.data)[i + 1] - ((int64_t *)t.data)[i];
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    return STK_OK;
}

/* Shards that differ: integers and reals, lists of different lengths, and empty ones. */
static void test_shards(void **state)
{
    static const char *const kinds[] = {"{\"a\":1}\n{\"a\":2}\n", "{\"a\":1.5}\n"},
                             *const lists[] = {"{\"a\":[1,2]}\n", "{\"a\":[3,4,5]}\n{\"a\":[6,7,8]}\n"},
                             *const empty[] = {"", "{\"a\":7}\n", "\n", "{\"a\":8}\n"},
                             *const nulls[] = {"{\"a\":null}\n{\"a\":2}\n"},
                             *const large[] = {"{\"a\":18446744073709551616}\n"};
    double values[20] = {0};
    int64_t lengths[20];
    stk_error err;

    (void)state;
    assert_status(read_files(kinds, 2, "", values, lengths, &err), STK_E_MISMATCH);
    assert_says("source.dtype: float64");
    assert_ok(read_files(kinds, 2, ", dtype: float64", values, lengths, &err));
    assert_true(values[0] == 1 && values[1] == 2 && values[2] == 1.5);
    assert_ok(read_files(lists, 2, "", values, lengths, &err));
    assert_true(lengths[0] == 2 && lengths[1] == 3 && lengths[2] == 3);
    for (int i = 0; i < 8; i++)
        assert_true(values[i] == i + 1);
    assert_ok(read_files(empty, 4, "", values, lengths, &err));
    assert_true(values[0] == 7 && values[1] == 8);
    assert_ok(read_files(nulls, 1, "", values, lengths, &err));
    assert_true(values[0] != values[0] && values[1] == 2); /* as pandas.read_json(lines=True) does */
    assert_ok(read_files(large, 1, ", dtype: float64", values, lengths, &err));
    assert_true(values[0] == 0x1p64);
}

/* Value i of field f: an integer, a real number (f % 4 == 1), a list of two (2) or a string (3). */
static double value_of(int64_t i, int f)
{
    return (double)(100 * i + f) + (f % 4 == 1 ? 0.5 : 0);
}

static void write_records(const char *name, int64_t first, int64_t count)
{
    FILE *file = fopen(stkt_path(name), "w");

    assert_non_null(file);
    for (int64_t i = first; i < first + count; i++) {
        fprintf(file, "{\"o\": {\"f\": %lld, \"g\": {\"f\": %lld}}", (long long)-i, (long long)(7 * i));
        for (int f = 0; f < 24; f++) {
            const double value = value_of(i, f);

            fprintf(file, ", \"f%d\": ", f);
            if (f % 4 == 2)
                fprintf(file, "[%.1f, %.0f]", value, -value);
            else
                fprintf(file, f % 4 == 3 ? "\"%.0f\"" : f % 4 == 1 ? "%.1f" : "%.0f", value);
        }
        fprintf(file, ", \"bad\": %s}\n", i == 2 ? "\"two\"" : "1");
        if (i % 3 == 0)
            fputc('\n', file); /* blank lines do not count in any field */
    }
    fclose(file);
}

static void check_field(stk_batch *batch, int f, int64_t rows)
{
    char name[32];
    stk_error err;
    stk_tensor t;

    snprintf(name, sizeof name, f % 4 == 3 ? "f%d.values" : "f%d", f);
    assert_ok(stk_batch_tensor(batch, name, &t, &err));
    if (f % 4 == 3) {
        char text[4096] = "";

        for (int64_t i = 0; i < rows; i++)
            sprintf(text + strlen(text), "%.0f", value_of(i, f));
        assert_memory_equal(t.data, text, strlen(text));
        return;
    }
    assert_int_equal(t.dtype, f % 4 == 0 ? STK_I64 : STK_F64);
    for (int64_t i = 0; i < rows; i++)
        if (f % 4 == 0)
            assert_true(((int64_t *)t.data)[i] == (int64_t)value_of(i, f));
        else if (f % 4 == 1)
            assert_true(((double *)t.data)[i] == value_of(i, f));
        else
            assert_true(((double *)t.data)[2 * i] == value_of(i, f) &&
                        ((double *)t.data)[2 * i + 1] == -value_of(i, f));
}

/* Fields of one file are looked up together in one pass. Here there are more fields than fit in one pass, and each must
 * get its own values. Also tests nested keys, one key with two dtypes, and fields that read only some of the files. */
static void test_together(void **state)
{
    enum { ROWS = 50, FIRST = 20 };
    char config[16384] = "dataset: {fields: {";
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    write_records("first.jsonl", 0, FIRST);
    write_records("second.jsonl", FIRST, ROWS - FIRST);
    for (int f = 0; f < 24; f++)
        sprintf(config + strlen(config), "f%d: {path: [%s, %s]}, ", f, stkt_path("first.jsonl"),
                stkt_path("second.jsonl"));
    sprintf(config + strlen(config),
            "real: {path: [%s, %s], source: {key: f4, dtype: float64}},"
            "minus: {path: [%s, %s], source: {key: o.f}},"
            "seven: {path: [%s, %s], source: {key: o.g.f}}}}\n"
            "loader: {batch_size: 50, num_workers: 0}",
            stkt_path("first.jsonl"), stkt_path("second.jsonl"), stkt_path("first.jsonl"), stkt_path("second.jsonl"),
            stkt_path("./first.jsonl"), stkt_path("./second.jsonl"));
    assert_ok(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_rows(batch), ROWS);
    for (int f = 0; f < 24; f++)
        check_field(batch, f, ROWS);
    assert_ok(stk_batch_tensor(batch, "real", &t, &err));
    assert_int_equal(t.dtype, STK_F64);
    for (int64_t i = 0; i < ROWS; i++)
        assert_true(((double *)t.data)[i] == value_of(i, 4));
    assert_ok(stk_batch_tensor(batch, "minus", &t, &err));
    for (int64_t i = 0; i < ROWS; i++)
        assert_true(((int64_t *)t.data)[i] == -i);
    assert_ok(stk_batch_tensor(batch, "seven", &t, &err));
    for (int64_t i = 0; i < ROWS; i++)
        assert_true(((int64_t *)t.data)[i] == 7 * i);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* An error in a column belongs to its field and does not affect other columns of the file. */
static void test_bad_column(void **state)
{
    stk_loader *loader;
    stk_error err;
    char config[1024];

    (void)state;
    write_records("bad.jsonl", 0, 10);
    for (int with = 0; with < 2; with++) {
        snprintf(
            config, sizeof config,
            "dataset: {fields: {f0: {path: %s}, f1: {path: %s}, b: {path: %s, source: {key: %s}}, f2: {path: %s}}}",
            stkt_path("bad.jsonl"), stkt_path("bad.jsonl"), stkt_path("bad.jsonl"), with ? "bad" : "f5",
            stkt_path("bad.jsonl"));
        if (!with) {
            assert_ok(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err));
            stk_loader_destroy(loader);
            continue;
        }
        assert_status(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err), STK_E_MISMATCH);
        assert_int_equal(err.record, 2);
        assert_says("line 4"); /* a blank line follows the first record */
        assert_says("\"bad\"");
        assert_string_equal(err.found, "a string");
    }
}

/* A field with an integer dtype must have the numbers of the file, also if another field reads them without one. The
 * cast of a batch alone would turn null into 0 and 2.9 into 2. */
static void test_integer_fields(void **state)
{
    static const struct {
        const char *lines, *field, *found;
        int64_t values[4];
    } cases[] = {
        {"{\"n\":3}\n{\"n\":null}\n", "dtype: int64", "null", {0}},
        {"{\"n\":3}\n{\"n\":2.9}\n", "dtype: int32", "2.9", {0}},
        {"{\"n\":3}\n{\"n\":300 }\n", "dtype: uint8", "300", {0}},
        {"{\"n\":3}\n{\"n\":NaN}\n", "dtype: int64", "NaN", {0}},
        {"{\"n\":3}\n{\"n\":null}\n", "dtype: int64, source: {key: n, dtype: float64}", "null", {0}},
        {"{\"n\":3}\n{\"n\":-1}\n", "transforms: [{cast: uint16}]", "-1", {0}},
        {"{\"n\":[1, 2]}\n{\"n\":[3, 65536]}\n", "dtype: uint16", "65536", {0}},
        {"{\"n\":3}\n{\"n\":null}\n", "dtype: int64, source: {key: n}", "null", {0}},
        {"{\"n\":3}\n{\"n\":255.0}\n", "dtype: uint8", NULL, {3, 255}},
        {"{\"n\":[1, 2]}\n{\"n\":[3e2, -32768]}\n", "dtype: int16", NULL, {1, 2, 300, -32768}},
        {"{\"n\":9007199254740993}\n{\"n\":1.0}\n", "dtype: int64", NULL, {9007199254740993, 1}}, /* 2^53 + 1 */
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int form = 0; form < 3; form++) {
            const char *path = stkt_path("n.jsonl");
            char config[1024], other[512];
            int64_t values[4] = {0};
            stk_loader *loader;
            stk_batch *batch;
            stk_tensor t, wide;

            stkt_write_file(path, cases[i].lines, strlen(cases[i].lines));
            snprintf(other, sizeof other, "other: {path: %s, source: {key: n}}", path);
            snprintf(config, sizeof config,
                     "dataset: {fields: {%s%s n: {path: %s, %s}%s%s}}\nloader: {batch_size: 2, num_workers: 0}",
                     form == 2 ? other : "", form == 2 ? "," : "", path, cases[i].field, form == 1 ? ", " : "",
                     form == 1 ? other : "");
            if (cases[i].found) {
                assert_status(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err), STK_E_MISMATCH);
                assert_int_equal(err.record, 1);
                assert_string_equal(err.found, cases[i].found);
                assert_says("the field's dtype");
                continue;
            }
            assert_ok(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err));
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "n", &t, &err));
            assert_ok(stk_tensor_to(&t, STK_I64, &wide, &err));
            memcpy(values, wide.data, (size_t)stk_tensor_nbytes(&wide));
            assert_memory_equal(values, cases[i].values, sizeof values);
            stk_tensor_release(&wide);
            stk_batch_release(batch);
            stk_loader_destroy(loader);
        }
}

/* A line that is not JSON is the error of its sample only, also if all values are parsed at open. */
static void test_broken_lines(void **state)
{
    static const struct {
        const char *lines, *tensor;
        int64_t values[3];
    } cases[] = {
        {"{\"n\":1}\n{\"n\":2\n{\"n\":3}\n{\"n\":4}\n", "n", {1, 3, 4}},
        {"{\"n\":9\n{\"n\":1}\n{\"n\":3}\n{\"n\":4}\n", "n", {1, 3, 4}},
        {"{\"n\":[9\n{\"n\":[1]}\n{\"n\":[3]}\n{\"n\":[4]}\n", "n", {1, 3, 4}},
        {"{\"n\":[1]}\n{\"n\":[2}\n{\"n\":[3, 4]}\n{\"n\":[]}\n", "n.values", {1, 3, 4}},
    };
    char config[512];
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stkt_write_file(stkt_path("broken.jsonl"), cases[i].lines, strlen(cases[i].lines));
        for (int skip = 0; skip < 2; skip++) {
            snprintf(config, sizeof config,
                     "dataset: {fields: {n: {path: %s}}}\nloader: {batch_size: 4, num_workers: 0%s}",
                     stkt_path("broken.jsonl"), skip ? ", on_error: skip, max_error_fraction: 1" : "");
            assert_ok(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err));
            if (skip) {
                assert_ok(stk_loader_next(loader, &batch, &err));
                assert_ok(stk_batch_tensor(batch, cases[i].tensor, &t, &err));
                assert_int_equal(stk_tensor_nbytes(&t), sizeof cases[i].values);
                assert_memory_equal(t.data, cases[i].values, sizeof cases[i].values);
                stk_batch_release(batch);
            } else {
                assert_status(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
                assert_says("invalid JSON");
            }
            stk_loader_destroy(loader);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),        cmocka_unit_test(test_space),      cmocka_unit_test(test_which_key),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_max_bytes),  cmocka_unit_test(test_shards),
        cmocka_unit_test(test_together),     cmocka_unit_test(test_bad_column), cmocka_unit_test(test_integer_fields),
        cmocka_unit_test(test_broken_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
