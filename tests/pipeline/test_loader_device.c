/* stki-threads */
/* Loaders that deliver on a device must give the same bytes, ends of data and errors as loaders that do not, wherever
 * data is converted and however many batches are on the device. The device is the host device, or the test device whose
 * memory the processor cannot access. */
#include "clock.h"
#include "convert_choice.h"
#include "device_table.h"
#include "faults.h"
#include "faulty.h"
#include "feed.h"
#include "host_faults.h"
#include "loader_test.h"
#include "test_device.h"
#include <dlpack/dlpack.h>
#include <stdatomic.h>

static stk_device *host_device(void)
{
    stk_device *device;
    stk_error err;

    assert_ok(stk_device_find("host", &device, &err));
    return device;
}

/* ---- the same bytes ---- */

/* Samples of every kind of dtype and layout, with every kind of transform; %s is replaced by further transforms. */
static const struct {
    const char *name, *field;
    bool converts; /* the device can do some of the conversion */
} fields[] = {
    {"bytes as they are", "{synthetic: {count: 23, shape: [5, 4, 3], dtype: u8, distinct: 23}}", false},
    {"labels", "{synthetic: {count: 23, shape: [], dtype: i64, distinct: 23}}", false},
    {"f32 planes",
     "{synthetic: {count: 23, shape: [6, 5, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "transforms: [{normalize: imagenet}]}",
     true},
    {"f16 planes",
     "{synthetic: {count: 23, shape: [6, 5, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "dtype: f16, transforms: [{scale: unit}]}",
     true},
    {"bf16 pixels",
     "{synthetic: {count: 23, shape: [3, 6, 5], dtype: u8, distinct: 23}, source: {layout: nchw}, layout: nhwc, "
     "dtype: bf16, transforms: [{normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.1], scale: unit}}]}",
     true},
    {"channels last",
     "{synthetic: {count: 23, shape: [3, 6, 5], dtype: u8, distinct: 23}, source: {layout: nchw}, layout: "
     "channels_last}",
     true},
    {"planes moved only",
     "{synthetic: {count: 23, shape: [6, 5, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw}", true},
    {"a crop",
     "{synthetic: {count: 23, shape: [9, 8, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "transforms: [{crop: {top: 2, left: 1, height: 5, width: 6}}, {normalize: imagenet}]}",
     true},
    {"a crop alone",
     "{synthetic: {count: 23, shape: [9, 8, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, "
     "transforms: [{center_crop: 4}]}",
     false},
    {"random crops with padding, flips and turns",
     "{synthetic: {count: 23, shape: [8, 8, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "transforms: [{random_crop: {size: 6, padding: 2}}, {random_horizontal_flip: {p: 0.5}}, {random_rotate: {angles: "
     "[0, 90, 180, 270]}}, "
     "{normalize: imagenet}]}",
     true},
    {"random crops of planes, moved only",
     "{synthetic: {count: 23, shape: [3, 8, 9], dtype: i16, distinct: 23}, source: {layout: nchw}, layout: nhwc, "
     "transforms: [{random_crop: 5}, {random_vertical_flip: {p: 0.5}}]}",
     true},
    {"padding alone",
     "{synthetic: {count: 23, shape: [5, 6, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, transforms: [{pad: "
     "2}]}",
     false},
    {"resized to planes",
     "{synthetic: {count: 23, shape: [17, 14, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "transforms: [{resize: [6, 5]}, {normalize: imagenet}]}",
     true},
    {"resized pixels, moved only",
     "{synthetic: {count: 23, shape: [17, 14, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "transforms: [{resize: [6, 5]}]}",
     true},
    {"resized alone",
     "{synthetic: {count: 23, shape: [17, 14, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, transforms: "
     "[{resize: [6, 5]}]}",
     false},
    {"random resized crops, flips and turns",
     "{synthetic: {count: 23, shape: [40, 30, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: nchw, "
     "dtype: f16, transforms: [{random_resized_crop: 24}, {random_horizontal_flip: {p: 0.5}}, {random_rotate: "
     "{angles: [0, 90, 180, 270]}}, {scale: unit}]}",
     true},
    {"resized and padded",
     "{synthetic: {count: 23, shape: [17, 14, 3], dtype: u8, distinct: 23}, source: {layout: nhwc}, layout: "
     "channels_last, transforms: [{resize: [6, 9]}, {pad: {padding: 2, fill: 7}}, {quantize: {scale: 0.5, zero_point: "
     "-3}}]}",
     true},
    {"int8",
     "{synthetic: {count: 23, shape: [40], dtype: f32, distinct: 23}, transforms: [{quantize: {scale: 0.01, "
     "zero_point: 3}}]}",
     true},
    {"int32 by channel",
     "{synthetic: {count: 23, shape: [6, 5, 3], dtype: i16, distinct: 23}, source: {layout: nhwc}, transforms: "
     "[{scale: 0.5}, {quantize: {scale: [0.1, 0.2, 0.3], dtype: int32}}]}",
     true},
    {"a cast", "{synthetic: {count: 23, shape: [7], dtype: u16, distinct: 23}, dtype: i64}", true},
    {"a cast of doubles", "{synthetic: {count: 23, shape: [7, 2], dtype: f64, distinct: 23}, dtype: f32}", true},
    {"of different lengths", "{synthetic: {count: 23, shape: [9, 2], min_length: 0, dtype: i32, distinct: 23}}", false},
    {"padded to the longest",
     "{synthetic: {count: 23, shape: [9, 2], min_length: 0, dtype: i32, distinct: 23}, pad: batch, views: {head: [0, "
     "3]}}",
     false},
    {"padded to a length",
     "{synthetic: {count: 23, shape: [9], min_length: 0, dtype: u16, distinct: 23}, pad: {to: 12, value: 7}, views: "
     "{head: [0, 3]}}",
     false},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

#define LOADER                                                                                        \
    "{dataset: {fields: {x: %s, y: {synthetic: {count: 23, shape: [], dtype: i32, distinct: 23}}}}, " \
    "loader: {batch_size: 5, order: random, seed: 7, num_epochs: 2, last_batch: %s, num_workers: %d, %s}}"

/* Copies a tensor to readable memory. */
static void fetch(const stk_tensor *tensor, stk_stream *stream, stk_tensor *out)
{
    const stk_device *device = tensor->device;
    int64_t bytes = stk_tensor_nbytes(tensor);
    stk_error err;

    *out = *tensor;
    out->device = stk_device_cpu();
    if (!bytes)
        return;
    out->data = malloc((size_t)bytes);
    assert_non_null(out->data);
    assert_ok(device->ops->copy(tensor->device, out->data, false, tensor->data, true, bytes, stream, &err));
}

/* A batch on the device must equal one of a loader without a device. */
static void compare_batches(const stk_batch *there, const stk_batch *here, const char *name, stk_stream *stream)
{
    stk_tensor a, b, copy;
    stk_error err;

    assert_ok(stk_batch_tensor(there, name, &a, &err));
    assert_ok(stk_batch_tensor(here, name, &b, &err));
    assert_int_equal(a.dtype, b.dtype);
    assert_int_equal(a.ndim, b.ndim);
    for (int i = 0; i < a.ndim; i++) {
        assert_int_equal(a.shape[i], b.shape[i]);
        assert_int_equal(a.strides[i], b.strides[i]);
    }
    fetch(&a, stream, &copy);
    if (stream)
        assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    if (stk_tensor_nbytes(&b) == 0)
        return;
    assert_memory_equal(copy.data, b.data, (size_t)stk_tensor_nbytes(&b));
    free(copy.data);
}

static void compare_facts(const stk_batch *there, const stk_batch *here)
{
    int64_t rows = stk_batch_rows(here);

    assert_int_equal(stk_batch_rows(there), rows);
    assert_int_equal(stk_batch_valid_rows(there), stk_batch_valid_rows(here));
    assert_int_equal(stk_batch_epoch(there), stk_batch_epoch(here));
    assert_int_equal(stk_batch_step(there), stk_batch_step(here));
    assert_int_equal(stk_batch_global_step(there), stk_batch_global_step(here));
    assert_int_equal(stk_batch_last_of_epoch(there), stk_batch_last_of_epoch(here));
    assert_memory_equal(stk_batch_indices(there), stk_batch_indices(here), (size_t)rows * sizeof(int64_t));
    assert_memory_equal(stk_batch_mask(there), stk_batch_mask(here), (size_t)rows);
    assert_int_equal(stk_batch_device_slot(here), -1);
    assert_true(stk_batch_device_slot(there) >= 0);
}

static void compare_loaders(stk_loader *there, stk_loader *here, bool varies, bool padded, stk_stream *stream)
{
    stk_batch *a, *b;
    stk_error err;
    stk_status status;

    while ((status = stk_loader_next(here, &b, &err)) == STK_OK) {
        assert_ok(stk_loader_next_on(there, stream, 60 * STKI_SECOND, &a, &err));
        compare_facts(a, b);
        compare_batches(a, b, "y", stream);
        compare_batches(a, b, varies ? "x.values" : "x", stream);
        if (varies)
            compare_batches(a, b, "x.offsets", stream);
        if (padded) {
            compare_batches(a, b, "x.mask", stream);
            compare_batches(a, b, "x.lengths", stream);
            compare_batches(a, b, "head", stream);
        }
        stk_batch_release(b);
        stk_batch_release_on(a, stream);
    }
    assert_int_equal(status, STK_END);
    assert_int_equal(stk_loader_next_on(there, stream, 60 * STKI_SECOND, &a, &err), STK_END);
}

static void compare_infos(const stk_loader *there, const stk_loader *here)
{
    for (int i = 0; i < 2; i++) {
        stk_field_info a, b;
        stk_error err;

        assert_ok(stk_loader_field(there, i, &a, &err));
        assert_ok(stk_loader_field(here, i, &b, &err));
        assert_int_equal(a.dtype, b.dtype);
        assert_int_equal(a.source_dtype, b.source_dtype);
        assert_string_equal(a.layout, b.layout);
        assert_int_equal(a.ndim, b.ndim);
        assert_memory_equal(a.shape, b.shape, (size_t)a.ndim * sizeof a.shape[0]);
    }
}

static void compare(int field, const char *last, const char *device, int depth, const char *convert, int workers,
                    bool by_stream)
{
    bool varies = strstr(fields[field].field, "min_length") != NULL;
    bool padded = strstr(fields[field].field, "views") != NULL;
    stk_stream *stream = NULL;
    stk_device *found;
    stk_loader *there, *here;
    stk_field_info info;
    char options[128];
    stk_error err;

    snprintf(options, sizeof options, "device: %s, device_prefetch: %d, convert: %s, prefetch: %d", device, depth,
             convert, 1 + field % 3);
    assert_ok(stkt_open(&here, LOADER, fields[field].field, last, 1, "prefetch: 2"));
    assert_ok(stkt_open(&there, LOADER, fields[field].field, last, workers, options));
    if (by_stream) {
        assert_ok(stk_device_find(device, &found, &err));
        assert_ok(stk_stream_create(found, &stream, &err));
    }
    assert_ok(stk_loader_field(there, 0, &info, &err));
    assert_int_equal(strncmp(info.kernel, device, strlen(device)) == 0,
                     fields[field].converts && strcmp(convert, "device") == 0);
    compare_infos(there, here);
    compare_loaders(there, here, varies && !padded, padded, stream);
    stk_loader_destroy(there);
    stk_loader_destroy(here);
    stk_stream_destroy(stream);
}

static void every_way_gives_the_same_bytes(void **state)
{
    static const char *const lasts[] = {"partial", "pad", "drop"};

    (void)state;
    for (int field = 0; field < FIELDS; field++)
        for (int depth = 1; depth <= 3; depth++)
            for (int device = 0; device < 2; device++) {
                bool varies = strstr(fields[field].field, "min_length") != NULL;
                int last = (field + depth) % 3;

                compare(field, lasts[last], "host", depth, device && !varies ? "device" : "host",
                        depth == 2 ? 0 : depth, depth != 3);
            }
}

/* The test device's memory can be accessed only through its device table. */
static void nothing_touches_the_devices_memory(void **state)
{
    (void)state;
    for (int field = 0; field < FIELDS; field++)
        for (int device = 0; device < 2; device++) {
            bool varies = strstr(fields[field].field, "min_length") != NULL;

            compare(field, "partial", "test", 2, device && !varies ? "device" : "host", 2, true);
        }
}

/* Rows that workers make from two samples (with the partner's label and share), rows with changed colors, and erased
 * boxes. `auto` leaves all of this to the workers. */
static void mixed_and_made_rows_are_the_same_there(void **state)
{
    (void)state;
    for (int depth = 1; depth < 4; depth++) {
        static const char *const names[] = {"x", "y", "y_mix", "mix_lambda"}, *const devices[] = {
                                                                                  "cpu", "host, device_prefetch: 1",
                                                                                  "host, device_prefetch: 2",
                                                                                  "host, device_prefetch: 3"};
        stk_loader *loaders[2];
        stk_batch *there, *here;
        stk_error err;
        stk_status status;

        for (int i = 0; i < 2; i++)
            assert_ok(stkt_open(&loaders[i],
                                "{dataset: {fields: {x: {synthetic: {count: 23, shape: [8, 9, 3], dtype: u8, distinct: "
                                "23}, source: {layout: nhwc}, layout: nchw, transforms: [{color_jitter: {brightness: "
                                "0.4}}, {normalize: imagenet}, {random_erasing: 0.5}, {mixup: {labels: y}}]}, y: "
                                "{synthetic: {count: 23, shape: [], dtype: u8, distinct: 5}}}}, "
                                "loader: {batch_size: 5, order: random, seed: 3, device: %s}}",
                                i ? devices[depth] : "cpu"));
        while ((status = stk_loader_next(loaders[0], &here, &err)) == STK_OK) {
            assert_ok(stk_loader_next(loaders[1], &there, &err));
            for (int i = 0; i < 4; i++)
                compare_batches(there, here, names[i], NULL);
            stk_batch_release(here);
            stk_batch_release(there);
        }
        assert_int_equal(status, STK_END);
        stk_loader_destroy(loaders[0]);
        stk_loader_destroy(loaders[1]);
    }
}

/* JPEG files of two shapes: the workers decode and resize to u8, and the device does the rest. */
static void decoded_images_are_the_same_there(void **state)
{
    static const char *const forms[] = {
        ("layout: nchw, transforms: [{random_resized_crop: 24}, {random_horizontal_flip: {p: 0.5}}, "
         "{normalize: imagenet}]"),
        "layout: nhwc, dtype: bf16, transforms: [{center_crop: 20}, {scale: unit}]",
        "transforms: [{resize: [20, 22]}]",
    };

    (void)state;
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
        for (int way = 0; way < 3; way++) {
            static const char *const devices[] = {"host, convert: device", "test, convert: device",
                                                  "host, convert: auto"};
            stk_loader *loaders[2];
            stk_batch *there, *here;
            stk_field_info info;
            stk_error err;
            stk_status status;

            for (int i = 0; i < 2; i++)
                assert_ok(stkt_open(&loaders[i],
                                    "{dataset: {fields: {x: {path: " STKT_TESTS_DIR
                                    "/data/photos, source: {name: image}, %s}}}, loader: {batch_size: 2, order: "
                                    "random, seed: 4, num_epochs: "
                                    "4, device: %s}}",
                                    forms[form], i ? devices[way] : "cpu"));
            assert_ok(stk_loader_field(loaders[1], 0, &info, &err));
            if (way < 2)
                assert_int_equal(strstr(info.kernel, "u8>") == info.kernel + strlen(way ? "test " : "host "), form < 2);
            while ((status = stk_loader_next(loaders[0], &here, &err)) == STK_OK) {
                assert_ok(stk_loader_next(loaders[1], &there, &err));
                compare_batches(there, here, "x", NULL);
                stk_batch_release(here);
                stk_batch_release(there);
            }
            assert_int_equal(status, STK_END);
            stk_loader_destroy(loaders[0]);
            stk_loader_destroy(loaders[1]);
        }
}

/* A rank that has no rows in the last step gets an empty batch, with and without a device. */
static void batches_without_rows_are_delivered(void **state)
{
    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        stk_loader *there, *here;
        char text[512];

        for (int i = 0; i < 2; i++) {
            snprintf(
                text, sizeof text,
                "{dataset: {fields: {x: {synthetic: {count: 9, shape: [3], min_length: 0, dtype: u8, distinct: 9}}, "
                "y: {synthetic: {count: 9, shape: [], dtype: i32, distinct: 9}}}}, loader: {global_batch_size: 4, "
                "rank: %d, world_size: 4, device: %s}}",
                rank, i ? "host" : "cpu");
            assert_int_equal(stk_loader_open_text(text, NULL, NULL, 0, i ? &there : &here, NULL), STK_OK);
        }
        compare_loaders(there, here, true, false, NULL);
        stk_loader_destroy(there);
        stk_loader_destroy(here);
    }
}

