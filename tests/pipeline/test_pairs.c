/* Tests of which samples of two fields belong together: files in folders and patterns by name, lists and arrays by
 * position. The values are the names of the files (the member "path"), or numbers that the test assigns to each
 * name. */
#include "io_files.h"
#include "loader_test.h"
#include <sys/stat.h>

static void folder(const char *name)
{
    assert_int_equal(mkdir(stkt_path(name), 0700), 0);
}

/* Creates empty files; only their names are used. */
static void touch(const char *folder_name, const char *const *names)
{
    char path[256];

    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", folder_name, *names);
        stkt_write_file(stkt_path(path), "", 0);
    }
}

static void array(const char *name, int value)
{
    const uint8_t byte = (uint8_t)value;

    stkt_write_npy(stkt_path(name), "|u1", "False", "(1,)", 64, &byte, 1);
}

static STK_PRINTF(2, 3) stk_status open_text(stk_loader **out, const char *format, ...)
{
    char text[4096];
    stk_error err = {0};
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return stk_loader_open_text(text, stkt_path(""), NULL, 0, out, &err);
}

/* The values of a field, row by row, as "a.jpg b.jpg" or "1 2". */
static const char *rows_of(stk_loader *loader, const char *field)
{
    static char all[4][1024];
    static int turn;
    char name[64], *to = all[turn++ % 4];
    stk_batch *batch;
    stk_tensor values, offsets;
    stk_error err;

    *to = '\0';
    assert_ok(stk_loader_seek(loader, 0, 0, &err));
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        snprintf(name, sizeof name, "%s.offsets", field);
        if (stk_batch_tensor(batch, name, &offsets, &err) == STK_OK) {
            snprintf(name, sizeof name, "%s.values", field);
            assert_ok(stk_batch_tensor(batch, name, &values, &err));
            for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
                const int64_t *at = (const int64_t *)offsets.data + r;

                sprintf(to + strlen(to), "%s%.*s", *to ? " " : "", (int)(at[1] - at[0]), (char *)values.data + at[0]);
            }
        } else {
            assert_ok(stk_batch_tensor(batch, field, &values, &err));
            for (int64_t r = 0; r < stk_batch_rows(batch); r++)
                sprintf(to + strlen(to), "%s%d", *to ? " " : "",
                        values.dtype == STK_I64 ? (int)((int64_t *)values.data)[r] : ((uint8_t *)values.data)[r]);
        }
        stk_batch_release(batch);
    }
    return to;
}

static int notes_with(const stk_loader *loader, const char *text)
{
    int count = 0;

    for (int i = 0; stk_loader_note(loader, i); i++)
        count += strstr(stk_loader_note(loader, i), text) != NULL;
    return count;
}

/* Opens fields x and y, compares their rows, and returns the loader. */
static stk_loader *expect(const char *x, const char *y, const char *pair, const char *x_rows, const char *y_rows)
{
    stk_loader *loader = NULL;

    assert_int_equal(open_text(&loader,
                               "{dataset: {%s fields: {x: %s, y: %s}}, loader: {batch_size: 2, num_workers: 2}}", pair,
                               x, y),
                     STK_OK);
    assert_string_equal(rows_of(loader, "x"), x_rows);
    assert_string_equal(rows_of(loader, "y"), y_rows);
    return loader;
}

static void pairs(const char *x, const char *y, const char *pair, const char *x_rows, const char *y_rows)
{
    stk_loader_destroy(expect(x, y, pair, x_rows, y_rows));
}

/* Checks found and expected of the error. */
static void refused(const char *x, const char *y, const char *pair, const char *found, const char *expected)
{
    stk_loader *loader = NULL;
    char text[2048];
    stk_error err;

    snprintf(text, sizeof text, "{dataset: {%s fields: {x: %s, y: %s}}}", pair, x, y);
    assert_int_equal(stk_loader_open_text(text, stkt_path(""), NULL, 0, &loader, &err), STK_E_MISMATCH);
    assert_string_equal(err.found, found);
    assert_string_equal(err.expected, expected);
    assert_non_null(strstr(err.message, "dataset.pair"));
}

