/* stki-threads */
/* Tests of rows of varying length that are padded to the longest row of their batch or to a given length. Values, mask
 * and lengths are compared with the samples, for several dtypes, inner axes and numbers of workers, a smaller last
 * batch, failed rows, and rejected options. */
#include "faulty.h"
#include "loader_test.h"

enum { COUNT = 61, LONGEST = 19 };

static const char shape_1d[] = "[19]", shape_2d[] = "[19, 3]";

static stki_synthetic_opts source(const char *shape, stk_dtype dtype)
{
    stki_synthetic_opts opts = STKI_SYNTHETIC_OPTS_INIT;

    opts.count = COUNT;
    opts.seed = 3;
    opts.dtype = dtype;
    opts.ndim = shape == shape_2d ? 2 : 1;
    opts.shape[0] = LONGEST;
    opts.shape[1] = 3;
    opts.min_length = 0;
    return opts;
}

static stk_loader *open_padded(const char *shape, const char *dtype, const char *rest, int workers)
{
    stk_loader *loader = NULL;

    assert_int_equal(
        stkt_open(&loader,
                  "{dataset: {fields: {t: {synthetic: {count: %d, seed: 3, dtype: %s, shape: %s, "
                  "min_length: 0}, %s}}}, loader: {batch_size: 8, shuffle: true, seed: 1, num_workers: %d, "
                  "tile_bytes: 1024}}",
                  COUNT, dtype, shape, rest, workers),
        STK_OK);
    return loader;
}

/* Checks rows of i64 made from u16 samples. `to`: the common length; 0: the longest of the batch. */
static void check_batch(const stk_batch *batch, const stki_synthetic_opts *opts, int64_t to, int64_t value, int inner)
{
    int64_t rows = stk_batch_rows(batch), longest = 0;
    stk_tensor t, mask, lengths;
    stk_error err;

    assert_ok(stk_batch_tensor(batch, "t", &t, &err));
    assert_ok(stk_batch_tensor(batch, "t.mask", &mask, &err));
    assert_ok(stk_batch_tensor(batch, "t.lengths", &lengths, &err));
    assert_int_equal(t.dtype, STK_I64);
    assert_int_equal(t.ndim, inner == 1 ? 2 : 3);
    assert_int_equal(mask.dtype, STK_BOOL);
    assert_int_equal(t.shape[0], rows);
    assert_int_equal(mask.shape[0], rows);
    assert_int_equal(lengths.shape[0], rows);
    for (int64_t r = 0; r < rows; r++) {
        int64_t its = stki_synthetic_length(opts, stk_batch_indices(batch)[r]);

        its = to && its > to ? to : its;
        longest = its > longest ? its : longest;
        assert_int_equal(((const int64_t *)lengths.data)[r], its);
    }
    assert_int_equal(t.shape[1], to ? to : longest);
    assert_int_equal(mask.shape[1], t.shape[1]);
    assert_int_equal(t.strides[0], t.shape[1] * inner * 8);
    for (int64_t r = 0; r < rows; r++) {
        int64_t index = stk_batch_indices(batch)[r], length = stki_synthetic_length(opts, index);
        int64_t own = ((const int64_t *)lengths.data)[r];
        uint16_t expected[LONGEST * 3];

        stki_synthetic_fill(opts, index, length, expected);
        for (int64_t i = 0; i < t.shape[1]; i++) {
            assert_int_equal(((const uint8_t *)mask.data)[r * mask.strides[0] + i], i < own);
            for (int c = 0; c < inner; c++)
                assert_int_equal(((const int64_t *)t.data)[(r * t.shape[1] + i) * inner + c],
                                 i < own ? expected[i * inner + c] : value);
        }
    }
}

static void check_all(const char *shape, const char *pad, int64_t to, int64_t value, int workers)
{
    stki_synthetic_opts opts = source(shape, STK_U16);
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;
    stk_error err;
    char rest[128];
    int batches = 0;

    snprintf(rest, sizeof rest, "dtype: i64, pad: %s", pad);
    loader = open_padded(shape, "u16", rest, workers);
    for (; (status = stk_loader_next(loader, &batch, &err)) == STK_OK; batches++) {
        assert_int_equal(stk_batch_rows(batch), batches < 7 ? 8 : 5);
        check_batch(batch, &opts, to, value, shape == shape_2d ? 3 : 1);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    assert_int_equal(batches, 8);
    stk_loader_destroy(loader);
}

static void to_the_batch_or_a_number(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 3; workers += 3) {
        check_all(shape_1d, "batch", 0, 0, workers);
        check_all(shape_1d, "{value: -100}", 0, -100, workers);
        check_all(shape_2d, "{to: batch, value: 7}", 0, 7, workers);
        check_all(shape_1d, "19", 19, 0, workers);
        check_all(shape_1d, "40", 40, 0, workers);
        check_all(shape_2d, "{to: 32, value: 1}", 32, 1, workers);
        check_all(shape_1d, "{to: 5, truncate: true, value: 3}", 5, 3, workers);
        check_all(shape_2d, "{to: 1, truncate: true}", 1, 0, workers);
    }
}

