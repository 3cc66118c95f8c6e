/* stki-threads */
/* Tests of crop, center_crop and resize in a loader. The expected bytes come from the resizer and a conversion in this
 * file, for each way in which a reader can return images and for any number of workers. Sizes are torchvision's. */
#include "faults.h"
#include "format.h"
#include "image_reader.h"
#include "io_files.h"
#include "loader_test.h"
#include "resize.h"
#include "test_random.h"
#include <math.h>

static stk_error err;

/* ---- opening ---- */

static STK_PRINTF(3, 4) stk_status open_images(stk_loader **out, const stkt_images *images, const char *format, ...)
{
    char text[4096];
    stki_document *document;
    stki_loader_config *config;
    stkt_images copy;
    stk_status status;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memset(&err, 0, sizeof err);
    if ((status = stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err)) != STK_OK ||
        (status = stki_config_read(document, NULL, &config, &err)) != STK_OK)
        return status;
    if (images) {
        copy = *images;
        config->wrap_reader = stkt_wrap_images;
        config->wrap_context = &copy;
    }
    return stki_loader_open_config(config, out, &err);
}

static uint64_t hash_of_run(stk_loader *loader)
{
    uint64_t h = 1;
    stk_batch *batch;
    stk_status status;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        h = stkt_hash_batch(h, loader, batch);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s: %s", stk_status_name(status), err.message);
    stk_loader_destroy(loader);
    return h;
}

/* Returns the first error of a run. */
static stk_status run_until_error(stk_loader *loader)
{
    stk_batch *batch;
    stk_status status;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    stk_loader_destroy(loader);
    return status;
}

/* ---- reference ---- */

/* Computes the whole result of the job from an image with rows of `width` pixels, then crops it. */
static void resize_by_hand(const stki_resize_job *job, const uint8_t *image, int64_t width, uint8_t *out)
{
    stki_resize_job whole = *job;
    const stki_resize_support *part;
    const int64_t row = width * job->channels, out_row = job->out_width * job->channels;
    uint8_t *full = malloc((size_t)(out_row * job->out_height));
    stki_resizer *resizer;

    whole.window_height = whole.window_width = whole.window_top = whole.window_left = 0;
    assert_ok(stki_resizer_create_isa(STKI_ISA_REF, &resizer, &err));
    assert_ok(stki_resizer_set(resizer, &whole, &err));
    part = stki_resizer_support(resizer);
    stki_resizer_run(resizer, image + part->top * row + part->left * job->channels, row, full, out_row);
    for (int64_t y = 0; y < job->window_height; y++)
        memcpy(out + y * job->window_width * job->channels,
               full + (job->window_top + y) * out_row + job->window_left * job->channels,
               (size_t)(job->window_width * job->channels));
    stki_resizer_destroy(resizer);
    free(full);
}

/* Compares each row of each batch with the result of `expect`, converted to f32 planes by 2 * x - 2. */
static void check_rows(stk_loader *loader, int64_t height, int64_t width,
                       void (*expect)(int64_t index, uint8_t *pixels, const void *context), const void *context)
{
    uint8_t *pixels = malloc((size_t)(height * width * 3));
    stk_batch *batch;
    stk_status status;
    int64_t rows = 0;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor tensor;
        const float *found;

        assert_ok(stk_batch_tensor(batch, "image", &tensor, &err));
        assert_int_equal(tensor.dtype, STK_F32);
        assert_int_equal(tensor.shape[1], 3);
        assert_int_equal(tensor.shape[2], height);
        assert_int_equal(tensor.shape[3], width);
        found = tensor.data;
        for (int64_t r = 0; r < stk_batch_rows(batch); r++, rows++) {
            expect(stk_batch_indices(batch)[r], pixels, context);
            for (int64_t c = 0; c < 3; c++)
                for (int64_t i = 0; i < height * width; i++, found++)
                    if (*found != 2.0f * (float)pixels[i * 3 + c] - 2.0f)
                        fail_msg("sample %lld channel %lld pixel %lld: found %g, expected %g",
                                 (long long)stk_batch_indices(batch)[r], (long long)c, (long long)i, (double)*found,
                                 2.0 * pixels[i * 3 + c] - 2.0);
        }
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s: %s", stk_status_name(status), err.message);
    assert_true(rows > 0);
    stk_loader_destroy(loader);
    free(pixels);
}

#define AFFINE "{normalize: {mean: 0.5, std: 0.25, scale: 0.5}}" /* 2 x - 2, exactly */

/* ---- samples of one shape ---- */

static const stki_synthetic_opts fixed_opts = {
    .count = 40, .dtype = STK_U8, .ndim = 3, .shape = {37, 53, 3}, .min_length = -1};

static void expect_fixed(int64_t index, uint8_t *pixels, const void *context)
{
    uint8_t image[37 * 53 * 3];

    stki_synthetic_fill(&fixed_opts, index, 37, image);
    resize_by_hand(context, image, 53, pixels);
}

/* The image starts at row 5 and column 3. */
static void expect_cropped(int64_t index, uint8_t *pixels, const void *context)
{
    uint8_t image[37 * 53 * 3];

    stki_synthetic_fill(&fixed_opts, index, 37, image);
    resize_by_hand(context, image + (5 * 53 + 3) * 3, 53, pixels);
}

