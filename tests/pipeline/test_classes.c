/* stki-threads */
/* Tests of class tables: one table per field over shards and data sets, for folders, lists, tables and JSON Lines
 * files; tables given as a list, a file, another folder or a manifest; classes that are not in the table; and jobs
 * whose outputs are loaded again. The expected numbers are positions in lists of names in this file. */
#include "allocate.h"
#include "faults.h"
#include "io_files.h"
#include "loader_test.h"
#include <stoker/stoker.h>

enum { MOST = 64, HIDDEN = -99 };

/* ---- data ---- */

/* Writes a file such as "fa/n01/a.jpg" and its folders. The images are never read: labels come from the paths. */
static void add_image(const char *path)
{
    char part[256];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(stkt_path(part), 0755) != 0)
            assert_int_equal(errno, EEXIST);
    }
    stkt_write_file(stkt_path(path), "x", 1);
}

static void add_text(const char *name, const char *text)
{
    stkt_write_file(stkt_path(name), text, strlen(text));
}

/* fa: n01 twice, n02. fb: n02, n03. fc: only n03, twice. */
static int make_data(void **state)
{
    static const char *const images[] = {"fa/n01/a.jpg", "fa/n01/b.jpg", "fa/n02/c.jpg", "fb/n02/d.jpg",
                                         "fb/n03/e.jpg", "fc/n03/f.jpg", "fc/n03/g.jpg"};
    const int64_t ids[] = {3, 1};

    (void)state;
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        add_image(images[i]);
    add_text("a.csv", "class,id\ndog,1\n\"cat, big\",2\ndog,3\n");
    add_text("b.csv", "class,id\nbee,4\ndog,5\n");
    add_text("numbers.csv", "class,id\n10,6\n9,7\n");
    add_text("a.jsonl", "{\"text\": \"dog\"}\n{\"text\": \"cat, big\"}\n");
    add_text("b.jsonl", "{\"text\": \"b\\u0065e\"}\n");
    add_text("a.lst", "x.jpg\tdog\ny z.jpg\tcat, big\n");
    add_text("b.lst", "z.jpg\tbee\n");
    add_text("two.lst", "fa/n01/a.jpg\t0\nfa/n01/b.jpg\t2\n");
    add_text("classes.txt", "dog\r\nbee\nunused\ncat, big\n\n");
    stkt_write_npy(stkt_path("two.npy"), "<i8", "False", "(2,)", 64, ids, sizeof ids);
    return 0;
}

/* ---- reading ---- */

static char *STK_PRINTF(3, 0) in_folder(char *text, size_t size, const char *format, va_list args)
{
    char raw[2048];
    size_t used = 0;

    vsnprintf(raw, sizeof raw, format, args);
    for (const char *at = raw; *at && used + 1 < size; at++)
        if (*at == '@')
            used += (size_t)snprintf(text + used, size - used, "%s/", stkt_dir);
        else
            text[used++] = *at;
    text[used] = '\0';
    return text;
}

/* @NAME in a config stands for the file NAME in the test's folder. */
static stk_status STK_PRINTF(3, 0) open_config(stk_loader **out, stk_error *err, const char *format, va_list args)
{
    char text[4096];

    return stk_loader_open_text(in_folder(text, sizeof text, format, args), NULL, NULL, 0, out, err);
}

static STK_PRINTF(3, 4) stk_status open_status(stk_loader **out, stk_error *err, const char *format, ...)
{
    stk_status status;
    va_list args;

    va_start(args, format);
    status = open_config(out, err, format, args);
    va_end(args);
    return status;
}

static STK_PRINTF(1, 2) stk_loader *open_loader(const char *format, ...)
{
    stk_loader *loader = NULL;
    stk_error err = {0};
    va_list args;

    va_start(args, format);
    assert_ok(open_config(&loader, &err, format, args));
    va_end(args);
    return loader;
}

static STK_PRINTF(4, 5) void refused(stk_status status, const char *says, const char *and_says, const char *format, ...)
{
    stk_loader *loader = NULL;
    stk_error err = {0};
    va_list args;

    va_start(args, format);
    assert_status(open_config(&loader, &err, format, args), status);
    va_end(args);
    assert_says(says);
    assert_says(and_says);
}

