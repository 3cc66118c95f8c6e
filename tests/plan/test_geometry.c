/* stki-threads */
/* Tests of transforms that move pixels. A loader with any list of them must give the bytes that this file computes
 * pixel by pixel, one step after another, in any layout and dtype. Random steps must have torchvision's distributions,
 * share draws where the config requires it, and give the same bits with any number of workers. */
#include "image_reader.h"
#include "io_files.h"
#include "loader_test.h"
#include "order_statistics.h"
#include "resize.h"
#include "test_random.h"
#include <math.h>

static stk_error err;

/* ---- reference: one step after another, pixel by pixel ---- */

enum { MOST = 200 * 200 };

typedef struct picture {
    int64_t height, width;
    uint8_t pixels[3 * MOST];
} picture;

static uint8_t *at(picture *p, int64_t y, int64_t x)
{
    return p->pixels + 3 * (y * p->width + x);
}

static void plain_crop(picture *p, int64_t top, int64_t left, int64_t height, int64_t width)
{
    static picture out;

    out.height = height;
    out.width = width;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            memcpy(at(&out, y, x), at(p, top + y, left + x), 3);
    *p = out;
}

static void plain_flip(picture *p, bool vertical)
{
    static picture out;

    out = *p;
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++)
            memcpy(at(&out, y, x), vertical ? at(p, p->height - 1 - y, x) : at(p, y, p->width - 1 - x), 3);
    *p = out;
}

/* numpy.rot90 */
static void plain_rotate(picture *p, int quarters)
{
    static picture out;

    for (int q = 0; q < quarters; q++) {
        out.height = p->width;
        out.width = p->height;
        for (int64_t y = 0; y < out.height; y++)
            for (int64_t x = 0; x < out.width; x++)
                memcpy(at(&out, y, x), at(p, x, p->width - 1 - y), 3);
        *p = out;
    }
}

/* Modes of numpy.pad: the source index for index i of an axis of n; -1 for the fill. */
static int64_t padded_index(const char *mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (strcmp(mode, "constant") == 0)
        return -1;
    if (strcmp(mode, "edge") == 0)
        return i < 0 ? 0 : n - 1;
    if (strcmp(mode, "reflect") == 0)
        return i < 0 ? -i : 2 * (n - 1) - i;
    return i < 0 ? -i - 1 : 2 * n - 1 - i;
}

/* The window of `height` x `width` at (top, left), which may extend beyond the image. */
static void plain_window(picture *p, const char *mode, const uint8_t *fill, int64_t top, int64_t left, int64_t height,
                         int64_t width)
{
    static picture out;

    out.height = height;
    out.width = width;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            const int64_t v = padded_index(mode, top + y, p->height), u = padded_index(mode, left + x, p->width);

            memcpy(at(&out, y, x), v < 0 || u < 0 ? fill : at(p, v, u), 3);
        }
    *p = out;
}

static void plain_resize(picture *p, int64_t height, int64_t width)
{
    static picture out;
    stki_resizer *resizer;
    const stki_resize_job job = {.in_height = p->height,
                                 .in_width = p->width,
                                 .channels = 3,
                                 .box = {0, 0, (double)p->width, (double)p->height},
                                 .out_height = height,
                                 .out_width = width,
                                 .filter = STKI_FILTER_BICUBIC};

    assert_ok(stki_resizer_create_isa(STKI_ISA_REF, &resizer, &err));
    assert_ok(stki_resizer_set(resizer, &job, &err));
    out.height = height;
    out.width = width;
    stki_resizer_run(resizer, p->pixels, p->width * 3, out.pixels, width * 3);
    stki_resizer_destroy(resizer);
    *p = out;
}

/* ---- lists of steps ---- */

typedef struct list {
    char text[2048];
    size_t used;
    bool padded, resized;
} list;

static void STK_PRINTF(2, 3) add(list *l, const char *format, ...)
{
    va_list args;

    if (l->used > 0)
        l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, ", ");
    va_start(args, format);
    l->used += (size_t)vsnprintf(l->text + l->used, sizeof l->text - l->used, format, args);
    va_end(args);
}

static void random_crop_step(list *l, picture *p, uint64_t *random)
{
    const int64_t height = stkt_random_in(random, 1, p->height), width = stkt_random_in(random, 1, p->width);
    const int64_t top = stkt_random_in(random, 0, p->height - height),
                  left = stkt_random_in(random, 0, p->width - width);

    add(l, "{crop: {top: %d, left: %d, height: %d, width: %d}}", (int)top, (int)left, (int)height, (int)width);
    plain_crop(p, top, left, height, width);
}

static void pad_step(list *l, picture *p, uint64_t *random)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "symmetric"};
    const char *mode = modes[stkt_random_in(random, 0, 3)];
    const int64_t spare = strcmp(mode, "reflect") == 0, most_y = p->height - spare, most_x = p->width - spare;
    int64_t pad[4];
    const uint8_t fill[3] = {9, 200, 31};

    for (int i = 0; i < 4; i++) {
        const int64_t most = i % 2 ? most_y : most_x;

        pad[i] = stkt_random_in(random, 0, most < 40 ? most : 40);
    }
    if (pad[0] + pad[1] + pad[2] + pad[3] == 0)
        return;
    l->padded = true;
    if (strcmp(mode, "constant") == 0)
        add(l, "{pad: {padding: [%d, %d, %d, %d], fill: [9, 200, 31]}}", (int)pad[0], (int)pad[1], (int)pad[2],
            (int)pad[3]);
    else
        add(l, "{pad: {padding: [%d, %d, %d, %d], padding_mode: %s}}", (int)pad[0], (int)pad[1], (int)pad[2],
            (int)pad[3], mode);
    plain_window(p, mode, fill, -pad[1], -pad[0], p->height + pad[1] + pad[3], p->width + pad[0] + pad[2]);
}