static void test_resize_of_one_shape(void **unused)
{
    static const char *const forms[] = {"memory", "scratch", "block"};
    const stki_resize_job job = {37, 53, 3, {0, 0, 53, 37}, 20, 17, STKI_FILTER_BICUBIC, 0, 0, 20, 17};

    (void)unused;
    for (int i = 0; i < 3; i++) {
        stk_loader *loader;

        assert_ok(open_images(
            &loader, NULL,
            "{dataset: {fields: {image: {synthetic: {count: 40, shape: [37, 53, 3], form: %s}, source: "
            "{layout: nhwc}, layout: nchw, transforms: [{resize: {size: [20, 17], filter: bicubic}}, " AFFINE
            "]}}}, loader: {batch_size: 8, order: random, num_workers: %d}}",
            forms[i], i));
        check_rows(loader, 20, 17, expect_fixed, &job);
    }
}

/* Results of more than one strip, in each layout. */
static void test_large_results(void **unused)
{
    static const struct {
        const char *layout;
        int64_t y, x, c; /* distance in elements between neighbors */
    } layouts[] = {{"nchw", 117, 1, 131 * 117}, {"nhwc", 351, 3, 1}, {"channels_last", 351, 3, 1}};
    const stki_resize_job job = {37, 53, 3, {0, 0, 53, 37}, 140, 120, STKI_FILTER_BILINEAR, 4, 2, 131, 117};
    uint8_t *pixels = malloc(131 * 117 * 3);

    (void)unused;
    for (int i = 0; i < 3; i++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_tensor x;

        assert_ok(
            open_images(&loader, NULL,
                        "{dataset: {fields: {image: {synthetic: {count: 40, shape: [37, 53, 3]}, source: {layout: "
                        "nhwc}, layout: %s, transforms: [{resize: [140, 120]}, {crop: {top: 4, left: 2, height: "
                        "131, width: 117}}, " AFFINE "]}}}, loader: {batch_size: 4, stores: %s}}",
                        layouts[i].layout, i % 2 ? "cached" : "streaming"));
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &x, &err));
        for (int64_t r = 0; r < 4; r++) {
            const float *row = (const float *)x.data + r * 131 * 117 * 3;

            expect_fixed(r, pixels, &job);
            for (int64_t k = 0; k < 131 * 117 * 3; k++) {
                int64_t at = k / 351 * layouts[i].y + k / 3 % 117 * layouts[i].x + k % 3 * layouts[i].c;

                if (row[at] != 2.0f * (float)pixels[k] - 2.0f)
                    fail_msg("%s: row %lld element %lld", layouts[i].layout, (long long)r, (long long)k);
            }
        }
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
    free(pixels);
}

/* The usual transform for evaluation: the shorter side resized to N, then a center crop. Only the center is
 * computed. */
static void test_shorter_side_and_center(void **unused)
{
    /* 53 * 24 / 37 = 34.4; (24 - 20) / 2 = 2; (34 - 19) / 2 = 7.5, rounded to even: 8 */
    const stki_resize_job job = {37, 53, 3, {0, 0, 53, 37}, 24, 34, STKI_FILTER_BILINEAR, 2, 8, 20, 19};
    stk_loader *loader;

    (void)unused;
    assert_ok(open_images(
        &loader, NULL,
        "{dataset: {fields: {image: {synthetic: {count: 40, shape: [37, 53, 3]}, source: {layout: hwc}, "
        "layout: chw, transforms: [{resize: 24}, {center_crop: [20, 19]}, " AFFINE "]}}}, loader: {batch_size: 7}}"));
    check_rows(loader, 20, 19, expect_fixed, &job);
}

static void test_crops_before_and_after_resize(void **unused)
{
    /* pixels outside the crop are not read: the job's image is rows 5 to 33 and columns 3 to 50 */
    const stki_resize_job job = {28, 47, 3, {0.5, 1.5, 40, 27.25}, 30, 41, STKI_FILTER_LANCZOS, 2, 20, 9, 11};
    stk_loader *loader;

    (void)unused;
    assert_ok(open_images(
        &loader, NULL,
        "{dataset: {fields: {image: {synthetic: {count: 40, shape: [37, 53, 3]}, source: {layout: nhwc}, layout: nchw, "
        "transforms: [{crop: {top: 4, left: 2, height: 30, width: 49}}, {crop: {top: 1, left: 1, height: 28, width: "
        "47}}, "
        "{resize: {size: [30, 41], filter: lanczos, box: [0.5, 1.5, 40, 27.25]}}, {crop: {top: 1, left: 16, height: "
        "11, "
        "width: 19}}, {center_crop: [9, 11]}, " AFFINE "]}}}, loader: {batch_size: 7}}"));
    check_rows(loader, 9, 11, expect_cropped, &job);
}

/* A crop without resizing is a view: all rows of a tile can be converted in one call, and samples can be split into
 * parts. */
