/* stki-threads */
/* Tests of source: {decode: none}: loaders deliver the bytes of image files from folders, lists, single files, tar
 * archives and .beton files. The test keeps the bytes of each file. */
#include "allocate.h"
#include "beton.h"
#include "beton_build.h"
#include "faults.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_test.h"
#include "tar_build.h"

enum { COUNT = 23, PAGE = 1 << 15 };

static stkt_bytes images[COUNT];

static int make_images(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++)
        images[i] = stkt_jpeg_make(&(stkt_jpeg){.width = 8 + 5 * i, .height = 70 - 3 * i, .h = 2, .v = 2});
    return 0;
}

static int free_images(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++)
        free(images[i].data);
    return 0;
}

/* Writes NAME/c0/00.jpg, NAME/c1/01.jpg, … and NAME.lst, which lists them in reverse. */
static void write_folder(const char *name)
{
    char path[256], line[128];

    mkdir(stkt_path(name), 0755);
    snprintf(path, sizeof path, "%s.lst", name);
    stkt_write_file(stkt_path(path), "", 0);
    for (int i = COUNT - 1; i >= 0; i--) {
        snprintf(line, sizeof line, "%s/%02d.jpg\n", name, i);
        stkt_append_file(stkt_path(path), line, strlen(line));
        stkt_write_file(stkt_path(strtok(line, "\n")), images[i].data, images[i].size);
    }
}

static void write_tar(const char *path)
{
    struct stkt_tar tar = {0};
    char name[32];

    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "%03d.jpg", i);
        stkt_tar_put(&tar, '0', name, images[i].data, images[i].size);
        snprintf(name, sizeof name, "%03d.cls", i);
        stkt_tar_file(&tar, name, "7");
    }
    stkt_tar_write(&tar, path);
}

static void write_beton(const char *path, bool with_raw)
{
    static const unsigned char pixels[4 * 4 * 3];
    struct stkt_beton b;

    stkt_beton_begin(&b, 1, PAGE, COUNT, 13);
    stkt_beton_field(&b, 0, STKI_BETON_IMAGE, "image", 0, NULL, NULL);
    for (int i = 0; i < COUNT; i++) {
        const bool raw = with_raw && i == 9;
        uint16_t width = (uint16_t)(raw ? 4 : 8 + 5 * i), height = (uint16_t)(raw ? 4 : 70 - 3 * i);
        uint64_t pointer = raw ? stkt_beton_region(&b, i, pixels, sizeof pixels)
                               : stkt_beton_region(&b, i, images[i].data, (int64_t)images[i].size);
        unsigned char *row = stkt_beton_row(&b, i);

        row[0] = raw;
        memcpy(row + 1, &width, 2);
        memcpy(row + 3, &height, 2);
        memcpy(row + 5, &pointer, 8);
    }
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
}

/* Every sample must be delivered once, with the bytes of images[i] or, if `backwards`, of images[COUNT - 1 - i]. */
static void check_all(const char *path, const char *more, bool backwards)
{
    static const char *const ways[] = {"order: sequential, num_workers: 0", "order: random, num_workers: 2",
                                       "order: random, num_workers: 2, access: pread", "order: block, num_workers: 2"};

    for (int w = 0; w < 4; w++) {
        bool seen[COUNT] = {false};
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        stk_status status;

        assert_int_equal(
            stkt_open(&loader,
                      "dataset: {fields: {image: {path: %s, source: {decode: none%s}}}}\nloader: {batch_size: 5, %s}",
                      path, more, ways[w]),
            STK_OK);
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            stk_tensor values, t;
            const int64_t *offsets;

            assert_ok(stk_batch_tensor(batch, "image.values", &values, &err));
            assert_ok(stk_batch_tensor(batch, "image.offsets", &t, &err));
            assert_int_equal(values.dtype, STK_U8);
            assert_int_equal(values.ndim, 1);
            offsets = t.data;
            for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
                const int64_t sample = stk_batch_indices(batch)[r];
                const stkt_bytes *expected = &images[backwards ? COUNT - 1 - sample : sample];

                assert_int_equal(offsets[r + 1] - offsets[r], expected->size);
                assert_memory_equal((char *)values.data + offsets[r], expected->data, expected->size);
                seen[sample] = true;
            }
            stk_batch_release(batch);
        }
        if (status != STK_END)
            fail_msg("%s", err.message);
        for (int i = 0; i < COUNT; i++)
            assert_true(seen[i]);
        stk_loader_destroy(loader);
    }
}

static void test_folder(void **state)
{
    (void)state;
    write_folder("folder");
    check_all(stkt_path("folder"), "", false);
    check_all(stkt_path("folder.lst"), "", true);
    check_all(stkt_path("folder.lst"), ", max_bytes: 20KiB", true);
}

static void test_files(void **state)
{
    char list[4096] = "[";

    (void)state;
    write_folder("files");
    for (int i = 0; i < COUNT; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s/%02d.jpg", i ? ", " : "", stkt_path("files"),
                 i);
    check_all(strcat(list, "]"), "", false);
}

static void test_tar(void **state)
{
    (void)state;
    write_tar(stkt_path("a.tar"));
    check_all(stkt_path("a.tar"), ", name: jpg", false);
}

static void test_beton(void **state)
{
    (void)state;
    write_beton(stkt_path("a.beton"), false);
    check_all(stkt_path("a.beton"), "", false);
    check_all(stkt_path("a.beton"), ", max_bytes: 20KiB", false);
}