static void translate_step(list *l, picture *p, uint64_t *random)
{
    const uint8_t fill[3] = {77, 77, 77};
    const int64_t right = stkt_random_in(random, -p->width - 2, p->width + 2);
    const int64_t down = stkt_random_in(random, -p->height - 2, p->height + 2);

    l->padded = true;
    add(l, "{translate: {x: %d, y: %d, fill: 77}}", (int)right, (int)down);
    plain_window(p, "constant", fill, -down, -right, p->height, p->width);
}

static void step(list *l, picture *p, uint64_t *random)
{
    static const char *const flips[] = {"horizontal_flip", "vertical_flip"};
    const int kind = (int)stkt_random_in(random, 0, l->used > 0 ? 5 : 9);

    switch (kind) {
    case 0:
        random_crop_step(l, p, random);
        break;
    case 1:
    case 2:
        add(l, "{%s: %s}", flips[kind - 1], *random & 64 ? "true" : "{}");
        plain_flip(p, kind == 2);
        break;
    case 3: {
        const int quarters = (int)stkt_random_in(random, 0, 3);

        add(l, "{rotate: %d}", 90 * (*random & 64 ? quarters : quarters - 4));
        plain_rotate(p, quarters);
        break;
    }
    case 4:
        if (!l->padded)
            pad_step(l, p, random);
        break;
    case 5:
        if (!l->padded)
            translate_step(l, p, random);
        break;
    default: {
        /* Large results are made in strips. */
        const int64_t most = *random & 64 ? 20 : 110;
        const int64_t height = stkt_random_in(random, most / 2, most), width = stkt_random_in(random, most / 2, most);

        if (l->resized || l->used > 0) /* the loader does an earlier flip after resizing, which rounds differently */
            break;
        l->resized = true;
        add(l, "{resize: {size: [%d, %d], interpolation: bicubic}}", (int)height, (int)width);
        plain_resize(p, height, width);
    }
    }
}

/* ---- against a loader ---- */

enum { HEIGHT = 13, WIDTH = 17, COUNT = 3 };

static uint8_t images[COUNT][HEIGHT][WIDTH][3], planes[COUNT][3][HEIGHT][WIDTH];

static int write_images(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                for (int c = 0; c < 3; c++)
                    images[i][y][x][c] = planes[i][c][y][x] = (uint8_t)stkt_random(&random);
    stkt_write_npy(stkt_path("images.npy"), "|u1", "False", "(3, 13, 17, 3)", 64, images, sizeof images);
    stkt_write_npy(stkt_path("planes.npy"), "|u1", "False", "(3, 3, 13, 17)", 64, planes, sizeof planes);
    return 0;
}

/* The expected element for pixel (y, x) and channel c: the u8 value, or as f32 twice the value minus 2. */
static void expect_pixel(const stk_tensor *t, const char *layout, int64_t row, const picture *p, int64_t y, int64_t x,
                         int64_t c, const char *list_text)
{
    const bool hwc = strcmp(layout, "nhwc") == 0;
    const int64_t *s = t->strides;
    const char *element =
        (const char *)t->data + row * s[0] + (hwc ? y * s[1] + x * s[2] + c * s[3] : c * s[1] + y * s[2] + x * s[3]);
    const uint8_t expected = p->pixels[3 * (y * p->width + x) + c];
    const float found = t->dtype == STK_U8 ? (float)*(const uint8_t *)element : *(const float *)(const void *)element;

    if (found != (t->dtype == STK_U8 ? (float)expected : 2.0f * expected - 2.0f))
        fail_msg("row %lld, y %lld, x %lld, channel %lld of %s, layout %s: found %g for the pixel value %d",
                 (long long)row, (long long)y, (long long)x, (long long)c, list_text, layout, (double)found, expected);
}

static void expect_batch(const stk_batch *batch, const char *layout, const picture *made, const char *list_text)
{
    const bool hwc = strcmp(layout, "nhwc") == 0;
    stk_tensor t;

    assert_ok(stk_batch_tensor(batch, "image", &t, &err));
    for (int64_t row = 0; row < COUNT; row++) {
        const picture *p = &made[row];

        assert_int_equal(t.shape[hwc ? 1 : 2], p->height);
        assert_int_equal(t.shape[hwc ? 2 : 3], p->width);
        for (int64_t y = 0; y < p->height; y++)
            for (int64_t x = 0; x < p->width; x++)
                for (int64_t c = 0; c < 3; c++)
                    expect_pixel(&t, layout, row, p, y, x, c, list_text);
    }
}

