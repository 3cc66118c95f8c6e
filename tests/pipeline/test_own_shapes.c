/* stki-threads */
/* Tests of `ragged: true`: images in loaders that keep their own shapes. The results of lists of transforms for each
 * image are in own_shapes/cases.tsv, made by torchvision and Pillow. */
#include "allocate.h"
#include "faults.h"
#include "host_device.h"
#include "image_reader.h"
#include "io_files.h"
#include "loader_test.h"
#include "png_make.h"
#include "sha256.h"
#include "tar_build.h"
#include <dlpack/dlpack.h>

#define FOLDER STKT_TESTS_DIR "/pipeline/own_shapes"

enum { IMAGES = 7, MOST_LISTS = 40 };

/* ---- the cases ---- */

static struct list {
    char transforms[160];
    struct {
        int64_t height, width;
        char sha256[65];
    } of[IMAGES];
} lists[MOST_LISTS];
static int list_count;

static int read_cases(void **state)
{
    FILE *file = fopen(FOLDER "/cases.tsv", "r");
    char line[512];
    int image = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *at = line, *columns[5];
        struct list *list;

        if (line[0] == '#')
            continue;
        for (int i = 0; i < 5; i++)
            columns[i] = strsep(&at, "\t\n");
        if (image == 0)
            snprintf(lists[list_count++].transforms, sizeof lists[0].transforms, "%s", columns[0]);
        list = &lists[list_count - 1];
        assert_string_equal(list->transforms, columns[0]);
        list->of[image].height = atoll(columns[2]);
        list->of[image].width = atoll(columns[3]);
        snprintf(list->of[image].sha256, 65, "%s", columns[4]);
        image = (image + 1) % IMAGES;
    }
    fclose(file);
    assert_int_equal(image, 0);
    assert_true(list_count > 20);
    return 0;
}

typedef struct rows {
    const uint8_t *values;
    const int64_t *offsets, *shapes;
} rows;

static rows rows_of(const stk_batch *batch, const char *name)
{
    stk_tensor values, offsets, shapes;
    char part[64];
    stk_error err;

    snprintf(part, sizeof part, "%s.values", name);
    assert_ok(stk_batch_tensor(batch, part, &values, &err));
    snprintf(part, sizeof part, "%s.offsets", name);
    assert_ok(stk_batch_tensor(batch, part, &offsets, &err));
    snprintf(part, sizeof part, "%s.shapes", name);
    assert_ok(stk_batch_tensor(batch, part, &shapes, &err));
    assert_int_equal(values.dtype, STK_U8);
    assert_int_equal(values.ndim, 1);
    assert_int_equal(offsets.dtype, STK_I64);
    assert_int_equal(offsets.shape[0], stk_batch_rows(batch) + 1);
    assert_int_equal(shapes.dtype, STK_I64);
    assert_int_equal(shapes.ndim, 2);
    assert_int_equal(shapes.shape[0], stk_batch_rows(batch));
    assert_int_equal(shapes.shape[1], 3);
    assert_int_equal(shapes.strides[0], 24);
    if (stk_batch_rows(batch) > 0)
        assert_int_equal(values.shape[0], ((int64_t *)offsets.data)[stk_batch_rows(batch)]);
    return (rows){values.data, offsets.data, shapes.data};
}

static void check_row(const rows *r, int64_t row, const struct list *list, int64_t image)
{
    const int64_t *shape = r->shapes + row * 3, bytes = r->offsets[row + 1] - r->offsets[row];
    char found[65];

    assert_int_equal(shape[0], list->of[image].height);
    assert_int_equal(shape[1], list->of[image].width);
    assert_int_equal(shape[2], 3);
    assert_int_equal(bytes, shape[0] * shape[1] * 3);
    stkt_sha256_of(r->values + r->offsets[row], (size_t)bytes, found);
    if (strcmp(found, list->of[image].sha256) != 0)
        fail_msg("%s of image %d: the pixels differ", list->transforms, (int)image);
}

