/* stki-threads */
/* Tests of a loader when something fails, hangs or is too small. An error is returned in place of its batch, persists,
 * names its record, and is never reported as the end of the data. Timeouts do not persist. */
#include "clock.h"
#include "error.h"
#include "faults.h"
#include "faulty.h"
#include "loader_test.h"

#define CONFIG                                                                                                      \
    "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6], dtype: u8, distinct: 40}}, y: {synthetic: {count: " \
    "40, shape: [], dtype: i64, distinct: 40}}}}, "                                                                 \
    "loader: {batch_size: 8, num_workers: %d, num_epochs: %d, prefetch: %d, timeout: %s, close_timeout: %s}}"

/* Row P04 (read): the batches before the bad one are delivered, and then every call returns the error, never the
 * end. */
static void p04_a_failed_read_is_an_error(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 8; workers += 4)
        for (int64_t bad = 0; bad < 40; bad += 13) {
            stkt_fault fault = {.field = "x",
                                .opts = {.fail_at = bad, .status = STK_E_IO, .fail_from_read = -1, .slow_at = -1}};
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            stk_status status;
            int64_t batches = 0;

            assert_ok(stkt_open_faulty(&loader, &fault, false, &err, CONFIG, workers, 1, 4, "60s", "60s"));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                batches++;
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_E_IO);
            assert_int_equal(batches, bad / 8);
            assert_int_equal(err.record, bad);
            assert_true(err.message[0]);
            for (int i = 0; i < 3; i++) {
                stk_error again;

                assert_int_equal(stk_loader_next(loader, &batch, &again), STK_E_IO);
                assert_string_equal(again.message, err.message);
            }
            assert_ok(stk_loader_close(loader, &err));
            stk_loader_destroy(loader);
        }
}

static stki_counter fail_store;

stk_status __real_stki_resample_store(const stki_field_plan *, stki_resampler *, const stk_tensor *, void *,
                                      stk_error *);
stk_status __wrap_stki_resample_store(const stki_field_plan *, stki_resampler *, const stk_tensor *, void *,
                                      stk_error *);
stk_status __wrap_stki_resample_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view,
                                      void *row, stk_error *err)
{
    if (atomic_fetch_sub_explicit(&fail_store, 1, memory_order_relaxed) == 1)
        return stki_fail(err, STK_E_DEVICE, "the conversion failed");
    return __real_stki_resample_store(plan, resampler, view, row, err);
}

/* Row P04 (convert). */
static void p04_a_failed_conversion_is_an_error(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 2; workers++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        stk_status status;

        stki_count_set(&fail_store, 5);
        assert_ok(stkt_open_faulty(
            &loader, NULL, false, &err,
            "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6, 5, 3], dtype: u8, distinct: 40}, source: "
            "{layout: "
            "nhwc}, transforms: [resize: [4, 4]]}}}, loader: {batch_size: 8, num_workers: %d, num_epochs: 1, prefetch: "
            "2}}",
            workers));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
            stk_batch_release(batch);
        assert_int_equal(status, STK_E_DEVICE);
        assert_says("conversion");
        assert_int_equal(stk_loader_next(loader, &batch, &err), STK_E_DEVICE);
        stk_loader_destroy(loader);
    }
}

/* Row P07: the first record of the second epoch fails, and the error has the cause's own message. */
static void p07_the_first_error_survives_the_epochs_end(void **state)
{
    stkt_fault fault = {.field = "x",
                        .opts = {.fail_at = -1, .status = STK_E_CORRUPT, .fail_from_read = 41, .slow_at = -1}};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t rows = 0;

    (void)state;
    assert_ok(stkt_open_faulty(&loader, &fault, false, &err, CONFIG, 1, 2, 4, "60s", "60s"));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        rows += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_E_CORRUPT);
    assert_int_equal(rows, 40);
    assert_int_equal(err.record, 0);
    stk_loader_destroy(loader);
}

