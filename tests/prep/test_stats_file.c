/* Tests of normalizing and quantizing in loaders with the statistics in a NAME.stats.json that a job wrote: values are
 * compared with those computed from the data, and errors about missing statistics name the file. */
#include "io_files.h"
#include "prep_file.h"
#include "stats_options.h"
#include "stk_test.h"
#include <math.h>
#include <stoker/loader.h>

enum { ROWS = 20, HEIGHT = 6, WIDTH = 5, CHANNELS = 3, PIXELS = HEIGHT * WIDTH, EACH = PIXELS * CHANNELS };

static stk_error err;
static uint8_t bytes[ROWS][PIXELS][CHANNELS];
static float reals[ROWS][CHANNELS][PIXELS];

static void write_data(void)
{
    for (int i = 0; i < ROWS * EACH; i++) {
        const int row = i / EACH, pixel = i % EACH / CHANNELS, c = i % CHANNELS;

        bytes[row][pixel][c] = (uint8_t)((i * 37 + i / 7) % (60 * (c + 1)));
        reals[row][c][pixel] = (float)(((i * 7919) % 1001) - 400) / 97.0f * (float)(c + 1);
    }
    reals[3][1][4] = 300;
    stkt_write_npy(stkt_path("bytes.npy"), "|u1", "False", "(20, 6, 5, 3)", 64, bytes, sizeof bytes);
    stkt_write_npy(stkt_path("reals.npy"), "<f4", "False", "(20, 3, 6, 5)", 64, reals, sizeof reals);
}

/* The report of a field as a job writes it. */
static json_t *report_of(const stki_sink_field *field, const void *data, const char *options)
{
    stki_document *document;
    stki_stats_opts opts;
    stki_tally_form form;
    stki_tally *tally;
    json_t *json;

    assert_ok(stki_document_parse(options, (int64_t)strlen(options), "text", STKI_NO_INCLUDE, &document, &err));
    assert_ok(stki_stats_opts_read(stki_document_root(document), &opts, &err));
    assert_ok(stki_stats_form(&opts, field, NULL, &form, &err));
    assert_ok(stki_tally_create(&form, stki_isa(), &tally, &err));
    assert_ok(stki_tally_block(tally, &form, data, ROWS, ROWS * EACH, &err));
    assert_ok(stki_stats_report(tally, &form, &opts, &json, &err));
    stki_tally_destroy(tally);
    stki_document_destroy(document);
    return json;
}

static void write_stats(const char *options)
{
    const stki_sink_field image = {.name = "image",
                                   .dtype = STK_U8,
                                   .ndim = 3,
                                   .shape = {HEIGHT, WIDTH, CHANNELS},
                                   .largest_bytes = EACH,
                                   .channel_axis = 3},
                          x = {.name = "x",
                               .dtype = STK_F32,
                               .ndim = 3,
                               .shape = {CHANNELS, HEIGHT, WIDTH},
                               .largest_bytes = 4 * EACH,
                               .channel_axis = 1};
    json_t *fields = json_object(), *json;

    json_object_set_new(fields, "image", report_of(&image, bytes, "{}"));
    json_object_set_new(fields, "x", report_of(&x, reals, options));
    json = stki_stats_document(ROWS, fields);
    assert_ok(stki_prep_write_json(stkt_path("data.stats.json"), json, &err));
    json_decref(json);
}

static stk_status open_loader(const char *field, const char *file, const char *layout, const char *transforms,
                              stk_loader **out)
{
    char text[1500], path[600];

    snprintf(path, sizeof path, "%s", stkt_path(file));
    snprintf(text, sizeof text,
             "dataset: {fields: {%s: {path: %s, source: {layout: %s}, transforms: [%s]}}}\n"
             "loader: {batch_size: %d, num_workers: 0}",
             field, path, layout, transforms, ROWS);
    memset(&err, 0, sizeof err);
    /* relative paths are relative to this folder */
    return stk_loader_open_text(text, stkt_path(""), NULL, 0, out, &err);
}

static stk_tensor batch_of(stk_loader *loader, const char *field, stk_batch **batch)
{
    stk_tensor t;

    assert_ok(stk_loader_next(loader, batch, &err));
    assert_ok(stk_batch_tensor(*batch, field, &t, &err));
    return t;
}

/* Computes mean and standard deviation of one channel (-1: all) in double, in two passes. */
static void moments_of(int channel, bool real, double *mean, double *std)
{
    double sum = 0, square = 0;
    int n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int row = 0; row < ROWS; row++)
            for (int p = 0; p < PIXELS; p++)
                for (int c = 0; c < CHANNELS; c++) {
                    const double value = real ? (double)reals[row][c][p] : (double)bytes[row][p][c];

                    if (channel >= 0 && c != channel)
                        continue;
                    n += pass == 0;
                    sum += pass == 0 ? value : 0;
                    square += pass == 1 ? (value - sum / n) * (value - sum / n) : 0;
                }
    *mean = sum / n;
    *std = sqrt(square / n);
}