static const char *paths(const char *folder_name)
{
    static char texts[4][256];
    static int turn;
    char *text = texts[turn++ % 4];

    snprintf(text, sizeof texts[0], "{path: %s, source: {name: path}}", folder_name);
    return text;
}

static void folders(void **state)
{
    (void)state;
    folder("im"), folder("ma"), folder("other"), folder("fewer");
    touch("im", (const char *const[]){"a.jpg", "a.k.jpg", "b.JPEG", "c.jpg", NULL});
    touch("ma", (const char *const[]){"a.png", "a.k.png", "b.png", "c.jpg", NULL});
    touch("other", (const char *const[]){"a.png", "a.k.png", "b.png", "d.png", NULL});
    touch("fewer", (const char *const[]){"a.png", "a.k.png", "b.png", NULL});
    /* a.k.png sorts before a.png, but a.jpg before a.k.jpg: the first field determines the order */
    pairs(paths("im"), paths("ma"), "", "a.jpg a.k.jpg b.JPEG c.jpg", "a.png a.k.png b.png c.jpg");
    pairs(paths("ma"), paths("im"), "", "a.k.png a.png b.png c.jpg", "a.k.jpg a.jpg b.JPEG c.jpg");
    pairs(paths("im"), paths("ma"), "pair: position,", "a.jpg a.k.jpg b.JPEG c.jpg", "a.k.png a.png b.png c.jpg");
    pairs(paths("im"), paths("other"), "pair: position,", "a.jpg a.k.jpg b.JPEG c.jpg", "a.k.png a.png b.png d.png");
    refused(paths("im"), paths("other"), "", "d.png", "c.jpg");
    refused(paths("other"), paths("im"), "", "c.jpg", "d.png");
    refused(paths("im"), paths("fewer"), "", "nothing", "c.jpg");
    refused(paths("fewer"), paths("im"), "", "c.jpg", "no more");
}

/* Two files with one stem: if both folders have them, they pair by their full names. */
static void twins(void **state)
{
    (void)state;
    folder("twins"), folder("twins2"), folder("single");
    touch("twins", (const char *const[]){"a.jpg", "a.png", NULL});
    touch("twins2", (const char *const[]){"a.jpg", "a.png", NULL});
    touch("single", (const char *const[]){"a.jpg", "b.jpg", NULL});
    pairs(paths("twins"), paths("twins2"), "", "a.jpg a.png", "a.jpg a.png");
    refused(paths("twins"), paths("single"), "", "a.png", "no other file of that name");
    refused(paths("single"), paths("twins"), "", "a.png", "no other file of that name");
}

/* Class folders. All members of the second folder follow the new order, even if the folder is opened again. */
static void classes(void **state)
{
    stk_loader *loader = NULL;

    (void)state;
    folder("cls"), folder("cls/n01"), folder("cls/n02"), folder("cls2"), folder("cls2/n01"), folder("cls2/n02");
    touch("cls/n01", (const char *const[]){"x.k.png", "x.png", NULL});
    touch("cls/n02", (const char *const[]){"x.png", NULL});
    touch("cls2/n01", (const char *const[]){"x.jpg", "x.k.jpg", NULL});
    touch("cls2/n02", (const char *const[]){"x.jpg", NULL});
    pairs(paths("cls"), paths("cls2/"), "", "n01/x.k.png n01/x.png n02/x.png", "n01/x.k.jpg n01/x.jpg n02/x.jpg");
    /* nested folders are part of the name; labels follow their images */
    folder("deep"), folder("deep/p"), folder("deep/p.k");
    touch("deep/p", (const char *const[]){"x.png", NULL});
    touch("deep/p.k", (const char *const[]){"x.png", NULL});
    folder("flat");
    stkt_write_file(stkt_path("flat.lst"), "p/x.png 5\np.k/x.png 7\n", 22);
    assert_int_equal(
        open_text(&loader, "{dataset: {pair: name, fields: {x: {path: deep, source: {name: path}}, y: {path: flat.lst, "
                           "source: {name: path}}, l: {path: flat.lst, source: {name: label}}}}}"),
        STK_OK);
    assert_string_equal(rows_of(loader, "x"), "p.k/x.png p/x.png");
    assert_string_equal(rows_of(loader, "y"), "p.k/x.png p/x.png");
    assert_string_equal(rows_of(loader, "l"), "7 5");
    stk_loader_destroy(loader);
}