/* The error of the first failed row in order is reported, whichever worker failed first. */
static void the_first_failed_row_in_order_is_reported(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        stkt_fault fault = {
            .field = "x",
            .opts = {.fail_at = -1, .status = STK_E_CORRUPT, .fail_from_read = 1, .slow_at = 0, .slow_ns = 2000000}};
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        assert_ok(stkt_open_faulty(&loader, &fault, false, &err,
                                   "{dataset: {fields: {x: {synthetic: {count: 40, shape: [600], dtype: u8, distinct: "
                                   "40}}}}, loader: {batch_size: 20, num_workers: 8, tile_bytes: 1024}}"));
        assert_int_equal(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
        assert_int_equal(err.record, 0);
        stk_loader_destroy(loader);
    }
}

/* A batch with skipped rows is shorter; it gets no rows from the next batch. */
static void skipped_rows_shorten_the_batch(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 8; workers += 4)
        for (int ragged = 0; ragged < 2; ragged++) {
            stkt_fault fault = {.field = "x",
                                .opts = {.fail_at = 11, .status = STK_E_CORRUPT, .fail_from_read = -1, .slow_at = -1}};
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            stk_status status;
            int64_t expected = 0;
            stki_synthetic_opts y = {.count = 40, .dtype = STK_I64, .distinct = 40, .min_length = -1};

            assert_ok(stkt_open_faulty(
                &loader, &fault, true, &err,
                "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6], dtype: u8, distinct: 40, min_length: %d}}, "
                "y: {synthetic: {count: 40, shape: [], dtype: i64, distinct: 40}}}}, "
                "loader: {batch_size: 8, num_workers: %d, tile_bytes: 1024}}",
                ragged ? 0 : -1, workers));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                stk_tensor label;

                assert_int_equal(stk_batch_rows(batch), stk_batch_step(batch) == 1 ? 7 : 8);
                assert_int_equal(stk_batch_valid_rows(batch), stk_batch_rows(batch));
                assert_ok(stk_batch_tensor(batch, "y", &label, &err));
                for (int64_t r = 0; r < stk_batch_rows(batch); r++, expected++) {
                    int64_t value;

                    expected += expected == 11;
                    assert_int_equal(stk_batch_indices(batch)[r], expected);
                    stki_synthetic_fill(&y, expected, 1, &value);
                    assert_int_equal(((int64_t *)label.data)[r], value);
                }
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_END);
            assert_int_equal(expected, 40);
            stk_loader_destroy(loader);
        }
}

/* Row P06: a read that never returns. next times out, and its error names the record and the stage. close abandons the
 * worker, and the memory of its batch stays allocated until the read returns. */
static void p06_a_stuck_worker(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 4; workers *= 4) {
        stkt_fault fault = {.field = "x",
                            .opts = {.fail_at = -1, .fail_from_read = -1, .slow_at = 9, .slow_ns = INT64_MAX}};
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        stki_memory_stats before;

        stki_memory_read(STKI_MEM_HOST, &before);
        assert_ok(stkt_open_faulty(&loader, &fault, false, &err, CONFIG, workers, 1, 4, "100ms",
                                   workers == 1 ? "200ms" : "2s")); /* enough time for the workers that are not stuck */
        assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
        stk_batch_release(batch);
        do /* until the worker is reading */
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_TIMEOUT);
        while (!strstr(err.message, "reading"));
        for (int i = 0; i < 2; i++) { /* a timeout does not persist: the next call waits again */
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_TIMEOUT);
            assert_says("record 9");
            assert_says("reading");
        }
        assert_status(stk_loader_close(loader, &err), STK_E_TIMEOUT);
        assert_says("1 of");
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_CLOSED);
        assert_status(stk_loader_close(loader, &err), STK_E_TIMEOUT); /* a second call returns the same status */
        stk_loader_destroy(loader);
        stki_faulty_wake(fault.made); /* the thread returns, and frees the rest */
        stkt_wait_for_blocks(before.blocks);
    }
}

