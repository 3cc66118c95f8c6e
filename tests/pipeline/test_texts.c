/* stki-threads */
/* Text files and lines of JSON in loaders. The expected results, computed by Python, are in texts/cases.tsv. */
#include "allocate.h"
#include "container.h"
#include "faults.h"
#include "file.h"
#include "format.h"
#include "io_files.h"
#include "json_text.h"
#include "loader_test.h"
#include "sha256.h"
#include "text.h"
#include <jansson.h>
#include <signal.h>

#define FOLDER STKT_TESTS_DIR "/pipeline/texts"

static void add_samples(stkt_sha256 *sum, const stk_batch *batch)
{
    stk_tensor values, t;
    stk_error err;
    const int64_t *offsets;

    assert_ok(stk_batch_tensor(batch, "x.values", &values, &err));
    assert_ok(stk_batch_tensor(batch, "x.offsets", &t, &err));
    offsets = t.data;
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        const int64_t bytes = offsets[r + 1] - offsets[r];

        stkt_sha256_add(sum, &bytes, 8);
        stkt_sha256_add(sum, (char *)values.data + offsets[r], (size_t)bytes);
    }
}

static void check_case(const char *file, const char *keys, int64_t count, const char *digest, const char *way)
{
    stkt_sha256 sum;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t seen = 0;
    char found[65];

    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {x: {path: %s/%s, source: {%s}}}}\n"
                               "loader: {batch_size: 7, allow_empty: true, %s}",
                               FOLDER, file, keys, way),
                     STK_OK);
    stkt_sha256_init(&sum);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        add_samples(&sum, batch);
        seen += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s, %s: %s", file, keys, err.message);
    stk_loader_destroy(loader);
    stkt_sha256_end(&sum, found);
    if (seen != count || strcmp(found, digest) != 0)
        fail_msg("%s, %s, %s: found %d samples, expected %d, or the bytes differ", file, keys, way, (int)seen,
                 (int)count);
}

static void test_cases(void **state)
{
    static const char *const ways[] = {"num_workers: 0", "num_workers: 3", "num_workers: 2, access: pread"};
    FILE *file = fopen(FOLDER "/cases.tsv", "r");
    char line[512];
    int count = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *at = line, *columns[4];

        for (int i = 0; i < 4; i++)
            columns[i] = strsep(&at, "\t\n");
        for (int w = 0; w < 3; w++)
            check_case(columns[0], columns[1], atoll(columns[2]), columns[3], ways[w]);
        count++;
    }
    fclose(file);
    assert_true(count > 90);
}

/* ---- long files ---- */

/* Lines, paragraphs and separators at every position around the boundaries of the blocks in which a file is read. */
static void test_across_pieces(void **state)
{
    enum { PIECE = 1 << 20 };
    static char bytes[PIECE + 64];
    static const char *const keys[] = {"", "unit: paragraph", "separator: \"\\n\\n\""};

    (void)state;
    for (int shift = -6; shift <= 6; shift++) {
        const size_t size = PIECE + 40;

        memset(bytes, 'a', sizeof bytes);
        memcpy(bytes + PIECE + shift - 2, "\r\n\n\r", 4);
        stkt_write_file(stkt_path("long.txt"), bytes, size);
        for (int k = 0; k < 3; k++)
            for (int pread = 0; pread < 2; pread++) {
                stk_loader *loader;
                stk_batch *batch;
                stk_tensor t;
                stk_error err;
                const int64_t *offsets, whole = PIECE + shift - 2;

                assert_int_equal(stkt_open(&loader,
                                           "dataset: {fields: {x: {path: %s, source: {%s}}}}\n"
                                           "loader: {batch_size: 9, num_workers: 0, access: %s}",
                                           stkt_path("long.txt"), keys[k], pread ? "pread" : "mmap"),
                                 STK_OK);
                assert_ok(stk_loader_next(loader, &batch, &err));
                assert_ok(stk_batch_tensor(batch, "x.offsets", &t, &err));
                offsets = t.data;
                /* a…a CR LF | LF | CR a…a; paragraphs: two; documents: a…a CR and CR a…a */
                assert_int_equal(stk_batch_rows(batch), k == 0 ? 3 : 2);
                assert_int_equal(offsets[1], k == 2 ? whole + 1 : whole);
                assert_int_equal(offsets[2] - offsets[1], k == 0 ? 0 : (int64_t)size - whole - 3);
                stk_batch_release(batch);
                stk_loader_destroy(loader);
            }
    }
}