static void reals(void **state)
{
    stk_loader *loader = open_padded(shape_1d, "f32", "dtype: f16, pad: {to: 20, value: -0.5}", 0);
    stk_batch *batch;
    stk_tensor t, lengths;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "t", &t, &err));
    assert_ok(stk_batch_tensor(batch, "t.lengths", &lengths, &err));
    assert_int_equal(t.dtype, STK_F16);
    for (int64_t r = 0; r < 8; r++)
        for (int64_t i = ((const int64_t *)lengths.data)[r]; i < 20; i++)
            assert_int_equal(((const uint16_t *)t.data)[r * 20 + i], 0xb800);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void names_and_views(void **state)
{
    static const char *const names[] = {"t", "t.mask", "t.lengths", "inputs", "inputs.mask", "targets", "targets.mask"};
    stk_loader *loader = open_padded(shape_1d, "u16", "pad: batch, views: {inputs: [0, -1], targets: [1, null]}", 0);
    stk_batch *batch;
    stk_tensor t, inputs, targets, mask;
    stk_error err;
    char name[64];

    (void)state;
    assert_int_equal(stk_loader_tensor_count(loader), 7);
    for (int i = 0; i < 7; i++) {
        assert_ok(stk_loader_tensor_name(loader, i, name, sizeof name, &err));
        assert_string_equal(name, names[i]);
    }
    assert_status(stk_loader_tensor_name(loader, 7, name, sizeof name, &err), STK_E_RANGE);
    assert_status(stk_loader_tensor_name(loader, 6, name, 12, &err), STK_E_BAD_ARG);
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        assert_ok(stk_batch_tensor(batch, "t", &t, &err));
        assert_ok(stk_batch_tensor(batch, "inputs", &inputs, &err));
        assert_ok(stk_batch_tensor(batch, "targets", &targets, &err));
        assert_ok(stk_batch_tensor(batch, "targets.mask", &mask, &err));
        assert_int_equal(inputs.shape[1], t.shape[1] ? t.shape[1] - 1 : 0);
        assert_int_equal(targets.shape[1], inputs.shape[1]);
        assert_int_equal(mask.shape[1], inputs.shape[1]);
        assert_ptr_equal(inputs.data, t.data);
        assert_ptr_equal(targets.data, (char *)t.data + (t.shape[1] ? 2 : 0));
        assert_status(stk_batch_tensor(batch, "t.values", &t, &err), STK_E_NOT_FOUND);
        assert_says("targets.mask");
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
}