/* A slow sample delays only its own batch; the following ones are ready. */
static void a_slow_sample_delays_its_own_batch(void **state)
{
    stkt_fault fault = {.field = "x",
                        .opts = {.fail_at = -1, .fail_from_read = -1, .slow_at = 9, .slow_ns = INT64_MAX}};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_loader_stats stats = {.struct_size = sizeof stats};

    (void)state;
    assert_ok(stkt_open_faulty(&loader, &fault, false, &err, CONFIG, 2, 1, 4, "60s", "60s"));
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    for (int slice = 1; slice <= 3; slice++) { /* the total waiting time of several calls is reported */
        double seconds = 0;

        assert_status(stk_loader_next_timeout(loader, 50000000, &batch, &err), STK_E_TIMEOUT);
        assert_int_equal(sscanf(err.message, "no batch within %lf s", &seconds), 1);
        assert_true(seconds > 0.05 * slice - 0.001);
    }
    do { /* batches 2, 3 and 4 are made in the meantime */
        stki_sleep_ns(1000000);
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
    } while (stats.slots_ready < 3);
    stki_faulty_wake(fault.made);
    for (int i = 1; i < 5; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_int_equal(stk_batch_step(batch), i);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_END);
    stk_loader_destroy(loader);
}

static void budgets(void **state)
{
    stk_loader *loader;
    stk_error err;
    const char *text = "{dataset: {fields: {x: {synthetic: {count: 40, shape: [1000], dtype: u8}}}}, loader: "
                       "{batch_size: 10, prefetch: 8}}";
    const char *small[] = {"loader.memory_budget=35000"}, *tiny[] = {"loader.memory_budget=9000"};

    (void)state;
    assert_ok(stk_loader_open_text(text, NULL, small, 1, &loader, &err));
    assert_int_equal(stk_loader_note_count(loader), 1);
    assert_non_null(strstr(stk_loader_note(loader, 0), "lowered from 8 to 3"));
    assert_non_null(strstr(stk_loader_options_json(loader), "\"prefetch\": 3"));
    stk_loader_destroy(loader);
    assert_status(stk_loader_open_text(text, NULL, tiny, 1, &loader, &err), STK_E_LIMIT);
    assert_says("memory_budget");
    assert_says("9000");
}

/* Each allocation of open fails in turn: the result is an error, and nothing leaks. */
static void open_survives_every_allocation_failure(void **state)
{
    stk_loader *loader;
    stk_error err;
    stki_memory_stats before, after;
    int n;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1; n < 5000; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        memset(&err, 0, sizeof err);
        status = stkt_open_faulty(&loader, NULL, false, &err, CONFIG, 2, 1, 3, "60s", "60s");
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_true(err.message[0]);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
    }
    assert_true(n > 30 && n < 5000);
    stk_loader_destroy(loader);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.blocks, before.blocks);
}

/* An allocation that fails later is an error of its batch. */
static void running_survives_allocation_failures(void **state)
{
    (void)state;
    for (int n = 1; n < 12; n++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        stk_status status;

        assert_ok(stkt_open_faulty(&loader, NULL, false, &err,
                                   "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6], dtype: u8, form: "
                                   "block}}}}, loader: {batch_size: 8, num_workers: 0, order: random}}"));
        stki_memory_fail_at(n);
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
            stk_batch_release(batch);
        stki_memory_fail_at(0);
        assert_int_equal(status, STK_E_MEMORY);
        stk_loader_destroy(loader);
    }
}

