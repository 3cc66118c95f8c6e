/* stki-threads */
/* Tests of the passes that run before a job's output is written: statistics on which transforms depend, and jobs that
 * compute only statistics. The bytes must be the same for any number of workers and tasks and after interruptions, and
 * the numbers those that this file computes. */
#include "allocate.h"
#include "count_job.h"
#include "faults.h"
#include "prep_file.h"
#include "prep_test.h"
#include <math.h>
#include <signal.h>
#include <stoker/loader.h>

enum { ROWS = 900, CHANNELS = 3, PIXELS = 28, EACH = CHANNELS * PIXELS };

static float x[ROWS][CHANNELS][PIXELS];
static int64_t labels[ROWS];
static char inputs[300];

/* Compares two reports except for what describes the job. */
static void same_statistics(const char *a, const char *b)
{
    json_t *one = NULL, *other = NULL;
    stk_error err;

    assert_ok(stki_prep_read_json(a, &one, &err));
    assert_ok(stki_prep_read_json(b, &other, &err));
    assert_int_equal(json_object_size(one), 7);
    assert_true(json_object_get(one, "job") && json_object_get(one, "inputs") && json_object_get(one, "run"));
    for (int i = 0; i < 4; i++) {
        const char *key = (const char *const[]){"stoker_stats", "version", "rows", "fields"}[i];

        assert_non_null(json_object_get(one, key));
        assert_true(json_equal(json_object_get(one, key), json_object_get(other, key)));
    }
    json_decref(one);
    json_decref(other);
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS * EACH; i++)
        ((float *)x)[i] = (float)((i * 7919) % 1009 - 300) / 64.0f * (float)(i / PIXELS % CHANNELS + 1);
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % 7 * (i % 3);
    stkt_write_npy(stkt_path("x.npy"), "<f4", "False", "(900, 3, 4, 7)", 64, x, sizeof x);
    stkt_write_npy(stkt_path("label.npy"), "<i8", "False", "(900,)", 64, labels, sizeof labels);
    snprintf(inputs, sizeof inputs, "%s", stkt_path(""));
    for (int i = 0; i < 7; i++)
        assert_int_equal(
            mkdir(stkt_path((const char *const[]){"q0", "q1", "q2", "tasks", "stopped", "damaged", "look"}[i]), 0777),
            0);
    return 0;
}

/* The program is linked with --wrap=stki_count_pass, which divides the pass into ten units. */
stk_status __real_stki_count_pass(stki_prep_run *run, stki_loader_config *config, stki_count_field *fields,
                                  int field_count, const char *text, int64_t unit_bytes, json_t **files,
                                  json_t **reports, stk_error *err);
stk_status __wrap_stki_count_pass(stki_prep_run *run, stki_loader_config *config, stki_count_field *fields,
                                  int field_count, const char *text, int64_t unit_bytes, json_t **files,
                                  json_t **reports, stk_error *err);
stk_status __wrap_stki_count_pass(stki_prep_run *run, stki_loader_config *config, stki_count_field *fields,
                                  int field_count, const char *text, int64_t unit_bytes, json_t **files,
                                  json_t **reports, stk_error *err)
{
    assert_int_equal(unit_bytes, STKI_COUNT_UNIT_BYTES);
    return __real_stki_count_pass(run, config, fields, field_count, text, 30000, files, reports, err);
}

/* A data set with a field x with these transforms and a field label. */
static const char *dataset(const char *transforms)
{
    return stkt_text("dataset: {fields: {x: {path: %sx.npy, source: {layout: nchw}, transforms: [%s]}, label: {path: "
                     "%slabel.npy}}}\n",
                     inputs, transforms, inputs);
}

static void run(const char *text)
{
    stk_error err = {0};
    stk_prep_result result = {.struct_size = sizeof result};

    assert_ok(stkt_prep_run(NULL, &result, &err, text));
    assert_true(result.complete);
    assert_int_equal(result.rows, ROWS);
}

static json_t *read_json(const char *path)
{
    json_t *json;
    stk_error err = {0};

    assert_ok(stki_prep_read_json(path, &json, &err));
    return json;
}

