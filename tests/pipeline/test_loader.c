/* stki-threads */
/* Tests of what a loader delivers: the bytes of each sample in the right place and order, for each kind of reader and
 * any number of workers. */
#include "loader_test.h"
#include "npy_write.h"

static const char *dir;

static void write_npy(const char *name, stk_dtype dtype, int ndim, const int64_t *row_shape, int64_t count,
                      const void *data)
{
    char path[600];
    stki_npy_writer *writer;
    stk_error err;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_ok(stki_npy_create(path, dtype, ndim, row_shape, false, &writer, &err));
    assert_ok(stki_npy_append(writer, data, count, &err));
    assert_ok(stki_npy_commit(writer, &err));
}

/* Writes an .npy file of i64 with n values that count from `from`. */
static void write_count(const char *name, int64_t n, int64_t from)
{
    int64_t *values = malloc((size_t)n * 8 + 8);

    for (int64_t i = 0; i < n; i++)
        values[i] = from + i;
    write_npy(name, STK_I64, 0, NULL, n, values);
    free(values);
}

static const int64_t *values_of(const stk_batch *batch, const char *name, stk_tensor *out)
{
    stk_error err;

    assert_ok(stk_batch_tensor(batch, name, out, &err));
    return out->data;
}

/* Reads to the end. Returns the sum of field x, and the number of rows in *rows. Checks the order if `in_order`. */
static int64_t drain(stk_loader *loader, int64_t *rows, bool in_order)
{
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t sum = 0, next = 0;

    *rows = 0;
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor x;
        const int64_t *v = values_of(batch, "x", &x);

        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            assert_int_equal(v[r], stk_batch_indices(batch)[r]);
            if (in_order)
                assert_int_equal(v[r], next++);
            sum += v[r];
        }
        *rows += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s: %s", stk_status_name(status), err.message);
    return sum;
}

/* Row P01: no batch in flight is lost at the end, whatever the prefetch depth. */
static void p01_nothing_is_lost_at_the_end(void **state)
{
    (void)state;
    write_count("p01.npy", 1003, 0);
    for (int prefetch = 1; prefetch <= 8; prefetch++)
        for (int workers = 0; workers <= 4; workers += 2) {
            stk_loader *loader;
            int64_t rows;

            assert_int_equal(
                stkt_open(&loader,
                          "{dataset: {fields: {x: {path: %s/p01.npy}}}, loader: {batch_size: 16, num_workers: %d, "
                          "prefetch: %d, order: random}}",
                          dir, workers, prefetch),
                STK_OK);
            assert_int_equal(drain(loader, &rows, false), 1003 * 1002 / 2);
            assert_int_equal(rows, 1003);
            stk_loader_destroy(loader);
        }
}

/* Row P09: without shuffling, rows are delivered in the order of the file, with any number of workers. */
static void p09_order_is_kept_with_workers(void **state)
{
    (void)state;
    write_count("p09.npy", 4096, 0);
    for (int workers = 0; workers <= 8; workers += 4) {
        stk_loader *loader;
        int64_t rows;

        assert_int_equal(stkt_open(&loader,
                                   "{dataset: {fields: {x: {path: %s/p09.npy}}}, loader: {batch_size: 1024, "
                                   "num_workers: %d, tile_bytes: 1024}}",
                                   dir, workers),
                         STK_OK);
        drain(loader, &rows, true);
        assert_int_equal(rows, 4096);
        stk_loader_destroy(loader);
    }
}