/* The labels of one epoch by sample number; HIDDEN if no row has the sample. Returns the number of rows. */
static int64_t read_labels(stk_loader *loader, int64_t labels[MOST])
{
    int64_t rows = 0;
    stk_batch *batch;
    stk_status status;
    stk_error err;

    for (int i = 0; i < MOST; i++)
        labels[i] = HIDDEN;
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t;

        assert_ok(stk_batch_tensor(batch, "label", &t, &err));
        for (int64_t r = 0; r < stk_batch_valid_rows(batch); r++) {
            const int64_t sample = stk_batch_indices(batch)[r];

            assert_true(sample < MOST && labels[sample] == HIDDEN);
            labels[sample] = ((int64_t *)t.data)[r];
            rows++;
        }
        stk_batch_release(batch);
    }
    assert_status(status, STK_END);
    return rows;
}

/* Checks the labels of a loader and the class names of its field `label`, given as "a b c", and destroys the loader. */
static void check(stk_loader *loader, const char *names, int64_t count, const int64_t *expected)
{
    const char *const *list;
    int64_t labels[MOST], name_count;
    char all[256] = "";
    stk_error err;
    int index = 0;

    for (stk_field_info info;
         stk_loader_field(loader, index, &info, &err) == STK_OK && strcmp(info.name, "label") != 0;)
        index++;
    assert_ok(stk_loader_classes(loader, index, &list, &name_count, &err));
    for (int64_t i = 0; i < name_count; i++) {
        strcat(all, i ? " " : "");
        strcat(all, list[i]);
    }
    assert_string_equal(all, names);
    read_labels(loader, labels);
    for (int64_t i = 0; i < count; i++)
        if (labels[i] != expected[i])
            fail_msg("sample %d: found label %d, expected %d", (int)i, (int)labels[i], (int)expected[i]);
    stk_loader_destroy(loader);
}
#define CHECK(loader, names, ...) check(loader, names, sizeof(int64_t[]){__VA_ARGS__} / 8, (int64_t[]){__VA_ARGS__})

/* ---- one table ---- */

static void test_folders(void **state)
{
    static const char *const ways[] = {"num_workers: 0", "num_workers: 3, order: random", "access: pread"};

    (void)state;
    for (int w = 0; w < 3; w++) {
        CHECK(open_loader("dataset: {fields: {label: {path: [@fa, @fb]}}}\nloader: {batch_size: 2, %s}", ways[w]),
              "n01 n02 n03", 0, 0, 1, 1, 2);
        CHECK(open_loader("dataset: {fields: {label: {path: [@fb, @fa], dtype: i64}}}\nloader: {batch_size: 2, %s}",
                          ways[w]),
              "n01 n02 n03", 1, 2, 0, 0, 1);
        CHECK(open_loader("datasets: [{fields: {label: {path: @fa}}}, {fields: {label: {path: @fb}}}]\n"
                          "loader: {batch_size: 2, mixture_stop: all_exhausted, epoch_length: 5, %s}",
                          w == 1 ? "num_workers: 3" : ways[w]),
              "n01 n02 n03", 0, 0, 1, 1, 2);
    }
    CHECK(open_loader("dataset: {fields: {label: {path: @fb}}}\nloader: {batch_size: 2}"), "n02 n03", 0, 1);
}

/* Two fields for the same folder with different tables, and a field without one. */
static void test_fields_apart(void **state)
{
    stk_loader *loader =
        open_loader("dataset: {fields: {label: {path: @fb, source: {classes: [n03, x, n02]}}, other: "
                    "{path: @fb, source: {name: label}}, path: {path: @fb}}}\nloader: {batch_size: 2}");
    const char *const *names;
    int64_t count;
    stk_batch *batch;
    stk_tensor t;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "label", &t, &err));
    assert_memory_equal(t.data, ((int64_t[]){2, 0}), 16);
    assert_ok(stk_batch_tensor(batch, "other", &t, &err));
    assert_memory_equal(t.data, ((int64_t[]){0, 1}), 16);
    stk_batch_release(batch);
    assert_ok(stk_loader_classes(loader, 1, &names, &count, &err));
    assert_int_equal(count, 2);
    assert_ok(stk_loader_classes(loader, 2, &names, &count, &err));
    assert_int_equal(count, 0);
    assert_null(names);
    assert_status(stk_loader_classes(loader, 3, &names, &count, &err), STK_E_RANGE);
    assert_status(stk_loader_classes(loader, 0, NULL, &count, &err), STK_E_BAD_ARG);
    stk_loader_destroy(loader);
}

/* The same names in tables, lines of JSON and lists of images. The first file is b, whose class names do not sort
 * first. */