/* The elements of an .npy file with a header of at most 128 bytes. */
static char *elements(const char *path, int64_t bytes)
{
    char *text, *out = malloc((size_t)bytes);
    int64_t size;
    stk_error err = {0};

    assert_ok(stki_prep_read_file(path, &text, &size, &err));
    assert_true(size > bytes && size <= bytes + 128);
    memcpy(out, text + size - bytes, (size_t)bytes);
    stki_free(text);
    return out;
}

static void moments(int channel, double *mean, double *std)
{
    double sum = 0, square = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < ROWS; r++)
            for (int p = 0; p < PIXELS; p++) {
                const double v = (double)x[r][channel][p];

                sum += pass ? 0 : v;
                square += pass ? (v - sum / (ROWS * PIXELS)) * (v - sum / (ROWS * PIXELS)) : 0;
            }
    *mean = sum / (ROWS * PIXELS);
    *std = sqrt(square / (ROWS * PIXELS));
}

/* ---- only statistics ---- */

static void test_alone(void **state)
{
    /* mapped rows are counted in place, others in batches */
    static const char *const ways[] = {"num_workers: 0",         "num_workers: 1", "num_workers: 8",
                                       "order: random, seed: 3", "access: pread",  "on_error: skip"};
    json_t *json, *field;

    (void)state;
    for (int w = 0; w < 6; w++) {
        run(stkt_text("%sprep: {%s}\nstats: {path: %s, fields: {x: {histogram: 7, calibrate: [minmax, mse]}, label: "
                      "{classes: true}}}\n",
                      dataset(""), ways[w], stkt_path(stkt_text("alone%d.stats.json", w))));
        if (w > 0)
            same_statistics(stkt_path("alone0.stats.json"), stkt_path(stkt_text("alone%d.stats.json", w)));
    }
    assert_false(stkt_is_there(stkt_path("alone0.stats.json.prep")));
    json = read_json(stkt_path("alone0.stats.json"));
    field = json_object_get(json_object_get(json, "fields"), "x");
    for (int c = 0; c < CHANNELS; c++) {
        double mean, std;

        moments(c, &mean, &std);
        assert_true(fabs(json_real_value(json_array_get(json_object_get(field, "mean"), (size_t)c)) - mean) < 1e-12);
        assert_true(fabs(json_real_value(json_array_get(json_object_get(field, "std"), (size_t)c)) - std) < 1e-12);
    }
    field = json_object_get(json_object_get(json_object_get(json, "fields"), "label"), "classes");
    for (size_t k = 0; k < json_array_size(json_object_get(field, "values")); k++) {
        int64_t count = 0;

        for (int i = 0; i < ROWS; i++)
            count += labels[i] == json_integer_value(json_array_get(json_object_get(field, "values"), k));
        assert_int_equal(json_integer_value(json_array_get(json_object_get(field, "counts"), k)), count);
    }
    json_decref(json);
}

/* Shards end inside batches. */
static void test_shards(void **state)
{
    static const int rows[] = {333, 1, ROWS - 334};
    static uint32_t swapped[ROWS * EACH];

    (void)state;
    for (int i = 0, first = 0; i < 3; first += rows[i++])
        stkt_write_npy(stkt_path(stkt_text("shard%d.npy", i)), "<f4", "False", stkt_text("(%d, 84)", rows[i]), 64,
                       x[first], (size_t)rows[i] * sizeof x[0]);
    stkt_write_npy(stkt_path("whole.npy"), "<f4", "False", "(900, 84)", 64, x, sizeof x);
    for (int w = 0; w < 3; w++)
        run(stkt_text("dataset: {fields: {x: {path: [%s, %s, %s]}}}\nprep: {%s}\nstats: {path: %s, fields: {x: "
                      "{histogram: 9}}}\n",
                      stkt_path("shard0.npy"), stkt_path("shard1.npy"), stkt_path("shard2.npy"),
                      w == 0   ? "num_workers: 0"
                      : w == 1 ? "num_workers: 3"
                               : "access: pread",
                      stkt_path(stkt_text("shards%d.json", w))));
    run(stkt_text("dataset: {fields: {x: {path: %s}}}\nstats: {path: %s, fields: {x: {histogram: 9}}}\n",
                  stkt_path("whole.npy"), stkt_path("shards3.json")));
    /* byte-swapped rows must be converted first */
    for (size_t i = 0; i < sizeof x / 4; i++) {
        memcpy(&swapped[i], (float *)x + i, 4);
        swapped[i] = __builtin_bswap32(swapped[i]);
    }
    stkt_write_npy(stkt_path("swapped.npy"), ">f4", "False", "(900, 84)", 64, swapped, sizeof swapped);
    run(stkt_text("dataset: {fields: {x: {path: %s}}}\nstats: {path: %s, fields: {x: {histogram: 9}}}\n",
                  stkt_path("swapped.npy"), stkt_path("shards4.json")));
    for (int w = 1; w < 5; w++)
        same_statistics(stkt_path("shards0.json"), stkt_path(stkt_text("shards%d.json", w)));
}

