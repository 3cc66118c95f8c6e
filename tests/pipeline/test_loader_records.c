/* stki-threads */
/* Record files in loaders: batches must contain the written values, in any order and with any number of workers, for
 * .beton fields of every kind, tar archives, and Megatron's documents. */
#include "io_files.h"
#include "stk_test.h"
#include "tar_build.h"
#include <stoker/dataset.h>
#include <stoker/loader.h>

enum { COUNT = 157, HEIGHT = 6, WIDTH = 5, PIXELS = HEIGHT * WIDTH * 3, FIELDS = 5 };

static unsigned char pixel(int64_t sample, int64_t k)
{
    return (unsigned char)(sample * 13 + k * 5);
}

static int64_t text_length(int64_t sample)
{
    return sample % 9;
}

static void write_beton(const char *path)
{
    static const int64_t shape[2] = {2, 3};
    static const stk_beton_field fields[FIELDS] = {
        {.name = "image", .kind = STK_BETON_IMAGE},
        {.name = "label", .kind = STK_BETON_INT},
        {.name = "weight", .kind = STK_BETON_FLOAT},
        {.name = "nd", .kind = STK_BETON_NDARRAY, .dtype = STK_I16, .ndim = 2, .shape = shape},
        {.name = "text", .kind = STK_BETON_BYTES}};
    unsigned char image[PIXELS], text[16];
    int16_t nd[6];
    stk_beton_writer *writer;
    stk_error err;

    assert_ok(stk_beton_create(path, fields, FIELDS, COUNT, NULL, &writer, &err));
    for (int64_t i = 0; i < COUNT; i++) {
        stk_beton_value values[FIELDS] = {{.bytes = image, .size = PIXELS, .height = HEIGHT, .width = WIDTH},
                                          {.integer = i * 1000},
                                          {.real = (double)i / 4},
                                          {.bytes = nd, .size = sizeof nd},
                                          {.bytes = text, .size = text_length(i)}};

        for (int64_t k = 0; k < PIXELS; k++)
            image[k] = pixel(i, k);
        for (int k = 0; k < 6; k++)
            nd[k] = (int16_t)(i * 10 + k);
        memset(text, (int)i, sizeof text);
        assert_ok(stk_beton_append(writer, values, 1, &err));
    }
    assert_ok(stk_beton_commit(writer, &err));
}

static void check_text(const stk_batch *batch, const char *name)
{
    const int64_t *indices = stk_batch_indices(batch), *offsets;
    char part[64];
    stk_tensor values, t;
    stk_error err;

    snprintf(part, sizeof part, "%s.values", name);
    assert_ok(stk_batch_tensor(batch, part, &values, &err));
    snprintf(part, sizeof part, "%s.offsets", name);
    assert_ok(stk_batch_tensor(batch, part, &t, &err));
    offsets = t.data;
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        assert_int_equal(offsets[r + 1] - offsets[r], text_length(indices[r]));
        for (int64_t k = offsets[r]; k < offsets[r + 1]; k++)
            assert_int_equal(((unsigned char *)values.data)[k], (unsigned char)indices[r]);
    }
}

static void check_beton_batch(const stk_batch *batch, bool planar)
{
    const int64_t *indices = stk_batch_indices(batch);
    stk_tensor image, label, weight, nd;
    stk_error err;

    assert_ok(stk_batch_tensor(batch, "image", &image, &err));
    assert_ok(stk_batch_tensor(batch, "label", &label, &err));
    assert_ok(stk_batch_tensor(batch, "weight", &weight, &err));
    assert_ok(stk_batch_tensor(batch, "nd", &nd, &err));
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        int64_t sample = indices[r];

        assert_int_equal(((int64_t *)label.data)[r], sample * 1000);
        assert_true(((double *)weight.data)[r] == (double)sample / 4);
        for (int k = 0; k < 6; k++)
            assert_int_equal(((int16_t *)nd.data)[r * 6 + k], sample * 10 + k);
        for (int64_t k = 0; k < PIXELS; k++) {
            int64_t pixel_number = k / 3, channel = k % 3;

            if (planar)
                assert_true(((float *)image.data)[r * PIXELS + channel * HEIGHT * WIDTH + pixel_number] ==
                            (float)pixel(sample, k));
            else
                assert_int_equal(((unsigned char *)image.data)[r * PIXELS + k], pixel(sample, k));
        }
    }
    check_text(batch, "text");
}

static int64_t run(const char *text, void (*check)(const stk_batch *batch, bool flag), bool flag)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t rows = 0;

    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        check(batch, flag);
        rows += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s", err.message);
    stk_loader_destroy(loader);
    return rows;
}