static void test_texts(void **state)
{
    static const struct {
        const char *ending, *name;
    } kinds[] = {{"csv", "class"}, {"jsonl", "text"}, {"lst", "label"}};

    (void)state;
    for (int k = 0; k < 3; k++)
        for (int pread = 0; pread < 2; pread++) {
            const char *ending = kinds[k].ending, *access = pread ? "pread" : "mmap";
            stk_loader *loader =
                open_loader("dataset: {fields: {label: {path: [@b.%s, @a.%s], source: {name: %s, classes: "
                            "sorted}}}}\nloader: {batch_size: 9, access: %s}",
                            ending, ending, kinds[k].name, access);

            if (k == 0)
                CHECK(loader, "bee cat, big dog", 0, 2, 2, 1, 2);
            else
                CHECK(loader, "bee cat, big dog", 0, 2, 1);
            CHECK(open_loader("dataset: {fields: {label: {path: @a.%s, source: {name: %s, classes: sorted}}}}\nloader: "
                              "{access: %s}",
                              ending, kinds[k].name, access),
                  "cat, big dog", 1, 0);
        }
}

/* Tables that are given in the config keep their order. */
static void test_given(void **state)
{
    static const char *const tables[] = {"[dog, bee, unused, 'cat, big']", "@classes.txt", "{from: @classes.txt}",
                                         "{from: [@classes.txt]}"};

    (void)state;
    for (int i = 0; i < 4; i++)
        CHECK(open_loader("dataset: {fields: {label: {path: [@a.csv, @b.csv], source: {name: class, classes: %s}}}}",
                          tables[i]),
              "dog bee unused cat, big", 0, 3, 0, 1, 0);
    /* the validation set has only one class, which keeps its number from the training set */
    CHECK(open_loader("dataset: {fields: {label: {path: @fc, source: {classes: {from: [@fa, @fb]}}}}}"), "n01 n02 n03",
          2, 2);
    CHECK(open_loader("dataset: {fields: {label: {path: @fc, source: {classes: {from: '@f[ab]'}}}}}"), "n01 n02 n03", 2,
          2);
    CHECK(open_loader("dataset: {fields: {label: {path: @b.csv, source: {name: class, classes: {from: [@a.csv, "
                      "@b.csv]}}}}}"),
          "bee cat, big dog", 0, 2);
    CHECK(open_loader("dataset: {fields: {label: {path: @b.jsonl, source: {classes: {from: [@a.jsonl, @b.lst]}}}}}"),
          "bee cat, big dog", 0);
}

/* Class numbers are never renumbered, whether or not other files of the field have class names. */
static void test_numbers(void **state)
{
    stk_loader *loader;

    (void)state;
    CHECK(open_loader("dataset: {fields: {label: {path: @two.npy}}}"), "", 3, 1);
    /* If other files have names, the numbers must be class numbers of the table. Here it has two classes, 0 and 1, or
     * four. */
    refused(STK_E_MISMATCH, "two.npy: record 0", "found 3", "dataset: {fields: {label: {path: [@fa, @two.npy]}}}");
    refused(STK_E_MISMATCH, "two.npy: record 0", "found 3",
            "datasets: [{fields: {label: {path: @fa}}}, {fields: {label: {path: @two.npy}}}]\n"
            "loader: {mixture_stop: all_exhausted}");
    refused(STK_E_MISMATCH, "two.lst", "found 2", "dataset: {fields: {label: {path: [@fa, @two.lst]}}}");
    loader = open_loader("dataset: {fields: {label: {path: [@fa, @two.npy], source: {classes: [n02, n01, a, b]}}}}\n"
                         "loader: {batch_size: 9}");
    assert_int_equal(stk_loader_note_count(loader), 1);
    assert_non_null(strstr(stk_loader_note(loader, 0), "two.npy"));
    CHECK(loader, "n02 n01 a b", 1, 1, 0, 3, 1);
    CHECK(open_loader("dataset: {fields: {label: {path: [@fa, @two.npy], source: {classes: [n01, n02], unknown_class: "
                      "3}}}}\nloader: {batch_size: 9}"),
          "n01 n02", 0, 0, 1, 3, 1);
    CHECK(open_loader("dataset: {fields: {label: {path: @numbers.csv, source: {name: class}}}}"), "", 10, 9);
    CHECK(open_loader("dataset: {fields: {label: {path: @numbers.csv, source: {name: class, dtype: u8, classes: "
                      "sorted}}}}"),
          "10 9", 0, 1);
    refused(STK_E_CONFIG, "numbers.csv", "uint8",
            "dataset: {fields: {label: {path: [@a.csv, @numbers.csv], source: {name: class, classes: sorted}}}}");
    refused(STK_E_CONFIG, "two.npy", "source.classes",
            "dataset: {fields: {label: {path: @two.npy, source: {classes: [a, b]}}}}");
    refused(STK_E_CONFIG, "source.classes", "label",
            "dataset: {fields: {label: {synthetic: {count: 3, shape: [], dtype: i64}, source: {classes: sorted}}}}");
    refused(STK_E_CORRUPT, "a.lst", "line 1", "dataset: {fields: {label: {path: @a.lst}}}");
}