/* ---- steps that need statistics ---- */

static int8_t quantized(float value, float scale)
{
    return (int8_t)fminf(fmaxf(rintf(value * (1.0f / scale)), -128), 127);
}

static void check_quantized(const char *path)
{
    int8_t *found = (int8_t *)elements(path, ROWS * EACH);

    for (int c = 0; c < CHANNELS; c++) {
        float most = 0;

        for (int r = 0; r < ROWS; r++)
            for (int p = 0; p < PIXELS; p++)
                most = fmaxf(most, fabsf(x[r][c][p]));
        for (int r = 0; r < ROWS; r++)
            for (int p = 0; p < PIXELS; p++)
                assert_int_equal(found[(r * CHANNELS + c) * PIXELS + p], quantized(x[r][c][p], most / 127.5f));
    }
    free(found);
}

/* A loader that reads the originals with the job's statistics must give what the job wrote. */
static void check_loader(const char *transforms, const char *written, int64_t each)
{
    const char *text = stkt_text("%sloader: {batch_size: %d, num_workers: 0}\n", dataset(transforms), ROWS);
    char *expected = elements(written, ROWS * EACH * each);
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;
    stk_error err = {0};

    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    assert_memory_equal(t.data, expected, (size_t)(ROWS * EACH * each));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    free(expected);
}

static void test_quantize(void **state)
{
    (void)state;
    for (int w = 0; w < 3; w++)
        run(stkt_text("%sprep: {num_workers: %d}\noutput: {path: %s}\n", dataset("{quantize: {calibrate: minmax}}"),
                      w * w, stkt_path(stkt_text("q%d/q.npy", w))));
    check_quantized(stkt_path("q0/q.x.npy"));
    for (int w = 1; w < 3; w++) {
        stkt_same_file(stkt_path("q0/q.x.npy"), stkt_path(stkt_text("q%d/q.x.npy", w)));
        stkt_same_file(stkt_path("q0/q.stats.json"), stkt_path(stkt_text("q%d/q.stats.json", w)));
    }
    check_loader(stkt_text("{quantize: {stats: %s, method: minmax}}", stkt_path("q0/q.stats.json")),
                 stkt_path("q0/q.x.npy"), 1);
}

/* The field's dtype applies to the rows that are written, not to those that are counted. */
static void test_dtype(void **state)
{
    (void)state;
    run(stkt_text("dataset: {fields: {x: {path: %sx.npy, dtype: int8, source: {layout: nchw}, transforms: [{quantize: "
                  "{calibrate: minmax}}]}}}\noutput: {path: %s}\n",
                  inputs, stkt_path("dtype.npy")));
    check_quantized(stkt_path("dtype.npy"));
}

/* One step needs the statistics of another one's result. */
static void test_chain(void **state)
{
    json_t *root, *json;

    (void)state;
    run(stkt_text("%soutput: {path: %s}\nstats: {fields: {x: {}}}\n",
                  dataset("{normalize: {stats: job}}, {quantize: {calibrate: mse, dtype: uint8}}"),
                  stkt_path("chain.npy")));
    root = read_json(stkt_path("chain.stats.json"));
    json = json_object_get(json_object_get(root, "fields"), "x");
    /* the field's own statistics describe the written rows */
    assert_string_equal(json_string_value(json_object_get(json, "dtype")), "uint8");
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "before"), "dtype")), "float32");
    assert_non_null(json_object_get(json_object_get(json, "quantize"), "mse"));
    /* normalized per channel */
    for (size_t c = 0; c < CHANNELS; c++)
        assert_true(fabs(json_real_value(json_array_get(json_object_get(json_object_get(json, "before"), "mean"), c))) <
                    1e-6);
    json_decref(root);
}