static void any_list(void **state)
{
    static const char *const layouts[] = {"nchw", "nhwc", "channels_last"};
    static picture made[COUNT];
    uint64_t random = 77;

    (void)state;
    for (int round = 0; round < 400; round++) {
        const char *layout = layouts[round % 3];
        const bool arithmetic = round % 2;
        const int steps = (int)stkt_random_in(&random, 1, 6);
        const uint64_t start = random;
        list l = {0};
        bool planar;
        stk_loader *loader;
        stk_batch *batch;

        for (int i = 0; i < COUNT; i++) {
            l = (list){0};
            random = start;
            made[i].height = HEIGHT;
            made[i].width = WIDTH;
            memcpy(made[i].pixels, images[i], sizeof images[i]);
            for (int k = 0; k < steps; k++)
                step(&l, &made[i], &random);
        }
        planar = !l.resized && stkt_random_in(&random, 0, 1);
        if (arithmetic)
            add(&l, "{normalize: {mean: 0.5, std: 0.25, scale: 0.5}}");
        assert_ok(
            stkt_open(&loader,
                      "dataset: {fields: {image: {path: %s, source: {layout: %s}, layout: %s, transforms: [%s]}}}\n"
                      "loader: {batch_size: 3, num_workers: 0}",
                      stkt_path(planar ? "planes.npy" : "images.npy"), planar ? "nchw" : "nhwc", layout, l.text));
        if (stk_loader_next(loader, &batch, &err) != STK_OK)
            fail_msg("%s: %s", l.text, err.message);
        expect_batch(batch, layout, made, l.text);
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
}

/* The window begins inside the image, and its reflection shows pixels from before it. */
static void reflections_of_earlier_pixels(void **state)
{
    static const char *const modes[] = {"reflect", "symmetric"}, *const layouts[] = {"nchw", "nhwc"};
    static picture made[COUNT];

    (void)state;
    for (int m = 0; m < 4; m++) {
        char list_text[256];
        stk_loader *loader;
        stk_batch *batch;

        snprintf(
            list_text, sizeof list_text,
            "{pad: {padding: [0, 0, 15, 11], padding_mode: %s}}, {crop: {top: 8, left: 10, height: 14, width: 20}}",
            modes[m % 2]);
        for (int i = 0; i < COUNT; i++) {
            made[i].height = HEIGHT;
            made[i].width = WIDTH;
            memcpy(made[i].pixels, images[i], sizeof images[i]);
            plain_window(&made[i], modes[m % 2], NULL, 8, 10, 14, 20);
        }
        assert_ok(stkt_open(&loader,
                            "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, layout: %s, transforms: "
                            "[%s]}}}\nloader: {batch_size: 3, num_workers: 0}",
                            stkt_path("images.npy"), layouts[m / 2], list_text));
        assert_ok(stk_loader_next(loader, &batch, &err));
        expect_batch(batch, layouts[m / 2], made, list_text);
        stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
}

/* ---- random steps ---- */

enum { SIDE = 12, DRAWS = 40000 };

/* Writes `count` copies of one image whose pixels contain their own coordinates. */
static void write_places(const char *name, int64_t count)
{
    uint8_t *places = malloc((size_t)(count * SIDE * SIDE * 3));

    for (int64_t i = 0; i < count * SIDE * SIDE; i++) {
        places[3 * i] = (uint8_t)(i / SIDE % SIDE);
        places[3 * i + 1] = (uint8_t)(i % SIDE);
        places[3 * i + 2] = 100;
    }
    char shape[64];

    snprintf(shape, sizeof shape, "(%d, %d, %d, 3)", (int)count, SIDE, SIDE);
    stkt_write_npy(stkt_path(name), "|u1", "False", shape, 64, places, (size_t)(count * SIDE * SIDE * 3));
    free(places);
}

/* Where the first pixel of a row comes from, and how far one step down or right moves in the source image. */
typedef struct seen {
    int y, x, down_y, down_x, right_y, right_x;
} seen;

static seen look(const uint8_t *row, int64_t width)
{
    const uint8_t *right = row + 3, *down = row + 3 * width;

    return (seen){row[0], row[1], down[0] - row[0], down[1] - row[1], right[0] - row[0], right[1] - row[1]};
}

/* Fills `out` with the first `most` rows of successive epochs. */
static int64_t look_at_all(const char *transforms, int64_t width, seen *out, int64_t most)
{
    stk_loader *loader;
    stk_batch *batch;
    int64_t n = 0;

    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: [%s]}}}\n"
                        "loader: {batch_size: 100, num_workers: 2, num_epochs: 0, seed: 3, order: random}",
                        stkt_path("places.npy"), transforms));
    while (n < most) {
        stk_tensor t;

        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch) && n < most; r++)
            out[n++] = look((const uint8_t *)t.data + r * t.strides[0], width);
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    return n;
}

static void expect_uniform(const char *what, const int64_t *counts, int cells)
{
    double expected[256];

    for (int i = 0; i < cells; i++)
        expected[i] = (double)DRAWS / cells;
    stkt_expect_score(what, cells, stkt_chi_square_score(stkt_chi_square(counts, expected, cells), cells - 1), 4);
}