/* A failed row that is skipped is also missing in the mask and the lengths. */
static void failed_rows_are_left_out(void **state)
{
    stki_synthetic_opts opts = source(shape_1d, STK_U16);
    stkt_fault fault = {.opts = STKI_FAULTY_OPTS_INIT};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int64_t rows = 0;

    (void)state;
    fault.opts.fail_at = 17;
    assert_ok(stkt_open_faulty(&loader, &fault, true, &err,
                               "{dataset: {fields: {t: {synthetic: {count: %d, seed: 3, dtype: u16, shape: [19], "
                               "min_length: 0}, dtype: i64, pad: batch}}}, loader: {batch_size: 8, num_workers: 2}}",
                               COUNT));
    for (; stk_loader_next(loader, &batch, &err) == STK_OK; stk_batch_release(batch)) {
        stk_tensor t, lengths;

        rows += stk_batch_rows(batch);
        assert_ok(stk_batch_tensor(batch, "t", &t, &err));
        assert_ok(stk_batch_tensor(batch, "t.lengths", &lengths, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            int64_t index = stk_batch_indices(batch)[r], length = stki_synthetic_length(&opts, index);
            uint16_t expected[LONGEST];

            assert_int_not_equal(index, 17);
            assert_int_equal(((const int64_t *)lengths.data)[r], length);
            stki_synthetic_fill(&opts, index, length, expected);
            for (int64_t i = 0; i < t.shape[1]; i++)
                assert_int_equal(((const int64_t *)t.data)[r * t.shape[1] + i], i < length ? expected[i] : 0);
        }
    }
    assert_int_equal(rows, COUNT - 1);
    stk_loader_destroy(loader);
}

/* A failed row that is kept (last_batch: pad) consists of padding. */
static void failed_rows_are_padding(void **state)
{
    stkt_fault fault = {.opts = STKI_FAULTY_OPTS_INIT};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int failed = 0;

    (void)state;
    fault.opts.fail_at = 17; /* fails when it is read, but its length is already known */
    assert_ok(stkt_open_faulty(&loader, &fault, true, &err,
                               "{dataset: {fields: {t: {synthetic: {count: %d, seed: 3, dtype: u16, shape: [19], "
                               "min_length: 3, distinct: %d}, dtype: i64, pad: {value: -7}}}}, loader: {batch_size: 8, "
                               "num_workers: 1, prefetch: 1, last_batch: pad, num_epochs: 2}}",
                               COUNT, COUNT));
    for (; stk_loader_next(loader, &batch, &err) == STK_OK; stk_batch_release(batch)) {
        stk_tensor t, lengths, mask;

        assert_ok(stk_batch_tensor(batch, "t", &t, &err));
        assert_ok(stk_batch_tensor(batch, "t.lengths", &lengths, &err));
        assert_ok(stk_batch_tensor(batch, "t.mask", &mask, &err));
        assert_int_equal(t.shape[0], 8);
        for (int64_t r = 0; r < 8; r++) {
            if (stk_batch_indices(batch)[r] != 17)
                continue;
            failed++;
            assert_int_equal(stk_batch_mask(batch)[r], 0);
            assert_int_equal(((const int64_t *)lengths.data)[r], 0);
            for (int64_t i = 0; i < t.shape[1]; i++) {
                assert_int_equal(((const int64_t *)t.data)[r * t.shape[1] + i], -7);
                assert_int_equal(((const uint8_t *)mask.data)[r * t.shape[1] + i], 0);
            }
        }
    }
    assert_int_equal(failed, 2);
    stk_loader_destroy(loader);
}

static void refuse(const char *source_text, const char *rest, stk_status expected, const char *words)
{
    char text[1024];
    stk_loader *loader = NULL;
    stk_batch *batch;
    stk_error err;
    stk_status status;

    snprintf(text, sizeof text, "{dataset: {fields: {t: {synthetic: {count: 9, %s}, %s}}}, loader: {batch_size: 9}}",
             source_text, rest);
    status = stk_loader_open_text(text, NULL, NULL, 0, &loader, &err);
    if (status == STK_OK)
        status = stk_loader_next(loader, &batch, &err);
    assert_int_equal(status, expected);
    assert_says(words);
    stk_loader_destroy(loader);
}

static void refusals(void **state)
{
    static const char varying[] = "dtype: u16, shape: [19], min_length: 0", fixed[] = "dtype: u16, shape: [19]";

    (void)state;
    refuse(fixed, "pad: batch", STK_E_CONFIG, "ragged samples");
    refuse(varying, "pad: 0", STK_E_CONFIG, "batch or 1 to");
    refuse(varying, "pad: most", STK_E_CONFIG, "found");
    refuse(varying, "pad: {truncate: true}", STK_E_CONFIG, "truncate: true needs \"to\" other than batch");
    refuse(varying, "pad: {to: 3}", STK_E_LIMIT, "truncate: true");
    refuse(varying, "pad: {value: -1}", STK_E_CONFIG, "u16");
    refuse(varying, "pad: {value: 0.5}", STK_E_CONFIG, "0.5");
    refuse(varying, "views: {a: [0, 1]}", STK_E_CONFIG, "different lengths");
    refuse(varying, "pad: 20, views: {a: [0, 21]}", STK_E_CONFIG, "inside the 20");
    refuse(fixed, "views: {t: [0, 1]}", STK_E_CONFIG, "with that name already exists");
    refuse(fixed, "views: {a: [0, 1], b: [3, 2]}", STK_E_CONFIG, "inside the 19");
    refuse(fixed, "views: {a: [-20, 2]}", STK_E_CONFIG, "inside the 19");
    refuse(fixed, "views: {a: 3}", STK_E_CONFIG, "[start, stop]");
    refuse(fixed, "views: {a.b: [0, 1]}", STK_E_CONFIG, "name");
    refuse("dtype: u16, shape: []", "views: {a: [0, 1]}", STK_E_CONFIG, "no axis");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_batch_or_a_number), cmocka_unit_test(reals),
        cmocka_unit_test(names_and_views),          cmocka_unit_test(failed_rows_are_left_out),
        cmocka_unit_test(failed_rows_are_padding),  cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