static void test_normalize(void **state)
{
    const float *found;
    char *bytes;

    (void)state;
    run(stkt_text("%soutput: {path: %s}\n", dataset("{normalize: {stats: job}}"), stkt_path("n.npy")));
    bytes = elements(stkt_path("n.x.npy"), ROWS * EACH * 4);
    found = (const float *)(const void *)bytes;
    for (int c = 0; c < CHANNELS; c++) {
        double mean, std;

        moments(c, &mean, &std);
        for (int r = 0; r < ROWS; r++)
            for (int p = 0; p < PIXELS; p++)
                assert_true(fabs((double)found[(r * CHANNELS + c) * PIXELS + p] - ((double)x[r][c][p] - mean) / std) <
                            2e-6);
    }
    free(bytes);
    check_loader(stkt_text("{normalize: {stats: %s}}", stkt_path("n.stats.json")), stkt_path("n.x.npy"), 4);
}

/* ---- tasks and interruptions ---- */

static void test_tasks(void **state)
{
    const char *text =
        stkt_text("%soutput: {path: %s}\n", dataset("{quantize: {calibrate: minmax}}"), stkt_path("tasks/q.npy"));
    stk_prep_result result = {.struct_size = sizeof result};

    (void)state;
    for (int r = 0; r < 3; r++) {
        stk_prep_opts opts = STK_PREP_OPTS_INIT;
        stk_error err = {0};

        opts.task = r;
        opts.tasks = 3;
        assert_ok(stkt_prep_run(&opts, &result, &err, text));
    }
    assert_true(result.complete);
    check_quantized(stkt_path("tasks/q.x.npy"));
}

typedef struct stopper {
    stk_prep *job;
    int64_t calls, stop_at;
} stopper;

static void stop(void *context, const stk_prep_progress *now)
{
    stopper *s = context;

    if (now->phase == STK_PREP_COUNTING && s->calls++ == s->stop_at)
        stk_prep_cancel(s->job);
}

static void test_interruptions(void **state)
{
    const char *text = stkt_text("%sprep: {num_workers: 2}\noutput: {path: %s}\n",
                                 dataset("{quantize: {calibrate: minmax}}"), stkt_path("stopped/q.npy"));
    stk_status status = STK_E_CANCELLED;
    int rounds = 0;

    (void)state;
    for (; status == STK_E_CANCELLED; rounds++) {
        stopper s = {.stop_at = 3 + rounds};
        stk_prep_opts opts = STK_PREP_OPTS_INIT;
        stk_error err = {0};

        opts.progress = stop;
        opts.progress_context = &s;
        opts.progress_interval_ns = 1;
        assert_ok(stk_prep_open_text(text, NULL, NULL, 0, &opts, &s.job, &err));
        status = stk_prep_run(s.job, &err);
        stk_prep_destroy(s.job);
        assert_true(rounds < 100);
        if (status != STK_E_CANCELLED)
            assert_ok(status);
    }
    assert_true(rounds > 2);
    check_quantized(stkt_path("stopped/q.x.npy"));
}

/* For each test, cmocka installs a SIGBUS handler that does not call the previous one. Reinstalls the library's
 * handler. */
static void guard_on(void)
{
    static struct sigaction ours;
    stk_loader *loader;
    stk_error err = {0};

    if (!ours.sa_sigaction) {
        (void)signal(SIGBUS, SIG_DFL);
        assert_ok(stk_loader_open_text(dataset(""), NULL, NULL, 0, &loader, &err));
        stk_loader_destroy(loader);
        sigaction(SIGBUS, NULL, &ours);
    }
    assert_int_equal(sigaction(SIGBUS, &ours, NULL), 0);
}

static void cut_file(void *context, const stk_prep_progress *now)
{
    if (now->phase == STK_PREP_COUNTING)
        assert_int_equal(truncate(context, 5000), 0);
}