/* As in torchvision: randint(0, H - h + 1), and the same for the width. */
static void crops_are_uniform(void **state)
{
    seen *all = malloc(DRAWS * sizeof *all);
    int64_t cells[5 * 8] = {0};

    (void)state;
    look_at_all("{random_crop: [8, 5]}", 5, all, DRAWS);
    for (int i = 0; i < DRAWS; i++) {
        assert_in_range(all[i].y, 0, 4);
        assert_in_range(all[i].x, 0, 7);
        assert_int_equal(all[i].down_y, 1);
        assert_int_equal(all[i].right_x, 1);
        cells[all[i].y * 8 + all[i].x]++;
    }
    expect_uniform("random_crop", cells, 40);
    free(all);
}

/* With padding 2 and fill 50, the offset of the crop is computed from its center pixel. */
static void padded_crops_are_uniform(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    int64_t cells[25] = {0}, n = 0;

    (void)state;
    assert_ok(
        stkt_open(&loader,
                  "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: [{random_crop: {size: "
                  "12, padding: 2, fill: 50}}]}}}\n"
                  "loader: {batch_size: 100, num_workers: 2, num_epochs: 0, seed: 3}",
                  stkt_path("places.npy")));
    while (n < DRAWS) {
        stk_tensor t;

        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch) && n < DRAWS; r++, n++) {
            const uint8_t(*p)[SIDE][3] = (const void *)((const uint8_t *)t.data + r * t.strides[0]);
            const int top = p[6][6][0] - 6, left = p[6][6][1] - 6;

            assert_in_range(top + 2, 0, 4);
            assert_in_range(left + 2, 0, 4);
            cells[(top + 2) * 5 + left + 2]++;
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++) {
                    const bool in = y + top >= 0 && y + top < SIDE && x + left >= 0 && x + left < SIDE;

                    assert_int_equal(p[y][x][0], in ? y + top : 50);
                    assert_int_equal(p[y][x][1], in ? x + left : 50);
                    assert_int_equal(p[y][x][2], in ? 100 : 50);
                }
        }
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    expect_uniform("padded random_crop", cells, 25);
}

/* ---- padded windows of wide images ---- */

enum { WIDE_COUNT = 4, WIDE_HEIGHT = 12, WIDE_WIDTH = 576, ALL_AROUND = 40, ABOVE = 3 };

static uint8_t wide[WIDE_COUNT][WIDE_HEIGHT][WIDE_WIDTH][3];

/* A window into one of the images; `top` and `left` may be negative. */
typedef struct wide_window {
    int image, height, width, top, left;
    bool vertical, horizontal;
    const uint8_t *fill;
} wide_window;

static uint8_t wide_pixel(const wide_window *w, int y, int x, int c)
{
    const int v = w->top + (w->vertical ? w->height - 1 - y : y), u = w->left + (w->horizontal ? w->width - 1 - x : x);

    return v < 0 || u < 0 || v >= WIDE_HEIGHT || u >= WIDE_WIDTH ? w->fill[c] : wide[w->image][v][u][c];
}

/* f32: twice the pixel minus 2; bf16: the upper half of that, which is exact; u8: the pixel. */
static bool is_made_of(const stk_tensor *t, int64_t row, int y, int x, int c, uint8_t pixel)
{
    const char *element =
        (const char *)t->data + row * t->strides[0] + c * t->strides[1] + y * t->strides[2] + x * t->strides[3];
    const float value = 2.0f * pixel - 2.0f;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (t->dtype == STK_U8)
        return *(const uint8_t *)element == pixel;
    if (t->dtype == STK_BF16)
        return *(const uint16_t *)(const void *)element == bits >> 16;
    return *(const uint32_t *)(const void *)element == bits;
}

static bool shows(const stk_tensor *t, int64_t row, const wide_window *w)
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < w->height; y++)
            for (int x = 0; x < w->width; x++)
                if (!is_made_of(t, row, y, x, c, wide_pixel(w, y, x, c)))
                    return false;
    return true;
}

static int64_t shown_along(int from, int length, int image)
{
    const int end = from + length < image ? from + length : image;

    return end - (from > 0 ? from : 0);
}

/* The number of image bytes in the window that a row shows, or 0 if the crop cannot draw that window. */
static int64_t bytes_shown(const stk_tensor *t, int64_t row, wide_window w)
{
    for (int k = 0; k < 4; k++)
        for (w.top = -ABOVE; w.top <= WIDE_HEIGHT + ABOVE - w.height; w.top++)
            for (w.left = -ALL_AROUND; w.left <= WIDE_WIDTH + ALL_AROUND - w.width; w.left++) {
                w.vertical = k & 1;
                w.horizontal = k & 2;
                if (shows(t, row, &w))
                    return 3 * shown_along(w.top, w.height, WIDE_HEIGHT) * shown_along(w.left, w.width, WIDE_WIDTH);
            }
    return 0;
}

static void expect_wide_windows(int height, int width, const char *fill_text, const uint8_t *fill, const char *rest,
                                const char *stores)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    int64_t shown = 0, bytes;
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;

    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, layout: nchw, transforms: "
                        "[{random_crop: {size: [%d, %d], padding: [%d, %d], fill: %s}}, {random_horizontal_flip: 0.5}, "
                        "{random_vertical_flip: 0.5}%s}}}\n"
                        "loader: {batch_size: 4, num_workers: 1, num_epochs: 6, seed: 5, stores: %s}",
                        stkt_path("wide.npy"), height, width, ALL_AROUND, ABOVE, fill_text, rest, stores));
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        assert_ok(stk_batch_tensor(batch, "image", &t, &err));
        for (int64_t row = 0; row < WIDE_COUNT; row++) {
            const wide_window w = {
                .image = (int)stk_batch_indices(batch)[row], .height = height, .width = width, .fill = fill};

            if ((bytes = bytes_shown(&t, row, w)) == 0)
                fail_msg("row %d is not a possible window of %d x %d, %s, stores: %s", (int)row, height, width, rest,
                         stores);
            shown += bytes;
        }
        stk_batch_release(batch);
    }
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    if (width % 64 == 0) /* otherwise the window is copied before it is converted */
        assert_int_equal(stats.bytes_read, shown);
    stk_loader_destroy(loader);
}