/* ---- ends and errors ---- */

#define COUNTED                                                                                                     \
    "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6], dtype: u8, distinct: 40}}, y: {synthetic: {count: " \
    "40, shape: [], dtype: i64, distinct: 40}}}}, "                                                                 \
    "loader: {batch_size: 8, num_workers: %d, device: host, %s}}"

/* Row P04 (read): the batches before the bad one are delivered, and then every call returns the error, never the
 * end. */
static void p04_a_failed_read_is_an_error_on_a_device_too(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 2; workers++)
        for (int64_t bad = 0; bad < 40; bad += 13) {
            stkt_fault fault = {.field = "x",
                                .opts = {.fail_at = bad, .status = STK_E_IO, .fail_from_read = -1, .slow_at = -1}};
            stk_loader *loader;
            stk_batch *batch;
            stk_error err, again;
            stk_status status;
            int64_t batches = 0;

            assert_ok(stkt_open_faulty(&loader, &fault, false, &err, COUNTED, workers, "timeout: 60s"));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                batches++;
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_E_IO);
            assert_int_equal(batches, bad / 8);
            assert_int_equal(err.record, bad);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(stk_loader_next(loader, &batch, &again), STK_E_IO);
                assert_string_equal(again.message, err.message);
            }
            assert_ok(stk_loader_close(loader, &err));
            stk_loader_destroy(loader);
        }
}