static void patterns(void **state)
{
    const char *per_file = "sample_per_file: true";
    char x[128], y[128];

    (void)state;
    folder("arrays"), folder("arrays2"), folder("each"), folder("each/p"), folder("each/q");
    array("arrays/a.npy", 1), array("arrays/b.npy", 2), array("arrays/c_1.npy", 3);
    array("arrays2/a.npy", 11), array("arrays2/b.npy", 12), array("arrays2/c_1.npy", 13);
    array("arrays2/d.npy", 14), array("each/p/image.npy", 21), array("each/q/image.npy", 22);
    array("each/p/mask.npy", 31), array("each/q/mask.npy", 32), array("img_1.npy", 41), array("img_2.npy", 42);
    array("lab_1.npy", 51), array("lab_2.npy", 52), array("val_3.npy", 63), array("val_2.npy", 62);
#define FILES(text, path) (snprintf(text, sizeof(text), "{path: '%s', source: {%s}}", path, per_file), text)
    pairs(FILES(x, "arrays/*.npy"), FILES(y, "arrays2/[abc]*.npy"), "", "1 2 3", "11 12 13");
    refused(FILES(x, "arrays/*.npy"), FILES(y, "arrays2/[abd]*.npy"), "", "d.npy", "c_1.npy");
    pairs(FILES(x, "arrays/*.npy"), FILES(y, "arrays2/[abd]*.npy"), "pair: position,", "1 2 3", "11 12 14");
    pairs(FILES(x, "each/*/image.npy"), FILES(y, "each/*/mask.npy"), "", "21 22", "31 32");
    pairs(FILES(x, "img_*.npy"), FILES(y, "lab_*.npy"), "", "41 42", "51 52");
    refused(FILES(x, "img_*.npy"), FILES(y, "val_*.npy"), "", "val_2.npy", "img_1.npy");
    /* shards */
    per_file = "";
    pairs(FILES(x, "img_*.npy"), FILES(y, "lab_*.npy"), "", "41 42", "51 52");
    refused(FILES(x, "img_*.npy"), FILES(y, "val_*.npy"), "", "val_2.npy", "img_1.npy");
    pairs(FILES(x, "img_*.npy"), FILES(y, "val_*.npy"), "pair: position,", "41 42", "62 63");
#undef FILES
}

/* Shards with the same name must have the same number of samples. With different numbers of shards, the data may be
 * divided differently. */
static void shards(void **state)
{
    const uint8_t bytes[] = {0, 1, 2, 3, 4, 5};

    (void)state;
    folder("s"), folder("t"), folder("u");
    stkt_write_npy(stkt_path("s/0.npy"), "|u1", "False", "(4,)", 64, bytes, 4);
    stkt_write_npy(stkt_path("s/1.npy"), "|u1", "False", "(2,)", 64, bytes + 4, 2);
    stkt_write_npy(stkt_path("t/0.npy"), "|u1", "False", "(3,)", 64, bytes, 3);
    stkt_write_npy(stkt_path("t/1.npy"), "|u1", "False", "(3,)", 64, bytes + 3, 3);
    for (int i = 0; i < 3; i++) {
        char name[32];

        snprintf(name, sizeof name, "u/%d.npy", 7 - i);
        stkt_write_npy(stkt_path(name), "|u1", "False", "(2,)", 64, bytes + 2 * (2 - i), 2);
    }
    pairs("{path: 's/*.npy'}", "{path: 'u/*.npy'}", "", "0 1 2 3 4 5", "0 1 2 3 4 5");
    pairs("{path: 's/*.npy'}", "{path: 't/*.npy'}", "pair: position,", "0 1 2 3 4 5", "0 1 2 3 4 5");
    pairs("{path: [s/0.npy, s/1.npy]}", "{path: 't/*.npy'}", "", "0 1 2 3 4 5", "0 1 2 3 4 5");
    {
        stk_loader *loader = NULL;

        assert_int_equal(open_text(&loader, "{dataset: {fields: {x: {path: 's/*.npy'}, y: {path: 't/*.npy'}}}}"),
                         STK_E_MISMATCH);
    }
}