/* Rows of many cache lines, padded on one side, both or neither, with widths that are multiples of a cache line and
 * widths that are not. */
static void padded_crops_of_wide_images(void **state)
{
    static const char *const rests[] = {"]", ", {normalize: {mean: 0.5, std: 0.25, scale: 0.5}}]",
                                        ", {normalize: {mean: 0.5, std: 0.25, scale: 0.5}}], dtype: bf16"};
    static const int widths[] = {576, 640, 560, 571};
    static const uint8_t one[] = {50, 50, 50}, each[] = {9, 200, 31};
    uint64_t random = 8;

    (void)state;
    for (size_t i = 0; i < sizeof wide; i++) /* small enough to be exact in bf16 */
        (&wide[0][0][0][0])[i] = (uint8_t)(stkt_random(&random) % 120);
    stkt_write_npy(stkt_path("wide.npy"), "|u1", "False", "(4, 12, 576, 3)", 64, wide, sizeof wide);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            const int height = i % 2 ? 17 : 12;

            expect_wide_windows(height, widths[i], "50", one, rests[k], "streaming");
            expect_wide_windows(height, widths[i], "[9, 200, 31]", each, rests[k], "streaming");
            expect_wide_windows(height, widths[i], "[9, 200, 31]", each, rests[k], "cached");
        }
}

static void flips_and_turns(void **state)
{
    seen *all = malloc(DRAWS * sizeof *all);
    int64_t both[4] = {0}, turns[4] = {0}, rare = 0;

    (void)state;
    look_at_all("{random_horizontal_flip: {}}, {random_vertical_flip: 0.5}", SIDE, all, DRAWS);
    for (int i = 0; i < DRAWS; i++)
        both[(all[i].right_x < 0) + 2 * (all[i].down_y < 0)]++;
    expect_uniform("flips", both, 4);
    look_at_all("{random_horizontal_flip: {p: 0.1}}", SIDE, all, DRAWS);
    for (int i = 0; i < DRAWS; i++)
        rare += all[i].right_x < 0;
    assert_true(fabs((double)rare - 0.1 * DRAWS) < 4 * sqrt(0.09 * DRAWS));
    look_at_all("{random_rotate: [0, 90, 180, 270]}", SIDE, all, DRAWS);
    for (int i = 0; i < DRAWS; i++) /* the direction in the image of a step to the right: right, down, left or up */
        turns[all[i].right_x > 0 ? 0 : all[i].right_y > 0 ? 1 : all[i].right_x < 0 ? 2 : 3]++;
    expect_uniform("turns", turns, 4);
    free(all);
}

/* RandomAffine: int(round(uniform(-a W, a W))), so the two ends are half as frequent. */
static void translations(void **state)
{
    static const double share[] = {0.5, 1, 1, 1, 1, 1, 0.5};
    stki_geometry geometry = {.count = 1, .random = true, .pads = true};
    int64_t right[7] = {0}, down[7] = {0};
    double expected[7];

    (void)state;
    geometry.steps[0] = (stki_geometry_step){
        .kind = STKI_RANDOM_TRANSLATE, .draw = stki_draw_name("a", "b"), .most_right = 0.25, .most_down = 0.5};
    for (int64_t i = 0; i < DRAWS; i++) {
        const stki_occasion occasion = {1, i};
        stki_placement p;

        assert_ok(stki_geometry_apply(&geometry, 6, 12, NULL, &occasion, &p, &err));
        assert_int_equal(p.pad_x.count, 1);
        right[p.pad_x.runs[0].to > 0 ? 3 + p.pad_x.runs[0].to : p.pad_x.runs[0].length - 9]++;
        down[p.pad_y.runs[0].to > 0 ? 3 + p.pad_y.runs[0].to : p.pad_y.runs[0].length - 3]++;
    }
    for (int i = 0; i < 7; i++)
        expected[i] = share[i] * DRAWS / 6;
    stkt_expect_score("right", 7, stkt_chi_square_score(stkt_chi_square(right, expected, 7), 6), 4);
    stkt_expect_score("down", 7, stkt_chi_square_score(stkt_chi_square(down, expected, 7), 6), 4);
}

/* ---- random_resized_crop ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Two-sample Kolmogorov-Smirnov test at a level of one in a thousand. */
static void expect_alike(const char *what, double *x, double *y, int n)
{
    double most = 0;

    qsort(x, (size_t)n, sizeof *x, ascending);
    qsort(y, (size_t)n, sizeof *y, ascending);
    for (int i = 0, k = 0; i < n && k < n;) {
        const double value = x[i] < y[k] ? x[i] : y[k];

        while (i < n && x[i] <= value)
            i++;
        while (k < n && y[k] <= value)
            k++;
        most = fmax(most, fabs((double)(i - k)) / n);
    }
    if (most > 1.95 * sqrt(2.0 / n))
        fail_msg("%s: distance %.4f of %d values", what, most, n);
}