static void test_crop_is_a_view(void **unused)
{
    static const char *const layouts[][2] = {{"nhwc", "nchw"}, {"nhwc", "nhwc"}, {"nchw", "nchw"}, {"nchw", "nhwc"}};

    (void)unused;
    for (int i = 0; i < 4; i++)
        for (int round = 0; round < 3; round++) { /* rows in one call, rows from the reader, parts of rows */
            const bool planar = layouts[i][0][1] == 'c', to_planar = layouts[i][1][1] == 'c';
            const int64_t h = round == 2 ? 200 : 30, w = round == 2 ? 100 : 20;
            const stki_synthetic_opts opts = {.count = 9,
                                              .dtype = STK_I16,
                                              .ndim = 3,
                                              .shape = {planar ? 2 : h, planar ? h : w, planar ? w : 2},
                                              .min_length = -1};
            int16_t *image = malloc((size_t)(h * w * 4));
            stk_loader *loader;
            stk_batch *batch;
            stk_tensor x;

            assert_ok(open_images(&loader, NULL,
                                  "{dataset: {fields: {image: {synthetic: {count: 9, dtype: i16, shape: [%d, %d, %d], "
                                  "form: %s}, source: {layout: %s}, layout: %s, transforms: [{crop: {top: 3, left: 5, "
                                  "height: %d, width: 11}}]}}}, loader: {batch_size: 9, tile_bytes: 1024}}",
                                  (int)opts.shape[0], (int)opts.shape[1], (int)opts.shape[2],
                                  round == 1 ? "scratch" : "memory", layouts[i][0], layouts[i][1], (int)h - 4));
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "image", &x, &err));
            for (int64_t r = 0; r < 9; r++) {
                stki_synthetic_fill(&opts, r, opts.shape[0], image);
                for (int64_t c = 0; c < 2; c++)
                    for (int64_t y = 0; y < h - 4; y++)
                        for (int64_t k = 0; k < 11; k++) {
                            int64_t from = planar ? (c * h + y + 3) * w + k + 5 : ((y + 3) * w + k + 5) * 2 + c;
                            int64_t to = to_planar ? (c * (h - 4) + y) * 11 + k : (y * 11 + k) * 2 + c;

                            assert_int_equal(((const int16_t *)x.data)[r * (h - 4) * 22 + to], image[from]);
                        }
            }
            stk_batch_release(batch);
            stk_loader_destroy(loader);
            free(image);
        }
}

/* ---- images of different sizes ---- */

#define IMAGES "synthetic: {count: 30, shape: [61, 60, 3]}, source: {layout: nhwc}, layout: nchw, "

static const stkt_images sizes = {.min_side = 30, .max_side = 60, .odd_one = -1};

static void expect_image(int64_t index, uint8_t *pixels, const void *context)
{
    stki_resize_job job = *(const stki_resize_job *)context;
    uint8_t image[61 * 60 * 3];
    int64_t shape[3];

    stkt_image_size(&sizes, index, shape);
    stkt_image_fill(&sizes, index, image);
    job.in_height = shape[0];
    job.in_width = shape[1];
    job.box[2] = (double)shape[1];
    job.box[3] = (double)shape[0];
    resize_by_hand(&job, image, shape[1], pixels);
}

static void test_images_of_many_sizes(void **unused)
{
    static const enum stkt_image_way ways[] = {STKT_WHOLE, STKT_PART, STKT_TURNED};
    const stki_resize_job job = {0, 0, 3, {0}, 24, 33, STKI_FILTER_BILINEAR, 0, 0, 24, 33};

    (void)unused;
    for (int i = 0; i < 3; i++) {
        stkt_images images = sizes;
        stk_loader *loader;

        images.way = ways[i];
        assert_ok(open_images(&loader, &images,
                              "{dataset: {fields: {image: {" IMAGES "transforms: [{resize: [24, 33]}, " AFFINE
                              "]}}}, loader: {batch_size: 8, order: random, num_workers: %d}}",
                              i));
        check_rows(loader, 24, 33, expect_image, &job);
    }
}

static void expect_middle(int64_t index, uint8_t *pixels, const void *context)
{
    stki_resize_job job = *(const stki_resize_job *)context;
    int64_t shape[3], shorter;

    stkt_image_size(&sizes, index, shape);
    shorter = shape[0] < shape[1] ? shape[0] : shape[1];
    job.out_height = shape[0] * 28 / shorter;
    job.out_width = shape[1] * 28 / shorter;
    job.window_top = lrint((double)(job.out_height - 24) / 2); /* rounds half to even */
    job.window_left = lrint((double)(job.out_width - 24) / 2);
    expect_image(index, pixels, &job);
}

static void test_center_of_many_sizes(void **unused)
{
    const stki_resize_job job = {0, 0, 3, {0}, 0, 0, STKI_FILTER_HAMMING, 0, 0, 24, 24};

    (void)unused;
    for (int part = 0; part < 2; part++) {
        stkt_images images = sizes;
        stk_loader *loader;

        images.way = part ? STKT_PART : STKT_WHOLE;
        assert_ok(open_images(&loader, &images,
                              "{dataset: {fields: {image: {" IMAGES
                              "transforms: [{resize: {size: 28, filter: hamming}}, {center_crop: 24}, " AFFINE
                              "]}}}, loader: {batch_size: 8, num_workers: 2}}"));
        check_rows(loader, 24, 24, expect_middle, &job);
    }
}

