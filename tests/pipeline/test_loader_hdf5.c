/* stki-threads */
/* HDF5 data sets in loaders: several fields in one file, groups, and chunked data, with the right values in every order
 * and for any number of workers. In block order each chunk is decoded once. */
#include "hdf5_files.h"
#include "hdf5_reader.h"
#include "io_files.h"
#include "loader_test.h"

static stk_error err;

enum { ROWS = 960, WIDTH = 24, CHUNK = 32 };

/* "images" u8 [ROWS, 4, 6] in deflated chunks and "group/labels" i64 [ROWS]; both contain the row number. */
static void make(const char *path)
{
    const hsize_t shape[] = {ROWS, 4, 6}, chunk[] = {CHUNK, 4, 6};
    static uint8_t images[ROWS * WIDTH];
    static int64_t labels[ROWS];
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, shape, NULL), x;

    for (int i = 0; i < ROWS; i++) {
        labels[i] = 1000 + i;
        for (int k = 0; k < WIDTH; k++)
            images[i * WIDTH + k] = (uint8_t)(i * 7 + k);
    }
    STKT_MUST(H5Pset_chunk(plist, 3, chunk));
    STKT_MUST(H5Pset_deflate(plist, 6));
    x = H5Dcreate2(file, "images", H5T_STD_U8LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, images));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    space = H5Screate_simple(1, shape, NULL);
    x = H5Dcreate2(group, "labels", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Gclose(group));
    STKT_MUST(H5Fclose(file));
}

/* Takes all batches of an epoch; each row must have the values of its sample, and each sample must be delivered
 * once. */
static void check_epoch(stk_loader *loader)
{
    static uint8_t seen[ROWS];
    stk_batch *batch;
    stk_status status;
    int64_t rows = 0;

    memset(seen, 0, sizeof seen);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor images, labels;
        const int64_t *indices = stk_batch_indices(batch);
        bool last = stk_batch_last_of_epoch(batch);

        assert_ok(stk_batch_tensor(batch, "images", &images, &err));
        assert_ok(stk_batch_tensor(batch, "labels", &labels, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            const uint8_t *image = (const uint8_t *)images.data + r * images.strides[0];

            assert_int_equal(((const int64_t *)labels.data)[r], 1000 + indices[r]);
            for (int k = 0; k < WIDTH; k++)
                assert_int_equal(image[k], (uint8_t)(indices[r] * 7 + k));
            assert_int_equal(seen[indices[r]]++, 0);
            rows++;
        }
        stk_batch_release(batch);
        if (last)
            break;
    }
    if (status)
        fail_msg("%s", err.message);
    assert_int_equal(rows, ROWS);
}

static bool notes_say(const stk_loader *loader, const char *words)
{
    for (int i = 0; i < stk_loader_note_count(loader); i++)
        if (strstr(stk_loader_note(loader, i), words))
            return true;
    return false;
}

static void every_order(void **state)
{
    static const char *const orders[] = {"sequential", "random", "block"};
    const char *path = stkt_path("orders.h5");

    (void)state;
    make(path);
    for (int o = 0; o < 3; o++)
        for (int workers = 0; workers <= 4; workers += 2)
            for (int access = 0; access < 2; access++) {
                stk_loader *loader;

                assert_ok(stkt_open(&loader,
                                    "dataset: {fields: {images: {path: %s, source: {name: images}}, labels: {path: %s, "
                                    "source: {name: group/labels}}}}\n"
                                    "loader: {order: %s, batch_size: 50, num_workers: %d, num_epochs: 2, access: %s, "
                                    "cache_bytes: 4KiB}",
                                    path, path, orders[o], workers, access ? "pread" : "mmap"));
                /* Only random order decodes chunks repeatedly, so only it adds this note. */
                assert_int_equal(notes_say(loader, "order: block decodes"), o == 1);
                check_epoch(loader);
                check_epoch(loader);
                stk_loader_destroy(loader);
            }
}