static void test_cases(void **state)
{
    static const char *const ways[] = {"batch_size: 3, num_workers: 0",
                                       "order: random, num_workers: 3, batch_size: 2, num_epochs: 2"};

    (void)state;
    for (int k = 0; k < list_count; k++)
        for (int w = 0; w < 2; w++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            stk_status status;
            int64_t seen = 0;

            assert_int_equal(stkt_open(&loader,
                                       "dataset: {fields: {image: {path: %s, ragged: true, transforms: %s}}}\n"
                                       "loader: {%s}",
                                       FOLDER, lists[k].transforms, ways[w]),
                             STK_OK);
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                const rows r = rows_of(batch, "image");

                for (int64_t row = 0; row < stk_batch_rows(batch); row++, seen++)
                    check_row(&r, row, &lists[k], stk_batch_indices(batch)[row]);
                stk_batch_release(batch);
            }
            if (status != STK_END)
                fail_msg("%s: %s", lists[k].transforms, err.message);
            assert_int_equal(seen, w ? 2 * IMAGES : IMAGES);
            stk_loader_destroy(loader);
        }
}

/* Lists that give all images the same shape must give the pixels of ordinary rows. */
static void test_fixed_rows(void **state)
{
    int tried = 0;

    (void)state;
    for (int k = 0; k < list_count; k++) {
        const struct list *list = &lists[k];
        stk_loader *loader;
        stk_batch *batch;
        stk_tensor t;
        stk_error err;
        bool alike = true;

        for (int i = 1; i < IMAGES; i++)
            alike = alike && list->of[i].height == list->of[0].height && list->of[i].width == list->of[0].width;
        if (!alike)
            continue;
        tried++;
        assert_int_equal(stkt_open(&loader,
                                   "dataset: {fields: {image: {path: %s, transforms: %s}}}\nloader: {batch_size: 7}",
                                   FOLDER, list->transforms),
                         STK_OK);
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        assert_int_equal(t.shape[1], list->of[0].height);
        assert_int_equal(t.shape[2], list->of[0].width);
        for (int i = 0; i < IMAGES; i++) {
            char found[65];

            stkt_sha256_of((char *)t.data + i * t.strides[0], (size_t)t.strides[0], found);
            assert_string_equal(found, list->of[i].sha256);
        }
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
    assert_true(tried >= 5);
}

/* ---- planes ---- */

/* Writes the same images as planes in .npy files of an archive. */
static void write_planes(void)
{
    struct stkt_tar tar = {0};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    rows r;

    assert_int_equal(
        stkt_open(&loader, "dataset: {fields: {image: {path: %s, ragged: true}}}\nloader: {batch_size: 7}", FOLDER),
        STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    r = rows_of(batch, "image");
    for (int64_t i = 0; i < IMAGES; i++) {
        const int64_t *shape = r.shapes + i * 3, pixels = shape[0] * shape[1];
        char name[64], text[64];
        uint8_t *planes = malloc((size_t)pixels * 3);
        stkt_bytes file;

        check_row(&r, i, &lists[0], i);
        for (int64_t c = 0; c < 3; c++)
            for (int64_t k = 0; k < pixels; k++)
                planes[c * pixels + k] = r.values[r.offsets[i] + k * 3 + c];
        snprintf(text, sizeof text, "(3, %d, %d)", (int)shape[0], (int)shape[1]);
        stkt_write_npy(stkt_path("one.npy"), "|u1", "False", text, 64, planes, (size_t)pixels * 3);
        file = stkt_bytes_read(stkt_path("one.npy"));
        snprintf(name, sizeof name, "%02d.npy", (int)i);
        stkt_tar_put(&tar, '0', name, file.data, file.size);
        free(file.data);
        free(planes);
    }
    stkt_tar_write(&tar, stkt_path("planes.tar"));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void test_planes(void **state)
{
    (void)state;
    write_planes();
    for (int k = 0; k < list_count; k++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        rows r;

        if (strstr(lists[k].transforms, "resize"))
            continue;
        assert_int_equal(stkt_open(&loader,
                                   "dataset: {fields: {x: {path: %s, ragged: true, source: {name: npy, layout: nchw}, "
                                   "transforms: %s}}}\nloader: {batch_size: 7}",
                                   stkt_path("planes.tar"), lists[k].transforms),
                         STK_OK);
        assert_ok(stk_loader_next(loader, &batch, &err));
        r = rows_of(batch, "x");
        for (int64_t i = 0; i < IMAGES; i++) {
            const int64_t *shape = r.shapes + i * 3, pixels = shape[1] * shape[2];
            uint8_t *hwc = malloc((size_t)pixels * 3);
            char found[65];

            assert_int_equal(shape[0], 3);
            assert_int_equal(shape[1], lists[k].of[i].height);
            assert_int_equal(shape[2], lists[k].of[i].width);
            for (int64_t c = 0; c < 3; c++)
                for (int64_t p = 0; p < pixels; p++)
                    hwc[p * 3 + c] = r.values[r.offsets[i] + c * pixels + p];
            stkt_sha256_of(hwc, (size_t)pixels * 3, found);
            if (strcmp(found, lists[k].of[i].sha256) != 0)
                fail_msg("%s of image %d: the pixels differ", lists[k].transforms, (int)i);
            free(hwc);
        }
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
}

/* ---- random steps ---- */

/* Shapes depend on the draw. All bytes are the same for any number of workers, and results that all have the same shape
 * equal ordinary rows. */
static void test_random(void **state)
{
    uint64_t hashes[2] = {0};
    stk_loader *loader, *plain;
    stk_batch *batch, *other;
    stk_error err;
    int turned = 0;

    (void)state;
    for (int w = 0; w < 2; w++) {
        assert_int_equal(
            stkt_open(&loader,
                      "dataset: {fields: {image: {path: %s, ragged: true, transforms: [{resize: 24}, {random_rotate: "
                      "{}}, {random_horizontal_flip: {p: 0.5}}, {pad: {padding: [1, 2, 3, 4], fill: 7}}]}}}\n"
                      "loader: {batch_size: 4, order: random, num_epochs: 5, num_workers: %d}",
                      FOLDER, w * 3),
            STK_OK);
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            const rows r = rows_of(batch, "image");

            for (int64_t row = 0; row < stk_batch_rows(batch); row++) {
                const int64_t image = stk_batch_indices(batch)[row], *shape = r.shapes + row * 3;
                const int64_t h = lists[1].of[image].height, v = lists[1].of[image].width;
                const bool along = shape[0] == h + 6 && shape[1] == v + 4;

                assert_true(along || (shape[0] == v + 6 && shape[1] == h + 4));
                turned += !along;
                assert_int_equal(r.values[r.offsets[row]], 7);
                assert_int_equal(r.values[r.offsets[row + 1] - 1], 7);
            }
            hashes[w] = stkt_hash_batch(hashes[w], loader, batch);
            hashes[w] = stkt_hash(hashes[w], r.shapes, stk_batch_rows(batch) * 24);
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(turned > 10);
    for (int ragged = 0; ragged < 2; ragged++)
        assert_int_equal(
            stkt_open(ragged ? &loader : &plain,
                      "dataset: {fields: {image: {path: %s, ragged: %s, transforms: [{random_resized_crop: {size: "
                      "[9, 14]}}, {random_horizontal_flip: {p: 0.5}}, {random_rotate: {angles: [0, 180]}}]}}}\n"
                      "loader: {batch_size: 4, order: random, num_epochs: 3}",
                      FOLDER, ragged ? "true" : "false"),
            STK_OK);
    while (stk_loader_next(plain, &other, &err) == STK_OK) {
        stk_tensor t;
        rows r;

        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(other, "image", &t, &err));
        r = rows_of(batch, "image");
        assert_memory_equal(r.values, t.data, (size_t)(t.shape[0] * 9 * 14 * 3));
        assert_int_equal(r.offsets[t.shape[0]], t.shape[0] * 9 * 14 * 3);
        stk_batch_release(batch);
        stk_batch_release(other);
    }
    stk_loader_destroy(loader);
    stk_loader_destroy(plain);
}

/* ---- rejected configs ---- */

static stk_status run(const char *field, const char *loader_section, stk_error *err)
{
    char text[2048];
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;

    snprintf(text, sizeof text, "dataset: {fields: {image: %s}}\nloader: {%s}", field, loader_section);
    status = stk_loader_open_text(text, NULL, NULL, 0, &loader, err);
    if (status != STK_OK)
        return status;
    while ((status = stk_loader_next(loader, &batch, err)) == STK_OK)
        stk_batch_release(batch);
    stk_loader_destroy(loader);
    return status;
}

static void test_refused(void **state)
{
    static const struct {
        const char *keys, *says;
        stk_status status;
    } cases[] = {
        {"transforms: [{normalize: imagenet}]", "normalize", STK_E_UNSUPPORTED},
        {"transforms: [{brightness: 1.5}]", "brightness", STK_E_UNSUPPORTED},
        {"transforms: [{cast: f32}]", "cast", STK_E_UNSUPPORTED},
        {"transforms: [{resize: 9}, {quantize: {scale: 0.1, dtype: i8}}]", "quantize", STK_E_UNSUPPORTED},
        {"transforms: [{random_erasing: 0.5}]", "random_erasing", STK_E_UNSUPPORTED},
        {"transforms: [{mixup: 0.2}]", "mixup", STK_E_UNSUPPORTED},
        {"dtype: f32", "dtype", STK_E_UNSUPPORTED},
        {"layout: nchw", "layout: nchw", STK_E_UNSUPPORTED},
        {"layout: channels_last", "layout: channels_last", STK_E_UNSUPPORTED},
        {"pad: 10", "pad", STK_E_UNSUPPORTED},
        {"views: {a: [0, 1]}", "views", STK_E_UNSUPPORTED},
        {"source: {decode: none}", "samples of 1 axis", STK_E_UNSUPPORTED},
        {"transforms: [{resize: 9}, {resize: 8}]", "second resize", STK_E_CONFIG},
        {"transforms: [{resize: {longer: 9, size: 8}}]", "longer and size are mutually exclusive", STK_E_CONFIG},
        {"transforms: [{resize: {longer: 0}}]", "1 to 65535", STK_E_CONFIG},
        {"transforms: [{resize: {size: 9, max_size: 9}}]", "more than 9", STK_E_CONFIG},
        {"transforms: [{resize: {size: [9, 8], max_size: 20}}]", "one number", STK_E_CONFIG},
        {"transforms: [{resize: {max_size: 20}}]", "size is missing", STK_E_CONFIG},
        {"transforms: [{pad: {size: 200, padding: 1}}]", "both padding and size", STK_E_CONFIG},
        {"transforms: [{pad: {fill: 1}}]", "is missing", STK_E_CONFIG},
        {"transforms: [{pad: {size: 119}}]", "5_17x120.png", STK_E_BAD_SHAPE},
    };
    char text[512];
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "{path: %s, ragged: true, %s}", FOLDER, cases[i].keys);
        assert_status(run(text, "", &err), cases[i].status);
        assert_says(cases[i].says);
        if (cases[i].status == STK_E_UNSUPPORTED)
            assert_says("ragged");
    }
    assert_status(run("{synthetic: {shape: [4, 4, 3], dtype: f32}, source: {layout: nhwc}, ragged: true}", "", &err),
                  STK_E_UNSUPPORTED);
    assert_says("uint8");
    assert_status(run("{synthetic: {shape: [4, 4, 3]}, ragged: true}", "", &err), STK_E_UNSUPPORTED);
    assert_says("source: {layout: nhwc}");
    snprintf(text, sizeof text, "{path: %s, ragged: 7}", FOLDER);
    assert_status(run(text, "", &err), STK_E_CONFIG);
    snprintf(text, sizeof text, "{path: %s, ragged: {max_byte: 7}}", FOLDER);
    assert_status(run(text, "", &err), STK_E_CONFIG);
    assert_says("max_bytes");
    snprintf(text, sizeof text,
             "{path: %s, ragged: true, transforms: [{crop: {top: 0, left: 0, height: 6, width: 1}}]}",
             FOLDER); /* the image with one line */
    assert_status(run(text, "", &err), STK_E_BAD_SHAPE);
    assert_says("2_1x40.png");
    assert_status(run("{synthetic: {shape: [4, 4, 3]}, source: {layout: nhwc}, ragged: true, transforms: "
                      "[{center_crop: 5}]}",
                      "", &err),
                  STK_E_BAD_SHAPE);
}

/* ---- limits of memory ---- */

static void test_room(void **state)
{
    char text[512];
    stk_loader *loader;
    stk_field_info info;
    stk_error err;

    (void)state;
    snprintf(text, sizeof text, "{path: %s, ragged: {max_bytes: 12287}}", FOLDER);
    assert_status(run(text, "", &err), STK_E_LIMIT); /* 64 x 64 x 3 is 12,288 */
    assert_says("ragged: {max_bytes");
    assert_says("1_64x64.png");
    snprintf(text, sizeof text, "{path: %s, ragged: {max_bytes: 12288}}", FOLDER);
    assert_status(run(text, "", &err), STK_END);
    snprintf(text, sizeof text, "{path: %s, ragged: true, source: {max_bytes: 12287}}", FOLDER);
    assert_status(run(text, "", &err), STK_E_LIMIT);
    snprintf(text, sizeof text, "{path: %s, ragged: true, transforms: [{resize: 24}]}", FOLDER);
    assert_status(run(text, "memory_budget: 60KiB", &err), STK_E_LIMIT); /* one row of 24 x 960 x 3 */
    assert_says("memory_budget");
    assert_status(run(text, "memory_budget: 80KiB", &err), STK_END);
    assert_int_equal(stkt_open(&loader, "dataset: {fields: {image: {path: %s, ragged: true}}}\nloader: {}", FOLDER),
                     STK_OK);
    assert_ok(stk_loader_field(loader, 0, &info, &err));
    assert_int_equal(info.ndim, 2);
    assert_int_equal(info.shape[1], -1);
    assert_int_equal(info.dtype, STK_U8);
    assert_string_equal(info.layout, "nhwc");
    stk_loader_destroy(loader);
}

/* A box for each sample: the sizes of rows are not known in advance. */
static void test_boxes(void **state)
{
    static const int32_t boxes[IMAGES][4] = {{1, 2, 30, 20}, {0, 0, 64, 64}, {0, 3, 1, 9}, {5, 0, 20, 1},
                                             {10, 1, 8, 30}, {2, 3, 4, 100}, {0, 0, 5, 5}};
    char text[512];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    rows r;

    (void)state;
    stkt_write_npy(stkt_path("boxes.npy"), "<i4", "False", "(7, 4)", 64, boxes, sizeof boxes);
    snprintf(text, sizeof text,
             "{path: %s, ragged: true, transforms: [{crop: {field: box}}, {resize: 6}]}, box: {path: %s}", FOLDER,
             stkt_path("boxes.npy"));
    assert_status(run(text, "", &err), STK_E_UNSUPPORTED);
    assert_says("max_bytes");
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {image: {path: %s, ragged: {max_bytes: 4KiB}, transforms: [{crop: "
                               "{field: box}}, {resize: 6}]}, box: {path: %s}}}\nloader: {batch_size: 7}",
                               FOLDER, stkt_path("boxes.npy")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    r = rows_of(batch, "image");
    for (int64_t i = 0; i < IMAGES; i++) {
        const int64_t h = boxes[i][2], w = boxes[i][3];

        assert_int_equal(r.shapes[i * 3], w <= h ? 6 * h / w : 6);
        assert_int_equal(r.shapes[i * 3 + 1], w <= h ? 6 : 6 * w / h);
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* ---- other features ---- */

/* Copies the images into a folder of this test. */
static void copy_folder(const char *name)
{
    static const char *const names[] = {"0_37x53", "1_64x64", "2_1x40", "3_40x1", "4_90x31", "5_17x120", "6_5x5"};
    char from[512], to[256];

    mkdir(stkt_path(name), 0755);
    for (int i = 0; i < IMAGES; i++) {
        stkt_bytes file;

        snprintf(from, sizeof from, FOLDER "/%s.png", names[i]);
        snprintf(to, sizeof to, "%s/%s.png", name, names[i]);
        file = stkt_bytes_read(from);
        stkt_write_file(stkt_path(to), file.data, file.size);
        free(file.data);
    }
}

/* Image 4 cannot be decoded, and another image does not even have a readable header. */
static void test_failing_rows(void **state)
{
    static const char *const policies[] = {"on_error: skip", "on_error: skip, last_batch: pad",
                                           "on_error: substitute, seed: 5"};
    char path[256];
    stkt_bytes file;
    stk_error err;

    (void)state;
    copy_folder("failing");
    snprintf(path, sizeof path, "%s", stkt_path("failing/4_90x31.png"));
    file = stkt_bytes_read(path);
    stkt_write_file(path, file.data, file.size - 700);
    free(file.data);
    stkt_write_file(stkt_path("failing/1_64x64.png"), "no image", 8);
    for (int p = 0; p < 3; p++)
        for (int workers = 0; workers <= 3; workers += 3) {
            stk_loader *loader;
            stk_batch *batch;
            rows r;

            assert_int_equal(stkt_open(&loader,
                                       "dataset: {fields: {image: {path: %s, ragged: true}}}\n"
                                       "loader: {batch_size: 7, max_error_fraction: 1, num_workers: %d, %s}",
                                       stkt_path("failing"), workers, policies[p]),
                             STK_OK);
            assert_ok(stk_loader_next(loader, &batch, &err));
            r = rows_of(batch, "image");
            assert_int_equal(stk_batch_rows(batch), p == 0 ? 5 : 7);
            for (int64_t row = 0; row < stk_batch_rows(batch); row++) {
                if (stk_batch_mask(batch)[row])
                    check_row(&r, row, &lists[0], stk_batch_indices(batch)[row]);
                else
                    for (int64_t k = r.offsets[row]; k < r.offsets[row + 1]; k++)
                        assert_int_equal(r.values[k], 0);
            }
            stk_batch_release(batch);
            stk_loader_destroy(loader);
        }
    snprintf(path, sizeof path, "{path: %s, ragged: true}", stkt_path("failing"));
    assert_status(run(path, "", &err), STK_E_UNSUPPORTED);
    assert_says("1_64x64.png");
}

/* A file is replaced by another image after the loader was opened. */
static void test_replaced(void **state)
{
    stkt_bytes file;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    copy_folder("replaced");
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {image: {path: %s, ragged: true}}}\n"
                               "loader: {num_workers: 0, prefetch: 1}",
                               stkt_path("replaced")),
                     STK_OK);
    file = stkt_bytes_read(FOLDER "/1_64x64.png");
    stkt_write_file(stkt_path("replaced/0_37x53.png"), file.data, file.size);
    free(file.data);
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
    assert_says("0_37x53.png");
    stk_loader_destroy(loader);
}

/* A rotation before asymmetric padding: the size of the row depends on the draw. */
static void test_room_for_turned(void **state)
{
    char field[512];
    stkt_bytes file = stkt_bytes_read(FOLDER "/5_17x120.png");
    stk_error err;

    (void)state;
    mkdir(stkt_path("turned"), 0755);
    stkt_write_file(stkt_path("turned/a.png"), file.data, file.size);
    free(file.data);
    snprintf(field, sizeof field,
             "{path: %s, ragged: true, transforms: [{random_rotate: {}}, {pad: {padding: [0, 0, 50, 0]}}]}",
             stkt_path("turned"));
    assert_status(run(field, "num_epochs: 30", &err), STK_END);
}

/* A reader that returns a different shape on every read. */
static stk_status growing_shape(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err)
{
    static _Atomic int asked;

    (void)reader, (void)err;
    shape[0] = 4 + atomic_fetch_add(&asked, 1) % 2;
    shape[1] = 4 + index % 2;
    shape[2] = 3;
    return STK_OK;
}

static stk_status wrap_growing(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    static stki_reader_ops ops;
    stk_status status = stkt_wrap_images(context, field, reader, err);

    ops = *(*reader)->ops;
    ops.shape = growing_shape;
    (*reader)->ops = &ops;
    return status;
}

static void test_a_shape_that_changes(void **state)
{
    const char *text = "dataset: {fields: {image: {synthetic: {count: 4, shape: [9, 8, 3]}, source: {layout: nhwc}, "
                       "ragged: {max_bytes: 4KiB}}}}\nloader: {num_workers: 0, prefetch: 1}";
    stkt_images images = {.way = STKT_WHOLE, .min_side = 4, .max_side = 8, .odd_one = -1};
    stki_document *document;
    stki_loader_config *config;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err));
    assert_ok(stki_config_read(document, NULL, &config, &err));
    config->wrap_reader = wrap_growing;
    config->wrap_context = &images;
    assert_ok(stki_loader_open_config(config, &loader, &err));
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
    assert_says("as measured before");
    stk_loader_destroy(loader);
}

static void test_dlpack(void **state)
{
    DLManagedTensor *shapes;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_int_equal(
        stkt_open(&loader, "dataset: {fields: {image: {path: %s, ragged: true}}}\nloader: {batch_size: 7}", FOLDER),
        STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_dlpack(batch, "image.shapes", &shapes, &err));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    assert_int_equal(shapes->dl_tensor.ndim, 2);
    assert_int_equal(shapes->dl_tensor.shape[0], 7);
    assert_int_equal(shapes->dl_tensor.strides[0], 3);
    assert_int_equal(((int64_t *)shapes->dl_tensor.data)[3], 64);
    shapes->deleter(shapes);
}

static void test_device(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t seen = 0;

    (void)state;
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {image: {path: %s, ragged: true, transforms: [{resize: 24}]}}}\n"
                               "loader: {batch_size: 3, device: host, num_workers: 2}",
                               FOLDER),
                     STK_OK);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        const rows r = rows_of(batch, "image"); /* the host device's memory can be read */

        for (int64_t row = 0; row < stk_batch_rows(batch); row++, seen++)
            check_row(&r, row, &lists[1], stk_batch_indices(batch)[row]);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    assert_int_equal(seen, IMAGES);
    stk_loader_destroy(loader);
}