/* ---- classes that are not in the table ---- */

static void test_unknown(void **state)
{
    stk_loader *loader;

    (void)state;
    refused(STK_E_MISMATCH, "line 3, column 1 (class)", "cat, big",
            "dataset: {fields: {label: {path: [@a.csv, @b.csv], source: {name: class, classes: [dog, bee]}}}}");
    refused(STK_E_MISMATCH, "fb/n03/e.jpg: record 1: class: found n03, expected a name in source.classes, which has 2",
            "n01, ", "dataset: {fields: {label: {path: [@fa, @fb], source: {classes: [n01, n02]}}}}");
    refused(STK_E_MISMATCH, "fa/n01/a.jpg: record 0", "did you mean N01?",
            "dataset: {fields: {label: {path: [@fa, @fb], source: {classes: [n02, N01]}}}}");
    CHECK(
        open_loader("dataset: {fields: {label: {path: [@fa, @fb], source: {classes: [n02, n01], unknown_class: -1}}}}"),
        "n02 n01", 1, 1, 0, 0, -1);
    loader =
        open_loader("dataset: {fields: {label: {path: [@fa, @fb], source: {classes: [n03], unknown_class: skip}}}}");
    assert_int_equal(stk_loader_samples(loader), 1);
    assert_non_null(strstr(stk_loader_note(loader, 0), "4 samples of 2 classes (n01, n02)"));
    CHECK(loader, "n03", HIDDEN, HIDDEN, HIDDEN, HIDDEN, 0);
    refused(STK_E_EMPTY, "skip", "5",
            "dataset: {fields: {label: {path: [@fa, @fb], source: {classes: [z], "
            "unknown_class: skip}}}}");
    refused(STK_E_CONFIG, "unknown_class", "classes",
            "dataset: {fields: {label: {path: @fa, source: {unknown_class: skip}}}}");
    refused(STK_E_CONFIG, "unknown_class", "classes",
            "dataset: {fields: {label: {path: @fa, source: {classes: sorted, unknown_class: 3}}}}");
    refused(STK_E_CONFIG, "unknown_class", "window",
            "dataset: {fields: {label: {path: @fa, source: {classes: [n01], unknown_class: skip, window: {length: "
            "2}}}}}");
}

/* uint8 holds 0 to 255, so 256 classes; float16 holds all integers up to 2048, so 2049 classes. */
static void test_dtypes(void **state)
{
    static const struct {
        int count;
        const char *dtype;
        bool fits;
    } cases[] = {{256, "u8", true},   {257, "u8", false},   {128, "i8", true},    {129, "i8", false},
                 {2049, "f16", true}, {2050, "f16", false}, {2051, "f16", false}, {2, "bool", true},
                 {3, "bool", false},  {2051, "f32", true}};
    static const char config[] =
        "dataset: {fields: {label: {path: @fc, dtype: %s, source: {classes: @long.txt, unknown_class: %s}}}}";

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = fopen(stkt_path("long.txt"), "w");

        assert_non_null(file);
        for (int n = 0; n < cases[i].count; n++)
            fprintf(file, n == 1 ? "n03\n" : "x%d\n", n);
        fclose(file);
        if (cases[i].fits)
            stk_loader_destroy(open_loader(config, cases[i].dtype, "error"));
        else
            refused(STK_E_CONFIG, "label", cases[i].dtype, config, cases[i].dtype, "error");
    }
    refused(STK_E_CONFIG, "unknown_class: found -1", "u8",
            "dataset: {fields: {label: {path: @fa, dtype: u8, source: {classes: [n01], unknown_class: -1}}}}");
    stk_loader_destroy(open_loader(
        "dataset: {fields: {label: {path: @fa, dtype: u8, source: {classes: [n01], unknown_class: 255}}}}"));
}

/* A sample that is left out of one field is left out of all fields, on every rank, also with an index list and in one
 * of two data sets. It does not count as failed. */