static double uniform(uint64_t *random)
{
    return (double)(stkt_random(random) >> 11) * 0x1p-53;
}

/* torchvision.transforms.RandomResizedCrop.get_params, with other random numbers. */
static void torch_params(uint64_t *random, int width, int height, const double *scale, const double *ratio, int *out)
{
    const double area = (double)width * height, in_ratio = (double)width / height;

    for (int try = 0; try < 10; try++) {
        const double target = area * (scale[0] + (scale[1] - scale[0]) * uniform(random));
        const double aspect = exp(log(ratio[0]) + (log(ratio[1]) - log(ratio[0])) * uniform(random));
        const int w = (int)nearbyint(sqrt(target * aspect)), h = (int)nearbyint(sqrt(target / aspect));

        if (w > 0 && w <= width && h > 0 && h <= height) {
            out[0] = (int)stkt_random_in(random, 0, height - h);
            out[1] = (int)stkt_random_in(random, 0, width - w);
            out[2] = h;
            out[3] = w;
            return;
        }
    }
    out[2] = height;
    out[3] = width;
    if (in_ratio < ratio[0])
        out[2] = (int)nearbyint(width / ratio[0]);
    else if (in_ratio > ratio[1])
        out[3] = (int)nearbyint(height * ratio[1]);
    out[0] = (height - out[2]) / 2;
    out[1] = (width - out[3]) / 2;
}

static void resized_crops(void **state)
{
    static const struct {
        int width, height;
        double scale[2], ratio[2];
    } cases[] = {{500, 375, {0.08, 1}, {3.0 / 4, 4.0 / 3}},
                 {375, 500, {0.08, 1}, {3.0 / 4, 4.0 / 3}},
                 {40, 400, {0.5, 1}, {3.0 / 4, 4.0 / 3}}, /* almost always the center crop */
                 {64, 64, {0.2, 0.7}, {0.5, 2}}};
    double *values[2][5];

    (void)state;
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 5; k++)
            values[s][k] = malloc(DRAWS * sizeof(double));
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        stki_geometry geometry = {.count = 1, .random = true, .resizes = true, .filter = STKI_FILTER_BILINEAR};
        stki_geometry_step *s = &geometry.steps[0];
        uint64_t random = 99;

        *s = (stki_geometry_step){
            .kind = STKI_RANDOM_RESIZED_CROP, .height = 20, .width = 30, .draw = stki_draw_name("a", "")};
        memcpy(s->scale, cases[c].scale, sizeof s->scale);
        memcpy(s->ratio, cases[c].ratio, sizeof s->ratio);
        for (int64_t i = 0; i < DRAWS; i++) {
            const stki_occasion occasion = {stki_draw_key(1, 0), i};
            stki_placement p;
            int found[4], torch[4];

            assert_ok(stki_geometry_apply(&geometry, cases[c].height, cases[c].width, NULL, &occasion, &p, &err));
            assert_int_equal(p.job.window_height, 20);
            assert_int_equal(p.job.window_width, 30);
            found[0] = (int)p.top, found[1] = (int)p.left;
            found[2] = (int)p.job.in_height, found[3] = (int)p.job.in_width;
            torch_params(&random, cases[c].width, cases[c].height, cases[c].scale, cases[c].ratio, torch);
            for (int k = 0; k < 4; k++) {
                values[0][k][i] = found[k];
                values[1][k][i] = torch[k];
            }
            values[0][4][i] = (double)found[2] * found[3];
            values[1][4][i] = (double)torch[2] * torch[3];
        }
        for (int k = 0; k < 5; k++)
            expect_alike(((const char *const[]){"top", "left", "height", "width", "area"})[k], values[0][k],
                         values[1][k], DRAWS);
    }
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 5; k++)
            free(values[s][k]);
}

/* ---- the same bits ---- */

#define ALL_RANDOM                                                                                                    \
    "[{random_resized_crop: {size: 9}}, {random_horizontal_flip: 0.5}, {random_vertical_flip: 0.5}, {random_rotate: " \
    "{}}, "                                                                                                           \
    "{random_crop: {size: 9, padding: 2, padding_mode: reflect}}, {normalize: imagenet}]"

static uint64_t hash_of_run(int workers, const char *transforms, const char *others, uint64_t *epochs)
{
    stk_loader *loader;
    stk_batch *batch;
    uint64_t h = 1;
    stk_status status;

    assert_ok(
        stkt_open(&loader,
                  "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, layout: nchw, transforms: %s}%s}}\n"
                  "loader: {batch_size: 7, num_workers: %d, num_epochs: 2, seed: 8, order: random, tile_bytes: 1024}",
                  stkt_path("places.npy"), transforms, others, workers));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        h = stkt_hash_batch(h, loader, batch);
        if (stk_batch_last_of_epoch(batch) && epochs)
            epochs[stk_batch_epoch(batch)] = h, h = 1;
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    stk_loader_destroy(loader);
    return h;
}