static void strips(void **state)
{
    static const char *const strip = "pair: {strip: [_leftImg8bit, _labelIds]},";

    (void)state;
    folder("city"), folder("city/aachen"), folder("gt"), folder("gt/aachen");
    touch("city/aachen", (const char *const[]){"a_1_leftImg8bit.png", "a_2_leftImg8bit.png", NULL});
    touch("gt/aachen", (const char *const[]){"a_1_labelIds.png", "a_2_labelIds.png", NULL});
    refused(paths("city"), paths("gt"), "", "aachen/a_1_labelIds.png", "aachen/a_1_leftImg8bit.png");
    pairs(paths("city"), paths("gt"), strip, "aachen/a_1_leftImg8bit.png aachen/a_2_leftImg8bit.png",
          "aachen/a_1_labelIds.png aachen/a_2_labelIds.png");
    refused(paths("city"), paths("gt"), "pair: {strip: _leftImg8bit},", "aachen/a_1_labelIds.png",
            "aachen/a_1_leftImg8bit.png");
}

static void lists(void **state)
{
    stk_loader *loader;

    (void)state;
    folder("li"), folder("lm");
    touch("li", (const char *const[]){"a.jpg", "b.jpg", "c.jpg", NULL});
    touch("lm", (const char *const[]){"a.png", "b.png", "c.png", NULL});
    stkt_write_file(stkt_path("li.lst"), "li/c.jpg\nli/a.jpg\nli/b.jpg\n", 27);
    stkt_write_file(stkt_path("lm.lst"), "lm/c.png\nlm/a.png\nlm/b.png\n", 27);
    stkt_write_file(stkt_path("lo.lst"), "lm/a.png\nlm/c.png\nlm/b.png\n", 27);
    loader = expect(paths("li.lst"), paths("lm.lst"), "", "li/c.jpg li/a.jpg li/b.jpg", "lm/c.png lm/a.png lm/b.png");
    assert_int_equal(notes_with(loader, "by position"), 0); /* the names agree */
    stk_loader_destroy(loader);
    loader = expect(paths("li.lst"), paths("lo.lst"), "", "li/c.jpg li/a.jpg li/b.jpg", "lm/a.png lm/c.png lm/b.png");
    assert_int_equal(notes_with(loader, "2 of 3 names differ"), 1);
    stk_loader_destroy(loader);
    loader = expect(paths("li.lst"), paths("lo.lst"), "pair: position,", "li/c.jpg li/a.jpg li/b.jpg",
                    "lm/a.png lm/c.png lm/b.png");
    assert_int_equal(notes_with(loader, "names differ"), 0);
    stk_loader_destroy(loader);
    pairs(paths("li.lst"), paths("lo.lst"), "pair: name,", "li/c.jpg li/a.jpg li/b.jpg", "lm/c.png lm/a.png lm/b.png");
    loader = expect(paths("li.lst"), paths("lm"), "", "li/c.jpg li/a.jpg li/b.jpg", "a.png b.png c.png");
    assert_int_equal(notes_with(loader, "3 of 3 names differ"), 1);
    stk_loader_destroy(loader);
    pairs(paths("li.lst"), paths("lm"), "pair: name,", "li/c.jpg li/a.jpg li/b.jpg", "c.png a.png b.png");
    /* files listed in the config, and an array, which has no names */
    pairs("{path: [img_2.npy, img_1.npy], source: {sample_per_file: true}}",
          "{path: [lab_1.npy, lab_2.npy], source: {sample_per_file: true}}", "", "42 41", "51 52");
    pairs("{path: [arrays/b.npy, arrays/a.npy], source: {sample_per_file: true}}",
          "{path: [arrays2/a.npy, arrays2/b.npy], source: {sample_per_file: true}}", "pair: name,", "2 1", "12 11");
    pairs(paths("li"), "{path: three.npy}", "pair: name,", "a.jpg b.jpg c.jpg", "7 8 9");
}