static void expect_crop(int64_t index, uint8_t *pixels, const void *context)
{
    int64_t shape[3], top, left;

    (void)context;
    stkt_image_size(&sizes, index, shape);
    top = lrint((double)(shape[0] - 25) / 2);
    left = lrint((double)(shape[1] - 28) / 2);
    for (int64_t y = 0; y < 25; y++)
        for (int64_t x = 0; x < 28; x++)
            for (int64_t c = 0; c < 3; c++)
                *pixels++ = stkt_image_pixel(index, top + y, left + x, c);
}

static void test_crop_of_many_sizes(void **unused)
{
    static const enum stkt_image_way ways[] = {STKT_WHOLE, STKT_PART, STKT_TURNED};

    (void)unused;
    for (int i = 0; i < 3; i++) {
        stkt_images images = sizes;
        stk_loader *loader;

        images.way = ways[i];
        assert_ok(open_images(&loader, &images,
                              "{dataset: {fields: {image: {" IMAGES "transforms: [{center_crop: [25, 28]}, " AFFINE
                              "]}}}, loader: {batch_size: 8, num_workers: 2}}"));
        check_rows(loader, 25, 28, expect_crop, NULL);
    }
}

/* For readers that decode images at half size: the pixels of the half-size image that overlap the part (top, left,
 * height, width), and the job in the coordinates of those pixels. */
typedef struct halved {
    int64_t top, left, height, width; /* height 0: the whole image */
    stki_resize_job job;
} halved;

static void halve_axis(int64_t whole, int64_t start, int64_t size, int64_t *first, int64_t *count, double *low,
                       double *high)
{
    *first = start / 2;
    *count = (start + size + 1) / 2 < whole / 2 ? (start + size + 1) / 2 - *first : whole / 2 - *first;
    *low = (double)start / 2 - (double)*first;
    *high = fmin((double)(start + size) / 2 - (double)*first, (double)*count);
}

static void expect_half(int64_t index, uint8_t *pixels, const void *context)
{
    halved part = *(const halved *)context;
    stki_resize_job *job = &part.job;
    uint8_t image[61 * 60 * 3], *at = image;
    int64_t shape[3], top, left;

    stkt_image_size(&sizes, index, shape);
    part.height = part.height ? part.height : shape[0];
    part.width = part.width ? part.width : shape[1];
    halve_axis(shape[0], part.top, part.height, &top, &job->in_height, &job->box[1], &job->box[3]);
    halve_axis(shape[1], part.left, part.width, &left, &job->in_width, &job->box[0], &job->box[2]);
    for (int64_t y = 0; y < job->in_height; y++)
        for (int64_t x = 0; x < job->in_width; x++)
            for (int64_t c = 0; c < 3; c++)
                *at++ = stkt_image_half(index, top + y, left + x, c);
    resize_by_hand(job, image, job->in_width, pixels);
}

static void test_images_decoded_at_half_size(void **unused)
{
    static const struct {
        const char *transforms;
        halved part;
    } cases[] = {
        {"{resize: [14, 13]}", {.job = {0, 0, 3, {0}, 14, 13, STKI_FILTER_BILINEAR, 0, 0, 14, 13}}},
        {"{crop: {top: 3, left: 5, height: 24, width: 22}}, {resize: [10, 9]}",
         {3, 5, 24, 22, {0, 0, 3, {0}, 10, 9, STKI_FILTER_BILINEAR, 0, 0, 10, 9}}},
        {"{resize: {size: [7, 6], filter: lanczos}}, {crop: {top: 4, left: 2, height: 2, width: 3}}",
         {.job = {0, 0, 3, {0}, 7, 6, STKI_FILTER_LANCZOS, 4, 2, 2, 3}}},
        {"{resize: {size: [7, 6], filter: box}}, {crop: {top: 3, left: 1, height: 2, width: 1}}",
         {.job = {0, 0, 3, {0}, 7, 6, STKI_FILTER_BOX, 3, 1, 2, 1}}},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const stki_resize_job *job = &cases[i].part.job;
        stkt_images images = sizes;
        stk_loader *loader;

        images.way = STKT_HALF;
        assert_ok(open_images(&loader, &images,
                              "{dataset: {fields: {image: {" IMAGES "transforms: [%s, " AFFINE
                              "]}}}, loader: {batch_size: 8, num_workers: 2}}",
                              cases[i].transforms));
        check_rows(loader, job->window_height, job->window_width, expect_half, &cases[i].part);
    }
}

/* Three epochs have the same bytes with any number of workers and each way of returning images. */
static void test_workers_change_nothing(void **unused)
{
    uint64_t expected = 0;

    (void)unused;
    for (int workers = 0; workers <= 8; workers++)
        for (int way = STKT_WHOLE; way <= STKT_TURNED; way++) {
            stkt_images images = sizes;
            stk_loader *loader;
            uint64_t h;

            images.way = (enum stkt_image_way)way;
            assert_ok(open_images(&loader, &images,
                                  "{dataset: {fields: {image: {" IMAGES
                                  "transforms: [{resize: {size: 31, filter: box}}, {center_crop: 30}]}, label: "
                                  "{synthetic: {count: 30, shape: []}}}}, loader: {batch_size: 7, order: random, "
                                  "num_epochs: 3, num_workers: %d, last_batch: pad}}",
                                  workers));
            h = hash_of_run(loader);
            if (!expected)
                expected = h;
            assert_true(h == expected);
        }
}

