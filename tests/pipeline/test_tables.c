/* stki-threads */
/* Tables of text (CSV) in loaders: columns of numbers, strings, class names, and names of files that are the samples.
 * The expected cells, read by Python's csv module, are in tables/cases.tsv. */
#include "allocate.h"
#include "container.h"
#include "csv.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_test.h"
#include "sha256.h"
#include <signal.h>

#define FOLDER STKT_TESTS_DIR "/pipeline/tables"

/* ---- the cases ---- */

static void add_texts(stkt_sha256 *sum, const stk_batch *batch)
{
    stk_tensor values, t;
    stk_error err;
    const int64_t *offsets;

    assert_ok(stk_batch_tensor(batch, "x.values", &values, &err));
    assert_ok(stk_batch_tensor(batch, "x.offsets", &t, &err));
    assert_int_equal(values.dtype, STK_U8);
    offsets = t.data;
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        const int64_t bytes = offsets[r + 1] - offsets[r];

        stkt_sha256_add(sum, &bytes, 8);
        stkt_sha256_add(sum, (char *)values.data + offsets[r], (size_t)bytes);
    }
}

static void check_case(char *const *columns, const char *way)
{
    const bool text = strcmp(columns[3], "u8") == 0;
    stkt_sha256 sum;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t seen = 0;
    char found[65];

    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {x: {path: %s/%s, source: {name: %s%s%s}}}}\n"
                               "loader: {batch_size: 7, allow_empty: true, %s}",
                               FOLDER, columns[0], columns[1], columns[2][0] ? ", " : "", columns[2], way),
                     STK_OK);
    stkt_sha256_init(&sum);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t;

        if (text) {
            add_texts(&sum, batch);
        } else {
            assert_ok(stk_batch_tensor(batch, "x", &t, &err));
            assert_int_equal(t.dtype, stk_dtype_find(columns[3]));
            assert_int_equal(t.ndim, 1);
            stkt_sha256_add(&sum, t.data, (size_t)t.shape[0] * 8);
        }
        seen += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s, %s: %s", columns[0], columns[1], err.message);
    stk_loader_destroy(loader);
    stkt_sha256_end(&sum, found);
    if (seen != atoll(columns[4]) || strcmp(found, columns[5]) != 0)
        fail_msg("%s, %s, %s, %s: found %d records, expected %s, or the values differ", columns[0], columns[1],
                 columns[2], way, (int)seen, columns[4]);
}

static void test_cases(void **state)
{
    static const char *const ways[] = {"num_workers: 0", "num_workers: 3", "num_workers: 2, access: pread"};
    FILE *file = fopen(FOLDER "/cases.tsv", "r");
    char line[1024];
    int count = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *at = line, *columns[6];

        for (int i = 0; i < 6; i++)
            columns[i] = strsep(&at, "\t\n");
        for (int w = 0; w < 3; w++)
            check_case(columns, ways[w]);
        count++;
    }
    fclose(file);
    assert_true(count > 60);
}

/* A field reads the column that has its name. Columns are the members of the container. */
static void test_members(void **state)
{
    stki_container *container;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    assert_ok(stki_container_open(FOLDER "/unix.csv", NULL, &container, &err));
    assert_string_equal(container->ops->format, "csv");
    assert_int_equal(container->member_count, 5);
    assert_string_equal(container->members[0].name, "path");
    assert_int_equal(container->members[0].kind, STKI_MEMBER_RECORDS);
    assert_int_equal(container->members[1].dtype, STK_I64);
    assert_int_equal(container->members[2].dtype, STK_F64);
    assert_int_equal(container->members[2].shape[0], 60);
    stki_container_release(container);
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {label: {path: " FOLDER "/unix.csv}, w: {path: " FOLDER
                               "/unix.csv, source: {name: weight}, dtype: f32}}}\nloader: {batch_size: 60}%s",
                               ""),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "label", &t, &err));
    for (int64_t i = 0; i < 60; i++)
        assert_int_equal(((int64_t *)t.data)[i], i * i - 100);
    assert_ok(stk_batch_tensor(batch, "w", &t, &err));
    assert_int_equal(t.dtype, STK_F32);
    assert_true(((float *)t.data)[3] == 3);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Records and quotes at every position around the boundaries of the blocks in which a file is read. */
