/* Tests of the statistics of fields against NumPy, and of their bits not depending on how rows are divided. */
#include "faults.h"
#include "stats_golden.h"

enum { CASES = sizeof cases / sizeof cases[0], ISAS = 3 };

static void assert_near(double found, double expected, double allowed, const char *what, const char *dtype)
{
    if (!(fabs(found - expected) <= allowed))
        fail_msg("%s of %s: found %.17g, expected %.17g", what, dtype, found, expected);
}

static void check_numbers(const golden_case *c, const golden_numbers *g, const stki_numbers *n)
{
    const double ulps = 4 * 0x1p-53;

    assert_int_equal(n->count, g->count);
    assert_int_equal(n->nan, g->nan);
    assert_int_equal(n->infinite[0], g->infinite[0]);
    assert_int_equal(n->infinite[1], g->infinite[1]);
    assert_int_equal(n->zeros, g->zeros);
    assert_true(n->min == g->min && n->max == g->max);
    /* The mean of a run is a double, so its error may be relative to the size of the elements. */
    assert_near(n->mean, g->mean, ulps * (fabs(g->mean) + g->std), "mean", c->dtype);
    assert_near(n->std, g->std, 1e-14 * g->std, "std", c->dtype);
}

static void test_numbers(void **unused)
{
    (void)unused;
    for (int k = 0; k < CASES; k++) {
        const golden_case *c = &cases[k];
        const stki_tally_form form = stkt_stats_form(c);
        char *data =
            stkt_stats_values(form.dtype, c->rows * c->outer * c->channels * c->inner, c->offset, c->scale, c->strange);
        stki_tally *tally = stkt_stats_tally(&form, data, c->rows, stki_isa(), 1, 0);
        stki_numbers n;
        stk_error err;

        for (int64_t ch = 0; ch < c->channels; ch++) {
            assert_ok(stki_tally_numbers(tally, &form, ch, &n, &err));
            check_numbers(c, &numbers[c->numbers + ch], &n);
        }
        assert_ok(stki_tally_numbers(tally, &form, -1, &n, &err));
        check_numbers(c, &numbers[c->numbers + c->channels], &n);
        assert_int_equal(tally->rows, c->rows);
        stki_tally_destroy(tally);
        free(data);
    }
}

/* Any instruction set and any division into tallies, merged in any order, also through their saved form. */
static void test_same_bits(void **unused)
{
    static const enum stki_isa isas[ISAS] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512};

    (void)unused;
    for (int k = 0; k < CASES; k++) {
        const golden_case *c = &cases[k];
        const stki_tally_form form = stkt_stats_form(c);
        char *data =
            stkt_stats_values(form.dtype, c->rows * c->outer * c->channels * c->inner, c->offset, c->scale, c->strange);
        stki_tally *whole = stkt_stats_tally(&form, data, c->rows, STKI_ISA_REF, 1, 0);

        for (int i = 0; i < ISAS; i++) {
            stki_tally *sum = NULL;
            stk_error err;

            if (!stki_isa_usable(isas[i]))
                continue;
            for (int64_t part = 4; part >= 0; part--) {
                stki_tally *tally = stkt_stats_tally(&form, data, c->rows, isas[i], 5, part), *back;
                char *bytes;
                int64_t size;

                assert_ok(stki_tally_save(tally, &form, &bytes, &size, &err));
                assert_ok(stki_tally_load(&form, bytes, size, &back, &err));
                stkt_assert_same_tally(tally, back, &form);
                stki_free(bytes);
                stki_tally_destroy(tally);
                if (sum) {
                    assert_ok(stki_tally_merge(sum, &form, back, &err));
                    stki_tally_destroy(back);
                } else {
                    sum = back;
                }
            }
            stkt_assert_same_tally(whole, sum, &form);
            stki_tally_destroy(sum);
        }
        stki_tally_destroy(whole);
        free(data);
    }
}

static const char *text_at(json_t *map, const char *key)
{
    return json_string_value(json_object_get(map, key));
}

static double at(json_t *map, const char *key)
{
    return json_number_value(json_object_get(map, key));
}

static json_t *report_of(const golden_case *c, stki_tally_form *form, const char *options)
{
    char *data;
    stki_tally *tally;
    stki_document *document;
    stki_stats_opts opts;
    json_t *json;
    stk_error err;

    *form = stkt_stats_form(c);
    data = stkt_stats_values(form->dtype, c->rows * c->outer * c->channels * c->inner, c->offset, c->scale, c->strange);
    tally = stkt_stats_tally(form, data, c->rows, stki_isa(), 1, 0);
    assert_ok(stki_document_parse(options, (int64_t)strlen(options), "text", STKI_NO_INCLUDE, &document, &err));
    assert_ok(stki_stats_opts_read(stki_document_root(document), &opts, &err));
    assert_ok(stki_stats_report(tally, form, &opts, &json, &err));
    stki_document_destroy(document);
    stki_tally_destroy(tally);
    free(data);
    return json;
}