/* Images that all have the same size need neither crop nor resize. */
static void test_images_that_are_alike(void **unused)
{
    const stkt_images alike = {.min_side = 40, .max_side = 40, .odd_one = -1},
                      odd = {.min_side = 40, .max_side = 40, .odd_one = 9};
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;
    uint8_t image[40 * 40 * 3];

    (void)unused;
    assert_ok(open_images(&loader, &alike,
                          "{dataset: {fields: {image: {synthetic: {count: 30, shape: [1]}, source: {layout: nhwc}}}}, "
                          "loader: {batch_size: 30}}"));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "image", &x, &err));
    assert_int_equal(x.ndim, 4);
    for (int64_t r = 0; r < 30; r++) {
        stkt_image_fill(&alike, r, image);
        assert_memory_equal((const uint8_t *)x.data + r * 4800, image, 4800);
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    assert_ok(open_images(&loader, &odd,
                          "{dataset: {fields: {image: {synthetic: {count: 30, shape: [1]}, source: {layout: nhwc}}}}, "
                          "loader: {batch_size: 4}}"));
    assert_int_equal(run_until_error(loader), STK_E_MISMATCH);
    assert_says("record 9");
    assert_says("[41, 40, 3]");
    assert_says("record 0");
    assert_says("[40, 40, 3]");
    assert_says("resize or crop");
}

/* Without a layout only the first axis may vary. The error names both shapes. */
static void test_images_without_a_layout(void **unused)
{
    const stkt_images images = {.min_side = 30, .max_side = 60, .odd_one = -1},
                      alike = {.min_side = 40, .max_side = 40, .odd_one = 9};
    stkt_images narrow = alike;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;
    char text[64];
    int64_t shape[3];

    (void)unused;
    assert_ok(
        open_images(&loader, &images,
                    "{dataset: {fields: {image: {synthetic: {count: 30, shape: [1]}}}}, loader: {batch_size: 4}}"));
    assert_int_equal(run_until_error(loader), STK_E_MISMATCH);
    stkt_image_size(&images, 0, shape);
    snprintf(text, sizeof text, "[%d, %d, 3]", (int)shape[0], (int)shape[1]);
    assert_says(text);
    assert_says("more than its first axis");
    narrow.way = STKT_NARROW; /* returns fewer columns than announced */
    assert_ok(
        open_images(&loader, &narrow,
                    "{dataset: {fields: {image: {synthetic: {count: 30, shape: [1]}}}}, loader: {batch_size: 4}}"));
    assert_int_equal(run_until_error(loader), STK_E_MISMATCH);
    assert_says("[40, 39, 3]");
    assert_ok(
        open_images(&loader, &alike, /* one image has an additional row */
                    "{dataset: {fields: {image: {synthetic: {count: 30, shape: [1]}}}}, loader: {batch_size: 30}}"));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "image.offsets", &x, &err));
    assert_int_equal(((const int64_t *)x.data)[30], 30 * 40 + 1);
    assert_ok(stk_batch_tensor(batch, "image.values", &x, &err));
    assert_int_equal(x.shape[1], 40);
    assert_int_equal(((const uint8_t *)x.data)[(9 * 40 + 40) * 120 + 7], stkt_image_pixel(9, 40, 2, 1));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* ---- a box for each sample ---- */

static void expect_boxed(int64_t index, uint8_t *pixels, const void *context)
{
    stki_resize_job job = {0, 0, 3, {0}, 20, 22, STKI_FILTER_BILINEAR, 0, 0, 20, 22};
    uint8_t image[61 * 60 * 3];
    const double *box = (const double *)context + index * 4;
    int64_t shape[3], top, left;

    stkt_image_size(&sizes, index, shape);
    stkt_image_fill(&sizes, index, image);
    top = (int64_t)floor(box[0]);
    left = (int64_t)floor(box[1]);
    job.in_height = (int64_t)ceil(box[0] + box[2]) - top;
    job.in_width = (int64_t)ceil(box[1] + box[3]) - left;
    job.box[0] = box[1] - (double)left;
    job.box[1] = box[0] - (double)top;
    job.box[2] = job.box[0] + box[3];
    job.box[3] = job.box[1] + box[2];
    resize_by_hand(&job, image + (top * shape[1] + left) * 3, shape[1], pixels);
}