/* A NULL argument that must not be NULL is an error that names it. */
static void null_arguments(void **state)
{
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader *loader = NULL;
    stk_batch *batch = NULL;
    stk_tensor tensor;
    stk_error err;

    (void)state;
    opts.field_count = 1;
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_E_BAD_ARG);
    assert_non_null(strstr(err.message, "fields"));
    opts.fields = &field;
    field.name = "x";
    field.path_count = 1;
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_E_BAD_ARG);
    assert_non_null(strstr(err.message, "paths"));
    field.path_count = 0;
    field.synthetic = "{count: 8, shape: [2], dtype: u8}";
    assert_int_equal(stk_loader_open(&opts, NULL, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_loader_open_text("x: 1", NULL, NULL, 0, NULL, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_loader_open_file("x.yaml", NULL, 0, NULL, &err), STK_E_BAD_ARG);
    opts.num_workers = -2;
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "num_workers: found -2"));
    opts.num_workers = 1;
    opts.timeout_ns = -2;
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "timeout: found -2"));
    opts.timeout_ns = 0;
    assert_int_equal(stk_loader_next(NULL, &batch, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_loader_close(NULL, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_loader_close(NULL, NULL), STK_E_BAD_ARG);
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_OK);
    assert_int_equal(stk_loader_next(loader, NULL, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_OK);
    assert_int_equal(stk_batch_tensor(batch, NULL, &tensor, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_batch_tensor(batch, "x", NULL, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_batch_tensor(NULL, "x", &tensor, &err), STK_E_BAD_ARG);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void wrong_configs_say_what_and_where(void **state)
{
    static const struct {
        const char *text, *says[3];
        stk_status status;
    } cases[] = {
        {"{loader: {batch_size: 1}}", {"dataset.fields is missing"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {path: /nonexistent/x.npy}}}}", {"/nonexistent/x.npy"}, STK_E_NOT_FOUND},
        {"{dataset: {fields: {x: {}}}}", {"path is missing", "dataset.fields.x"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, path: a}}}}", {"both path and synthetic"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {batchsize: 3}}", {"batch_size", "text:1"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}, path: a}}",
         {"did you mean dataset.fields.NAME.path?"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}, name: a}}", {"did you mean datasets.name?"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {path: a, name: b}}}}", {"did you mean source.name?"}, STK_E_CONFIG},
        {"{dataset: {field: {x: {synthetic: {}}}}}", {"dataset.field:", "did you mean fields?"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {path: a, source: {path: b}}}}}",
         {"did you mean dataset.fields.NAME.path?"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {path: a, source: {classes: {form: b}}}}}}", {"did you mean from?"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {path: a}}",
         {"did you mean dataset.fields.NAME.path?"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {epochs: 3}}", {"did you mean num_epochs?"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {split: {part: val, method: contiguous, seed: 3}}}",
         {"loader.split.seed", "method"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loder: {}}", {"did you mean loader?"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {shuffle: true, order: random}}", {"order"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {rank: 2, world_size: 2}}",
         {"rank 2 of world_size 2"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, layout: nchw}}}}", {"source: {layout"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [4, 4, 3]}, source: {layout: nhwc}, layout: chwn}}}}",
         {"chwn", "channels_last"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, dtype: flaot32}}}}", {"flaot32", "dtype"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [4]}, transforms: [{normalise: imagenet}]}}}}",
         {"did you mean normalize?", "transforms"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [4]}, transforms: [{normalize: {mean: 0, std: 1}}]}}}}",
         {"need scale"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [4], dtype: f32}, transforms: [{normalize: {mean: 0, std: "
         "0}}]}}}}",
         {"found 0, expected a number above 0"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [2, 2], dtype: f32}, transforms: [{normalize: {mean: [0, 1], std: "
         "1}}]}}}}",
         {"channel axis"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [2, 2, 3]}, source: {layout: nhwc}, transforms: [{normalize: "
         "{mean: [0, 1], std: 1, scale: unit}}]}}}}",
         {"found 2 values, expected 1 or 3"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, transforms: [{quantize: {zero_point: 1}}]}}}}",
         {"scale is missing"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, transforms: [{quantize: {scale: 1, zero_point: 200}}]}}}}",
         {"found 200, expected -128 to 127"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, transforms: [{quantize: {scale: 1}}, {scale: 2}]}}}}",
         {"nothing can follow quantize"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, dtype: f64, transforms: [{scale: 2}]}}}}",
         {":1: ", ".x.dtype: found f64, expected f32, f16, "},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {count: 3}}, y: {synthetic: {count: 4}}}}}", {"3", "4"}, STK_E_MISMATCH},
        {"{dataset: {fields: {}}}", {"found no field"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [4]}, transforms: [{scale: 1e300}]}}}}",
         {"which float32 cannot represent"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {shape: [4]}, transforms: [{normalize: {mean: 0, std: 1e-46, scale: "
         "unit}}]}}}}",
         {"which float32 cannot represent"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}, transforms: [{quantize: {scale: 1e-300}}]}}}}",
         {"float32 can represent"},
         STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {memory_budget: 1 GiB}}", {"64MiB"}, STK_E_CONFIG},
        {"{dataset: {fields: {x: {synthetic: {}}}}, loader: {batch_size: 99999999999999999999}}",
         {"an integer of at most 9223372036854775807"},
         STK_E_CONFIG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader;
        stk_error err;

        assert_status(stk_loader_open_text(cases[i].text, NULL, NULL, 0, &loader, &err), cases[i].status);
        for (int k = 0; k < 3 && cases[i].says[k]; k++)
            assert_says(cases[i].says[k]);
    }
}

