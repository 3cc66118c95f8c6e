/* stki-threads */
/* One reader of images is used by many threads at the same time, each with its own scratch memory. */
#include "container.h"
#include "format.h"
#include "image_folder.h"
#include "io_files.h"
#include "png_make.h"
#include "stk_test.h"
#include "thread.h"

enum { IMAGES = 12, THREADS = 6, ROUNDS = 20 };

static stki_reader *reader;
static uint8_t *expected[IMAGES];

static void make_images(void)
{
    assert_int_equal(mkdir(stkt_path("set"), 0755), 0);
    for (int i = 0; i < IMAGES; i++) {
        char name[32];
        stkt_bytes file = i % 3 ? stkt_jpeg_make(&(stkt_jpeg){.width = 20 + i, .height = 30 - i, .h = 2, .v = 2})
                                : stkt_png_make(&(stkt_png){.width = 20 + i, .height = 30 - i, .bits = 8, .type = 2});
        snprintf(name, sizeof name, "set/%02d.%s", i, i % 3 ? "jpg" : "png");
        if (i == 5)
            file.size -= 30; /* one image fails */
        stkt_write_file(stkt_path(name), file.data, file.size);
        free(file.data);
    }
}

static void keep(int64_t index, const stk_tensor *out)
{
    int64_t row = out->shape[1] * 3;

    expected[index] = malloc((size_t)(out->shape[0] * row));
    for (int64_t y = 0; y < out->shape[0]; y++)
        memcpy(expected[index] + y * row, (const uint8_t *)out->data + y * out->strides[0], (size_t)row);
}

static bool same(int64_t index, const stk_tensor *out)
{
    int64_t row = out->shape[1] * 3;

    if (out->shape[0] != 30 - index || out->shape[1] != 20 + index)
        return false;
    for (int64_t y = 0; y < out->shape[0]; y++)
        if (memcmp(expected[index] + y * row, (const uint8_t *)out->data + y * out->strides[0], (size_t)row) != 0)
            return false;
    return true;
}

static void read_all(void *context)
{
    int64_t *wrong = context, first = *wrong;
    stki_scratch scratch;

    *wrong = 0;
    stki_scratch_init(&scratch);
    for (int64_t n = 0; n < IMAGES * ROUNDS; n++) {
        int64_t i = (first + n * 5) % IMAGES, shape[3];
        stk_tensor out;
        stk_error err;

        reader->ops->will_need(reader, &i, 1);
        *wrong += reader->ops->shape(reader, i, shape, &err) != STK_OK || shape[0] != 30 - i;
        if (reader->ops->read(reader, i, NULL, &scratch, &out, &err) != STK_OK) {
            *wrong += i != 5 || err.status != STK_E_TRUNCATED || err.record != 5;
            continue;
        }
        *wrong += !same(i, &out);
        stki_reader_done(reader, &out);
    }
    stki_scratch_fini(&scratch);
}

static void test_many_threads(void **state)
{
    stki_thread *threads[THREADS];
    int64_t wrong[THREADS], member;
    stki_reader_opts opts = {.name = "image"};
    stki_container *container;
    stki_scratch scratch;
    stk_error err;

    (void)state;
    make_images();
    assert_ok(stki_container_open(stkt_path("set"), &opts, &container, &err));
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < IMAGES; i++) {
        stk_tensor out;
        if (i == 5)
            continue;
        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &out, &err));
        keep(i, &out);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader); /* with its cache of sizes */
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    stki_container_release(container);
    for (int t = 0; t < THREADS; t++) {
        wrong[t] = t;
        assert_ok(stki_thread_start(&threads[t], "reads images", read_all, &wrong[t], &err));
    }
    for (int t = 0; t < THREADS; t++)
        assert_true(stki_thread_join(threads[t], INT64_MAX));
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(wrong[t], 0);
    stki_reader_destroy(reader);
    for (int i = 0; i < IMAGES; i++)
        free(expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_threads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