/* Row P04 (copy): the n-th operation of the device fails. */
static void p04_a_failed_copy_is_an_error(void **state)
{
    (void)state;
    for (int64_t bad = 2; bad <= 11; bad++) {
        stk_stream *stream = NULL;
        stk_loader *loader;
        stk_batch *batch;
        stk_error err, again;
        stk_status status;
        int64_t batches = 0;

        if (bad % 2)
            assert_ok(stk_stream_create(host_device(), &stream, &err));
        stkt_host_set_faults(host_device(), NULL, &(stkt_host_faults){.fail_at = bad / 2, .delay_ns = 200000});
        assert_ok(stkt_open(&loader, COUNTED, 1, "timeout: 60s"));
        while ((status = stk_loader_next_on(loader, stream, 60 * STKI_SECOND, &batch, &err)) == STK_OK) {
            batches++;
            stk_batch_release_on(batch, stream);
        }
        stkt_host_set_faults(host_device(), NULL, NULL);
        assert_int_equal(status, STK_E_DEVICE);
        assert_true(stream ? batches <= 5 : batches == bad / 2 - 1);
        stk_stream_destroy(stream);
        assert_int_equal(stk_loader_next(loader, &batch, &again), STK_E_DEVICE);
        assert_string_equal(again.message, err.message);
        assert_ok(stk_loader_close(loader, &err));
        stk_loader_destroy(loader);
    }
}

