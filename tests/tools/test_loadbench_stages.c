/* stki-threads */
/* Pipelines with a known slow stage. The verdict must name it, and the predicted effect of more workers and slots must
 * occur. Slow stages sleep if possible. Decoding, decompressing and converting cannot, so they get almost all of the
 * work instead.
 *
 * If ten processes compete for the processor, waking a thread can cost as much as the work, and a verdict that names
 * this is then correct. But this cost does not grow with the length of sleeps and batches. So if the stage is not
 * named, the measurement is repeated with all times and sizes doubled, until other costs are negligible. A star marks
 * the times and sizes that grow. */
#include "hdf5_type.h"
#include "host_faults.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loadbench_predict.h"
#include "loadbench_result.h"
#include "thread.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LONGEST = 64, LARGEST = 4 }; /* maximum factors */

static int times = 1; /* changed only between runs */

static stk_status sleep_5ms(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                            stk_error *err)
{
    (void)context, (void)call, (void)err;
    stki_sleep_ns(5000000 * (int64_t)times);
    memcpy(out->data, in->data, (size_t)stk_tensor_nbytes(out));
    return STK_OK;
}

static void must(stk_status status, const stk_error *err)
{
    if (status != STK_OK)
        fail_msg("%s", err->message);
}

/* "*5ms" becomes `times` times 5 ms; "batch_size: *4" at most LARGEST times 4. */
static void stretch(const char *text, char *out, size_t size)
{
    size_t used = 0;

    while (*text && used + 24 < size) {
        char *end;

        if (*text != '*') {
            out[used++] = *text++;
            continue;
        }
        const long value = strtol(text + 1, &end, 10);
        const bool is_time = *end == 'm' || *end == 'u';
        used +=
            (size_t)snprintf(out + used, size - used, "%ld", value * (is_time || times < LARGEST ? times : LARGEST));
        text = end;
    }
    out[used] = '\0';
}

static char config_text[2048];

static const char *config_of(const char *source, const char *loader, const char *bench)
{
    const char *path = stkt_path("pipeline.yaml");
    char text[2048];

    snprintf(text, sizeof text,
             "dataset: {fields: {x: %s}}\nloader: {close_timeout: 60s, %s}\nbench: {limit: false, repeats: 1, "
             "ramp: *30ms, %s}\n",
             source, loader, bench);
    stretch(text, config_text, sizeof config_text);
    stkt_write_file(path, config_text, strlen(config_text));
    return path;
}

/* Measures a config and returns the verdict and the predictions. */
static void judge(const char *path, struct lb_verdict *verdict, struct lb_predictions *predictions)
{
    struct lb_result *result = calloc(1, sizeof *result);
    struct lb_config config;
    stk_error err;

    must(lb_config_open(path, NULL, 0, false, &config, &err), &err);
    must(lb_result_measure(&config, result, &err), &err);
    lb_result_verdict(result, verdict);
    if (predictions)
        *predictions = result->predictions;
    lb_result_fini(result);
    lb_config_close(&config);
    free(result);
}

/* ---- the slow stage is named ---- */

#define READ(time) "{synthetic: {count: 100000, shape: [16], dtype: u8, read_time: " time "}}"
#define CALL(time) \
    "{synthetic: {count: 100000, shape: [16], dtype: u8, read_time: " time "}, transforms: [{call: sleep_5ms}]}"
#define IMAGES "{path: images, source: {name: image}}"
#define RESIZED                                                                                                      \
    "{synthetic: {count: 1000, shape: [600, 800, 3], dtype: u8, distinct: 4}, source: {layout: hwc}, layout: nchw, " \
    "dtype: f32, transforms: [{resize: [500, 500]}, {normalize: imagenet}]}"

