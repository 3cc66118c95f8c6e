/* Tests of `source`, patterns of files and `order: block` in loaders. */
#include "io_files.h"
#include "loader_test.h"
#include <stdio.h>

/* Like stkt_open, but fails the test if the loader cannot be opened. */
static stk_loader *open_ok(const char *text)
{
    stk_loader *loader = NULL;

    assert_int_equal(stkt_open(&loader, "%s", text), STK_OK);
    return loader;
}

/* Concatenates all rows of an epoch of a u8 field. Returns the number of bytes. */
static int64_t drain(stk_loader *loader, const char *field, uint8_t *to)
{
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t used = 0;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t;

        assert_int_equal(stk_batch_tensor(batch, field, &t, &err), STK_OK);
        assert_true(stk_tensor_is_contiguous(&t));
        memcpy(to + used, t.data, (size_t)stk_tensor_nbytes(&t));
        used += stk_tensor_nbytes(&t);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    return used;
}

static int write_files(void **state)
{
    char bytes[60];

    (void)state;
    for (int i = 0; i < 60; i++)
        bytes[i] = (char)i;
    stkt_write_npy(stkt_path("a.npy"), "|u1", "False", "(10, 6)", 64, bytes, 60);
    for (int i = 0; i < 3; i++) { /* one array as shards of 4, 2 and 4 rows */
        static const char *const shapes[] = {"(4, 6)", "(2, 6)", "(4, 6)"};
        static const int first[] = {0, 24, 36}, bytes_of[] = {24, 12, 24};
        char name[32];

        snprintf(name, sizeof name, "shard%d.npy", i);
        stkt_write_npy(stkt_path(name), "|u1", "False", shapes[i], 64, bytes + first[i], (size_t)bytes_of[i]);
    }
    return 0;
}

static const char *config(const char *path, const char *rest)
{
    static char text[2048];

    snprintf(text, sizeof text, "dataset: {fields: {x: {path: \"%s\"%s", stkt_path(path), rest);
    return text;
}

static void patterns_are_shards(void **state)
{
    uint8_t bytes[256];
    stk_loader *loader = open_ok(config("shard*.npy", "}}}\nloader: {batch_size: 3, num_workers: 2}\n"));

    (void)state;
    assert_int_equal(drain(loader, "x", bytes), 60);
    for (int i = 0; i < 60; i++)
        assert_int_equal(bytes[i], i);
    stk_loader_destroy(loader);
    assert_int_equal(stkt_open(&loader, "%s", config("none*.npy", "}}}\n")), STK_E_NOT_FOUND);
}

static void samples_along_another_axis(void **state)
{
    uint8_t bytes[256];
    stk_loader *loader;

    (void)state;
    for (int access = 0; access < 2; access++) {
        loader = open_ok(config("a.npy", access ? ", source: {axis: 1}}}}\nloader: {batch_size: 4, access: pread}\n"
                                                : ", source: {axis: 1}}}}\nloader: {batch_size: 4}\n"));
        assert_int_equal(drain(loader, "x", bytes), 60);
        for (int i = 0; i < 60; i++)
            assert_int_equal(bytes[i], i % 10 * 6 + i / 10);
        stk_loader_destroy(loader);
    }
    assert_int_equal(stkt_open(&loader, "%s", config("a.npy", ", source: {axis: 2}}}}\n")), STK_E_CONFIG);
}

static void windows_are_samples(void **state)
{
    uint8_t bytes[512];
    stk_loader *loader =
        open_ok(config("a.npy", ", source: {window: {length: 4, stride: 3}}}}}\nloader: {batch_size: 2}\n"));

    (void)state;
    assert_int_equal(drain(loader, "x", bytes), 3 * 24);
    for (int i = 0; i < 72; i++)
        assert_int_equal(bytes[i], i / 24 * 18 + i % 24);
    stk_loader_destroy(loader);
    assert_int_equal(stkt_open(&loader, "%s", config("a.npy", ", source: {window: {length: 0}}}}}\n")), STK_E_CONFIG);
    assert_int_equal(stkt_open(&loader, "%s", config("a.npy", ", source: {window: {lenght: 1}}}}}\n")), STK_E_CONFIG);
}