/* Rows F01, D08, F03 and R11: the last batch under each policy, and batch size 1. */
static void last_batches(void **state)
{
    static const struct {
        const char *last;
        int64_t n, batch, batches, last_rows, last_valid;
    } cases[] = {
        {"partial", 10, 4, 3, 2, 2}, {"drop", 10, 4, 2, 4, 4}, {"pad", 10, 4, 3, 4, 2}, {"partial", 42, 16, 3, 10, 10},
        {"partial", 7, 1, 7, 1, 1},  {"drop", 7, 1, 7, 1, 1},  {"pad", 3, 8, 1, 8, 3},  {"drop", 11, 4, 2, 4, 4},
        {"partial", 8, 8, 1, 8, 8},  {"pad", 8, 8, 1, 8, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int workers = 0; workers <= 3; workers++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            stk_status status;
            int64_t batches = 0, rows = 0, valid = 0;

            write_count("last.npy", cases[i].n, 0);
            assert_int_equal(stkt_open(&loader,
                                       "{dataset: {fields: {x: {path: %s/last.npy}}}, loader: {batch_size: %d, "
                                       "num_workers: %d, last_batch: %s}}",
                                       dir, (int)cases[i].batch, workers, cases[i].last),
                             STK_OK);
            assert_int_equal(stk_loader_steps_per_epoch(loader), cases[i].batches);
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                stk_tensor x;
                const int64_t *v = values_of(batch, "x", &x);

                rows = stk_batch_rows(batch);
                valid = stk_batch_valid_rows(batch);
                assert_int_equal(x.shape[0], rows);
                for (int64_t r = 0; r < rows; r++) {
                    assert_int_equal(v[r], (batches * cases[i].batch + r) % cases[i].n);
                    assert_int_equal(stk_batch_mask(batch)[r], r < valid);
                }
                assert_int_equal(stk_batch_step(batch), batches);
                batches++;
                assert_int_equal(stk_batch_last_of_epoch(batch), batches == cases[i].batches);
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_END);
            assert_int_equal(batches, cases[i].batches);
            assert_int_equal(rows, cases[i].last_rows);
            assert_int_equal(valid, cases[i].last_valid);
            stk_loader_destroy(loader);
        }
}

static void an_empty_epoch_is_an_error(void **state)
{
    stk_loader *loader = NULL;
    stk_batch *batch;
    stk_error err;
    char text[700];

    (void)state;
    write_count("few.npy", 3, 0);
    snprintf(text, sizeof text,
             "{dataset: {fields: {x: {path: %s/few.npy}}}, loader: {batch_size: 4, drop_last: true}}", dir);
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_EMPTY);
    assert_says("3 samples");
    {
        const char *sets[] = {"loader.allow_empty=true"};

        assert_ok(stk_loader_open_text(text, NULL, sets, 1, &loader, &err));
        assert_int_equal(stk_loader_next(loader, &batch, &err), STK_END);
        stk_loader_destroy(loader);
    }
}

/* Row F04: exactly the samples of a subset are delivered, on one rank and on two. */
static void f04_indices_over_ranks(void **state)
{
    int seen[20] = {0};

    (void)state;
    write_count("f04.npy", 20, 0);
    for (int world = 1; world <= 2; world++) {
        memset(seen, 0, sizeof seen);
        for (int rank = 0; rank < world; rank++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;

            assert_int_equal(stkt_open(&loader,
                                       "{dataset: {fields: {x: {path: %s/f04.npy}}}, loader: {global_batch_size: 2, "
                                       "indices: [3, 7, 11], order: random, "
                                       "num_workers: 2, rank: %d, world_size: %d}}",
                                       dir, rank, world),
                             STK_OK);
            assert_int_equal(stk_loader_samples(loader), 3);
            while (stk_loader_next(loader, &batch, &err) == STK_OK) {
                for (int64_t r = 0; r < stk_batch_rows(batch); r++)
                    seen[stk_batch_indices(batch)[r]]++;
                stk_batch_release(batch);
            }
            stk_loader_destroy(loader);
        }
        for (int i = 0; i < 20; i++)
            assert_int_equal(seen[i], i == 3 || i == 7 || i == 11);
    }
}

/* Rows N24 and R08: two epochs have the same rows in different orders, and a second run repeats these orders. */
static void epochs(void **state)
{
    uint64_t digests[2] = {0, 0};

    (void)state;
    write_count("epochs_a.npy", 300, 0);
    write_count("epochs_b.npy", 200, 300);
    for (int run = 0; run < 2; run++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        stk_status status;
        int64_t order[3][500], at[3] = {0};

        assert_int_equal(stkt_open(&loader,
                                   "{dataset: {fields: {x: {path: [%s/epochs_a.npy, %s/epochs_b.npy]}}}, loader: "
                                   "{batch_size: 64, num_epochs: 3, shuffle: true, "
                                   "seed: 1, num_workers: 3}}",
                                   dir, dir),
                         STK_OK);
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            stk_tensor x;
            const int64_t *v = values_of(batch, "x", &x);
            int64_t e = stk_batch_epoch(batch);

            for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
                assert_int_equal(v[r], stk_batch_indices(batch)[r]);
                order[e][at[e]++] = v[r];
            }
            assert_int_equal(stk_batch_last_of_epoch(batch), at[e] == 500);
            digests[run] = stkt_hash_batch(digests[run], loader, batch);
            stk_batch_release(batch);
        }
        assert_int_equal(status, STK_END);
        assert_true(memcmp(order[0], order[1], sizeof order[0]) != 0 &&
                    memcmp(order[1], order[2], sizeof order[0]) != 0);
        stk_loader_destroy(loader);
    }
    assert_int_equal(digests[0], digests[1]);
}