static void test_histograms(void **unused)
{
    (void)unused;
    for (int k = 0; k < CASES; k++) {
        golden_case c = cases[k];
        stki_tally_form form;
        json_t *json, *counts;

        if (c.histogram < 0)
            continue;
        c.inner *= c.outer * c.channels; /* all together */
        c.outer = c.channels = 1;
        json = report_of(&c, &form, "{histogram: 10}");
        counts = json_object_get(json_object_get(json, "histogram"), "counts");
        assert_int_equal(json_array_size(counts), 10);
        for (size_t i = 0; i < 10; i++)
            assert_near((double)json_integer_value(json_array_get(counts, i)), (double)histograms[c.histogram][i], 0,
                        "histogram", c.dtype);
        json_decref(json);
    }
}

/* Every bin is [low + k * width, low + (k + 1) * width), the last one including its end, for widths that are not binary
 * fractions. */
static void test_edges(void **unused)
{
    (void)unused;
    for (int bins = 3; bins < 60; bins += 7) {
        char options[40];
        int16_t data[1000];
        stki_tally_form form = {
            .dtype = STK_I16, .outer = 1, .channels = 1, .inner = 1, .counts = true, .most_bytes = 1 << 20};
        stki_tally *tally;
        stki_document *document;
        stki_stats_opts opts;
        json_t *json, *counts;
        stk_error err;

        for (int i = 0; i < 1000; i++)
            data[i] = (int16_t)(i * 7 - 3000);
        stki_tally_form_blocks(&form, 0);
        assert_ok(stki_tally_create(&form, stki_isa(), &tally, &err));
        assert_ok(stki_tally_block(tally, &form, data, 1000, 1000, &err));
        snprintf(options, sizeof options, "{histogram: %d}", bins);
        assert_ok(stki_document_parse(options, (int64_t)strlen(options), "text", STKI_NO_INCLUDE, &document, &err));
        assert_ok(stki_stats_opts_read(stki_document_root(document), &opts, &err));
        assert_ok(stki_stats_report(tally, &form, &opts, &json, &err));
        counts = json_object_get(json_object_get(json, "histogram"), "counts");
        for (int k = 0; k < bins; k++) {
            const double width = 6993.0 / bins, low = -3000 + k * width, high = -3000 + (k + 1) * width;
            int64_t count = 0;

            for (int i = 0; i < 1000; i++)
                count += data[i] >= low && (data[i] < high || k == bins - 1);
            assert_int_equal(json_integer_value(json_array_get(counts, (size_t)k)), count);
        }
        json_decref(json);
        stki_document_destroy(document);
        stki_tally_destroy(tally);
    }
}

static void check_quant(const golden_case *c, const golden_quant *g, json_t *found)
{
    const bool exact = stki_counts_are_exact(stk_dtype_find(c->dtype));
    const double bin = exact ? 1e-12 : 0x1p-9, width = fmax(fabs(g->high), fabs(g->low));

    assert_string_equal(text_at(found, "dtype"), g->dtype);
    if (strcmp(g->method, "minmax") == 0 || exact) {
        assert_true(at(found, "scale") == g->scale);
        assert_int_equal(json_integer_value(json_object_get(found, "zero_point")), g->zero);
    }
    if (strcmp(g->method, "mse") != 0) {
        assert_near(at(found, "low"), g->low, bin * width, "low", c->dtype);
        assert_near(at(found, "high"), g->high, bin * width, "high", c->dtype);
    }
    /* Without exact counts, calibration searches and measures errors with the centers of bins. */
    if (exact || (strcmp(g->method, "percentile") != 0 && c->offset < 1e6))
        assert_near(at(found, "mean_squared_error"), g->error, (exact ? 1e-9 : 0.02) * g->error + 1e-300, g->method,
                    c->dtype);
}

static void test_calibration(void **unused)
{
    (void)unused;
    for (int k = 0; k < CASES; k++) {
        golden_case c = cases[k];

        c.inner *= c.outer * c.channels;
        c.outer = c.channels = 1;
        for (int q = c.quants; q < c.quants + c.quant_count; q += 3) {
            char options[200];
            stki_tally_form form;
            json_t *json, *methods;

            snprintf(options, sizeof options,
                     "{calibrate: [minmax, percentile, mse], percentile: 99.5, dtype: %s, symmetric: %s}",
                     quants[q].dtype, quants[q].symmetric ? "true" : "false");
            json = report_of(&c, &form, options);
            methods = json_object_get(json, "quantize");
            for (int m = 0; m < 3; m++)
                check_quant(&c, &quants[q + m], json_object_get(methods, quants[q + m].method));
            json_decref(json);
        }
    }
}