static const struct pipeline {
    const char *slow, *source, *loader, *bench;
} pipelines[] = {
    {"storage", READ("*5ms"), "num_workers: 0", "batches: 20"},
    {"storage", READ("*5ms"), "num_workers: 1", "batches: 20"},
    {"storage", READ("*5ms"), "num_workers: 2", "batches: 30"},
    {"storage", READ("*12ms"), "num_workers: 4, prefetch: 8", "batches: 40"},
    {"storage", READ("*5ms"), "num_workers: 1, prefetch: 2", "batches: 20, consumer: step, step_time: *1ms"},
    {"storage", READ("*2ms"), "num_workers: 1, batch_size: 4", "batches: 20, consumer: touch"},
    {"call", CALL("*10us"), "num_workers: 0", "batches: 20"},
    {"call", CALL("*10us"), "num_workers: 1", "batches: 20"},
    {"call", CALL("*1ms"), "num_workers: 2", "batches: 30"},
    {"call", CALL("*1ms"), "num_workers: 1", "batches: 20, consumer: step, step_time: *1ms"},
    {"consumer", READ("*500us"), "num_workers: 1", "batches: 20, consumer: step, step_time: *5ms"},
    {"consumer", READ("*1ms"), "num_workers: 2", "batches: 20, consumer: step, step_time: *5ms"},
    {"consumer", READ("*500us"), "num_workers: 0", "batches: 20, consumer: step, step_time: *5ms"},
    {"consumer", READ("*5ms"), "num_workers: 4, prefetch: 8", "batches: 20, consumer: step, step_time: *6ms"},
    {"ring", READ("*5ms"), "num_workers: 1, prefetch: 1", "batches: 20, consumer: step, step_time: *5ms"},
    {"ring", READ("*5ms"), "num_workers: 4, prefetch: 2", "batches: 30, consumer: step, step_time: *1ms"},
    {"ring", READ("*5ms"), "num_workers: 8, prefetch: 4", "batches: 60"},
    {"copy", READ("*500us"), "num_workers: 1, device: host, convert: host", "batches: 20"},
    {"copy", READ("*500us"), "num_workers: 2, device: host, convert: host", "batches: 20"},
    {"decode", IMAGES, "num_workers: 1, batch_size: *4, prefetch: 8", "batches: 24"},
    {"decode", IMAGES, "num_workers: 2, batch_size: *4, prefetch: 8", "batches: 30"},
    {"inflate", "{path: packed.h5}", "num_workers: 1, batch_size: *4, prefetch: 8, cache_bytes: 1MiB", "batches: 24"},
    {"convert", RESIZED, "num_workers: 1, batch_size: *4, prefetch: 8", "batches: 160"},
    {"convert", RESIZED, "num_workers: 2, batch_size: *4, prefetch: 8", "batches: 200"},
};
enum { PIPELINES = sizeof pipelines / sizeof pipelines[0] };

static void make_images(void)
{
    const stkt_jpeg image = {.width = 800, .height = 600};
    stkt_bytes made = stkt_jpeg_make(&image);
    char name[32];

    assert_int_equal(mkdir(stkt_path("images"), 0777), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "images/%d.jpg", i);
        stkt_write_file(stkt_path(name), made.data, made.size);
    }
    free(made.data);
}