static void test_beton(void **state)
{
    static const char *const orders[] = {"sequential", "random", "block"}, *const modes[] = {"mmap", "pread"};
    const char *path = stkt_path("all.beton");
    char text[2048];

    (void)state;
    write_beton(path);
    for (int o = 0; o < 3; o++)
        for (int m = 0; m < 2; m++)
            for (int workers = -1; workers < 3; workers += 3)
                for (int planar = 0; planar < 2; planar++) {
                    snprintf(text, sizeof text,
                             "dataset: {fields: {image: {path: %s, source: {layout: nhwc}%s}, label: {path: %s}, "
                             "weight: {path: %s}, nd: {path: %s}, text: {path: %s}}}\n"
                             "loader: {batch_size: 16, order: %s, access: %s, num_workers: %s}\n",
                             path, planar ? ", dtype: f32, layout: nchw" : "", path, path, path, path, orders[o],
                             modes[m], workers < 0 ? "0" : "2");
                    assert_int_equal(run(text, check_beton_batch, planar != 0), COUNT);
                }
}

/* ---- tar ---- */

static void write_archive(const char *path)
{
    struct stkt_tar t = {0};

    for (int64_t i = 0; i < COUNT; i++) {
        char name[32], class[16];
        unsigned char bytes[16];

        snprintf(name, sizeof name, "%06d.cls", (int)i);
        snprintf(class, sizeof class, "%d", (int)i * 3);
        stkt_tar_file(&t, name, class);
        snprintf(name, sizeof name, "%06d.bin", (int)i);
        memset(bytes, (int)i, sizeof bytes);
        stkt_tar_put(&t, '0', name, bytes, (size_t)text_length(i));
    }
    stkt_tar_write(&t, path);
}

static void check_tar_batch(const stk_batch *batch, bool flag)
{
    const int64_t *indices = stk_batch_indices(batch);
    stk_tensor label;
    stk_error err;

    (void)flag;
    assert_ok(stk_batch_tensor(batch, "label", &label, &err));
    for (int64_t r = 0; r < stk_batch_rows(batch); r++)
        assert_int_equal(((int64_t *)label.data)[r], indices[r] * 3);
    check_text(batch, "text");
}

static void test_tar(void **state)
{
    static const char *const modes[] = {"mmap", "pread"};
    const char *path = stkt_path("all.tar");
    char text[2048];

    (void)state;
    write_archive(path);
    for (int m = 0; m < 2; m++) {
        snprintf(text, sizeof text,
                 "dataset: {fields: {label: {path: %s, source: {name: cls, index_cache: none}}, "
                 "text: {path: %s, source: {name: bin, index_cache: %s}}}}\n"
                 "loader: {batch_size: 16, order: random, access: %s, num_workers: 2}\n",
                 path, path, stkt_path("."), modes[m]);
        assert_int_equal(run(text, check_tar_batch, false), COUNT);
    }
}

/* ---- Megatron ---- */

static void write_tokens(void)
{
    uint64_t numbers[2] = {COUNT, COUNT + 1}, version = 1;
    unsigned char bin[COUNT * 16], code = 1; /* u8 tokens */
    int64_t used = 0, offsets[COUNT], list[COUNT + 1];
    int32_t lengths[COUNT];
    const char *path = stkt_path("tokens.idx");

    for (int64_t i = 0; i < COUNT; i++) {
        offsets[i] = used;
        lengths[i] = (int32_t)text_length(i);
        memset(bin + used, (int)i, (size_t)lengths[i]);
        used += lengths[i];
        list[i] = i;
    }
    list[COUNT] = COUNT;
    stkt_write_file(path, "MMIDIDX\0\0", 9);
    stkt_append_file(path, &version, 8);
    stkt_append_file(path, &code, 1);
    stkt_append_file(path, numbers, sizeof numbers);
    stkt_append_file(path, lengths, sizeof lengths);
    stkt_append_file(path, offsets, sizeof offsets);
    stkt_append_file(path, list, sizeof list);
    stkt_write_file(stkt_path("tokens.bin"), bin, (size_t)used);
}

static void check_token_batch(const stk_batch *batch, bool flag)
{
    (void)flag;
    check_text(batch, "documents");
}

static void test_megatron(void **state)
{
    char text[1024];

    (void)state;
    write_tokens();
    snprintf(text, sizeof text,
             "dataset: {fields: {documents: {path: %s}}}\n"
             "loader: {batch_size: 16, order: block, num_workers: 2}\n",
             stkt_path("tokens.idx"));
    assert_int_equal(run(text, check_token_batch, false), COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beton),
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_megatron),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