/* Rows F05 and W10 (libffcv/ffcv#392, #140): with threads, the same seed gave other crops. */
static void workers_change_nothing(void **state)
{
    static const char *const lists[] = {
        ALL_RANDOM, "[{random_crop: {size: 8, padding: 3}}, {random_horizontal_flip: {}}, {scale: 2}]",
        "[{random_crop: [7, 9]}, {random_vertical_flip: {}}]"};
    static const int workers[] = {0, 1, 4, 16};

    (void)state;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        const uint64_t first = hash_of_run(0, lists[l], "", NULL);

        for (int run = 0; run < 20; run++)
            assert_true(hash_of_run(workers[run % 4], lists[l], "", NULL) == first);
    }
}

/* Row W09: each sample is transformed differently in each epoch, and samples differ from each other. */
static void epochs_differ(void **state)
{
    seen *all = malloc(4000 * sizeof *all);
    int64_t same = 0;

    (void)state;
    look_at_all("{random_crop: 3}", 3, all, 4000); /* 100 possible crops, 400 samples per epoch */
    for (int i = 0; i + 400 < 4000; i++)
        same += all[i].y == all[i + 400].y && all[i].x == all[i + 400].x;
    assert_true(fabs((double)same - 36) < 30);
    free(all);
}

/* An image and its mask get the same crop and flip if their steps name the same draw, and only then. */
static void draws_are_shared(void **state)
{
    static const char *const image =
        "[{random_crop: {size: 6, draw: a}}, {random_horizontal_flip: {draw: a}}, {random_vertical_flip: {draw: b}}]";
    static const char *const masks[] = {
        "[{random_crop: {size: 6, draw: a}}, {random_horizontal_flip: {draw: a}}, {random_vertical_flip: {draw: b}}]",
        "[{random_crop: {size: 6}}, {random_horizontal_flip: {}}, {random_vertical_flip: {}}]"};

    (void)state;
    for (int m = 0; m < 2; m++) {
        stk_loader *loader;
        stk_batch *batch;
        int64_t same = 0, flip_is_crop = 0, rows = 0;
        stk_status status;

        assert_ok(
            stkt_open(&loader,
                      "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: %s}, mask: {path: "
                      "%s, source: {layout: nhwc}, transforms: %s}}}\n"
                      "loader: {batch_size: 20, num_workers: 2, seed: 8, order: random}",
                      stkt_path("places.npy"), image, stkt_path("places.npy"), masks[m]));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            stk_tensor a, b;

            assert_ok(stk_batch_tensor(batch, "image", &a, &err));
            assert_ok(stk_batch_tensor(batch, "mask", &b, &err));
            for (int64_t r = 0; r < stk_batch_rows(batch); r++, rows++) {
                const uint8_t *x = (const uint8_t *)a.data + r * a.strides[0],
                              *y = (const uint8_t *)b.data + r * b.strides[0];
                const seen s = look(x, 6);

                same += memcmp(x, y, 6 * 6 * 3) == 0;
                flip_is_crop += (s.right_x < 0) == (s.y + (s.down_y < 0 ? -5 : 0) > 3);
            }
            stk_batch_release(batch);
        }
        assert_int_equal(status, STK_END);
        stk_loader_destroy(loader);
        assert_true(m == 0 ? same == rows : same < rows / 20);
        assert_true(flip_is_crop > rows / 4 && flip_is_crop < rows * 3 / 4); /* independent draws */
    }
}

/* ---- images of any size ---- */

/* A random list of steps over images of different sizes, with each way in which a reader can return parts of images,
 * must equal the steps applied one by one with the parameters that they draw. Sample i is at position i. */
