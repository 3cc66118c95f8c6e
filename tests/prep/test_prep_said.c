/* Tests of options that have no effect in a job or do not fit it. They are rejected before any row is made, even in a
 * dry run, and no message mentions a `loader` section, which jobs do not have. */
#include "job.h"
#include "prep_file.h"
#include "prep_test.h"

enum { ROWS = 40, SIDE = 8 };

static char input[300], image[300];

static int setup(void **state)
{
    const int64_t shape[] = {SIDE, SIDE, 3};
    stk_npy_writer *writer;
    stk_error err = {0};
    char *row = calloc(SIDE * SIDE, 3);

    (void)state;
    snprintf(input, sizeof input, "%s", stkt_path("in"));
    snprintf(image, sizeof image, "%s", stkt_path("image.npy"));
    stkt_prep_inputs(input, ROWS, 16);
    assert_ok(stk_npy_create(image, STK_U8, 3, shape, false, &writer, &err));
    for (int i = 0; i < ROWS; i++)
        assert_ok(stk_npy_append(writer, row, 1, &err));
    assert_ok(stk_npy_commit(writer, &err));
    free(row);
    return 0;
}

/* A job with images and labels; `%OUT` is followed by the extension of the output. */
static const char *job(const char *ending, const char *prep, const char *output, const char *more)
{
    return stkt_text("dataset: {fields: {image: {path: %s, source: {layout: nhwc}}, label: {path: %s.label.npy}}}\n"
                     "prep: {num_workers: 0%s%s}\noutput: {path: %s%s%s%s}\n%s",
                     image, input, *prep ? ", " : "", prep, stkt_path("out"), ending, *output ? ", " : "", output,
                     more);
}

static stk_status plan(const char *text, stk_error *err)
{
    stk_prep *made = NULL;
    stk_prep_plan out = {.struct_size = sizeof out};
    stk_status status = stk_prep_open_text(text, NULL, NULL, 0, NULL, &made, err);

    if (status == STK_OK)
        status = stk_prep_get_plan(made, &out, err);
    stk_prep_destroy(made);
    return status;
}

/* Rejected by the run and by the dry run, which leave no files. */
static void refuse(const char *text, stk_status expected, const char *says)
{
    char kept[4096];
    stk_error err = {0};

    snprintf(kept, sizeof kept, "%s", text);
    assert_status(plan(kept, &err), expected);
    assert_says(says);
    assert_null(strstr(err.message, "loader."));
    assert_status(stkt_prep_run(NULL, NULL, &err, kept), expected);
    assert_says(says);
    assert_null(strstr(err.message, "loader."));
    assert_int_equal(stkt_count_names(stkt_path("."), "out"), 0);
}

static void accept(const char *text)
{
    stk_error err = {0};

    assert_ok(plan(text, &err));
}

static void test_encodings(void **state)
{
    (void)state;
    refuse(job(".beton", "", "fields: {image: {encode: png}}", ""), STK_E_UNSUPPORTED,
           "field image cannot be written: found PNG images");
    refuse(job(".tar", "", "fields: {image: {encode: png, extension: jpg}}", ""), STK_E_UNSUPPORTED,
           "expected an image of the kind given by extension: jpg");
    refuse(job(".tar", "", "fields: {image: {extension: jpg}}", ""), STK_E_UNSUPPORTED,
           "extension: jpg: encode the field");
    refuse(job(".npy", "", "fields: {image: {encode: jpeg, proportion: 0.5}}", ""), STK_E_CONFIG, "write a .beton");
    accept(job(".beton", "", "fields: {image: {encode: jpeg, proportion: 0.5}}", ""));
    accept(job(".tar", "", "fields: {image: {encode: png}}", ""));
    accept(job(".h5", "", "fields: {image: {encode: png}}", ""));
}

static void test_keys_of_fields(void **state)
{
    static const char *const formats[] = {"npy", "raw", "npz", "h5", "pt", "safetensors", "beton"};

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        refuse(job(stkt_text(".%s", formats[i]), "", "fields: {image: {encode: jpeg, extension: jpeg}}", ""),
               STK_E_CONFIG, "output.fields.image.extension: has no effect in ");
        if (i != 0 && i != 2)
            refuse(job(stkt_text(".%s", formats[i]), "", "fields: {label: {alias: true}}", ""), STK_E_CONFIG,
                   "output.fields.label.alias: has no effect in ");
    }
    refuse(job(".npy", "", "format: hdf5", ""), STK_E_CONFIG,
           "output.format: found hdf5, but the extension .npy belongs to npy");
}