static stk_digest_info digest_of(const char *path, int workers, const char *transforms)
{
    stk_digest_info out;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {image: {path: %s, ragged: true, transforms: %s}}}\n"
                               "loader: {batch_size: 2, digest: bytes, num_workers: %d}",
                               path, transforms, workers),
                     STK_OK);
    while (stk_loader_next(loader, &batch, &err) == STK_OK)
        stk_batch_release(batch);
    assert_ok(stk_loader_digest(loader, &out, &err));
    stk_loader_destroy(loader);
    return out;
}

static bool same(stk_digest_info a, stk_digest_info b)
{
    return strcmp(a.text, b.text) == 0;
}

/* The shape is part of a row's digest: the same bytes in another shape are another row. */
static void test_digest(void **state)
{
    stkt_bytes file = stkt_png_make(&(stkt_png){.width = 1, .height = 8, .bits = 8, .type = 2});

    (void)state;
    assert_true(same(digest_of(FOLDER, 0, "[]"), digest_of(FOLDER, 3, "[]")));
    mkdir(stkt_path("line"), 0755);
    stkt_write_file(stkt_path("line/a.png"), file.data, file.size);
    free(file.data);
    assert_false(same(digest_of(stkt_path("line"), 0, "[]"),
                      digest_of(stkt_path("line"), 0, "[{rotate: 270}, {horizontal_flip: {}}]")));
}