/* Row G07: the third batch of ten records has two rows, with and without a device. */
static void g07_a_partial_batch_has_only_its_rows(void **state)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor tensor;
    stk_error err;

    (void)state;
    assert_ok(stkt_open(&loader, "{dataset: {fields: {x: {synthetic: {count: 10, shape: [100], dtype: u8}}}}, loader: "
                                 "{batch_size: 4, device: host, device_prefetch: 1}}"));
    for (int i = 0; i < 3; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "x", &tensor, &err));
        assert_int_equal(tensor.shape[0], i < 2 ? 4 : 2);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_END);
    assert_ok(stk_loader_close(loader, &err)); /* the last copy has finished */
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.device_bytes, 1000);
    assert_int_equal(stats.batch_bytes, 1000);
    assert_int_equal(stats.device_batches, 3);
    assert_int_equal(stats.device_slots, 1);
    assert_true(stats.device_copy_ns > 0);
    assert_true(stats.device_exposed_ns <= stats.device_copy_ns + stats.device_convert_ns);
    assert_int_equal(stats.device_slot_bytes, 400);
    stk_loader_destroy(loader);
}

static void timeouts_name_what_is_held_or_slow(void **state)
{
    stkt_fault fault = {.field = "x",
                        .opts = {.fail_at = -1, .fail_from_read = -1, .slow_at = 0, .slow_ns = INT64_MAX}};
    stk_loader *loader;
    stk_batch *held[2], *batch;
    stk_error err;

    (void)state;
    assert_ok(stkt_open(&loader, COUNTED, 1, "device_prefetch: 2, timeout: 60s"));
    assert_ok(stk_loader_next(loader, &held[0], &err));
    assert_ok(stk_loader_next(loader, &held[1], &err));
    assert_status(stk_loader_next_timeout(loader, 10000000, &batch, &err), STK_E_TIMEOUT);
    assert_says("loader.device_prefetch");
    stk_batch_release(held[1]);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_step(batch), 2);
    stk_batch_release(batch);
    stk_batch_release(held[0]);
    stk_loader_destroy(loader);

    assert_ok(stkt_open_faulty(&loader, &fault, false, &err, COUNTED, 1, "timeout: 60s"));
    do /* reading may not have started yet */
        assert_status(stk_loader_next_timeout(loader, 10000000, &batch, &err), STK_E_TIMEOUT);
    while (!strstr(err.message, "worker 0"));
    stki_faulty_wake(fault.made);
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Row P06: a reader hangs in a worker, or in the copying thread if there are no workers. Closing must return anyway,
 * and its error says which thread is stuck in which file. The thread's memory is freed when it returns. */