/* No values, one value, a constant, only NaN and infinities. */
static void test_odd_fields(void **unused)
{
    static const float constant[3] = {0.1f, 0.1f, 0.1f};
    static const float none[2] = {NAN, INFINITY};
    stki_tally_form form = {.dtype = STK_F32, .outer = 1, .channels = 1, .inner = 1, .most_bytes = 1 << 20};
    const float *data[] = {constant, constant, constant, none};
    const int64_t counts[] = {0, 1, 3, 2};

    (void)unused;
    stki_tally_form_blocks(&form, 0);
    for (int k = 0; k < 4; k++) {
        stki_tally *tally;
        stki_numbers n;
        stk_error err;

        assert_ok(stki_tally_create(&form, stki_isa(), &tally, &err));
        if (counts[k])
            assert_ok(stki_tally_block(tally, &form, data[k], counts[k], counts[k], &err));
        assert_ok(stki_tally_numbers(tally, &form, -1, &n, &err));
        assert_int_equal(n.count, k == 3 ? 0 : counts[k]);
        assert_int_equal(n.nan, k == 3);
        assert_int_equal(n.infinite[1], k == 3);
        if (n.count) {
            assert_true(n.min == (double)0.1f && n.max == (double)0.1f && n.mean == (double)0.1f && n.std == 0);
        }
        stki_tally_destroy(tally);
    }
}

static void test_too_many_bins(void **unused)
{
    stki_tally_form form = {
        .dtype = STK_F32, .outer = 1, .channels = 1, .inner = 400, .counts = true, .most_bytes = 1 << 18};
    float data[400];
    stki_tally *tally;
    stk_error err;

    (void)unused;
    stki_tally_form_blocks(&form, 0);
    for (int i = 0; i < 400; i++)
        data[i] = ldexpf(i & 1 ? -1 : 1, i / 2 - 100);
    assert_ok(stki_tally_create(&form, stki_isa(), &tally, &err));
    assert_status(stki_tally_block(tally, &form, data, 1, 400, &err), STK_E_LIMIT);
    assert_says("per: tensor");
    stki_tally_destroy(tally);
}

static void test_damaged_state(void **unused)
{
    const golden_case *c = &cases[10];
    stki_tally_form form = stkt_stats_form(c), other = form;
    char *data = stkt_stats_values(form.dtype, c->rows * c->outer * c->channels * c->inner, 0, c->scale, 0), *bytes;
    stki_tally *tally = stkt_stats_tally(&form, data, c->rows, stki_isa(), 1, 0), *back;
    int64_t size;
    stk_error err;

    (void)unused;
    assert_ok(stki_tally_save(tally, &form, &bytes, &size, &err));
    for (int64_t i = 0; i < size; i += 7) {
        bytes[i] ^= 4;
        assert_status(stki_tally_load(&form, bytes, size, &back, &err), STK_E_CORRUPT);
        bytes[i] ^= 4;
    }
    for (int64_t i = 0; i < size; i += 11)
        assert_status(stki_tally_load(&form, bytes, i, &back, &err), STK_E_CORRUPT);
    other.dtype = STK_BF16;
    assert_status(stki_tally_load(&other, bytes, size, &back, &err), STK_E_CORRUPT);
    stki_free(bytes);
    stki_tally_destroy(tally);
    free(data);
}

/* Each allocation fails in turn. */
static void test_no_memory(void **unused)
{
    const golden_case *c = &cases[14];
    stki_tally_form form = stkt_stats_form(c);
    char *data = stkt_stats_values(form.dtype, c->rows * c->outer * c->channels * c->inner, 0, c->scale, 0);
    const stki_stats_opts opts = {.histogram = 16, .methods = 7, .percentile = 99};

    (void)unused;
    for (int64_t n = 1;; n++) {
        stki_tally *tally = NULL, *back = NULL;
        char *bytes = NULL;
        int64_t size = 0;
        json_t *json = NULL;
        stk_error err;
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_tally_create(&form, stki_isa(), &tally, &err);
        status = status ? status : stki_tally_block(tally, &form, data, 10, 10 * c->outer * c->channels, &err);
        status = status ? status : stki_tally_save(tally, &form, &bytes, &size, &err);
        status = status ? status : stki_tally_load(&form, bytes, size, &back, &err);
        status = status ? status : stki_tally_merge(back, &form, tally, &err);
        status = status ? status : stki_stats_report(back, &form, &opts, &json, &err);
        stki_memory_fail_at(0);
        stki_tally_destroy(tally);
        stki_tally_destroy(back);
        stki_free(bytes);
        json_decref(json);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_in_range(n, 1, 1000);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_edges),         cmocka_unit_test(test_calibration),   cmocka_unit_test(test_odd_fields),
        cmocka_unit_test(test_too_many_bins), cmocka_unit_test(test_damaged_state), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