static void test_skip_everywhere(void **state)
{
    static const char fields[] =
        "{label: {path: [@fa, @fb], source: {classes: [n01, n03], unknown_class: skip}}, path: "
        "{path: [@fa, @fb]}}";
    int64_t labels[MOST], seen = 0;
    stk_loader *loader;
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_batch *batch;
    stk_tensor values, offsets;
    stk_error err;

    (void)state;
    loader = open_loader("dataset: {fields: %s}\nloader: {batch_size: 3, max_errors: 0, on_error: skip}", fields);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_rows(batch), 3);
    assert_memory_equal(stk_batch_indices(batch), ((int64_t[]){0, 1, 4}), 24);
    assert_ok(stk_batch_tensor(batch, "path.values", &values, &err));
    assert_ok(stk_batch_tensor(batch, "path.offsets", &offsets, &err));
    assert_memory_equal((char *)values.data + ((int64_t *)offsets.data)[2], "n03/e.jpg", 9);
    stk_batch_release(batch);
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.errors + stats.skipped, 0);
    stk_loader_destroy(loader);
    for (int rank = 0; rank < 2; rank++) {
        loader = open_loader("dataset: {fields: %s}\nloader: {batch_size: 1, rank: %d, world_size: 2, last_batch: "
                             "partial}",
                             fields, rank);
        assert_int_equal(stk_loader_samples(loader), 3);
        seen += read_labels(loader, labels);
        assert_int_equal(labels[2], HIDDEN);
        assert_int_equal(labels[3], HIDDEN);
        stk_loader_destroy(loader);
    }
    assert_int_equal(seen, 3);
    loader = open_loader("dataset: {fields: %s}\nloader: {batch_size: 1, indices: [4, 3, 1]}", fields);
    assert_int_equal(stk_loader_samples(loader), 2);
    CHECK(loader, "n01 n03", HIDDEN, 0, HIDDEN, HIDDEN, 1);
    CHECK(open_loader("datasets: [{fields: {label: {path: @fa, source: {classes: [n01, n03], unknown_class: skip}}}}, "
                      "{fields: {label: {path: @fb}}, indices: [0, 1]}]\nloader: {mixture_stop: all_exhausted, "
                      "epoch_length: 3}"),
          "n01 n03", 0, 0, HIDDEN, HIDDEN, 1);
    refused(STK_E_RANGE, "index 1 of the subset", "9", "dataset: {fields: %s}\nloader: {indices: [2, 9]}", fields);
}

/* cls: 6 images each of ant, cat and dog, with numbers 0 to 5, 6 to 11 and 12 to 17. A split applies to the 12 samples
 * that remain after skipping: its parts are disjoint and complete. */
static void test_skip_and_split(void **state)
{
    static const char config[] =
        "dataset: {fields: {label: {path: @cls, source: {classes: [dog, cat], unknown_class: skip}}}}\n"
        "loader: {batch_size: 5, last_batch: partial, %s split: {part: %s, fraction: %g, method: %s}}";
    static const struct {
        double fraction;
        const char *method, *indices;
        int64_t val, train;
    } cases[] = {{0.5, "exact", "", 6, 6},
                 {0.25, "exact, seed: 7", "", 3, 9},
                 {0.25, "contiguous", "", 3, 9},
                 {0.5, "exact", "indices: [0, 17, 16, 1, 6, 2, 7, 16, 8, 9],", 3, 4},
                 {0.5, "contiguous", "indices: [0, 17, 16, 1, 6, 2, 7, 8],", 2, 3}};
    int64_t val[MOST], train[MOST];

    (void)state;
    for (int i = 0; i < 18; i++) {
        static const char *const classes[] = {"ant", "cat", "dog"};
        char path[64];

        snprintf(path, sizeof path, "cls/%s/%02d.jpg", classes[i / 6], i);
        add_image(path);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader = open_loader(config, cases[i].indices, "val", cases[i].fraction, cases[i].method);

        if (i == 3) { /* 16 occurs twice, both times in one part: the 6 distinct samples give 3 in each part */
            const int64_t rows = stk_loader_samples(loader);

            assert_true(rows == 3 || rows == 4);
            stk_loader_destroy(loader);
            loader = open_loader(config, cases[i].indices, "train", cases[i].fraction, cases[i].method);
            assert_int_equal(stk_loader_samples(loader), 7 - rows);
            stk_loader_destroy(loader);
            continue;
        }
        assert_int_equal(read_labels(loader, val), cases[i].val);
        stk_loader_destroy(loader);
        loader = open_loader(config, cases[i].indices, "train", cases[i].fraction, cases[i].method);
        assert_int_equal(read_labels(loader, train), cases[i].train);
        stk_loader_destroy(loader);
        for (int s = 0; s < 18; s++) {
            assert_true(val[s] == HIDDEN || train[s] == HIDDEN);
            if (s < 6 || !*cases[i].indices)
                assert_int_equal(val[s] != HIDDEN || train[s] != HIDDEN, s >= 6);
            if (strcmp(cases[i].method, "contiguous") == 0 && s < (*cases[i].indices ? 16 : 15))
                assert_int_equal(val[s], HIDDEN);
        }
    }
}