/* The same bytes for any number of workers, each kind of reader and any tile size. */
static void any_number_of_workers(void **state)
{
    static const int workers[] = {0, 1, 2, 8, 64};
    static const char *const forms[] = {"memory", "scratch", "block"};
    uint64_t first[2] = {0, 0};

    (void)state;
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (size_t f = 0; f < 3; f++)
            for (int tile = 1024; tile <= 1 << 20; tile <<= 5)
                for (int ragged = 0; ragged < 2; ragged++) {
                    stk_loader *loader;
                    stk_batch *batch;
                    stk_error err;
                    uint64_t digest = 1;

                    assert_int_equal(
                        stkt_open(
                            &loader,
                            "{dataset: {fields: {image: {synthetic: {count: 203, shape: [9, 11, 3], dtype: u8, form: "
                            "%s, seed: 5, distinct: 203}, source: {layout: nhwc}, layout: "
                            "nchw, transforms: [{normalize: imagenet}]}, label: {synthetic: {count: 203, shape: [], "
                            "dtype: i64, seed: 6, form: %s, distinct: 203}}, "
                            "text: {synthetic: {count: 203, shape: [40], dtype: u16, seed: 7, form: %s, min_length: "
                            "%d, distinct: 203}, dtype: i32}}}, loader: {batch_size: 32, order: random, "
                            "num_epochs: 2, num_workers: %d, tile_bytes: %d, last_batch: pad}}",
                            forms[f], forms[f], forms[f], ragged ? 0 : -1, workers[w], tile),
                        STK_OK);
                    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
                        digest = stkt_hash_batch(digest, loader, batch);
                        stk_batch_release(batch);
                    }
                    if (!first[ragged])
                        first[ragged] = digest;
                    assert_int_equal(digest, first[ragged]);
                    stk_loader_destroy(loader);
                }
    assert_int_not_equal(first[0], first[1]);
}

/* Normalized images, compared with values computed here. */
static void normalized_images(void **state)
{
    static const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    enum { N = 7, H = 5, W = 6 };
    uint8_t pixels[N][H][W][3];
    static const char *const layouts[] = {"nchw", "nhwc", "channels_last"};

    (void)state;
    for (int i = 0; i < (int)sizeof pixels; i++)
        ((uint8_t *)pixels)[i] = (uint8_t)(i * 37 + i / 11);
    write_npy("pixels.npy", STK_U8, 3, (const int64_t[]){H, W, 3}, N, pixels);
    for (int layout = 0; layout < 3; layout++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_tensor image;
        stk_error err;

        assert_int_equal(
            stkt_open(&loader,
                      "{dataset: {fields: {image: {path: %s/pixels.npy, source: {layout: nhwc}, layout: %s, "
                      "transforms: [{normalize: imagenet}]}}}, loader: {batch_size: %d, num_workers: 2}}",
                      dir, layouts[layout], N),
            STK_OK);
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &image, &err));
        assert_int_equal(image.dtype, STK_F32);
        assert_int_equal(image.ndim, 4);
        assert_int_equal(image.shape[layout == 1 ? 3 : 1], 3);
        assert_int_equal(stk_tensor_is_channels_last(&image), layout == 2);
        for (int n = 0; n < N; n++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++)
                    for (int c = 0; c < 3; c++) {
                        const int64_t *s = image.strides;
                        const char *at = (char *)image.data + (layout == 1 ? n * s[0] + y * s[1] + x * s[2] + c * s[3]
                                                                           : n * s[0] + c * s[1] + y * s[2] + x * s[3]);
                        float got;

                        memcpy(&got, at, 4);
                        assert_true(got - (pixels[n][y][x][c] / 255.0 - mean[c]) / std[c] < 1e-6 &&
                                    got - (pixels[n][y][x][c] / 255.0 - mean[c]) / std[c] > -1e-6);
                    }
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
}