static void test_resume(void **state)
{
    char saved[256], text[1024];
    uint64_t whole = 0, parts = 0;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    snprintf(saved, sizeof saved, "%s", stkt_path("saved"));
    snprintf(text, sizeof text,
             "dataset: {fields: {image: {path: %s, ragged: true, transforms: [{resize: 9}, {random_rotate: {}}]}}}\n"
             "loader: {batch_size: 2, order: random, num_epochs: 3}",
             FOLDER);
    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    for (int i = 0; stk_loader_next(loader, &batch, &err) == STK_OK; i++) {
        if (i >= 5)
            whole = stkt_hash_batch(whole, loader, batch);
        stk_batch_release(batch);
        if (i == 4)
            assert_ok(stk_loader_save_file(loader, saved, &err));
    }
    stk_loader_destroy(loader);
    assert_ok(stk_loader_open_text(text, NULL, (const char *[]){"loader.num_workers=0"}, 1, &loader, &err));
    assert_ok(stk_loader_restore_file(loader, saved, &err));
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        parts = stkt_hash_batch(parts, loader, batch);
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    assert_true(whole == parts && whole != 0);
    /* a different max_bytes does not prevent resuming */
    snprintf(text, sizeof text,
             "dataset: {fields: {image: {path: %s, ragged: {max_bytes: 1MiB}, transforms: [{resize: 9}, "
             "{random_rotate: {}}]}}}\nloader: {batch_size: 2, order: random, num_epochs: 3, resume_from: %s}",
             FOLDER, saved);
    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    stk_loader_destroy(loader);
    /* without `ragged`, the rows are different ones */
    snprintf(text, sizeof text,
             "dataset: {fields: {image: {path: %s, transforms: [{resize: [9, 9]}, "
             "{random_rotate: {}}]}}}\nloader: {batch_size: 2, order: random, num_epochs: 3, resume_from: %s}",
             FOLDER, saved);
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_MISMATCH);
}