static void test_across_pieces(void **state)
{
    enum { PIECE = 1 << 20 };
    static char bytes[PIECE + 64];

    (void)state;
    for (int shift = -9; shift <= 9; shift++) {
        const char middle[] = "\"\"x\r\n\",7\r\n\"b\"\"\",8";
        const size_t at = (size_t)(PIECE + shift - 8);

        memset(bytes, 'a', sizeof bytes);
        memcpy(bytes, "t,n\n\"", 5);
        memcpy(bytes + at, middle, sizeof middle - 1);
        stkt_write_file(stkt_path("long.csv"), bytes, at + sizeof middle - 1);
        for (int pread = 0; pread < 2; pread++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_tensor values, offsets, n;
            stk_error err;

            assert_int_equal(stkt_open(&loader,
                                       "dataset: {fields: {t: {path: %s}, n: {path: %s}}}\n"
                                       "loader: {batch_size: 2, num_workers: 0, access: %s}",
                                       stkt_path("long.csv"), stkt_path("long.csv"), pread ? "pread" : "mmap"),
                             STK_OK);
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "t.values", &values, &err));
            assert_ok(stk_batch_tensor(batch, "t.offsets", &offsets, &err));
            assert_ok(stk_batch_tensor(batch, "n", &n, &err));
            assert_memory_equal(n.data, ((int64_t[]){7, 8}), 16);
            assert_int_equal(((int64_t *)offsets.data)[1], at - 5 + 4); /* one quote of the two, x, CR, LF */
            assert_int_equal(((int64_t *)offsets.data)[2], at - 5 + 6);
            assert_memory_equal((char *)values.data + at - 5, "\"x\r\nb\"", 6);
            stk_batch_release(batch);
            stk_loader_destroy(loader);
        }
    }
}

/* ---- files ---- */