/* Line numbers in errors, including those far beyond the index marks and after blank lines. */
static void test_line_numbers(void **state)
{
    FILE *file = fopen(stkt_path("numbers.jsonl"), "w");
    stki_text_file *text;
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;
    stk_error err;
    int64_t shape[1];

    (void)state;
    for (int i = 0; i < 5000; i++)
        fprintf(file, i == 4321 ? "{\"text\": nul}%s" : "{\"text\": \"a\"}%s", i % 3 ? "\n" : "\n \n\n");
    fclose(file);
    assert_ok(stki_container_open(stkt_path("numbers.jsonl"), NULL, &container, &err));
    text = (stki_text_file *)(void *)container;
    assert_int_equal(text->index.count, 5000);
    for (int64_t i = 0; i < 5000; i += 77)
        assert_int_equal(stki_text_line(text, i), 1 + i + (i + 2) / 3 * 2);
    assert_ok(stki_container_reader(container, 0, NULL, &reader, &err));
    stki_scratch_init(&scratch);
    assert_status(reader->ops->read(reader, 4321, NULL, &scratch, &t, &err), STK_E_CORRUPT);
    assert_says("line 7204, byte 10");
    assert_int_equal(err.record, 4321);
    assert_status(reader->ops->shape(reader, 4321, shape, &err), STK_E_CORRUPT);
    assert_status(reader->ops->shape(reader, 5000, shape, &err), STK_E_RANGE);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_container_release(container);
}

/* ---- JSON ---- */

static enum stki_json_found find_text(const char *line, int64_t length, stki_json_problem *problem)
{
    stki_json_want want = {.key = "text"};

    stki_json_find_all(line, length, &want, 1);
    *problem = want.problem;
    return want.found;
}