/* Errors that can be detected without data are detected before any file is opened. */
static void a_check_finds_what_needs_no_data(void **state)
{
    static const char *const wrong[] = {
        "dataset.fields.image.transforms=[{bogus: 1}]",
        "dataset.fields.image.transforms={normalize: imagenet}",
        "dataset.fields.image.layout=zzz",
        "dataset.fields.image.source.layout=channels_last",
        "dataset.fields.image.transforms=[{normalize: {mean: [1, 2], std: [1, 2, 3]}}]",
        "dataset.fields.image.transforms=[{quantize: {scale: 1}}, {cast: f32}]",
        "dataset.fields.image.path=[]",
    };
    const char *good[] = {"dataset.fields.image.path=/nonexistent.npy",
                          "dataset.fields.image.transforms=[{normalize: {mean: [1, 2], std: [1, 2]}}]"};
    stk_error err;

    (void)state;
    assert_ok(stk_loader_check_file(STKT_TESTS_DIR "/../configs/digits.yaml", good, 2, &err));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_status(stk_loader_check_file(STKT_TESTS_DIR "/../configs/digits.yaml", &wrong[i], 1, &err),
                      STK_E_CONFIG);
        assert_says("dataset.fields.image");
    }
}

static void wrong_arguments_are_named(void **state)
{
    const char *sets[] = {NULL};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_status(stk_loader_open_file(NULL, NULL, 0, &loader, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_open_text(NULL, NULL, NULL, 0, &loader, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_open_text("{}", NULL, sets, 1, &loader, &err), STK_E_BAD_ARG);
    assert_says("sets[0]");
    assert_status(stk_loader_open_text("{}", NULL, NULL, 1, &loader, &err), STK_E_BAD_ARG);
    assert_ok(stkt_open_faulty(&loader, NULL, false, &err, CONFIG, 1, 1, 1, "60s", "60s"));
    assert_status(stk_loader_next_timeout(loader, -7, &batch, &err), STK_E_BAD_ARG);
    assert_says("-7");
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_status(stk_loader_next_timeout(loader, 400000, &batch, &err), STK_E_TIMEOUT);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_survives_every_allocation_failure), /* must run before the tests that abandon threads */
        cmocka_unit_test(p04_a_failed_read_is_an_error),
        cmocka_unit_test(p04_a_failed_conversion_is_an_error),
        cmocka_unit_test(p07_the_first_error_survives_the_epochs_end),
        cmocka_unit_test(the_first_failed_row_in_order_is_reported),
        cmocka_unit_test(skipped_rows_shorten_the_batch),
        cmocka_unit_test(p06_a_stuck_worker),
        cmocka_unit_test(a_slow_sample_delays_its_own_batch),
        cmocka_unit_test(budgets),
        cmocka_unit_test(running_survives_allocation_failures),
        cmocka_unit_test(null_arguments),
        cmocka_unit_test(wrong_configs_say_what_and_where),
        cmocka_unit_test(a_check_finds_what_needs_no_data),
        cmocka_unit_test(wrong_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
