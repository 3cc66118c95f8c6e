/* stki-threads */
/* Tests of the transforms that come first in a list: reshape, squeeze and the user's own functions, which may change
 * shape and dtype. Also tests parameters from files of statistics and calibration. */
#include "faults.h"
#include "io_files.h"
#include "loader_test.h"
#include <math.h>

static stk_error err;

enum { COUNT = 12, LENGTH = 24 };

static uint8_t values[COUNT][LENGTH];

static void write_data(void)
{
    for (int i = 0; i < COUNT * LENGTH; i++)
        values[i / LENGTH][i % LENGTH] = (uint8_t)(i * 7 + i / LENGTH);
    stkt_write_npy(stkt_path("flat.npy"), "|u1", "False", "(12, 24)", 64, values, sizeof values);
    stkt_write_npy(stkt_path("ones.npy"), "|u1", "False", "(12, 1, 24, 1)", 64, values, sizeof values);
    stkt_write_npy(stkt_path("turned.npy"), "|u1", "True", "(12, 4, 6)", 64, values, sizeof values);
}

static stk_status open_one(stk_loader **out, const char *file, const char *rest)
{
    char text[1024];

    snprintf(text, sizeof text, "dataset: {fields: {image: {path: %s, %s}}}\nloader: {batch_size: %d, num_workers: 2}",
             stkt_path(file), rest, COUNT);
    memset(&err, 0, sizeof err);
    return stk_loader_open_text(text, NULL, NULL, 0, out, &err);
}

static stk_tensor first_batch(stk_loader *loader, stk_batch **batch)
{
    stk_tensor t;

    if (stk_loader_next(loader, batch, &err) != STK_OK)
        fail_msg("%s", err.message);
    assert_ok(stk_batch_tensor(*batch, "image", &t, &err));
    return t;
}

/* ---- reshape and squeeze ---- */