static void test_c_api(void **state)
{
    const char *path = FOLDER;
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    rows r;

    (void)state;
    field.name = "image";
    field.paths = &path;
    field.path_count = 1;
    field.ragged = "{max_bytes: 1MiB}";
    opts.fields = &field;
    opts.field_count = 1;
    opts.batch_size = 7;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    r = rows_of(batch, "image");
    for (int64_t i = 0; i < IMAGES; i++)
        check_row(&r, i, &lists[0], i);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Two data sets with one field: the options of the second must be those of the first. */
static void test_mixed_sets(void **state)
{
    char text[1024];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int64_t seen = 0;

    (void)state;
    snprintf(text, sizeof text,
             "datasets: [{name: a, fields: {image: {path: %s, ragged: true}}}, {name: b, fields: {image: {path: %s, "
             "ragged: true}}}]\nloader: {batch_size: 4, order: random, mixture_stop: all_exhausted}",
             FOLDER, FOLDER);
    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        const rows r = rows_of(batch, "image");

        for (int64_t row = 0; row < stk_batch_rows(batch); row++, seen++)
            check_row(&r, row, &lists[0], stk_batch_indices(batch)[row] % IMAGES);
        stk_batch_release(batch);
    }
    assert_true(seen >= 2 * IMAGES);
    stk_loader_destroy(loader);
    snprintf(text, sizeof text,
             "datasets: [{name: a, fields: {image: {path: %s, transforms: [{resize: [8, 8]}]}}}, {name: b, fields: "
             "{image: {path: %s, ragged: true}}}]\nloader: {batch_size: 4}",
             FOLDER, FOLDER);
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_CONFIG);
    assert_says("ragged");
}

