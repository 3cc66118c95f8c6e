/* Tests of the filters of jobs: by labels (numbers, class names, strings), by the sizes of images, files and rows;
 * their counters; samples that cannot be read, which are kept; rejected rules; and failing allocations. */
#include "allocate.h"
#include "faults.h"
#include "filter.h"
#include "jpeg_make.h"
#include "loader_handle.h"
#include "stk_test.h"
#include <stoker/dataset.h>
#include <sys/stat.h>

static char folder[512];

/* Classes ant, bee, cat; image i is 8 + i high and 40 - i wide. */
enum { IMAGES = 12 };
static const char *const classes[] = {"ant", "bee", "cat"};

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *to = fopen(path, "wb");

    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

static int make_data(void **state)
{
    char path[600];
    stk_npy_writer *writer;
    stk_error err;

    (void)state;
    snprintf(folder, sizeof folder, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/set", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int c = 0; c < 3; c++) {
        snprintf(path, sizeof path, "%s/set/%s", folder, classes[c]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (int i = 0; i < IMAGES; i++) {
        const stkt_jpeg how = {.width = 40 - i, .height = 8 + i};
        stkt_bytes file = stkt_jpeg_make(&how);

        snprintf(path, sizeof path, "%s/set/%s/%02d.jpg", folder, classes[i / 4], i);
        write_file(path, file.data, file.size);
        free(file.data);
    }
    snprintf(path, sizeof path, "%s/kind.npy", folder);
    assert_ok(stk_npy_create(path, STK_F32, 0, NULL, false, &writer, &err));
    for (int i = 0; i < IMAGES; i++)
        assert_ok(stk_npy_append(writer, &(float){(float)(i % 5) + (i == 7 ? 0.5f : 0)}, 1, &err));
    assert_ok(stk_npy_commit(writer, &err));
    return 0;
}

static int remove_data(void **state)
{
    (void)state;
    stkt_remove_dir(folder);
    return 0;
}

/* ---- a loader with filtered samples ---- */

typedef struct chosen {
    const char *filter, *loader;
    stki_filter_counts counts;
    int64_t count, samples[IMAGES], epoch; /* epoch: the samples of one epoch, after a split */
    _Atomic bool cancelled;
} chosen;

static stk_status arrange(void *context, stki_core *core, stk_error *err)
{
    chosen *c = context;
    stki_document *document;
    stk_status status =
        stki_document_parse(c->filter, (int64_t)strlen(c->filter), "text", STKI_NO_INCLUDE, &document, err);

    if (status != STK_OK)
        return status;
    status = stki_filter_check(stki_node_get(stki_document_root(document), "filter"), err);
    if (status == STK_OK)
        status = stki_filter_apply(stki_node_get(stki_document_root(document), "filter"), core, &c->cancelled,
                                   &c->counts, err);
    c->count = core->config->index_list ? core->config->index_count : core->dataset->count;
    for (int64_t i = 0; status == STK_OK && i < c->count && i < IMAGES; i++)
        c->samples[i] = core->config->index_list ? core->config->index_list[i] : i;
    stki_document_destroy(document);
    return status;
}

static stk_status choose(chosen *c, stk_error *err)
{
    char text[1500];
    stki_document *document;
    stki_loader_config *config;
    stk_loader *loader;
    stk_status status;

    snprintf(text, sizeof text,
             "dataset: {fields: {image: {path: %s/set, transforms: [{resize: [4, 4]}]}, label: {path: %s/set}, "
             "kind: {path: %s/kind.npy}, file: {path: %s/set, source: {name: image, decode: none}}, "
             "name: {path: %s/set, source: {name: path}}}}\n"
             "loader: {num_workers: 0%s}\n",
             folder, folder, folder, folder, folder, c->loader ? c->loader : "");
    status = stki_document_parse(text, (int64_t)strlen(text), "text", STKI_NO_INCLUDE, &document, err);
    if (status == STK_OK)
        status = stki_config_read(document, NULL, &config, err);
    if (status != STK_OK)
        return status;
    config->arrange = arrange;
    config->job_context = c;
    status = stki_loader_open_config(config, &loader, err);
    if (status != STK_OK)
        return status;
    assert_true(c->loader || stk_loader_samples(loader) == c->count);
    c->epoch = stk_loader_samples(loader);
    stk_loader_destroy(loader);
    return STK_OK;
}

/* `wanted` has one letter per sample: x if the sample is kept. `dropped` has the number of samples that each rule
 * drops. */
static void check(const char *filter, const char *wanted, int rules, const int64_t *dropped)
{
    chosen c = {.filter = filter};
    char found[IMAGES + 1] = "............";
    stk_error err;

    assert_ok(choose(&c, &err));
    for (int64_t i = 0; i < c.count; i++) {
        assert_true(i == 0 || c.samples[i] > c.samples[i - 1]);
        found[c.samples[i]] = 'x';
    }
    assert_string_equal(found, wanted);
    assert_int_equal(c.counts.rule_count, rules);
    for (int i = 0; i < rules; i++)
        assert_int_equal(c.counts.rules[i].dropped, dropped[i]);
    if (rules > 0) {
        assert_int_equal(c.counts.before, IMAGES);
        assert_int_equal(c.counts.after, c.count);
    }
}

static void by_labels(void **unused)
{
    (void)unused;
    check("{filter: {label: {keep: [bee, 0]}}}", "xxxxxxxx....", 1, (const int64_t[]){4});
    check("{filter: {label: {drop: [bee]}}}", "xxxx....xxxx", 1, (const int64_t[]){4});
    check("{filter: {label: {drop: [1]}}}", "xxxx....xxxx", 1, (const int64_t[]){4});
    /* sample 7 has 2.5 */
    check("{filter: {label: {field: kind, keep: [2, 4, 77]}}}", "..x.x....x..", 1, (const int64_t[]){9});
    check("{filter: {label: {field: name, drop: [bee/05.jpg, bee/06]}}}", "xxxxx.xxxxxx", 1, (const int64_t[]){1});
    check("{filter: {label: [{keep: [ant, cat]}, {field: kind, drop: [0]}]}}", ".xxx....xx.x", 2,
          (const int64_t[]){4, 2});
    check("{filter: {}}", "xxxxxxxxxxxx", 0, NULL);
    check("{other: 1}", "xxxxxxxxxxxx", 0, NULL);
}

static void by_sizes(void **unused)
{
    (void)unused;
    check("{filter: {size: {min_height: 10}}}", "..xxxxxxxxxx", 1, (const int64_t[]){2});
    check("{filter: {size: {max_height: 10}}}", "xxx.........", 1, (const int64_t[]){9});
    check("{filter: {size: {min_width: 31, max_width: 38}}}", "..xxxxxxxx..", 1, (const int64_t[]){4});
    check("{filter: {size: {field: file, min_height: 12, max_width: 33}}}", ".......xxxxx", 1, (const int64_t[]){7});
    check("{filter: {size: {max_bytes: 960}}}", "x...........", 1, (const int64_t[]){11}); /* 8 * 40 * 3 */
    check("{filter: {size: {min_bytes: 961}}}", ".xxxxxxxxxxx", 1, (const int64_t[]){1});
    check("{filter: {size: {field: name, min_length: 10, max_length: 10}}}", "xxxxxxxxxxxx", 1, (const int64_t[]){0});
    check("{filter: {label: {keep: [cat]}, size: [{max_height: 18}, {min_width: 31}]}}", "........xx..", 3,
          (const int64_t[]){8, 1, 1});
}

/* For image files, the rules apply to the size of the file, not of its pixels. */
static void by_bytes_of_files(void **unused)
{
    char filter[100];
    chosen c = {.filter = filter};
    stk_error err;
    int64_t at = 0, low = 0, high = 0;

    (void)unused;
    for (int i = 4; i < 9; i += 4) { /* between the sizes of files 4 and 8 */
        char path[600];
        struct stat about;

        snprintf(path, sizeof path, "%s/set/%s/%02d.jpg", folder, classes[i / 4], i);
        assert_int_equal(stat(path, &about), 0);
        low = low == 0 || about.st_size < low ? about.st_size : low;
        high = about.st_size > high ? about.st_size : high;
    }
    snprintf(filter, sizeof filter, "{filter: {size: {field: file, min_bytes: %d, max_bytes: %d}}}", (int)low,
             (int)high);
    assert_ok(choose(&c, &err));
    for (int64_t i = 0; i < IMAGES; i++) {
        char path[600];
        struct stat about;
        const bool stays = at < c.count && c.samples[at] == i;

        snprintf(path, sizeof path, "%s/set/%s/%02d.jpg", folder, classes[i / 4], (int)i);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_size >= low && about.st_size <= high, stays);
        at += stays;
    }
    assert_int_equal(at, c.count);
    assert_in_range(c.count, 1, IMAGES - 1);
}

/* The order of the indices is kept, including repeated samples. A split applies to the remaining samples. */
static void after_indices_and_before_split(void **unused)
{
    chosen c = {.filter = "{filter: {label: {keep: [ant, bee]}}}", .loader = ", indices: [9, 7, 1, 7, 3, 11]"};
    chosen part = {.filter = "{filter: {label: {keep: [ant, bee]}}}", .loader = ", split: {part: val, fraction: 0.5}"};
    chosen outside = {.filter = c.filter, .loader = ", indices: [2, 12]"};
    stk_error err;

    (void)unused;
    assert_ok(choose(&c, &err));
    assert_int_equal(c.count, 4);
    assert_memory_equal(c.samples, ((const int64_t[]){7, 1, 7, 3}), 4 * sizeof(int64_t));
    assert_int_equal(c.counts.before, 6);
    assert_int_equal(c.counts.rules[0].dropped, 2);
    assert_ok(choose(&part, &err));
    assert_int_equal(part.count, 8);
    assert_int_equal(part.epoch, 4);
    assert_status(choose(&outside, &err), STK_E_RANGE);
    assert_says("found 12");
}

/* The validation part is exactly the fraction of the remaining samples: of the 4 cats, or of 6 of a list of 7
 * samples. */
static void a_split_applies_to_the_remaining_samples(void **unused)
{
    static const struct {
        const char *filter, *indices, *method;
        int64_t left;
    } cases[] = {{"keep: [cat]", "", "exact", 4},
                 {"keep: [cat]", "", "contiguous", 4},
                 {"drop: [ant]", ", indices: [11, 9, 7, 5, 10, 6, 0]", "exact", 6},
                 {"drop: [ant]", ", indices: [11, 9, 7, 5, 10, 6, 0]", "contiguous", 6},
                 {"keep: [ant, bee, cat]", ", indices: [11, 7, 9, 10]", "exact", 4}};
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int seed = 0; seed < 5; seed++)
            for (int val = 0; val < 2; val++) {
                char filter[100], loader[160];
                chosen c = {.filter = filter, .loader = loader};

                snprintf(filter, sizeof filter, "{filter: {label: {%s}}}", cases[i].filter);
                snprintf(loader, sizeof loader, "%s, split: {part: %s, fraction: 0.5, method: %s%s}", cases[i].indices,
                         val ? "val" : "train", cases[i].method,
                         strcmp(cases[i].method, "contiguous") == 0 ? "" : STKI_TEXT(", seed: %d", seed));
                assert_ok(choose(&c, &err));
                assert_int_equal(c.count, cases[i].left);
                assert_int_equal(c.epoch, cases[i].left / 2);
            }
}