static void test_files(void **state)
{
    static const char *const kinds[] = {"images", "bytes", "arrays"};
    char table[1024] = "file,array,text,label\n", name[64], line[192];
    stkt_bytes images[5];

    (void)state;
    mkdir(stkt_path("set"), 0755);
    for (int i = 0; i < 5; i++) {
        const int32_t numbers[3] = {i, 10 * i, -i};

        images[i] = stkt_jpeg_make(&(stkt_jpeg){.width = 20 + i, .height = 30 - i});
        snprintf(name, sizeof name, "set/%c,%d.jpg", 'e' - i, i);
        stkt_write_file(stkt_path(name), images[i].data, images[i].size);
        snprintf(name, sizeof name, "set/%d.npy", i);
        stkt_write_npy(stkt_path(name), "<i4", "False", "(3,)", 64, numbers, sizeof numbers);
        snprintf(name, sizeof name, "set/%d.txt", i);
        stkt_write_file(stkt_path(name), "some text", (size_t)i);
        snprintf(line, sizeof line, "\"set/%c,%d.jpg\",set/%d.npy,%s/set/%d.txt,%d\n", 'e' - i, i, i,
                 i % 2 ? stkt_dir : ".", i, i);
        strcat(table, line);
    }
    stkt_write_file(stkt_path("set.csv"), table, strlen(table));
    for (int k = 0; k < 3; k++)
        for (int workers = 0; workers <= 2; workers += 2) {
            const char *path = stkt_path("set.csv");
            stk_loader *loader;
            stk_batch *batch;
            stk_tensor t, offsets, label;
            stk_error err;

            assert_int_equal(
                stkt_open(&loader,
                          "dataset: {fields: {x: {path: %s, source: {name: %s, files: %s}, transforms: %s}, label: "
                          "{path: %s}, t: {path: %s, source: {name: text, files: bytes}}}}\n"
                          "loader: {batch_size: 5, num_workers: %d, order: random}",
                          path, k == 2 ? "array" : "file", kinds[k], k == 0 ? "[{center_crop: 9}]" : "[]", path, path,
                          workers),
                STK_OK);
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "label", &label, &err));
            for (int64_t r = 0; r < 5; r++) {
                const int64_t i = ((int64_t *)label.data)[r];

                assert_int_equal(i, stk_batch_indices(batch)[r]);
                if (k == 0) {
                    uint8_t *whole = stkt_jpeg_plain(images[i], JCS_RGB, 1, false);
                    const int64_t top = (30 - i - 9) / 2 + ((30 - i - 9) % 2 && (30 - i - 9) / 2 % 2);
                    const int64_t left = (20 + i - 9) / 2 + ((20 + i - 9) % 2 && (20 + i - 9) / 2 % 2);

                    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
                    for (int64_t y = 0; y < 9; y++)
                        assert_memory_equal((char *)t.data + r * 243 + y * 27,
                                            whole + ((top + y) * (20 + i) + left) * 3, 27);
                    free(whole);
                } else if (k == 1) {
                    assert_ok(stk_batch_tensor(batch, "x.values", &t, &err));
                    assert_ok(stk_batch_tensor(batch, "x.offsets", &offsets, &err));
                    assert_int_equal(((int64_t *)offsets.data)[r + 1] - ((int64_t *)offsets.data)[r], images[i].size);
                    assert_memory_equal((char *)t.data + ((int64_t *)offsets.data)[r], images[i].data, images[i].size);
                } else {
                    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
                    assert_int_equal(((int32_t *)t.data)[r * 3 + 1], 10 * i);
                }
                assert_ok(stk_batch_tensor(batch, "t.offsets", &offsets, &err));
                assert_int_equal(((int64_t *)offsets.data)[r + 1] - ((int64_t *)offsets.data)[r], i);
            }
            stk_batch_release(batch);
            stk_loader_destroy(loader);
        }
    for (int i = 0; i < 5; i++)
        free(images[i].data);
}

/* More names than the initial capacity, unordered: the number of each is its position in bytewise order. */
static void test_many_classes(void **state)
{
    enum { NAMES = 5000, STEP = 1234567, RECORDS = 2 * NAMES };
    char path[300];
    FILE *file;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s", stkt_path("names.csv"));
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "class\n");
    for (int64_t i = 0; i < RECORDS; i++)
        fprintf(file, "name%05d\n", (int)(i * STEP % NAMES));
    fclose(file);
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {x: {path: %s, source: {classes: sorted}}}}\n"
                               "loader: {batch_size: %d, num_workers: 0}",
                               path, RECORDS),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    for (int64_t i = 0; i < RECORDS; i++)
        assert_int_equal(((const int64_t *)t.data)[i], i * STEP % NAMES);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* ---- rejected tables ---- */

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

static void test_broken_tables(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        stk_status status;
        const char *says;
    } cases[] = {
        {"", 0, STK_E_CORRUPT, "header line"},
        {"\n\n", 2, STK_E_CORRUPT, "header line"},
        {"x,x\n1,2\n", 8, STK_E_CORRUPT, "invalid column 2 of the header line: found x a second time"},
        {"x,y\n1,2\n\n3\n", 11, STK_E_CORRUPT, "line 4: found 1 cell, expected 2, as in the header line"},
        {"x,y\n1,2,3\n", 10, STK_E_CORRUPT, "line 2: found more cells, expected 2"},
        {"x,y\n1,a\"b\n", 10, STK_E_CORRUPT, "line 2, column 2 (y): found a quote inside a cell"},
        {"x,y\n\"a\"b,1\n", 11, STK_E_CORRUPT, "line 2, column 1 (x): found a character after the closing quote"},
        {"x,y\n1,\"a\nb\nc\n", 13, STK_E_CORRUPT, "line 2, column 2 (y): found an unclosed quote"},
        {"x,y\n1,a\rb\n", 10, STK_E_CORRUPT, "a carriage return with no line feed"},
        {"x,y\n1,2\r", 8, STK_E_CORRUPT, "a carriage return with no line feed"},
        {"x,y\n1,\0\n", 8, STK_E_CORRUPT, "a NUL byte"},
        {"x,y\n1,\"\0\"\n", 10, STK_E_CORRUPT, "a NUL byte"},
        {"\x1f\x8b\x08", 3, STK_E_UNSUPPORTED, "gunzip"},
        {"\xff\xfex\0", 4, STK_E_UNSUPPORTED, "UTF-8"},
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int pread = 0; pread < 2; pread++) {
            stkt_write_file(stkt_path("broken.csv"), cases[i].bytes, cases[i].size);
            assert_status(run(stkt_path("broken.csv"), "", pread ? "access: pread" : "access: mmap", &err),
                          cases[i].status);
            assert_says(cases[i].says);
            assert_says("broken.csv");
        }
}

