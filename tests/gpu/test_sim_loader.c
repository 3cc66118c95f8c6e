/* stki-threads */
/* Loaders on the two GPUs of the simulated CUDA must deliver the same bytes as one without a device: each dtype,
 * converted by the workers and by the GPU, with each kind of stream that a consumer may use, with partial batches, and
 * with batches that are released while work on them is still queued. In one run the GPUs' streams are threads. In
 * another the GPUs run nothing until the program waits for it, so that reading or writing too early gives wrong
 * bytes. */
#include "clock.h"
#include "loader_test.h"
#include "sim_cuda.h"

/* Stored images are 13 x 18; resized ones are 10 x 12. */
enum { SAMPLES = 17, BATCH = 5, EPOCHS = 2, BATCHES = 2 * ((SAMPLES + BATCH - 1) / BATCH), ROW = 13 * 18 * 3 };

static stk_error err;

/* The kinds of streams that a program may have. */
enum kind { OWN, LEGACY, PER_THREAD, FOREIGN, FOREIGN_BLOCKING, NONE, KINDS };

typedef struct consumer {
    stk_device *device;
    stk_stream *stream;
    void *native; /* of FOREIGN streams */
    stk_loader *loader;
    stk_tensor seen[BATCHES];
} consumer;

static void open_stream(consumer *c, int gpu, enum kind kind)
{
    assert_ok(stk_device_find(gpu ? "cuda:1" : "cuda:0", &c->device, &err));
    c->stream = NULL;
    c->native = NULL;
    switch (kind) {
    case OWN:
        assert_ok(stk_stream_create(c->device, &c->stream, &err));
        break;
    case LEGACY:
        assert_ok(stk_stream_wrap(c->device, NULL, &c->stream, &err));
        break;
    case PER_THREAD:
        assert_ok(stk_stream_wrap(c->device, cudaStreamPerThread, &c->stream, &err));
        break;
    case FOREIGN:
    case FOREIGN_BLOCKING:
        c->native = sim_native_stream(gpu, kind == FOREIGN_BLOCKING);
        assert_ok(stk_stream_wrap(c->device, c->native, &c->stream, &err));
        break;
    default:
        break;
    }
}

static void close_consumer(consumer *c)
{
    stk_loader_destroy(c->loader);
    stk_stream_destroy(c->stream);
    if (c->native)
        sim_destroy_native_stream(c->native);
}

static const struct form {
    const char *dtype, *transforms;
    bool converts; /* the GPU can do more than copy */
} forms[] = {
    {"f32", "{\"normalize\": \"imagenet\"}", true},
    {"f16", "{\"normalize\": \"imagenet\"}", true},
    {"bf16", "{\"normalize\": \"imagenet\"}", true},
    {"u8", "", true}, /* the layout changes */
    {"i32", "", true},
    {"f32", "{\"random_resized_crop\": [10, 12]}, {\"random_horizontal_flip\": 0.5}, {\"normalize\": \"imagenet\"}",
     true},
    {"u8", "{\"resize\": [10, 12]}", true},
    {"f64", "", false},
    {"i64", "", false},
};

static stk_loader *open_loader(const struct form *form, const char *device, const char *more)
{
    stk_loader *loader = NULL;

    assert_ok(
        stkt_open(&loader,
                  "{dataset: {fields: {image: {synthetic: {count: %d, shape: [13, 18, 3], dtype: u8, distinct: %d},"
                  " source: {layout: nhwc}, layout: nchw, dtype: %s, transforms: [%s]},"
                  " label: {synthetic: {count: %d, shape: [], dtype: i64, distinct: %d}}}},"
                  " loader: {batch_size: %d, num_workers: 2, order: random, num_epochs: %d, device: %s,"
                  " last_batch: partial%s}}",
                  SAMPLES, SAMPLES, form->dtype, form->transforms, SAMPLES, SAMPLES, BATCH, EPOCHS, device, more));
    return loader;
}

/* Queues a copy of the batch to pinned memory after some other work, and releases the batch immediately. */
static void take_batch(consumer *c, int n)
{
    stk_batch *batch;
    stk_tensor image;

    assert_ok(stk_loader_next_on(c->loader, c->stream, STK_WAIT_FOREVER, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "image", &image, &err));
    assert_ok(stk_tensor_empty_pinned(image.dtype, image.ndim, image.shape, c->device, &c->seen[n], &err));
    if (c->stream)
        assert_ok(stk_stream_spin(c->stream, 200000, &err));
    assert_ok(stk_tensor_copy_on(&c->seen[n], &image, c->stream, true, &err));
    stk_batch_release_on(batch, c->stream);
}