static void test_keys_of_statistics(void **state)
{
    static const struct {
        const char *keys, *says;
    } wrong[] = {
        {"{percentile: 99.9}", "stats.fields.image.percentile: has no effect without calibrate: percentile"},
        {"{percentile: 99.9, calibrate: minmax}", "percentile: has no effect without calibrate: percentile"},
        {"{percentile: 99.9, calibrate: [mse, minmax]}", "percentile: has no effect"},
        {"{dtype: uint8}", "stats.fields.image.dtype: has no effect without calibrate: minmax, percentile or mse"},
        {"{symmetric: true, histogram: 10}", "stats.fields.image.symmetric: has no effect without calibrate"},
    };
    static const char *const right[] = {"{percentile: 99.9, calibrate: percentile}", "{histogram: 10}",
                                        "{percentile: 99.9, calibrate: [mse, percentile], symmetric: true}",
                                        "{dtype: uint8, calibrate: minmax}"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse(job(".npy", "", "", stkt_text("stats: {fields: {image: %s}}\n", wrong[i].keys)), STK_E_CONFIG,
               wrong[i].says);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        accept(job(".npy", "", "", stkt_text("stats: {fields: {image: %s}}\n", right[i])));
}

/* A step that needs a counting pass accepts the keys of calibration and no others. */
static void test_keys_of_a_step(void **state)
{
    static const struct {
        const char *keys, *says;
    } wrong[] = {
        {"{calibrate: minmax, percentile: 99}", "percentile: has no effect without calibrate: percentile"},
        {"{calibrate: minmax, histogram: 12}", "histogram: has no effect with calibrate: minmax"},
        {"{calibrate: minmax, classes: true}", "classes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse(stkt_text("dataset: {fields: {x: {path: %s.npy, transforms: [{quantize: %s}]}}}\n"
                         "output: {path: %s}\n",
                         input, wrong[i].keys, stkt_path("out.npy")),
               STK_E_CONFIG, wrong[i].says);
}

static void test_keys_of_prep(void **state)
{
    static const char *const alone[] = {"piece_bytes: 1MiB", "inputs: digests"};
    const char *const over[] = {"prep.order=random"};
    stk_prep *made = NULL;
    stk_error err = {0};

    (void)state;
    refuse(job(".npy", "block_window: 4", "", ""), STK_E_CONFIG,
           "prep.block_window: has no effect without order: block: add it, or remove this option");
    refuse(job(".npy", "max_errors: 4", "", ""), STK_E_CONFIG, "has no effect without on_error: skip");
    accept(job(".npy", "order: block, block_window: 4", "", ""));
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        refuse(stkt_text("dataset: {fields: {x: {path: %s.npy}}}\nprep: {%s}\nstats: {path: %s}\n", input, alone[i],
                         stkt_path("out.json")),
               STK_E_CONFIG, "has no effect without output");
    /* A required option was given, but a later source removed it. */
    assert_ok(
        stk_prep_open_text(job(".npy", "order: block, block_window: 4", "", ""), NULL, over, 1, NULL, &made, &err));
    stk_prep_destroy(made);
}

static void test_errors_name_keys_of_jobs(void **state)
{
    static const struct {
        const char *prep, *says;
    } wrong[] = {
        {"split: {part: training}", "prep.split.part: "},
        {"split: {part: train, fraction: 2}", "prep.split.fraction: "},
        {"split: {part: train, key: {field: nosuch}}", "prep.split"},
        {"split: {part: val, fraction: 0}", "prep.split"},
        {"split: middle", "prep.split"},
        {"indices: [900]", "index 0 of the subset (indices) is outside"},
        {"indices: {a: 1}", "prep.indices"},
        {"order: block, block_window: many", "prep.block_window: "},
        {"memory_budget: 1", "prep.memory_budget"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[4096];
        stk_error err = {0};

        snprintf(text, sizeof text, "%s", job(".npy", wrong[i].prep, "", ""));
        if (plan(text, &err) == STK_OK)
            fail_msg("%s was accepted", wrong[i].prep);
        assert_says(wrong[i].says);
        if (strstr(err.message, "loader"))
            fail_msg("%s: %s", wrong[i].prep, err.message);
    }
}

/* Encoded rows, and what a table needs to find its samples, count towards the budget. If they do not fit, the error
 * says so; if they just fit, the output is the same. */
static void test_budget(void **state)
{
    enum { ONE_ROW = SIDE * SIDE * 3, BATCH = ROWS * ONE_ROW };
    stk_error err = {0};
    char text[4096], out[300];

    (void)state;
    snprintf(out, sizeof out, "%s", stkt_path("out.tar"));
    for (int png = 0; png < 2; png++) {
        const char *encode = png ? "fields: {image: {encode: png}}" : "";
        const char *said = png ? "for encoding rows, but prep.memory_budget is" : ", but prep.memory_budget is";
        int64_t budget = 1024;
        stk_status status;

        for (; budget < INT64_C(1) << 40; budget += budget / 16) { /* finds the smallest sufficient budget */
            snprintf(text, sizeof text, "%s",
                     job(".tar", stkt_text("memory_budget: %lld", (long long)budget), encode, ""));
            status = stkt_prep_run(NULL, NULL, &err, text);
            if (status == STK_OK)
                break;
            assert_int_equal(status, STK_E_LIMIT);
            assert_says(said);
        }
        /* Rows that are not encoded need a slot. Encoded rows also need a batch of their own, which is as large. */
        assert_in_range(budget, (1 + png) * BATCH, (1 + png) * BATCH * 20);
        assert_int_equal(rename(out, stkt_path(png ? "tight.tar" : "plain.tar")), 0);
        assert_int_equal(remove(stkt_path("out.manifest.json")), 0);
        if (!png)
            continue;
        assert_ok(stkt_prep_run(NULL, NULL, &err, job(".tar", "seed: 0", encode, "")));
        stkt_same_file(out, stkt_path("tight.tar"));
        assert_int_equal(remove(out), 0);
        assert_int_equal(remove(stkt_path("out.manifest.json")), 0);
    }
}

static void test_budget_of_tables(void **state)
{
    stk_error err = {0};
    FILE *file = fopen(stkt_path("table.csv"), "w");
    char text[4096];

    (void)state;
    assert_non_null(file);
    fprintf(file, "n\n");
    for (int i = 0; i < 200000; i++)
        fprintf(file, "%d\n", i);
    fclose(file);
    snprintf(text, sizeof text, "dataset: {fields: {x: {path: %s}}}\nprep: {memory_budget: 1MiB}\noutput: {path: %s}\n",
             stkt_path("table.csv"), stkt_path("out.npy"));
    assert_status(plan(text, &err), STK_E_LIMIT); /* 200,000 numbers and positions need twice as much */
    assert_says("for indexes of samples, but prep.memory_budget is 1048576");
}

/* A long text that is a single piece: too little memory for it is an error before anything is made. */
static void test_budget_of_long_texts(void **state)
{
    char *words = malloc(1 << 20), text[4096], vocabulary[300];
    stk_error err = {0};
    const char *const way = "dataset: {fields: {x: {path: %s, source: {format: text, unit: file}}}}\n"
                            "prep: {num_workers: 2, memory_budget: %s}\n"
                            "output: {path: %s, format: tokens, fields: {x: {encode: tokens, vocabulary: %s%s}}}\n";

    (void)state;
    snprintf(vocabulary, sizeof vocabulary, "%s/prep/goldens/tokens_small.tiktoken", STKT_TESTS_DIR);
    assert_non_null(words);
    for (int i = 0; i < 1 << 20; i++)
        words[i] = "the cat sat "[i % 12];
    stkt_write_file(stkt_path("long.txt"), words, 1 << 20);
    snprintf(text, sizeof text, way, stkt_path("long.txt"), "24MiB", stkt_path("out.bin"), vocabulary, ", split: none");
    refuse(text, STK_E_LIMIT,
           "output.fields.x: memory to encode the longest row, of 1048576 bytes: split texts first (split: ");
    snprintf(text, sizeof text, way, stkt_path("long.txt"), "24MiB", stkt_path("out.bin"), vocabulary, ", split: gpt2");
    accept(text);
    snprintf(text, sizeof text, way, stkt_path("long.txt"), "80MiB", stkt_path("out.bin"), vocabulary, ", split: none");
    assert_ok(stkt_prep_run(NULL, NULL, &err, text));
    free(words);
}

/* A task that starts late cannot tell old files from new ones, so it is rejected. */
static void test_late_with_force(void **state)
{
    stk_error err = {0};
    const stk_prep_opts late = {.struct_size = sizeof late, .task = 1, .tasks = 2, .force = true},
                        merging = {.struct_size = sizeof merging, .force = true, .merge = true};
    uint64_t before[2], after[2];
    char text[4096];
    int64_t n;

    (void)state;
    snprintf(text, sizeof text, "%s", job(".beton", "", "", ""));
    for (int i = 0; i < 2; i++) {
        const stk_prep_opts one = {.struct_size = sizeof one, .task = i, .tasks = 2};

        assert_ok(stkt_prep_run(&one, NULL, &err, text));
    }
    assert_ok(stki_prep_digest_file(stkt_path("out.beton"), &before[0], &n, &err));
    assert_ok(stki_prep_digest_file(stkt_path("out.manifest.json"), &before[1], &n, &err));
    assert_status(stkt_prep_run(&late, NULL, &err, text), STK_E_BAD_ARG);
    assert_says("remove the old output before starting them");
    assert_status(stkt_prep_run(&merging, NULL, &err, text), STK_E_NOT_FOUND);
    assert_ok(stki_prep_digest_file(stkt_path("out.beton"), &after[0], &n, &err));
    assert_ok(stki_prep_digest_file(stkt_path("out.manifest.json"), &after[1], &n, &err));
    assert_memory_equal(before, after, sizeof before);
    assert_false(stkt_is_there(stkt_path("out.beton.prep")));
    assert_int_equal(remove(stkt_path("out.beton")) + remove(stkt_path("out.manifest.json")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodings),          cmocka_unit_test(test_keys_of_fields),
        cmocka_unit_test(test_keys_of_statistics), cmocka_unit_test(test_keys_of_a_step),
        cmocka_unit_test(test_keys_of_prep),       cmocka_unit_test(test_errors_name_keys_of_jobs),
        cmocka_unit_test(test_late_with_force),    cmocka_unit_test(test_budget),
        cmocka_unit_test(test_budget_of_tables),   cmocka_unit_test(test_budget_of_long_texts),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