static void test_refused(void **state)
{
    static const struct {
        const char *source;
        stk_status status;
        const char *says;
    } cases[] = {
        {"name: labl", STK_E_NOT_FOUND, "label"},
        {"", STK_E_CONFIG, "source: {name: …}"},
        {"name: text, dtype: i64", STK_E_CORRUPT, "column 4 (text)"},
        {"name: weight, dtype: i64", STK_E_CORRUPT, "line 3, column 3 (weight)"},
        {"name: class, dtype: f64", STK_E_CORRUPT, "a number"},
        {"name: label, dtype: f32", STK_E_MISMATCH, "the field's dtype casts"},
        {"name: class, classes: [cat, dog]", STK_E_MISMATCH, "a name in source.classes, which has 2 ("},
        {"name: class, classes: [cat, cat]", STK_E_CONFIG, "distinct names"},
        {"name: class, classes: all", STK_E_CONFIG, "sorted"},
        {"name: class, classes: sorted, files: bytes", STK_E_CONFIG, "files"},
        {"name: path, files: images", STK_E_NOT_FOUND, "images/000.jpg"},
        {"name: path, files: bytes", STK_E_NOT_FOUND, "images/000.jpg"},
        {"name: path, files: arrays", STK_E_NOT_FOUND, "images/000.jpg"},
        {"name: text, files: bytes", STK_E_CORRUPT, "a path of 1 to 4095 bytes"},
        {"name: path, delimiter: ab", STK_E_CONFIG, "one character"},
        {"name: path, delimiter: '\"'", STK_E_CONFIG, "one character"},
        {"name: text, max_bytes: 10", STK_E_LIMIT, "max_bytes"},
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_status(run(FOLDER "/dos.csv", cases[i].source, "", &err), cases[i].status);
        assert_says(cases[i].says);
    }
}

/* Returns whether a note of the loader contains this text. */
static bool has_note(const stk_loader *loader, const char *text)
{
    bool has = false;

    for (int i = 0; i < stk_loader_note_count(loader); i++)
        has = has || strstr(stk_loader_note(loader, i), text);
    return has;
}