/* The contents of a file do not matter: it may be another image format, text, or empty. */
static void test_any_content(void **state)
{
    static const struct {
        const char *name, *bytes;
        int64_t size;
    } files[] = {{"any/0.jpg", "\x89PNG\r\n\x1a\n", 8}, {"any/1.png", "a text", 6}, {"any/2.jpeg", "", 0}};
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor values, offsets;
    stk_error err;

    (void)state;
    mkdir(stkt_path("any"), 0755);
    for (int i = 0; i < 3; i++)
        stkt_write_file(stkt_path(files[i].name), files[i].bytes, (size_t)files[i].size);
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {x: {path: %s, source: {decode: none, name: image}}}}\n"
                               "loader: {batch_size: 3}",
                               stkt_path("any")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x.values", &values, &err));
    assert_ok(stk_batch_tensor(batch, "x.offsets", &offsets, &err));
    assert_memory_equal(offsets.data, ((int64_t[]){0, 8, 14, 14}), 32);
    assert_memory_equal(values.data, "\x89PNG\r\n\x1a\na text", 14);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    /* a single file is recognized by its extension */
    assert_int_equal(stkt_open(&loader, "dataset: {fields: {x: {path: %s, source: {decode: none}}}}\nloader: {}",
                               stkt_path("any/1.png")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x.values", &values, &err));
    assert_memory_equal(values.data, "a text", 6);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Opens and reads everything. Returns the first error. */
static stk_status run(const char *path, const char *source, stk_error *err)
{
    char text[1024];
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;

    snprintf(text, sizeof text,
             "dataset: {fields: {image: {path: %s, source: {%s}}}}\nloader: {batch_size: 5, num_workers: 1}", path,
             source);
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
    static const char *const beside[] = {"color: gray", "orientation: upright", "on_warning: accept", "layout: nhwc"};
    char source[64];
    stk_error err;

    (void)state;
    write_folder("refused");
    write_tar(stkt_path("refused.tar"));
    write_beton(stkt_path("refused.beton"), false);
    for (int i = 0; i < 4; i++) {
        snprintf(source, sizeof source, "decode: none, %s", beside[i]);
        assert_status(run(stkt_path("refused"), source, &err), STK_E_CONFIG);
        assert_says("decode: none");
    }
    assert_status(run(stkt_path("refused"), "decode: none, max_bytes: 1000", &err), STK_E_LIMIT);
    assert_says("max_bytes");
    assert_status(run(stkt_path("refused.tar"), "decode: none, name: jpg, max_bytes: 1000", &err), STK_E_LIMIT);
    assert_says("max_bytes");
    assert_status(run(stkt_path("refused.beton"), "decode: none, max_bytes: 1000", &err), STK_E_LIMIT);
    assert_says("max_bytes");
    write_beton(stkt_path("mixed.beton"), true);
    assert_status(run(stkt_path("mixed.beton"), "decode: none", &err), STK_E_UNSUPPORTED);
    assert_says("raw RGB images");
}

static stk_status open_changing(stk_loader **out)
{
    return stkt_open(out,
                     "dataset: {fields: {image: {path: %s, source: {decode: none}}}}\n"
                     "loader: {batch_size: 1, num_workers: 0, prefetch: 1}",
                     stkt_path("changes"));
}

/* A file that grows or disappears between opening and reading causes an error that names it. */
static void test_a_file_that_changes(void **state)
{
    char path[256];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    write_folder("changes");
    assert_int_equal(open_changing(&loader), STK_OK);
    snprintf(path, sizeof path, "%s", stkt_path("changes/00.jpg"));
    stkt_append_file(path, "x", 1);
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
    assert_says("00.jpg");
    stk_loader_destroy(loader);
    assert_int_equal(open_changing(&loader), STK_OK);
    remove(path);
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_NOT_FOUND);
    assert_says("00.jpg");
    stk_loader_destroy(loader);
}

/* Reading a file in two ways gives two different data sets, so a position saved for one is rejected by the other. */
static void test_positions_of_the_two_ways_differ(void **state)
{
    char text[1024], saved[256];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    write_tar(stkt_path("state.tar"));
    snprintf(saved, sizeof saved, "%s", stkt_path("state"));
    assert_int_equal(stkt_open(&loader,
                               "dataset: {fields: {image: {path: %s, source: {decode: none, name: jpg}}}}\n"
                               "loader: {batch_size: 5}",
                               stkt_path("state.tar")),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    assert_ok(stk_loader_save_file(loader, saved, &err));
    stk_loader_destroy(loader);
    snprintf(text, sizeof text,
             "dataset: {fields: {image: {path: %s, source: {name: jpg}, transforms: [{resize: [8, 8]}]}}}\n"
             "loader: {batch_size: 5, resume_from: %s}",
             stkt_path("state.tar"), saved);
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_MISMATCH);
}

static void test_no_memory(void **state)
{
    static const char *const names[] = {"memory", "memory.tar", "memory.beton"};
    char path[256];
    stk_error err;

    (void)state;
    write_folder("memory");
    write_tar(stkt_path("memory.tar"));
    write_beton(stkt_path("memory.beton"), false);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s", stkt_path(names[i]));
        for (int n = 1;; n++) {
            stk_status status;

            memset(&err, 0, sizeof err);
            stki_memory_fail_at(n);
            status = run(path, i == 1 ? "decode: none, name: jpg" : "decode: none", &err);
            stki_memory_fail_at(0);
            if (status == STK_END && n > 100)
                break;
            if (status != STK_E_MEMORY && status != STK_END)
                fail_msg("%s: allocation %d: %s: %s", names[i], n, stk_status_name(status), err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_beton),
        cmocka_unit_test(test_any_content),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_a_file_that_changes),
        cmocka_unit_test(test_positions_of_the_two_ways_differ),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, make_images, free_images);
}