static void test_json_refused(void **state)
{
    static const struct {
        const char *line;
        int64_t at;
        const char *what;
    } cases[] = {
        {"", 0, "a value"},
        {"{", 1, "a key"},
        {"{\"text\"", 7, "a colon"},
        {"{\"text\":", 8, "a value"},
        {"{\"text\":\"a\"", 11, "a comma or }"},
        {"{\"text\":\"a\",}", 12, "a key"},
        {"{\"text\":\"a\"} x", 13, "the end of the line after"},
        {"{\"text\":\"a", 10, "the end of a string"},
        {"{\"text\":\"a\\", 11, "the end of a string"},
        {"{\"text\":\"\\x\"}", 9, "escapes"},
        {"{\"text\":\"\\u12g4\"}", 9, "four digits"},
        {"{\"text\":\"\\ud800\"}", 9, "surrogate"},
        {"{\"text\":\"\\ud800\\u0041\"}", 9, "surrogate"},
        {"{\"text\":\"\\udc00\\ud800\"}", 9, "surrogate"},
        {"{\"text\":\"a\x01\"}", 10, "control"},
        {"{\"text\":\"\xff\"}", 9, "UTF-8"},
        {"{\"text\":\"\xed\xa0\x80\"}", 9, "UTF-8"},
        {"{\"text\":\"\xc0\xaf\"}", 9, "UTF-8"},
        {"{'text':1}", 1, "a key in quotes"},
        {"[1,]", 3, "a value"},
        {"[1 2]", 3, "a comma or ]"},
        {"01", 1, "the end of the line after"},
        {"1.", 2, "a digit"},
        {"-", 1, "a digit"},
        {"+1", 0, "a value"},
        {"1e", 2, "a digit"},
        {"Nan", 0, "a value"},
        {"+NaN", 0, "a value"},
        {"-NaN", 1, "a digit"},
        {"-Inf", 1, "a value"},
        {"nulL", 0, "a value"},
        {"tru", 0, "a value"},
        {"a value", 0, "a value"},
    };
    stki_json_problem problem;
    char deep[400] = "";

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t length = (int64_t)strlen(cases[i].line);
        /* of exactly this size, so that sanitizers detect accesses outside */
        char *line = malloc((size_t)length + 1);

        memcpy(line, cases[i].line, (size_t)length);
        assert_int_equal(find_text(line, length, &problem), STKI_JSON_BROKEN);
        if (problem.at != cases[i].at || !strstr(problem.what, cases[i].what))
            fail_msg("%s: found byte %d, %s", cases[i].line, (int)problem.at, problem.what);
        assert_null(json_loadb(line, (size_t)length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        free(line);
    }
    memset(deep, '[', 129);
    assert_int_equal(find_text(deep, 129, &problem), STKI_JSON_BROKEN);
    assert_non_null(strstr(problem.what, "128"));
    memset(deep + 127, ']', 127);
    assert_int_equal(find_text(deep, 254, &problem), STKI_JSON_MISSING);
    assert_int_equal(find_text("{\"text\":[1]}", 12, &problem), STKI_JSON_LIST);
    assert_string_equal(problem.what, "a list");
    assert_int_equal(find_text("{\"tex\":\"a\"}", 11, &problem), STKI_JSON_MISSING);
    assert_int_equal(find_text("\"text\"", 6, &problem), STKI_JSON_MISSING);
    assert_int_equal(find_text("{\"text\":\"a\",\"text\":1}", 21, &problem), STKI_JSON_NUMBER);
}

static stk_status run(const char *path, const char *source, const char *more, stk_error *err)
{
    char text[1024];
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;

    snprintf(text, sizeof text, "dataset: {fields: {x: {path: %s, source: {%s}}}}\nloader: {batch_size: 3, %s}", path,
             source, more);
    status = stk_loader_open_text(text, NULL, NULL, 0, &loader, err);
    if (status != STK_OK)
        return status;
    while ((status = stk_loader_next(loader, &batch, err)) == STK_OK)
        stk_batch_release(batch);
    stk_loader_destroy(loader);
    return status;
}

static void test_refused(void **state)
{
    static const struct {
        const char *bytes, *says;
        size_t size;
    } files[] = {{"\x1f\x8b\x08 a", "gunzip", 5},
                 {"\x28\xb5\x2f\xfd", "unzstd", 4},
                 {"BZh91AY&SY", "bunzip2", 10},
                 {"\xfd"
                  "7zXZ",
                  "unxz", 5},
                 {"\xff\xfe"
                  "a\0",
                  "UTF-8", 4}};
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (int json = 0; json < 2; json++) {
            const char *name = json ? "bad.jsonl" : "bad.txt";

            stkt_write_file(stkt_path(name), files[i].bytes, files[i].size);
            assert_status(run(stkt_path(name), "", "", &err), STK_E_UNSUPPORTED);
            assert_says(files[i].says);
            assert_says(name);
        }
    /* Letters that occur in other formats' signatures, after the first bytes. */
    stkt_write_file(stkt_path("webp.txt"), "Convert WEBP\n", 13);
    assert_status(run(stkt_path("webp.txt"), "", "", &err), STK_END);
    stkt_write_file(stkt_path("ftyp.csv"), "idx,ftype,y\n1,2,3\n", 18);
    assert_status(run(stkt_path("ftyp.csv"), "name: ftype", "", &err), STK_END);
    stkt_write_file(stkt_path("lines.txt"), "short\na longer line\n", 20);
    assert_status(run(stkt_path("lines.txt"), "max_bytes: 12", "", &err), STK_E_LIMIT);
    assert_says("max_bytes");
    assert_status(run(stkt_path("lines.txt"), "max_bytes: 13", "", &err), STK_END);
    assert_status(run(stkt_path("lines.txt"), "max_bytes: 5", "on_error: skip, max_error_fraction: 1", &err), STK_END);
    assert_status(run(stkt_path("lines.txt"), "separator: \"\"", "", &err), STK_E_CONFIG);
    assert_status(run(stkt_path("lines.txt"), "separator: a, unit: line", "", &err), STK_E_CONFIG);
    assert_says("separator");
    assert_status(run(stkt_path("lines.txt"), "unit: word", "", &err), STK_E_CONFIG);
    assert_status(run(stkt_path("lines.txt"), "dtype: i32", "", &err), STK_E_CONFIG);
    assert_says("dtype");
    assert_status(run(stkt_path("lines.txt"), "format: jsonl", "", &err), STK_E_CORRUPT);
    assert_says("lines.txt: record 0: offset 0: line 1, byte 1");
    assert_status(run(stkt_path("lines.txt"), "key: text", "", &err), STK_E_CONFIG);
    assert_says("jsonl");
    assert_status(run(FOLDER "/many.jsonl", "unit: paragraph", "", &err), STK_E_CONFIG);
    assert_says("is for text");
    assert_status(run(FOLDER "/key.jsonl", "", "", &err), STK_E_MISMATCH);
    assert_says("a number");
    assert_status(run(FOLDER "/key.jsonl", "key: other", "", &err), STK_E_NOT_FOUND);
    assert_says("\"other\" (source.key)");
    assert_says("content or text");
    assert_status(run(FOLDER "/key.jsonl", "key: contnet", "", &err), STK_E_NOT_FOUND);
    assert_says("did you mean content?");
    stkt_write_file(stkt_path("boolean.jsonl"), "{\"x\":true}\n", 11);
    assert_status(run(stkt_path("boolean.jsonl"), "", "", &err), STK_E_MISMATCH);
    assert_says("store booleans as 0 and 1");
    stkt_write_file(stkt_path("list.jsonl"), "[1]\n", 4);
    assert_status(run(stkt_path("list.jsonl"), "", "", &err), STK_E_NOT_FOUND);
    assert_says("the name of the field");
    assert_status(run(FOLDER "/key.jsonl", "key: content, max_bytes: 1", "", &err), STK_E_LIMIT);
}

/* A field that converts its samples must not deliver the character codes of text as numbers. */
static void test_text_for_numbers(void **state)
{
    static const char *const asks[] = {"dtype: f32", "dtype: i64", "transforms: [{scale: 2}]", "dtype: u8"};
    static const struct {
        const char *file, *source;
    } files[] = {{"numbers.txt", ""},
                 {"numbers.jsonl", "key: v"},
                 {STKT_TESTS_DIR "/data/hdf5/values.h5", "name: /string"},
                 {STKT_TESTS_DIR "/data/hdf5/values.h5", "name: /fixed"}};

    (void)state;
    stkt_write_file(stkt_path("numbers.txt"), "3.5\n4.5\n", 8);
    stkt_write_file(stkt_path("numbers.jsonl"), "{\"v\":\"3.5\"}\n{\"v\":\"4.5\"}\n", 24);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (size_t k = 0; k < sizeof asks / sizeof asks[0]; k++) {
            const char *path = files[i].file[0] == '/' ? files[i].file : stkt_path(files[i].file);
            char text[1024];
            stk_loader *loader = NULL;
            stk_error err;
            stk_status status;

            snprintf(text, sizeof text,
                     "dataset: {fields: {price: {path: %s, source: {%s}, %s}}}\nloader: {batch_size: 1}", path,
                     files[i].source, asks[k]);
            status = stk_loader_open_text(text, NULL, NULL, 0, &loader, &err);
            stk_loader_destroy(loader);
            if (strcmp(asks[k], "dtype: u8") == 0) { /* the characters */
                assert_ok(status);
                continue;
            }
            assert_int_equal(status, STK_E_MISMATCH);
            assert_string_equal(err.file, path);
            assert_string_equal(err.found, "strings");
            assert_says("field price");
            assert_says("dtype: uint8");
        }
}

/* A file is truncated or written to while it is open. */
static void test_changes(void **state)
{
    static char bytes[64 << 10];

    (void)state;
    (void)signal(SIGBUS, SIG_DFL); /* removes cmocka's handler; the next mapping installs the library's */
    memset(bytes, 'a', sizeof bytes);
    for (size_t i = 99; i < sizeof bytes; i += 100)
        bytes[i] = '\n';
    for (int pread = 0; pread < 2; pread++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        stkt_write_file(stkt_path("cut.txt"), bytes, sizeof bytes);
        assert_int_equal(stkt_open(&loader,
                                   "dataset: {fields: {x: {path: %s}}}\n"
                                   "loader: {batch_size: 600, num_workers: 0, prefetch: 1, access: %s}",
                                   stkt_path("cut.txt"), pread ? "pread" : "mmap"),
                         STK_OK);
        assert_int_equal(truncate(stkt_path("cut.txt"), 5000), 0);
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_TRUNCATED);
        assert_says("cut.txt");
        stk_loader_destroy(loader);
    }
}