static void p06_closing_does_not_wait_for_a_stuck_reader(void **state)
{
    (void)state;
    for (int workers = 0; workers < 2; workers++) {
        stkt_fault fault = {.field = "x",
                            .opts = {.fail_at = -1, .fail_from_read = -1, .slow_at = 0, .slow_ns = INT64_MAX}};
        stki_memory_stats before;
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        stki_memory_read(STKI_MEM_HOST, &before);
        assert_ok(stkt_open_faulty(&loader, &fault, false, &err, COUNTED, workers, "close_timeout: 50ms"));
        do /* until the thread is reading */
            assert_status(stk_loader_next_timeout(loader, 20000000, &batch, &err), STK_E_TIMEOUT);
        while (!strstr(err.message, "reading"));
        assert_status(stk_loader_close(loader, &err), STK_E_TIMEOUT);
        assert_says("abandoned");
        assert_says("reading");
        stk_loader_destroy(loader);
        stki_faulty_wake(fault.made); /* the threads return and free their memory */
        stkt_wait_for_blocks(before.blocks);
    }
}

/* ---- leases ---- */

/* A batch and an export of it remain valid after the loader is closed and destroyed. */
static void held_batches_outlive_the_loader(void **state)
{
    (void)state;
    for (int taken = 0; taken < 4; taken++)
        for (int workers = 0; workers < 3; workers++) {
            stk_loader *loader;
            stk_batch *batch, *other;
            DLManagedTensor *managed = NULL;
            stk_tensor tensor;
            uint8_t before[48];
            stk_error err;

            assert_ok(stkt_open(&loader, COUNTED, workers, "num_epochs: 0, timeout: 60s"));
            for (int i = 0; i < taken; i++) {
                assert_ok(stk_loader_next(loader, &other, &err));
                stk_batch_release(other);
            }
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "x", &tensor, &err));
            memcpy(before, tensor.data, sizeof before);
            assert_ok(stk_batch_dlpack(batch, "x", &managed, &err));
            assert_ok(stk_loader_close(loader, &err));
            assert_int_equal(stk_loader_next(loader, &other, &err), STK_E_CLOSED);
            stk_loader_destroy(loader);
            assert_memory_equal(tensor.data, before, sizeof before);
            stk_batch_release(batch);
            assert_memory_equal(managed->dl_tensor.data, before, sizeof before);
            /* the host device's memory is CPU memory */
            assert_int_equal(managed->dl_tensor.device.device_type, kDLCPU);
            managed->deleter(managed);
        }
}

/* The export of a batch on a device other than the CPU has that device's type. */
static void exports_name_their_device(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    DLManagedTensor *managed;
    stk_error err;

    (void)state;
    assert_ok(stkt_open(&loader, "{dataset: {fields: {x: {synthetic: {count: 4, shape: [3], dtype: f32}}}}, loader: "
                                 "{batch_size: 4, device: test}}"));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_dlpack(batch, "x", &managed, &err));
    assert_int_equal(managed->dl_tensor.device.device_type, (int)STK_DEVICE_TEST);
    assert_int_equal(managed->dl_tensor.device.device_id, 0);
    managed->deleter(managed);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Row G03: an export is deleted and its batch released while the consumer's stream still reads. */
static void slots_wait_for_release_and_export(void **state)
{
    const stki_device_ops *ops = host_device()->ops;
    static uint8_t got[10][48], label[10][64];
    stk_stream *stream, *other;
    stk_loader *loader, *plain;
    stk_batch *batch;
    stk_tensor x, y;
    stk_error err;

    (void)state;
    assert_ok(stk_stream_create(host_device(), &stream, &err));
    assert_ok(stk_stream_create(host_device(), &other, &err));
    stkt_host_set_faults(host_device(), stream, &(stkt_host_faults){.delay_ns = 2000000});
    stkt_host_set_faults(host_device(), other, &(stkt_host_faults){.delay_ns = 1000000});
    assert_ok(stkt_open(&loader, COUNTED, 2, "num_epochs: 2, device_prefetch: 2, timeout: 60s"));
    for (int i = 0; i < 10; i++) {
        DLManagedTensor *managed;
        stk_event *event;

        assert_ok(stk_loader_next_on(loader, stream, 60 * STKI_SECOND, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "y", &y, &err));
        assert_ok(stk_batch_dlpack(batch, "x", &managed, &err));
        assert_ok(stk_event_create(host_device(), false, &event, &err));
        assert_ok(stk_event_record(event, stream, &err));
        assert_ok(stk_stream_wait(other, event, &err));
        assert_ok(ops->copy(host_device(), label[i], false, y.data, true, 64, other, &err));
        assert_ok(ops->copy(host_device(), got[i], false, managed->dl_tensor.data, true, 48, stream, &err));
        stk_batch_release_on(batch, other);
        managed->deleter(managed);
        stk_event_destroy(event);
    }
    assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    assert_ok(stk_stream_synchronize(other, 60 * STKI_SECOND, &err));
    stk_loader_destroy(loader);
    assert_ok(stkt_open(&plain, "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6], dtype: u8, distinct: 40}}, "
                                "y: {synthetic: {count: 40, shape: [], dtype: i64, distinct: 40}}}}, loader: "
                                "{batch_size: 8, num_epochs: 2}}"));
    for (int i = 0; i < 10; i++) {
        assert_ok(stk_loader_next(plain, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "x", &x, &err));
        assert_ok(stk_batch_tensor(batch, "y", &y, &err));
        assert_memory_equal(got[i], x.data, 48);
        assert_memory_equal(label[i], y.data, 64);
        stk_batch_release(batch);
    }
    stk_loader_destroy(plain);
    stk_stream_destroy(stream);
    stk_stream_destroy(other);
}

