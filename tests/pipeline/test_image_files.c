/* Tests of image files that a config lists or a pattern matches: each is one sample of any size, as in an image
 * folder. */
#include "io_files.h"
#include "loader_test.h"
#include "png_make.h"
#include <sys/stat.h>

enum { COUNT = 12, CROP = 4 };

static stkt_png image_of(int i, bool alike)
{
    return (stkt_png){.width = alike ? 9 : 6 + i, .height = alike ? 7 : 20 - i, .bits = 8, .type = 2};
}

static void write_image(const char *name, const stkt_png *image, size_t cut)
{
    stkt_bytes bytes = stkt_png_make(image);

    stkt_write_file(stkt_path(name), bytes.data, bytes.size - cut);
    free(bytes.data);
}

/* 16-bit gray images, images with a palette, and 8-bit images. */
static void write_others(void)
{
    static const struct {
        const char *folder;
        int bits, type;
    } kinds[] = {{"deep", 16, 0}, {"masks", 4, 3}, {"mixed", 16, 0}};

    for (int k = 0; k < 3; k++) {
        assert_int_equal(mkdir(stkt_path(kinds[k].folder), 0700), 0);
        for (int i = 0; i < COUNT; i++) {
            stkt_png image = image_of(i, true);
            char name[64];

            image.bits = k == 2 && i == COUNT - 1 ? 8 : kinds[k].bits;
            image.type = kinds[k].type;
            snprintf(name, sizeof name, "%s/%02d.png", kinds[k].folder, i);
            write_image(name, &image, 0);
        }
    }
}

static int write_files(void **state)
{
    (void)state;
    assert_int_equal(mkdir(stkt_path("various"), 0700), 0);
    assert_int_equal(mkdir(stkt_path("alike"), 0700), 0);
    for (int i = 0; i < COUNT; i++) {
        stkt_png various = image_of(i, false), alike = image_of(i, true);
        char name[64];

        snprintf(name, sizeof name, "various/%02d.png", i);
        write_image(name, &various, 0);
        snprintf(name, sizeof name, "alike/%02d.png", i);
        write_image(name, &alike, 0);
    }
    write_others();
    return 0;
}

static stk_loader *open_images(const char *path, const char *rest, const char *keys)
{
    stk_loader *loader = NULL;

    assert_int_equal(
        stkt_open(&loader, "{dataset: {fields: {image: {path: %s%s}}}, loader: {batch_size: 4, %s}}", path, rest, keys),
        STK_OK);
    return loader;
}

/* Checks center crops of `size` pixels of the samples in sequence; `left_out` has no row. */
static void check_crops(stk_loader *loader, int left_out)
{
    int64_t next = 0;
    stk_status status;
    stk_batch *batch;
    stk_error err;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t;

        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        assert_int_equal(t.ndim, 4);
        assert_int_equal(t.shape[1], CROP);
        for (int64_t r = 0; r < t.shape[0]; r++) {
            stkt_png image;
            int top, left;

            next += next == left_out;
            image = image_of((int)next++, false);
            top = (int)(image.height - CROP + 1) / 2;
            left = (int)(image.width - CROP + 1) / 2;
            if ((image.height - CROP) % 2 || (image.width - CROP) % 2)
                continue; /* the position of the center is tested elsewhere */
            for (int p = 0; p < CROP * CROP * 3; p++)
                assert_int_equal(((uint8_t *)t.data)[r * CROP * CROP * 3 + p],
                                 stkt_png_expected(&image, top + p / 3 / CROP, left + p / 3 % CROP, p % 3));
        }
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    assert_int_equal(next + (next == left_out), COUNT);
    stk_loader_destroy(loader);
}

static const char *quoted(const char *name)
{
    static char text[300];

    snprintf(text, sizeof text, "'%s'", stkt_path(name));
    return text;
}

static void any_size(void **state)
{
    static const char crop[] = ", transforms: [{center_crop: 4}]";

    (void)state;
    for (int workers = 0; workers <= 4; workers += workers ? 3 : 1) {
        char keys[64], listed[2048] = "[";

        snprintf(keys, sizeof keys, "num_workers: %d", workers);
        check_crops(open_images(quoted("various"), crop, keys), -1);
        check_crops(open_images(quoted("various/*.png"), crop, keys), -1);
        for (int i = 0; i < COUNT; i++)
            sprintf(listed + strlen(listed), "%s'%s/%02d.png'", i ? ", " : "", stkt_path("various"), i);
        check_crops(open_images(strcat(listed, "]"), crop, keys), -1);
    }
}

