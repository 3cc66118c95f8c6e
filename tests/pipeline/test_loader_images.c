/* stki-threads */
/* Loaders for folders of images: crops of images of different sizes, labels, and damaged images. */
#include "format.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_test.h"
#include "sums.h"

enum { IMAGES = 11, SIDE = 16 };

static int height_of(int i)
{
    return 20 + 13 * i;
}

static int width_of(int i)
{
    return 90 - 5 * i;
}

static stkt_bytes image(int i)
{
    return stkt_jpeg_make(&(stkt_jpeg){
        .width = width_of(i), .height = height_of(i), .h = 1 + i % 2, .v = 1 + i % 3 / 2, .progressive = i % 4 == 3});
}

/* Classes a and b alternate; image `bad` is damaged (-1: none). */
static const char *make_folder(const char *name, int bad, size_t bad_bytes)
{
    char path[64];

    assert_int_equal(mkdir(stkt_path(name), 0755), 0);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%c", name, 'a' + k);
        assert_int_equal(mkdir(stkt_path(path), 0755), 0);
    }
    for (int i = 0; i < IMAGES; i++) {
        stkt_bytes file = image(i);
        snprintf(path, sizeof path, "%s/%c/%02d.jpg", name, 'a' + i * 2 / IMAGES, i);
        stkt_write_file(stkt_path(path), file.data, i == bad ? bad_bytes : file.size);
        free(file.data);
    }
    return stkt_path(name);
}

#define CONFIG                                                                                                 \
    "{dataset: {fields: {image: {path: '%s', source: {layout: nhwc}, transforms: [{center_crop: [16, 16]}]}, " \
    "label: {path: '%s'}}}, loader: {batch_size: 4, num_workers: %d, num_epochs: 1, order: %s, last_batch: partial}}"

/* Compares a row with the center of the whole image decoded by libjpeg. */
static void check_row(const uint8_t *row, int i)
{
    stkt_bytes file = image(i);
    uint8_t *whole = stkt_jpeg_plain(file, JCS_RGB, 1, false);
    int top = (height_of(i) - SIDE) / 2, left = (width_of(i) - SIDE) / 2, found = -1;

    /* An odd pixel may go to either side. */
    for (int t = top; t <= top + 1 && found < 0; t++)
        for (int l = left; l <= left + 1 && found < 0; l++) {
            bool same = true;
            for (int y = 0; y < SIDE && same; y++)
                same = t + y < height_of(i) &&
                       !memcmp(row + y * SIDE * 3, whole + ((t + y) * width_of(i) + l) * 3, SIDE * 3);
            found = same ? t : -1;
        }
    if (found < 0)
        fail_msg("image %d: the row is not the center of the image", i);
    free(whole);
    free(file.data);
}

static void parts_of_images(void **state)
{
    const char *folder = make_folder("good", -1, 0);
    static const char *const orders[] = {"sequential", "random"};

    (void)state;
    for (int workers = 0; workers <= 3; workers += 3)
        for (int o = 0; o < 2; o++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            int rows = 0;

            assert_ok(stkt_open(&loader, CONFIG, folder, folder, workers, orders[o]));
            while (stk_loader_next(loader, &batch, &err) == STK_OK) {
                stk_tensor images, labels;
                assert_ok(stk_batch_tensor(batch, "image", &images, &err));
                assert_ok(stk_batch_tensor(batch, "label", &labels, &err));
                for (int64_t r = 0; r < stk_batch_rows(batch); r++, rows++) {
                    int64_t index = stk_batch_indices(batch)[r];
                    check_row((const uint8_t *)images.data + r * SIDE * SIDE * 3, (int)index);
                    assert_int_equal(((const int64_t *)labels.data)[r], index * 2 / IMAGES);
                }
                stk_batch_release(batch);
            }
            assert_int_equal(rows, IMAGES);
            stk_loader_destroy(loader);
        }
}

/* Rows P04 (decode) and J18: the batches before the bad image are delivered, and then every call returns the error. The
 * other images remain readable. */