static void other_axes(void **state)
{
    static const struct {
        const char *file, *rest;
        int ndim;
        int64_t shape[5];
    } cases[] = {
        {"flat.npy", "transforms: [{reshape: [4, 6]}]", 3, {COUNT, 4, 6}},
        {"flat.npy", "transforms: [{reshape: [2, -1, 3]}]", 4, {COUNT, 2, 4, 3}},
        {"ones.npy", "transforms: [{squeeze: {}}]", 2, {COUNT, 24}},
        {"ones.npy", "transforms: [{squeeze: -1}]", 3, {COUNT, 1, 24}},
        {"ones.npy", "transforms: [{squeeze: [0, 2]}, {reshape: [2, 4, 3]}]", 4, {COUNT, 2, 4, 3}},
        {"ones.npy",
         "source: {layout: nhwc}, transforms: [{reshape: [2, 4, 3]}, {horizontal_flip: false}]",
         4,
         {COUNT, 2, 4, 3}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (int mapped = 0; mapped < 2; mapped++) {
            const char *sets[] = {mapped ? "loader.access=mmap" : "loader.access=pread"};
            char text[1024];
            stk_loader *loader;
            stk_batch *batch;
            stk_tensor t;

            snprintf(text, sizeof text, "dataset: {fields: {image: {path: %s, %s}}}\nloader: {batch_size: 12}",
                     stkt_path(cases[k].file), cases[k].rest);
            if (stk_loader_open_text(text, NULL, sets, 1, &loader, &err) != STK_OK)
                fail_msg("%s: %s", cases[k].rest, err.message);
            t = first_batch(loader, &batch);
            assert_int_equal(t.ndim, cases[k].ndim);
            for (int i = 0; i < t.ndim; i++)
                assert_int_equal(t.shape[i], cases[k].shape[i]);
            assert_memory_equal(t.data, values, sizeof values);
            stk_batch_release(batch);
            stk_loader_destroy(loader);
        }
}

/* ---- the user's own functions ---- */

/* Gives two f32 values per sample: the sum of its elements and a random number that was passed in. */
static stk_status pair_shape(void *context, const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    (void)context, (void)in, (void)e;
    out->dtype = STK_F32;
    out->ndim = 1;
    out->shape[0] = 2;
    return STK_OK;
}

static stk_status pair_run(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                           stk_error *e)
{
    float *to = out->data;
    int sum = 0;

    if (call->sample == *(const int *)context) {
        snprintf(e->message, sizeof e->message, "this one is ugly");
        return STK_E_BAD_VALUE;
    }
    assert_true((in->flags & STK_TENSOR_READONLY) != 0);
    assert_int_equal((uintptr_t)out->data % 64, 0);
    for (int64_t i = 0; i < in->shape[0]; i++)
        sum += ((const uint8_t *)in->data)[i];
    to[0] = (float)sum;
    to[1] = (float)(call->random >> 40);
    return STK_OK;
}

static int ugly = -1;

static void register_pair(void)
{
    stk_transform t = STK_TRANSFORM_INIT;

    t.name = "pair";
    t.shape = pair_shape;
    t.run = pair_run;
    t.context = &ugly;
    assert_ok(stk_transform_register(&t, &err));
}

static void own_function(void **state)
{
    uint64_t first = 0;
    float seen[3][COUNT];

    (void)state;
    ugly = -1;
    register_pair();
    for (int run = 0; run < 9; run++) {
        static const int workers[] = {0, 1, 7};
        stk_loader *loader;
        stk_batch *batch;
        uint64_t h = 1;

        assert_ok(stkt_open(&loader,
                            "dataset: {fields: {image: {path: %s, transforms: [{call: pair}, {scale: 0.5}]}}}\n"
                            "loader: {batch_size: 12, num_workers: %d, num_epochs: 3, tile_bytes: 1024, seed: 2}",
                            stkt_path("flat.npy"), workers[run % 3]));
        for (int epoch = 0; epoch < 3; epoch++) {
            stk_tensor t = first_batch(loader, &batch);
            const float *found = t.data;

            assert_int_equal(t.dtype, STK_F32);
            assert_int_equal(t.shape[1], 2);
            for (int i = 0; i < COUNT; i++) {
                int sum = 0;

                for (int k = 0; k < LENGTH; k++)
                    sum += values[i][k];
                assert_true(found[2 * i] == (float)sum * 0.5f);
                seen[epoch][i] = found[2 * i + 1];
            }
            h = stkt_hash_batch(h, loader, batch);
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
        assert_true(run == 0 || h == first);
        first = h;
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(seen[0][i] != seen[1][i] && seen[1][i] != seen[2][i]);
        assert_true(i == 0 || seen[0][i] != seen[0][i - 1]);
    }
}

static void own_errors(void **state)
{
    stk_transform bad = STK_TRANSFORM_INIT;
    stk_loader *loader;
    stk_batch *batch;

    (void)state;
    ugly = 5;
    register_pair();
    assert_ok(open_one(&loader, "flat.npy", "transforms: [{call: pair}]"));
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_E_BAD_VALUE);
    assert_true(strstr(err.message, "flat.npy") && strstr(err.message, "pair: this one is ugly"));
    assert_int_equal(err.record, 5);
    stk_loader_destroy(loader);
    assert_int_equal(open_one(&loader, "flat.npy", "transforms: [{call: poir}]"), STK_E_CONFIG);
    assert_true(strstr(err.message, "poir") && strstr(err.message, "pair"));
    assert_int_equal(stk_transform_register(&bad, &err), STK_E_BAD_ARG);
    bad.name = "bad";
    assert_int_equal(stk_transform_register(&bad, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_transform_register(NULL, &err), STK_E_BAD_ARG);
}

static stk_status returned;

static stk_status run_returns(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                              stk_error *e)
{
    (void)context, (void)e;
    memset(out->data, 0, (size_t)in->shape[0]);
    return call->sample == 3 ? returned : STK_OK;
}

/* A status returned by a function becomes the error of its sample. Statuses that describe a run (STK_END,
 * STK_E_TIMEOUT, …) become STK_E_BAD_VALUE, because a caller would take them for a result of the loader. */
static void own_statuses(void **state)
{
#define STK_X(value, identifier, name, text) identifier,
    static const stk_status all[] = {STK_STATUS_LIST(STK_X)(stk_status) 7, (stk_status)-9999};
#undef STK_X
    static const stk_status about_the_run[] = {STK_END,         STK_AGAIN,    STK_E_TIMEOUT, STK_E_BUSY,
                                               STK_E_CLOSED,    STK_E_FORKED, STK_E_CONFIG,  STK_E_BAD_ARG,
                                               STK_E_CANCELLED, STK_E_EMPTY,  (stk_status)7, (stk_status)-9999};
    stk_transform t = STK_TRANSFORM_INIT;

    (void)state;
    t.name = "returns";
    t.run = run_returns;
    assert_ok(stk_transform_register(&t, &err));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bool mapped = false;
        stk_loader *loader;
        stk_batch *batch;
        char says[64];

        returned = all[i];
        if (returned == STK_OK)
            continue;
        for (size_t k = 0; k < sizeof about_the_run / sizeof about_the_run[0]; k++)
            mapped = mapped || about_the_run[k] == returned;
        assert_ok(open_one(&loader, "flat.npy", "transforms: [{call: returns}]"));
        assert_int_equal(stk_loader_next(loader, &batch, &err), mapped ? STK_E_BAD_VALUE : returned);
        snprintf(says, sizeof says, "returns: returned %d (%s)", (int)returned, stk_status_name(returned));
        assert_non_null(strstr(err.message, mapped ? says : "returns: failed without a message"));
        assert_int_equal(err.record, 3);
        stk_loader_destroy(loader);
    }
}

/* ---- parameters from files ---- */

static void write_text(const char *name, const char *text)
{
    stkt_write_file(stkt_path(name), text, strlen(text));
}

static void from_files(void **state)
{
    char rest[1024];
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;

    (void)state;
    write_text("stats.json",
               "{\"fields\": {\"image\": {\"mean\": [0.5, 0.25, 0.125], \"std\": [0.5, 0.5, 0.5], \"scale\": "
               "\"unit\"}, \"label\": {}}}");
    snprintf(rest, sizeof rest, "source: {layout: nhwc}, transforms: [{reshape: [2, 4, 3]}, {normalize: {stats: %s}}]",
             stkt_path("stats.json"));
    assert_ok(open_one(&loader, "flat.npy", rest));
    t = first_batch(loader, &batch);
    for (int i = 0; i < COUNT * LENGTH; i++) {
        static const double mean[] = {0.5, 0.25, 0.125};

        assert_true(((const float *)t.data)[i] ==
                    fmaf((float)((const uint8_t *)values)[i], (float)(1.0 / 255 * 2), (float)(-mean[i % 3] * 2)));
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    write_text("calibration.json", "{\"scale\": 2, \"zero_point\": -3, \"dtype\": \"int8\"}");
    snprintf(rest, sizeof rest, "transforms: [{quantize: {file: %s}}]", stkt_path("calibration.json"));
    assert_ok(open_one(&loader, "flat.npy", rest));
    t = first_batch(loader, &batch);
    assert_int_equal(t.dtype, STK_I8);
    for (int i = 0; i < COUNT * LENGTH; i++)
        assert_int_equal(((const int8_t *)t.data)[i],
                         (int)fminf(rintf((float)((const uint8_t *)values)[i] * 0.5f) - 3, 127));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void refusals(void **state)
{
    static const struct {
        const char *file, *rest, *message;
    } cases[] = {
        {"flat.npy", "transforms: [{reshape: [5, 5]}]", "a shape with the 24 elements of [24]"},
        {"flat.npy", "transforms: [{reshape: [5, -1]}]", "a shape with the 24 elements"},
        {"flat.npy", "transforms: [{reshape: [-1, -1]}]", "or -1 at most once"},
        {"flat.npy", "transforms: [{squeeze: 0}]", "an axis of length 1 of [24]"},
        {"flat.npy", "transforms: [{squeeze: 3}]", "-1 to 0"},
        {"turned.npy", "transforms: [{reshape: [24]}]", "contiguous elements"},
        {"flat.npy", "transforms: [{scale: 2}, {reshape: [24]}]", "expected it first"},
        {"flat.npy", "transforms: [{normalize: {stats: a, scale: 1}}]", "stats alone"},
        {"flat.npy", "transforms: [{quantize: {file: /nowhere/q.json}}]", "/nowhere/q.json"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader = NULL;

        if (open_one(&loader, cases[i].file, cases[i].rest) == STK_OK || !strstr(err.message, cases[i].message))
            fail_msg("%s: found \"%s\", expected \"%s\"", cases[i].rest, err.message, cases[i].message);
    }
}

static void no_memory(void **state)
{
    (void)state;
    ugly = -1;
    register_pair();
    for (int64_t n = 1; n < 2000; n++) {
        stk_loader *loader = NULL;
        stk_status status;

        stki_memory_fail_at(n);
        status = open_one(&loader, "ones.npy", "transforms: [{squeeze: {}}, {reshape: [24]}, {call: pair}]");
        stki_memory_fail_at(0);
        stk_loader_destroy(loader);
        if (status == STK_OK)
            return;
        assert_int_equal(status, STK_E_MEMORY);
    }
    fail_msg("opening still fails after many allocations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_axes), cmocka_unit_test(own_function),
                                       cmocka_unit_test(own_errors), cmocka_unit_test(own_statuses),
                                       cmocka_unit_test(from_files), cmocka_unit_test(refusals),
                                       cmocka_unit_test(no_memory)};

    write_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