/* Data sets that stoker locates but libhdf5 must decode are opened by libhdf5 when the first sample is read, on any
 * worker. */
static void decoded_by_the_library(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    const hsize_t rows = ROWS, chunk = CHUNK;
    const char *path = stkt_path("decoded.h5");
    static int64_t labels[ROWS];
    hid_t file, plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &rows, NULL);

    (void)state;
    make(path);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    STKT_MUST(H5Pset_chunk(plist, 1, &chunk));
    STKT_MUST(H5Pset_scaleoffset(plist, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT));
    for (int i = 0; i < ROWS; i++)
        labels[i] = 1000 + i;
    for (int i = 0; i < 4; i++) {
        hid_t x = H5Dcreate2(file, names[i], H5T_STD_I64LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);

        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels));
        STKT_MUST(H5Dclose(x));
    }
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Fclose(file));
    for (int round = 0; round < 8; round++) {
        stk_loader *loader;

        assert_ok(stkt_open(&loader,
                            "dataset: {fields: {images: {path: %s, source: {name: images}}, labels: {path: %s, source: "
                            "{name: a}}, b: {path: %s}, c: {path: %s}, d: {path: %s}}}\n"
                            "loader: {order: random, batch_size: 40, num_workers: 4}",
                            path, path, path, path, path));
        check_epoch(loader);
        stk_loader_destroy(loader);
    }
}

/* A field reads the data set with its own name if the file has several. */
static void by_name_of_field(void **state)
{
    const char *path = stkt_path("named.h5");
    stk_loader *loader;

    (void)state;
    make(path);
    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {images: {path: %s}, labels: {path: %s, source: {name: /group/labels}}}}\n"
                        "loader: {batch_size: 64}",
                        path, path));
    check_epoch(loader);
    stk_loader_destroy(loader);
    assert_int_equal(stkt_open(&loader, "dataset: {fields: {other: {path: %s}}}", path), STK_E_CONFIG);
    assert_int_equal(stkt_open(&loader, "dataset: {fields: {x: {path: %s, source: {name: nothing}}}}", path),
                     STK_E_NOT_FOUND);
}

/* Stores the reader of the images without wrapping it. */
static stk_status keep_reader(void *context, const char *field, stki_reader **reader, stk_error *error)
{
    (void)error;
    if (!strcmp(field, "images"))
        *(stki_reader **)context = *reader;
    return STK_OK;
}

/* Row H24 (h5py/h5py#2526): in block order each chunk is decoded once per epoch, with any number of workers. */
static void once_by_blocks(void **state)
{
    const char *path = stkt_path("once.h5");
    stki_loader_config *config;
    stki_document *document;
    char text[1024];

    (void)state;
    make(path);
    for (int workers = 1; workers <= 3; workers++) {
        stki_hdf5_counts counts;
        stk_loader *loader;
        stki_reader *images = NULL;

        snprintf(
            text, sizeof text,
            "dataset: {fields: {images: {path: %s, source: {name: images}}, labels: {path: %s, source: {name: "
            "group/labels}}}}\nloader: {order: block, block_window: 3, batch_size: 40, num_workers: %d, num_epochs: "
            "3, cache_bytes: %d}",
            path, path, workers, 16 * CHUNK * WIDTH); /* the cache holds half of the chunks */
        assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err));
        assert_ok(stki_config_read(document, NULL, &config, &err));
        config->wrap_reader = keep_reader;
        config->wrap_context = &images;
        assert_ok(stki_loader_open_config(config, &loader, &err));
        for (int epoch = 0; epoch < 3; epoch++)
            check_epoch(loader);
        assert_true(stki_hdf5_reader_counts(images, &counts));
        /* Chunks of the previous epoch may still be cached. */
        assert_true(counts.cache.decoded <= 3 * ROWS / CHUNK && counts.cache.decoded >= ROWS / CHUNK);
        assert_int_equal(counts.direct, 0);
        stk_loader_destroy(loader);
    }
}

/* A damaged chunk causes an error in place of its batch, which names the record. The batches before it are
 * delivered. */
