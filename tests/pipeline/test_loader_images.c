/* stki-threads: a loader over folders of images: parts of images of different sizes, labels, and what a bad one does.
 */
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_test.h"

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

/* Classes a and b in turn; image `bad` is broken, -1: none. */
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

/* The middle of what libjpeg makes of the whole image by itself. */
static void check_row(const uint8_t *row, int i)
{
    stkt_bytes file = image(i);
    uint8_t *whole = stkt_jpeg_plain(file, JCS_RGB, 1, false);
    int top = (height_of(i) - SIDE) / 2, left = (width_of(i) - SIDE) / 2, found = -1;

    /* An odd rest may go to either side. */
    for (int t = top; t <= top + 1 && found < 0; t++)
        for (int l = left; l <= left + 1 && found < 0; l++) {
            bool same = true;
            for (int y = 0; y < SIDE && same; y++)
                same = t + y < height_of(i) &&
                       !memcmp(row + y * SIDE * 3, whole + ((t + y) * width_of(i) + l) * 3, SIDE * 3);
            found = same ? t : -1;
        }
    if (found < 0)
        fail_msg("image %d: not the middle of it", i);
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

/* P04 (decode), J18: the batches before the bad image come, then the error, again and again; the others can be had. */
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

/* J09: an image that is cut is delivered where that is accepted, and counted. */
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
        cmocka_unit_test(accepted_warnings_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