/* ---- rejected configs ---- */

static void test_refused(void **state)
{
    static const struct {
        const char *classes, *says;
        stk_status status;
    } cases[] = {
        {"[]", "a list of names", STK_E_CONFIG},
        {"[dog, dog]", "distinct names", STK_E_CONFIG},
        {"[[dog]]", "classes.0", STK_E_CONFIG},
        {"{}", "from is missing", STK_E_CONFIG},
        {"{of: x}", "unknown key", STK_E_CONFIG},
        {"all", "sorted", STK_E_CONFIG},
        {"{from: @none.txt}", "none.txt", STK_E_NOT_FOUND},
        {"{from: [@classes.txt, @a.csv]}", "order", STK_E_CONFIG},
        {"{from: @two.npy}", "two.npy", STK_E_NOT_FOUND},
        {"{from: @numbers.csv}", "int64", STK_E_MISMATCH},
        {"sorted, name: id", "dtype: uint8", STK_E_CONFIG},
        {"{from: @fa/n01}", "fa/n01", STK_E_NOT_FOUND},
        {"{from: @twice.txt}", "line 3: found dog a second time", STK_E_CORRUPT},
        {"{from: @gap.txt}", "line 2: found an empty line", STK_E_CORRUPT},
        {"{from: @nothing.txt}", "found no lines", STK_E_CORRUPT},
        {"{from: @other.json}", "other.json", STK_E_CORRUPT},
        {"sorted, files: bytes", "files", STK_E_CONFIG},
        {"sorted, sample_per_file: true", "sample_per_file", STK_E_CONFIG},
    };

    (void)state;
    add_text("twice.txt", "dog\ncat\ndog\n");
    add_text("gap.txt", "dog\n\ncat\n");
    add_text("nothing.txt", "\n\n");
    add_text("other.json", "{}");
    add_text("empty.csv", "class,id\ndog,1\n,2\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader;
        stk_error err = {0};

        assert_status(open_status(&loader, &err, "dataset: {fields: {label: {path: @a.csv, source: {%sclasses: %s}}}}",
                                  strstr(cases[i].classes, "name:") ? "" : "name: class, ", cases[i].classes),
                      cases[i].status);
        assert_says(cases[i].says);
    }
    refused(STK_E_BAD_VALUE, "line 3, column 1 (class)", "empty",
            "dataset: {fields: {label: {path: @empty.csv, source: {name: class, classes: sorted}}}}");
    refused(STK_E_CONFIG, "source.classes", "data set 0",
            "datasets: [{fields: {label: {path: @fa}}}, {fields: {label: {path: @fb, source: {classes: [n02]}}}}]");
}

static void test_resume(void **state)
{
    static const char config[] =
        "dataset: {fields: {label: {path: @fa, source: {classes: %s}}}}\nloader: {batch_size: 1}";
    char bytes[4096];
    int64_t size = 0;
    stk_loader *loader = open_loader(config, "[n01, n02]");
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    assert_ok(stk_loader_save(loader, bytes, sizeof bytes, &size, &err));
    stk_loader_destroy(loader);
    loader = open_loader(config, "sorted"); /* the same table, given differently */
    assert_ok(stk_loader_restore(loader, bytes, size, &err));
    stk_loader_destroy(loader);
    loader = open_loader(config, "[n02, n01]");
    assert_status(stk_loader_restore(loader, bytes, size, &err), STK_E_MISMATCH);
    stk_loader_destroy(loader);
}

/* ---- jobs and their outputs ---- */

static json_t *load_json(const char *name)
{
    json_error_t error;
    json_t *json = json_load_file(stkt_path(name), 0, &error);

    assert_non_null(json);
    return json;
}

static STK_PRINTF(1, 2) void run_job(const char *format, ...)
{
    char text[2048];
    stk_prep *prep;
    stk_error err = {0};
    va_list args;

    va_start(args, format);
    in_folder(text, sizeof text, format, args);
    va_end(args);
    assert_ok(stk_prep_open_text(text, NULL, NULL, 0, NULL, &prep, &err));
    assert_ok(stk_prep_run(prep, &err));
    stk_prep_destroy(prep);
}