/* A table with a delimiter other than the comma looks like a table of one column of text. */
static void test_another_delimiter(void **state)
{
    static const struct {
        const char *table, *source, *note;
    } cases[] = {
        {"a;b\n1;2\n3;4\n", "", "source.delimiter: \";\""},
        {"a\tb\n1\t2\n3\t4\n", "", "source.delimiter: \"\\t\""},
        {"a;b\n1;2\n3;4\n", "name: a, delimiter: ';'", NULL},
        {"a\n1\n3\n", "", NULL},
        {"\"a,b\"\n1\n3\n", "", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader;

        stkt_write_file(stkt_path("other.csv"), cases[i].table, strlen(cases[i].table));
        assert_int_equal(stkt_open(&loader,
                                   "dataset: {fields: {x: {path: %s, source: {%s}}}}\n"
                                   "loader: {batch_size: 2, num_workers: 0}",
                                   stkt_path("other.csv"), cases[i].source),
                         STK_OK);
        assert_int_equal(has_note(loader, "source.delimiter"), cases[i].note != NULL);
        assert_true(!cases[i].note || has_note(loader, cases[i].note));
        stk_loader_destroy(loader);
    }
}

/* An integer that float64 rounds, in a column that is float64 because of another cell. */
static void test_rounded(void **state)
{
    static const char csv[] = "id,x,other\n1,1,1\n9007199254740993,2,2.5\n,3,9007199254740993\n";
    static const char json[] = "{\"id\":null}\n{\"id\":9007199254740993}\n";
    static const struct {
        const char *file, *fields, *note;
    } cases[] = {
        {"rounded.csv", "id: {path: %s}", "line 3, column id: 9007199254740993"},
        {"rounded.csv", "id: {path: %s, source: {missing: 1}}", NULL},
        {"rounded.csv", "id: {path: %s, source: {dtype: float64}}", NULL},
        {"rounded.csv", "x: {path: %s}", NULL},
        {"rounded.csv", "x: {path: %s}, id: {path: %s}", "line 3, column id: 9007199254740993"},
        {"rounded.csv", "x: {path: %s, source: {columns: [x, other]}}", "line 4, column other: 9007199254740993"},
        {"rounded.jsonl", "id: {path: %s}", "line 2, key id: 9007199254740993"},
        {"rounded.jsonl", "id: {path: %s, source: {dtype: float64}}", NULL},
    };

    (void)state;
    stkt_write_file(stkt_path("rounded.csv"), csv, sizeof csv - 1);
    stkt_write_file(stkt_path("rounded.jsonl"), json, sizeof json - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024] = "dataset: {fields: {";
        const char *rest = cases[i].fields, *mark;
        stk_loader *loader;
        stk_error err;

        for (; (mark = strstr(rest, "%s")) != NULL; rest = mark + 2)
            sprintf(text + strlen(text), "%.*s%s", (int)(mark - rest), rest, stkt_path(cases[i].file));
        sprintf(text + strlen(text), "%s}}\nloader: {batch_size: 1}", rest);
        assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
        assert_int_equal(has_note(loader, "is rounded to float64"), cases[i].note != NULL);
        assert_true(!cases[i].note || has_note(loader, cases[i].note));
        stk_loader_destroy(loader);
    }
}

/* A cell that is not a number turns a column of numbers into text. A request for numbers must not return its character
 * codes. */
static void test_text_for_numbers(void **state)
{
    static const char *const asks[] = {"dtype: f32", "dtype: i64", "dtype: u8", "transforms: [{scale: 2}]"};
    const char table[] = "name,age\nAnn,22\n\"B\nob\",?\nEve,26\nDan,35\n";
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    stkt_write_file(stkt_path("ages.csv"), table, sizeof table - 1);
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        for (int pread = 0; pread < 2; pread++) {
            char text[512];

            snprintf(text, sizeof text,
                     "dataset: {fields: {age: {path: %s, %s}}}\nloader: {batch_size: 4, num_workers: 0, access: %s}",
                     stkt_path("ages.csv"), asks[i], pread ? "pread" : "mmap");
            assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_MISMATCH);
            assert_string_equal(err.file, stkt_path("ages.csv"));
            assert_int_equal(err.record, 1);
            assert_says("line 3, column 2 (age)");
            assert_says("found ?");
            assert_says("source: {dtype: uint8}");
        }
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {age: {path: %s, source: {dtype: u8}, dtype: i32}}}\n"
                               "loader: {batch_size: 4, num_workers: 0}",
                               stkt_path("ages.csv")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "age.values", &t, &err));
    assert_int_equal(t.shape[0], 7); /* requested explicitly */
    assert_int_equal(((int32_t *)t.data)[0], '2');
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Opens a table with the field `label`. If that succeeds, reads its first row of integers as int64. */
static stk_status open_labels(const char *table, const char *field, int64_t *values, stk_error *cause)
{
    char config[512];
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t, wide;
    stk_error err;
    stk_status status;

    stkt_write_file(stkt_path("labels.csv"), table, strlen(table));
    snprintf(config, sizeof config,
             "dataset: {fields: {label: {path: %s, %s}}}\nloader: {batch_size: 4, num_workers: 0}",
             stkt_path("labels.csv"), field);
    status = stk_loader_open_text(config, NULL, NULL, 0, &loader, cause);
    if (status != STK_OK)
        return status;
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "label", &t, &err));
    assert_ok(stk_tensor_to(&t, STK_I64, &wide, &err));
    memcpy(values, wide.data, (size_t)stk_tensor_nbytes(&wide));
    stk_tensor_release(&wide);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    return STK_OK;
}