static void test_no_memory(void **state)
{
    static const char *const sources[][2] = {{"/plain.txt", ""},
                                             {"/plain.txt", "unit: paragraph"},
                                             {"/documents.txt", "separator: \"<|endoftext|>\""},
                                             {"/many.jsonl", ""}};
    char path[512];
    stk_error err;

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int pread = 0; pread < 2; pread++)
            for (int n = 1;; n++) {
                stk_status status;

                snprintf(path, sizeof path, FOLDER "%s", sources[i][0]);
                memset(&err, 0, sizeof err);
                stki_memory_fail_at(n);
                status = run(path, sources[i][1], pread ? "num_workers: 0, access: pread" : "num_workers: 0", &err);
                stki_memory_fail_at(0);
                if (status == STK_END && n > 100)
                    break;
                if (status != STK_E_MEMORY && status != STK_END)
                    fail_msg("%s: allocation %d: %s: %s", path, n, stk_status_name(status), err.message);
            }
}

/* Shards of text, and a pattern that matches files which are one sample each. */
static void test_shards(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    mkdir(stkt_path("shards"), 0755);
    stkt_write_file(stkt_path("shards/a.txt"), "one\ntwo\n", 8);
    stkt_write_file(stkt_path("shards/b.txt"), "", 0);
    stkt_write_file(stkt_path("shards/c.txt"), "three", 5);
    assert_int_equal(
        stkt_open(&loader, "dataset: {fields: {x: {path: '%s/*.txt'}}}\nloader: {batch_size: 9}", stkt_path("shards")),
        STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_rows(batch), 3);
    assert_ok(stk_batch_tensor(batch, "x.values", &t, &err));
    assert_memory_equal(t.data, "onetwothree", 11);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {x: {path: '%s/*.txt', source: {unit: file}, pad: batch}}}\n"
                               "loader: {batch_size: 9}",
                               stkt_path("shards")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    assert_int_equal(t.shape[0], 3);
    assert_int_equal(t.shape[1], 8);
    assert_memory_equal(t.data, "one\ntwo\n\0\0\0\0\0\0\0\0three\0\0\0", 24);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* A different unit changes what a sample is, so it makes a different data set. */
static void test_position(void **state)
{
    char text[1024];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_int_equal(
        stkt_open(&loader, "dataset: {fields: {x: {path: " FOLDER "/no_end.txt}}}\nloader: {batch_size: 1}%s", ""),
        STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    assert_ok(stk_loader_save_file(loader, stkt_path("position"), &err));
    stk_loader_destroy(loader);
    snprintf(text, sizeof text,
             "dataset: {fields: {x: {path: " FOLDER "/no_end.txt, source: {separator: two}}}}\n"
             "loader: {batch_size: 1, resume_from: %s}",
             stkt_path("position"));
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),        cmocka_unit_test(test_across_pieces),
        cmocka_unit_test(test_line_numbers), cmocka_unit_test(test_json_refused),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_text_for_numbers),
        cmocka_unit_test(test_changes),      cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_shards),       cmocka_unit_test(test_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