/* A stream's handle is freed when it is destroyed (AddressSanitizer detects a later use). The event for a deleter that
 * runs later is not freed, so the slot is not filled before the blocked copy ends. */
static void a_deleter_may_outlive_the_stream(void **state)
{
    const stki_device_ops *ops = host_device()->ops;
    struct DLManagedTensor *exported;
    stk_stream *stream;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;
    uint8_t got[48], expected[48];
    stk_error err;

    (void)state;
    assert_ok(stk_stream_create(host_device(), &stream, &err));
    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {synthetic: {count: 40, shape: [6], dtype: u8, distinct: 40}}}},"
                        " loader: {batch_size: 8, device: host, device_prefetch: 1}}"));
    assert_ok(stk_loader_next_on(loader, stream, 60 * STKI_SECOND, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    memcpy(expected, x.data, sizeof expected);
    stkt_host_set_faults(host_device(), stream, &(stkt_host_faults){.delay_ns = 50000000});
    assert_ok(ops->copy(host_device(), got, false, x.data, true, sizeof got, stream, &err));
    assert_ok(stk_batch_dlpack(batch, "x", &exported, &err));
    stk_batch_release(batch);
    stk_stream_destroy(stream);
    exported->deleter(exported);
    assert_ok(stk_loader_next_on(loader, NULL, 60 * STKI_SECOND, &batch, &err));
    assert_memory_equal(got, expected, sizeof got);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* A slot from which a stream is still copying is filled only after the copy has finished. Meanwhile, next times out,
 * and the loader can be closed. With a second slot, a loader without workers uses that one. */
static void copy_from_slots(int workers, int prefetch)
{
    const stki_device_ops *ops = host_device()->ops;
    stk_stream *stream;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;
    uint8_t got[48], expected[48];
    stk_error err;

    assert_ok(stk_stream_create(host_device(), &stream, &err));
    stkt_host_set_faults(host_device(), stream, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {synthetic: {count: 80, shape: [6], dtype: u8}}}}, loader: "
                        "{batch_size: 8, prefetch: %d, num_workers: %d, close_timeout: 30s}}",
                        prefetch, workers));
    assert_ok(stk_loader_next_on(loader, stream, 60 * STKI_SECOND, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
    memcpy(expected, x.data, sizeof expected);
    assert_ok(ops->copy(host_device(), got, true, x.data, false, sizeof got, stream, &err));
    stk_batch_release_on(batch, stream);
    assert_int_equal(stk_stream_query(stream, &err), STK_AGAIN);
    for (int step = 1; step < 5 && prefetch > 1; step++) {
        assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
        stk_batch_release(batch);
    }
    if (prefetch == 1)
        assert_status(stk_loader_next_timeout(loader, 50 * STKI_SECOND / 1000, &batch, &err), STK_E_TIMEOUT);
    if (prefetch == 1 && workers < 2) {
        stkt_host_set_faults(host_device(), stream, NULL);
        assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
        stk_batch_release(batch);
    }
    assert_ok(stk_loader_close(loader, &err)); /* no worker is stuck */
    stkt_host_set_faults(host_device(), stream, NULL);
    stk_loader_destroy(loader);
    assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    assert_memory_equal(got, expected, sizeof got);
    stk_stream_destroy(stream);
}

/* Without a device, the functions with streams work like those without. Releasing a batch does not wait for the stream,
 * but filling its slot again does. */
static void streams_without_a_device(void **state)
{
    (void)state;
    copy_from_slots(0, 1);
    copy_from_slots(1, 1);
    copy_from_slots(2, 1); /* closed while a worker waits for the stream */
    copy_from_slots(0, 2);
}

/* Row G05, as far as possible without two GPUs: loaders for two devices in one process, used alternately, each with its
 * own streams. */
static void g05_two_devices_do_not_interfere(void **state)
{
    static const char *const names[] = {"host:1", "host:2"};
    stk_device *devices[2];
    stk_stream *streams[2];
    stk_loader *loaders[2];
    stk_batch *batch;
    stk_tensor label;
    stk_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_ok(stk_device_find(names[i], &devices[i], &err));
        assert_ok(stk_stream_create(devices[i], &streams[i], &err));
        assert_ok(stkt_open(&loaders[i],
                            "{dataset: {fields: {y: {synthetic: {count: 40, shape: [], dtype: i64, distinct: 40}}}}, "
                            "loader: {batch_size: 8, device: \"%s\"}}",
                            names[i]));
    }
    for (int k = 0; k < 10; k++) {
        int i = k % 2;

        assert_status(stk_loader_next_on(loaders[i], streams[1 - i], 0, &batch, &err), STK_E_BAD_DEVICE);
        assert_ok(stk_loader_next_on(loaders[i], streams[i], 60 * STKI_SECOND, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "y", &label, &err));
        assert_ptr_equal(label.device, devices[i]);
        stk_batch_release_on(batch, streams[1 - i]); /* a stream of the other device */
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stk_loader_next_on(loaders[i], streams[i], 60 * STKI_SECOND, &batch, &err), STK_END);
        stk_loader_destroy(loaders[i]);
        stk_stream_destroy(streams[i]);
    }
}