/* Without a crop, all images must have the same size. */
static void one_size(void **state)
{
    stk_loader *loader = open_images(quoted("alike/*.png"), "", "num_workers: 2");
    const stkt_png image = image_of(0, true);
    const int bytes = image.height * image.width * 3;
    stk_batch *batch;
    stk_error err;
    stk_tensor t;

    (void)state;
    for (int step = 0; step < COUNT / 4; step++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        assert_int_equal(t.shape[1], image.height);
        assert_int_equal(t.shape[2], image.width);
        for (int p = 0; p < 4 * bytes; p++)
            assert_int_equal(((uint8_t *)t.data)[p], stkt_png_expected(&image, p % bytes / 3 / image.width,
                                                                       p % bytes / 3 % image.width, p % 3));
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
}

/* An image that cannot be read fails only its own sample, whether the other images have one size or several. */
static void unreadable(void **state)
{
    static const char skip[] = "on_error: skip, max_error_fraction: 0.1, num_workers: 2";
    stkt_png various = image_of(0, false), alike = image_of(0, true),
             large = {.width = 90, .height = 70, .bits = 8, .type = 2};
    stk_loader *loader;
    int64_t rows = 0;
    stk_status status;
    stk_batch *batch;
    stk_error err;

    (void)state;
    stkt_write_file(stkt_path("various/00.png"), "\x89PNG\r\n\x1a\nno", 10);
    check_crops(open_images(quoted("various/*.png"), ", transforms: [{center_crop: 4}]", skip), 0);
    write_image("various/00.png", &various, 0);
    stkt_write_file(stkt_path("alike/00.png"), "", 0);
    loader = open_images(quoted("alike/*.png"), "", skip);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        rows += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    assert_int_equal(rows, COUNT - 1);
    stk_loader_destroy(loader);
    loader = open_images(quoted("alike/*.png"), "", "num_workers: 0");
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_TRUNCATED);
    assert_int_equal(err.record, 0);
    stk_loader_destroy(loader);
    write_image("alike/00.png", &large, 0);
    loader = open_images(quoted("alike/0[1-9].png"), "", "num_workers: 0");
    write_image("alike/02.png", &large, 0); /* now larger than when the loader was opened */
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_MISMATCH);
    assert_int_equal(err.record, 1);
    assert_string_equal(err.found, "70 x 90");
    assert_string_equal(err.expected, "7 x 9");
    stk_loader_destroy(loader);
    write_image("alike/00.png", &alike, 0);
    write_image("alike/02.png", &alike, 0);
}