static void unreadable_samples_are_kept(void **unused)
{
    chosen c = {.filter = "{filter: {size: {field: file, min_height: 100}}}"};
    char path[600], text[200];
    const stkt_jpeg how = {.width = 38, .height = 10};
    stkt_bytes file = stkt_jpeg_make(&how);
    stk_error err;
    json_t *json;

    (void)unused;
    snprintf(path, sizeof path, "%s/set/ant/02.jpg", folder);
    write_file(path, file.data, 100); /* too short to contain the image size */
    assert_ok(choose(&c, &err));
    assert_int_equal(c.count, 1);
    assert_int_equal(c.samples[0], 2);
    assert_int_equal(c.counts.rules[0].dropped, IMAGES - 1);
    assert_int_equal(c.counts.rules[0].not_known, 1);
    write_file(path, file.data, file.size);
    free(file.data);
    stki_filter_rule rule = {.name = "size of field file", .dropped = 3, .not_known = 2};

    assert_string_equal(stki_filter_text(&rule, 9, text, sizeof text),
                        "size of field file: removed 3 of 9 samples (and kept 2 that could not be read)");
    c.counts = (stki_filter_counts){.before = 9, .after = 6, .rule_count = 1, .rules = {rule}};
    json = stki_filter_json(&c.counts);
    assert_int_equal(json_integer_value(json_object_get(json, "stay")), 6);
    assert_int_equal(json_array_size(json_object_get(json, "rules")), 1);
    json_decref(json);
}