static void assert_names(const json_t *list, const char *expected)
{
    char all[256] = "";

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        strcat(all, i ? " " : "");
        strcat(all, name ? name : "null");
    }
    assert_string_equal(all, expected);
}

static void test_jobs(void **state)
{
    static const int counts[] = {2, 0, 1};
    json_t *json, *classes;

    (void)state;
    run_job(
        "dataset: {fields: {label: {path: [@fa, @fb]}}}\nprep: {order: sequential, filter: {label: {drop: [n02]}}}\n"
        "output: {path: @out.npy}\nstats: {fields: {label: {classes: true}}}");
    json = load_json("out.manifest.json");
    assert_names(json_object_get(json_array_get(json_object_get(json, "fields"), 0), "classes"), "n01 n02 n03");
    json_decref(json);
    json = load_json("out.stats.json");
    classes = json_object_get(json_object_get(json_object_get(json, "fields"), "label"), "classes");
    assert_names(json_object_get(classes, "names"), "n01 n02 n03");
    for (size_t i = 0; i < 3; i++) { /* also n02, although it has no rows */
        assert_int_equal(json_integer_value(json_array_get(json_object_get(classes, "values"), i)), i);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(classes, "counts"), i)), counts[i]);
    }
    json_decref(json);
    CHECK(open_loader("dataset: {fields: {label: {path: @out.npy}}}"), "n01 n02 n03", 0, 0, 2);
    CHECK(open_loader("dataset: {manifest: @out.manifest.json, fields: {label: {path: @out.npy}}}"), "n01 n02 n03", 0,
          0, 2);
    CHECK(open_loader("dataset: {fields: {label: {path: @fc, source: {classes: {from: @out.manifest.json}}}}}"),
          "n01 n02 n03", 2, 2);
    run_job("dataset: {fields: {label: {path: [@fa, @fb]}}}\nprep: {order: sequential}\n"
            "output: {path: @cut.beton, shard_rows: 2}");
    CHECK(open_loader("dataset: {fields: {label: {path: '@cut-*.beton'}}}"), "n01 n02 n03", 0, 0, 1, 1, 2);
    /* If other files have names, a file's numbers must be those of the common table; otherwise the file is rejected. */
    CHECK(open_loader("dataset: {fields: {label: {path: [@out.npy, @fb], source: {classes: {from: "
                      "@out.manifest.json}}}}}\nloader: {batch_size: 9}"),
          "n01 n02 n03", 0, 0, 2, 1, 2);
    refused(STK_E_MISMATCH, "out.manifest.json", "n01", "dataset: {fields: {label: {path: [@out.npy, @fb]}}}");
    run_job("dataset: {fields: {label: {path: @fc}}}\nprep: {order: sequential}\noutput: {path: @alone.npy}");
    refused(STK_E_MISMATCH, "alone.manifest.json", "out.manifest.json",
            "dataset: {fields: {label: {path: [@out.npy, @alone.npy]}}}");
    /* A manifest is ignored if it lists a file with a different size. */
    stkt_write_npy(stkt_path("alone.npy"), "<i8", "False", "(3,)", 64, (int64_t[]){3, 1, 7}, 24);
    CHECK(open_loader("dataset: {fields: {label: {path: @alone.npy}}}"), "", 3, 1, 7);
}

/* Several array fields are written to files NAME.FIELD.npy, whatever their names in the loader. */
static void test_jobs_of_fields(void **state)
{
    static const char job[] =
        "dataset: {fields: {label: {path: @a.csv, source: {name: class, classes: %s}}, id: {path: @a.csv}}}\n"
        "prep: {order: sequential}\noutput: {path: @%s.npy%s}";

    (void)state;
    run_job(job, "[dog, 'cat, big']", "one", "");
    run_job(job, "['cat, big', dog]", "other.way", "");
    run_job(job, "['cat, big', dog]", "parts", ", shard_rows: 2");
    CHECK(open_loader("dataset: {fields: {label: {path: @one.label.npy}}}"), "dog cat, big", 0, 1, 0);
    CHECK(open_loader("dataset: {fields: {id: {path: @one.label.npy}, label: {path: @other.way.label.npy}}}"),
          "cat, big dog", 1, 0, 1);
    CHECK(open_loader("dataset: {fields: {label: {path: @one.id.npy}}}"), "", 1, 2, 3);
    CHECK(open_loader("dataset: {fields: {label: {path: '@parts-*.label.npy'}}}"), "cat, big dog", 1, 0, 1);
    CHECK(open_loader("dataset: {manifest: @one.manifest.json, fields: {label: {path: @one.label.npy}}}"),
          "dog cat, big", 0, 1, 0);
    refused(STK_E_MISMATCH, "other.way.manifest.json", "one.manifest.json",
            "dataset: {fields: {label: {path: [@one.label.npy, @other.way.label.npy]}}}");
    refused(STK_E_MISMATCH, "other.way.manifest.json", "one.manifest.json",
            "datasets: [{fields: {label: {path: @one.label.npy}}}, {fields: {label: {path: @other.way.label.npy}}}]\n"
            "loader: {mixture_stop: all_exhausted}");
    refused(STK_E_MISMATCH, "one.manifest.json", "dog", "dataset: {fields: {label: {path: [@one.label.npy, @fa]}}}");
}