static void images_of_any_size(void **state)
{
    static picture p;
    stki_geometry_step crop = {.kind = STKI_RANDOM_RESIZED_CROP, .height = 60, .width = 70};
    stki_geometry only = {.count = 1, .random = true, .resizes = true, .filter = STKI_FILTER_BICUBIC};

    (void)state;
    crop.scale[0] = 0.2, crop.scale[1] = 1, crop.ratio[0] = 0.5, crop.ratio[1] = 2;
    crop.draw = stki_draw_name("shared", "random_resized_crop");
    only.steps[0] = crop;
    for (int way = 0; way < 3; way++) {
        static const enum stkt_image_way ways[] = {STKT_WHOLE, STKT_PART, STKT_TURNED};
        stkt_images source = {.way = ways[way], .min_side = 20, .max_side = 90, .odd_one = -1};
        static const char text[] =
            "dataset: {fields: {image: {synthetic: {count: 40, shape: [90, 90, 3]}, source: {layout: nhwc}, layout: "
            "nchw, "
            "transforms: [{random_resized_crop: {size: [60, 70], scale: [0.2, 1], ratio: [0.5, 2], interpolation: "
            "bicubic, "
            "draw: shared}}, {random_vertical_flip: {draw: shared}}, {random_horizontal_flip: {draw: other}}, "
            "{normalize: {mean: 0.5, std: 0.25, scale: 0.5}}]}}}\nloader: {batch_size: 8, num_workers: 2, seed: 5}";
        stki_document *document;
        stki_loader_config *config;
        stk_loader *loader;
        stk_batch *batch;
        int64_t flips = 0;
        stk_status status;

        assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err));
        assert_ok(stki_config_read(document, NULL, &config, &err));
        config->wrap_reader = stkt_wrap_images;
        config->wrap_context = &source;
        assert_ok(stki_loader_open_config(config, &loader, &err));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            stk_tensor t;

            assert_ok(stk_batch_tensor(batch, "image", &t, &err));
            for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
                const int64_t i = stk_batch_indices(batch)[r];
                const stki_occasion occasion = {stki_draw_key(5, 0), i};
                int64_t shape[3];
                stki_placement placement;
                stki_draw down, right;
                bool is_down, is_right;

                stkt_image_size(&source, i, shape);
                stki_draw_begin(&down, &occasion, stki_draw_name("shared", "random_vertical_flip"));
                stki_draw_begin(&right, &occasion, stki_draw_name("other", "random_horizontal_flip"));
                is_down = stki_draw_unit(&down) < 0.5;
                is_right = stki_draw_unit(&right) < 0.5;
                assert_ok(stki_geometry_apply(&only, shape[0], shape[1], NULL, &occasion, &placement, &err));
                p.height = shape[0];
                p.width = shape[1];
                stkt_image_fill(&source, i, p.pixels);
                plain_crop(&p, placement.top, placement.left, placement.job.in_height, placement.job.in_width);
                plain_resize(&p, 60, 70);
                if (is_down)
                    plain_flip(&p, true);
                if (is_right)
                    plain_flip(&p, false);
                flips += is_down + is_right;
                for (int64_t y = 0; y < 60; y++)
                    for (int64_t x = 0; x < 70; x++)
                        for (int64_t c = 0; c < 3; c++)
                            expect_pixel(&t, "nchw", r, &p, y, x, c, "random_resized_crop");
            }
            stk_batch_release(batch);
        }
        assert_int_equal(status, STK_END);
        assert_true(flips > 20 && flips < 60);
        stk_loader_destroy(loader);
    }
}

/* ---- rejected configs ---- */

static void refusals(void **state)
{
    static const struct {
        const char *transforms, *message;
    } cases[] = {
        {"[{random_crop: 14}]", "at least 14 x 14"},
        {"[{random_crop: {size: 4, fill: 3}}]", "padding or pad_if_needed"},
        {"[{random_crop: {size: 4, padding: 13, padding_mode: reflect}}]", "to mirror the padding from"},
        {"[{random_crop: {size: 14, pad_if_needed: true, padding_mode: reflect}}]", "constant or edge"},
        {"[{random_crop: {size: 4, padding: [1, 2, 3]}}]", "[left and right, top and bottom]"},
        {"[{random_crop: {size: 4, padding: 1, fill: [1, 2]}}]", "found 2 values, expected 1 or 3"},
        {"[{random_crop: {size: 4, padding: 1, fill: 300}}]", "fill: found 300, which uint8 cannot represent"},
        {"[{pad: {padding: 1, fill: [0, 255, -5]}}]", "fill: found -5, which uint8 cannot represent"},
        {"[{random_crop: {size: 4, paddin: 1}}]", "did you mean padding?"},
        {"[{pad: 1}, {pad: 1}]", "a second step that pads"},
        {"[{pad: 1}, {resize: 4}]", "a resize after padding"},
        {"[{resize: 4}, {random_resized_crop: 4}]", "a second resize"},
        {"[{random_horizontal_flip: 1.5}]", "0 to 1"},
        {"[{random_resized_crop: {size: 4, scale: [0.5, 0.2]}}]", "low <= high"},
        {"[{random_resized_crop: {size: 4, interpolation: cubic}}]", "bicubic"},
        {"[{rotate: 45}]", "0, 90, 180 or 270"},
        {"[{random_rotate: [0, 90]}]", "found images of 13 x 17 (height x width), expected a square"},
        {"[{center_crop: [6, 4]}, {random_rotate: {angles: [0, 90]}}]", "found images of 6 x 4"},
        {"[{random_translate: {translate: 0.1}}]", "found 0.1, expected [horizontal, vertical]"},
        {"[{random_translate: {translate: [0.1, 0.2, 0.3]}}]", "found a list [0.1, 0.2, 0.3], expected [horizontal"},
        {"[{pad: 1}, {translate: {x: 1}}]", "a second step that pads"},
        {"[horizontal_flip]", "found horizontal_flip, expected the step with its parameters: {horizontal_flip: …}"},
        {"[horizontal_flop]", "expected one operation"},
        {"[{random_translate: {translate: [2, 0]}}]", "0 to 1"},
        {"[{normalize: imagenet}, {random_crop: 4}]", "before them"},
        {"[{random_flip: {}}]", "unknown operation random_flip"},
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_list),
                                       cmocka_unit_test(reflections_of_earlier_pixels),
                                       cmocka_unit_test(crops_are_uniform),
                                       cmocka_unit_test(padded_crops_are_uniform),
                                       cmocka_unit_test(padded_crops_of_wide_images),
                                       cmocka_unit_test(flips_and_turns),
                                       cmocka_unit_test(translations),
                                       cmocka_unit_test(resized_crops),
                                       cmocka_unit_test(workers_change_nothing),
                                       cmocka_unit_test(epochs_differ),
                                       cmocka_unit_test(draws_are_shared),
                                       cmocka_unit_test(images_of_any_size),
                                       cmocka_unit_test(refusals)};

    write_images(NULL);
    write_places("places.npy", 400);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