static void filters_that_are_refused(void **unused)
{
    static const struct {
        const char *filter, *says;
        stk_status status;
    } wrong[] = {
        {"{filter: 3}", "filter", STK_E_CONFIG},
        {"{filter: {lable: {keep: [1]}}}", "label", STK_E_CONFIG},
        {"{filter: {label: [1]}}", "keep", STK_E_CONFIG},
        {"{filter: {label: {keep: [1], drop: [2]}}}", "keep and drop", STK_E_CONFIG},
        {"{filter: {label: {field: label}}}", "keep and drop", STK_E_CONFIG},
        {"{filter: {label: {keep: []}}}", "a list", STK_E_CONFIG},
        {"{filter: {label: {keep: [[1]]}}}", "a number or a name", STK_E_CONFIG},
        {"{filter: {label: {keep: [beee]}}}", "did you mean bee", STK_E_CONFIG},
        {"{filter: {label: {keep: [zebra]}}}", "3 classes (ant", STK_E_CONFIG},
        {"{filter: {label: {keep: [\"1\"]}}}", "3 classes", STK_E_CONFIG},
        {"{filter: {label: {field: kind, keep: [ant]}}}", "no class names", STK_E_CONFIG},
        {"{filter: {label: {field: lable, keep: [1]}}}", "image, label, kind", STK_E_CONFIG},
        {"{filter: {label: {field: image, keep: [1]}}}", "one number or a string", STK_E_CONFIG},
        {"{filter: {size: {field: image}}}", "expected a limit", STK_E_CONFIG},
        {"{filter: {size: {min_height: 3, max_height: 2}}}", "no sample can remain", STK_E_CONFIG},
        {"{filter: {size: {min_hight: 3}}}", "min_height", STK_E_CONFIG},
        {"{filter: {size: {field: kind, min_height: 3}}}", "no images", STK_E_CONFIG},
        {"{filter: {size: {field: image, min_length: 3}}}", "no ragged samples", STK_E_CONFIG},
        {"{filter: {size: {min_height: 1000}}}", "removed 12 of 12", STK_E_EMPTY},
    };
    chosen cancelled = {.filter = "{filter: {label: {keep: [1]}}}", .cancelled = true};
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        chosen c = {.filter = wrong[i].filter};

        memset(&err, 0, sizeof err);
        if (choose(&c, &err) != wrong[i].status)
            fail_msg("%s: %s", wrong[i].filter, err.message);
        assert_says(wrong[i].says);
    }
    assert_status(choose(&cancelled, &err), STK_E_CANCELLED);
}

static void memory_runs_out(void **unused)
{
    stk_error err;
    int64_t failures = 0;

    (void)unused;
    for (int64_t n = 1;; n++) {
        chosen c = {.filter = "{filter: {label: {keep: [ant, bee]}, size: {field: file, min_height: 10}}}"};
        stk_status status;

        stki_memory_fail_at(n);
        status = choose(&c, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        failures++;
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_labels),
        cmocka_unit_test(by_sizes),
        cmocka_unit_test(by_bytes_of_files),
        cmocka_unit_test(after_indices_and_before_split),
        cmocka_unit_test(a_split_applies_to_the_remaining_samples),
        cmocka_unit_test(unreadable_samples_are_kept),
        cmocka_unit_test(filters_that_are_refused),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, make_data, remove_data);
}