static void test_reported(void **state)
{
    stk_loader *loader = open_loader("dataset: {fields: {label: {path: [@fa, @fb]}}}");
    char *text = stk_loader_explain(loader);
    json_t *json = json_loads(stk_loader_options_json(loader), 0, NULL), *field;

    (void)state;
    assert_non_null(strstr(text, "3, sorted: n01, n02, n03"));
    stk_text_free(text);
    field = json_object_get(json_object_get(json, "fields"), "label");
    assert_names(json_object_get(field, "classes"), "n01 n02 n03");
    assert_string_equal(json_string_value(json_object_get(field, "classes_from")), "sorted");
    json_decref(json);
    stk_loader_destroy(loader);
    loader = open_loader("dataset: {fields: {label: {path: @out.npy}}}");
    text = stk_loader_explain(loader);
    assert_non_null(strstr(text, "out.manifest.json"));
    stk_text_free(text);
    stk_loader_destroy(loader);
}

static void test_c_options(void **state)
{
    const char *path = stkt_path("fc");
    char source[300];
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_error err;

    (void)state;
    snprintf(source, sizeof source, "{classes: {from: [%s/fa, %s/fb]}}", stkt_dir, stkt_dir);
    field.name = "label";
    field.paths = &path;
    field.path_count = 1;
    field.source = source;
    opts.fields = &field;
    opts.field_count = 1;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    CHECK(loader, "n01 n02 n03", 2, 2);
}

/* 8 bytes for each of 20,000 labels, and names of 10 bytes and a NUL: more than 300,000 and less than 8,000,000
 * bytes. */
static void test_budget(void **state)
{
    static const char config[] =
        "dataset: {fields: {label: {path: @many.csv, source: {name: class, classes: sorted}}}}\n"
        "loader: {batch_size: 1, prefetch: 1, memory_budget: %d}";
    FILE *file = fopen(stkt_path("many.csv"), "w");

    (void)state;
    assert_non_null(file);
    fprintf(file, "class\n");
    for (int i = 0; i < 20000; i++)
        fprintf(file, "name%06d\n", i * 7919 % 20000);
    fclose(file);
    refused(STK_E_LIMIT, "memory_budget", "300000", config, 300000);
    stk_loader_destroy(open_loader(config, 8000000));
}

static void test_no_memory(void **state)
{
    static const char *const configs[] = {
        "dataset: {fields: {label: {path: [@fa, @fb], source: {classes: [n01, n03], unknown_class: skip}}}}\nloader: "
        "{num_workers: 0}",
        "dataset: {fields: {label: {path: [@a.csv, @b.csv], source: {name: class, classes: {from: [@a.csv, "
        "@b.csv]}}}}}\n"
        "loader: {num_workers: 0}",
        "dataset: {fields: {label: {path: @out.npy}}}\nloader: {num_workers: 0}",
    };

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int n = 1;; n++) {
            stk_loader *loader = NULL;
            stk_error err = {0};
            stk_status status;

            stki_memory_fail_at(n);
            status = open_status(&loader, &err, "%s", configs[i]);
            stki_memory_fail_at(0);
            if (status == STK_OK) {
                stk_loader_destroy(loader);
                if (n > 400)
                    break;
            } else if (status != STK_E_MEMORY) {
                fail_msg("config %d, allocation %d: %s: %s", i, n, stk_status_name(status), err.message);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),        cmocka_unit_test(test_fields_apart),    cmocka_unit_test(test_texts),
        cmocka_unit_test(test_given),          cmocka_unit_test(test_numbers),         cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_dtypes),         cmocka_unit_test(test_skip_everywhere), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_skip_and_split), cmocka_unit_test(test_resume),          cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_jobs_of_fields), cmocka_unit_test(test_reported),        cmocka_unit_test(test_c_options),
        cmocka_unit_test(test_budget),         cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, make_data, NULL);
}