/* A file that is truncated while its rows are counted gives an error, not zeros. */
static void test_cut_file(void **state)
{
    const char *path = stkt_path("cut.npy");
    char kept[300];
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};

    (void)state;
    guard_on();
    snprintf(kept, sizeof kept, "%s", path);
    stkt_write_npy(kept, "<f4", "False", "(900, 84)", 64, x, sizeof x);
    opts.progress = cut_file;
    opts.progress_context = kept;
    assert_int_equal(stkt_prep_run(&opts, &result, &err,
                                   stkt_text("dataset: {fields: {x: {path: %s}}}\nprep: {num_workers: 2}\nstats: "
                                             "{path: %s}\n",
                                             kept, stkt_path("cut.stats.json"))),
                     STK_E_TRUNCATED);
    assert_says("cut.npy");
    assert_false(stkt_is_there(stkt_path("cut.stats.json")));
}

/* If the file of a unit is damaged, the unit is computed again. */
static void test_damaged_unit(void **state)
{
    const char *text = stkt_text("%sprep: {num_workers: 2}\noutput: {path: %s}\n",
                                 dataset("{quantize: {calibrate: minmax}}"), stkt_path("damaged/q.npy"));
    stopper s = {.stop_at = 8};
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_error err = {0};

    (void)state;
    opts.progress = stop;
    opts.progress_context = &s;
    opts.progress_interval_ns = 1;
    assert_ok(stk_prep_open_text(text, NULL, NULL, 0, &opts, &s.job, &err));
    assert_status(stk_prep_run(s.job, &err), STK_E_CANCELLED);
    stk_prep_destroy(s.job);
    assert_int_equal(system(stkt_text("for f in %s/*.tally; do [ -s \"$f\" ] || exit 1; printf x | dd of=\"$f\" bs=1 "
                                      "seek=20 conv=notrunc status=none; done",
                                      stkt_path("damaged/q.npy.prep"))),
                     0);
    run(text);
    check_quantized(stkt_path("damaged/q.x.npy"));
}

/* Planning a job changes nothing. */
static void test_plan(void **state)
{
    const char *text =
        stkt_text("%soutput: {path: %s}\n", dataset("{quantize: {calibrate: minmax}}"), stkt_path("look/q.npy"));
    stk_prep_plan plan = {.struct_size = sizeof plan};
    stk_prep *job;
    stk_error err = {0};

    (void)state;
    assert_ok(stk_prep_open_text(text, NULL, NULL, 0, NULL, &job, &err));
    for (int i = 0; i < 2; i++) {
        assert_ok(stk_prep_get_plan(job, &plan, &err));
        assert_int_equal(plan.positions, ROWS);
        assert_int_equal(plan.output_bytes, ROWS * (EACH + 8) + 2 * 128); /* two headers */
    }
    assert_ok(stk_prep_run(job, &err));
    stk_prep_destroy(job);
    check_quantized(stkt_path("look/q.x.npy"));
    text = stkt_text("%sstats: {path: %s}\n", dataset(""), stkt_path("look.stats.json"));
    assert_ok(stk_prep_open_text(text, NULL, NULL, 0, NULL, &job, &err));
    assert_ok(stk_prep_get_plan(job, &plan, &err));
    assert_int_equal(plan.positions, ROWS);
    stk_prep_destroy(job);
}

/* ---- rejected jobs ---- */

static void refused(const char *text, const char *says)
{
    stk_error err = {0};
    stk_prep_result result = {.struct_size = sizeof result};

    if (stkt_prep_run(NULL, &result, &err, text) >= 0)
        fail_msg("%s was accepted", text);
    if (!strstr(err.message, says))
        fail_msg("found \"%s\", expected \"%s\"", err.message, says);
}