static void test_a_box_for_each_sample(void **unused)
{
    double boxes[30 * 4];
    float singles[30 * 4];
    int64_t whole[30 * 4];

    (void)unused;
    for (int64_t i = 0; i < 30; i++) {
        int64_t shape[3];

        stkt_image_size(&sizes, i, shape);
        boxes[i * 4] = (double)(i % 7);
        boxes[i * 4 + 1] = (double)(i % 5);
        boxes[i * 4 + 2] = (double)(shape[0] - 10 - i % 3);
        boxes[i * 4 + 3] = (double)(shape[1] - 15 - i % 4);
    }
    for (int i = 0; i < 120; i++)
        whole[i] = (int64_t)boxes[i];
    stkt_write_npy(stkt_path("i64.npy"), "<i8", "False", "(30, 4)", 64, whole, sizeof whole);
    for (int i = 0; i < 120; i++)
        singles[i] = (float)(boxes[i] += i % 4 < 2 ? 0.25 : 0.5);
    stkt_write_npy(stkt_path("f32.npy"), "<f4", "False", "(30, 4)", 64, singles, sizeof singles);
    for (int round = 0; round < 4; round++) {
        stkt_images images = sizes;
        stk_loader *loader;
        double expected[30 * 4];

        images.way = round % 2 ? STKT_PART : STKT_WHOLE;
        for (int i = 0; i < 120; i++)
            expected[i] = round < 2 ? (double)whole[i] : (double)singles[i];
        assert_ok(open_images(&loader, &images,
                              "{dataset: {fields: {image: {" IMAGES
                              "transforms: [{crop: {field: boxes}}, {resize: [20, 22]}, " AFFINE
                              "]}, boxes: {path: %s}}}, loader: {batch_size: 8, order: random, num_workers: 2}}",
                              stkt_path(round < 2 ? "i64.npy" : "f32.npy")));
        check_rows(loader, 20, 22, expect_boxed, expected);
    }
    whole[4 * 11 + 2] = 100; /* record 11: taller than its image */
    stkt_write_npy(stkt_path("bad.npy"), "<i8", "False", "(30, 4)", 64, whole, sizeof whole);
    {
        stk_loader *loader;

        assert_ok(open_images(&loader, &sizes,
                              "{dataset: {fields: {image: {" IMAGES
                              "transforms: [{crop: {field: boxes}}, {resize: [20, 22]}]}, boxes: {path: %s}}}, loader: "
                              "{batch_size: 8}}",
                              stkt_path("bad.npy")));
        assert_int_equal(run_until_error(loader), STK_E_BAD_SHAPE);
        assert_says("record 11");
        assert_says("height 100");
    }
}

/* ---- photographs ---- */

/* Two JPEG images of 640 x 427, each six times. */
static void write_photo_list(void)
{
    FILE *file = fopen(stkt_path("photos.lst"), "w");

    assert_non_null(file);
    for (int i = 0; i < 12; i++)
        fprintf(file, STKT_TESTS_DIR "/data/photos/%s.jpg\n", i % 2 ? "flower" : "china");
    fclose(file);
}

static stk_status open_photos(stk_loader **out, const char *decode, const char *transforms, int workers)
{
    return open_images(
        out, NULL,
        "{dataset: {fields: {image: {path: %s, source: {layout: nhwc, decode: %s}, transforms: [%s]}, box: "
        "{path: %s}}}, loader: {batch_size: 5, num_workers: %d}}",
        stkt_path("photos.lst"), decode, transforms, stkt_path("photo_boxes.npy"), workers);
}

/* Whole images, decoded directly by the reader. */
static uint8_t *decode_photos(void)
{
    const stki_reader_opts opts = {.name = "image"};
    uint8_t *pixels = malloc(2 * 427 * 640 * 3);
    stki_scratch scratch;
    stki_reader *reader;

    assert_ok(stki_reader_open(stkt_path("photos.lst"), &opts, &reader, &err));
    stki_scratch_init(&scratch);
    for (int i = 0; i < 2; i++) {
        stk_tensor image;

        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &image, &err));
        assert_int_equal(image.shape[0], 427);
        assert_int_equal(image.shape[1], 640);
        assert_int_equal(image.strides[0], 640 * 3);
        memcpy(pixels + i * 427 * 640 * 3, image.data, 427 * 640 * 3);
        stki_reader_done(reader, &image);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    return pixels;
}

/* Only a part of each image is decoded; the bytes equal those of the whole image, cropped and resized. */
static void test_parts_of_photographs(void **unused)
{
    int64_t boxes[12 * 4];
    uint64_t state = 9;
    uint8_t *photos, *expected = malloc(80 * 90 * 3);
    stk_loader *loader;
    stk_batch *batch;
    stk_status status = STK_OK;

    (void)unused;
    for (int i = 0; i < 12; i++) {
        boxes[i * 4 + 2] = stkt_random_in(&state, 9, 427);
        boxes[i * 4 + 3] = stkt_random_in(&state, 9, 640);
        boxes[i * 4] = stkt_random_in(&state, 0, 427 - boxes[i * 4 + 2]);
        boxes[i * 4 + 1] = stkt_random_in(&state, 0, 640 - boxes[i * 4 + 3]);
    }
    stkt_write_npy(stkt_path("photo_boxes.npy"), "<i8", "False", "(12, 4)", 64, boxes, sizeof boxes);
    write_photo_list();
    photos = decode_photos();
    assert_ok(open_photos(&loader, "exact", "{crop: {field: box}}, {resize: [80, 90]}", 2));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor x;

        assert_ok(stk_batch_tensor(batch, "image", &x, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            const int64_t index = stk_batch_indices(batch)[r], *box = boxes + index * 4;
            const stki_resize_job job = {
                box[2], box[3], 3, {0, 0, (double)box[3], (double)box[2]}, 80, 90, STKI_FILTER_BILINEAR, 0, 0, 80, 90};

            resize_by_hand(&job, photos + ((index % 2 * 427 + box[0]) * 640 + box[1]) * 3, 640, expected);
            assert_memory_equal((const uint8_t *)x.data + r * 80 * 90 * 3, expected, 80 * 90 * 3);
        }
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    stk_loader_destroy(loader);
    free(photos);
    free(expected);
}

/* The readers of image formats state the layout of their samples. */
static void test_layout_of_image_formats(void **unused)
{
    uint8_t *photos;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;

    (void)unused;
    write_photo_list();
    photos = decode_photos();
    assert_ok(open_images(&loader, NULL,
                          "{dataset: {fields: {image: {path: %s, layout: nchw}}}, loader: {batch_size: 2}}",
                          stkt_path("photos.lst")));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "image", &x, &err));
    assert_int_equal(x.shape[1], 3);
    assert_int_equal(x.shape[2], 427);
    for (int64_t i = 0; i < 427 * 640; i += 97)
        assert_int_equal(((const uint8_t *)x.data)[(3 + 2) * 427 * 640 + i], photos[(427 * 640 + i) * 3 + 2]);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    free(photos);
    assert_ok(open_images(&loader, NULL, "{dataset: {fields: {image: {path: %s}}}, loader: {batch_size: 4}}",
                          STKT_TESTS_DIR "/oracle/jpeg_folder"));
    assert_int_equal(run_until_error(loader), STK_E_MISMATCH);
    assert_says("[11, 12, 3]");
    assert_says("[10, 12, 3]");
    assert_status(open_images(&loader, NULL, "{dataset: {fields: {image: {path: %s, source: {layout: nchw}}}}}",
                              STKT_TESTS_DIR "/oracle/jpeg_folder"),
                  STK_E_CONFIG);
    assert_says("found nchw, but images");
}

