/* stki-threads */
/* A loader on the device named by STOKER_TEST_DEVICE must deliver the same bytes as one without a device, for dtypes
 * and sizes of images that have a kernel, resized images and decoded photographs, converted by the workers and by the
 * device, while the device is busy and batches are released immediately. scripts/gpu-bundle copies this test to a GPU
 * machine, on which STOKER_TEST_PHOTOS names the folder of photographs. */
#include "device_hold.h"
#include "loader_test.h"
#include <unistd.h>

enum { SAMPLES = 44, BATCH = 16, BATCHES = 3 };

static stk_error err;

static const struct form {
    const char *dtype, *transforms;
    int side, channels; /* of the images; 0: photographs */
} forms[] = {
    {"f32", "{normalize: imagenet}", 64, 3},
    {"f16", "{normalize: imagenet}", 37, 3},
    {"bf16", "{normalize: imagenet}", 83, 3},
    {"u8", "", 59, 3},
    {"f32", "{scale: 0.5}", 29, 4},
    {"i32", "", 21, 3},
    {"f32", "{random_resized_crop: 64}, {random_horizontal_flip: {p: 0.5}}, {normalize: imagenet}", 100, 3},
    {"f16", "{random_resized_crop: 75}, {random_horizontal_flip: {p: 0.5}}, {normalize: imagenet}", 0, 3},
};

static const char *photos(void)
{
    const char *folder = getenv("STOKER_TEST_PHOTOS");

    return folder && *folder ? folder : STKT_TESTS_DIR "/data/photos";
}

/* The source of the images. */
static void write_source(const struct form *form, char *text, size_t size)
{
    if (form->side > 0) {
        snprintf(text, size, "synthetic: {count: %d, shape: [%d, %d, %d], dtype: u8, distinct: %d}", SAMPLES,
                 form->side, form->side, form->channels, SAMPLES);
        return;
    }
    snprintf(text, size, "path: [");
    for (int i = 0; i < SAMPLES; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s\"%s/%s.jpg\"", i ? ", " : "", photos(),
                 i % 2 ? "flower" : "china");
    snprintf(text + strlen(text), size - strlen(text), "]");
}

static stk_loader *open_loader(const struct form *form, const char *device, const char *more)
{
    stk_loader *loader = NULL;
    char from[3000];

    write_source(form, from, sizeof from);
    assert_ok(stkt_open(
        &loader,
        "{dataset: {fields: {image: {%s, source: {layout: nhwc}, layout: nchw, dtype: %s, transforms: [%s]}}},"
        " loader: {batch_size: %d, num_workers: 2, order: random, num_epochs: 1, last_batch: partial, device: "
        "\"%s\"%s}}",
        from, form->dtype, form->transforms, BATCH, device, more));
    return loader;
}

static void compare(stk_device *device, const struct form *form, const char *convert)
{
    char more[64];
    stk_loader *cpu = open_loader(form, "cpu", ""), *there;
    stk_tensor seen[BATCHES];
    stk_batch *batch;
    stk_stream *stream;

    snprintf(more, sizeof more, ", convert: %s", convert);
    there = open_loader(form, stk_device_name(device), more);
    assert_ok(stk_stream_create(device, &stream, &err));
    for (int i = 0; i < BATCHES; i++) {
        stk_tensor image;

        assert_ok(stk_loader_next_on(there, stream, STK_WAIT_FOREVER, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &image, &err));
        assert_ok(stk_tensor_empty_pinned(image.dtype, image.ndim, image.shape, device, &seen[i], &err));
        assert_ok(stk_stream_spin(stream, 20000000, &err));
        assert_ok(stk_tensor_copy_on(&seen[i], &image, stream, true, &err));
        stk_batch_release_on(batch, stream);
    }
    assert_int_equal(stk_loader_next_on(there, stream, STK_WAIT_FOREVER, &batch, &err), STK_END);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    for (int i = 0; i < BATCHES; i++) {
        stk_tensor image;

        assert_ok(stk_loader_next(cpu, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &image, &err));
        assert_int_equal(stk_tensor_nbytes(&image), stk_tensor_nbytes(&seen[i]));
        if (memcmp(image.data, seen[i].data, (size_t)stk_tensor_nbytes(&image)) != 0)
            fail_msg("%s, %d pixels a side, convert: %s: batch %d differs", form->dtype, form->side, convert, i);
        stk_batch_release(batch);
        stk_tensor_release(&seen[i]);
    }
    stk_loader_destroy(there);
    stk_loader_destroy(cpu);
    stk_stream_destroy(stream);
}

static void the_bytes_of_a_loader_without_a_device(void **state)
{
    stk_device *device = stkt_device();

    (void)state;
    if (!device)
        exit(77);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].side == 0 && access(photos(), R_OK) != 0)
            continue;
        compare(device, &forms[i], "host");
        compare(device, &forms[i], "device");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_bytes_of_a_loader_without_a_device)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