static void test_no_memory(void **state)
{
    static const char *const fields[] = {
        "{path: " FOLDER ", ragged: true, transforms: [{resize: 12}, {rotate: 90}, {pad: 3}]}",
        "{path: " FOLDER ", ragged: true, transforms: [{pad: {padding: 2, fill: [1, 2, 3]}}, {rotate: 90}]}"};
    stk_error err;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int n = 1;; n++) {
            stk_status status;

            memset(&err, 0, sizeof err);
            stki_memory_fail_at(n);
            status = run(fields[i], "batch_size: 4, num_workers: 0", &err);
            stki_memory_fail_at(0);
            if (status == STK_END && n > 150)
                break;
            if (status != STK_E_MEMORY && status != STK_END)
                fail_msg("allocation %d: %s: %s", n, stk_status_name(status), err.message);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),           cmocka_unit_test(test_fixed_rows),
        cmocka_unit_test(test_planes),          cmocka_unit_test(test_random),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_room),
        cmocka_unit_test(test_boxes),           cmocka_unit_test(test_failing_rows),
        cmocka_unit_test(test_replaced),        cmocka_unit_test(test_dlpack),
        cmocka_unit_test(test_device),          cmocka_unit_test(test_digest),
        cmocka_unit_test(test_resume),          cmocka_unit_test(test_c_api),
        cmocka_unit_test(test_mixed_sets),      cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_room_for_turned), cmocka_unit_test(test_a_shape_that_changes),
    };

    return cmocka_run_group_tests(tests, read_cases, NULL);
}