static void paths_of_the_images(void **state)
{
    stk_loader *loader = NULL;
    stk_batch *batch;
    stk_error err;
    stk_tensor values;

    (void)state;
    assert_int_equal(stkt_open(&loader, "{dataset: {fields: {path: {path: '%s'}}}, loader: {batch_size: 12}}",
                               stkt_path("alike/*.png")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "path.values", &values, &err));
    assert_memory_equal(values.data, stkt_path("alike/00.png"), strlen(stkt_path("alike/00.png")));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Checks the stored values of COUNT images of `bits` bits, each pixel repeated `times` by `times`, as elements of
 * `dtype`. */
static void check_numbers(const char *folder, const char *rest, int bits, int type, int times, stk_dtype dtype)
{
    stk_loader *loader = open_images(quoted(folder), rest, "num_workers: 2");
    const stkt_png image = {.width = 9, .height = 7, .bits = bits, .type = type};
    stk_batch *batch;
    stk_error err;
    stk_tensor t;

    for (int step = 0; step < COUNT / 4; step++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        assert_int_equal(t.dtype, dtype);
        assert_int_equal(t.shape[1], image.height * times);
        assert_int_equal(t.shape[2], image.width * times);
        assert_int_equal(t.shape[3], 1);
        for (int64_t r = 0; r < 4; r++)
            for (int y = 0; y < t.shape[1]; y++)
                for (int x = 0; x < t.shape[2]; x++) {
                    const int64_t at = (r * t.shape[1] + y) * t.shape[2] + x;
                    const int found = dtype == STK_U16 ? ((uint16_t *)t.data)[at] : ((uint8_t *)t.data)[at];

                    assert_int_equal(found, stkt_png_value(&image, y / times, x / times, 0));
                }
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
}

static void stored_numbers(void **state)
{
    static const char nearest[] = "transforms: [{resize: {size: [14, 18], interpolation: nearest}}]";
    char rest[300];

    (void)state;
    check_numbers("deep", ", source: {depth: 16, color: gray}", 16, 0, 1, STK_U16);
    snprintf(rest, sizeof rest, ", source: {depth: 16, color: gray}, %s", nearest);
    check_numbers("deep", rest, 16, 0, 2, STK_U16);
    check_numbers("masks", ", source: {color: index}", 4, 3, 1, STK_U8);
    snprintf(rest, sizeof rest, ", source: {color: index}, %s", nearest);
    check_numbers("masks", rest, 4, 3, 2, STK_U8);
}

static void assert_refused(const char *folder, const char *rest, stk_status wanted, const char *says)
{
    stk_loader *loader = NULL;
    stk_batch *batch;
    stk_error err = {0};
    stk_status status = stkt_open(&loader, "{dataset: {fields: {image: {path: '%s'%s}}}, loader: {batch_size: 12}}",
                                  stkt_path(folder), rest);

    if (status == STK_OK) { /* the error is returned when the image is read */
        status = stk_loader_next(loader, &batch, &err);
        stk_loader_destroy(loader);
        if (!strstr(err.message, says))
            fail_msg("%s", err.message);
    }
    assert_int_equal(status, wanted);
}

/* Class numbers are not interpolated, and bits are never dropped or added implicitly. */
static void refused(void **state)
{
    (void)state;
    assert_refused("masks", ", source: {color: index}, transforms: [{resize: [14, 18]}]", STK_E_CONFIG, "nearest");
    assert_refused("masks", ", source: {color: index}, transforms: [{brightness: 1.2}]", STK_E_CONFIG, "brightness");
    assert_refused("masks",
                   ", source: {color: index}, transforms: [{resize: {size: [14, 18], interpolation: nearest}}, "
                   "{mixup: {alpha: 0.2}}]",
                   STK_E_CONFIG, "numbers of classes");
    assert_refused("deep", ", source: {depth: 16, color: index}", STK_E_CONFIG, "color: gray");
    assert_refused("deep", ", source: {depth: 16, decode: none}", STK_E_CONFIG, "decode");
    assert_refused("deep", ", source: {depth: 16}, transforms: [{resize: [14, 18]}]", STK_E_UNSUPPORTED, "nearest");
    assert_refused("mixed", ", source: {depth: 16}", STK_E_UNSUPPORTED, "16 bits");
    assert_refused("alike", ", source: {depth: 16}", STK_E_UNSUPPORTED, "16 bits");
}

/* The first batch of a field, with rows of `bytes` bytes. */
static void first_rows(const char *path, const char *source, int64_t rows, int64_t bytes, uint8_t *out)
{
    stk_loader *loader = NULL;
    stk_batch *batch;
    stk_error err;
    stk_tensor t;

    assert_int_equal(stkt_open(&loader, "{dataset: {fields: {x: {path: %s, source: {%s}}}}, loader: {batch_size: %d}}",
                               path, source, (int)rows),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    assert_int_equal(stk_tensor_nbytes(&t), rows * bytes);
    memcpy(out, t.data, (size_t)(rows * bytes));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Twelve copies of a PNG file as rows of an HDF5 file (written by h5py) with three types must give the pixels of the
 * file. */
static void bytes_in_hdf5(void **state)
{
    static const char *const names[] = {"rows", "opaque", "vlen"}, *const ways[] = {"color: index", "color: rgb",
                                                                                    "decode: exact, color: gray"};
    enum { PIXELS = 48, ROWS = 12 };

    (void)state;
    for (int w = 0; w < 3; w++) {
        const int64_t bytes = w == 1 ? 3 * PIXELS : PIXELS;
        uint8_t one[3 * PIXELS], all[ROWS * 3 * PIXELS];
        int sum = 0;

        first_rows(STKT_TESTS_DIR "/data/voc-mask.png", ways[w], 1, bytes, one);
        for (int i = 0; w == 0 && i < PIXELS; i++)
            sum += one[i];
        assert_int_equal(sum, w == 0 ? 16 * (0 + 15 + 255) : 0); /* 16 pixels of each class */
        for (int n = 0; n < 3; n++) {
            char source[128];

            snprintf(source, sizeof source, "name: %s, images: true, %s", names[n], ways[w]);
            first_rows(STKT_TESTS_DIR "/data/hdf5/images.h5", source, ROWS, bytes, all);
            for (int r = 0; r < ROWS; r++)
                assert_memory_equal(all + r * bytes, one, (size_t)bytes);
        }
    }
    {
        stk_loader *loader = NULL;

        assert_int_equal(stkt_open(&loader, "{dataset: {fields: {x: {path: %s, source: {name: rows, color: index}}}}}",
                                   STKT_TESTS_DIR "/data/hdf5/images.h5"),
                         STK_E_CONFIG); /* without `images: true` */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_size),       cmocka_unit_test(one_size),
        cmocka_unit_test(unreadable),     cmocka_unit_test(paths_of_the_images),
        cmocka_unit_test(stored_numbers), cmocka_unit_test(refused),
        cmocka_unit_test(bytes_in_hdf5),
    };

    return cmocka_run_group_tests(tests, write_files, NULL);
}