/* ---- options ---- */

static float own_memory[3][4][8];

static void *give_memory(void *context, const char *field, int slot, int64_t bytes)
{
    int *asked = context;

    (*asked)++;
    if (strcmp(field, "x") != 0)
        return NULL;
    assert_int_equal(bytes, sizeof own_memory[0]);
    return own_memory[slot];
}

/* As CUDA graphs require, the tensors are in the caller's memory, and the addresses of a slot do not change. */
static void batches_are_in_the_callers_memory(void **state)
{
    (void)state;
    for (int by_device = 0; by_device < 2; by_device++) {
        stk_field_opts field_opts[] = {STK_FIELD_OPTS_INIT, STK_FIELD_OPTS_INIT};
        stk_loader_opts opts = STK_LOADER_OPTS_INIT;
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        void *labels[3] = {NULL};
        int asked = 0;

        field_opts[0].name = "x";
        field_opts[0].synthetic = "{count: 40, shape: [8], dtype: u8, distinct: 40}";
        field_opts[0].transforms = "[{scale: 0.5}]";
        field_opts[1].name = "y";
        field_opts[1].synthetic = "{count: 40, shape: [], dtype: i64, distinct: 40}";
        opts.fields = field_opts;
        opts.field_count = 2;
        opts.batch_size = 4;
        opts.device = "host";
        opts.device_prefetch = 3;
        opts.convert = by_device ? STK_CONVERT_DEVICE : STK_CONVERT_HOST;
        opts.device_buffer = give_memory;
        opts.device_buffer_context = &asked;
        assert_ok(stk_loader_open(&opts, &loader, &err));
        assert_int_equal(asked, 6);
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            int slot = stk_batch_device_slot(batch);
            stk_tensor x, y;

            assert_in_range(slot, 0, 2);
            assert_ok(stk_batch_tensor(batch, "x", &x, &err));
            assert_ok(stk_batch_tensor(batch, "y", &y, &err));
            assert_ptr_equal(x.data, own_memory[slot]);
            assert_true(!labels[slot] || labels[slot] == y.data);
            labels[slot] = y.data;
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
    }
}

static bool has_note(const stk_loader *loader, const char *text)
{
    for (int i = 0; i < stk_loader_note_count(loader); i++)
        if (strstr(stk_loader_note(loader, i), text))
            return true;
    return false;
}

static void open_refused(stk_status expected, const char *says, const char *field, const char *options)
{
    char text[2048];
    stk_loader *loader;
    stk_error err;

    snprintf(text, sizeof text, "{dataset: {fields: {x: %s}}, loader: {%s}}", field, options);
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), expected);
    assert_says(says);
}

#define IMAGE "{synthetic: {count: 8, shape: [9, 8, 3], dtype: u8}, source: {layout: nhwc}, transforms: [%s]}"

static void unsupported_options_are_named(void **state)
{
    static const char plain[] = "{synthetic: {count: 8, shape: [4], dtype: u8}}",
                      erased[] = "{synthetic: {count: 8, shape: [9, 8, 3], dtype: u8}, source: {layout: nhwc}, "
                                 "transforms: [{resize: 4}, {scale: unit}, {random_erasing: 0.5}]}",
                      ragged[] = "{synthetic: {count: 8, shape: [4], min_length: 1, dtype: u8}, dtype: i32}",
                      colored[] = "{synthetic: {count: 8, shape: [9, 8, 3], dtype: u8}, source: {layout: nhwc}, "
                                  "transforms: [{brightness: 1.5}]}";
    stk_loader *loader;
    stk_error err;

    (void)state;
    open_refused(STK_E_UNSUPPORTED, "random_erasing", erased, "device: host, convert: device");
    open_refused(STK_E_UNSUPPORTED, "different lengths", ragged, "device: host, convert: device");
    open_refused(STK_E_UNSUPPORTED, "brightness", colored, "device: host, convert: device");
    open_refused(STK_E_CONFIG, "loader.device is cpu", plain, "convert: device");
    open_refused(STK_E_CONFIG, "device_prefetch", plain, "device: host, device_prefetch: 0");
    open_refused(STK_E_DEVICE, "loader.device", plain, "device: hots");
    assert_ok(stkt_open(&loader, "{dataset: {fields: {x: %s}}, loader: {device: host}}", colored));
    assert_true(has_note(loader, "do not support brightness"));
    stk_loader_destroy(loader);
}

/* Row F12: without a GPU, opening `cuda:0` fails with a clear error and does not hang. */
static void f12_a_missing_device_is_an_error(void **state)
{
    stk_device *device;

    (void)state;
    if (stk_device_find("cuda:0", &device, NULL) == STK_OK)
        skip();
    open_refused(STK_E_DEVICE, "loader.device", "{synthetic: {count: 8, shape: [4], dtype: u8}}", "device: cuda:0");
}