/* A tile may be part of one large sample. The label is not divided. */
static void large_samples_are_divided(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_loader_stats stats = {.struct_size = sizeof stats};
    uint64_t digest[2] = {1, 1};

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        assert_int_equal(
            stkt_open(&loader,
                      "{dataset: {fields: {image: {synthetic: {count: 6, shape: [256, 256, 3], dtype: u8, "
                      "distinct: 6}, source: {layout: nhwc}, layout: nchw, transforms: [{scale: "
                      "unit}]}, label: {synthetic: {count: 6, shape: [], dtype: u8}, transforms: [{one_hot: "
                      "256}]}}}, loader: {batch_size: 3, num_workers: 4, tile_bytes: %d}}",
                      cut ? 16384 : 1 << 24),
            STK_OK);
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            digest[cut] = stkt_hash_batch(digest[cut], loader, batch);
            stk_batch_release(batch);
        }
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        if (cut)
            assert_true(stats.tiles > 6 * 10);
        else
            assert_int_equal(stats.tiles, 2);
        assert_int_equal(stats.rows, 6);
        assert_int_equal(stats.bytes_read, 6 * 256 * 256 * 3);
        assert_int_equal(stats.bytes_written, 6 * 256 * 256 * 3 * 4);
        stk_loader_destroy(loader);
    }
    assert_int_equal(digest[0], digest[1]);
}

/* The C structs and a config give the same loader. */
static void options_and_config_agree(void **state)
{
    char path[600];
    const char *paths[] = {path};
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    uint64_t digest[2] = {1, 1};

    (void)state;
    write_count("agree $ 'x'.npy", 100, 0);
    snprintf(path, sizeof path, "%s/agree $ 'x'.npy", dir);
    field.name = "x";
    field.paths = paths;
    field.path_count = 1;
    field.dtype = STK_F32;
    field.transforms = "[{scale: 0.5}]";
    opts.fields = &field;
    opts.field_count = 1;
    opts.batch_size = 7;
    opts.order = STK_ORDER_RANDOM;
    opts.seed = 3;
    opts.num_workers = STK_WORKERS_INLINE;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    for (int i = 0; i < 2; i++) {
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            digest[i] = stkt_hash_batch(digest[i], loader, batch);
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
        if (i == 0)
            assert_int_equal(stkt_open(&loader,
                                       "{dataset: {fields: {x: {path: \"%s/agree $$ 'x'.npy\", transforms: [{scale: "
                                       "0.5}]}}}, loader: {batch_size: 7, shuffle: true, seed: 3, num_workers: 1}}",
                                       dir),
                             STK_OK);
    }
    assert_int_equal(digest[0], digest[1]);
    opts.prefetch = 5000;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_says("prefetch");
    assert_says("5000");
}

/* After the first few batches, the library allocates no more memory. */
static void no_allocation_per_batch(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 4; workers += 2) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        stki_memory_stats before[STKI_MEM_KINDS], after;

        assert_int_equal(
            stkt_open(&loader,
                      "{dataset: {fields: {image: {synthetic: {count: 500, shape: [32, 32, 3], dtype: u8, form: "
                      "scratch}, source: {layout: nhwc}, layout: nchw, transforms: [{normalize: imagenet}]}, text: "
                      "{synthetic: {count: 500, shape: [90], "
                      "min_length: 1, dtype: u8, form: scratch}}, label: {synthetic: {count: 500, shape: [], dtype: "
                      "i64}}}}, loader: {batch_size: 16, num_epochs: 0, order: random, num_workers: %d}}",
                      workers),
            STK_OK);
        for (int i = 0; i < 300; i++) {
            if (i == 150)
                for (int k = 0; k < STKI_MEM_KINDS; k++)
                    stki_memory_read((enum stki_memory_kind)k, &before[k]);
            assert_ok(stk_loader_next(loader, &batch, &err));
            stk_batch_release(batch);
        }
        for (int k = 0; k < STKI_MEM_KINDS; k++) {
            stki_memory_read((enum stki_memory_kind)k, &after);
            /* the order may build the table of a new epoch, and an idle worker may only now start */
            assert_true(after.total_allocations - before[k].total_allocations <=
                        (k == STKI_MEM_HOST ? 6 + 8 * workers : 0));
        }
        stk_loader_destroy(loader);
    }
}

static int make_dir(void **state)
{
    (void)state;
    dir = stkt_make_dir();
    return dir ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    stkt_remove_dir(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p01_nothing_is_lost_at_the_end),
        cmocka_unit_test(p09_order_is_kept_with_workers),
        cmocka_unit_test(last_batches),
        cmocka_unit_test(an_empty_epoch_is_an_error),
        cmocka_unit_test(f04_indices_over_ranks),
        cmocka_unit_test(epochs),
        cmocka_unit_test(any_number_of_workers),
        cmocka_unit_test(normalized_images),
        cmocka_unit_test(large_samples_are_divided),
        cmocka_unit_test(options_and_config_agree),
        cmocka_unit_test(no_allocation_per_batch),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
