/* stki-threads */
/* Tests of color transforms in a loader. Deterministic steps must give the pixels that this file computes step by step,
 * in any layout, even with rotation or resizing. Random steps must have torchvision's distributions and give the same
 * bits with any number of workers. */
#include "color_steps.h"
#include "io_files.h"
#include "loader_test.h"
#include "order_statistics.h"
#include "test_random.h"
#include <math.h>

static stk_error err;

enum { HEIGHT = 90, WIDTH = 61, COUNT = 5, DRAWS = 40000 };

static uint8_t images[COUNT][HEIGHT][WIDTH][3];

static void write_images(void)
{
    uint64_t random = 5;

    for (size_t i = 0; i < sizeof images; i++)
        ((uint8_t *)images)[i] = (uint8_t)stkt_random(&random);
    stkt_write_npy(stkt_path("images.npy"), "|u1", "False", "(5, 90, 61, 3)", 64, images, sizeof images);
}

/* Applies the steps to the image, which may be mirrored, and stores the result as planes. */
static void by_hand(const uint8_t image[HEIGHT][WIDTH][3], bool mirrored, const stki_color_step *steps, int count,
                    float planes[3][HEIGHT * WIDTH])
{
    float *p[3] = {planes[0], planes[1], planes[2]}, mean;

    for (int i = 0; i < HEIGHT * WIDTH * 3; i++) {
        const int c = i % 3, x = i / 3 % WIDTH, y = i / 3 / WIDTH;

        planes[c][y * WIDTH + (mirrored ? WIDTH - 1 - x : x)] = image[y][x][c];
    }
    for (int i = 0; i < count; i++) {
        mean = stki_color_mean(stki_color_loops_ref.sum(p[0], p[1], p[2], HEIGHT * WIDTH), HEIGHT * WIDTH);
        stki_color_run(&stki_color_loops_ref, &steps[i], 1, &mean, p, 3, HEIGHT * WIDTH);
    }
}

static void fixed_steps(void **state)
{
    static const char *const layouts[] = {"nchw", "nhwc", "channels_last"};
    static float planes[3][HEIGHT * WIDTH];
    const stki_color_step steps[] = {{STKI_COLOR_BRIGHTNESS, 1.5f, -0.5f, {0}}, {STKI_COLOR_CONTRAST, 0.5f, 0.5f, {0}},
                                     {STKI_COLOR_SATURATION, 2, -1, {0}},       {STKI_COLOR_HUE, 0.25f, 0.75f, {0}},
                                     {STKI_COLOR_CONTRAST, 3, -2, {0}},         {STKI_COLOR_PERMUTE, 0, 0, {2, 0, 1}}};

    (void)state;
    for (int l = 0; l < 3; l++)
        for (int kind = 0; kind < 6; kind++) {
            const bool mirrored = kind & 1;
            const int to = kind / 2; /* f32 normalized; u8; i8 quantized */
            const char *ends[] = {"{normalize: {mean: [0.5, 0.25, 0.125], std: 0.25, scale: unit}}", "{cast: u8}",
                                  "{quantize: {scale: 2, zero_point: -10}}"};
            stk_loader *loader;
            stk_batch *batch;
            stk_tensor t;

            assert_ok(
                stkt_open(&loader,
                          "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, layout: %s, transforms: [%s"
                          "{brightness: 1.5}, {contrast: 0.5}, {saturation: 2}, {hue: 0.25}, {contrast: 3}, "
                          "{channel_swap: [2, 0, 1]}, %s]}}}\nloader: {batch_size: 5, num_workers: 2}",
                          stkt_path("images.npy"), layouts[l], mirrored ? "{horizontal_flip: {}}, " : "", ends[to]));
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "image", &t, &err));
            for (int64_t i = 0; i < COUNT; i++) {
                by_hand(images[i], mirrored, steps, 6, planes);
                for (int64_t k = 0; k < 3 * HEIGHT * WIDTH; k++) {
                    const int64_t c = k / (HEIGHT * WIDTH), y = k / WIDTH % HEIGHT, x = k % WIDTH, *s = t.strides;
                    const char *element = (const char *)t.data + i * s[0] +
                                          (l == 1 ? y * s[1] + x * s[2] + c * s[3] : c * s[1] + y * s[2] + x * s[3]);
                    const float value = planes[c][y * WIDTH + x];

                    if (to == 0) {
                        const double mean = c == 0 ? 0.5 : c == 1 ? 0.25 : 0.125;
                        const float a = (float)(4 / 255.0), b = (float)(-mean * 4);

                        assert_true(*(const float *)(const void *)element == fmaf(value, a, b));
                    } else if (to == 1) {
                        assert_true(*(const uint8_t *)element == (uint8_t)rintf(value));
                    } else {
                        const float q = rintf(value * 0.5f) - 10;

                        assert_true(*(const int8_t *)element == (int8_t)(q > 127 ? 127 : q));
                    }
                }
            }
            stk_batch_release(batch);
            stk_loader_destroy(loader);
        }
}