static void a_file_may_be_a_sample(void **state)
{
    uint8_t bytes[256];
    stk_loader *loader = open_ok(
        config("shard*.npy", ", source: {sample_per_file: true}}}}\nloader: {batch_size: 2, num_workers: 2}\n"));
    stk_batch *batch;
    stk_tensor offsets, values;
    stk_error err;

    (void)state;
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_OK); /* ragged: values and offsets */
    assert_int_equal(stk_batch_tensor(batch, "x.values", &values, &err), STK_OK);
    assert_int_equal(stk_batch_tensor(batch, "x.offsets", &offsets, &err), STK_OK);
    assert_int_equal(values.shape[0], 6);
    assert_int_equal(((int64_t *)offsets.data)[1], 4);
    assert_int_equal(((int64_t *)offsets.data)[2], 6);
    assert_int_equal(((uint8_t *)values.data)[35], 35);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    /* space for 2 rows of 6: the first and third file are too long, and the error says what to do */
    loader = open_ok(config("shard*.npy", ", source: {sample_per_file: true, max_bytes: 12}}}}\n"));
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_E_LIMIT);
    assert_int_equal(err.record, 0);
    assert_non_null(strstr(err.message, "found 4, expected at most 2"));
    assert_non_null(strstr(err.message, "max_bytes"));
    stk_loader_destroy(loader);
    loader = open_ok(config("shard*.npy", ", source: {sample_per_file: true, max_bytes: 60}}}}\n"));
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_OK);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    loader = open_ok(config("shard[02].npy", ", source: {sample_per_file: true}}}}\n"));
    assert_int_equal(drain(loader, "x", bytes), 48);
    assert_int_equal(bytes[24], 36);
    stk_loader_destroy(loader);
}

static void blocks_stay_together(void **state)
{
    uint8_t bytes[4096], again[4096];
    stk_loader *loader;

    (void)state;
    /* 10 rows in shards of 4, 2 and 4: without chunks a block is at most a shard */
    loader = open_ok(config("shard*.npy", "}}}\nloader: {batch_size: 3, order: block, block_window: 1, num_epochs: 40, "
                                          "num_workers: 2, seed: 5}\n"));
    assert_int_equal(drain(loader, "x", bytes), 40 * 60);
    stk_loader_destroy(loader);
    for (int epoch = 0; epoch < 40; epoch++) {
        int seen[10] = {0}, before = -1, changes = 0;

        for (int row = 0; row < 10; row++) {
            int sample = bytes[epoch * 60 + row * 6] / 6, shard = sample < 4 ? 0 : sample < 6 ? 1 : 2;

            assert_int_equal(seen[sample]++, 0);
            changes += shard != before;
            before = shard;
        }
        assert_int_equal(changes, 3);
    }
    loader = open_ok(config("shard*.npy", "}}}\nloader: {batch_size: 3, order: block, block_window: 1, num_epochs: 40, "
                                          "num_workers: 0, seed: 5}\n"));
    assert_int_equal(drain(loader, "x", again), 40 * 60);
    assert_memory_equal(bytes, again, 40 * 60);
    stk_loader_destroy(loader);
}

static void the_c_structs_are_equivalent(void **state)
{
    const char *paths[] = {stkt_path("shard*.npy")};
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    uint8_t bytes[256];
    stk_loader *loader;
    stk_error err;

    (void)state;
    field.name = "x";
    field.paths = paths;
    field.path_count = 1;
    field.source = "{axis: 0, header_limit: 1MiB}";
    opts.fields = &field;
    opts.field_count = 1;
    opts.batch_size = 5;
    opts.order = STK_ORDER_BLOCK;
    opts.block_window = 2;
    opts.cache_bytes = 1 << 20;
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_OK);
    assert_int_equal(drain(loader, "x", bytes), 60);
    stk_loader_destroy(loader);
    field.source = "{axes: 0}";
    assert_int_equal(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "axis"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_shards),  cmocka_unit_test(samples_along_another_axis),
        cmocka_unit_test(windows_are_samples),  cmocka_unit_test(a_file_may_be_a_sample),
        cmocka_unit_test(blocks_stay_together), cmocka_unit_test(the_c_structs_are_equivalent),
    };

    return cmocka_run_group_tests(tests, write_files, NULL);
}