static void make_packed(void)
{
    enum { ROWS = 16, LENGTH = 256 << 10 };
    const hsize_t shape[2] = {ROWS, LENGTH}, chunk[2] = {1, LENGTH};
    float *values = malloc(sizeof *values * ROWS * LENGTH);
    const hid_t file = H5Fcreate(stkt_path("packed.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);

    for (int i = 0; i < ROWS * LENGTH; i++)
        values[i] = (float)((unsigned)i * 2654435761u >> 22); /* ten bits of noise, which compress with some work */
    assert_true(H5Pset_chunk(how, 2, chunk) >= 0 && H5Pset_deflate(how, 1) >= 0);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
    free(values);
}

static void slow_copies(int64_t delay_ns)
{
    const stkt_host_faults faults = {.delay_ns = delay_ns};
    stk_device *device = NULL;
    stk_error err;

    must(stk_device_find("host", &device, &err), &err);
    stkt_host_set_faults(device, NULL, &faults);
}

static void the_slow_stage_is_named(void **state)
{
    int named = 0;

    (void)state;
    make_images();
    make_packed();
    for (int i = 0; i < PIPELINES; i++) {
        const struct pipeline *p = &pipelines[i];
        const bool copy = strcmp(p->slow, "copy") == 0;
        struct lb_verdict verdict;
        bool right = false;

        for (times = 1; times <= LONGEST && !right; times *= 2) {
            if (copy)
                slow_copies(8000000 * (int64_t)times);
            judge(config_of(p->source, p->loader, p->bench), &verdict, NULL);
            right = strcmp(lb_bottleneck_words[verdict.bottleneck], p->slow) == 0;
        }
        times = 1;
        if (copy)
            slow_copies(0);
        if (right)
            named++;
        else
            print_message("%s, {%s}, {%s}: expected %s, found %s: %s\n", p->source, p->loader, p->bench, p->slow,
                          lb_bottleneck_words[verdict.bottleneck], verdict.text);
    }
    print_message("the verdict is right for %d of %d pipelines\n", named, PIPELINES);
    assert_int_equal(named, PIPELINES);
    assert_true(PIPELINES >= 20);
}

/* ---- predictions ---- */

static const struct prediction {
    const char *source, *loader, *bench;
    double workers_gain, prefetch_gain; /* expected factors for the rate, computed by hand */
} predictions[] = {
    /* two workers become three; slots are not the limit */
    {READ("*10ms"), "num_workers: 2, prefetch: 8", "batches: 20", 1.5, 1},
    /* with one slot, 10 ms of reading and a step of 10 ms alternate; with two they overlap */
    {READ("*10ms"), "num_workers: 1, prefetch: 1", "batches: 20, consumer: step, step_time: *10ms", 1, 2},
    /* the step is the limit, whatever the loader does */
    {READ("*6ms"), "num_workers: 1, prefetch: 4", "batches: 20, consumer: step, step_time: *10ms", 1, 1},
    /* four workers and two slots: two workers have nothing to fill */
    {READ("*10ms"), "num_workers: 4, prefetch: 2", "batches: 24", 1, 2},
};

static bool is_near(double found, double expected)
{
    return fabs(found / expected - 1) <= 0.15;
}

/* On a busy machine, one of two runs may be slower than the other, but the difference shrinks as everything takes
 * longer. */
static void predictions_come_true(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof predictions / sizeof predictions[0]; i++) {
        const struct prediction *p = &predictions[i];
        struct lb_predictions found;
        struct lb_verdict verdict;
        bool right = false;

        for (times = 1; times <= LONGEST && !right; times *= 2) {
            judge(config_of(p->source, p->loader, p->bench), &verdict, &found);
            assert_int_equal(found.count, 2);
            lb_predict_check(stkt_path("pipeline.yaml"), NULL, 0, 1, &found);
            right = is_near(found.each[0].rate / found.each[0].now, p->workers_gain) &&
                    is_near(found.each[1].rate / found.each[1].now, p->prefetch_gain);
            for (int k = 0; k < 2; k++) {
                assert_string_equal(found.each[k].failure, "");
                right = right &&
                        is_near(found.each[k].measured / found.each[k].beside, found.each[k].rate / found.each[k].now);
            }
        }
        times = 1;
        if (!right)
            fail_msg("{%s}, {%s}: workers: predicted %.1f from %.1f, measured %.1f from %.1f; slots: predicted "
                     "%.1f from %.1f, measured %.1f from %.1f",
                     p->loader, p->bench, found.each[0].rate, found.each[0].now, found.each[0].measured,
                     found.each[0].beside, found.each[1].rate, found.each[1].now, found.each[1].measured,
                     found.each[1].beside);
    }
}

static void a_change_that_fails_is_noted(void **state)
{
    struct lb_predictions wrong = {.count = 1, .each = {{.set = "loader.num_workers=-5", .rate = 2, .now = 1}}};
    char *text = NULL;
    size_t size = 0;

    (void)state;
    config_of(READ("1ms"), "num_workers: 1", "batches: 20");
    lb_predict_check(stkt_path("pipeline.yaml"), NULL, 0, 1, &wrong);
    assert_non_null(strstr(wrong.each[0].failure, "loader.num_workers: found -5"));
    FILE *to = open_memstream(&text, &size);
    lb_predict_print(&wrong, to);
    fclose(to);
    assert_non_null(strstr(text, "+100 %"));
    assert_non_null(strstr(text, "measured: loader.num_workers: found -5"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slow_stage_is_named),
        cmocka_unit_test(predictions_come_true),
        cmocka_unit_test(a_change_that_fails_is_noted),
    };
    stk_transform transform = STK_TRANSFORM_INIT;
    stk_error err;

    transform.name = "sleep_5ms";
    transform.run = sleep_5ms;
    if (stk_transform_register(&transform, &err) != STK_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