static stk_loader *open_beside(const char *pattern, const char *first, const char *second)
{
    stk_loader *loader;
    stk_error err = {0};

    assert_ok(open_text(&loader, "dataset: {fields: {x: {path: %s}, y: {path: [%s, %s]}}}\nloader: {batch_size: 2}",
                        pattern, first, second));
    return loader;
}

/* A list of shards and a pattern: a note reports the same names in a different order, but not different names. */
static void lists_of_shards(void **state)
{
    stk_loader *loader;

    (void)state;
    folder("sx"), folder("sy");
    array("sx/a.npy", 1), array("sx/b.npy", 2), array("sy/a.npy", 1), array("sy/b.npy", 2), array("sy/c.npy", 3);
    loader = open_beside("sx/*.npy", "sy/b.npy", "sy/a.npy");
    assert_int_equal(notes_with(loader, "2 of 2 names differ"), 1);
    stk_loader_destroy(loader);
    loader = open_beside("sx/*.npy", "sy/a.npy", "sy/b.npy");
    assert_int_equal(notes_with(loader, "differ"), 0);
    stk_loader_destroy(loader);
    loader = open_beside("sx/*.npy", "sy/b.npy", "sy/c.npy");
    assert_int_equal(notes_with(loader, "differ"), 0);
    stk_loader_destroy(loader);
}

/* Several folders pair one to one. If one field has fewer folders, files pair by name. */
static void several_folders(void **state)
{
    (void)state;
    folder("f1"), folder("f2"), folder("g1"), folder("g2"), folder("g");
    touch("f1", (const char *const[]){"a.jpg", "a.k.jpg", NULL});
    touch("f2", (const char *const[]){"a.jpg", "b.jpg", NULL});
    touch("g1", (const char *const[]){"a.png", "a.k.png", NULL});
    touch("g2", (const char *const[]){"a.png", "b.png", NULL});
    touch("g", (const char *const[]){"a.png", "a.k.png", NULL});
    pairs(paths("[f1, f2]"), paths("[g1, g2]"), "", "a.jpg a.k.jpg a.jpg b.jpg", "a.png a.k.png a.png b.png");
    refused(paths("[f1, f2]"), paths("[g2, g1]"), "", "b.png", "a.k.jpg");
    refused(paths("[f1, f2]"), paths("g"), "", "a.jpg", "no other file of that name");
}

/* Each data set has its own `pair` option. */
static void data_sets(void **state)
{
    stk_loader *loader = NULL;

    (void)state;
    assert_int_equal(
        open_text(&loader,
                  "{datasets: [{name: one, fields: {x: {path: im, source: {name: path}}, y: {path: ma, source: "
                  "{name: path}}}}, {name: two, pair: position, fields: {x: {path: im, source: {name: path}}, y: "
                  "{path: ma, source: {name: path}}}}], loader: {batch_size: 8}}"),
        STK_OK);
    assert_string_equal(rows_of(loader, "x"), "a.jpg a.k.jpg b.JPEG c.jpg a.jpg a.k.jpg b.JPEG c.jpg");
    assert_string_equal(rows_of(loader, "y"), "a.png a.k.png b.png c.jpg a.k.png a.png b.png c.jpg");
    stk_loader_destroy(loader);
}