/* `auto` adds a note with its measurements. */
static void auto_gives_its_reason(void **state)
{
    stk_loader *loader;
    const char *options;
    stk_error err;

    (void)state;
    assert_ok(stkt_open(&loader, "{dataset: {fields: {x: " IMAGE "}}, loader: {device: host, batch_size: 4}}",
                        "{normalize: imagenet}"));
    assert_true(has_note(loader, "loader.convert: host, since a batch takes") ||
                has_note(loader, "loader.convert: device, since a batch takes"));
    options = stk_loader_options_json(loader);
    assert_non_null(strstr(options, "\"convert\": \"host\"") ? options : strstr(options, "\"convert\": \"device\""));
    stk_loader_destroy(loader);
}

/* A batch takes 11 ms in the workers and 10.2 ms with the device, a gain of less than a tenth. Without decoding, it
 * takes 1 ms and 0.5 ms. */
static void decoding_counts_either_way(void **state)
{
    stki_convert_costs costs = {.host_read = 10e6,
                                .host_convert = 1e6,
                                .host_copy = 0.2e6,
                                .rows_copy = 0.8e6,
                                .samples_copy = 0.2e6,
                                .device_convert = 0.5e6};
    char text[320];

    (void)state;
    assert_false(stki_convert_pays(&costs, text, sizeof text));
    assert_non_null(strstr(text, "a batch takes 10.2 ms"));
    assert_non_null(strstr(text, "and 11 ms"));
    costs.host_read = 0;
    assert_true(stki_convert_pays(&costs, text, sizeof text));
}

static void slots_are_pinned_for_a_device(void **state)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_loader *loader;
    stk_error err;

    (void)state;
    assert_ok(stkt_open(&loader, COUNTED, 1, "pin_memory: auto"));
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_true(stats.pinned_bytes == stats.slot_bytes && stats.slot_bytes > 0);
    assert_non_null(strstr(stk_loader_options_json(loader), "\"pinned\": true"));
    assert_non_null(strstr(stk_loader_options_json(loader), "\"pinned_reason\": \"for copies to host\""));
    stk_loader_destroy(loader);
    assert_ok(stkt_open(&loader, COUNTED, 1, "pin_memory: false"));
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.pinned_bytes, 0);
    assert_non_null(strstr(stk_loader_options_json(loader), "pin_memory is false"));
    stk_loader_destroy(loader);
    assert_ok(stkt_open(&loader, "{dataset: {fields: {x: {synthetic: {count: 8, shape: [4], dtype: u8}}}}, loader: "
                                 "{device: test, pin_memory: true}}"));
    assert_true(has_note(loader, "test cannot pin memory"));
    stk_loader_destroy(loader);
}

/* ---- failed allocations ---- */

static void open_survives_every_failed_allocation(void **state)
{
    static const char text[] =
        "{dataset: {fields: {x: {synthetic: {count: 8, shape: [3, 2, 3], dtype: u8}, source: {layout: nhwc}, layout: "
        "nchw, transforms: [{normalize: imagenet}]}, t: {synthetic: {count: 8, shape: [4], min_length: 0, dtype: "
        "u8}}}}, loader: {device: host, convert: auto, batch_size: 4, num_workers: 1}}";
    stk_status status = STK_E_MEMORY;

    (void)state;
    for (int64_t n = 1; status != STK_OK || n < 40; n++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err = {0};

        assert_true(n < 5000);
        stki_memory_fail_at(n);
        status = stk_loader_open_text(text, NULL, NULL, 0, &loader, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) { /* either no allocation failed, or the loader can do without the one that failed */
            bool done_without = stk_loader_note_count(loader) > 0 && has_note(loader, "memory");

            assert_ok(stk_loader_next(loader, &batch, &err));
            stk_batch_release(batch);
            stk_loader_destroy(loader);
            if (done_without)
                status = STK_E_MEMORY;
        } else {
            assert_true(err.message[0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_gives_the_same_bytes),
        cmocka_unit_test(nothing_touches_the_devices_memory),
        cmocka_unit_test(mixed_and_made_rows_are_the_same_there),
        cmocka_unit_test(decoded_images_are_the_same_there),
        cmocka_unit_test(batches_without_rows_are_delivered),
        cmocka_unit_test(p04_a_failed_read_is_an_error_on_a_device_too),
        cmocka_unit_test(p04_a_failed_copy_is_an_error),
        cmocka_unit_test(g07_a_partial_batch_has_only_its_rows),
        cmocka_unit_test(timeouts_name_what_is_held_or_slow),
        cmocka_unit_test(p06_closing_does_not_wait_for_a_stuck_reader),
        cmocka_unit_test(held_batches_outlive_the_loader),
        cmocka_unit_test(exports_name_their_device),
        cmocka_unit_test(slots_wait_for_release_and_export),
        cmocka_unit_test(a_deleter_may_outlive_the_stream),
        cmocka_unit_test(streams_without_a_device),
        cmocka_unit_test(g05_two_devices_do_not_interfere),
        cmocka_unit_test(batches_are_in_the_callers_memory),
        cmocka_unit_test(unsupported_options_are_named),
        cmocka_unit_test(f12_a_missing_device_is_an_error),
        cmocka_unit_test(auto_gives_its_reason),
        cmocka_unit_test(decoding_counts_either_way),
        cmocka_unit_test(slots_are_pinned_for_a_device),
        cmocka_unit_test(open_survives_every_failed_allocation),
    };

    (void)stki_device_test();
    (void)host_device();
    return cmocka_run_group_tests_name("loader_device", tests, NULL, NULL);
}