/* ---- random steps ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void expect_uniform(const char *what, double *values, int n, double low, double high)
{
    double most = 0;

    qsort(values, (size_t)n, sizeof *values, ascending);
    for (int i = 0; i < n; i++) {
        const double f = (values[i] - low) / (high - low);

        most = fmax(most, fmax(fabs(f - (double)i / n), fabs((double)(i + 1) / n - f)));
    }
    if (most * sqrt(n) > 1.95)
        fail_msg("%s: distance %.5f", what, most);
}

/* ColorJitter(brightness=0.4, contrast=[0.5, 3], saturation=1.5, hue=0.1): the four operations in random order, with
 * factors uniform in [0.6, 1.4], [0.5, 3], [0, 2.5] and [-0.1, 0.1]. */
static void jitter_as_torchvision(void **state)
{
    static const double low[] = {0.6, 0.5, 0, -0.1}, high[] = {1.4, 3, 2.5, 0.1};
    static const char jitter[] = "{brightness: 0.4, contrast: [0.5, 3], saturation: 1.5, hue: 0.1}";
    stki_colors colors = {0};
    stki_document *document;
    double *values[4], expected[24];
    int64_t orders[24] = {0};

    (void)state;
    assert_ok(stki_document_parse(jitter, (int64_t)strlen(jitter), "text", NULL, &document, &err));
    assert_ok(stki_colors_read(&colors, "color_jitter", stki_document_root(document), "image/0", &err));
    for (int k = 0; k < 4; k++)
        values[k] = malloc(DRAWS * sizeof *values[k]);
    for (int64_t i = 0; i < DRAWS; i++) {
        const stki_occasion occasion = {stki_draw_key(1, 2), i};
        stki_color_step steps[STKI_COLOR_STEPS];
        uint64_t order[4];

        assert_int_equal(stki_colors_draw(&colors, &occasion, steps), 4);
        for (int k = 0; k < 4; k++) {
            order[k] = steps[k].kind;
            values[steps[k].kind][i] = steps[k].factor;
            assert_true(fabs(steps[k].factor + steps[k].rest - 1) < 1e-6);
        }
        orders[stkt_lexical_rank(order, 4)]++;
    }
    for (int k = 0; k < 4; k++)
        expect_uniform("factor", values[k], DRAWS, low[k], high[k]);
    for (int i = 0; i < 24; i++)
        expected[i] = DRAWS / 24.0;
    stkt_expect_score("order", 24, stkt_chi_square_score(stkt_chi_square(orders, expected, 24), 23), 4);
    for (int k = 0; k < 4; k++)
        free(values[k]);
    stki_document_destroy(document);
}