/* `decode: fast` gives slightly different pixels, but the same bits with any number of workers. */
static void test_fast_photographs(void **unused)
{
    static const char *const lists[] = {"{resize: 100}, {center_crop: 96}", "{crop: {field: box}}, {resize: [40, 30]}",
                                        "{crop: {top: 33, left: 101, height: 359, width: 407}}, {resize: [64, 64]}"};

    (void)unused;
    for (int i = 0; i < 3; i++) {
        stk_loader *exact, *fast;
        stk_batch *a, *b;
        uint64_t h[2];

        assert_ok(open_photos(&exact, "exact", lists[i], 1));
        assert_ok(open_photos(&fast, "fast", lists[i], 1));
        while (stk_loader_next(exact, &a, &err) == STK_OK) {
            stk_tensor x, y;
            int64_t distance = 0, count;

            assert_ok(stk_loader_next(fast, &b, &err));
            assert_ok(stk_batch_tensor(a, "image", &x, &err));
            assert_ok(stk_batch_tensor(b, "image", &y, &err));
            count = stk_tensor_nbytes(&x);
            for (int64_t k = 0; k < count; k++)
                distance += llabs(((const uint8_t *)x.data)[k] - ((const uint8_t *)y.data)[k]);
            if (distance > count * 3)
                fail_msg("%s: pixels differ by %g on average", lists[i], (double)distance / (double)count);
            stk_batch_release(a);
            stk_batch_release(b);
        }
        stk_loader_destroy(exact);
        stk_loader_destroy(fast);
        for (int workers = 0; workers < 2; workers++) {
            assert_ok(open_photos(&fast, "fast", lists[i], workers * 3));
            h[workers] = hash_of_run(fast);
        }
        assert_true(h[0] == h[1]);
    }
}

/* ---- rejected configs and samples ---- */

static void test_configs_that_are_refused(void **unused)
{
    static const struct {
        const char *transforms, *says;
    } cases[] = {
        {"[{resize: 20}, {resize: 10}]", "second resize"},
        {"[{normalize: imagenet}, {resize: 20}]", "found resize after arithmetic"},
        {"[{cast: f32}, {crop: {top: 0, left: 0, height: 1, width: 1}}]", "found crop after arithmetic or cast"},
        {"[{resize: 0}]", "expected 1 to 65535 pixels"},
        {"[{resize: [3]}]", "expected a number of pixels or [height, width]"},
        {"[{resize: {filter: box}}]", "size is missing"},
        {"[{resize: {size: 20, filter: cubic}}]", "bicubic"},
        {"[{resize: {size: 20, filer: box}}]", "did you mean filter"},
        {"[{resize: {size: 20, box: [1, 2, 3]}}]", "expected [left, top, right, bottom]"},
        {"[{resize: {size: 20, box: [3, 0, 3, 9]}}]", "left < right"},
        {"[{resize: {size: [20, 20], box: [0, 0, 54, 20]}}]", "expected at least 20 x 54 for the box"},
        {"[{crop: {top: 0, left: 0, height: 9}}]", "width is missing"},
        {"[{crop: {top: -1, left: 0, height: 9, width: 9}}]", "expected 0 to 65535 pixels"},
        {"[{crop: {top: 30, left: 0, height: 9, width: 9}}]", "expected at least 39 x 9"},
        {"[{crop: 20}]", "expected a map"},
        {"[{center_crop: 38}]", "center_crop does not pad"},
        {"[{resize: 20}, {center_crop: [20, 40]}]", "center_crop does not pad"},
        {"[{crop: {field: boxes}}, {resize: 20}]", "still have different shapes"},
        {"[{crop: {field: boxes}}, {resize: [20, 20]}]", "there is no field boxes"},
        {"[{crop: {field: other}}, {resize: [20, 20]}]", "expected four numbers each"},
        {"[{crop: {field: boxes}}]", "needs a resize after it"},
        {"[{crop: {field: boxes}}, {center_crop: 9}]", "expected resize"},
        {"[{center_crop: 9}, {crop: {field: boxes}}, {resize: 9}]", "expected it to come first"},
        {"[{crop: {field: boxes, top: 3}}, {resize: 9}]", "expected field alone"},
        {"[{centre_crop: 9}]", "did you mean center_crop"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader;
        stk_status status =
            open_images(&loader, NULL,
                        "{dataset: {fields: {image: {synthetic: {count: 4, shape: [37, 53, 3]}, source: "
                        "{layout: nhwc}, transforms: %s}, other: {synthetic: {count: 4, shape: [3]}}}}}",
                        cases[i].transforms);

        if (status >= 0)
            fail_msg("%s: was accepted", cases[i].transforms);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].transforms, err.message, cases[i].says);
    }
}