static void broken_chunk(void **state)
{
    const char *path = stkt_path("broken.h5");
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;
    hid_t file, x;
    hsize_t first[3] = {10 * CHUNK, 0, 0};
    char rubbish[100] = "no stream at all";

    (void)state;
    make(path);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    x = H5Dopen2(file, "images", H5P_DEFAULT);
    STKT_MUST(H5Dwrite_chunk(x, H5P_DEFAULT, 0, first, sizeof rubbish, rubbish));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Fclose(file));
    for (int workers = 0; workers <= 2; workers++) {
        int64_t batches = 0;

        assert_ok(stkt_open(&loader,
                            "dataset: {fields: {images: {path: %s, source: {name: images}}}}\n"
                            "loader: {batch_size: 40, num_workers: %d}",
                            path, workers));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            batches++;
            stk_batch_release(batch);
        }
        assert_int_equal(status, STK_E_CORRUPT);
        assert_int_equal(batches, 10 * CHUNK / 40);
        assert_int_equal(err.record, 10 * CHUNK);
        assert_non_null(strstr(err.message, "record 320"));
        stk_loader_destroy(loader);
    }
}

/* The samples are data sets: "v0/f0" … "v0/f4" and "v1/f0" … "v1/f2", each with one number. Windows do not cross from
 * v0 to v1. */
static void windows_stay_in_their_group(void **state)
{
    static const int32_t firsts[] = {0, 1, 2, 100};
    const char *path = stkt_path("videos.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;

    (void)state;
    for (int v = 0; v < 2; v++) {
        char name[16];
        hid_t group;

        snprintf(name, sizeof name, "v%d", v);
        group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        for (int32_t f = 0; f < 5 - 2 * v; f++) {
            const int32_t value = 100 * v + f;
            hid_t x;

            snprintf(name, sizeof name, "f%d", f);
            x = H5Dcreate2(group, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
            STKT_MUST(H5Dclose(x));
        }
        STKT_MUST(H5Gclose(group));
    }
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Fclose(file));
    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {x: {path: %s, source: {name: 'v*/f*', window: {length: 3, stride: 1}}}}}\n"
                        "loader: {batch_size: 9}",
                        path));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    assert_int_equal(t.shape[0], 4);
    for (int r = 0; r < 4; r++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(((const int32_t *)t.data)[r * 3 + k], firsts[r] + k);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* The table of chunks takes 24 bytes per chunk, addresses in the mapping 8 more, and a growing table up to twice its
 * size. */
static void table_of_chunks(void **unused)
{
    enum { CHUNKS = 20000 };
    const hsize_t shape[] = {CHUNKS}, chunk[] = {1};
    static const struct {
        int64_t budget;
        stk_status status;
    } cases[] = {{CHUNKS * 24, STK_E_LIMIT}, {CHUNKS * 80, STK_OK}};
    static int32_t values[CHUNKS];
    const char *path = stkt_path("chunks.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, shape, NULL), x;

    (void)unused;
    STKT_MUST(H5Pset_chunk(plist, 1, chunk));
    x = H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Fclose(file));
    for (int i = 0; i < 2; i++) {
        char config[512];
        stk_loader *loader = NULL;

        snprintf(config, sizeof config,
                 "dataset: {fields: {x: {path: %s}}}\nloader: {batch_size: 1, prefetch: 1, memory_budget: %lld}", path,
                 (long long)cases[i].budget);
        assert_status(stk_loader_open_text(config, NULL, NULL, 0, &loader, &err), cases[i].status);
        if (cases[i].status != STK_OK)
            assert_says("for indexes of samples");
        stk_loader_destroy(loader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_stay_in_their_group),
        cmocka_unit_test(every_order),
        cmocka_unit_test(decoded_by_the_library),
        cmocka_unit_test(by_name_of_field),
        cmocka_unit_test(once_by_blocks),
        cmocka_unit_test(broken_chunk),
        cmocka_unit_test(table_of_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