/* A field with an integer dtype must have the numbers of the table. The cast of a batch alone would wrap 300 to 44 in
 * uint8, and turn a missing cell into 0 and 2.9 into 2. */
static void test_integer_fields(void **state)
{
    static const struct {
        const char *table, *field, *found, *says;
        int64_t record, values[4];
    } cases[] = {
        {"id,label\n1,3\n2,\n", "dtype: int64", "an empty cell", "source.missing", 1, {0}},
        {"id,label\n1,3\n2,NA\n", "dtype: int16", "NA", "source.missing", 1, {0}},
        {"id,label\n1,3\n2,2.9\n", "dtype: int64", "2.9", "int64", 1, {0}},
        {"id,label\n1,3\n2,300\n", "dtype: uint8", "300", "uint8", 1, {0}},
        {"id,label\n1,3\n2,300\n3,\n", "dtype: uint8, source: {missing: 0}", "300", "uint8", 1, {0}},
        {"id,label\n1,3\n2,\n", "dtype: uint8, source: {missing: -1}", "an empty cell", "uint8", 1, {0}},
        {"id,label\n1,3\n2,\n", "dtype: int8, source: {missing: 0.5}", "an empty cell", "source.missing", 1, {0}},
        {"id,label\n1,-1\n", "dtype: uint16", "-1", "uint16", 0, {0}},
        {"id,label\n1,-129\n", "dtype: int8", "-129", "int8", 0, {0}},
        {"id,label\n1,2147483648\n", "dtype: int32", "2147483648", "int32", 0, {0}},
        {"id,label\n1,1e19\n", "dtype: int64", "1e19", "int64", 0, {0}},
        {"id,label\n1,2\n", "dtype: bool", "2", "bool", 0, {0}},
        {"id,label\n1,2\n2,inf\n", "dtype: int32", "inf", "int32", 1, {0}},
        {"id,label\n1,300\n", "dtype: uint8, source: {dtype: int64}", "300", "uint8", 0, {0}},
        {"id,label\n1,3\n2,\n", "dtype: int64, source: {dtype: float64}", "an empty cell", "source.missing", 1, {0}},
        {"id,label\n1,2.5\n", "dtype: int64, source: {dtype: float64}", "2.5", "int64", 0, {0}},
        {"id,label\n1,3\n2,\n", "transforms: [{cast: int64}]", "an empty cell", "source.missing", 1, {0}},
        {"id,label\n1,2.9\n", "transforms: [{reshape: [1]}], dtype: int64", "2.9", "int64", 0, {0}},
        {"id,label\n1,2.9\n", "source: {columns: [id, label]}, dtype: int64", "2.9", "int64", 0, {0}},
        {"id,label\n1,-128\n2,127\n", "dtype: int8", NULL, NULL, 0, {-128, 127}},
        {"id,label\n1,0\n2,255\n", "dtype: uint8", NULL, NULL, 0, {0, 255}},
        {"id,label\n1,0\n2,1\n", "dtype: bool", NULL, NULL, 0, {0, 1}},
        {"id,label\n1,3.0\n2,1e2\n", "dtype: uint8", NULL, NULL, 0, {3, 100}}, /* as pandas writes floats */
        {"id,label\n1,3\n2,\n3,4\n", "dtype: int64, source: {missing: -1}", NULL, NULL, 0, {3, -1, 4}},
        {"id,label\n1,9007199254740993\n2,\n",
         "dtype: int64, source: {missing: 0}",
         NULL,
         NULL,
         0,
         {9007199254740993, 0}}, /* 2^53 + 1 */
        {"id,label\n1,3.0\n", "source: {columns: [label, id]}, dtype: int32", NULL, NULL, 0, {3, 1}},
        {"id,label\n1,2.9\n2,\n",
         "dtype: int32, source: {missing: 4}, transforms: [{scale: 10}]",
         NULL,
         NULL,
         0,
         {29, 40}}, /* arithmetic rounds */
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t values[4] = {0};

        if (!cases[i].found) {
            assert_ok(open_labels(cases[i].table, cases[i].field, values, &err));
            assert_memory_equal(values, cases[i].values, sizeof values);
            continue;
        }
        assert_status(open_labels(cases[i].table, cases[i].field, values, &err), STK_E_CORRUPT);
        assert_string_equal(err.found, cases[i].found);
        assert_int_equal(err.record, cases[i].record);
        assert_says(cases[i].says);
    }
}