static void a_bad_image(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        char name[16], text[64];
        const char *folder;

        snprintf(name, sizeof name, "bad%d", cut);
        folder = make_folder(name, 6, cut ? 500 : 0);
        for (int workers = 0; workers <= 3; workers++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err, again;
            stk_status status;
            int64_t rows = 0;

            assert_ok(stkt_open(&loader, CONFIG, folder, folder, workers, "sequential"));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                rows += stk_batch_rows(batch);
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_E_TRUNCATED);
            assert_int_equal(rows, 4);
            snprintf(text, sizeof text, "%s/b/06.jpg: record 6: ", name);
            assert_says(text);
            assert_int_equal(stk_loader_next(loader, &batch, &again), STK_E_TRUNCATED);
            assert_string_equal(again.message, err.message);
            stk_loader_destroy(loader);

            rows = 0;
            assert_ok(stkt_open_faulty(&loader, NULL, true, &err, CONFIG, folder, folder, workers, "random"));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                rows += stk_batch_valid_rows(batch);
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_END);
            assert_int_equal(rows, IMAGES - 1);
            stk_loader_destroy(loader);
        }
    }
}

/* An error in one image of a folder names that image's path, and also sets err.found and err.expected. */
static void errors_name_the_image(void **state)
{
    static const struct {
        const char *field, *file, *expected;
        int64_t record;
        stk_status status;
    } rows[] = {
        {"transforms: [{center_crop: 24}]", "/a/00.jpg", "at least 24 x 24 (center_crop does not pad)", 0,
         STK_E_BAD_SHAPE},
        {"transforms: [{crop: {top: 1, left: 2, height: 15, width: 60}}]", "/b/06.jpg", "at least 16 x 62 for", 6,
         STK_E_BAD_SHAPE},
        {"transforms: [{resize: {size: [4, 4], box: [0, 0, 60, 20]}}]", "/b/07.jpg", "at least 20 x 60 for the box", 7,
         STK_E_BAD_SHAPE},
        {"", "/a/01.jpg", "[20, 90, 3]", 1, STK_E_MISMATCH},
        {"source: {sums: true}, transforms: [{resize: [4, 4]}]", "/a/03.jpg", "0000000000000000", 3, STK_E_CORRUPT},
    };
    const char *folder = make_folder("alone", -1, 0);
    stki_reader_opts opts = {.name = "image"};
    uint64_t sums[IMAGES];
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    int64_t member;
    stk_tensor sample;
    char how[STKI_SUMS_HOW];
    stk_error err;

    (void)state;
    assert_ok(stki_container_open(folder, &opts, &container, &err));
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    stki_scratch_init(&scratch);
    for (int i = 0; i < IMAGES; i++) {
        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
        sums[i] = i == 3 ? 0 : stki_sums_of(&sample);
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    stki_sums_how(reader, &opts, how);
    assert_ok(stki_sums_write(folder, &(stki_sums_member){"image", how, IMAGES, sums}, 1, &err));
    stki_reader_destroy(reader);
    stki_container_release(container);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_status status;
        char text[64];

        assert_ok(stkt_open(&loader,
                            "{dataset: {fields: {image: {path: '%s', %s}}}, loader: {batch_size: 1, num_workers: 0}}",
                            folder, rows[i].field));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
            stk_batch_release(batch);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(err.record, rows[i].record);
        assert_true(strlen(err.file) > 10 && !strcmp(err.file + strlen(err.file) - 9, rows[i].file));
        snprintf(text, sizeof text, "alone%s: record %d: ", rows[i].file, (int)rows[i].record);
        assert_says(text);
        assert_non_null(strstr(err.expected, rows[i].expected));
        assert_string_not_equal(err.found, "");
        assert_says(err.found);
        assert_says(err.expected);
        if (rows[i].status == STK_E_MISMATCH)
            assert_says("alone/a/00.jpg"); /* the image from which it differs */
        stk_loader_destroy(loader);
    }
}

/* Row J09: a truncated image is delivered and counted if the config accepts it. */
static void accepted_warnings_are_counted(void **state)
{
    const char *folder = make_folder("warned", 4, 1000);

    (void)state;
    for (int workers = 0; workers <= 2; workers++) {
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        int64_t rows = 0;

        assert_ok(stkt_open(&loader,
                            "{dataset: {fields: {image: {path: '%s', source: {layout: nhwc, on_warning: accept}, "
                            "transforms: [{center_crop: [16, 16]}]}}}, loader: {batch_size: 4, num_workers: %d, "
                            "num_epochs: 2, last_batch: partial}}",
                            folder, workers));
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            rows += stk_batch_rows(batch);
            stk_batch_release(batch);
        }
        assert_int_equal(rows, 2 * IMAGES);
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_int_equal(stats.warnings, 2);
        assert_int_equal(stats.errors, 0);
        stk_loader_destroy(loader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_images),
        cmocka_unit_test(a_bad_image),
        cmocka_unit_test(errors_name_the_image),
        cmocka_unit_test(accepted_warnings_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