static void test_normalize(void **unused)
{
    (void)unused;
    write_stats("{}");
    for (int tensor = 0; tensor < 2; tensor++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_tensor t;

        assert_ok(open_loader("image", "bytes.npy", "nhwc",
                              tensor ? "{normalize: {stats: data.stats.json, per: tensor}}"
                                     : "{normalize: {stats: data.stats.json}}",
                              &loader));
        t = batch_of(loader, "image", &batch);
        for (int c = 0; c < CHANNELS; c++) {
            double mean, std;

            moments_of(tensor ? -1 : c, false, &mean, &std);
            for (int i = c; i < ROWS * EACH; i += CHANNELS) {
                const double expected = ((double)((const uint8_t *)bytes)[i] - mean) / std;

                assert_true(fabs((double)((const float *)t.data)[i] - expected) < 1e-6);
            }
        }
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
}

static int8_t quantized(float x, float scale, int zero)
{
    const float level = rintf(x * (1.0f / scale)) + (float)zero;

    return (int8_t)fminf(fmaxf(level, -128), 127);
}

/* Per channel and symmetric: the range of each channel divided by 127.5. */
static void test_quantize(void **unused)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;

    (void)unused;
    write_stats("{calibrate: [minmax, percentile, mse], percentile: 99}");
    assert_ok(open_loader("x", "reals.npy", "nchw", "{quantize: {stats: data.stats.json, method: minmax}}", &loader));
    t = batch_of(loader, "x", &batch);
    assert_int_equal(t.dtype, STK_I8);
    for (int c = 0; c < CHANNELS; c++) {
        float most = 0;

        for (int row = 0; row < ROWS; row++)
            for (int p = 0; p < PIXELS; p++)
                most = fmaxf(most, fabsf(reals[row][c][p]));
        for (int row = 0; row < ROWS; row++)
            for (int p = 0; p < PIXELS; p++)
                assert_int_equal(((const int8_t *)t.data)[row * EACH + c * PIXELS + p],
                                 quantized(reals[row][c][p], most / 127.5f, 0));
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* One scale and zero point for all channels. A single method needs no name, and the older key may also name the
 * file. */
static void test_affine(void **unused)
{
    float low = 0, high = 0;

    (void)unused;
    write_stats("{calibrate: minmax, per: tensor, symmetric: false}");
    for (int i = 0; i < ROWS * EACH; i++) {
        low = fminf(low, ((const float *)reals)[i]);
        high = fmaxf(high, ((const float *)reals)[i]);
    }
    for (int k = 0; k < 2; k++) {
        const float scale = (high - low) / 255;
        stk_loader *loader;
        stk_batch *batch;
        stk_tensor t;

        assert_ok(open_loader("x", "reals.npy", "nchw",
                              k ? "{quantize: {file: data.stats.json}}" : "{quantize: {stats: data.stats.json}}",
                              &loader));
        t = batch_of(loader, "x", &batch);
        for (int i = 0; i < ROWS * EACH; i++)
            assert_int_equal(((const int8_t *)t.data)[i],
                             quantized(((const float *)reals)[i], scale, -128 - (int)rintf(low / scale)));
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
}

static void refused(const char *field, const char *transforms, const char *says)
{
    stk_loader *loader = NULL;
    const bool x = strcmp(field, "image") != 0;

    assert_true(open_loader(field, x ? "reals.npy" : "bytes.npy", x ? "nchw" : "nhwc", transforms, &loader) < 0);
    if (!strstr(err.message, says))
        fail_msg("%s: found \"%s\", expected \"%s\"", transforms, err.message, says);
}

static void test_refusals(void **unused)
{
    static const char newer[] = "{\"stoker_stats\": 2, \"fields\": {\"x\": {}}}",
                      constant[] =
                          "{\"stoker_stats\": 1, \"fields\": {\"x\": {\"mean\": [1, 2, 3], \"std\": [1, 0, 1]}}}",
                      plain[] = "{\"scale\": 2, \"mean\": 1, \"std\": 1}",
                      empty[] = "{\"stoker_stats\": 1, \"fields\": {\"x\": {\"mean\": null, \"std\": null}}}";

    (void)unused;
    stkt_write_file(stkt_path("newer.json"), newer, sizeof newer - 1);
    stkt_write_file(stkt_path("constant.json"), constant, sizeof constant - 1);
    stkt_write_file(stkt_path("empty.json"), empty, sizeof empty - 1);
    stkt_write_file(stkt_path("plain.json"), plain, sizeof plain - 1);
    write_stats("{calibrate: [minmax, mse], symmetric: false, per: channel}");
    refused("x", "{quantize: {stats: data.stats.json}}",
            "several calibrations, expected method to be one of minmax, mse");
    refused("x", "{quantize: {stats: data.stats.json, method: percentile}}", "data.stats.json: minmax, mse");
    refused("x", "{quantize: {stats: data.stats.json, method: mse}}", "fields.x.quantize.mse.zero_point");
    refused("x", "{quantize: {stats: data.stats.json, method: mse}}", "symmetric: true or per: tensor");
    refused("x", "{quantize: {stats: data.stats.json, dtype: int8}}", "stats alone, or stats and method");
    refused("x", "{quantize: {scale: 1, method: mse}}", "requires stats: FILE");
    refused("x", "{quantize: {stats: plain.json, method: mse}}", "is not a statistics file");
    refused("image", "{quantize: {stats: data.stats.json}}", "found no calibration");
    refused("y", "{normalize: {stats: data.stats.json}}", "has no parameters for the field y");
    refused("x", "{normalize: {stats: data.stats.json, per: row}}", "tensor or channel");
    refused("x", "{normalize: {stats: plain.json, per: tensor}}", "is not a statistics file");
    refused("x", "{normalize: {mean: 0, std: 1, per: tensor}}", "requires stats: FILE");
    refused("x", "{normalize: {stats: newer.json}}", "a different version");
    refused("x", "{normalize: {stats: constant.json}}", "all values are equal");
    refused("x", "{normalize: {stats: empty.json}}", "fields.x.mean");
    refused("x", "{normalize: {stats: nowhere.json}}", "nowhere.json");
    refused("x", "{normalize: {stats: nowhere.json}}", "text:1: dataset.fields.x.transforms.0.normalize.stats: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_affine),
        cmocka_unit_test(test_refusals),
    };

    write_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