static void grays_and_permutations(void **state)
{
    stki_colors colors = {.count = 2};
    int64_t grays = 0, orders[6] = {0};
    double expected[6];

    (void)state;
    colors.steps[0] = (stki_color_operation_step){
        .operation = STKI_OP_GRAYSCALE, .p = 0.2, .draw = stki_draw_name("a", "random_grayscale")};
    colors.steps[1] = (stki_color_operation_step){.operation = STKI_OP_RANDOM_PERMUTATION,
                                                  .draw = stki_draw_name("a", "random_channel_permutation")};
    for (int64_t i = 0; i < DRAWS; i++) {
        const stki_occasion occasion = {stki_draw_key(1, 2), i};
        stki_color_step steps[STKI_COLOR_STEPS];
        const int count = stki_colors_draw(&colors, &occasion, steps);
        const uint64_t order[] = {steps[count - 1].from[0], steps[count - 1].from[1], steps[count - 1].from[2]};

        grays += count == 2;
        assert_int_equal(steps[count - 1].kind, STKI_COLOR_PERMUTE);
        orders[stkt_lexical_rank(order, 3)]++;
    }
    assert_true(fabs((double)grays - 0.2 * DRAWS) < 4 * sqrt(0.16 * DRAWS));
    for (int i = 0; i < 6; i++)
        expected[i] = DRAWS / 6.0;
    stkt_expect_score("permutations", 6, stkt_chi_square_score(stkt_chi_square(orders, expected, 6), 5), 4);
}

/* Row F05 again, with all transforms that have random state. */
static void workers_change_nothing(void **state)
{
    uint64_t first = 0;

    (void)state;
    for (int run = 0; run < 12; run++) {
        static const int workers[] = {0, 1, 4, 16};
        stk_loader *loader;
        stk_batch *batch;
        uint64_t h = 1;

        assert_ok(stkt_open(
            &loader,
            "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, layout: nchw, transforms: "
            "[{random_resized_crop: 40}, {random_horizontal_flip: {}}, {color_jitter: {brightness: 0.4, contrast: 0.4, "
            "saturation: 0.4, hue: 0.1}}, {random_grayscale: 0.5}, {normalize: imagenet}]}}}\n"
            "loader: {batch_size: 2, num_workers: %d, num_epochs: 4, seed: 8, order: random, tile_bytes: 1024}",
            stkt_path("images.npy"), workers[run % 4]));
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            h = stkt_hash_batch(h, loader, batch);
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
        assert_true(run == 0 || h == first);
        first = h;
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *transforms, *message;
    } cases[] = {
        {"[{brightness: -1}]", "a number of at least 0"},
        {"[{hue: 0.6}]", "-0.5 to 0.5"},
        {"[{color_jitter: {hue: 0.6}}]", "0 to 0.5"},
        {"[{color_jitter: {contrast: [2, 1]}}]", "low <= high"},
        {"[{color_jitter: {brightnes: 1}}]", "did you mean brightness?"},
        {"[{grayscale: 1}]", "color: gray"},
        {"[{random_grayscale: 2}]", "0 to 1"},
        {"[{channel_swap: [0, 0, 1]}]", "once each"},
        {"[{normalize: imagenet}, {hue: 0.1}]", "before them"},
        {"[{hue: 0.1}, {horizontal_flip: {}}]", "steps that move pixels come first"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader = NULL;
        char text[1024];

        snprintf(text, sizeof text, "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: %s}}}",
                 stkt_path("images.npy"), cases[i].transforms);
        memset(&err, 0, sizeof err);
        if (stk_loader_open_text(text, NULL, NULL, 0, &loader, &err) == STK_OK ||
            !strstr(err.message, cases[i].message))
            fail_msg("%s: found \"%s\", expected \"%s\"", cases[i].transforms, err.message, cases[i].message);
    }
    assert_int_equal(stkt_open(&(stk_loader *){NULL},
                               "dataset: {fields: {image: {synthetic: {shape: [4, 4, 3], dtype: f32}, "
                               "source: {layout: nhwc}, transforms: [{hue: 0.1}]}}}"),
                     STK_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fixed_steps), cmocka_unit_test(jitter_as_torchvision),
                                       cmocka_unit_test(grays_and_permutations),
                                       cmocka_unit_test(workers_change_nothing), cmocka_unit_test(refusals)};

    write_images();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