static void test_refusals(void **state)
{
    char out[300];

    (void)state;
    snprintf(out, sizeof out, "output: {path: %s}\n", stkt_path("no.npy"));
    refused(stkt_text("%s%s", dataset("{quantize: {calibrate: [minmax, mse]}}"), out), "one of minmax, percentile");
    refused(stkt_text("%s%s", dataset("{quantize: {calibrate: mean}}"), out), "minmax, percentile or mse");
    refused(stkt_text("%s%s", dataset("{quantize: {calibrate: mse, scale: 1}}"), out), "scale");
    refused(stkt_text("%s%s", dataset("{quantize: {calibrate: mse, per: channel, dtype: uint8}}"), out),
            "one zero point for all");
    refused(stkt_text("%s%s", dataset("{normalize: {stats: job, scale: 1}}"), out), "stats alone");
    refused(stkt_text("%sstats: {}\n", dataset("")), "output: {path: FILE}");
    refused(stkt_text("%s%sstats: {path: a.json}\n", dataset(""), out), "cannot be used with output");
    refused(stkt_text("%sstats: {path: %s, fields: {y: {}}}\n", dataset(""), stkt_path("no.stats.json")), "y");
    stkt_write_npy(stkt_path("constant.npy"), "<f4", "False", "(2, 2)", 64, (const float[]){1, 1, 1, 1}, 16);
    refused(stkt_text("dataset: {fields: {x: {path: %sconstant.npy, transforms: [{normalize: {stats: job}}]}}}\n%s",
                      inputs, out),
            "their std is 0");
    refused(stkt_text("datasets: [{fields: {x: {path: %sx.npy, transforms: [{normalize: {stats: job}}]}}}]\n%s", inputs,
                      out),
            "in a separate job");
}

/* These values are rejected in the config of a loader. */
static void test_loader_refuses(void **state)
{
    const char *const wrong[][2] = {{"{quantize: {calibrate: mse}}", "NAME.stats.json"},
                                    {"{normalize: {stats: job}}", "stoker prep"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        stk_loader *loader;
        stk_error err = {0};

        assert_true(stk_loader_open_text(dataset(wrong[i][0]), NULL, NULL, 0, &loader, &err) < 0);
        assert_says(wrong[i][1]);
    }
}

static void test_no_memory(void **state)
{
    const char *text = stkt_text("%sprep: {num_workers: 1}\nstats: {path: %s, fields: {x: {calibrate: minmax}}}\n",
                                 dataset(""), stkt_path("memory.stats.json"));
    stk_prep_opts opts = STK_PREP_OPTS_INIT;

    (void)state;
    opts.force = true;
    for (int64_t n = 1;; n += n / 2 + 1) {
        stk_prep_result result = {.struct_size = sizeof result};
        stk_error err = {0};
        stk_status status;

        stki_memory_fail_at(n);
        status = stkt_prep_run(&opts, &result, &err, text);
        stki_memory_fail_at(0);
        if (status == STK_OK && n > 2000)
            break;
        if (status != STK_OK && status != STK_E_MEMORY)
            fail_msg("allocation %lld: %s", (long long)n, err.message);
        assert_true(n < 100000);
    }
}

/* Arrays without channels can be counted. */
static void test_no_channels(void **state)
{
    static const char *const more[] = {"", ", ragged: true"};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err;

    (void)state;
    stkt_write_npy(stkt_path("none.npy"), "|u1", "False", "(5, 4, 3, 0)", 64, "", 0);
    for (int i = 0; i < 2; i++) {
        const json_t *field;
        json_t *json;

        assert_ok(stkt_prep_run(NULL, &result, &err,
                                stkt_text("dataset: {fields: {x: {path: %snone.npy, source: {layout: nhwc}%s}}}\n"
                                          "stats: {path: %snone%d.json, fields: {x: {}}}\n",
                                          inputs, more[i], inputs, i)));
        json = read_json(stkt_path(stkt_text("none%d.json", i)));
        field = json_object_get(json_object_get(json, "fields"), "x");
        assert_int_equal(json_integer_value(json_object_get(field, "rows")), 5);
        assert_false(json_is_real(json_object_get(field, "mean")));
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_file), /* first, because it must be the first to map a file */
        cmocka_unit_test(test_alone),       cmocka_unit_test(test_shards),        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_dtype),       cmocka_unit_test(test_chain),         cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_tasks),       cmocka_unit_test(test_interruptions), cmocka_unit_test(test_damaged_unit),
        cmocka_unit_test(test_plan),        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_loader_refuses),
        cmocka_unit_test(test_no_channels), cmocka_unit_test(test_no_memory),
    };

    stkt_skip_syncs(true);
    return cmocka_run_group_tests(tests, setup, NULL);
}