/* An integer beyond 64 bits makes a column text. The error says how to read it as a number. */
static void test_large_integers(void **state)
{
    static const char table[] = "id,label\n1,3\n2,99999999999999999999\n";
    int64_t values[4] = {0};
    stk_error err;

    (void)state;
    assert_status(open_labels(table, "dtype: float64", values, &err), STK_E_MISMATCH);
    assert_int_equal(err.record, 1);
    assert_says("source: {dtype: float64}");
    assert_status(open_labels(table, "dtype: int64", values, &err), STK_E_MISMATCH);
    assert_null(strstr(err.message, "float64"));
}

/* The memory for a huge unterminated cell is limited. */
static void test_record_limit(void **state)
{
    FILE *file = fopen(stkt_path("limit.csv"), "w");
    stk_error err;

    (void)state;
    fputs("x,y\n1,\"", file);
    fclose(file);
    assert_int_equal(truncate(stkt_path("limit.csv"), INT64_C(200) << 20), 0); /* a hole, which takes no space */
    assert_status(run(stkt_path("limit.csv"), "name: x", "access: pread", &err), STK_E_LIMIT);
    assert_says("line 2");
    assert_says("64 MiB");
}

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

        stkt_write_file(stkt_path("cut.csv"), bytes, sizeof bytes);
        assert_int_equal(stkt_open(&loader,
                                   "dataset: {fields: {x: {path: %s}}}\n"
                                   "loader: {batch_size: 600, num_workers: 0, prefetch: 1, access: %s}",
                                   stkt_path("cut.csv"), pread ? "pread" : "mmap"),
                         STK_OK);
        assert_int_equal(truncate(stkt_path("cut.csv"), 5000), 0);
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_TRUNCATED);
        assert_says("cut.csv");
        stk_loader_destroy(loader);
    }
}

static void test_no_memory(void **state)
{
    static const char *const sources[] = {"name: text", "name: weight", "name: class, classes: sorted",
                                          "name: class, classes: [cat, dog, Zebra, éclair, ant]"};
    stk_error err;

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int pread = 0; pread < 2; pread++)
            for (int n = 1;; n++) {
                stk_status status;

                memset(&err, 0, sizeof err);
                stki_memory_fail_at(n);
                status = run(FOLDER "/dos.csv", sources[i], pread ? "num_workers: 0, access: pread" : "num_workers: 0",
                             &err);
                stki_memory_fail_at(0);
                if (status == STK_END && n > 120)
                    break;
                if (status != STK_E_MEMORY && status != STK_END)
                    fail_msg("%s: allocation %d: %s: %s", sources[i], n, stk_status_name(status), err.message);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_across_pieces),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_many_classes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_another_delimiter),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_text_for_numbers),
        cmocka_unit_test(test_integer_fields),
        cmocka_unit_test(test_large_integers),
        cmocka_unit_test(test_broken_tables),
        cmocka_unit_test(test_record_limit),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