static void the_option(void **state)
{
    static const char *const bad[] = {"pair: names,",
                                      "pair: {strip: []},",
                                      "pair: {strip: {a: b}},",
                                      "pair: {strap: a},",
                                      "pair: {by: position, strip: a},",
                                      "pair: [name],",
                                      "pair: {strip: ''},"};
    stk_loader *loader = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(open_text(&loader, "{dataset: {%s fields: {x: {path: im}}}}", bad[i]), STK_E_CONFIG);
}

static void the_c_structs(void **state)
{
    char x[256], y[256];
    stk_field_opts fields[2] = {STK_FIELD_OPTS_INIT, STK_FIELD_OPTS_INIT};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_dataset_opts sets[2] = {STK_DATASET_OPTS_INIT, STK_DATASET_OPTS_INIT};
    const char *const x_paths[] = {x}, *const y_paths[] = {y};
    stk_loader *loader;
    stk_error err;

    (void)state;
    snprintf(x, sizeof x, "%s", stkt_path("im"));
    snprintf(y, sizeof y, "%s", stkt_path("other"));
    fields[0].name = "x", fields[0].paths = x_paths, fields[0].path_count = 1, fields[0].source = "{name: path}";
    fields[1].name = "y", fields[1].paths = y_paths, fields[1].path_count = 1, fields[1].source = "{name: path}";
    opts.fields = fields, opts.field_count = 2;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_MISMATCH);
    opts.pair = "position";
    assert_ok(stk_loader_open(&opts, &loader, &err));
    stk_loader_destroy(loader);
    for (int d = 0; d < 2; d++)
        sets[d].fields = fields, sets[d].field_count = 2, sets[d].weight = 1, sets[d].pair = "position";
    opts = (stk_loader_opts)STK_LOADER_OPTS_INIT;
    opts.datasets = sets, opts.dataset_count = 2;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    stk_loader_destroy(loader);
    sets[1].pair = NULL;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_MISMATCH);
}

static int write_files(void **state)
{
    const uint8_t bytes[] = {7, 8, 9};

    (void)state;
    stkt_write_npy(stkt_path("three.npy"), "|u1", "False", "(3,)", 64, bytes, 3);
    return 0;
}

/* Options that have no effect add a note. */
static void options_without_effect(void **state)
{
    stk_loader *loader;

    (void)state;
    folder("with"), folder("mask");
    touch("with", (const char *const[]){"a_image.jpg", "b_image.jpg", NULL});
    touch("mask", (const char *const[]){"a_mask.png", "b_mask.png", NULL});
    array("plain1.npy", 1), array("plain2.npy", 2);
    loader = expect(paths("with"), paths("mask"), "pair: {strip: [_image, _mask]},", "a_image.jpg b_image.jpg",
                    "a_mask.png b_mask.png");
    assert_int_equal(notes_with(loader, "no effect"), 0);
    stk_loader_destroy(loader);
    loader = expect(paths("with"), paths("mask"), "pair: {strip: [_image, _mask, _foo]},", "a_image.jpg b_image.jpg",
                    "a_mask.png b_mask.png");
    assert_int_equal(notes_with(loader, "_foo"), 1);
    stk_loader_destroy(loader);
    loader = expect("{path: plain1.npy}", "{path: plain2.npy}", "pair: name,", "1", "2");
    assert_int_equal(notes_with(loader, "dataset.pair: name has no effect"), 1);
    stk_loader_destroy(loader);
    loader = expect("{path: plain1.npy}", "{path: plain2.npy}", "pair: auto,", "1", "2");
    assert_int_equal(notes_with(loader, "pair"), 0);
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_without_effect),
        cmocka_unit_test(folders),
        cmocka_unit_test(twins),
        cmocka_unit_test(classes),
        cmocka_unit_test(patterns),
        cmocka_unit_test(shards),
        cmocka_unit_test(strips),
        cmocka_unit_test(lists),
        cmocka_unit_test(lists_of_shards),
        cmocka_unit_test(several_folders),
        cmocka_unit_test(data_sets),
        cmocka_unit_test(the_option),
        cmocka_unit_test(the_c_structs),
    };

    return cmocka_run_group_tests(tests, write_files, NULL);
}