static void test_fields_that_are_refused(void **unused)
{
    static const struct {
        const char *field, *says;
    } cases[] = {
        {"synthetic: {count: 4, shape: [37, 53, 3]}, transforms: [{resize: 20}]", "source: {layout: nhwc}"},
        {"synthetic: {count: 4, shape: [37, 53, 3], dtype: f32}, source: {layout: nhwc}, transforms: [{resize: 20}]",
         "expected uint8"},
        {"synthetic: {count: 4, shape: [3, 37, 53]}, source: {layout: nchw}, transforms: [{resize: 20}]",
         "expected source: {layout: nhwc}"},
        {"synthetic: {count: 4, shape: [37, 53, 5]}, source: {layout: nhwc}, transforms: [{resize: 20}]",
         "1 to 4 channels"},
        {"synthetic: {count: 4, shape: [2, 60000, 3]}, source: {layout: nhwc}, transforms: [{resize: 20}]",
         "expected 1 to 65535"},
        {"synthetic: {count: 4, shape: [37, 53, 3], min_length: 9}, source: {layout: nhwc}, transforms: [{resize: 20}]",
         "still have different shapes"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader;
        stk_status status = open_images(&loader, NULL, "{dataset: {fields: {image: {%s}}}}", cases[i].field);

        if (status >= 0)
            fail_msg("%s: was accepted", cases[i].field);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].field, err.message, cases[i].says);
    }
}

static void test_samples_that_are_refused(void **unused)
{
    static const struct {
        enum stkt_image_way way;
        const char *transforms, *says;
        stk_status status;
    } cases[] = {
        {STKT_WHOLE, "{center_crop: 50}", "center_crop does not pad", STK_E_BAD_SHAPE},
        {STKT_WHOLE, "{crop: {top: 20, left: 20, height: 20, width: 20}}", "expected at least 40 x 40",
         STK_E_BAD_SHAPE},
        {STKT_TOO_FEW, "{resize: [9, 9]}", "less than the requested part", STK_E_CORRUPT},
        {STKT_OTHER, "{resize: [9, 9]}", "shape of the sample", STK_E_CORRUPT},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int workers = 0; workers < 3; workers += 2) {
            stkt_images images = sizes;
            stk_loader *loader;

            images.way = cases[i].way;
            assert_ok(open_images(&loader, &images,
                                  "{dataset: {fields: {image: {" IMAGES
                                  "transforms: [%s]}}}, loader: {batch_size: 4, num_workers: %d}}",
                                  cases[i].transforms, workers));
            assert_int_equal(run_until_error(loader), cases[i].status);
            assert_says(cases[i].says);
            assert_says("images: record ");
        }
}

/* The n-th allocation fails: opening or a batch returns an error, nothing leaks and nothing blocks. */
static void test_no_memory(void **unused)
{
    int failures = 0;

    (void)unused;
    for (int64_t n = 1;; n++) {
        stkt_images images = sizes;
        stk_loader *loader = NULL;
        stk_status status;

        images.way = STKT_TURNED;
        stki_memory_fail_at(n);
        status =
            open_images(&loader, &images,
                        "{dataset: {fields: {image: {" IMAGES
                        "transforms: [{resize: 31}, {center_crop: 30}]}}}, loader: {batch_size: 30, num_workers: 0}}");
        if (status == STK_OK)
            status = run_until_error(loader);
        stki_memory_fail_at(0);
        if (status == STK_END)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        failures++;
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize_of_one_shape),
        cmocka_unit_test(test_large_results),
        cmocka_unit_test(test_shorter_side_and_center),
        cmocka_unit_test(test_crops_before_and_after_resize),
        cmocka_unit_test(test_crop_is_a_view),
        cmocka_unit_test(test_images_of_many_sizes),
        cmocka_unit_test(test_center_of_many_sizes),
        cmocka_unit_test(test_crop_of_many_sizes),
        cmocka_unit_test(test_images_decoded_at_half_size),
        cmocka_unit_test(test_workers_change_nothing),
        cmocka_unit_test(test_images_that_are_alike),
        cmocka_unit_test(test_images_without_a_layout),
        cmocka_unit_test(test_a_box_for_each_sample),
        cmocka_unit_test(test_parts_of_photographs),
        cmocka_unit_test(test_layout_of_image_formats),
        cmocka_unit_test(test_fast_photographs),
        cmocka_unit_test(test_configs_that_are_refused),
        cmocka_unit_test(test_fields_that_are_refused),
        cmocka_unit_test(test_samples_that_are_refused),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