static void compare_all(const struct form *form, const char *convert, enum kind kind)
{
    static unsigned char right[BATCHES][BATCH * ROW * 8];
    static const char *const after[] = {"", ", device_prefetch: 1", ", device_prefetch: 3"};
    char more[100];
    consumer c[SIM_GPUS] = {0};
    stk_loader *cpu = open_loader(form, "cpu", "");
    stk_batch *batch;

    snprintf(more, sizeof more, ", convert: %s%s", convert, after[(int)kind % 3]);
    for (int k = 0; k < SIM_GPUS; k++) {
        open_stream(&c[k], k, kind);
        c[k].loader = open_loader(form, k ? "cuda:1" : "cuda:0", more);
    }
    for (int i = 0; i < BATCHES; i++) {
        stk_tensor image;

        assert_ok(stk_loader_next(cpu, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &image, &err));
        memcpy(right[i], image.data, (size_t)stk_tensor_nbytes(&image));
        for (int k = 0; k < SIM_GPUS; k++)
            take_batch(&c[k], i);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_next(cpu, &batch, &err), STK_END);
    stk_loader_destroy(cpu);
    for (int k = 0; k < SIM_GPUS; k++) {
        assert_int_equal(stk_loader_next_on(c[k].loader, c[k].stream, STK_WAIT_FOREVER, &batch, &err), STK_END);
        assert_ok(stk_stream_synchronize(c[k].stream, STK_WAIT_FOREVER, &err));
        for (int i = 0; i < BATCHES; i++) {
            int64_t rows = i % (BATCHES / 2) == BATCHES / 2 - 1 ? SAMPLES % BATCH : BATCH;

            assert_int_equal(c[k].seen[i].shape[0], rows);
            if (memcmp(c[k].seen[i].data, right[i], (size_t)stk_tensor_nbytes(&c[k].seen[i])) != 0)
                fail_msg("%s, convert: %s, stream %d, GPU %d: batch %d differs", form->dtype, convert, kind, k, i);
            stk_tensor_release(&c[k].seen[i]);
        }
        close_consumer(&c[k]);
    }
}

static void the_same_bytes(enum sim_pace pace)
{
    sim_set_pace(pace);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int converts = 0; converts <= forms[i].converts; converts++)
            for (int kind = 0; kind < KINDS; kind++)
                compare_all(&forms[i], converts ? "device" : "host", (enum kind)kind);
}

static void gpus_whose_streams_are_threads(void **state)
{
    (void)state;
    the_same_bytes(SIM_THREADS);
}

static void gpus_that_run_as_late_as_possible(void **state)
{
    (void)state;
    the_same_bytes(SIM_LATE);
}

/* Both fields are copied together; if rows are missing, there is a gap between them. */
static void a_batch_is_one_copy(void **state)
{
    const int64_t before = sim_count().copies;
    stk_loader *loader;
    stk_batch *batch;

    (void)state;
    sim_set_pace(SIM_THREADS);
    loader = open_loader(&forms[0], "cuda:1", ", convert: host");
    for (int i = 0; i < BATCHES; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_END);
    stk_loader_destroy(loader);
    assert_int_equal(sim_count().copies - before, BATCHES + EPOCHS);
}

static void nothing_is_left(void **state)
{
    sim_counts now;

    (void)state;
    for (int k = 0; k < SIM_GPUS; k++) {
        stk_device *device;

        assert_ok(stk_device_find(k ? "cuda:1" : "cuda:0", &device, &err));
        assert_ok(stk_device_synchronize(device, &err));
        assert_ok(stk_device_empty_cache(device, &err));
    }
    now = sim_count();
    assert_int_equal(now.device_bytes, 0);
    assert_int_equal(now.pinned_bytes, 0);
    /* each context has one stream, for memory */
    assert_int_equal(now.streams, (now.contexts[0] > 0) + (now.contexts[1] > 0));
    assert_int_equal(now.events, 0);
    assert_true(now.kernels > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpus_whose_streams_are_threads),
                                       cmocka_unit_test(gpus_that_run_as_late_as_possible),
                                       cmocka_unit_test(a_batch_is_one_copy), cmocka_unit_test(nothing_is_left)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
